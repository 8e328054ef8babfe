"""Fixtures shared by all three speeds, and how tests are shared out among processes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["tests.support.postgres"]
TESTS = Path(__file__).parent
SLOWEST_FIRST = ("end_to_end", "integration", "unit", "gpu")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file is one process's, for what its tests share; end-to-end ones are all one's, whose stacks fill a machine.

    They begin first, so that no process is left alone with them in the end.
    """
    items.sort(key=lambda item: SLOWEST_FIRST.index(_suite(item)))
    for item in items:
        group = "end_to_end" if _suite(item) == "end_to_end" else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def _suite(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]

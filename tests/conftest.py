"""Fixtures shared by all three speeds, and how tests are shared out among processes."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.postgres"]
TESTS = Path(__file__).parent
SLOWEST_FIRST = ("end_to_end", "integration", "unit", "gpu")
# Every run of the tests looks at the same examples, however slow or busy the machine is: what fails once fails always.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
# ``pytest tests/unit/kernels --hypothesis-profile thorough`` looks at others each time, and at more where there may be.
settings.register_profile("thorough", settings.get_profile("repeatable"), derandomize=False, print_blob=True)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """End-to-end tests begin first, so that no process is left alone with them in the end."""
    items.sort(key=lambda item: SLOWEST_FIRST.index(item.path.relative_to(TESTS).parts[0]))


def pytest_collection_finish() -> None:
    """Thousands of tests are known by now and stay: the collector of garbage need not look through them each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is one process's, for what its tests share; end-to-end ones are all one's, whose stacks fill a machine."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return "end_to_end" if "end_to_end/" in scope else scope

    return ByFile(config, log)

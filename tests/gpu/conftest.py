"""Without a GPU these tests are skipped, each by name; a GPU that does not work is an error, not a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_tasks.devices.cuda.selection import auto_means_cuda

FOLDER = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and no other, as skipped."""
    own = [item for item in items if FOLDER in item.path.parents]
    if own and not auto_means_cuda():
        for item in own:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))

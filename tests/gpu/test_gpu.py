"""The checks of ``checks.py``, one test each."""

from __future__ import annotations

import pytest

from tests.gpu.checks import CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_on_the_gpu(name: str) -> None:
    CHECKS[name]()

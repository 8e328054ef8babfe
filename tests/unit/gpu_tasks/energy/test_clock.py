"""The clock of this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tasks.energy.clock import MonotonicClock

REPOSITORY = Path(__file__).parents[4]


def test_it_goes_forward_and_sleeps_at_least_as_long_as_asked() -> None:
    clock = MonotonicClock()
    before_s = clock.now()
    clock.sleep(0.01)
    assert clock.now() - before_s >= 0.01


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_moment_that_has_passed_is_not_waited_for(seconds: float) -> None:
    MonotonicClock().sleep(seconds)


def test_another_process_has_the_same_clock() -> None:
    clock = MonotonicClock()
    code = "from gpu_tasks.energy.clock import MonotonicClock; print(MonotonicClock().now())"
    before_s = clock.now()
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    there_s = float(done.stdout)
    assert before_s < there_s < clock.now()

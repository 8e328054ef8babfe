"""The loop that samples, on a scripted clock: its period, its looks, its errors."""

from __future__ import annotations

from itertools import pairwise

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import NvmlNotReady
from gpu_tasks.energy.sampler import sample_until
from gpu_tasks.energy.trace import HEADER
from gpu_tasks.records import InvalidMeasurement
from tests.unit.gpu_tasks.energy import sampled_nvml
from tests.unit.gpu_tasks.energy.nvml_gpus import opened
from tests.unit.gpu_tasks.energy.nvml_scripted import ScriptedNvml


def run(nvml: ScriptedNvml, period_s: float, samples: int) -> list[str]:
    """Lines of so many rounds of the loop on the scripted clock."""
    lines: list[str] = []
    left = iter(range(samples - 1))

    def closed(wait_s: float) -> bool:
        assert 0 < wait_s <= period_s
        nvml.clock.sleep(wait_s)
        return next(left, None) is None

    sample_until(opened(nvml), nvml.clock, period_s, lines.append, closed)
    return lines


def times(lines: list[str]) -> list[float]:
    return [float(line.split(",")[0]) for line in lines if line[0].isdigit()]


def test_samples_keep_their_period_whatever_a_sample_takes() -> None:
    found = times(run(ScriptedNvml(), period_s=0.05, samples=40))
    assert [round(after - before, 6) for before, after in pairwise(found)] == [0.05] * 39


def test_moments_that_were_missed_are_left_out() -> None:
    nvml = ScriptedNvml()
    slow = iter([0.0, 0.12, *[0.0] * 10])

    def clock(handle: str, kind: int) -> int:
        nvml.clock.sleep(next(slow) if kind == 1 else 0.0)
        return 1410

    nvml.answers["nvmlDeviceGetClockInfo"] = clock
    found = times(run(nvml, period_s=0.05, samples=5))
    assert [round(after - before, 6) for before, after in pairwise(found)] == [
        0.05,
        0.15,
        0.05,
        0.05,
    ]


def test_the_kind_of_power_comes_before_the_first_sample_that_has_one() -> None:
    lines = run(ScriptedNvml(), period_s=0.05, samples=2)
    assert lines[:2] == [HEADER, "#kind instantaneous"]
    assert len(lines) == 4


def test_processes_are_counted_and_xid_errors_asked_for_every_half_second() -> None:
    nvml = ScriptedNvml()
    lines = run(nvml, period_s=0.05, samples=101)
    looks = [float(line.split(",")[0]) for line in lines if line.endswith(",1")]
    assert len(looks) == pytest.approx(5.0 / 0.5, abs=1)
    assert all(0.5 <= round(after - before, 6) <= 0.56 for before, after in pairwise(looks))
    assert nvml.calls.count("nvmlDeviceGetComputeRunningProcesses") == len(looks)
    assert nvml.calls.count("nvmlEventSetWait_v2") == len(looks) + 2, "once to see whether it can, once at the end"


def test_an_xid_error_that_comes_after_the_last_look_is_told_at_the_end() -> None:
    nvml = ScriptedNvml()
    lines: list[str] = []

    def closed(wait_s: float) -> bool:
        nvml.xids = [79]
        return True

    sample_until(opened(nvml), nvml.clock, 0.05, lines.append, closed)
    assert lines[-1] == "#error xid Xid errors of the driver: expected none meanwhile, found Xid 79"
    assert nvml.calls[-1] == "nvmlEventSetFree"


def test_a_driver_that_is_not_ready_at_the_very_end_takes_nothing_from_the_samples() -> None:
    nvml = ScriptedNvml()
    lines: list[str] = []

    def closed(wait_s: float) -> bool:
        nvml.fail("nvmlEventSetWait_v2", pynvml.NVML_ERROR_NOT_READY)
        return True

    sample_until(opened(nvml), nvml.clock, 0.05, lines.append, closed)
    assert len(times(lines)) == 1


def test_power_of_the_moment_is_never_mixed_with_averages() -> None:
    nvml = sampled_nvml.averaging()
    with pytest.raises(InvalidMeasurement, match="power: expected instantaneous all through, found average"):
        run(nvml, period_s=0.05, samples=10)


def test_a_gpu_that_is_not_ready_is_asked_again_for_half_a_second() -> None:
    nvml = sampled_nvml.not_ready_any_more()
    start_s = nvml.clock.now()
    with pytest.raises(NvmlNotReady):
        run(nvml, period_s=0.05, samples=100)
    assert 0.5 < nvml.clock.now() - start_s < 1.0

"""Rounds that cannot be used: what changed meanwhile, processes, windows that nobody saw; and rounds that can."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_tasks.energy.invalidation import active_samples, invalid_reasons
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import GpuProcess
from tests.unit.gpu_tasks.energy.rounds_between import AFTER, BEFORE, READINGS, WORK, codes, working


def test_a_round_in_which_nothing_happened_is_valid() -> None:
    assert codes() == []
    assert codes(clock_floor_mhz=1410) == []


def test_samples_at_the_very_beginning_and_end_of_a_window_are_not_of_it() -> None:
    samples = [Sample(number / 100) for number in range(10_400, 10_800)]
    found = active_samples(samples, (105.0, 107.0))
    assert (found[0].time_s, found[-1].time_s) == (105.3, 106.9)
    assert active_samples(samples, (105.0, 105.3)) == []


@pytest.mark.parametrize(
    ("active", "found"),
    [
        ([(105.0, 106.01)], ["no_samples_of_work"]),
        ([(105.0, 106.0)], []),
        ([(104.0, 104.2), (110.0, 112.0)], []),
        ([(110.0, 112.0), (105.0, 106.5), (114.0, 116.0)], ["no_samples_of_work"]),
        ([], []),
    ],
)
def test_a_long_window_without_a_sample_of_its_work_invalidates(
    active: list[tuple[float, float]], found: list[str]
) -> None:
    gap = [*working([1410] * 3, start_s=105.1), *working([1410] * 40, start_s=110.0), *working([1410], start_s=114.5)]
    assert codes(samples=gap, active=active) == found


def test_a_window_that_was_not_seen_is_named() -> None:
    (reason,) = invalid_reasons(BEFORE, AFTER, working([1410] * 40), READINGS, active=[(105.0, 107.0), (110.0, 112.0)])
    found = "none in 1 of 2, the first 110.000 to 112.000 s"
    assert reason.message == f"samples: expected some in every window of work, found {found}"


def test_what_samples_do_not_say_is_not_judged() -> None:
    assert codes(samples=[Sample(105.0 + number / 20) for number in range(300)], clock_floor_mhz=1400.0) == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"power_limit_w": 320.0}, "power_limit_changed"),
        ({"uuid": "GPU-00000000"}, "device_changed"),
        ({"pci_bus_id": "00000000:07:00.0"}, "device_changed"),
        ({"driver": "580.126.09"}, "driver_changed"),
        ({"uncorrected_ecc_errors": 1}, "uncorrected_ecc_grew"),
        ({"processes": [GpuProcess(1285, 1), GpuProcess(4242, 1)]}, "new_process"),
    ],
)
def test_what_changed_between_before_and_after_invalidates(change: dict[str, object], code: str) -> None:
    assert codes(after=dataclasses.replace(AFTER, **change)) == [code]  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["power_limit_w", "uncorrected_ecc_errors", "processes", "throttle_reasons"])
def test_what_is_not_known_before_or_after_is_not_compared(field: str) -> None:
    assert codes(after=dataclasses.replace(AFTER, **{field: None})) == []
    assert codes(before=dataclasses.replace(BEFORE, **{field: None})) == []


def test_a_process_that_uses_other_memory_is_no_new_one() -> None:
    assert codes(after=dataclasses.replace(AFTER, processes=[GpuProcess(1285, 999)])) == []


def test_a_process_that_came_between_the_preflight_and_the_round_invalidates_though_it_ended() -> None:
    before = dataclasses.replace(BEFORE, processes=[GpuProcess(1285, 1), GpuProcess(7, None)])
    for after in ([GpuProcess(1285, 1)], [GpuProcess(1285, 1), GpuProcess(7, None)]):
        assert codes(before, dataclasses.replace(AFTER, processes=after)) == ["new_process"]


def test_a_process_that_came_and_went_is_in_the_samples_and_invalidates() -> None:
    samples = working([1410] * 300)
    for place in range(0, 300, 10):
        samples[place] = dataclasses.replace(samples[place], processes=1)
    assert codes(samples=samples) == []
    samples[150] = dataclasses.replace(samples[150], processes=2)
    assert codes(samples=samples) == ["new_process"]
    (reason,) = invalid_reasons(BEFORE, AFTER, samples, READINGS, active=WORK)
    assert reason.message == "processes: expected 1 all through, found 2 in between"
    assert codes(before=dataclasses.replace(BEFORE, processes=None), samples=samples) == []
    assert codes(after=dataclasses.replace(AFTER, processes=None), samples=samples) == ["new_process"]


def test_a_process_that_came_and_went_while_nothing_ran_counts_as_well() -> None:
    idle = [dataclasses.replace(Sample(102.0), processes=2)]
    assert codes(samples=[*idle, *working([1410] * 300)]) == ["new_process"]


def test_a_gpu_that_leaves_p0_when_it_idles_is_fine() -> None:
    assert codes(before=dataclasses.replace(BEFORE, performance_state=8)) == []


def test_a_performance_state_that_changes_while_working_invalidates() -> None:
    samples = [*working([1410] * 100), *working([1410] * 100, state=2, start_s=110.0)]
    assert codes(samples=samples) == ["performance_state_changed"]


def test_every_reason_is_given_not_only_the_first() -> None:
    after = dataclasses.replace(AFTER, driver="1", power_limit_w=320.0, throttle_reasons=0x40)
    found = codes(after=after, samples=working([1410] * 100 + [700] * 100), readings=[READINGS[1], READINGS[0]])
    assert found == ["driver_changed", "throttled", "clock_drop", "power_limit_changed", "counter_backwards"]

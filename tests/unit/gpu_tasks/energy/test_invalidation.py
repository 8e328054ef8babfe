"""Rounds that were measured and cannot be used."""

from __future__ import annotations

import dataclasses

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.invalidation import (
    COUNTED_POLICIES,
    NOT_THROTTLING,
    THROTTLING,
    active_samples,
    invalid_reasons,
    window_reasons,
)
from gpu_tasks.energy.nvml.queries import POLICIES
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading, GpuProcess, GpuState

BEFORE = GpuState(
    time_s=100.0,
    uuid="GPU-5c63cb6b",
    pci_bus_id="00000000:50:00.0",
    driver="580.105.08",
    power_w=57.7,
    power_kind="instantaneous",
    power_limit_w=400.0,
    default_power_limit_w=400.0,
    sm_clock_mhz=1410,
    memory_clock_mhz=1215,
    performance_state=0,
    temperature_c=31,
    utilisation_percent=0,
    throttle_reasons=0x1,
    violation_ns=dict.fromkeys(POLICIES, 1000),
    processes=[GpuProcess(1285, 450 << 20)],
    persistence_mode=True,
    mig_mode=False,
    uncorrected_ecc_errors=0,
    row_remap_pending=False,
    unavailable={},
)
AFTER = dataclasses.replace(BEFORE, time_s=126.0, temperature_c=36)


def reading(time_s: float, energy_mj: int) -> CounterReading:
    return CounterReading(energy_mj, time_s, 0.003)


WORK = [(104.0, 125.0)]
READINGS = [reading(100.0, 0), reading(105.0, 300_000), reading(121.0, 1_800_000), reading(121.01, 1_800_000)]


def working(clocks: list[int], state: int = 0, start_s: float = 105.0, **values: int | None) -> list[Sample]:
    """A sample every 50 ms while kernels run."""
    return [
        Sample(start_s + number / 20, 90.0, sm_clock_mhz=clock, performance_state=state, **values)  # type: ignore[arg-type]
        for number, clock in enumerate(clocks)
    ]


def counted(*energies_mj: int, start_s: float = 105.0) -> list[Sample]:
    """Samples of the counter, every 50 ms."""
    times = [start_s + number / 20 for number in range(len(energies_mj))]
    return [
        Sample(time, counter_time_s=time, counter_mj=energy) for time, energy in zip(times, energies_mj, strict=True)
    ]


def codes(
    before: GpuState = BEFORE,
    after: GpuState = AFTER,
    samples: list[Sample] | None = None,
    readings: list[CounterReading] | None = None,
    *,
    clock_floor_mhz: float | None = None,
    active: list[tuple[float, float]] | None = None,
) -> list[str]:
    reasons = invalid_reasons(
        before,
        after,
        working([1410] * 300) if samples is None else samples,
        READINGS if readings is None else readings,
        active=WORK if active is None else active,
        clock_floor_mhz=clock_floor_mhz,
    )
    assert all(": expected " in reason.message and ", found " in reason.message for reason in reasons)
    return [reason.code for reason in reasons]


def test_a_round_in_which_nothing_happened_is_valid() -> None:
    assert codes() == []
    assert codes(clock_floor_mhz=1410) == []


def test_the_bits_are_those_of_the_bindings() -> None:
    bindings = {name: value for name, value in vars(pynvml).items() if name.startswith("nvmlClocksEventReason")}
    names = {
        f"nvmlClocksEventReason{''.join(part.title() for part in name.split('_'))}": bit
        for bit, name in (NOT_THROTTLING | THROTTLING).items()
    }
    assert {name: bindings[name] for name in names} == names
    assert sum(names.values()) == bindings["nvmlClocksEventReasonAll"]


@pytest.mark.parametrize("bit", [*THROTTLING, 0x200, 0x8000_0000_0000])
@pytest.mark.parametrize("when", ["before", "after", "both"])
def test_a_bit_that_holds_the_clocks_down_invalidates_whenever_it_is_seen(bit: int, when: str) -> None:
    held = {"throttle_reasons": bit | 0x1}
    before = BEFORE if when == "after" else dataclasses.replace(BEFORE, **held)
    after = AFTER if when == "before" else dataclasses.replace(AFTER, **held)
    assert codes(before, after) == ["throttled"] * (2 if when == "both" else 1)
    (reason, *_) = invalid_reasons(before, after, [], READINGS, active=[])
    assert THROTTLING.get(bit, hex(bit)) in reason.message
    assert "gpu_idle" not in reason.message


@pytest.mark.parametrize("bits", [0, 0x1, 0x2, 0x3, None])
def test_nvbench_231_no_work_and_the_clock_that_was_asked_for_are_no_throttling(bits: int | None) -> None:
    states = [dataclasses.replace(state, throttle_reasons=bits) for state in (BEFORE, AFTER)]
    assert codes(*states) == []


@pytest.mark.parametrize("bit", [*THROTTLING, 0x200])
def test_a_bit_that_holds_the_clocks_down_for_one_sample_of_the_work_invalidates(bit: int) -> None:
    held = working([1410] * 300, throttle_reasons=0)
    held[150] = dataclasses.replace(held[150], throttle_reasons=bit | 0x2)
    assert codes(samples=held) == ["throttled"]
    (reason,) = invalid_reasons(BEFORE, AFTER, held, READINGS, active=WORK)
    found = THROTTLING.get(bit, hex(bit))
    assert reason.message == f"clocks while working: expected not to be held down, found {found}"


def test_bits_of_several_samples_are_told_together_and_those_of_idle_times_are_nobodys() -> None:
    held = working([1410] * 100, throttle_reasons=0x4) + working([1410] * 100, throttle_reasons=0x80, start_s=110.0)
    (reason,) = invalid_reasons(BEFORE, AFTER, held, READINGS, active=WORK)
    assert reason.message.endswith("found sw_power_cap, hw_power_brake_slowdown")
    assert codes(samples=held, active=[(120.0, 121.0)]) == []
    assert codes(samples=working([1410] * 300, throttle_reasons=0x3)) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_time_under_a_limit_that_grew_invalidates_and_time_without_work_does_not(policy: str) -> None:
    after = dataclasses.replace(AFTER, violation_ns=BEFORE.violation_ns | {policy: 5_001_000})
    assert codes(after=after) == (["violation_time_grew"] if policy in COUNTED_POLICIES else [])
    if policy in COUNTED_POLICIES:
        (reason,) = invalid_reasons(BEFORE, after, [], READINGS, active=[])
        expected = f"time under the {policy} limit: expected not to grow, found 5 ms more"
        assert reason.message == f"throttled: {expected}"


def test_a_policy_that_is_not_known_at_both_ends_is_not_compared() -> None:
    unknown = {policy: time for policy, time in BEFORE.violation_ns.items() if policy != "thermal"}
    after = dataclasses.replace(AFTER, violation_ns=unknown | {"thermal": 10**9})
    assert codes(dataclasses.replace(BEFORE, violation_ns=unknown), after) == []
    assert codes(after, dataclasses.replace(AFTER, violation_ns=unknown)) == []


def test_nvbench_193_flashinfer_2899_clocks_that_drop_by_19_percent_in_mid_run_invalidate() -> None:
    assert codes(samples=working([1410] * 150 + [1142] * 150)) == ["clock_drop"]
    assert codes(samples=working([1410] * 150 + [1142] * 3 + [1410] * 150)) == ["clock_drop"]


def test_a_low_clock_at_first_is_as_bad_as_one_later() -> None:
    assert codes(samples=working([1095] * 20 + [1410] * 280)) == ["clock_drop"]
    assert codes(samples=working([1410] * 280 + [1095] * 20)) == ["clock_drop"]


def test_a_step_by_a_boost_bin_is_no_drop() -> None:
    assert codes(samples=working([1410, 1395, 1380, 1410] * 75)) == []


@given(st.lists(st.integers(1270, 1410), min_size=60, max_size=90), st.integers(30, 59), st.integers(300, 1142))
def test_a_drop_is_found_wherever_it_is(clocks: list[int], place: int, low: int) -> None:
    assert codes(samples=working(clocks)) == []
    assert codes(samples=working([*clocks[:place], low, *clocks[place + 1 :], 1410])) == ["clock_drop"]


def test_an_sm_clock_under_its_floor_invalidates() -> None:
    steady = working([1215] * 300)
    assert codes(samples=steady, clock_floor_mhz=1400.0) == ["sm_clock_under_floor"]
    assert codes(samples=steady, clock_floor_mhz=1215.0) == []
    assert codes(samples=steady) == []


def test_clocks_and_states_of_idle_times_are_nobodys_fault() -> None:
    idle = working([210] * 100, state=8, start_s=100.0)
    busy = working([1410] * 100, start_s=105.0)
    tail = working([345] * 100, state=5, start_s=110.0)
    work = [(105.0, 109.99)]
    assert codes(samples=[*idle, *busy, *tail], clock_floor_mhz=1400.0, active=work) == []
    assert codes(samples=[*idle, *busy, *tail], active=[(103.0, 109.99)]) == ["clock_drop", "performance_state_changed"]


def test_clocks_are_compared_over_all_windows_of_the_round() -> None:
    slow, fast = working([1095] * 40, start_s=105.0), working([1410] * 40, start_s=110.0)
    assert codes(samples=[*slow, *fast], active=[(105.0, 107.0), (110.0, 112.0)]) == ["clock_drop"]
    assert codes(samples=slow, active=[(105.0, 107.0)]) == []


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


def test_a_tenth_of_the_clock_may_go_and_no_more() -> None:
    assert codes(samples=working([1410, 1269])) == []
    assert codes(samples=working([1410, 1268])) == ["clock_drop"]


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


def test_codecarbon_1309_pyjoules_16_a_counter_that_falls_invalidates() -> None:
    for fallen in (READINGS[2].energy_mj - 1, 0):
        readings = [*READINGS[:3], reading(121.01, fallen)]
        assert codes(readings=readings) == ["counter_backwards"]
    (reason,) = window_reasons("active", reading(1.0, 500), reading(2.0, 0), 400.0)
    assert reason.message == "active: counter: expected to rise, found to fall by 500 mJ in 1.000 s"


@pytest.mark.parametrize("by_mj", [1, 20_000])
def test_a_counter_that_falls_between_two_samples_invalidates_however_little(by_mj: int) -> None:
    """Readings around it rise all the same: 20 J are made up for in a third of a second."""
    rising = [400_000 + 3_000 * number for number in range(300)]
    assert codes(samples=counted(*rising)) == []
    fallen = [*rising[:150], *(energy - by_mj - 3_000 for energy in rising[150:])]
    assert codes(samples=counted(*fallen)) == ["counter_backwards"]
    (reason,) = invalid_reasons(BEFORE, AFTER, counted(*fallen), READINGS, active=[])
    assert reason.message == f"counter: expected never to fall, found {by_mj} mJ less at 112.500 s"


def test_a_counter_that_stands_still_for_a_moment_has_not_fallen() -> None:
    assert codes(samples=counted(400_000, 400_000, 403_720, 403_720)) == []


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (counted(300_001, start_s=104.94), ["counter_backwards"]),  # before the reading of 300,000 at 105
        (counted(300_001, start_s=104.96), []),  # near enough to be in another order than the moments say
        (counted(299_999, start_s=105.04), []),
        (counted(299_999, start_s=105.06), ["counter_backwards"]),
        (counted(1_800_001, start_s=120.9), ["counter_backwards"]),
        (counted(250_000, start_s=104.0), []),
    ],
)
def test_samples_and_readings_are_of_one_counter(sample: list[Sample], found: list[str]) -> None:
    assert codes(samples=sample, active=[]) == found


@given(st.lists(st.integers(0, 4000), min_size=3, max_size=60), st.data())
def test_one_fall_anywhere_is_found_and_a_counter_that_rises_is_never_at_fault(
    steps_mj: list[int], data: st.DataObject
) -> None:
    """The counter by the sampler every 50 ms and by readings at some of those moments."""
    energies = [sum(steps_mj[: number + 1]) for number in range(len(steps_mj))]
    samples = counted(*energies)
    places = data.draw(st.sets(st.sampled_from(range(len(samples))), max_size=4))
    readings = [reading(samples[place].time_s, energies[place]) for place in sorted(places)]
    assert "counter_backwards" not in codes(samples=samples, readings=readings, active=[])
    place = data.draw(st.integers(1, len(samples) - 1))
    by_mj = data.draw(st.integers(1, 10**6)) + steps_mj[place]
    fallen = counted(*energies[:place], *(max(0, energy - by_mj) for energy in energies[place:]))
    if energies[place - 1]:
        assert codes(samples=fallen, readings=[], active=[]) == ["counter_backwards"]


def test_a_counter_that_stands_still_invalidates() -> None:
    assert codes(readings=[reading(0, 7), reading(5, 7), reading(25, 9000)]) == ["counter_unchanged"]
    assert codes(readings=[reading(0, 7), reading(0.01, 7)]) == ["counter_unchanged"]


def test_pyjoules_17_papi_525_alumet_338_a_window_that_is_shorter_than_the_tick_reads_0_and_is_invalid() -> None:
    (reason,) = window_reasons("active", reading(5.0, 1000), reading(5.02, 1000), 400.0)
    assert reason.code == "counter_unchanged"
    assert reason.message == "active: counter: expected to rise, found the same 1000 mJ after 0.020 s"


def test_readings_closer_than_two_ticks_may_be_equal_or_a_step_apart() -> None:
    equal = [reading(0, 0), reading(5, 300_000), reading(5.003, 300_000), reading(21, 1_800_000)]
    step = [reading(0, 0), reading(5, 300_000), reading(5.003, 303_720), reading(21, 1_800_000)]
    assert codes(readings=equal) == codes(readings=step) == []


def test_two_ticks_are_far_enough_to_have_moved() -> None:
    after = [reading(21, 1_800_000)]
    assert codes(readings=[reading(0, 7), reading(0.2, 7), *after]) == ["counter_unchanged"]
    assert codes(readings=[reading(0, 7), reading(0.19, 7), *after]) == []
    assert codes(readings=[reading(0, 7), reading(0.2, 900_000), *after]) == ["impossible_power"]


def test_one_tick_of_energy_may_be_too_much_and_no_more() -> None:
    most_mj = round(1000 * 1.2 * 400 * (20 + 0.1))
    assert window_reasons("active", reading(0, 0), reading(20, most_mj - 1), 400.0) == []
    (reason,) = window_reasons("active", reading(0, 0), reading(20, most_mj + 1), 400.0)
    expected = "at most 1.2 times the limit of 400 W, found 9648.001 J in 20.000 s"
    assert reason.message == f"active: counter: expected {expected}"


@pytest.mark.parametrize(("watts", "found"), [(470.0, []), (490.0, ["impossible_power"]), (5e6, ["impossible_power"])])
def test_power_over_1_2_times_the_limit_is_impossible(watts: float, found: list[str]) -> None:
    assert codes(readings=[reading(0, 0), reading(20, round(watts * 20_000))]) == found
    limit = dataclasses.replace(BEFORE, power_limit_w=None), dataclasses.replace(AFTER, power_limit_w=None)
    assert codes(*limit, readings=[reading(0, 0), reading(20, round(watts * 20_000))]) == []


def test_an_impossible_stretch_is_not_hidden_by_the_whole() -> None:
    readings = [reading(0, 0), reading(100, 6_000_000), reading(101, 8_000_000), reading(300, 20_000_000)]
    assert codes(readings=readings) == ["impossible_power"]


def test_one_reading_or_none_says_nothing() -> None:
    assert codes(readings=[]) == codes(readings=READINGS[:1]) == []


def test_every_reason_is_given_not_only_the_first() -> None:
    after = dataclasses.replace(AFTER, driver="1", power_limit_w=320.0, throttle_reasons=0x40)
    found = codes(after=after, samples=working([1410] * 100 + [700] * 100), readings=[READINGS[1], READINGS[0]])
    assert found == ["driver_changed", "throttled", "clock_drop", "power_limit_changed", "counter_backwards"]


@given(st.floats(10, 480), st.lists(st.floats(0.5, 60), min_size=2, max_size=12), st.floats(0.01, 0.1))
def test_a_counter_that_ticks_at_a_possible_power_is_never_at_fault(
    watts: float, gaps: list[float], tick_s: float
) -> None:
    """The counter is what was used up to the last tick: short stretches read up to one tick too much or too little."""
    times = [sum(gaps[:number]) for number in range(len(gaps) + 1)]
    readings = [reading(time, int(1000 * watts * (time // tick_s) * tick_s)) for time in times]
    assert invalid_reasons(BEFORE, AFTER, [], readings, active=[], tick_period_s=tick_s) == []

"""Rounds that cannot be used: clocks held down, and clocks that fall."""

from __future__ import annotations

import dataclasses

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.invalidation import COUNTED_POLICIES, NOT_THROTTLING, THROTTLING, invalid_reasons
from gpu_tasks.energy.nvml.queries import POLICIES
from tests.unit.gpu_tasks.energy.rounds_between import AFTER, BEFORE, READINGS, WORK, codes, working


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


def test_a_tenth_of_the_clock_may_go_and_no_more() -> None:
    assert codes(samples=working([1410, 1269])) == []
    assert codes(samples=working([1410, 1268])) == ["clock_drop"]

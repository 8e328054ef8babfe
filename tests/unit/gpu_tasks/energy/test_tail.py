"""The energy after the work: found from two counter steps, whatever the delay to the first of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.energy.tail import power_tail
from gpu_tasks.records import AlignedReadings, CounterEdge

IDLE_W, ACTIVE_W = 40.0, 75.0


def edge(energy_j: float, time_s: float) -> CounterEdge:
    return CounterEdge(round(1000 * energy_j), time_s, time_s)


def after(tau_s: float, delay_s: float, settled_s: float, rise_w: float = ACTIVE_W - IDLE_W) -> AlignedReadings:
    """The counter after work that ended at 0, with a tail of ``rise_w*exp(-t/tau_s)``."""

    def energy(time_s: float) -> float:
        return IDLE_W * time_s + rise_w * tau_s * (1 - math.exp(-time_s / tau_s))

    nothing = edge(0, 0)
    return AlignedReadings(
        idle_before=[nothing, nothing],
        active_start=nothing,
        tail_start=edge(energy(delay_s), delay_s),
        active_end=edge(energy(settled_s), settled_s),
        idle_after=[nothing, nothing],
    )


@given(st.floats(0.05, 0.5), st.floats(0.0, 0.1))
def test_the_tail_is_found(tau_s: float, delay_s: float) -> None:
    found = power_tail(after(tau_s, delay_s, 5.0), 0.0, ACTIVE_W, IDLE_W).energy_j
    assert found == pytest.approx((ACTIVE_W - IDLE_W) * tau_s, rel=0.02, abs=0.02)


def test_no_power_above_idle_is_no_tail() -> None:
    assert power_tail(after(0.25, 0.05, 3.0, rise_w=0.0), 0.0, ACTIVE_W, IDLE_W).energy_j == pytest.approx(
        0.0, abs=1e-3
    )
    assert power_tail(after(0.25, 0.05, 3.0), 0.0, IDLE_W, IDLE_W).energy_j == 0.0
    assert power_tail(after(0.25, 0.05, 3.0, rise_w=-5.0), 0.0, ACTIVE_W, IDLE_W).energy_j == 0.0


def test_what_is_left_of_it_later() -> None:
    tail = power_tail(after(0.5, 0.05, 5.0), 0.0, ACTIVE_W, IDLE_W)
    assert tail.left_j(0.0) == tail.energy_j
    assert tail.left_j(1.0) == pytest.approx(35 * 0.5 * math.exp(-2), rel=0.03)
    assert power_tail(after(0.25, 0.05, 3.0, rise_w=-5.0), 0.0, ACTIVE_W, IDLE_W).left_j(1.0) == 0.0

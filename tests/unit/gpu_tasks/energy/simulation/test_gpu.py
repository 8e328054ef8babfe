"""The simulated GPU: energy adds up over any schedule, the same seed gives the same bits, each effect does its part."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.simulation.gpu import FALL_MJ, OTHER_PID, SHORTEST_WINDOW_S, XID, GpuLost, SimulatedGpu
from gpu_tasks.energy.simulation.lag import MANY
from gpu_tasks.energy.simulation.profiles import A100_FAULTY_SENSOR, A100_HEALTHY
from gpu_tasks.records import DRIFTS, Effects, parse_effects

WINDOW_S, WINDOW_J = 20.0, 700.0

loads = st.lists(st.tuples(st.floats(0.001, 30), st.floats(0, 300), st.floats(0, 10)), min_size=1, max_size=10)


def gpu_with(inject: str, seed: int = 1) -> SimulatedGpu:
    return SimulatedGpu(effects=parse_effects(inject), seed=seed)


def window(gpu: SimulatedGpu) -> float:
    return gpu.work(WINDOW_S, WINDOW_J, window=True)


def lagged_j(start_s: float, end_s: float, watts: float, until_s: float, lag_s: float) -> float:
    """Energy until a time of a load between two times: the superposition of a step up and a step down."""

    def risen(elapsed_s: float) -> float:
        return elapsed_s + lag_s * math.expm1(-elapsed_s / lag_s) if elapsed_s > 0 else 0.0

    return watts * (risen(until_s - start_s) - risen(until_s - end_s))


@settings(max_examples=50, deadline=None)
@given(loads, st.sampled_from([0.02, 0.05, 0.1]), st.integers(0, 10**6))
def test_the_counter_counts_the_energy_of_any_schedule(
    schedule: list[tuple[float, float, float]], tick_s: float, seed: int
) -> None:
    gpu = SimulatedGpu(seed=seed, tick_period_s=tick_s)
    clock, start_s, first_mj, done = gpu.clock, gpu.clock.now(), gpu.counter.value_mj(gpu.clock.now()), []
    for seconds, watts, pause_s in schedule:
        began = clock.now()
        assert gpu.work(seconds, watts * seconds) == pytest.approx(seconds)
        done.append((began, clock.now(), watts))
        clock.sleep(pause_s)
        now = clock.now()
        loads_j = sum(lagged_j(*load, now, A100_HEALTHY.lag_s) for load in done)
        expected_mj = 1000 * (gpu.idle_w * (now - start_s) + loads_j)
        highest_w = gpu.idle_w + max(watts for _, _, watts in done)
        found_mj = gpu.counter.value_mj(now) - first_mj
        tick_mj = 1000 * highest_w * tick_s * 1.051
        assert expected_mj - tick_mj - 1 <= found_mj <= expected_mj + tick_mj + 1


@given(st.sampled_from(DRIFTS), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_power_is_the_slope_of_the_energy(drift: str, seed: int) -> None:
    gpu = SimulatedGpu(seed=seed, drift=drift)
    gpu.clock.sleep(3)
    gpu.work(5, 200)
    now = gpu.clock.now()
    for moment in (now - 6, now - 4.99, now - 1, now - 1e-3, now + 0.2, now + 30):
        slope = (gpu.power.energy_j(moment + 1e-4) - gpu.power.energy_j(moment - 1e-4)) / 2e-4
        assert gpu.power.power_w(moment) == pytest.approx(slope, abs=0.02)


def told(seed: int, tick_s: float = 0.1) -> list[float]:
    gpu = SimulatedGpu(effects=Effects(drift="random_walk"), seed=seed, tick_period_s=tick_s)
    found: list[float] = [gpu.replay_mj, gpu.replay_s, gpu.idle_w]
    for _ in range(20):
        gpu.clock.sleep(gpu.read_latency_s())
        gpu.work(1.0, 30.0 + gpu.timing_noise())
        now = gpu.clock.now()
        found += [now, gpu.counter.value_mj(now), gpu.measured_power_w(now), gpu.sample_delay()]
    return found


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    assert told(7) == told(7)
    other = told(8)
    assert all(a != b for a, b in zip(told(7), other, strict=True))


def test_one_quantity_does_not_disturb_another() -> None:
    """Readings of the counter are the same however often the power was read."""
    quiet, busy = SimulatedGpu(seed=3), SimulatedGpu(seed=3)
    for _ in range(5000):
        busy.measured_power_w(busy.clock.now())
        busy.sample_delay()
    assert quiet.read_latency_s() == busy.read_latency_s()
    moment = quiet.clock.now() + 12.3
    assert quiet.counter.value_mj(moment) == busy.counter.value_mj(moment)


def test_openings_of_the_device_differ_as_rounds_do() -> None:
    boards = [SimulatedGpu(seed=seed) for seed in range(300)]
    energies = [board.replay_mj for board in boards]
    mean = sum(energies) / len(energies)
    sd = math.sqrt(sum((value - mean) ** 2 for value in energies) / (len(energies) - 1))
    assert mean == pytest.approx(0.586, rel=0.002)
    assert sd / mean == pytest.approx(0.006, rel=0.15)
    times = [board.replay_s for board in boards]
    assert sum(times) / len(times) == pytest.approx(17.05e-6, rel=0.001)


def test_energy_and_time_of_a_replay_change_apart() -> None:
    plain, hot, slow = gpu_with(""), gpu_with("energy+10%"), gpu_with("time-5%")
    assert hot.replay_mj == pytest.approx(1.1 * plain.replay_mj, rel=1e-12)
    assert hot.replay_s == plain.replay_s
    assert slow.replay_s == pytest.approx(0.95 * plain.replay_s, rel=1e-12)
    assert slow.replay_mj == plain.replay_mj
    assert hot.plain_replay_mj == plain.replay_mj


def true_energy_j(gpu: SimulatedGpu) -> float:
    """Above idle, tail included, with a healthy sensor and no drift."""
    start = gpu.clock.now()
    window(gpu)
    gpu.clock.sleep(30)
    return gpu.power.energy_j(gpu.clock.now()) - gpu.power.energy_j(start) - gpu.idle_w * (gpu.clock.now() - start)


@pytest.mark.parametrize("inject", ["", "throttle", "clock_drop", "slow_start", "power_brake", "power_limit=60"])
def test_the_energy_of_the_work_is_the_same_however_slow_the_gpu(inject: str) -> None:
    assert true_energy_j(gpu_with(inject)) == pytest.approx(WINDOW_J, rel=1e-9)


def test_throttling_is_seen_everywhere() -> None:
    gpu = gpu_with("throttle")
    start = gpu.clock.now()
    taken = window(gpu)
    slowed = 0.2 * WINDOW_S * 1410 / 1140
    assert taken == pytest.approx(0.8 * WINDOW_S + slowed)
    middle, after = start + taken / 2, gpu.clock.now()
    assert gpu.throttle_reasons(middle) == 0x48
    assert gpu.throttle_reasons(start + 1) == 0
    assert gpu.throttle_reasons(after + 5) == 0x1  # idle, and nothing else
    assert gpu.throttle.seconds_with(0x40, after) == pytest.approx(slowed)
    assert (gpu.sm_clock_mhz.at(middle), gpu.sm_clock_mhz.at(after)) == (1140, 1410)
    assert gpu.power.power_w(middle) < gpu.power.power_w(start + 5)


def test_short_work_and_other_work_are_no_window() -> None:
    gpu = gpu_with("throttle,lost_gpu,wrong_output")
    gpu.work(0.99 * SHORTEST_WINDOW_S, 50, window=True)
    gpu.work(60, 2000)
    assert gpu.windows == 0
    assert gpu.throttle.seconds_with(0xFF, gpu.clock.now()) == 0


def test_clocks_that_drop_stay_down_without_a_reason() -> None:
    gpu = gpu_with("clock_drop")
    assert window(gpu) == pytest.approx(WINDOW_S / 2 * (1 + 1410 / 1140))
    assert gpu.sm_clock_mhz.at(gpu.clock.now()) == 1140
    assert gpu.throttle.seconds_with(0xFF, gpu.clock.now()) == 0
    assert window(gpu) == pytest.approx(WINDOW_S * 1410 / 1140)


def test_a_power_limit_slows_what_would_exceed_it() -> None:
    gpu = gpu_with("power_limit=150")
    allowed = 150 - gpu.idle_w
    assert gpu.work(10, 1600) == pytest.approx(1600 / allowed)
    during = gpu.clock.now() - 1
    assert gpu.power.power_w(during) == pytest.approx(150, abs=0.1)
    assert gpu.throttle_reasons(during) == 0x4
    assert gpu.sm_clock_mhz.at(during) == pytest.approx(1410 * allowed / 160, abs=1)
    assert gpu.throttle_reasons(gpu.clock.now() + 5) == 0x1
    assert gpu.sm_clock_mhz.at(gpu.clock.now()) == 1410
    assert gpu.work(10, 300) == pytest.approx(10)


def test_a_lost_gpu_is_lost_in_the_middle_of_the_window_and_stays_so() -> None:
    gpu = gpu_with("lost_gpu")
    start = gpu.clock.now()
    with pytest.raises(GpuLost, match="fallen off the bus"):
        window(gpu)
    assert gpu.clock.now() == pytest.approx(start + WINDOW_S / 2)
    assert gpu.lost
    with pytest.raises(GpuLost):
        gpu.work(0.1, 1.0)


def test_another_process_comes_computes_and_stays() -> None:
    gpu = gpu_with("other_process")
    idle = gpu.power.power_w(gpu.clock.now())
    window(gpu)
    gpu.clock.sleep(10)
    assert list(gpu.processes()) == [gpu.reported_pid, OTHER_PID]
    assert gpu.power.power_w(gpu.clock.now()) == pytest.approx(idle + 12, abs=0.01)
    assert gpu.throttle_reasons(gpu.clock.now()) == 0  # not idle


def test_a_passing_process_computes_in_the_middle_and_is_gone_afterwards() -> None:
    gpu = gpu_with("passing_process")
    idle, start = gpu.power.power_w(gpu.clock.now()), gpu.clock.now()
    for _ in range(2):
        window(gpu)
        assert list(gpu.processes()) == [gpu.reported_pid]
    assert [gpu.process_count.at(start + share * WINDOW_S) for share in (0.39, 0.41, 0.59, 0.61)] == [1, 2, 2, 1]
    assert gpu.power.power_w(start + 0.58 * WINDOW_S) == pytest.approx(idle + WINDOW_J / WINDOW_S + 12, abs=0.01)
    gpu.clock.sleep(10)
    assert gpu.power.power_w(gpu.clock.now()) == pytest.approx(idle, abs=0.01)


def test_a_slow_start_is_over_before_the_window_is_and_nothing_says_why() -> None:
    gpu = gpu_with("slow_start")
    start = gpu.clock.now()
    slowed = 0.4 * WINDOW_S * 1410 / 1140
    assert window(gpu) == pytest.approx(0.6 * WINDOW_S + slowed)
    assert gpu.sm_clock_mhz.at(start + 0.9 * slowed) == 1140
    assert gpu.sm_clock_mhz.at(start + 1.1 * slowed) == gpu.sm_clock_mhz.at(gpu.clock.now()) == 1410
    assert gpu.throttle.seconds_with(0xFF, gpu.clock.now()) == 0


def test_a_power_brake_shows_its_bits_and_no_violation_time() -> None:
    gpu = gpu_with("power_brake")
    start = gpu.clock.now()
    taken = window(gpu)
    assert gpu.throttle_reasons(start + taken / 2) == 0x88
    assert gpu.sm_clock_mhz.at(start + taken / 2) == 1340
    assert gpu.throttle_reasons(start + 1) == gpu.throttle_reasons(gpu.clock.now()) == 0
    assert gpu.sm_clock_mhz.at(gpu.clock.now()) == 1410


def test_a_counter_that_slips_still_rises_over_the_window() -> None:
    gpu, whole = gpu_with("counter_slips"), gpu_with("")
    for number in (1, 2):
        start = gpu.clock.now()
        before = gpu.counter.value_mj(start)
        for board in (gpu, whole):
            window(board)
        assert gpu.counter.value_mj(gpu.clock.now()) > before
        middle = start + WINDOW_S / 2
        assert gpu.counter.value_mj(middle) == gpu.counter.value_mj(middle - 1e-9) - 20_000
        now = gpu.clock.now()
        assert gpu.counter.value_mj(now) == whole.counter.value_mj(now) - number * 20_000


def test_an_xid_error_is_reported_in_the_middle_of_each_window_and_nothing_else_happens() -> None:
    gpu, plain = gpu_with("xid"), gpu_with("")
    start = gpu.clock.now()
    for board in (gpu, plain):
        window(board)
    assert gpu.xids == [(pytest.approx(start + WINDOW_S / 2), XID)]
    now = gpu.clock.now()
    assert (now, gpu.counter.value_mj(now)) == (plain.clock.now(), plain.counter.value_mj(now))
    window(gpu)
    assert len(gpu.xids) == 2


def test_a_slow_tail_leaves_the_energy_as_it_is() -> None:
    gpu = gpu_with("slow_tail=3")
    start = gpu.clock.now()
    window(gpu)
    end = gpu.clock.now()
    above_w = gpu.power.power_w(end) - gpu.idle_w
    assert above_w == pytest.approx(WINDOW_J / WINDOW_S, rel=0.01)
    assert gpu.power.power_w(end + 3) - gpu.idle_w == pytest.approx(above_w / math.e)
    found_j = gpu.power.energy_j(end + 60) - gpu.power.energy_j(start) - gpu.idle_w * (end + 60 - start)
    assert found_j == pytest.approx(WINDOW_J, rel=1e-6)


def test_neither_meter_shows_less_than_the_floor_of_the_sensor() -> None:
    gpu, plain = gpu_with("sensor_floor=60"), gpu_with("")
    for board in (gpu, plain):
        board.clock.sleep(10)
        window(board)
        board.clock.sleep(10)
    now = gpu.clock.now()
    assert gpu.power.power_w(now) == 60.0
    assert min(gpu.measured_power_w(now) for _ in range(200)) == 60.0
    assert gpu.power.power_w(now - 11) == pytest.approx(plain.power.power_w(now - 11)) == pytest.approx(73.6, abs=0.5)
    first = gpu.counter.value_mj(now - 9)
    assert gpu.counter.value_mj(now) - first == pytest.approx(9 * 60_000, abs=60 * 105)
    assert plain.counter.value_mj(now) - plain.counter.value_mj(now - 9) < 9 * 40_000


def test_a_floor_hides_the_drift_under_it_and_a_low_one_nothing() -> None:
    for inject, floor in (("sensor_floor=60,drift=random_walk", 60.0), ("sensor_floor=5,drift=random_walk", None)):
        gpu, later = gpu_with(inject), 300.0
        moments = [gpu.clock.now() + share * later for share in (0.0, 0.3, 1.0)]
        found = {gpu.power.power_w(moment) for moment in moments}
        assert found == {floor} if floor else len(found) == 3
    low, plain = gpu_with("sensor_floor=5"), gpu_with("")
    for board in (low, plain):
        window(board)
    now = low.clock.now()
    assert low.counter.value_mj(now) == plain.counter.value_mj(now)


def test_a_floor_sees_pauses_of_the_work_only_where_the_power_really_falls() -> None:
    """Short products with pauses: the lag makes one power of them, which is above the floor or under it as a whole."""
    gpu = gpu_with("sensor_floor=60")
    for _ in range(1000):
        gpu.work(0.005, 0.005 * 160)
        gpu.clock.sleep(0.02)
    now = gpu.clock.now()
    shown_w = gpu.power.energy_j(now) - gpu.power.energy_j(now - 1)
    assert shown_w == pytest.approx(gpu.idle_w + 0.2 * 160, abs=0.5)


def test_a_stuck_counter_counts_the_first_half_of_the_window() -> None:
    gpu, free = gpu_with("stuck_counter"), gpu_with("")
    for board in (gpu, free):
        window(board)
        board.clock.sleep(100)
    middle = gpu.clock.now() - 100 - WINDOW_S / 2
    assert gpu.counter.value_mj(gpu.clock.now()) == free.counter.value_mj(middle)


def test_a_counter_that_falls_ends_below_its_start() -> None:
    gpu = gpu_with("counter_backwards")
    for _ in range(2):
        before = gpu.counter.value_mj(gpu.clock.now())
        window(gpu)
        assert before - FALL_MJ < gpu.counter.value_mj(gpu.clock.now()) < before


def test_sensors() -> None:
    """The figures of the faulty host: 34.4 W read as 0.63 W, 160 to 210 W as about 1.4 W; the idle power is right."""
    shown = {}
    for watts in (34.4, 160.0, 210.0):
        for gpu in (SimulatedGpu(A100_FAULTY_SENSOR), gpu_with("faulty_sensor")):
            gpu.work(20, 20 * watts)
            shown[watts] = gpu.power.power_w(gpu.clock.now()) - gpu.idle_w
            assert gpu.work(20, 20 * watts) == 20
    assert shown[34.4] == pytest.approx(0.63, abs=0.01)
    assert shown[160.0] == pytest.approx(1.4, abs=0.02)
    assert shown[210.0] == pytest.approx(1.45, abs=0.05)

    half = gpu_with("sensor*0.5")
    half.work(20, 2000)
    assert half.power.power_w(half.clock.now()) == pytest.approx((half.idle_w + 100) / 2)


def test_meters_that_disagree_do_so_by_five_percent() -> None:
    gpu = gpu_with("meters_disagree")
    now = gpu.clock.now()
    shown = sum(gpu.measured_power_w(now) for _ in range(4000)) / 4000
    assert shown / gpu.power.power_w(now) == pytest.approx(1.05, abs=0.001)


def test_temperature_and_utilisation_follow_the_work() -> None:
    gpu = SimulatedGpu()
    start = gpu.clock.now()
    gpu.work(60, 60 * 160)
    now = gpu.clock.now()
    assert gpu.temperature.value(start) == 31
    assert 45 < gpu.temperature.value(now) < 31 + 0.12 * 160
    assert gpu.utilisation.value(now) == pytest.approx(100)
    assert gpu.utilisation.value(now + 2) == pytest.approx(0, abs=1e-3)


def test_a_long_life_keeps_a_short_history() -> None:
    gpu = SimulatedGpu()
    for _ in range(3 * MANY):
        gpu.work(0.2, 7.0)
        gpu.clock.sleep(0.2)
    assert gpu.power.changes < 2 * MANY + 2 * 600 / 0.4


def test_a_sampler_keeps_the_history_that_it_needs() -> None:
    gpu = SimulatedGpu()
    start = gpu.clock.now()
    gpu.kept_since_s.append(start)
    for _ in range(MANY):
        gpu.work(0.2, 7.0)
        gpu.clock.sleep(0.2)
    assert gpu.power.power_w(start + 0.1) > gpu.idle_w + 1


def test_the_drift_of_an_effect_wins_over_the_default() -> None:
    quiet, drifting = SimulatedGpu(drift="none"), SimulatedGpu(effects=Effects(drift="linear"), drift="none")
    later = quiet.clock.now() + 100
    assert quiet.power.power_w(later) == quiet.idle_w
    assert 1 <= abs(drifting.power.power_w(later) - drifting.idle_w) <= 3


def test_profiles_have_uuids_of_their_own() -> None:
    assert A100_HEALTHY.uuid != A100_FAULTY_SENSOR.uuid
    assert A100_HEALTHY.uuid.startswith("GPU-")
    assert dataclasses.replace(A100_HEALTHY, idle_w=50.0).uuid == A100_HEALTHY.uuid

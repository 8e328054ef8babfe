"""The instruments of a simulated GPU: the figures of the hosts come out, and what the sampler says fits the counter."""

from __future__ import annotations

import importlib
import os
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.figures import idle_power_w
from gpu_tasks.energy.instruments import Gpu, Instruments, LoadRun
from gpu_tasks.energy.nvml.events import xid_reason
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.simulation.gpu import XID, GpuLost, SimulatedGpu
from gpu_tasks.energy.simulation.instruments import simulated_instruments
from gpu_tasks.energy.simulation.profiles import A100_FAULTY_SENSOR, A100_HEALTHY, Profile
from gpu_tasks.energy.trace import Sample, integrate_j, largest_gap_s, read_samples
from gpu_tasks.records import DRIFTS, CounterReading, PowerTrace, parse_effects

REPLAYS = 1_200_000


@dataclass(frozen=True)
class Audited:
    """What the users' own protocol reads, one round of it; mJ a replay, the tail of the power counted as work."""

    by_counter_mj: float
    by_power_mj: float
    gross_mj: float
    wall_us: float
    idle_w: float


def audited(profile: Profile, seed: int, inject: str = "") -> Audited:
    """Settle 3 s, idle 10 s, active, settle 3 s, idle 10 s; the energy from the first replay to the end of settling."""
    gpu = SimulatedGpu(profile, parse_effects(inject), seed)
    instruments = simulated_instruments(gpu)
    clock, read = instruments.clock, instruments.gpu.read_counter
    sampler = instruments.sampler()
    sampler.start()
    clock.sleep(3)
    before = read(), clock.sleep(10), read()
    start = read()
    gpu.work(REPLAYS * gpu.replay_s, REPLAYS * gpu.replay_mj / 1000, window=True)
    end = read()
    clock.sleep(3)
    after = read(), clock.sleep(10), read()
    samples = read_samples(sampler.stop())
    idle_w = (idle_power_w(before[0], before[2]) + idle_power_w(after[0], after[2])) / 2
    integrated_mj = 1000 * integrate_j(samples, start.time_s, after[0].time_s)
    above_mj = 1000 * idle_w * (after[0].time_s - start.time_s)
    return Audited(
        by_counter_mj=(after[0].energy_mj - start.energy_mj - above_mj) / REPLAYS,
        by_power_mj=(integrated_mj - above_mj) / REPLAYS,
        gross_mj=(end.energy_mj - start.energy_mj) / REPLAYS,
        wall_us=1e6 * (end.time_s - start.time_s) / REPLAYS,
        idle_w=idle_w,
    )


def classic_mj(seed: int) -> float:
    """One round as the record's were: 5 s idle, 1,000,000 replays, 5 s idle, on its host."""
    gpu = SimulatedGpu(A100_FAULTY_SENSOR, seed=seed)
    instruments = simulated_instruments(gpu)
    clock, read = instruments.clock, instruments.gpu.read_counter
    before = read(), clock.sleep(5), read()
    start = read()
    gpu.work(1e6 * gpu.replay_s, 1e3 * gpu.replay_mj, window=True)
    end = read()
    after = read(), clock.sleep(5), read()
    idle_w = (idle_power_w(before[0], before[2]) + idle_power_w(after[0], after[2])) / 2
    return (end.energy_mj - start.energy_mj - 1000 * idle_w * (end.time_s - start.time_s)) / 1e6


def mean(found: list[Audited], field: str) -> float:
    return statistics.mean(getattr(one, field) for one in found)


def sd(found: list[Audited], field: str) -> float:
    return statistics.stdev(getattr(one, field) for one in found)


def test_the_healthy_host_shows_the_figures_of_host_1() -> None:
    found = [audited(A100_HEALTHY, seed) for seed in range(60)]
    assert mean(found, "by_counter_mj") == pytest.approx(0.586, abs=0.004)
    assert mean(found, "by_power_mj") == pytest.approx(0.586, abs=0.004)
    assert mean(found, "gross_mj") == pytest.approx(1.232, abs=0.01)
    assert mean(found, "wall_us") == pytest.approx(17.05, abs=0.03)
    assert mean(found, "idle_w") == pytest.approx(38.6, abs=0.1)
    assert 0.003 < sd(found, "by_power_mj") < 0.006
    disagreement = [one.by_counter_mj / one.by_power_mj - 1 for one in found]
    assert max(map(abs, disagreement)) < 0.03


def test_the_faulty_host_shows_the_figures_of_the_record() -> None:
    found = [audited(A100_FAULTY_SENSOR, seed) for seed in range(60)]
    for meter in ("by_counter_mj", "by_power_mj"):
        assert mean(found, meter) == pytest.approx(0.0104, abs=0.0008)
    assert mean(found, "gross_mj") == pytest.approx(0.669, abs=0.006)
    assert mean(found, "wall_us") == pytest.approx(16.39, abs=0.03)
    assert mean(found, "idle_w") == pytest.approx(40.1, abs=0.15)


def test_rounds_of_the_record_scatter_as_the_record_does() -> None:
    found = [classic_mj(seed) for seed in range(300)]
    assert statistics.mean(found) == pytest.approx(0.0104, abs=0.0015)
    assert statistics.stdev(found) == pytest.approx(0.0060, abs=0.001)


def reference(profile: Profile, inject: str = "") -> tuple[LoadRun, float, float]:
    """The reference load with its joules per 10^12 operations above idle, and 10^12 operations a second."""
    gpu = SimulatedGpu(profile, parse_effects(inject), seed=2)
    instruments = simulated_instruments(gpu)
    before = instruments.gpu.read_counter()
    gpu.clock.sleep(20)
    idle_w = idle_power_w(before, instruments.gpu.read_counter())
    run = instruments.known_load.run(5.0)
    seconds = run.end.time_s - run.start.time_s
    operations = 2 * run.size**3 * run.repeats / 1e12
    energy_j = (run.end.energy_mj - run.start.energy_mj) / 1000 - idle_w * seconds
    return run, energy_j / operations, operations / seconds


@pytest.mark.parametrize(
    ("profile", "inject", "joules"),
    [
        (A100_HEALTHY, "", 8.4),
        (A100_HEALTHY, "energy+50%, time+50%", 8.4),  # of the task alone
        (A100_HEALTHY, "faulty_sensor", 0.074),
        (A100_HEALTHY, "sensor*0.5", 4.2),
        (A100_FAULTY_SENSOR, "", 0.074),
    ],
)
def test_the_reference_load_tells_sensors_apart(profile: Profile, inject: str, joules: float) -> None:
    run, found, speed = reference(profile, inject)
    assert found == pytest.approx(joules, rel=0.01, abs=0.01)
    assert speed == pytest.approx(19.0, rel=0.002)
    assert run.end.time_s - run.start.time_s == pytest.approx(5.0, abs=0.02)
    assert run.largest_error < 1e-5


def samples_of(trace: PowerTrace) -> list[Sample]:
    assert trace.error is None
    assert trace.power_kind == "instantaneous"
    assert trace.period_s == 0.05
    return read_samples(trace)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.2, 20), st.floats(0, 250), st.floats(0, 5)), min_size=1, max_size=6),
    st.sampled_from(DRIFTS),
    st.integers(0, 10**6),
)
def test_sampled_power_integrates_to_what_the_counter_counts(
    schedule: list[tuple[float, float, float]], drift: str, seed: int
) -> None:
    gpu = SimulatedGpu(seed=seed, drift=drift)
    instruments = simulated_instruments(gpu)
    sampler = instruments.sampler()
    sampler.start()
    start = instruments.gpu.read_counter()
    for seconds, watts, pause_s in schedule:
        gpu.work(seconds, watts * seconds)
        gpu.clock.sleep(pause_s)
    end = instruments.gpu.read_counter()
    samples = samples_of(sampler.stop())
    seconds = end.time_s - start.time_s
    highest_w = 45 + max(watts for _, watts, _ in schedule)
    counted_j = (end.energy_mj - start.energy_mj) / 1000
    noise_j = 6 * 0.25 * (0.06 * (seconds + 1)) ** 0.5
    corners_j = 2 * len(schedule) * highest_w * 0.06**2 / 0.4  # where the power bends between two samples
    tolerance_j = 2 * 0.105 * highest_w + noise_j + corners_j
    assert integrate_j(samples, start.time_s, end.time_s) == pytest.approx(counted_j, abs=tolerance_j)


def test_samples_are_what_nvml_said_at_that_moment() -> None:
    gpu = SimulatedGpu(effects=parse_effects("throttle"), seed=4)
    instruments = simulated_instruments(gpu)
    sampler = instruments.sampler()
    sampler.start()
    start = gpu.clock.now()
    gpu.work(20, 3200, window=True)
    samples = samples_of(sampler.stop())
    gaps = [b.time_s - a.time_s for a, b in pairwise(samples)]
    assert statistics.mean(gaps) == pytest.approx(0.05, rel=0.01)
    assert max(gaps) < 0.06
    assert samples[0].time_s < start
    assert samples[-1].time_s == pytest.approx(gpu.clock.now(), abs=1e-6)
    for sample in samples[::37]:
        assert sample.counter_time_s is not None
        assert sample.counter_mj == gpu.counter.value_mj(sample.counter_time_s)
        assert sample.power_w == pytest.approx(gpu.power.power_w(sample.time_s), abs=1.5)
        assert sample.sm_clock_mhz == gpu.sm_clock_mhz.at(sample.time_s)
        assert sample.temperature_c == round(gpu.temperature.value(sample.time_s))
        assert sample.utilisation_percent == round(gpu.utilisation.value(sample.time_s))
        assert (sample.memory_clock_mhz, sample.performance_state) == (1215, 0)
        assert sample.throttle_reasons == gpu.throttle_reasons(sample.time_s)
    assert {sample.throttle_reasons for sample in samples} == {0, 0x1, 0x48}
    assert {sample.sm_clock_mhz for sample in samples} == {1410, 1140}


def test_a_gap_a_lost_gpu_and_no_counter_show_in_the_trace() -> None:
    def sampled(inject: str) -> tuple[PowerTrace, SimulatedGpu]:
        gpu = SimulatedGpu(effects=parse_effects(inject))
        sampler = simulated_instruments(gpu).sampler()
        sampler.start()
        try:
            gpu.work(20, 700, window=True)
        except GpuLost:
            gpu.clock.sleep(5)
        return sampler.stop(), gpu

    trace, gpu = sampled("")
    now = gpu.clock.now()
    assert largest_gap_s(samples_of(trace), now - 20, now) < 0.06
    trace, gpu = sampled("sampler_gap")
    assert 1.5 <= largest_gap_s(samples_of(trace), now - 20, now) < 1.61
    trace, gpu = sampled("no_counter")
    assert {(sample.counter_time_s, sample.counter_mj) for sample in samples_of(trace)} == {(None, None)}
    trace, gpu = sampled("lost_gpu")
    assert trace.error is not None
    assert trace.error.code == "nvml_gpu_is_lost"
    assert read_samples(trace)[-1].time_s == pytest.approx(gpu.lost_s, abs=1e-6)
    assert gpu.clock.now() > gpu.lost_s + 4


def test_processes_are_counted_about_twice_a_second() -> None:
    gpu = SimulatedGpu(effects=parse_effects("passing_process"), seed=4)
    sampler = simulated_instruments(gpu).sampler()
    sampler.start()
    gpu.work(20, 700, window=True)
    samples = samples_of(sampler.stop())
    looks = [sample for sample in samples if sample.processes is not None]
    assert looks[0] is samples[0]
    assert all(0.5 <= b.time_s - a.time_s < 0.56 for a, b in pairwise(looks))
    assert all(sample.processes == gpu.process_count.at(sample.time_s) for sample in looks)
    assert sum(sample.processes == 2 for sample in looks) == pytest.approx(4 / 0.53, abs=1)


def test_an_xid_error_is_the_error_of_the_trace_in_which_it_came() -> None:
    gpu = SimulatedGpu(effects=parse_effects("xid"), seed=4)
    sampler = simulated_instruments(gpu).sampler()
    for expected in ("xid", None, "xid"):
        sampler.start()
        if expected:
            gpu.work(20, 700, window=True)
        trace = sampler.stop()
        assert trace.error == (xid_reason(XID) if expected else None)
        assert read_samples(trace)[-1].time_s == pytest.approx(gpu.clock.now(), abs=1e-6), "sampling goes on"


def test_an_error_of_the_driver_comes_before_the_loss_that_follows_it() -> None:
    gpu = SimulatedGpu(effects=parse_effects("xid,lost_gpu"), seed=4)
    sampler = simulated_instruments(gpu).sampler()
    sampler.start()
    with pytest.raises(GpuLost):
        gpu.work(20, 700, window=True)
    assert sampler.stop().error == xid_reason(XID)


def test_meters_that_disagree() -> None:
    found = audited(A100_HEALTHY, 1, "meters_disagree")
    plain = audited(A100_HEALTHY, 1)
    assert found.by_counter_mj == plain.by_counter_mj
    assert found.by_power_mj > plain.by_power_mj + 0.05 * 1.2


def test_a_sampler_is_started_first_and_can_be_used_again() -> None:
    gpu = SimulatedGpu()
    sampler = simulated_instruments(gpu).sampler()
    with pytest.raises(RuntimeError, match="expected a sampler that was started"):
        sampler.stop()
    for _ in range(2):
        sampler.start()
        gpu.clock.sleep(1)
        assert len(samples_of(sampler.stop())) == pytest.approx(22, abs=1)
    assert gpu.kept_since_s == []


def test_a_whole_round_is_reproducible() -> None:
    assert audited(A100_HEALTHY, 5, "drift=curvature") == audited(A100_HEALTHY, 5, "drift=curvature")
    assert audited(A100_HEALTHY, 5) != audited(A100_HEALTHY, 6)


def test_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(seconds: float) -> None:
        raise AssertionError(f"somebody waits {seconds} s")

    monkeypatch.setattr(time, "sleep", refused)
    audited(A100_HEALTHY, 1)
    clock = SimulatedGpu().clock
    clock.sleep(86_400)
    clock.sleep(-5)
    assert clock.now() == 1000 + 86_400


def instruments_of(**settings: object) -> tuple[Instruments, SimulatedGpu]:
    gpu = SimulatedGpu()
    for name, value in settings.items():
        setattr(gpu, name, value)
    return simulated_instruments(gpu), gpu


@pytest.mark.parametrize("reported", [None, 1, 15008])
def test_held_memory_shows_in_the_process_list(reported: int | None) -> None:
    instruments, _ = instruments_of(**({} if reported is None else {"reported_pid": reported}))
    assert instruments.own_pid == os.getpid()
    (pid,) = instruments.gpu.process_memory()
    assert pid == (reported or os.getpid())
    used = instruments.gpu.process_memory()[pid]
    assert used is not None
    with instruments.hold_memory(128 * 1024**2):
        assert instruments.gpu.process_memory() == {pid: used + 128 * 1024**2}
    assert instruments.gpu.process_memory() == {pid: used}


def test_the_state_is_complete_and_healthy() -> None:
    instruments, gpu = instruments_of()
    state = instruments.gpu.state()
    assert state.unavailable == {}
    assert state.power_kind == "instantaneous"
    assert state.uuid == gpu.uuid
    assert state.power_limit_w == state.default_power_limit_w == 400.0
    assert (state.persistence_mode, state.mig_mode, state.row_remap_pending) == (True, False, False)
    assert state.uncorrected_ecc_errors == 0
    assert set(state.violation_ns.values()) == {0}


def test_another_process_can_import_a_gpu_in_real_time() -> None:
    module, _, name = "gpu_tasks.energy.simulation.instruments:real_time_nvml".partition(":")
    nvml = getattr(importlib.import_module(module), name)()
    nvml.nvmlInit()
    uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(0))
    gpu: Gpu = NvmlGpu(nvml, uuid=uuid, clock=MonotonicClock(), timeout_s=5.0)
    began = time.monotonic()
    readings: list[CounterReading] = [gpu.read_counter()]
    while readings[-1].energy_mj == readings[0].energy_mj:
        readings.append(gpu.read_counter())
    assert len(readings) > 1
    assert all(reading.read_duration_s >= 2.6e-3 for reading in readings)
    assert began <= readings[0].time_s <= readings[-1].time_s <= time.monotonic()

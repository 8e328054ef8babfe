"""What has to hold of energy on a real GPU: functions that raise, or say in a line what they found.

Each takes an open device that can replay, and its instruments; what cannot be judged on a GPU of an unknown model is
only said. They know no CUDA, so that a dry run can have them on the simulated device.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from itertools import pairwise

from gpu_tasks.devices.base import Device, ReplayTiming
from gpu_tasks.energy.bands import band_for
from gpu_tasks.energy.counter import idle_edges, next_edge, read_latency_s, tick_period_s
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.preflight import HELD_BYTES, own_process
from gpu_tasks.energy.protocols import Plan, follow
from gpu_tasks.energy.telemetry import LARGEST_ERROR, reference_load
from gpu_tasks.energy.trace import integrate_j, largest_gap_s, read_samples
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.energy.window_figures import edges_power_w

Check = Callable[[Device, Instruments], str]

TICK_S = (0.005, 0.25)
"""Update periods that were ever reported are 10 to 100 ms; what is read otherwise is not the counter."""

WORK_S = 3.0
SETTLE_S = 3.0
SAMPLED_S = 2.0
IDLE_S = 2.0
AFTERWARDS_S = 0.3
SAME_CLOCK_S = 0.001
METERS_AGREE_WITHIN = 0.05
CONTROL_REPLAYS = 2000
CONTROL_WITHIN = 0.08  # its calibration's 5 %, and what clocks wander between two measurements
SHORT_ROUND = Plan("audited", settle_s=1.5, idle_s=3.0, active_s=3.0, cut_s=1.0)


def the_counter_steps(_: Device, tools: Instruments) -> str:
    """The counter rises in steps of one period, and reading it takes less than that."""
    tick_s = tick_period_s(tools.gpu, tools.clock)
    latency_s = read_latency_s([tools.gpu.read_counter() for _ in range(20)])
    assert TICK_S[0] <= tick_s <= TICK_S[1], f"expected steps every {TICK_S} s, found {tick_s:.4f} s"
    assert latency_s < tick_s, f"expected readings shorter than {tick_s:.4f} s, found {latency_s:.4f} s"
    return f"steps every {tick_s * 1000:.1f} ms, a reading takes {latency_s * 1000:.2f} ms"


def nvml_shows_the_board_that_computes(device: Device, tools: Instruments) -> str:
    """UUID of the device and of what NVML reads are one; the bus id was compared when it was opened."""
    state, fingerprint = tools.gpu.state(), device.fingerprint()
    assert fingerprint.energy_counter, fingerprint.energy_counter_reason
    assert state.uuid == fingerprint.uuid, f"expected {fingerprint.uuid}, found {state.uuid}"
    missing = f"; not available: {', '.join(sorted(state.unavailable))}" if state.unavailable else ""
    return f"{state.uuid} at {state.pci_bus_id}, driver {state.driver}, power {state.power_kind}{missing}"


def memory_that_is_held_shows_whose_process_it_is(_: Device, tools: Instruments) -> str:
    """128 MiB come and go in NVML's books, under whatever number it lists this process."""
    known = tools.gpu.process_memory()
    found = own_process(tools.gpu, tools.hold_memory, tools.own_pid, tools.clock)
    listed = ", ".join(f"{pid}: {used if used is None else f'{used / 2**20:.0f} MiB'}" for pid, used in known.items())
    assert len(found) == 1, f"expected one process to hold {HELD_BYTES / 2**20:.0f} MiB, found {found} of {listed}"
    return f"pid {tools.own_pid} is {found.pop()} for NVML ({listed})"


def the_sampler_delivers(_: Device, tools: Instruments) -> str:
    """Power about every 50 ms from the process beside this one, on the same clock."""
    sampler = tools.sampler()
    begin = tools.clock.now()
    sampler.start()
    start = tools.clock.now()
    tools.clock.sleep(SAMPLED_S)
    end = tools.clock.now()
    trace = sampler.stop()
    assert trace.error is None, trace.error
    samples = read_samples(trace)
    now = tools.clock.now()
    assert begin - SAME_CLOCK_S < samples[0].time_s <= samples[-1].time_s < now + SAME_CLOCK_S, "another clock's times"
    assert all(sample.power_w is not None and sample.counter_mj is not None for sample in samples)
    gap_s = largest_gap_s(samples, start, end - 2 * trace.period_s)
    assert gap_s < 0.5, f"expected gaps under 0.5 s, found {gap_s:.3f} s"
    apart_s = statistics.median(after.time_s - before.time_s for before, after in pairwise(samples))
    return f"{len(samples)} samples of {trace.power_kind} power, {apart_s * 1000:.1f} ms apart, gap {gap_s:.3f} s"


def both_meters_agree(device: Device, tools: Instruments) -> str:
    """Counter and integrated power over 3 s of work, from step to step, within 5 %."""
    repeats = math.ceil(WORK_S / _replay_s(device, tools))
    sampler = tools.sampler()
    sampler.start()
    start = next_edge(tools.gpu, tools.clock)
    device.replay(repeats)
    end = next_edge(tools.gpu, tools.clock)
    tools.clock.sleep(AFTERWARDS_S)  # a sample after the end, to interpolate the power there
    samples = read_samples(sampler.stop())
    counter_j = (end.energy_mj - start.energy_mj) / 1000
    integrated_j = integrate_j(samples, edge_time_s(start), edge_time_s(end))
    found = f"counter {counter_j:.2f} J, samples {integrated_j:.2f} J ({integrated_j / counter_j - 1:+.2%})"
    assert abs(integrated_j / counter_j - 1) <= METERS_AGREE_WITHIN, found
    return found


def the_reference_load_costs_what_it_should(device: Device, tools: Instruments) -> str:
    """Joules an operation of the matrix product, by a band where the model has one; its result is right anyway."""
    tools.clock.sleep(SETTLE_S)
    idle_w = edges_power_w(idle_edges(tools.gpu, tools.clock, IDLE_S, IDLE_S))
    load = reference_load(tools.known_load.run(WORK_S), idle_w)
    joules, speed = load.joules_per_1e12_operations, load.tera_operations_per_s
    found = (
        f"{joules:.2f} J per 10^12 operations, {speed:.1f} TFLOP/s, {load.above_idle_w:.0f} W above "
        f"{idle_w:.1f} W idle, largest error {load.largest_error:.1e}"
    )
    assert load.largest_error <= LARGEST_ERROR, found
    assert load.duration_s > WORK_S / 2, f"expected about {WORK_S} s of products, found {load.duration_s:.2f} s"
    model = device.fingerprint().name
    band = band_for(model, {})
    if band is None:
        return f"{found}; no band for {model}, not judged"
    low, high = band.joules
    assert low <= joules <= high, f"{found}; expected {low:g} to {high:g} J on {model}"
    return f"{found}; within {low:g} to {high:g} J"


def the_control_lasts_as_long_as_the_task(device: Device, _: Instruments) -> str:
    """Controls of the task's length and of ten times that take it, by events, each with its own graph."""
    task_ms = _device_ms(device.replay, CONTROL_REPLAYS)
    lines = []
    for times in (1, 10):
        wished_ms = times * task_ms
        found_ms = _device_ms(device.control(wished_ms / 1000), CONTROL_REPLAYS)
        lines.append(f"{found_ms * 1000:.2f} us for {wished_ms * 1000:.2f} us")
        assert abs(found_ms / wished_ms - 1) <= CONTROL_WITHIN, lines[-1]
    return "; ".join(lines)


def a_short_round_has_sensible_figures(device: Device, tools: Instruments) -> str:
    """Settle, idle, 3 s of replays, settle, idle: what a replay costs lies between nothing and all that flowed."""
    repeats = math.ceil(SHORT_ROUND.active_s / _replay_s(device, tools))
    tick_s = tick_period_s(tools.gpu, tools.clock)
    rng = random.Random(0)
    found = follow(
        SHORT_ROUND, device.replay, repeats, tick_period_s=tick_s, instruments=tools, rng=rng, say=lambda *_: None
    )
    edges = found.aligned
    idle_w = [edges_power_w(edges.idle_before), edges_power_w(edges.idle_after)]
    gross_mj = (found.end.energy_mj - found.start.energy_mj) / repeats
    seconds = edge_time_s(edges.active_end) - edge_time_s(edges.active_start)
    energy_mj = edges.active_end.energy_mj - edges.active_start.energy_mj
    adjusted_mj = (energy_mj - 1000 * statistics.mean(idle_w) * seconds) / repeats
    shown = (
        f"{repeats} replays: adjusted {adjusted_mj:.4f} mJ, gross {gross_mj:.4f} mJ, "
        f"idle {idle_w[0]:.2f} W before and {idle_w[1]:.2f} W after"
    )
    assert min(idle_w) > 0, shown
    assert max(idle_w) < 1.5 * min(idle_w), shown
    assert -0.05 * gross_mj <= adjusted_mj <= gross_mj, shown
    return shown


def _device_ms(replay: Callable[[int], ReplayTiming], repeats: int) -> float:
    replay(repeats)
    timing = replay(repeats)
    assert timing.device_ms_per_replay is not None, timing.reason
    return timing.device_ms_per_replay


def _replay_s(device: Device, tools: Instruments) -> float:
    """Seconds of the clock that a replay takes in a long row of them."""
    device.replay(1000)
    start = tools.clock.now()
    device.replay(5000)
    return (tools.clock.now() - start) / 5000


ENERGY_CHECKS: tuple[Check, ...] = (
    nvml_shows_the_board_that_computes,
    the_counter_steps,
    memory_that_is_held_shows_whose_process_it_is,
    the_sampler_delivers,
    both_meters_agree,
    the_reference_load_costs_what_it_should,
    the_control_lasts_as_long_as_the_task,
    a_short_round_has_sensible_figures,
)

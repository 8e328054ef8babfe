"""One round with energy: looked at before, warmed up, measured by its protocol, and looked at after."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from gpu_tasks.devices.base import Device
from gpu_tasks.energy import protocols
from gpu_tasks.energy.counter import read_latency_s, tick_period_s
from gpu_tasks.energy.derive import span_s, with_figures
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE, CONTROL
from gpu_tasks.energy.invalidation import invalid_reasons, window_reasons
from gpu_tasks.energy.preflight import refuse_unfit
from gpu_tasks.energy.protocols import FIRST_REPLAYS, PLANS, Replay, Say
from gpu_tasks.energy.soundness import unsound_reasons
from gpu_tasks.energy.trace import read_samples
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.energy.windows import LONGEST_WORK_S, check_repeats
from gpu_tasks.records import (
    CounterEdge,
    CounterReading,
    EnergyMeasurement,
    GpuState,
    Outcome,
    PowerTrace,
    Reason,
    RoundRecord,
    ShamWindow,
    TelemetryRecord,
    WindowEdge,
    utc_now,
)

LATENCY_READS = 20
SETTLE_S = 3.0
SHAM_ROUNDS = 2
"""Rounds that have a sham window after them: one would do, and one more is there should a round be invalid."""


@dataclass(frozen=True)
class Limits:
    """The only power limit in W to measure under, and the lowest SM clock in MHz to work at; None: any."""

    power_w: float | None
    sm_clock_mhz: float | None


@dataclass(frozen=True)
class Bench:
    """What a round is measured with: the device (and a second one with the baseline's kernels), its instruments.

    ``telemetry`` is what was learnt of the counter before the rounds; without it the tick is measured here, and
    nothing is known of how the idle power wanders.
    """

    device: Device
    baseline: Device | None
    instruments: Instruments
    telemetry: TelemetryRecord | None
    limits: Limits
    say: Say


def measure_energy(
    bench: Bench, blank: RoundRecord, blocks: int, output_after: Callable[[], Reason | None]
) -> RoundRecord:
    """``blank`` filled in. A round that cannot be used is returned with its reason; one that failed raises.

    ``output_after`` looks at the device's output once the work is done.
    """
    instruments = bench.instruments
    gpu, clock = instruments.gpu, instruments.clock
    refuse_unfit(instruments, _expected_power_limit_w(bench))
    replay_s = _warm_up(bench, PLANS[blank.protocol].first_replays if blank.protocol in PLANS else FIRST_REPLAYS)
    for device in (bench.device, bench.baseline):
        if device is not None:
            device.poison_scratch()  # so that the output after the work can only be the work's
    latency = read_latency_s([gpu.read_counter() for _ in range(LATENCY_READS)])
    tick = (bench.telemetry and bench.telemetry.tick_period_s) or tick_period_s(gpu, clock)
    seed = random.SystemRandom().getrandbits(31) if bench.device.kind == "cuda" else blank.round
    sampler = instruments.sampler()
    sampler.start()
    try:
        before = gpu.state()
        measured = _Measured(bench, blank, replay_s, tick, random.Random(seed))  # noqa: S311 - no secret
        record = measured.interleaved(blocks) if blank.protocol == "interleaved" else measured.windows()
        after = gpu.state()
    finally:
        trace = sampler.stop()
    energy = dataclasses.replace(
        measured.energy,
        tick_period_s=tick,
        read_latency_s=latency,
        wander=bench.telemetry.wander if bench.telemetry else None,
        seed=seed,
        state_before=before,
        state_after=after,
        trace=trace,
    )
    record = with_figures(dataclasses.replace(record, created_at=utc_now(), energy=energy))
    return _judged(record, measured.readings, output_after(), bench.limits.sm_clock_mhz)


class _Measured:
    """The readings of one round by one protocol, as parts of its record."""

    def __init__(self, bench: Bench, blank: RoundRecord, replay_s: float, tick_s: float, rng: random.Random) -> None:
        self._bench, self._blank, self._replay_s, self._tick_s, self._rng = bench, blank, replay_s, tick_s, rng
        self.energy = _no_readings(bench.instruments.gpu.state())
        self.readings: list[CounterReading] = []

    def windows(self) -> RoundRecord:
        """A round of the classic or the audited plan; the first ones have a sham window after them."""
        bench, plan = self._bench, PLANS[self._blank.protocol]
        # A trial's repeats follow from how long a task took, and the record says so where nobody asked for others.
        calibration_ms = 1000 * self._replay_s if plan.settled and not self._blank.repeats else None
        repeats = self._blank.repeats or plan.repeats(self._replay_s)
        check_repeats(repeats, self._replay_s, LONGEST_WORK_S)
        plan = dataclasses.replace(plan, active_s=repeats * self._replay_s)
        found = protocols.follow(
            plan,
            bench.device.replay,
            repeats,
            tick_period_s=self._tick_s,
            instruments=bench.instruments,
            rng=self._rng,
            say=bench.say,
        )
        idle_after = found.audited.idle_after if found.audited else found.idle_after
        sham = None
        if self._blank.round < SHAM_ROUNDS:
            before, start, end, after = protocols.sham_window(plan, idle_after, bench.instruments, bench.say)
            sham = ShamWindow(start, end, before, after, repeats, 0.0)
        self.energy = dataclasses.replace(
            self.energy, settle_s=found.settle_s, aligned=found.aligned, audited=found.audited, sham=sham
        )
        self.readings = [found.idle_before.start, found.start, found.end, idle_after.start, idle_after.end]
        return dataclasses.replace(
            self._blank,
            repeats=repeats,
            calibration_ms=calibration_ms,
            cuda_ms=found.timing.device_ms_per_replay,
            cuda_ms_reason=found.timing.reason,
            measurement_start=_edge(found.start),
            measurement_end=_edge(found.end),
            idle_before=found.idle_before,
            idle_after=found.idle_after,
        )

    def interleaved(self, blocks: int) -> RoundRecord:
        """Blocks of idle, control and candidate, and of the baseline where there is one."""
        bench = self._bench
        control = bench.device.control(self._replay_s)
        replays: dict[str, Replay] = {CONTROL: control, CANDIDATE: bench.device.replay}
        if bench.baseline is not None:
            replays[BASELINE] = bench.baseline.replay
        clock = bench.instruments.clock
        arms = {}
        for arm, replay in replays.items():
            began = clock.now()
            replay(repeats := math.ceil(protocols.SEGMENT_ACTIVE_S / self._replay_s / 4))
            arms[arm] = (replay, (clock.now() - began) / repeats)
        clock.sleep(protocols.SEGMENT_SETTLE_S)
        segments = protocols.interleave(arms, blocks, bench.instruments, self._rng, bench.say)
        self.energy = dataclasses.replace(self.energy, settle_s=protocols.SEGMENT_SETTLE_S, segments=segments)
        repeats = sum(segment.repeats for segment in segments if segment.arm == CANDIDATE)
        no_events = None if all(s.device_ms is not None for s in segments if s.repeats) else _NO_EVENTS
        return dataclasses.replace(self._blank, repeats=repeats, cuda_ms_reason=no_events)


_NO_EVENTS = Reason("no_device_events", "a segment has no time by the device's own events")


def _expected_power_limit_w(bench: Bench) -> float | None:
    """The limit that was asked for, else the one that the known load ran under: figures of a run are of one limit."""
    if bench.limits.power_w is not None:
        return bench.limits.power_w
    state = bench.telemetry.state_before if bench.telemetry else None
    return state.power_limit_w if state else None


def _warm_up(bench: Bench, first_replays: int) -> float:
    """Seconds a replay takes once the GPU is warm."""
    bench.say("warm up", protocols.WARM_UP_S)
    clock = bench.instruments.clock
    began = clock.now()
    bench.device.replay(first_replays)
    replay_s = protocols.warm_up(bench.device.replay, (clock.now() - began) / first_replays, bench.instruments)
    bench.say("settle", SETTLE_S)
    clock.sleep(SETTLE_S)  # what the warm-up leaves behind is no idle power
    return replay_s


def _judged(
    record: RoundRecord, readings: list[CounterReading], wrong_output: Reason | None, clock_floor_mhz: float | None
) -> RoundRecord:
    """``record``, valid or with the reasons why it is not."""
    energy = record.energy
    if energy is None or energy.trace is None:
        raise ValueError("a round with energy has readings and samples")
    start_s, end_s = span_s(energy)
    samples = [s for s in read_samples(energy.trace) if start_s <= s.time_s <= end_s]
    reasons = invalid_reasons(
        energy.state_before,
        energy.state_after,
        samples,
        readings,
        active=_active(record, energy),
        clock_floor_mhz=clock_floor_mhz,
        tick_period_s=energy.tick_period_s,
    )
    reasons += _window_reasons(record, energy)
    reasons += unsound_reasons(record, energy, samples)
    if energy.trace.error is not None:
        reasons.append(energy.trace.error)
    if wrong_output is not None:
        reasons.insert(0, wrong_output)
    if not reasons:
        return dataclasses.replace(record, valid=True)
    reason = Reason(reasons[0].code, "; ".join(reason.message for reason in reasons))
    return dataclasses.replace(record, valid=False, outcome=Outcome.INVALID_MEASUREMENT, reason=reason)


def _active(record: RoundRecord, energy: EnergyMeasurement) -> list[tuple[float, float]]:
    """The round's windows of work, start and end in monotonic s."""
    if energy.segments:
        begun = [(segment.start.after_s, segment) for segment in energy.segments if segment.repeats]
        return [(start_s, start_s + segment.active_s) for start_s, segment in begun]
    start, end = record.measurement_start, record.measurement_end
    return [(start.time_s, end.time_s)] if start and end else []


def _window_reasons(record: RoundRecord, energy: EnergyMeasurement) -> list[Reason]:
    """What the work's own readings cannot be, however short it was: among all readings, near ones are not judged."""
    limit_w, tick_s = energy.state_after.power_limit_w, energy.tick_period_s
    windows = [(f"block {s.block}, {s.arm}", s.start, s.end) for s in energy.segments]
    if energy.segments:
        plain = [(name, _at(start), _at(end)) for name, start, end in windows]
    else:
        start, end = record.measurement_start, record.measurement_end
        if start is None or end is None or start.energy_mj is None or end.energy_mj is None:
            raise ValueError("a round of windows has readings around its work")
        plain = [("replays", _plain(start), _plain(end))]
    return [reason for name, first, last in plain for reason in window_reasons(name, first, last, limit_w, tick_s)]


def _at(edge: CounterEdge) -> CounterReading:
    return CounterReading(edge.energy_mj, edge_time_s(edge), edge.after_s - edge.before_s)


def _plain(edge: WindowEdge) -> CounterReading:
    return CounterReading(edge.energy_mj or 0, edge.time_s, edge.read_duration_s)


def _no_readings(state: GpuState) -> EnergyMeasurement:
    nothing: PowerTrace | None = None
    return EnergyMeasurement(
        tick_period_s=0.0,
        read_latency_s=0.0,
        wander=None,
        settle_s=0.0,
        seed=0,
        aligned=None,
        audited=None,
        segments=[],
        sham=None,
        figures=[],
        meters=None,
        state_before=state,
        state_after=state,
        trace=nothing,
    )


def _edge(reading: CounterReading) -> WindowEdge:
    return WindowEdge(reading.energy_mj, reading.time_s, reading.read_duration_s)

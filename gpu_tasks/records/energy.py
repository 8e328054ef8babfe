"""Energy in records: raw readings, the figures derived from them with their uncertainty, telemetry and its gates.

Everything derived here can be recomputed from the readings beside it (``gpu_tasks.energy.figures``). Times are
monotonic seconds of the process that measured, energies mJ since the driver was loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.reason import Reason


@dataclass(frozen=True)
class CounterReading:
    """One reading of the energy counter: mJ since driver load, monotonic seconds at the middle of the call."""

    energy_mj: int
    time_s: float
    read_duration_s: float


@dataclass(frozen=True)
class CounterEdge:
    """A step of the counter: its value after the step, and the two reads between which it came.

    ``before_s`` is the middle of the last read with the old value, ``after_s`` of the first with the new one.
    """

    energy_mj: int
    before_s: float
    after_s: float


@dataclass(frozen=True)
class WindowEdge:
    """One edge of the active window; ``energy_mj`` is null on a device without an energy counter."""

    energy_mj: int | None
    time_s: float
    read_duration_s: float


@dataclass(frozen=True)
class IdleWindow:
    """An idle window: the counter at both ends and the mean power between them."""

    start: CounterReading
    end: CounterReading
    power_w: float


@dataclass(frozen=True)
class AlignedReadings:
    """Counter steps that a round waited for: idle windows from step to step, cut into segments at steps within.

    ``idle_before`` and ``idle_after`` hold two edges or more, in order of time; ``active_start`` is the last edge
    before the first replay, ``tail_start`` the first one after the last replay, and ``active_end`` the first one after
    the power has settled: what lies between the two counts as work done and time idle.
    """

    idle_before: list[CounterEdge]
    active_start: CounterEdge
    tail_start: CounterEdge
    active_end: CounterEdge
    idle_after: list[CounterEdge]


@dataclass(frozen=True)
class AuditedReadings:
    """Idle windows of the audited protocol: long, and after the power has settled."""

    idle_before: IdleWindow
    idle_after: IdleWindow


@dataclass(frozen=True)
class Segment:
    """One segment of an interleaved block, from counter step to counter step, with its work in between.

    ``arm`` is idle, control, baseline or candidate. ``repeats`` is 0 for idle; ``active_s`` is the host's time for all
    of them, ``device_ms`` the device's own for one.
    """

    block: int
    arm: str
    repeats: int
    start: CounterEdge
    end: CounterEdge
    active_s: float
    device_ms: float | None


@dataclass(frozen=True)
class IdleWander:
    """How idle power moves by itself, from one long idle stretch cut at counter steps into ``segments``.

    ``walk_w_per_sqrt_s`` is the random walk that explains the differences between neighbours, reading errors and a
    steady slope taken off; ``degrees_of_freedom`` those of its square. ``slope_w_per_s`` is that slope.
    """

    duration_s: float
    segments: int
    power_w: float
    slope_w_per_s: float
    walk_w_per_sqrt_s: float
    degrees_of_freedom: float


@dataclass(frozen=True)
class Uncertainty:
    """Standard uncertainties of one energy figure, by where they come from, mJ a replay.

    ``tick_mj`` the counter's update period, ``timing_mj`` the moment of a reading within its call, ``quantisation_mj``
    the counter's unit, ``drift_mj`` idle power that wanders between the windows; ``combined_mj`` is all of them.
    ``bias_mj`` is what the protocol is expected to read too much (negative: too little). ``low_mj`` to ``high_mj`` is
    the 95 % interval, the bias taken off; ``degrees_of_freedom`` is what its quantile was taken with (null: normal).
    """

    tick_mj: float
    timing_mj: float
    quantisation_mj: float
    drift_mj: float
    combined_mj: float
    bias_mj: float
    degrees_of_freedom: float | None
    low_mj: float
    high_mj: float


@dataclass(frozen=True)
class EnergyFigure:
    """Energy of one replay by one way of measuring it.

    ``figure`` is classic, aligned, audited or interleaved. ``subject`` is what it is of: candidate, baseline, control
    (each above idle), or a difference of two of them, such as "candidate - baseline".
    """

    figure: str
    subject: str
    adjusted_mj: float
    gross_mj: float | None
    idle_w: float | None
    uncertainty: Uncertainty


@dataclass(frozen=True)
class GpuProcess:
    """A process with a context on the GPU, as NVML reports it (in a container perhaps under another number)."""

    pid: int
    used_memory_bytes: int | None


@dataclass(frozen=True)
class GpuState:
    """What NVML says of the GPU at one moment; null, with the reason in ``unavailable``, where it says nothing.

    ``power_kind`` is instantaneous or average (of one second): they must never be mixed. ``throttle_reasons`` is
    NVML's bit mask; ``violation_ns`` the time in ns spent under each limit since the driver was loaded.
    """

    time_s: float
    uuid: str
    pci_bus_id: str
    driver: str
    power_w: float | None
    power_kind: str | None
    power_limit_w: float | None
    default_power_limit_w: float | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    performance_state: int | None
    temperature_c: int | None
    utilisation_percent: int | None
    throttle_reasons: int | None
    violation_ns: dict[str, int]
    processes: list[GpuProcess] | None
    persistence_mode: bool | None
    mig_mode: bool | None
    uncorrected_ecc_errors: int | None
    row_remap_pending: bool | None
    unavailable: dict[str, str]


@dataclass(frozen=True)
class PowerTrace:
    """Samples of a separate process all through a round, as CSV text with a header line.

    Columns: time_s, power_w, counter_time_s, counter_mj, sm_clock_mhz, memory_clock_mhz, temperature_c,
    utilisation_percent, performance_state, throttle_reasons, processes; empty where a value could not be had, and the
    last one, how many processes have a compute context, between two looks half a second apart. ``error`` says why
    sampling ended early or could not be relied upon, or which Xid error the driver reported meanwhile (code ``xid``).
    """

    period_s: float
    power_kind: str | None
    csv: str
    error: Reason | None


@dataclass(frozen=True)
class MeterComparison:
    """Both meters over the active window: the counter, and trapezoids over the sampled power; energies in J.

    ``power_integral_mj`` is the adjusted energy a replay by the sampled power alone, with the same idle windows.
    """

    counter_j: float
    integrated_j: float
    relative_difference: float
    power_integral_mj: float | None


@dataclass(frozen=True)
class ShamWindow:
    """A window without work between two idle windows: what the protocol reads where there is nothing to read.

    ``adjusted_mj`` is over as many replays as the round's active window had.
    """

    start: CounterReading
    end: CounterReading
    idle_before: IdleWindow
    idle_after: IdleWindow
    repeats: int
    adjusted_mj: float


@dataclass(frozen=True)
class EnergyMeasurement:
    """Everything of a round's energy beside the classic windows, which stay where they were in the round itself.

    ``wander`` is how much the idle power wanders here, as it was measured before the rounds (null: not measured).
    ``settle_s`` is how long the power was left to settle; ``seed`` chose the delays and orders that are random.
    """

    tick_period_s: float
    read_latency_s: float
    wander: IdleWander | None
    settle_s: float
    seed: int
    aligned: AlignedReadings | None
    audited: AuditedReadings | None
    segments: list[Segment]
    sham: ShamWindow | None
    figures: list[EnergyFigure]
    meters: MeterComparison | None
    state_before: GpuState
    state_after: GpuState
    trace: PowerTrace | None


@dataclass(frozen=True)
class ReferenceLoad:
    """A dense float32 matrix product of known size, TF32 off: what its energy an operation says of the sensor.

    ``size`` n of the n x n x n product; ``operations`` over all ``repeats``; ``largest_error`` of its result, relative
    to the float64 value on checked elements. The low-duty figure is of the same products with pauses between them: a
    sensor that is wrong near idle shows there, and not at full load.
    """

    size: int
    repeats: int
    operations: float
    duration_s: float
    energy_j: float
    idle_w: float
    above_idle_w: float
    joules_per_1e12_operations: float
    tera_operations_per_s: float
    largest_error: float
    result_verified: bool
    low_duty_joules_per_1e12_operations: float | None = None


@dataclass(frozen=True)
class GateResult:
    """One telemetry gate: passed, failed, or (null) unchecked, which does not pass.

    ``where`` is before, after, run, or round-NN. ``low`` and ``high`` bound what passes.
    """

    gate: str
    where: str
    passed: bool | None
    value: float | None
    unit: str
    low: float | None
    high: float | None
    reason: Reason | None


@dataclass(frozen=True)
class TelemetryRecord:
    """The sensor before or after the rounds (``when``): the reference load, the counter's properties, the gates."""

    kind: str  # "telemetry"
    created_at: str
    outcome: Outcome
    reason: Reason | None
    workload: str
    device_uuid: str | None
    when: str
    tick_period_s: float | None
    read_latency_s: float | None
    wander: IdleWander | None
    idle_edges: list[CounterEdge]
    reference_load: ReferenceLoad | None
    gates: list[GateResult]
    state_before: GpuState | None
    state_after: GpuState | None
    trace: PowerTrace | None
    energy_reason: Reason | None


@dataclass(frozen=True)
class FigureSummary:
    """One energy figure over the valid rounds of a run, mJ a replay.

    ``detectable_mj``: the smallest difference of means to another run of as many rounds that a t test finds with a
    probability of 80 % at a level of 5 %; a night's check takes it as its threshold on medians, and so finds a change
    of just that size about every second time. ``per_reference_load`` is the median in units of 10^9 operations of the
    reference load: what may be compared across boards.
    """

    figure: str
    subject: str
    rounds: int
    median_mj: float
    min_mj: float
    max_mj: float
    sample_sd_mj: float | None
    detectable_mj: float | None
    per_reference_load: float | None

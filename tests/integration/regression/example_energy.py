"""Run records with energy made up for tests: readings, figures, traces, telemetry, gates; any of it changed at will."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpu_tasks.records import (
    GATES,
    AlignedReadings,
    AuditedReadings,
    CounterEdge,
    CounterReading,
    EnergyFigure,
    EnergyMeasurement,
    FigureSummary,
    GateResult,
    GpuProcess,
    GpuState,
    IdleWander,
    IdleWindow,
    MeterComparison,
    Outcome,
    PowerTrace,
    Reason,
    ReferenceLoad,
    RoundRecord,
    RunRecord,
    Segment,
    ShamWindow,
    TelemetryRecord,
    Uncertainty,
)
from tests.integration.regression.example_records import GPU, NOW, measured, run_record

SIMULATED_GPU = replace(GPU, kind="simulated", name="Simulated GPU", uuid="GPU-simulated")
ENERGIES = (0.59, 0.595, 0.6, 0.6, 0.601, 0.605, 0.61)
READING = CounterReading(170_000_000_000, 4_183_217.25, 0.0026)
IDLE = IdleWindow(READING, CounterReading(170_000_200_000, 4_183_222.25, 0.003), 40.0)
EDGE = CounterEdge(170_000_000_000, 4_183_217.25, 4_183_217.2512)
STATE = GpuState(
    time_s=4_183_217.0,
    uuid="GPU-1",
    pci_bus_id="00000000:07:00.0",
    driver="570.1",
    power_w=40.0,
    power_kind="instantaneous",
    power_limit_w=400.0,
    default_power_limit_w=400.0,
    sm_clock_mhz=1410,
    memory_clock_mhz=1215,
    performance_state=0,
    temperature_c=32,
    utilisation_percent=0,
    throttle_reasons=1,
    violation_ns={"power": 0, "thermal": 2**53 + 1},
    processes=[GpuProcess(1285, 512 << 20)],
    persistence_mode=True,
    mig_mode=None,
    uncorrected_ecc_errors=0,
    row_remap_pending=False,
    unavailable={"mig_mode": "not supported"},
)
TRACE = PowerTrace(0.05, "instantaneous", "time_s,power_w\n4183217.25,40.0\n4183217.30,\n", None)
WANDER = IdleWander(60.0, 30, 40.0, 0.001, 0.02, 28.0)
LOAD = ReferenceLoad(4096, 90, 1.24e13, 0.65, 103.0, 40.0, 118.5, 8.4, 19.0, 1e-6, True)


INVALID = {"valid": False, "outcome": Outcome.INVALID_MEASUREMENT, "reason": Reason("throttled", "too hot")}
"""What makes a round an invalid one."""


def figure(name: str, adjusted_mj: float, subject: str = "candidate") -> EnergyFigure:
    uncertainty = Uncertainty(
        0.002, 0.0003, 0.00001, 0.0001, 0.00202, 0.001, None if name == "classic" else 12.0, adjusted_mj - 0.005,
        adjusted_mj + 0.003,
    )  # fmt: skip
    return EnergyFigure(name, subject, adjusted_mj, adjusted_mj + 0.65, 40.1, uncertainty)


def energy(values: Mapping[str, float], **changes: Any) -> EnergyMeasurement:
    measurement = EnergyMeasurement(
        tick_period_s=0.1,
        read_latency_s=0.0027,
        wander=WANDER,
        settle_s=3.0,
        seed=7,
        aligned=AlignedReadings([EDGE, EDGE], EDGE, EDGE, EDGE, [EDGE, EDGE]),
        audited=AuditedReadings(IDLE, IDLE),
        segments=[Segment(0, "idle", 0, EDGE, EDGE, 2.0, None)],
        sham=None,
        figures=[figure(name, adjusted_mj) for name, adjusted_mj in values.items()],
        meters=MeterComparison(1000.0, 1002.0, 0.002, 0.601),
        state_before=STATE,
        state_after=replace(STATE, time_s=STATE.time_s + 50),
        trace=TRACE,
    )
    return replace(measurement, **changes)


def sham(adjusted_mj: float = 0.001) -> ShamWindow:
    return ShamWindow(READING, READING, IDLE, IDLE, 1000, adjusted_mj)


def energy_round(number: int, adjusted_mj: float = 0.6, **changes: Any) -> RoundRecord:
    """An audited round whose aligned figure is a little smaller and whose classic one is a little larger."""
    figures = {"classic": adjusted_mj + 0.02, "aligned": adjusted_mj - 0.01, "audited": adjusted_mj}
    details = energy(figures, sham=sham() if number == 0 else None)
    return replace(measured(number, adjusted_mj, arm="candidate", protocol="audited", energy=details), **changes)


def gate(name: str, where: str = "run", passed: bool | None = True) -> GateResult:
    reason = None if passed else Reason(f"{name}_off", f"{name} is off")
    return GateResult(name, where, passed, 0.01, "ratio", 0.0, 0.05, reason)


def telemetry(when: str, joules: float = 8.4, **changes: Any) -> TelemetryRecord:
    record = TelemetryRecord(
        kind="telemetry",
        created_at=NOW,
        outcome=Outcome.OK,
        reason=None,
        workload="qda",
        device_uuid="GPU-1",
        when=when,
        tick_period_s=0.1,
        read_latency_s=0.0027,
        wander=WANDER if when == "before" else None,
        idle_edges=[EDGE],
        reference_load=replace(LOAD, joules_per_1e12_operations=joules),
        gates=[gate("reference_load", when)],
        state_before=STATE,
        state_after=STATE,
        trace=TRACE,
        energy_reason=None,
    )
    return replace(record, **changes)


def summaries(rounds: list[RoundRecord]) -> list[FigureSummary]:
    by_key: dict[tuple[str, str], list[float]] = {}
    for record in rounds:
        for found in record.energy.figures if record.valid and record.energy else []:
            by_key.setdefault((found.figure, found.subject), []).append(found.adjusted_mj)
    return [
        FigureSummary(*key, len(mj), middle, min(mj), max(mj), _sd(mj), _sd(mj) and 0.01, middle / 8.4)
        for key, mj in by_key.items()
        for middle in [statistics.median(mj)]
    ]


def _sd(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def energy_run(
    name: str = "energy__1", energies: tuple[float, ...] = ENERGIES, joules: float = 8.4, **changes: Any
) -> RunRecord:
    """A verified run of seven audited rounds around 0.6 mJ, with telemetry before and after and every gate passed.

    ``failed`` and ``unchecked`` name gates that did not pass; ``inject`` and ``seed`` go into the request.
    """
    failed, unchecked = changes.pop("failed", ()), changes.pop("unchecked", ())
    request = {key: changes.pop(key) for key in ("inject", "seed") if key in changes}
    rounds = changes.pop("rounds", [energy_round(number, mj) for number, mj in enumerate(energies)])
    gates = [gate("reference_load", "before"), gate("reference_load", "after"), *map(gate, GATES[1:])]
    gates = [gate(g.gate, g.where, False if g.gate in failed else None if g.gate in unchecked else True) for g in gates]
    trust = "failed" if failed else "unverified" if unchecked else "verified"
    reason = Reason("gate_failed", ", ".join(failed)) if failed else Reason("gate_not_made", ", ".join(unchecked))
    record = run_record(name, rounds=rounds, device=changes.pop("device", GPU))
    assert record.provision
    record = replace(
        record,
        request=replace(record.request, protocol=None, **request),
        provision=replace(record.provision, protocol="audited"),
        summary=replace(
            record.summary, energy=summaries(rounds), reference_joules_per_1e12_operations=joules if rounds else None
        ),
        telemetry=[telemetry("before", joules - 0.1), telemetry("after", joules + 0.1)],
        gates=gates,
        energy_trust=trust,
        energy_trust_reason=None if trust == "verified" else reason,
    )
    if failed and record.outcome is Outcome.OK:
        record = replace(record, outcome=Outcome.INVALID_MEASUREMENT, reason=reason)
    return replace(record, **changes)

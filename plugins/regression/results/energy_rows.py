"""From the energy measurement in a run record to the values of its rows; no database here."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpu_tasks.records import (
    EnergyMeasurement,
    GateResult,
    PowerTrace,
    Reason,
    RoundRecord,
    RunRecord,
    TelemetryRecord,
    parse_utc,
)
from regression.results.energy_tables import LOAD_FIELDS, LOW_DUTY, REFERENCE_LOAD, WANDER, WANDER_FIELDS

Row = dict[str, Any]

IN_COLUMNS = ("tick_period_s", "read_latency_s", "figures", "meters", "trace")
"""Fields of an energy measurement that have columns or tables of their own; all others are raw readings."""

READINGS = tuple(field.name for field in dataclasses.fields(EnergyMeasurement) if field.name not in IN_COLUMNS)
TELEMETRY_READINGS = ("wander", "idle_edges", "state_before", "state_after")


def reason(of: Reason | None, prefix: str = "") -> Row:
    """Values of the two columns of a reason."""
    code, message = (of.code, of.message) if of else (None, None)
    return {f"{prefix}reason_code": code, f"{prefix}reason_message": message}


def run_energy_rows(record: RunRecord) -> list[Row]:
    """Values of ``run_energy``."""
    return [{"run_id": record.request.run_id, **dataclasses.asdict(figure)} for figure in record.summary.energy]


def round_columns(energy: EnergyMeasurement | None) -> Row:
    """What ``round`` itself has of the energy measurement."""
    meters, sham = (energy.meters, energy.sham) if energy else (None, None)
    return {
        "tick_period_s": energy.tick_period_s if energy else None,
        "read_latency_s": energy.read_latency_s if energy else None,
        "counter_j": meters.counter_j if meters else None,
        "integrated_j": meters.integrated_j if meters else None,
        "meters_relative_difference": meters.relative_difference if meters else None,
        "power_integral_mj": meters.power_integral_mj if meters else None,
        "sham_adjusted_mj": sham.adjusted_mj if sham else None,
    }


def readings(energy: EnergyMeasurement | None) -> Row:
    """Raw readings and states of a round, from which its figures can be computed again."""
    if energy is None:
        return dict.fromkeys(READINGS)
    found = dataclasses.asdict(dataclasses.replace(energy, figures=[], trace=None))
    return {name: found[name] for name in READINGS}


def round_energy_rows(run_id: str, measured: RoundRecord) -> list[Row]:
    """Values of ``round_energy``: one row a figure."""
    rows = []
    for figure in measured.energy.figures if measured.energy else []:
        fields = dataclasses.asdict(figure)
        rows.append({**_round_key(run_id, measured), **fields.pop("uncertainty"), **fields})
    return rows


def round_trace_rows(run_id: str, measured: RoundRecord) -> list[Row]:
    """Values of ``round_trace``: one row, or none."""
    trace = measured.energy.trace if measured.energy else None
    return [{**_round_key(run_id, measured), **_trace(trace)}] if trace else []


def telemetry_row(run_id: str, record: TelemetryRecord) -> Row:
    """Values of ``telemetry``."""
    load, wander = record.reference_load, record.wander
    fields = dataclasses.asdict(dataclasses.replace(record, trace=None))
    return {
        "run_id": run_id,
        "moment": record.when,
        "outcome": record.outcome.value,
        **reason(record.reason),
        **reason(record.energy_reason, "energy_"),
        "tick_period_s": record.tick_period_s,
        "read_latency_s": record.read_latency_s,
        **{f"{WANDER}{name}": getattr(wander, name) if wander else None for name in WANDER_FIELDS},
        **{f"{REFERENCE_LOAD}{name}": getattr(load, name) if load else None for name in (*LOAD_FIELDS, LOW_DUTY)},
        "readings": {name: fields[name] for name in TELEMETRY_READINGS},
        "created_at": parse_utc(record.created_at),
    }


def telemetry_trace_rows(run_id: str, record: TelemetryRecord) -> list[Row]:
    """Values of ``telemetry_trace``: one row, or none."""
    return [{"run_id": run_id, "moment": record.when, **_trace(record.trace)}] if record.trace else []


def gate_row(run_id: str, gate: GateResult) -> Row:
    """Values of ``telemetry_gate``."""
    fields = dataclasses.asdict(gate)
    del fields["reason"]
    return {"run_id": run_id, "at": fields.pop("where"), **fields, **reason(gate.reason)}


def _round_key(run_id: str, measured: RoundRecord) -> Row:
    return {"run_id": run_id, "arm": measured.arm, "round": measured.round}


def _trace(trace: PowerTrace) -> Row:
    error = trace.error
    return {
        "period_s": trace.period_s,
        "power_kind": trace.power_kind,
        "csv": trace.csv,
        "error_code": error.code if error else None,
        "error_message": error.message if error else None,
    }

"""Telemetry gates of a stored run that did not pass."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from gpu_tasks.records import GATES
from regression.results import tables

PLACES = {"before": 0, "after": 2, "run": 3}  # rounds are between


@dataclass(frozen=True)
class GateLine:
    """A gate that failed, or (``passed`` None) could not be checked; where, and the line that says why."""

    gate: str
    at: str
    passed: bool | None
    reason: str


def gates_not_passed(connection: Connection, run_id: str) -> tuple[GateLine, ...]:
    """Failed ones first, each kind in the order of the gates and of the night."""
    gate = tables.telemetry_gate.c
    stored = connection.execute(
        select(gate.gate, gate.at, gate.passed, gate.reason_message).where(
            gate.run_id == run_id, gate.passed.is_not(True)
        )
    )
    lines = [GateLine(row.gate, row.at, row.passed, row.reason_message or "no reason given") for row in stored]
    return tuple(sorted(lines, key=_order))


def _order(line: GateLine) -> tuple[bool, int, int, str]:
    return line.passed is None, GATES.index(line.gate), PLACES.get(line.at, 1), line.at

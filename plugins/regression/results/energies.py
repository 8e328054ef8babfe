"""The energy of a stored run against its baseline, in each of its steps."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row

from regression.detectors import CheckVerdict, judge_energy
from regression.results.checks import Finding
from regression.results.history import energy_baseline, energy_run
from regression.results.steps import findings_by_step
from regression.results.surroundings import beside_changes


def energy_findings(connection: Connection, run: Row[Any]) -> list[Finding]:
    """First rounds, and these with the confirmation rounds if there are any; what else changed is said beside."""
    baseline, stored = energy_baseline(connection, run)

    def judge(step: int) -> CheckVerdict:
        found = judge_energy(energy_run(connection, run, step), baseline)
        return beside_changes(connection, run, found, stored.run_id if stored else None)

    return findings_by_step(connection, run, stored.baseline_id if stored else None, judge)

"""Checks of time and of what a run was made with, as Airflow tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regression.operators.checks import CheckOperator

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from regression.results.checks import Finding


class TimeDriftOperator(CheckOperator):
    """CUDA time of a run against the round spread of its baseline; CUDA time and wall time against their history."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.time`` and ``regression.detectors.long_term``."""
        from regression.results.history_checks import time_history
        from regression.results.times import time_findings

        return [*time_findings(connection, run), *time_history(connection, run)]


class EnvironmentChangeOperator(CheckOperator):
    """Driver, versions, sources, payload, kernel and power limit of a run beside those of its baseline.

    Never red: what changed is no verdict on the kernel. It is named beside every drift, and in its own result.
    """

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.environment``."""
        from regression.detectors.environment import judge_environment
        from regression.results.checks import Finding
        from regression.results.surroundings import environment_baseline, surroundings_of

        baseline, baseline_id = environment_baseline(connection, run)
        return [Finding(judge_environment(surroundings_of(connection, run), baseline), baseline_id)]

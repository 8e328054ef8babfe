"""Checks of what a task takes and leaves behind beside its predictions, as Airflow tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regression.operators.checks import CheckOperator

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from regression.results.checks import Finding


class QualificationOperator(CheckOperator):
    """Whether the workload computes what an independent implementation does: every check holds, and none is missing."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.qualification``."""
        from regression.results.qualifications import qualification_findings

        return qualification_findings(connection, run)


class MemoryDriftOperator(CheckOperator):
    """Memory of a run's task, in bytes, against its baseline and the run before."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.memory``."""
        from regression.results.accounts import memory_findings

        return memory_findings(connection, run)


class RepeatabilityOperator(CheckOperator):
    """States of a run's task, by hash: the same in every replay and process, and as in the latest run made alike."""

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.repeatability``."""
        from regression.results.states import repeatability_findings

        return repeatability_findings(connection, run)

"""The check of a candidate kernel, as an Airflow task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regression.operators.checks import CheckOperator

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from regression.results.checks import Finding


class ComparisonOperator(CheckOperator):
    """A candidate kernel against the pinned one that it was measured with: predictions, then time and energy.

    Both were measured in one run, so that no baseline has a part in it.
    """

    def judge(self, connection: Connection, run: Row[Any]) -> list[Finding]:
        """See ``regression.detectors.comparison``."""
        from regression.detectors.comparison import judge_comparison
        from regression.results.checks import Finding
        from regression.results.kernel_comparisons import comparison_of

        return [Finding(found, None) for found in judge_comparison(comparison_of(connection, run))]

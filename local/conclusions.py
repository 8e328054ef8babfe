"""How a run that was waited for ended: its verdict, what failed, and the exit status that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from local import runs
from local.alert_commands import alerts_of
from local.errors import LauncherError
from local.runs import Dag
from local.stack import Stack
from regression.nights.table import verdict_table
from regression.results.outcome import CheckLine, RunVerdict


@dataclass(frozen=True)
class Conclusion:
    """A run that has ended; ``alerts`` are lines about those that it raised or that are open."""

    dag_run_id: str
    state: str
    result: RunVerdict
    failed: Sequence[str]
    alerts: Sequence[str]

    def lines(self, told: Mapping[str, CheckLine] | None = None) -> list[str]:
        """The table of its verdict, and what failed where nothing was judged.

        ``told`` are the checks that the table of a comparison has told already: they are not told again, nor are gates
        of rounds that there are none of. What the database says otherwise is.
        """
        rest = self.result
        if told:
            checks = {name: line for name, line in rest.checks.items() if told.get(name) != line}
            rest = replace(rest, checks=checks, gates=rest.gates if rest.figures else ())
        lines = [verdict_table(rest)]
        if not self.result.checks:
            lines.append(f"failed: {', '.join(self.failed) or 'no task'}")
        return [*lines, *self.alerts]

    def logs(self) -> str:
        """Where to look further."""
        return f"logs:    ./nightly logs {self.dag_run_id}"

    def exit_code(self) -> int:
        """That of the verdict; raises ``LauncherError`` where a task failed in spite of it."""
        if self.state != "success" and self.result.exit_code == 0:
            failed = ", ".join(self.failed)
            raise LauncherError(f"the verdict is fine, but the DAG run ended as {self.state}: {failed} failed")
        return self.result.exit_code


def concluded(stack: Stack, dag: Dag, dag_run_id: str, state: str) -> Conclusion:
    """What Airflow and the results database say of a run that has ended."""
    result = runs.verdict(stack, dag, dag_run_id)
    failed = runs.failed_tasks(stack, dag, dag_run_id)
    return Conclusion(dag_run_id, state, result, failed, alerts_of(stack, result.run_id))

"""Store what a check found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func
from sqlalchemy.dialects.postgresql import insert

from regression.detectors import CheckVerdict
from regression.results import tables


@dataclass(frozen=True)
class Finding:
    """A verdict with the baseline that it was compared with and the step it was made in.

    ``step`` 0 is the first look, 1 the look at first and confirmation rounds together. The last step counts.
    """

    verdict: CheckVerdict
    baseline_id: int | None
    step: int = 0


def last_findings(findings: Iterable[Finding]) -> list[Finding]:
    """The last step of each check, in the order in which the checks came first."""
    last: dict[str, Finding] = {}
    for found in findings:
        earlier = last.get(found.verdict.check)
        if earlier is None or earlier.step <= found.step:
            last[found.verdict.check] = found
    return list(last.values())


def store_findings(connection: Connection, run_id: str, findings: Iterable[Finding]) -> None:
    """Store what a check operator found, all steps of all its checks."""
    for found in findings:
        store_check(connection, run_id, found.verdict, found.baseline_id, found.step)


def store_check(connection: Connection, run_id: str, found: CheckVerdict, baseline_id: int | None, step: int) -> None:
    """Store the verdict of one step of a check; a repeated task replaces what it found before."""
    values = dataclasses.asdict(found)
    del values["check"]
    values |= {"verdict": found.verdict.value, "baseline_id": baseline_id, "checked_at": func.now()}
    statement = insert(tables.check_result).values(run_id=run_id, check_name=found.check, step=step, **values)
    connection.execute(statement.on_conflict_do_update(constraint=tables.check_result.primary_key, set_=values))

"""Store what a check found."""

from __future__ import annotations

import dataclasses

from sqlalchemy import Connection, func
from sqlalchemy.dialects.postgresql import insert

from regression.detectors import CheckVerdict
from regression.results import tables


def store_check(connection: Connection, run_id: str, found: CheckVerdict, baseline_id: int | None, step: int) -> None:
    """Store the verdict of one step of a check; a repeated task replaces what it found before."""
    values = dataclasses.asdict(found)
    del values["check"]
    values |= {"verdict": found.verdict.value, "baseline_id": baseline_id, "checked_at": func.now()}
    statement = insert(tables.check_result).values(run_id=run_id, check_name=found.check, step=step, **values)
    connection.execute(statement.on_conflict_do_update(constraint=tables.check_result.primary_key, set_=values))

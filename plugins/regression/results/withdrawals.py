"""Withdrawals: runs whose energy, or which altogether, must not be used any more. They stay readable."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from sqlalchemy import Connection, Engine, and_, select, true
from sqlalchemy.exc import IntegrityError

from gpu_tasks.records import BadInput
from regression.results import tables
from regression.results.baselines import WITHDRAWN, lock, retire
from regression.results.columns import WITHDRAWAL_SCOPES
from regression.results.decisions import check_words, keep_decisions


def withdraw_run(
    engine: Engine,
    run_id: str,
    *,
    scope: str,
    withdrawn_by: str,
    reason: str,
    successor_run_id: str | None = None,
    figures: str | None = None,
    records: Path | None = None,
) -> None:
    """Withdraw a stored run's energy (``scope`` energy) or all of it; a baseline that it was for that ends with it.

    The decision is put on file in ``records``; where none is given, the next load does it. Raises ``BadInput`` for an
    unknown scope or run, for what was withdrawn before, and for a successor that was withdrawn itself.
    """
    check_words(withdrawn_by=withdrawn_by, reason=reason, figures=figures)
    if scope not in WITHDRAWAL_SCOPES:
        raise BadInput("bad_scope", f"scope: expected {' or '.join(WITHDRAWAL_SCOPES)}, found {scope!r}")
    baseline, run = tables.baseline, tables.run
    values = {"withdrawn_by": withdrawn_by, "reason": reason, "successor_run_id": successor_run_id, "figures": figures}
    try:
        with engine.begin() as connection:
            if connection.execute(select(run.c.run_id).where(run.c.run_id == run_id)).first() is None:
                raise BadInput("run_not_stored", f"run {run_id}: no such run in the results database")
            lock(connection)
            _check_what_was_withdrawn(connection, run_id, scope, successor_run_id)
            contradicted = baseline.c.for_energy if scope == "energy" else true()
            retire(connection, and_(baseline.c.run_id == run_id, contradicted), withdrawn_by, WITHDRAWN + reason)
            connection.execute(tables.withdrawal.insert().values(run_id=run_id, scope=scope, **values))
    except IntegrityError as error:
        line = str(error.orig).strip().splitlines()[0]
        raise BadInput("withdrawal_refused", f"run {run_id}: {scope}: {line}") from error
    if records:
        keep_decisions(engine, records)


def _check_what_was_withdrawn(connection: Connection, run_id: str, scope: str, successor_run_id: str | None) -> None:
    """Nothing is withdrawn twice, and what takes a run's place must stand itself."""
    withdrawal = tables.withdrawal
    of_both = withdrawal.c.run_id.in_([run_id, *([successor_run_id] if successor_run_id else [])])
    for found in connection.execute(select(withdrawal).where(of_both).order_by(withdrawal.c.scope)):
        by = f"withdrawn by {found.withdrawn_by} on {found.withdrawn_at.astimezone(UTC):%Y-%m-%d}: {found.reason}"
        if found.run_id == run_id and found.scope in (scope, "all"):
            what = "all of it" if found.scope == "all" else "its energy"
            raise BadInput("withdrawn_before", f"run {run_id}: expected a run that stands, {what} was {by}")
        if found.run_id == successor_run_id and found.scope in (scope, "all"):
            raise BadInput("successor_withdrawn", f"successor {found.run_id}: expected a run that stands, it was {by}")

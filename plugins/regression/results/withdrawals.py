"""Withdrawals: runs whose energy, or which altogether, must not be used any more. They stay readable."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, and_, select, text, true
from sqlalchemy.exc import IntegrityError

from gpu_tasks.records import BadInput
from regression.results import tables
from regression.results.baselines import retire
from regression.results.columns import WITHDRAWAL_SCOPES
from regression.results.decisions import keep_decisions


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
    unknown scope or run, and for what was withdrawn before.
    """
    if scope not in WITHDRAWAL_SCOPES:
        raise BadInput("bad_scope", f"scope: expected {' or '.join(WITHDRAWAL_SCOPES)}, found {scope!r}")
    baseline, run = tables.baseline, tables.run
    values = {"withdrawn_by": withdrawn_by, "reason": reason, "successor_run_id": successor_run_id, "figures": figures}
    try:
        with engine.begin() as connection:
            if connection.execute(select(run.c.run_id).where(run.c.run_id == run_id)).first() is None:
                raise BadInput("run_not_stored", f"run {run_id}: no such run in the results database")
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('baseline', 0))"))
            contradicted = baseline.c.for_energy if scope == "energy" else true()
            retire(connection, and_(baseline.c.run_id == run_id, contradicted), withdrawn_by, f"withdrawn: {reason}")
            connection.execute(tables.withdrawal.insert().values(run_id=run_id, scope=scope, **values))
    except IntegrityError as error:
        line = str(error.orig).strip().splitlines()[0]
        raise BadInput("withdrawal_refused", f"run {run_id}: {scope}: {line}") from error
    if records:
        keep_decisions(engine, records)

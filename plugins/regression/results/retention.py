"""Retention: power traces go after a time, rounds after a longer one; everything else stays for good.

Before the rounds of a run go, what they say together is in ``run_energy``, whether or not the measurement put it there.
The rounds of runs that ever were a baseline stay: others are compared with them. Record files keep everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Table,
    and_,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from gpu_tasks.records import FIGURES, BadInput
from regression.results import tables
from regression.results.history import SUBJECT

MOST = {"d": 10_000, "w": 10_000, "y": 1_000}  # more years are before the first time that PostgreSQL has


@dataclass(frozen=True)
class Dropped:
    """What goes, or would go, of one table: rows, and the bytes that their values take."""

    table: str
    rows: int
    bytes: int


def retain(engine: Engine, traces_after: str, rounds_after: str, *, dry_run: bool) -> list[Dropped]:
    """Drop what is older, in one transaction, and return it; with ``dry_run`` only say what would go.

    ``engine`` is the owner's: a judged run is history for everyone else. Raises ``BadInput`` for a time that is none.
    """
    run = tables.run.c
    old_traces = run.started_at < func.now() - span(traces_after, "traces-after")
    old_rounds = run.started_at < func.now() - span(rounds_after, "rounds-after")
    whole = and_(old_rounds, ~exists().where(tables.baseline.c.run_id == run.run_id))
    goes = [  # what refers to rounds before the rounds
        (tables.round_trace, or_(old_traces, whole)),
        (tables.telemetry_trace, old_traces),
        (tables.round_energy, whole),
        (tables.round_, whole),
    ]
    with engine.begin() as connection:
        handle: Callable[[Connection, Table, ColumnElement[bool]], Dropped] = _count
        if not dry_run:
            _roll_up(connection, whole)
            handle = _drop
        return [handle(connection, table, which) for table, which in goes]


def span(given: str, where: str) -> ColumnElement[object]:
    """``90d``, ``12w`` or ``2y`` as an interval of the database; raises ``BadInput`` that says ``where``."""
    found = re.fullmatch(r"([0-9]{1,5})([dwy])", given)
    if not found or not 0 < int(found[1]) <= MOST[found[2]]:
        raise BadInput("bad_span", f"{where}: expected a time such as 90d, 12w or 2y, found {given!r:.80}")
    years, weeks, days = (int(found[1]) if found[2] == unit else 0 for unit in "ywd")
    return func.make_interval(years, 0, weeks, days)


def _roll_up(connection: Connection, which: ColumnElement[bool]) -> None:
    """Figures over the rounds of runs that have none in ``run_energy``: those of ``run``, of its own protocol."""
    run, energy = tables.run.c, tables.run_energy
    present = exists().where(
        energy.c.run_id == run.run_id, energy.c.figure == run.protocol, energy.c.subject == SUBJECT
    )
    of_run = {
        "run_id": run.run_id,
        "figure": run.protocol,
        "subject": literal(SUBJECT),
        "rounds": run.rounds_valid,
        "median_mj": run.adjusted_mj_median,
        "min_mj": run.adjusted_mj_min,
        "max_mj": run.adjusted_mj_max,
        "sample_sd_mj": run.adjusted_mj_sample_sd,
    }
    wanted = (which, ~present, run.rounds_valid > 0, run.adjusted_mj_median.is_not(None), run.protocol.in_(FIGURES))
    has_rounds = exists().where(tables.round_.c.run_id == run.run_id)
    connection.execute(energy.insert().from_select(list(of_run), select(*of_run.values()).where(*wanted, has_rounds)))


def _count(connection: Connection, table: Table, which: ColumnElement[bool]) -> Dropped:
    run = tables.run
    size = func.pg_column_size(literal_column(f"{table.name}.*"))
    joined = table.join(run, run.c.run_id == table.c.run_id)
    counted = select(func.count(), func.coalesce(func.sum(size), 0)).select_from(joined).where(which)
    rows, total = connection.execute(counted).one()
    return Dropped(table.name, rows, int(total))


def _drop(connection: Connection, table: Table, which: ColumnElement[bool]) -> Dropped:
    found = _count(connection, table, which)
    run = tables.run.c
    connection.execute(table.delete().where(table.c.run_id == run.run_id, which))
    return found

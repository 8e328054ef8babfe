"""What is compared with a baseline, by the very choice that the checks make: what is told here the next night does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select
from sqlalchemy.dialects.postgresql import distinct_on

from regression.results import history, tables, times

PURPOSES = ("predictions", "time", "energy")


@dataclass(frozen=True)
class Compared:
    """Runs that are compared with a baseline for ``purpose``: their workload, payload, device, protocol, environment.

    Predictions do not ask for protocol and environment, which are then None.
    """

    purpose: str
    workload: str
    payload: str
    device: str
    device_uuid: str
    protocol: str | None
    environment_class: str | None
    baseline_id: int


def compared(connection: Connection) -> list[Compared]:
    """Each purpose with its baseline, asked of the newest run of each device, payload, protocol and environment.

    Ones without a baseline that fits are left out: a check of them is inconclusive.
    """
    found = {c for run, payload in _newest_runs(connection) for c in _of_run(connection, run, payload)}
    return sorted(found, key=lambda c: (PURPOSES.index(c.purpose), c.workload, c.payload, c.device, str(c)))


def _of_run(connection: Connection, run: Row[Any], payload: str) -> Iterator[Compared]:
    what = (run.workload, payload, run.device_name, run.uuid)
    _, agreement = history.agreement_baseline(connection, run)
    if agreement and _fits(connection, run, agreement.baseline_id, "payload_id"):
        yield Compared("predictions", *what, None, None, agreement.baseline_id)
    conditions = ["payload_id", "device_id", "protocol"]
    if run.kind != history.SIMULATED:  # whose figures come from its model, whatever versions it is run with
        conditions.append("environment_class")
    _, time = times.time_baseline(connection, run)
    if time and times.no_gpu_time(run) is None and _fits(connection, run, time.baseline_id, "for_time", *conditions):
        yield Compared("time", *what, run.protocol, run.environment_class, time.baseline_id)
    _, energy = history.energy_baseline(connection, run)
    has_energy = run.energy_trust != history.NO_ENERGY
    if energy and has_energy and _fits(connection, run, energy.baseline_id, "for_energy", *conditions):
        yield Compared("energy", *what, run.protocol, run.environment_class, energy.baseline_id)


def _fits(connection: Connection, run: Row[Any], baseline_id: int, *conditions: str) -> bool:
    """Whether the closest baseline there is is close enough for a comparison."""
    table = tables.baseline
    baseline = connection.execute(select(table).where(table.c.baseline_id == baseline_id)).one()
    wanted = {name: True if name.startswith("for_") else getattr(run, name) for name in conditions}
    return all(getattr(baseline, name) == value for name, value in wanted.items())


def _newest_runs(connection: Connection) -> list[tuple[Row[Any], str]]:
    """The newest run of each key that tries no kernel, as ``history`` has it, with the name of its payload."""
    run, environment, payload = tables.run, tables.environment, tables.payload
    key = (run.c.workload, run.c.payload_id, run.c.device_id, run.c.protocol, environment.c.environment_class)
    newest = connection.execute(
        select(run.c.dag_id, run.c.dag_run_id, payload.c.name)
        .select_from(run.join(environment).join(payload).join(tables.device))
        .where(~run.c.candidate)
        .ext(distinct_on(*key))
        .order_by(*key, run.c.started_at.desc(), run.c.run_id)
    ).all()
    return [(history.find_run(connection, row.dag_id, row.dag_run_id), row.name) for row in newest]

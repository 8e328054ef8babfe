"""Alerts as files, with everything that happened to them, so that a database can be made again from files.

``RECORDS/alerts/<time opened>-<workload>-<metric>-<direction>-<number>.json``, one file an alert, written anew
whenever something happened to it, complete in itself: device and baseline are named by what does not change when a
database is made again. The number comes back with it: it is in messages that were sent.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select, text

from gpu_tasks.records import FORMAT, BadInput, parse_utc, read_record, to_json, write_record
from regression.results import tables
from regression.results.judgements import BaselineReference, time_text

FOLDER = "alerts"
KIND = "alert"
HIGHEST_NUMBER = 1_000_000
"""Of alerts on file: every number below one that comes back is used up, one by one."""
TIMES = ("opened_at", "last_seen_at", "acknowledged_at", "muted_until", "resolved_at", "tell_since")
RUNS = ("first_run_id", "last_run_id")


@dataclass(frozen=True)
class DeviceReference:
    """A device by what it is known by."""

    kind: str
    uuid: str
    name: str


@dataclass(frozen=True)
class EventLine:
    """One row of ``alert_event``."""

    at: str
    event: str
    author: str
    text: str
    run_id: str | None
    night: str | None
    channel: str | None


@dataclass(frozen=True)
class AlertFile:
    """One row of ``alert``, and its events in their order."""

    kind: str  # "alert"
    format: str
    alert_id: int
    workload: str
    device: DeviceReference | None
    metric: str
    direction: str
    outcome: str
    state: str
    first_run_id: str | None
    last_run_id: str | None
    occurrences: int
    value: float | None
    baseline_value: float | None
    unit: str | None
    baseline: BaselineReference | None
    text: str
    message: str | None
    opened_at: str
    last_seen_at: str
    acknowledged_by: str | None
    acknowledged_at: str | None
    acknowledged_reason: str | None
    muted_until: str | None
    resolved_at: str | None
    tell_since: str | None
    events: list[EventLine]


PLAIN = tuple(
    field.name
    for field in dataclasses.fields(AlertFile)
    if field.name not in ("kind", "format", "device", "baseline", "events", *TIMES)
)


def lock(connection: Connection) -> None:
    """One transaction at a time changes alerts or puts them on file; held to its end."""
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('alerts', 0))"))


def keep_alerts(engine: Engine, folder: Path) -> list[Path]:
    """Write every alert whose file does not say what the database says; returns those files.

    To be called when a change was committed. What a crash left unwritten is written by the next call.
    """
    written = []
    with engine.begin() as connection:
        lock(connection)
        for alert in stored_alerts(connection):
            path = folder / FOLDER / name_of(alert)
            if not path.exists() or path.read_bytes() != to_json(alert).encode():
                write_record(alert, path)
                written.append(path)
    return written


def files(folder: Path) -> list[Path]:
    """All alert files, in the order in which the alerts were opened."""
    return sorted((folder / FOLDER).glob("*.json"))


def read_alert(path: Path) -> AlertFile:
    """The alert in a file; raises ``BadInput`` naming file and field."""
    alert = read_record(path, AlertFile)
    if not 0 < alert.alert_id <= HIGHEST_NUMBER:
        expected = f"a number from 1 to {HIGHEST_NUMBER}"
        raise BadInput("bad_record", f"{path}: $.alert_id: expected {expected}, found {alert.alert_id}")
    moments = {name: getattr(alert, name) for name in TIMES}
    for number, event in enumerate(alert.events):
        moments |= {f"events[{number}].at": event.at, f"events[{number}].night": event.night}
    for name, found in moments.items():
        try:
            _time(found)
        except BadInput as error:
            raise BadInput(error.code, f"{path}: $.{name}: {error.message}") from None
    return alert


def name_of(alert: AlertFile) -> str:
    """File name of an alert."""
    stamp = parse_utc(alert.opened_at).astimezone(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    workload = re.sub(r"[^A-Za-z0-9_.]", "_", alert.workload)[:60]
    return f"{stamp}-{workload}-{alert.metric}-{alert.direction}-{alert.alert_id:04d}.json"


def stored_alerts(connection: Connection) -> Iterator[AlertFile]:
    """Every alert in the database."""
    alert, device, baseline, event = tables.alert, tables.device, tables.baseline, tables.alert_event
    events: dict[int, list[EventLine]] = {}
    for row in connection.execute(select(event).order_by(event.c.alert_event_id)):
        line = EventLine(
            *(time_text(row.at), row.event, row.author, row.text, row.run_id, _text(row.night), row.channel)
        )
        events.setdefault(row.alert_id, []).append(line)
    stored = connection.execute(
        select(
            alert,
            *(device.c.kind, device.c.uuid, device.c.name),
            *(baseline.c.run_id.label("accepted_run_id"), baseline.c.accepted_at),
        )
        .select_from(
            alert.outerjoin(device, device.c.device_id == alert.c.device_id).outerjoin(
                baseline, baseline.c.baseline_id == alert.c.baseline_id
            )
        )
        .order_by(alert.c.alert_id)
    )
    for row in stored:
        device_of = DeviceReference(row.kind, row.uuid, row.name) if row.device_id else None
        baseline_of = BaselineReference(row.accepted_run_id, time_text(row.accepted_at)) if row.baseline_id else None
        values: dict[str, Any] = {name: getattr(row, name) for name in PLAIN}
        values |= {name: _text(getattr(row, name)) for name in TIMES}
        values |= {"kind": KIND, "format": FORMAT, "events": events.get(row.alert_id, [])}
        yield AlertFile(device=device_of, baseline=baseline_of, **values)


def reserve_numbers(connection: Connection, alerts: Iterable[AlertFile]) -> None:
    """Use up the numbers of these alerts, so that the database gives none of them to another one."""
    highest = max((alert.alert_id for alert in alerts), default=0)
    draw = text("SELECT max(nextval(pg_get_serial_sequence('alert', 'alert_id'))) FROM generate_series(1, :count)")
    if highest:
        drawn = connection.execute(draw, {"count": 1}).scalar_one()
        connection.execute(draw, {"count": max(highest - drawn, 0)})


def store_alert(connection: Connection, alert: AlertFile) -> None:
    """Put an alert back into a database that has its runs; does nothing where it is there already.

    Raises ``BadInput`` where its device or a run is not there. A baseline that is not there is left out. The number is
    the alert's own (see ``reserve_numbers``), or a new one where that is taken.
    """
    device_id = _device_id(connection, alert)
    _check_runs(connection, alert)
    if _is_stored(connection, alert, device_id):
        return
    values = {name: getattr(alert, name) for name in PLAIN} | {name: _time(getattr(alert, name)) for name in TIMES}
    values |= {"device_id": device_id, "baseline_id": _baseline_id(connection, alert.baseline)}
    alert_id = _add(connection, values, values.pop("alert_id"))
    for line in alert.events:
        times = {"at": _time(line.at), "night": _time(line.night)}
        event = dataclasses.asdict(line) | times | {"alert_id": alert_id}
        connection.execute(tables.alert_event.insert().values(**event))


def _add(connection: Connection, values: dict[str, Any], wanted: int) -> int:
    alert = tables.alert
    if connection.execute(select(alert.c.alert_id).where(alert.c.alert_id == wanted)).first():
        return int(connection.execute(alert.insert().values(values).returning(alert.c.alert_id)).scalar_one())
    names = ["alert_id", *values]
    statement = (
        f"INSERT INTO alert ({', '.join(names)}) OVERRIDING SYSTEM VALUE "  # noqa: S608 - names of columns
        f"VALUES ({', '.join(f':{name}' for name in names)})"
    )
    connection.execute(text(statement), values | {"alert_id": wanted})
    return wanted


def _device_id(connection: Connection, alert: AlertFile) -> int | None:
    if alert.device is None:
        return None
    device = tables.device.c
    same = [device[name] == value for name, value in dataclasses.asdict(alert.device).items()]
    found: int | None = connection.execute(select(device.device_id).where(*same)).scalar_one_or_none()
    if found is None:
        message = f"{name_of(alert)}: $.device: expected a device of a kept run, found none of uuid {alert.device.uuid}"
        raise BadInput("alert_without_device", message)
    return found


def _check_runs(connection: Connection, alert: AlertFile) -> None:
    named = {getattr(alert, name) for name in RUNS} | {event.run_id for event in alert.events}
    needed = {run_id for run_id in named if run_id is not None}
    present = set(connection.execute(select(tables.run.c.run_id).where(tables.run.c.run_id.in_(needed))).scalars())
    if needed - present:
        missing = min(needed - present)
        message = f"{name_of(alert)}: expected its runs to be there, found nothing of {missing}"
        raise BadInput("alert_without_run", message)


def _is_stored(connection: Connection, alert: AlertFile, device_id: int | None) -> bool:
    stored = tables.alert.c
    same = (
        stored.workload == alert.workload,
        func.coalesce(stored.device_id, 0) == (device_id or 0),
        stored.metric == alert.metric,
        stored.direction == alert.direction,
        stored.opened_at == parse_utc(alert.opened_at),
    )
    return connection.execute(select(stored.alert_id).where(*same)).first() is not None


def _baseline_id(connection: Connection, reference: BaselineReference | None) -> int | None:
    if reference is None:
        return None
    baseline = tables.baseline.c
    found: int | None = connection.execute(
        select(baseline.baseline_id).where(
            baseline.run_id == reference.run_id, baseline.accepted_at == parse_utc(reference.accepted_at)
        )
    ).scalar_one_or_none()
    return found


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)


def _time(words: str | None) -> datetime | None:
    return None if words is None else parse_utc(words)

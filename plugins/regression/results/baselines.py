"""Baselines: accepted runs, with who, when and why; at most one current one a key."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, and_, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from gpu_tasks.records import BadInput, RunRecord, read_record_bytes, record_files
from regression.results import spool, tables
from regression.results.decisions import Decision, check_words, keep_decisions, pairs, read_decisions, store_decision
from regression.results.decisions import files as decision_files
from regression.results.loading import LoadResult, load_run, parse_run_record, read_run_record
from regression.results.times import WITH_GPU_TIME

ACCEPTABLE = {"ok", "regression"}  # a changed kernel may be accepted with its differences, a broken run never
KEY = ("workload", "payload_id", "device_id", "protocol", "environment_class")
FIRST_BASELINE_BY = "kernel-nightly"
FIRST_BASELINE_REASON = "record shipped with the repository: reference for predictions and time"
FOR_PREDICTIONS_ONLY = "record shipped with the repository: reference for predictions"
FOR_ENERGY_TOO = " and, its sensor being verified, energy"
WITHDRAWN_ENERGY = "power_telemetry_withdrawn"  # code of a record's reason not to trust its energy
WITHDRAWN = "withdrawn: "
"""How the reason begins of a baseline that ended because its run was withdrawn."""
CLOCK: ColumnElement[datetime] = func.clock_timestamp()
USABLE_ENERGY = {"verified", "unverified"}  # unverified: only when somebody says so by name


def import_record(engine: Engine, path: Path) -> LoadResult:
    """Load a run record file as it is; raises ``BadInput`` naming file and field, having changed nothing."""
    record, record_sha256 = read_run_record(path)
    return load_run(engine, record, record_sha256)


def accept_baseline(
    engine: Engine,
    run_id: str,
    *,
    accepted_by: str,
    reason: str,
    for_agreement: bool = True,
    for_time: bool = True,
    for_energy: bool | None = None,
    promoted: bool = False,
    records: Path | None = None,
) -> int:
    """Make a stored run the current baseline of its key, retiring the one before; returns the baseline's key.

    Of ``for_time`` nothing comes on a device whose times are a CPU's, which are never judged. ``for_energy`` None: only
    when the energy of the run is verified. ``promoted``: the run tried a kernel, which nights run from now on
    (``promotion``). The decision is put on file in ``records``; where none is given, the next load does
    it. Raises ``BadInput`` for an unknown run, for one that cannot be a baseline or would be one for nothing, for one
    that tried a kernel and is not promoted, and for energy that is asked for where a telemetry gate failed or there is
    no counter.
    """
    check_words(accepted_by=accepted_by, reason=reason)
    with engine.begin() as connection:
        run = _acceptable_run(connection, run_id)
        if run.candidate and not promoted:
            instead = f"./nightly promote {run.dag_run_id}"
            raise BadInput(
                "run_is_candidate", f"run {run_id}: expected a night, found one that tried a kernel: {instead}"
            )
        baseline_id = _accept(
            connection,
            run,
            {
                "accepted_by": accepted_by,
                "reason": reason,
                "for_agreement": for_agreement,
                "for_time": for_time,
                "for_energy": for_energy,
            },
        )
    if records:
        keep_decisions(engine, records)
    return baseline_id


def retire_baseline(engine: Engine, run_id: str, *, retired_by: str, reason: str, records: Path | None = None) -> None:
    """End the current baseline that run is, with nothing in its place; raises ``BadInput`` where it is none."""
    check_words(retired_by=retired_by, reason=reason)
    with engine.begin() as connection:
        lock(connection)
        if not retire(connection, tables.baseline.c.run_id == run_id, retired_by, reason):
            raise BadInput("no_baseline", f"run {run_id}: expected a current baseline, found none")
    if records:
        keep_decisions(engine, records)


def lock(connection: Connection) -> None:
    """One transaction at a time decides about baselines and withdrawals; held to its end, and taken before any row.

    What refuses the baseline of a withdrawn run takes it, too: a row that is changed before would be a deadlock.
    """
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('baseline', 0))"))


def retire(
    connection: Connection,
    which: ColumnElement[bool],
    retired_by: str,
    reason: str,
    at: ColumnElement[datetime] | datetime = CLOCK,
) -> int:
    """End the current baselines among ``which``; returns how many those were. None ends before it began."""
    table = tables.baseline
    end = {"retired_at": func.greatest(at, table.c.accepted_at), "retired_by": retired_by, "retired_reason": reason}
    statement = table.update().where(which, table.c.retired_at.is_(None)).values(**end).returning(table.c.baseline_id)
    return len(connection.execute(statement).all())


def ensure_first_baselines(engine: Engine, folder: Path, records: Path | None = None) -> list[str]:
    """``ensure_first_baseline`` for every record file in ``folder``, by name; returns their run_ids.

    Records and decisions are put on file in ``records``.
    """
    run_ids = [ensure_first_baseline(engine, path, records) for path in record_files(folder)]
    if records:
        keep_decisions(engine, records)
    return run_ids


def ensure_first_baseline(engine: Engine, path: Path, records: Path | None = None) -> str:
    """Import a record and accept it, unless it was ever accepted before; returns its run_id. Safe to repeat.

    A run that is stored already stays as it is, whatever form a newer version of the file has, a baseline that
    somebody retired stays retired, and one that somebody accepted for the same conditions stays current. What was
    decided of the run according to the files in ``records`` holds again: an empty database begins where the one before
    it ended.
    """
    content, record = _first_record(path, records)
    run_id, record_sha256 = record.request.run_id, hashlib.sha256(content).hexdigest()
    with engine.connect() as connection:
        stored = connection.execute(select(tables.run.c.record_sha256).where(tables.run.c.run_id == run_id)).scalar()
    if stored is None:
        load_run(engine, record, record_sha256)
    if records and stored in (None, record_sha256):
        spool.keep_loaded(records, content.decode(), run_id)
    earlier = _decided(records, run_id) if records and stored is None else []
    with engine.begin() as connection:
        run = _acceptable_run(connection, run_id)
        for decision, end in pairs(earlier):
            with suppress(BadInput):  # it names another run, too; that is for a rebuild to bring back
                store_decision(connection, decision, end)
        accepted = tables.baseline.c.run_id == run_id
        of_a_user = and_(_current(run), tables.baseline.c.accepted_by != FIRST_BASELINE_BY)
        if not connection.execute(select(tables.baseline.c.baseline_id).where(or_(accepted, of_a_user))).first():
            for_time = _has_gpu_time(record)
            reason = FIRST_BASELINE_REASON if for_time else FOR_PREDICTIONS_ONLY
            reason += FOR_ENERGY_TOO if run.energy_trust == "verified" else ""
            purposes = {"for_agreement": True, "for_time": for_time, "for_energy": None}
            _accept(connection, run, {"accepted_by": FIRST_BASELINE_BY, "reason": reason, **purposes})
        _withdraw_shipped(connection, run, record)
    return run_id


def _has_gpu_time(record: RunRecord) -> bool:
    """Whether the times of a record are compared with any: those of a CPU never are."""
    device = record.provision.device if record.provision else None
    return device is not None and device.kind in WITH_GPU_TIME


def _first_record(path: Path, records: Path | None) -> tuple[bytes, RunRecord]:
    """A shipped record; the file of the same run that was kept, where there is one: decisions are about that one."""
    content = read_record_bytes(path)
    record = parse_run_record(content, str(path))
    kept = records and spool.kept(records, record.request.run_id)
    if kept and kept.exists():
        with suppress(BadInput):
            earlier = read_record_bytes(kept)
            return earlier, parse_run_record(earlier, str(kept))
    return content, record


def _decided(records: Path, run_id: str) -> list[Decision]:
    """What was decided of a run, according to the files."""
    decisions, _ = read_decisions(path for path in decision_files(records) if run_id in path.name)
    return decisions


def _withdraw_shipped(connection: Connection, run: Row[Any], record: RunRecord) -> None:
    """A shipped record that says of its own energy that it was withdrawn is withdrawn here, too.

    Also in a database that had it before withdrawals were kept; were it a baseline for energy there, it stays one for
    the rest. The message is why, and behind a colon which figures.
    """
    reason = record.energy_trust_reason
    if not reason or reason.code != WITHDRAWN_ENERGY:
        return
    why, _, figures = reason.message.partition(": ")
    for_energy = and_(tables.baseline.c.run_id == run.run_id, tables.baseline.c.for_energy)
    if retire(connection, for_energy, FIRST_BASELINE_BY, f"energy withdrawn: {why}"):
        purposes = {"for_agreement": True, "for_time": True, "for_energy": False}
        _accept(connection, run, {"accepted_by": FIRST_BASELINE_BY, "reason": FIRST_BASELINE_REASON, **purposes})
    values = {"scope": "energy", "withdrawn_by": FIRST_BASELINE_BY, "reason": why, "figures": figures or None}
    connection.execute(insert(tables.withdrawal).values(run_id=run.run_id, **values).on_conflict_do_nothing())


def _acceptable_run(connection: Connection, run_id: str) -> Row[Any]:
    """The run, with a lock so that two acceptances cannot both find it unaccepted."""
    found = acceptable_run(connection, run_id)
    lock(connection)
    return found


def acceptable_run(connection: Connection, run_id: str) -> Row[Any]:
    """The run with its environment class and the kind of its device, as ``environment_class`` and ``kind``.

    Raises ``BadInput`` where it is not stored or can be no baseline at all.
    """
    run, environment, device = tables.run, tables.environment, tables.device
    found = connection.execute(
        select(run, environment.c.environment_class, device.c.kind)
        .select_from(run.outerjoin(environment).outerjoin(device))
        .where(run.c.run_id == run_id)
    ).one_or_none()
    if found is None:
        raise BadInput("run_not_stored", f"run {run_id}: no such run in the results database")
    missing = [n for n in ("device_id", "payload_id", "environment_id") if getattr(found, n) is None]
    if found.outcome not in ACCEPTABLE or missing:
        why = f"outcome {found.outcome}" if found.outcome not in ACCEPTABLE else f"no {', '.join(missing)}"
        raise BadInput("run_not_acceptable", f"run {run_id} cannot be a baseline: {why}")
    if found.inject:
        raise BadInput("run_not_acceptable", f"run {run_id} cannot be a baseline: made with injected {found.inject}")
    return found


def _accept(connection: Connection, run: Row[Any], values: dict[str, Any]) -> int:
    withdrawn = withdrawn_of(connection, run.run_id)
    if values["for_energy"] is None:
        values["for_energy"] = run.energy_trust == "verified" and not withdrawn
    reason = withdrawn.get("all") or (values["for_energy"] and withdrawn.get("energy"))
    if reason:
        what = "a baseline" if "all" in withdrawn else "a baseline for energy"
        raise BadInput("run_withdrawn", f"run {run.run_id} cannot be {what}, it was withdrawn: {reason}")
    if values["for_energy"] and run.energy_trust not in USABLE_ENERGY:
        why = f" ({run.energy_trust_reason})" if run.energy_trust_reason else ""
        message = f"run {run.run_id} cannot be a baseline for energy, which is {run.energy_trust}{why}"
        raise BadInput("energy_not_acceptable", message)
    absent = [] if run.energy_trust == "verified" else [f"its energy is {run.energy_trust}"]
    if run.kind not in WITH_GPU_TIME:
        values["for_time"] = False
        absent.append(f"its times are a CPU's, as the device is {run.kind}")
    if not any(values[name] for name in ("for_agreement", "for_time", "for_energy")):
        because = f" ({', and '.join(absent)})" if absent else ""
        message = f"run {run.run_id}: expected predictions, time or energy, found none of them{because}"
        raise BadInput("no_purpose", message)
    table, key = tables.baseline, {name: getattr(run, name) for name in KEY}
    values |= {"environment_id": run.environment_id, "energy_trust": run.energy_trust}
    at = _moment(connection, key)
    retire(connection, _current(run), values["accepted_by"], f"run {run.run_id} was accepted in its place", at)
    values["accepted_at"] = at
    added = table.insert().values(run_id=run.run_id, **key, **values).returning(table.c.baseline_id)
    return int(connection.execute(added).scalar_one())


def _moment(connection: Connection, key: dict[str, Any]) -> datetime:
    """The time of an acceptance that is next in its key: not that of its transaction, which may be older than others'.

    Later than all before it, whatever the clock says: their order is what is current.
    """
    columns = tables.baseline.c
    before = func.max(columns.accepted_at) + text("interval '1 microsecond'")
    wanted = select(func.greatest(CLOCK, before)).where(*(columns[name] == value for name, value in key.items()))
    moment: datetime = connection.execute(wanted).scalar_one()
    return moment


def withdrawn_of(connection: Connection, run_id: str) -> dict[str, str]:
    """Scope to reason of what was withdrawn of a run."""
    withdrawal = tables.withdrawal.c
    stored = connection.execute(select(withdrawal.scope, withdrawal.reason).where(withdrawal.run_id == run_id))
    return {row.scope: row.reason for row in stored}


def _current(run: Row[Any]) -> ColumnElement[bool]:
    """The current baseline of the run's key, if there is one."""
    columns = tables.baseline.c
    return and_(*(columns[name] == getattr(run, name) for name in KEY), columns.retired_at.is_(None))

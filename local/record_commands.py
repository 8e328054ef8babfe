"""The commands about records: import, export and rebuild."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpu_tasks.records import BadInput, Outcome, read_record_bytes, record_from_bytes, write_text_atomically
from local import environments
from local.databases import databases, engine_of, prepare, told_by_the_database
from local.errors import LauncherError, Usage, told_in_one_line
from local.paths import ROOT, Home
from local.record_arguments import FORMS
from local.secrets import load
from local.stack import hold
from regression.results import exporting
from regression.results.importing import Candidate, Imported, candidate, import_records
from regression.results.parquet import write_parquet
from regression.results.rebuild import Rebuilt, rebuild

OUTCOMES = list(Outcome)
PROGRESS_S = 2.0


def command_import(home: Home, arguments: argparse.Namespace) -> int:
    """Check every file, then store every one."""
    with told_in_one_line():
        candidates = [read_candidate(home, path) for path in arguments.files]  # before anything is started
        with (
            hold(home, arguments.dsn, need_airflow=False) as held,
            engine_of(held.databases().writer) as engine,
        ):
            for imported in import_records(engine, home.records, candidates):
                print(_line(imported), flush=True)
    return Outcome.OK.exit_code


def read_candidate(home: Home, path: Path) -> Candidate:
    """The run record in a file, computed again, or converted where it is an original one; raises ``BadInput``."""
    content = read_record_bytes(path)
    fields = record_from_bytes(content, dict[str, Any], str(path))
    if {"kind", "format"} & fields.keys():
        found = candidate(content, str(path))
        _gpu_program(home, "check", path)
        return found
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.json"
        _gpu_program(home, "convert", path, "--out", out)
        return candidate(out.read_bytes(), str(path))


def _gpu_program(home: Home, *arguments: str | Path) -> None:
    """``python -m gpu_tasks ARGUMENTS``, whose refusal becomes ours."""
    python = environments.python(home, environments.of_gpu_tasks())
    result = subprocess.run(
        [str(python), "-m", "gpu_tasks", *map(str, arguments)],
        env=dict(os.environ) | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or [f"{arguments[0]} gave no reason"]
        *_, message = lines[-1].split(": ", 3)  # program: outcome: code: message
        known = 0 < result.returncode < len(OUTCOMES)
        raise LauncherError(message, OUTCOMES[result.returncode] if known else Outcome.INFRASTRUCTURE_FAILURE)


def _line(imported: Imported) -> str:
    request, result = imported.record.request, imported.result
    counts = ", ".join(f"{count} {table}" for table, count in result.rows.items()) or "nothing to store"
    return f"{imported.source}: {result.status.value} {result.run_id} ({request.dag_id}/{request.dag_run_id}): {counts}"


def command_export(home: Home, arguments: argparse.Namespace) -> int:
    """A record file, or the rows of a view."""
    if (arguments.run is None) == (arguments.view is None):
        raise Usage("export: expected a run or --view, found " + ("neither" if arguments.run is None else "both"))
    if arguments.run is not None and (arguments.format or arguments.since or arguments.device):
        raise Usage("export: --format, --since and --device are for the rows of a view, found a run")
    since = moment(arguments.since) if arguments.since else None
    form = arguments.format or _form(arguments.out)
    if arguments.view and form == "parquet" and arguments.out is None:
        raise Usage("export --format parquet: expected --out FILE, found none")
    with (
        told_in_one_line(),
        told_by_the_database(),
        hold(home, arguments.dsn, need_airflow=False) as held,
        engine_of(held.databases().reader) as engine,
        engine.begin() as connection,
    ):
        if arguments.run is not None:
            content = exporting.kept_record(connection, home.records, arguments.run)
            return _deliver(content, arguments.out, arguments.run)
        columns = exporting.columns_of(connection, arguments.view)
        rows = exporting.read_view(connection, arguments.view, columns, since=since, device=arguments.device)
        if arguments.out is None:
            exporting.write_csv(sys.stdout, columns, rows)
            sys.stdout.flush()
            return Outcome.OK.exit_code
        with _replacing(arguments.out) as (text, target):
            with text.open("w", encoding="utf-8", newline="") as stream:
                count = exporting.write_csv(stream, columns, rows)
            if form == "parquet":
                write_parquet(text, columns, target)
            else:
                text.replace(target)
        print(f"{arguments.out}: {count} rows of {arguments.view}", file=sys.stderr)
    return Outcome.OK.exit_code


def _deliver(content: bytes, out: Path | None, run: str) -> int:
    if out is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_text_atomically(content.decode(), out)
        print(f"{out}: the record of run {run}, {len(content)} bytes", file=sys.stderr)
    return Outcome.OK.exit_code


def _form(out: Path | None) -> str:
    suffix = out.suffix.lstrip(".") if out else ""
    return suffix if suffix in FORMS else "csv"


def moment(given: str) -> datetime:
    """A date (its first moment in UTC) or a time with its UTC offset."""
    try:
        found = datetime.fromisoformat(given)
        is_date = len(given) <= len("2026-01-01")
    except ValueError:
        found, is_date = None, False
    if found is None or (found.tzinfo is None and not is_date):
        raise Usage(f"--since: expected a date such as 2026-11-30 or a time with a UTC offset, found {given!r:.80}")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@contextmanager
def _replacing(out: Path) -> Iterator[tuple[Path, Path]]:
    """Two new files beside ``out``; the second one takes its place in the end, or nothing is left of either."""
    if out.exists() and not out.is_file():
        raise BadInput("not_a_file", f"{out}: expected a regular file or none, found something else")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        text, target = Path(folder) / "rows.csv", Path(folder) / "out"
        yield text, target
        target.replace(out)


def command_rebuild(home: Home, arguments: argparse.Namespace) -> int:
    """Bring everything back; say what could not be."""
    home.create()
    with told_in_one_line(), told_by_the_database():
        if arguments.into:
            target = databases(arguments.into, load(home.secrets), embedded=False)
            prepare(target, home.records, with_airflow=False)
            done = _rebuild(home, target.writer)
        else:
            with hold(home, arguments.dsn, need_airflow=False) as held:
                done = _rebuild(home, held.databases().writer)
    for line in done.broken:
        print(f"left out: {line}", file=sys.stderr)
    waiting = f"; {done.waiting} records in pending wait for the next load" if done.waiting else ""
    counts = f"{done.runs} runs, {done.decisions} decisions, {done.judgements} judgements, {done.alerts} alerts"
    print(f"{counts}{waiting}")
    if done.broken:
        count = len(done.broken)
        raise LauncherError(f"{count} file{'s' * (count > 1)} could not be used (named above)", Outcome.BAD_INPUT)
    return Outcome.OK.exit_code


def _rebuild(home: Home, writer: str) -> Rebuilt:
    with engine_of(writer) as engine:
        return rebuild(engine, home.records, _Progress())


class _Progress:
    """A line on standard error every few seconds, and one at the end of each kind."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told >= PROGRESS_S or (done == total and total):
            self._told = now
            print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)

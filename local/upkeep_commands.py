"""The commands of upkeep: backup, restore and retention."""

from __future__ import annotations

import argparse
import sys

from sqlalchemy.exc import DBAPIError

from gpu_tasks.records import Outcome
from local import backup, runs
from local.databases import engine_of
from local.errors import LauncherError, Usage, told_in_one_line
from local.paths import Home
from local.stack import Stack, hold
from regression.results.migrate import revisions, upgrade
from regression.results.rebuild import check_empty
from regression.results.retention import Dropped, retain, span

MIB = 1024 * 1024


def command_backup(home: Home, arguments: argparse.Namespace) -> int:
    """Dump the results database."""
    backup.check_target(arguments.file, replace=arguments.replace)
    with hold(home, arguments.dsn, need_airflow=False) as held:
        size = backup.dump(held.databases().owner, arguments.file)
    print(f"{arguments.file}: {size / MIB:.1f} MiB")
    return Outcome.OK.exit_code


def command_restore(home: Home, arguments: argparse.Namespace) -> int:
    """Bring a backup back."""
    revision = backup.revision(arguments.file)
    if revision not in revisions():
        known = revisions()[-1]
        raise Usage(f"{arguments.file}: schema: expected {known} or older, found {revision}: of a newer version")
    with told_in_one_line(), hold(home, arguments.dsn, need_airflow=False) as held:
        _check_idle(held)
        target = held.databases()
        if not arguments.replace:
            with engine_of(target.reader) as engine, engine.connect() as connection:
                check_empty(connection)
        backup.restore(target.owner, arguments.file)
        try:
            with engine_of(target.owner) as engine:
                upgrade(engine)
        except DBAPIError as error:
            line = str(error).splitlines()[0]
            raise LauncherError(f"restored, and not brought to the newest schema: {line}") from error
    print(f"restored {arguments.file} (schema {revision}, now {revisions()[-1]})")
    return Outcome.OK.exit_code


def _check_idle(held: Stack) -> None:
    """No run may be on its way into the database that is replaced."""
    state = held.state()
    unfinished = runs.unfinished(held.airflow()) if state and state.airflow_ready else []
    if unfinished:
        raise LauncherError(f"run {unfinished[0]} is in progress; wait for it to end")


def command_retention(home: Home, arguments: argparse.Namespace) -> int:
    """Drop what is old, or say what would be."""
    with told_in_one_line():
        for where, given in (("--traces-after", arguments.traces_after), ("--rounds-after", arguments.rounds_after)):
            span(given, where)  # refused before anything is started
        with hold(home, arguments.dsn, need_airflow=False) as held, engine_of(held.databases().owner) as engine:
            ages = arguments.traces_after, arguments.rounds_after
            try:
                gone = retain(engine, *ages, dry_run=arguments.dry_run)
            except DBAPIError as error:
                raise LauncherError(f"the results database: {str(error.orig).splitlines()[0]}") from error
    verb = "would go" if arguments.dry_run else "gone"
    for line in _table(gone):
        print(line)
    print(f"{verb}: traces older than {ages[0]}, rounds older than {ages[1]}", file=sys.stderr)
    return Outcome.OK.exit_code


def _table(gone: list[Dropped]) -> list[str]:
    return [f"{entry.table:<16}{entry.rows:>12} rows{entry.bytes / MIB:>12.1f} MiB" for entry in gone]

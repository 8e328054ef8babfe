"""Arguments of the commands about records and upkeep; standard library only, so that help needs no environment."""

from __future__ import annotations

import argparse
from pathlib import Path

FORMS = ("csv", "parquet")
TRACES_AFTER, ROUNDS_AFTER = "90d", "2y"
Commands = argparse._SubParsersAction  # the type that argparse hands out has no public name


def add_record_commands(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    """import, export and rebuild."""
    text = "store run records: this project's own, and the original ones as they are"
    bring = commands.add_parser(
        "import",
        parents=[server],
        help=text,
        description=f"{text[0].upper()}{text[1:]}. All files are checked before the first one is stored; a refusal "
        "names file, field, expected and found, and changes nothing. Safe to repeat.",
    )
    bring.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a record file")

    export = commands.add_parser(
        "export",
        parents=[server],
        help="the record file of a run, or the rows of a view as CSV or Parquet",
        description="Give away the record file of a run, byte for byte as it was loaded (it can be imported "
        "elsewhere), or the rows of a view.",
    )
    export.add_argument("run", nargs="?", metavar="RUN", help="run_id or dag_run_id, or the unique beginning of one")
    export.add_argument("--view", metavar="NAME", help="a view, such as nightly or round_trend")
    export.add_argument("--format", choices=FORMS, help="of the rows (default: by the suffix of FILE, else csv)")
    export.add_argument("--since", metavar="TIME", help="rows of this date (UTC) or time and later")
    export.add_argument("--device", metavar="NAME", help="rows of this device: uuid or model name")
    export.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: standard output)")

    rebuild = commands.add_parser(
        "rebuild",
        parents=[server],
        help="make an empty results database whole again from the record files",
        description="Bring back runs, decisions, judgements and alerts from the files in NIGHTLY_HOME/records into an "
        "empty results database (one that holds the first baselines only). A file that cannot be used is named and "
        "left out; the exit status is then 2.",
    )
    rebuild.add_argument(
        "--into",
        metavar="URI",
        help="another database, made where it is missing (postgresql://USER:PASSWORD@HOST/NAME)",
    )


def add_upkeep_commands(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    """backup, restore and retention."""
    backup = commands.add_parser(
        "backup",
        parents=[server],
        help="dump the results database to a file",
        description="Dump the results database (not Airflow's) to a file in pg_dump's custom format, which `restore` "
        "reads. It holds no passwords.",
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="where to write it")
    backup.add_argument("--replace", action="store_true", help="also over a file that is there")
    restore = commands.add_parser(
        "restore",
        parents=[server],
        help="bring back a backup",
        description="Put a backup into the results database, which must be empty (hold the first baselines only), and "
        "bring it to the newest schema. The database is as it was when anything fails.",
    )
    restore.add_argument("file", type=Path, metavar="FILE", help="a file made by `backup`")
    restore.add_argument("--replace", action="store_true", help="also when the database is not empty: that is lost")
    retention = commands.add_parser(
        "retention",
        parents=[server],
        help="drop old power traces, and roll up old rounds",
        description="Drop power traces after a time, and measurement rounds after a longer one, once their figures are "
        "summarised (run_energy). Runs, validations, checks and the rounds of baselines stay for good, and the record "
        "files keep everything. Happens when it is asked for and at no other time.",
    )
    retention.add_argument("--dry-run", action="store_true", help="change nothing: print what would go")
    retention.add_argument(
        "--traces-after", default=TRACES_AFTER, metavar="AGE", help=f"as 90d, 12w or 2y (default: {TRACES_AFTER})"
    )
    retention.add_argument(
        "--rounds-after", default=ROUNDS_AFTER, metavar="AGE", help=f"as 90d, 12w or 2y (default: {ROUNDS_AFTER})"
    )

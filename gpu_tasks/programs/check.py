"""``check``: a run record of this project against itself, by computing everything in it again."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.console import progress
from gpu_tasks.records import RunRecord, read_record


def run(arguments: Namespace) -> None:
    """Raise ``BadInput`` (``record_contradicts_itself``) naming the first field that does not follow from the rest."""
    record = read_record(arguments.record, RunRecord)
    check_run(record, str(arguments.record))
    progress(f"{arguments.record}: {len(record.validations)} draws and {len(record.rounds)} rounds say the same again")

"""``check``: a run record of this project against itself, by computing everything in it again."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.console import progress
from gpu_tasks.records import BadInput, RunRecord, read_record


def run(arguments: Namespace) -> None:
    """Raise ``BadInput`` (``record_contradicts_itself``) naming the first field that does not follow from the rest."""
    _check_kind(arguments.record)
    record = read_record(arguments.record, RunRecord)
    check_run(record, str(arguments.record))
    parts = f"{_counted(record.validations, 'draw')} and {_counted(record.rounds, 'round')}"
    if record.comparison is not None:
        parts += f", and a comparison of {_counted(record.comparison.blocks, 'block')},"
    progress(f"{arguments.record}: {parts} say the same again")


def _counted(parts: Sequence[object], word: str) -> str:
    return f"{len(parts)} {word}{'s' * (len(parts) != 1)}"


def _check_kind(path: Path) -> None:
    """Refuse the record of a part by its kind, before its first strange field is; the rest is for the reader."""
    try:
        kind = json.loads(path.read_bytes()).get("kind", "run")
    except (OSError, ValueError, RecursionError, AttributeError):
        return
    if kind != "run":
        raise BadInput("bad_record", f"{path}: $.kind: expected 'run', found {kind!r:.80}")

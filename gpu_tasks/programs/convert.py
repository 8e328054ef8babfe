"""``convert``: one of the original records, checked against itself, as a run record of this project."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.convert.forms import convert_file
from gpu_tasks.records import RunRecord


def run(arguments: Namespace) -> RunRecord:
    """The run record of ``arguments.record``; raises ``BadInput`` naming file and field."""
    return convert_file(arguments.record)

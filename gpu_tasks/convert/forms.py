"""Which form a file has, and its conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpu_tasks.convert.learner import convert_measurement, convert_qualification
from gpu_tasks.convert.qda import convert_qda
from gpu_tasks.records import FORMAT, BadInput, RunRecord, read_record

Converter = Callable[[dict[str, Any], str], RunRecord]

FORMS: Mapping[str, tuple[frozenset[str], Converter]] = {
    "qda": (frozenset({"verified_at_utc", "versions", "kernel", "rounds"}), convert_qda),
    "learner-measure": (frozenset({"workspace", "action", "scope", "result"}), convert_measurement),
    "learner-qualification": (frozenset({"metadata", "cuda_validation", "learner_sha256"}), convert_qualification),
}
"""Each form by the keys that no other has, and its converter: content and name of the file in, run record out."""


def convert_file(path: Path) -> RunRecord:
    """The run record that an original record makes.

    Raises ``BadInput`` naming file and field: ``unknown_form``, ``bad_record`` (a missing or unknown key, a value of
    another type) or ``record_contradicts_itself``.
    """
    content = read_record(path, dict[str, Any])
    if content.get("format") == FORMAT:
        raise BadInput("unknown_form", f"{path}: expected the form of an original record, found {FORMAT} already")
    for keys, converter in FORMS.values():
        if keys <= content.keys():
            return converter(content, str(path))
    told = ", ".join(sorted(content)[:8]) or "none"
    raise BadInput("unknown_form", f"{path}: expected the keys of {', '.join(FORMS)}, found {told[:200]}")

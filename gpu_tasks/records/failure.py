"""The record of a program that could not do its work: complete in form, empty of figures.

Written by the program itself, or for it by whoever ran it when it left none.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from gpu_tasks.records.codec import utc_now
from gpu_tasks.records.comparison import CandidateRecord, ComparisonRecord
from gpu_tasks.records.energy import TelemetryRecord
from gpu_tasks.records.memory import MemoryRecord
from gpu_tasks.records.outcomes import Outcome
from gpu_tasks.records.parts import ProvisionRecord, RoundRecord, ValidationRecord, VerifyRecord
from gpu_tasks.records.qualification import QualificationRecord
from gpu_tasks.records.reason import Reason
from gpu_tasks.records.run import RunRecord

RECORDS: Mapping[str, tuple[str, type[Any]]] = {
    "provision": ("provision", ProvisionRecord),
    "verify": ("verify", VerifyRecord),
    "qualify": ("qualification", QualificationRecord),
    "validate": ("validation", ValidationRecord),
    "telemetry": ("telemetry", TelemetryRecord),
    "measure": ("round", RoundRecord),
    "memory": ("memory", MemoryRecord),
    "candidate": ("candidate", CandidateRecord),
    "compare": ("comparison", ComparisonRecord),
    "summarise": ("run", RunRecord),
}
"""Which program writes which kind of record."""

_PLAIN = (str, int, int | None, str | None)


def failure_record(program: str, arguments: Mapping[str, Any], outcome: Outcome, reason: Reason) -> Any | None:
    """What is known from the program's arguments and nothing else: null, empty, zero or false, by the field's type.

    None for a program without a record, and for ``summarise``, whose record needs its parts. Only plain fields are
    taken from ``arguments``: one may share its name with a field and not its meaning (the payload of a verification
    is an identity, not a name).
    """
    kind, cls = RECORDS.get(program, (program, RunRecord))
    if cls is RunRecord:
        return None
    hints = typing.get_type_hints(cls)
    known = {name: value for name, value in arguments.items() if hints.get(name) in _PLAIN and value is not None}
    if cls is ProvisionRecord:
        known["requested_device"] = arguments.get("device") or "auto"
    if cls is ComparisonRecord:
        known |= {"energy_trust": "unavailable", "energy_trust_reason": reason, "not_measured": reason}
    known |= {"kind": kind, "created_at": utc_now(), "outcome": outcome, "reason": reason}
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: known[name] if name in known else _nothing(hints[name]) for name in names})


def _nothing(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return None
    return (typing.get_origin(hint) or hint)()

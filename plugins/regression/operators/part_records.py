"""The records of single tasks: which program writes which, and the one written for a program that left none."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from gpu_tasks.records import (
    Outcome,
    ProvisionRecord,
    Reason,
    RoundRecord,
    RunRecord,
    ValidationRecord,
    VerifyRecord,
    utc_now,
)

RECORDS: Mapping[str, tuple[str, type[Any]]] = {
    "provision": ("provision", ProvisionRecord),
    "verify": ("verify", VerifyRecord),
    "validate": ("validation", ValidationRecord),
    "measure": ("round", RoundRecord),
    "summarise": ("run", RunRecord),
}
NUMBERS = ("draw", "round")
INTEGERS = (*NUMBERS, "repeats")
PLAIN = (str, int, int | None)


def failure_record(program: str, options: Mapping[str, str], outcome: Outcome, reason: Reason) -> Any | None:
    """A record complete in form and empty of figures.

    None for ``summarise``, whose record needs its parts, and for a draw or round that is no number.
    """
    kind, cls = RECORDS[program]
    if cls is RunRecord or not all(given.isdecimal() for name, given in options.items() if name in INTEGERS):
        return None
    hints = typing.get_type_hints(cls)
    given = {name: int(text) if name in INTEGERS else text for name, text in options.items()}
    defaults = {"workload": "qda", "requested_device": given.get("device", "auto"), "arm": "candidate"}
    # An option and a field may share a name and not a meaning: the payload of a verification is an identity.
    known: dict[str, Any] = defaults | {name: value for name, value in given.items() if hints.get(name) in PLAIN}
    known |= {"kind": kind, "created_at": utc_now(), "outcome": outcome, "reason": reason}
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: known[name] if name in known else _nothing(hints[name]) for name in names})


def _nothing(hint: Any) -> Any:
    """Nothing of a field's type."""
    if isinstance(hint, types.UnionType):
        return None
    return (typing.get_origin(hint) or hint)()

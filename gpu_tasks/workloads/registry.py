"""Workloads by name: a folder of this package that has a module ``declaration``."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from gpu_tasks.records import DEVICE_KINDS, BadInput, TaskError, one_line
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.declaration import Declaration

FOLDER = Path(__file__).resolve().parent
MODULE = "declaration"
NAME = r"[a-z][a-z0-9_]{0,63}"  # a folder's, a module's, and part of the id of a DAG


def workload_names() -> list[str]:
    """Names of all workloads, sorted; none of them is imported."""
    found = (path.parent.name for path in FOLDER.glob(f"*/{MODULE}.py"))
    return sorted(name for name in found if re.fullmatch(NAME, name))


def declared(name: str) -> Declaration:
    """What the workload called ``name`` says of itself.

    Raises ``BadInput``: ``unknown_workload``, or ``bad_declaration`` for one that cannot be used.
    """
    names = workload_names()
    if name not in names:
        raise BadInput("unknown_workload", f"--workload: expected one of {', '.join(names)}, found {name!r:.80}")
    where = f"gpu_tasks/workloads/{name}/{MODULE}.py"
    try:
        found = getattr(import_module(f"gpu_tasks.workloads.{name}.{MODULE}"), "DECLARATION", None)
    except TaskError:
        raise
    except Exception as error:
        what = one_line(f"{type(error).__name__}: {error}")
        raise BadInput("bad_declaration", f"{where}: expected to import it, found {what}") from error
    if not isinstance(found, Declaration) or found.name != name:
        what = repr(found.name) if isinstance(found, Declaration) else type(found).__name__
        raise BadInput("bad_declaration", f"{where}: DECLARATION: expected the Declaration of {name!r}, found {what}")
    strange = sorted(found.devices.keys() - set(DEVICE_KINDS))
    if strange:
        expected = ", ".join(DEVICE_KINDS)
        raise BadInput("bad_declaration", f"{where}: devices: expected some of {expected}, found {strange[0]!r}")
    if found.without_gpu not in found.devices or not found.ptx_kinds <= found.devices.keys():
        asked = ", ".join(sorted({found.without_gpu, *found.ptx_kinds}))
        known = ", ".join(sorted(found.devices)) or "none"
        raise BadInput("bad_declaration", f"{where}: devices: expected {asked} among them, found {known}")
    return found


def get_workload(name: str) -> Workload:
    """The workload called ``name``; raises as ``declared`` does."""
    return declared(name).make()


def default_payload(name: str) -> str:
    """The set of draws that is meant where none is named; raises as ``declared`` does."""
    return declared(name).payload

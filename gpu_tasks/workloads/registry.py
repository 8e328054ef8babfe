"""Workloads by name."""

from __future__ import annotations

from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import DrawnWorkload, Workload
from gpu_tasks.workloads.learner import Learner
from gpu_tasks.workloads.qda import Qda

_WORKLOADS: dict[str, type[Workload]] = {"qda": Qda}
_DRAWN: dict[str, type[DrawnWorkload]] = {"qda": Qda, "learner": Learner}


def get_workload(name: str) -> Workload:
    """The workload called ``name``, which devices run kernels of; raises ``BadInput`` (``unknown_workload``)."""
    if name not in _WORKLOADS:
        raise _unknown(name, list(_WORKLOADS))
    return _WORKLOADS[name]()


def get_drawn_workload(name: str) -> DrawnWorkload:
    """The workload called ``name``, which sets of draws are made for; raises ``BadInput`` (``unknown_workload``)."""
    if name not in _DRAWN:
        raise _unknown(name, list(_DRAWN))
    return _DRAWN[name]()


def _unknown(name: str, known: list[str]) -> BadInput:
    return BadInput("unknown_workload", f"--workload: expected one of {', '.join(sorted(known))}, found {name!r}")

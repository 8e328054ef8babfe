"""Workloads by name."""

from __future__ import annotations

from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.learner import Learner
from gpu_tasks.workloads.qda import Qda

_WORKLOADS: dict[str, type[Workload]] = {"qda": Qda, "learner": Learner}


def get_workload(name: str) -> Workload:
    """The workload called ``name``; raises ``BadInput`` (``unknown_workload``)."""
    if name not in _WORKLOADS:
        known = ", ".join(sorted(_WORKLOADS))
        raise BadInput("unknown_workload", f"--workload: expected one of {known}, found {name!r}")
    return _WORKLOADS[name]()

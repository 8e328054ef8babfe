"""Whether this learner on this device computes what ordinary autograd and SGD do: the checks of the original records.

Two parts: the reversible core by itself (``core_checks``, on the CPU whatever the device), and whole tasks step by step
(``training_checks``, on the device).

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch

from gpu_tasks.records import QualificationCase
from gpu_tasks.workloads.learner.core_checks import CoreCheck, check_core
from gpu_tasks.workloads.learner.torch_settings import check_settings, one_thread
from gpu_tasks.workloads.learner.training_checks import ATOL, RTOL, TrainingCase, check_training

CORE_DTYPES = ("float64", "float32")
DEPTHS = (1, 2)


@dataclass(frozen=True)
class Qualification:
    """Everything that was checked for ``device``.

    ``checks`` counts those of the training cases; a core check is one row of ``core``. ``maximum_abs_error`` is the
    largest difference that a tolerance was asked for.
    """

    passed: bool
    device: str
    captured: bool
    core: list[CoreCheck]
    checks: int
    maximum_abs_error: float
    tolerance: dict[str, float]
    cases: list[TrainingCase]


def qualify(device: str = "cpu", *, captured: bool | None = None) -> Qualification:
    """Check core and training on ``device``; ``captured`` runs the tasks as CUDA graphs (None: on a GPU yes).

    A failed check is a result, not an error. Raises ``BadInput`` as ``check_settings`` does.
    """
    kind = device.partition(":")[0]
    check_settings(kind, repeatable=True)
    as_graphs = kind != "cpu" if captured is None else captured
    with one_thread():
        core = [check_core(dtype, depth) for dtype in CORE_DTYPES for depth in DEPTHS]
        cases = [check_training(depth, device, captured=as_graphs) for depth in DEPTHS]
    return Qualification(
        passed=all(check.passed for check in core) and all(case.passed for case in cases),
        device="cpu" if kind == "cpu" else torch.cuda.get_device_name(device),
        captured=as_graphs,
        core=core,
        checks=sum(case.checks for case in cases),
        maximum_abs_error=max(case.maximum_abs_error for case in cases),
        tolerance={"atol": ATOL, "rtol": RTOL},
        cases=cases,
    )


def as_cases(found: Qualification) -> list[QualificationCase]:
    """Every row of the core and every training case as records have them, each with its figures."""
    core = [
        QualificationCase(
            name=f"core {check.dtype.removeprefix('torch.')}, depth {check.depth}",
            passed=check.passed,
            checks=1,
            failures=[] if check.passed else ["forward, gradients, inverse or what is kept"],
            figures=dataclasses.asdict(check),
        )
        for check in found.core
    ]
    training = [
        QualificationCase(
            f"training, depth {case.depth}", case.passed, case.checks, case.failures, dataclasses.asdict(case)
        )
        for case in found.cases
    ]
    return [*core, *training]

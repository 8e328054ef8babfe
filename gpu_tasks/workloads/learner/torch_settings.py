"""torch as the learner needs it: there, in full precision, and repeatable to the bit where that is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gpu_tasks.records import BadInput, InfrastructureFailure, LibrarySetting, one_line

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
REPEATABLE_WORKSPACES = (":4096:8", ":16:8")
"""Workspaces with which cuBLAS gives the same bits whatever streams are in use, as its manual has them."""

CHOSEN_WORKSPACE = ":16:8"
"""That of the original measurement, where nobody has set one: a fifth of the other's memory, the same predictions."""

_chosen_here: list[str] = []


def require_torch() -> Any:
    """The module ``torch``; raises ``InfrastructureFailure`` where it cannot be had, and says how it can.

    ``torch_missing``: there is none. ``torch_broken``: there is one that cannot be imported, or only in part, as after
    an installation that was stopped.
    """
    try:
        torch = import_module("torch")
        import_module("torch.nn")
    except Exception as error:  # whatever a half-installed library may raise
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        code, found = ("torch_missing", "none") if missing else ("torch_broken", "a broken one")
        expected = f"torch: expected in an environment that runs the learner, found {found}"
        message = f"{expected} ({one_line(str(error))}); make it by `provision --environment learner`"
        raise InfrastructureFailure(code, message) from None
    return torch


def choose_workspace() -> None:
    """Set ``CUBLAS_WORKSPACE_CONFIG`` where it is not set; to be called before anything is computed on a GPU.

    cuBLAS looks at it when it is first used, and at no other time.
    """
    if not os.environ.get(WORKSPACE):
        os.environ[WORKSPACE] = CHOSEN_WORKSPACE
        _chosen_here.append(CHOSEN_WORKSPACE)


def settings() -> list[LibrarySetting]:
    """What torch and cuBLAS are set to in this process, as far as a result depends on it."""
    torch = require_torch()
    workspace = os.environ.get(WORKSPACE) or None
    origin = "unset" if workspace is None else "program" if workspace in _chosen_here else "environment"
    found = {
        "torch.are_deterministic_algorithms_enabled": torch.are_deterministic_algorithms_enabled(),
        "torch.get_float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.backends.cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
        "threads of a task on a CPU": 1,
    }
    own = [LibrarySetting(name, str(value), "program") for name, value in found.items()]
    return [LibrarySetting(WORKSPACE, workspace, origin), *own]


def set_repeatable() -> None:
    """Set this process to what ``check_settings`` asks, but for ``CUBLAS_WORKSPACE_CONFIG``."""
    torch = require_torch()
    torch.use_deterministic_algorithms(True)
    # The filling would be work of its own in every captured graph, and the task reads nothing it has not written.
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def check_settings(device: str, *, repeatable: bool) -> None:
    """Raise ``BadInput`` where the library is set so that ``device`` (``cpu``, ``cuda``) would compute otherwise.

    ``reduced_precision``: a product of float32 may be made of shorter numbers. ``not_repeatable``: two runs may give
    different bits; looked for only where ``repeatable`` asks for the same.
    """
    torch = require_torch()
    precision = torch.get_float32_matmul_precision()
    if precision != "highest":
        _refuse("reduced_precision", "torch.get_float32_matmul_precision()", "highest", precision)
    if device != "cpu":
        for name, holder in (("cuda.matmul", torch.backends.cuda.matmul), ("cudnn", torch.backends.cudnn)):
            if holder.allow_tf32:
                _refuse("reduced_precision", f"torch.backends.{name}.allow_tf32", "False", "True")
    if not repeatable:
        return
    deterministic = "torch.are_deterministic_algorithms_enabled()"
    if not torch.are_deterministic_algorithms_enabled():
        _refuse("not_repeatable", deterministic, "True, for repeatability to the bit", "False")
    if torch.is_deterministic_algorithms_warn_only_enabled():
        _refuse("not_repeatable", deterministic, "True with errors", "True with warnings only")
    if device == "cpu":
        return
    if torch.backends.cudnn.benchmark:
        _refuse("not_repeatable", "torch.backends.cudnn.benchmark", "False, for repeatability to the bit", "True")
    workspace = os.environ.get(WORKSPACE)
    if workspace not in REPEATABLE_WORKSPACES:
        expected = f"one of {', '.join(REPEATABLE_WORKSPACES)}, for repeatability to the bit"
        _refuse("not_repeatable", WORKSPACE, expected, workspace or "nothing")


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: the products are so small that handing them out costs more than they do."""
    torch = require_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _refuse(code: str, where: str, expected: str, found: str) -> None:
    raise BadInput(code, f"{where}: expected {expected}, found {found}")

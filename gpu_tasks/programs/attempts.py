"""Another try where the counter says that it is not ready: it may be a moment later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from gpu_tasks.programs.console import progress
from gpu_tasks.records import Reason, TaskError

T = TypeVar("T")
ATTEMPTS = 3
WAIT_S = 1.0


def repeated(what: str, attempt: Callable[[list[Reason]], T], wait: Callable[[float], None] = time.sleep) -> T:
    """``attempt`` until it succeeds, three times at most, a second apart; it is told why the earlier ones did not.

    Only errors with ``transient`` true are worth another try; every other one is raised, and so is the last.
    """
    earlier: list[Reason] = []
    while True:
        try:
            return attempt(earlier)
        except TaskError as error:
            if not getattr(error, "transient", False) or len(earlier) + 1 >= ATTEMPTS:
                raise
            earlier = [*earlier, Reason(error.code, error.message)]
            wait(WAIT_S)
            progress(f"{what}: tried again: {error.message}")

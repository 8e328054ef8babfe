"""What Zeus reads on the boards of ``tests.benchmarks.energy``: errors of its window measurement, as JSON lines.

    PYTHON -m tests.benchmarks.zeus_window TICK_PERIOD_S DRIFT SEED FIRST COUNT

``PYTHON`` is an interpreter that has zeus (and numpy). It is ``ZeusMonitor`` itself that measures, unchanged; the
module ``pynvml`` that it imports is nvidia-ml-py with the functions of the fake NVML, and its clock the board's. Each
window is idle, work or idle again, as long as a protocol of this project has them, and the energy above idle is
computed from the three ``Measurement``s with the formula of the classic figure.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
from types import ModuleType
from typing import Any, NoReturn

from gpu_tasks.energy.protocols import AUDITED, CLASSIC, CLASSIC_IDLE_S, Plan
from gpu_tasks.energy.simulation.nvml import FakeNvml, FakeNVMLError
from tests.benchmarks.energy_board import Board, seed_of

FIGURES = {"Zeus, windows of classic": CLASSIC, "Zeus, windows of audited": AUDITED}


class BoardNvml(ModuleType):
    """``pynvml`` over one board at a time (``show``); constants and types are those of nvidia-ml-py."""

    NVMLError = FakeNVMLError

    def __init__(self) -> None:
        super().__init__("pynvml")
        self._real = importlib.import_module("pynvml")
        self._fake: Any = None

    def show(self, board: Board) -> None:
        """Calls are about this board from now on."""
        self._fake = FakeNvml(board.gpu)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvml"):
            return getattr(self._fake, name, _not_supported)
        return getattr(self._real, name)


def _not_supported(*_arguments: object) -> NoReturn:
    raise FakeNVMLError(FakeNvml.NVML_ERROR_NOT_SUPPORTED)


def main() -> None:
    """One line for each board, its errors in mJ a replay."""
    period_s, drift, seed, first, count = sys.argv[1:]
    nvml = BoardNvml()
    sys.modules["pynvml"] = nvml
    for number in range(int(first), int(first) + int(count)):
        errors = {}
        for name, plan in FIGURES.items():
            board = Board(seed_of(seed, number), period_s=float(period_s), drift=drift)
            around = board.look()
            # A program begins anywhere within a tick, not with the step that the look ended with.
            board.instruments.clock.sleep(board.rng.uniform(0.0, around.tick_period_s))
            nvml.show(board)
            errors[name] = _window_mj(board, plan) - board.gpu.replay_mj
        print(json.dumps(errors))


def _window_mj(board: Board, plan: Plan) -> float:
    """Energy above idle of one replay by three windows of a new ``ZeusMonitor``."""
    import zeus.device.gpu  # type: ignore[import-not-found]
    import zeus.monitor.energy  # type: ignore[import-not-found]

    clock, repeats = board.instruments.clock, board.repeats_of(plan)
    zeus.monitor.energy.time = clock.now
    zeus.device.gpu._gpus = None  # it keeps the GPUs of the first monitor for all others
    monitor = zeus.monitor.energy.ZeusMonitor(gpu_indices=[0], cpu_indices=[])

    def window(key: str, work: Any) -> Any:
        # Replays here return when the last one is done, so that there is nothing to synchronise with.
        monitor.begin_window(key, sync_execution=False)
        work()
        return monitor.end_window(key, sync_execution=False)

    idle_s = plan.idle_s if plan.settle_s else CLASSIC_IDLE_S
    clock.sleep(plan.settle_s)
    before = window("idle before", lambda: clock.sleep(idle_s))
    work = window("work", lambda: board.replay(repeats))
    clock.sleep(plan.settle_s)
    after = window("idle after", lambda: clock.sleep(idle_s))
    idle_w = statistics.mean(measured.total_energy / measured.time for measured in (before, after))
    return 1000 * float(work.total_energy - idle_w * work.time) / repeats


if __name__ == "__main__":
    main()

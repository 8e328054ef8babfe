"""One simulated board on which two kernels take turns, measured as the programs measure: for ``comparison``."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from functools import cache

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.simulated import SimulatedDevice
from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.energy.rounds import Bench, Limits, measure_energy
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.programs.interleaving import ARM, BLOCKS_A_ROUND
from gpu_tasks.programs.rounds import blank_round, make_ready, wrong_output_after
from gpu_tasks.records import Effects, RoundRecord
from gpu_tasks.workloads.qda.workload import Qda
from regression.detectors.paired import BlockPair

ARGUMENTS = Namespace(workload="qda", payload="original", inject=None)
NO_LIMITS = Limits(power_w=None, sm_clock_mhz=None)


@dataclass(frozen=True)
class Pair:
    """Both kernels in one block: mJ and ms a replay."""

    energy: BlockPair
    time: BlockPair


def turns(seed: int, drift: str, effects: Effects, blocks: int, first_round: int) -> list[Pair]:
    """So many blocks on a board of its own, in rounds of four; ``effects`` are those of the candidate.

    Rounds are numbered from ``first_round`` on, and the order within their blocks follows from their number.
    """
    gpu = SimulatedGpu(seed=seed, drift=drift, effects=effects)
    candidate, pinned = SimulatedDevice(_emulated(), gpu), SimulatedDevice(_emulated(), gpu)
    for device in (candidate, pinned):
        make_ready(device, _draw())
    bench = Bench(candidate, pinned, candidate.instruments(), None, NO_LIMITS, _silent)  # type: ignore[arg-type]
    found = block_figures([_round(bench, first_round + number) for number in range(blocks // BLOCKS_A_ROUND)])
    return [
        Pair(
            energy=BlockPair(block.candidate_mj, block.pinned_mj, block.valid),
            time=BlockPair(block.candidate_cuda_ms, block.pinned_cuda_ms, block.valid),
        )
        for block in found
    ]


def _round(bench: Bench, number: int) -> RoundRecord:
    blank = blank_round(
        *(ARGUMENTS, bench.device),
        number=number,
        arm=ARM,
        protocol="interleaved",
        repeats=None,
        earlier=[],
    )
    devices = [device for device in (bench.device, bench.baseline) if device is not None]
    return measure_energy(bench, blank, BLOCKS_A_ROUND, lambda: wrong_output_after(devices, _draw()))


class _Remembered(EmulatedQda):
    """The emulator, run once: all kernels of this benchmark leave the same predictions behind."""

    def __init__(self) -> None:
        super().__init__(Qda(), check_races=False)
        draw = _draw()
        super().load(draw.x, draw.labels, draw.q)
        super().eager()
        super().capture()

    def load(self, *_: object) -> None:
        """Nothing: it is the same draw."""

    def poison_scratch(self) -> None:
        """Nothing: what is there stays."""

    eager = capture = poison_scratch

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Nothing either: the simulated board has times of its own."""
        return ReplayTiming(None, None)


@cache
def _emulated() -> _Remembered:
    return _Remembered()


@cache
def _draw() -> Draw:
    return Payload("original", Qda()).load(0)


def _silent(_text: str, _seconds: float) -> None:
    """Progress of a round, which nobody watches here."""

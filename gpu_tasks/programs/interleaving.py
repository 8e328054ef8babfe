"""Interleaved rounds of two open devices, until the blocks that were asked for are there."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass

from gpu_tasks.devices.base import Device
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.rounds import Bench, Limits, measure_energy
from gpu_tasks.payload.draws import Draw
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import Phases, progress
from gpu_tasks.programs.rounds import blank_round, make_ready, wrong_output_after
from gpu_tasks.records import Outcome, Reason, RoundRecord, TaskError, TelemetryRecord

BLOCKS_A_ROUND = 4
"""Blocks between two looks at the device: about two minutes, of which a disturbance costs no more."""

ARM = "comparison"


@dataclass(frozen=True)
class Pair:
    """Two open devices on one board, what energy is measured with there, and the draw that both run."""

    candidate: Device
    pinned: Device
    instruments: Instruments
    draw: Draw

    @property
    def devices(self) -> tuple[Device, Device]:
        """Both."""
        return self.candidate, self.pinned


def measure_blocks(arguments: Namespace, pair: Pair, telemetry: TelemetryRecord | None) -> list[RoundRecord]:
    """Rounds of four blocks, the last of what is left; an invalid one stays as it is and is not made up for.

    A round that could not be made is a record with its reason; after an infrastructure failure there are no more.
    Raises ``InvalidMeasurement`` when the output is wrong before the first round.
    """
    for device in pair.devices:
        make_ready(device, pair.draw)
    rounds: list[RoundRecord] = []
    for number, blocks in enumerate(sizes_of_rounds(arguments.blocks)):
        rounds.append(_round(arguments, pair, telemetry, number=number, blocks=blocks))
        if rounds[-1].outcome is Outcome.INFRASTRUCTURE_FAILURE:
            break
    return rounds


def sizes_of_rounds(blocks: int) -> list[int]:
    """How many blocks each round has, the last one what is left."""
    return [min(BLOCKS_A_ROUND, blocks - first) for first in range(0, blocks, BLOCKS_A_ROUND)]


def _round(
    arguments: Namespace, pair: Pair, telemetry: TelemetryRecord | None, *, number: int, blocks: int
) -> RoundRecord:
    name = f"comparison, round {number}"
    blank = blank_round(
        arguments, pair.candidate, number=number, arm=ARM, protocol="interleaved", repeats=None, earlier=[]
    )
    limits = Limits(arguments.power_limit, arguments.sm_clock_floor)
    with Phases(name) as say:
        bench = Bench(pair.candidate, pair.pinned, pair.instruments, telemetry, limits, say)

        def attempt(earlier: list[Reason]) -> RoundRecord:
            record = dataclasses.replace(blank, earlier_attempts=earlier)
            return measure_energy(bench, record, blocks, lambda: wrong_output_after(pair.devices, pair.draw))

        try:
            record = repeated(name, attempt, pair.instruments.clock.sleep)
        except TaskError as error:
            return dataclasses.replace(blank, outcome=error.outcome, reason=Reason(error.code, error.message))
    if record.reason is not None:
        progress(f"{name}: {record.reason.code}: {record.reason.message}")
    return record

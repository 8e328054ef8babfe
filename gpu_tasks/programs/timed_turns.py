"""Two open devices that take turns where there is no energy counter: times need none.

A block is candidate, pinned, pinned, candidate, or the other way round in every other block: a steady drift of the
clocks cancels within a block, and who comes first within two. Nothing idles in between: there is no power to settle.
"""

from __future__ import annotations

import dataclasses
import math
from argparse import Namespace

from gpu_tasks.devices.base import Device
from gpu_tasks.energy.blocks import candidate_ms
from gpu_tasks.energy.interleaved import BASELINE, CANDIDATE
from gpu_tasks.energy.windows import warmed_up
from gpu_tasks.payload.draws import Draw
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.interleaving import ARM, sizes_of_rounds
from gpu_tasks.programs.rounds import blank_round, make_ready, wrong_output_after
from gpu_tasks.records import Outcome, Reason, RoundRecord, TaskError, TimedTurn

TURN_S = 2.0
"""As long as the work of a segment under a counter."""
WARM_UP_S = 4.0
"""Of either kernel, before each round: nothing says here whether the temperature still rises."""


def measure_turns(
    arguments: Namespace, candidate: Device, pinned: Device, draw: Draw, no_counter: Reason
) -> tuple[list[RoundRecord], list[TimedTurn]]:
    """Rounds of four blocks and the turns that they are made of; ``no_counter`` is why they have no energy.

    A round that could not be made is a record with its reason; after an infrastructure failure there are no more.
    Raises ``InvalidMeasurement`` when the output is wrong before the first round.
    """
    devices = {CANDIDATE: candidate, BASELINE: pinned}
    for device in devices.values():
        make_ready(device, draw)
    rounds: list[RoundRecord] = []
    turns: list[TimedTurn] = []
    for number, blocks in enumerate(sizes_of_rounds(arguments.blocks)):
        blank = blank_round(
            arguments, candidate, number=number, arm=ARM, protocol="interleaved", repeats=None, earlier=[]
        )
        record, taken = _round(dataclasses.replace(blank, energy_reason=no_counter), devices, draw, blocks)
        rounds.append(record)
        turns += taken
        if record.outcome is Outcome.INFRASTRUCTURE_FAILURE:
            break
    return rounds, turns


def _round(
    blank: RoundRecord, devices: dict[str, Device], draw: Draw, blocks: int
) -> tuple[RoundRecord, list[TimedTurn]]:
    name = f"comparison, round {blank.round}"
    progress(f"{name}: {blocks} blocks of {4 * TURN_S:.0f} s, without an energy counter: times alone")

    def attempt(earlier: list[Reason]) -> tuple[RoundRecord, list[TimedTurn]]:
        turns, no_device_ms = _turns(blank.round, devices, blocks)
        wrong = wrong_output_after(list(devices.values()), draw)
        record = dataclasses.replace(
            blank,
            earlier_attempts=earlier,
            valid=wrong is None,
            outcome=Outcome.INVALID_MEASUREMENT if wrong else Outcome.OK,
            reason=wrong,
            cuda_ms=candidate_ms(turns),
            cuda_ms_reason=no_device_ms,
        )
        return record, turns

    try:
        record, turns = repeated(name, attempt, devices[CANDIDATE].clock.sleep)
    except TaskError as error:
        return dataclasses.replace(blank, outcome=error.outcome, reason=Reason(error.code, error.message)), []
    if record.reason is not None:
        progress(f"{name}: {record.reason.code}: {record.reason.message}")
    return record, turns


def _turns(number: int, devices: dict[str, Device], blocks: int) -> tuple[list[TimedTurn], Reason | None]:
    """The turns of one round, warmed up before, and why the devices have no time of their own where they have none."""
    replay_s = {arm: warmed_up(device, WARM_UP_S) for arm, device in devices.items()}
    turns, no_device_ms = [], None
    for block in range(blocks):
        half = [CANDIDATE, BASELINE] if block % 2 == 0 else [BASELINE, CANDIDATE]
        for arm in (*half, *reversed(half)):
            device = devices[arm]
            repeats = max(1, math.ceil(TURN_S / replay_s[arm]))
            began = device.clock.now()
            timing = device.replay(repeats)
            active_s = device.clock.now() - began
            turns.append(TimedTurn(number, block, arm, repeats, active_s, timing.device_ms_per_replay))
            no_device_ms = no_device_ms or timing.reason
    return turns, no_device_ms

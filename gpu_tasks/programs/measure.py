"""``measure``: one round of replays on the benchmark draw, its output verified before and after."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

import numpy as np

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.registry import open_device
from gpu_tasks.energy.figures import RoundFigures, round_figures
from gpu_tasks.energy.windows import ActiveWindow, active_window, default_repeats, seconds_per_replay
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.records import (
    PROTOCOLS,
    BadInput,
    DeviceFingerprint,
    InvalidMeasurement,
    Outcome,
    Reason,
    RoundRecord,
    utc_now,
)
from gpu_tasks.workloads.registry import get_workload

ANNOUNCED_S = 2.0
"""A window longer than this is announced, so that nobody takes a busy program for a stuck one."""


def run(arguments: Namespace) -> RoundRecord:
    """Measure one round; raises ``InvalidMeasurement`` when the output is wrong before the window."""
    _check(arguments)
    workload = get_workload(arguments.workload)
    payload = Payload(arguments.payload, workload)
    draw = payload.load(workload.benchmark_draw)
    with closing(open_device(arguments.device, workload, kernel_choice(arguments))) as device:
        device.load(draw.x, draw.labels, draw.q)
        device.capture()
        device.poison_scratch()
        device.replay()
        before = output_disagreement(device, draw, "before")
        if before is not None:
            raise InvalidMeasurement(before.code, before.message)
        replay_s = seconds_per_replay(device)
        repeats = arguments.repeats or default_repeats(replay_s)
        _announce(arguments.round, repeats, repeats * replay_s)
        window = active_window(device, repeats)
        after = output_disagreement(device, draw, "after")
        fingerprint = device.fingerprint()
    return _record(arguments, fingerprint, repeats, window, after)


def output_disagreement(device: Device, draw: Draw, when: str) -> Reason | None:
    """Why the device's latest output cannot vouch for a round, or None when it equals the frozen predictions."""
    wrong = np.flatnonzero(device.predictions() != draw.frozen_predictions)
    if not len(wrong):
        return None
    return Reason(
        "output_not_verified",
        f"{len(wrong)} of {len(draw.q)} predictions disagree {when} the round, the first at index {wrong[0]}",
    )


def _check(arguments: Namespace) -> None:
    if arguments.round < 0:
        raise BadInput("bad_round", f"--round: expected 0 or more, found {arguments.round}")
    if arguments.repeats is not None and arguments.repeats < 1:
        raise BadInput("bad_repeats", f"--repeats: expected 1 or more, found {arguments.repeats}")
    if arguments.protocol not in PROTOCOLS:
        raise BadInput(
            "unknown_protocol", f"--protocol: expected one of {', '.join(PROTOCOLS)}, found {arguments.protocol!r}"
        )


def _announce(number: int, repeats: int, seconds: float) -> None:
    if seconds > ANNOUNCED_S:
        progress(f"round {number}: {repeats} replays, about {seconds:.0f} s")


def _record(
    arguments: Namespace, device: DeviceFingerprint, repeats: int, window: ActiveWindow, wrong: Reason | None
) -> RoundRecord:
    figures: RoundFigures = round_figures(repeats, window.start, window.end, None, None)
    return RoundRecord(
        kind="round",
        created_at=utc_now(),
        outcome=Outcome.INVALID_MEASUREMENT if wrong else Outcome.OK,
        reason=wrong,
        workload=arguments.workload,
        payload=arguments.payload,
        device_uuid=device.uuid,
        round=arguments.round,
        arm=arguments.arm,
        protocol=arguments.protocol,
        repeats=repeats,
        valid=wrong is None,
        cuda_ms=window.device_ms,
        wall_ms=figures.wall_ms,
        gross_mj=figures.gross_mj,
        adjusted_mj=figures.adjusted_mj,
        idle_before_w=figures.idle_before_w,
        idle_after_w=figures.idle_after_w,
        average_power_w=figures.average_power_w,
        measurement_start=window.start,
        measurement_end=window.end,
        idle_before=None,
        idle_after=None,
        cuda_ms_reason=window.no_device_ms,
        energy_reason=device.energy_counter_reason,
    )

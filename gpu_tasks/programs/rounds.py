"""What the programs that measure rounds share: the device made ready, what was learnt before, the empty record."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpu_tasks.devices.base import Device
from gpu_tasks.payload.draws import Draw
from gpu_tasks.programs.bounds import check_telemetry
from gpu_tasks.records import (
    BadInput,
    InvalidMeasurement,
    Outcome,
    Reason,
    RoundRecord,
    TelemetryRecord,
    read_record,
    utc_now,
)


def make_ready(device: Device, draw: Draw) -> None:
    """Load, capture and replay; raises ``InvalidMeasurement`` when the output is wrong before the round."""
    device.load(draw.x, draw.labels, draw.q)
    device.capture()
    device.poison_scratch()
    device.replay()
    wrong = output_disagreement(device, draw, "before")
    if wrong is not None:
        raise InvalidMeasurement(wrong.code, wrong.message)


def output_disagreement(device: Device, draw: Draw, when: str) -> Reason | None:
    """Why the device's latest output cannot vouch for a round, or None when it equals the frozen predictions."""
    wrong = np.flatnonzero(device.predictions() != draw.frozen_predictions)
    if not len(wrong):
        return None
    return Reason(
        "output_not_verified",
        f"{len(wrong)} of {len(draw.q)} predictions disagree {when} the round, the first at index {wrong[0]}",
    )


def wrong_output_after(devices: Sequence[Device], draw: Draw) -> Reason | None:
    """The same of the first device whose output is wrong after the round."""
    return next((wrong for device in devices if (wrong := output_disagreement(device, draw, "after"))), None)


def read_telemetry(path: Path | None) -> TelemetryRecord | None:
    """What was learnt of the counter before the rounds; a failed or missing record is no reason not to measure."""
    if path is None or not path.exists():
        return None
    record = read_record(path, TelemetryRecord)
    check_telemetry(record, path)
    return record


def check_same_device(telemetry: TelemetryRecord | None, path: Path | None, uuid: str) -> None:
    """Refuse what was learnt of another device's counter; raises ``BadInput``."""
    if telemetry is not None and telemetry.device_uuid not in (None, uuid):
        message = f"{path}: $.device_uuid: expected {uuid}, found {telemetry.device_uuid}"
        raise BadInput("telemetry_of_another_device", message)


def blank_round(
    arguments: Namespace,
    device: Device,
    *,
    number: int,
    arm: str,
    protocol: str,
    repeats: int | None,
    earlier: Sequence[Reason],
) -> RoundRecord:
    """The round's record before anything was measured: what was asked for, and on what."""
    return RoundRecord(
        kind="round",
        created_at=utc_now(),
        outcome=Outcome.OK,
        reason=None,
        workload=arguments.workload,
        payload=arguments.payload,
        device_uuid=device.fingerprint().uuid,
        round=number,
        arm=arm,
        protocol=protocol,
        repeats=repeats,
        valid=False,
        cuda_ms=None,
        wall_ms=None,
        gross_mj=None,
        adjusted_mj=None,
        idle_before_w=None,
        idle_after_w=None,
        average_power_w=None,
        measurement_start=None,
        measurement_end=None,
        idle_before=None,
        idle_after=None,
        cuda_ms_reason=None,
        energy_reason=None,
        kernel_ptx_sha256=device.kernel().ptx_sha256,
        inject=arguments.inject,
        earlier_attempts=list(earlier),
    )

"""One draw on an open device, eager and as a replayed graph, against the frozen predictions."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import Device
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.payload.npz import array_bytes
from gpu_tasks.records import Outcome, PredictionMismatch, Reason, ValidationRecord, utc_now
from gpu_tasks.workloads.base import Workload

REPLAYS = 3


@dataclass(frozen=True)
class Execution:
    """What the device did with one draw."""

    predictions: npt.NDArray[np.int32]
    replays_equal_eager: list[bool]
    floats_equal_reference: bool | None


@dataclass(frozen=True)
class ChosenDraw:
    """A draw to validate, and the one whose inputs the graph is captured on: the next of the set."""

    number: int
    draw: Draw
    captured: int
    captured_on: Draw


def chosen_draw(payload: Payload, number: int) -> ChosenDraw:
    """Both draws, read and checked; raises what ``Payload.load`` raises."""
    other = (number + 1) % len(payload.manifest.draws)
    return ChosenDraw(number, payload.load(number), other, payload.load(other))


def validate_draw(device: Device, workload: Workload, payload: Payload, chosen: ChosenDraw) -> ValidationRecord:
    """The record of one draw; its outcome is ``regression`` when anything disagrees. Raises what the device raises."""
    started = time.monotonic()
    number, draw, entry = chosen.number, chosen.draw, payload.manifest.draw(chosen.number)
    execution = execute(device, workload, draw, chosen.captured_on)
    mismatches = _mismatches(draw, execution.predictions)
    reason = _reason(number, workload.query_samples, mismatches, execution.replays_equal_eager)
    return ValidationRecord(
        kind="validation",
        created_at=utc_now(),
        outcome=Outcome.REGRESSION if reason else Outcome.OK,
        reason=reason,
        workload=workload.name,
        payload=payload.name,
        device_uuid=None,
        draw=number,
        dataset_seed=entry.dataset_seed,
        payload_sha256=entry.sha256,
        total=workload.query_samples,
        agreed=workload.query_samples - len(mismatches),
        device_correct=int(np.sum(execution.predictions == draw.test_labels)),
        reference_correct=int(np.sum(draw.frozen_predictions == draw.test_labels)),
        predictions_int32_sha256=hashlib.sha256(array_bytes(execution.predictions)).hexdigest(),
        mismatches=mismatches,
        replays_equal_eager=execution.replays_equal_eager,
        scratch_poisoned_before_eager_and_each_replay=True,
        captured_graph_reused_across_changed_inputs=chosen.captured != number,
        intermediate_floats_equal_reference_bitwise=execution.floats_equal_reference,
        duration_s=time.monotonic() - started,
    )


def execute(device: Device, workload: Workload, draw: Draw, captured_on: Draw) -> Execution:
    """Capture on one draw, run the other eagerly, then replay that graph on it; scratch poisoned before each run."""
    device.load(captured_on.x, captured_on.labels, captured_on.q)
    device.capture()
    device.load(draw.x, draw.labels, draw.q)
    device.poison_scratch()
    device.eager()
    eager = device.predictions()
    floats_equal = _floats_equal_reference(device, workload, draw)
    replays = []
    for _ in range(REPLAYS):
        device.poison_scratch()
        device.replay()
        replays.append(bool(np.array_equal(device.predictions(), eager)))
    return Execution(eager, replays, floats_equal)


def _floats_equal_reference(device: Device, workload: Workload, draw: Draw) -> bool | None:
    found = device.intermediates()
    if found is None:
        return None
    expected = workload.intermediates(draw.x, draw.labels, draw.q)
    return all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def _mismatches(draw: Draw, predictions: npt.NDArray[np.int32]) -> list[PredictionMismatch]:
    return [
        PredictionMismatch(index=int(i), expected=int(draw.frozen_predictions[i]), found=int(predictions[i]))
        for i in np.flatnonzero(predictions != draw.frozen_predictions)
    ]


def _reason(draw: int, total: int, mismatches: list[PredictionMismatch], replays: list[bool]) -> Reason | None:
    if mismatches:
        first = mismatches[0]
        return Reason(
            "prediction_mismatch",
            f"draw {draw}: {len(mismatches)} of {total} predictions disagree, the first at index {first.index}: "
            f"expected {first.expected}, found {first.found}",
        )
    if not all(replays):
        return Reason(
            "replay_differs", f"draw {draw}: replay {replays.index(False)} predicts otherwise than the eager run"
        )
    return None

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
from gpu_tasks.records import Outcome, PredictionMismatch, Reason, ReferenceState, ValidationRecord, utc_now
from gpu_tasks.workloads.base import Workload

REPLAYS = 3


@dataclass(frozen=True)
class Execution:
    """What the device did with one draw."""

    predictions: npt.NDArray[np.int32]
    replays_equal_eager: list[bool]
    state_hashes: dict[str, str] | None
    replay_states_equal: list[bool]
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
    frozen = number if payload.name in workload.pinned_sets else None
    reference = workload.reference_state(draw.x, draw.labels, draw.q, frozen)
    reason = _reason(number, workload.query_samples, mismatches, execution, reference)
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
        state_hashes=execution.state_hashes,
        replay_states_equal=execution.replay_states_equal,
        reference_state=reference,
    )


def execute(device: Device, workload: Workload, draw: Draw, captured_on: Draw) -> Execution:
    """Capture on one draw, run the other eagerly, then replay that graph on it; scratch poisoned before each run."""
    device.load(captured_on.x, captured_on.labels, captured_on.q)
    device.capture()
    device.load(draw.x, draw.labels, draw.q)
    device.poison_scratch()
    device.eager()
    eager, state = device.predictions(), device.state_hashes()
    floats_equal = _floats_equal_reference(device, workload, draw)
    replays, states = [], []
    for _ in range(REPLAYS):
        device.poison_scratch()
        device.replay()
        replays.append(bool(np.array_equal(device.predictions(), eager)))
        if state is not None:
            states.append(device.state_hashes() == state)
    return Execution(eager, replays, state, states, floats_equal)


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


def _reason(
    draw: int,
    total: int,
    mismatches: list[PredictionMismatch],
    execution: Execution,
    reference: ReferenceState | None,
) -> Reason | None:
    if mismatches:
        first = mismatches[0]
        return Reason(
            "prediction_mismatch",
            f"draw {draw}: {len(mismatches)} of {total} predictions disagree, the first at index {first.index}: "
            f"expected {first.expected}, found {first.found}",
        )
    replays, states = execution.replays_equal_eager, execution.replay_states_equal
    if not all(replays):
        return Reason(
            "replay_differs", f"draw {draw}: replay {replays.index(False)} predicts otherwise than the eager run"
        )
    if not all(states):
        found = f"replay {states.index(False)} leaves other bytes behind than the eager run, and the same predictions"
        return Reason("replay_state_differs", f"draw {draw}: {found}")
    if reference is not None and reference.expected_sha256 not in (None, reference.found_sha256):
        message = f"draw {draw}: reference: {reference.name}: expected {reference.expected_sha256}"
        return Reason("reference_state_differs", f"{message}, found {reference.found_sha256}")
    return None

"""``validate``: one draw, eager and as a replayed graph, against the frozen predictions."""

from __future__ import annotations

import hashlib
import time
from argparse import Namespace
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.payload.npz import array_bytes
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import Outcome, PredictionMismatch, Reason, ValidationRecord, utc_now
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload

REPLAYS = 3


@dataclass(frozen=True)
class Execution:
    """What the device did with one draw."""

    predictions: npt.NDArray[np.int32]
    replays_equal_eager: list[bool]
    floats_equal_reference: bool | None


def run(arguments: Namespace) -> ValidationRecord:
    """Validate draw ``arguments.draw``; the outcome is ``regression`` when anything disagrees."""
    started = time.monotonic()
    workload = get_workload(arguments.workload)
    payload = Payload(arguments.payload, workload)
    entry = payload.manifest.draw(arguments.draw)
    draw = payload.load(arguments.draw)
    other = (arguments.draw + 1) % len(payload.manifest.draws)
    progress(f"draw {arguments.draw}: graph captured on draw {other}, then one eager run and {REPLAYS} replays")
    made_up = simulation(arguments, f"draw-{arguments.draw}")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        kernel = device.kernel()
        progress(f"kernels: {kernel.variant}, ptx sha256 {kernel.ptx_sha256 or 'none'}")
        if device.kind in ("emulated", "simulated") and arguments.check is None:
            progress("races between threads are not looked for; --check races does")
        execution = execute(device, workload, draw, payload.load(other))
        device_uuid = repeated(f"draw {arguments.draw}", lambda _: device.fingerprint()).uuid
    mismatches = _mismatches(draw, execution.predictions)
    reason = _reason(arguments.draw, workload.query_samples, mismatches, execution.replays_equal_eager)
    return ValidationRecord(
        kind="validation",
        created_at=utc_now(),
        outcome=Outcome.REGRESSION if reason else Outcome.OK,
        reason=reason,
        workload=workload.name,
        payload=payload.name,
        device_uuid=device_uuid,
        draw=arguments.draw,
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
        captured_graph_reused_across_changed_inputs=other != arguments.draw,
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

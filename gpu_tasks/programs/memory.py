"""``memory``: one task made and run in this fresh process, where its memory is, and whether it repeats itself."""

from __future__ import annotations

import errno
import hashlib
import io
import time
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import AccountedDevice, Device
from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.profile import profiled
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import BadInput, InfrastructureFailure, MemoryRecord, Outcome, Reason, utc_now
from gpu_tasks.workloads.registry import get_workload

INVOCATIONS = 5


def run(arguments: Namespace) -> MemoryRecord:
    """Measure the draw's task; the outcome is ``regression`` when anything of it is not the same after all runs.

    Raises ``BadInput`` (``no_memory_account``) for a workload whose devices cannot say where their memory is.
    """
    started = time.monotonic()
    workload = get_workload(arguments.workload)
    payload = Payload(arguments.payload, workload)
    draw = payload.load(arguments.draw)
    made_up = simulation(arguments, "memory")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        if not isinstance(device, AccountedDevice):
            message = f"--workload: expected one whose devices name their tensors, found {workload.name}"
            raise BadInput("no_memory_account", message)
        memory = device.prepare_and_invoke(draw.x, draw.labels, draw.q)
        inventory, cache = device.inventory(), device.cache_bytes()  # before anything else is asked of the allocator
        first = device.state_hashes() or {}
        matched = _matched(device, first)
        predictions = device.predictions()
        device_uuid = repeated("memory", lambda _: device.fingerprint()).uuid
        kind = device.kind
    file = numpy_file(predictions.astype(np.int64))
    if arguments.predictions is not None:
        _write(arguments.predictions, file)
    profile = profiled(arguments, kind)
    agreed = int(np.sum(predictions == draw.frozen_predictions))
    reason = _reason(first, matched, agreed, len(predictions))
    progress(
        f"draw {arguments.draw}: {INVOCATIONS} runs, {len(matched)} of {len(first)} hashes came out again, "
        f"named storage {inventory.unique_named_storage_bytes} bytes"
    )
    return MemoryRecord(
        kind="memory",
        created_at=utc_now(),
        outcome=Outcome.REGRESSION if reason else Outcome.OK,
        reason=reason,
        workload=workload.name,
        payload=payload.name,
        device_uuid=device_uuid,
        draw=arguments.draw,
        memory=None if isinstance(memory, Reason) else memory,
        memory_reason=memory if isinstance(memory, Reason) else None,
        inventory=inventory,
        cache_bytes=None if isinstance(cache, Reason) else cache,
        cache_reason=cache if isinstance(cache, Reason) else None,
        state_hashes=first,
        invocations=INVOCATIONS,
        hashes_matched=matched,
        total=len(predictions),
        agreed=agreed,
        predictions_sha256=hashlib.sha256(file).hexdigest(),
        predictions_file=str(arguments.predictions) if arguments.predictions is not None else None,
        profile=None if isinstance(profile, Reason) else profile,
        profile_reason=profile if isinstance(profile, Reason) else None,
        duration_s=time.monotonic() - started,
    )


def numpy_file(array: npt.NDArray[np.int64]) -> bytes:
    """The bytes that ``numpy.save`` writes of an array."""
    held = io.BytesIO()
    np.save(held, array)
    return held.getvalue()


def _matched(device: Device, first: dict[str, str]) -> list[str]:
    """Names of the hashes that are the same after the last invocation, everything in between poisoned before it."""
    device.replay(INVOCATIONS - 2)
    device.poison_scratch()
    device.replay()
    last = device.state_hashes() or {}
    return [name for name, sha256 in first.items() if last.get(name) == sha256]


def _reason(first: dict[str, str], matched: list[str], agreed: int, total: int) -> Reason | None:
    changed = [name for name in first if name not in matched]
    if changed:
        message = f"{len(changed)} of {len(first)} hashes are others after {INVOCATIONS} runs: {', '.join(changed[:5])}"
        return Reason("state_not_repeated", message)
    if agreed < total:
        return Reason("prediction_mismatch", f"{total - agreed} of {total} predictions disagree with the frozen ones")
    return None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        message = f"--predictions: {path}: cannot be written: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise InfrastructureFailure("no_space", message) from None
        raise BadInput("bad_predictions_file", message) from None

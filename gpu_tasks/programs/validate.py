"""``validate``: one draw, eager and as a replayed graph, against the frozen predictions."""

from __future__ import annotations

import dataclasses
import time
from argparse import Namespace
from contextlib import closing

from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import ValidationRecord
from gpu_tasks.validation import REPLAYS, chosen_draw, validate_draw
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> ValidationRecord:
    """Validate draw ``arguments.draw``; the outcome is ``regression`` when anything disagrees."""
    started = time.monotonic()
    number = arguments.draw
    workload = get_workload(arguments.workload)
    payload = Payload(arguments.payload, workload)
    chosen = chosen_draw(payload, number)
    progress(f"draw {number}: graph captured on draw {chosen.captured}, then one eager run and {REPLAYS} replays")
    made_up = simulation(arguments, f"draw-{number}")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        kernel = device.kernel()
        progress(f"kernels: {kernel.variant}, ptx sha256 {kernel.ptx_sha256 or 'none'}")
        if kernel.ptx_sha256 and device.kind in ("emulated", "simulated") and arguments.check is None:
            progress("races between threads are not looked for; --check races does")
        record = validate_draw(device, workload, payload, chosen)
        device_uuid = repeated(f"draw {number}", lambda _: device.fingerprint()).uuid
    return dataclasses.replace(record, device_uuid=device_uuid, duration_s=time.monotonic() - started)

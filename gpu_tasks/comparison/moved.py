"""Arithmetic put to the test: the same problem, moved to where rounding hurts.

Draws that happen to leave room hide a kernel that lost its numerics: on raw moments float32 gets all of the original
draws right, and fails as soon as every feature is moved by a constant, though the exact answer is the same.
"""

from __future__ import annotations

import numpy as np

from gpu_tasks.devices.base import Device
from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import Workload

CODE = "arithmetic_worse"


def moved_fault(device: Device, workload: Workload, draw: Draw) -> str | None:
    """What the kernels get wrong of the moved draw, by the float64 reference of the very same inputs; None: nothing."""
    x, q = workload.moved_inputs(draw.x, draw.q)
    expected = workload.predict(x, draw.labels, q)
    try:
        device.load(x, draw.labels, q)
        device.poison_scratch()
        device.eager()
        wrong = int(np.sum(device.predictions() != expected))
    except BadInput as error:
        return error.message
    return f"{wrong} of {len(q)} predictions are not the reference's" if wrong else None

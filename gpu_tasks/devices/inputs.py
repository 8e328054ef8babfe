"""What every device that launches kernels asks of one draw and of its kernels before it touches a buffer."""

from __future__ import annotations

from gpu_tasks.devices.manifest import Kernels
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.base import Labels, Workload


def check_draw(workload: Workload, x: Float32Array, labels: Labels, q: Float32Array) -> None:
    """Raise ``BadInput`` on anything the workload is not defined for, or that is not of the kernels' size.

    ``x`` (train_samples, features) float32, ``labels`` (train_samples,) int64, ``q`` (query_samples, features).
    """
    workload.check_inputs(x, labels, q)
    for name, values, rows in (("x", x, workload.train_samples), ("q", q, workload.query_samples)):
        if len(values) != rows:
            raise BadInput("bad_shape", f"{name}: shape: expected {rows} rows, found {len(values)}")


def check_kernel_size(workload: Workload, kernels: Kernels) -> None:
    """Raise ``BadInput`` where kernels were built for other numbers of samples and queries than the workload's."""
    sizes, expected = (kernels.n, kernels.m), (workload.train_samples, workload.query_samples)
    if sizes != expected:
        raise BadInput("bad_kernel_manifest", f"n, m: expected {expected} for {workload.name}, found {sizes}")

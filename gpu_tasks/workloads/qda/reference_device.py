"""The discriminant in float32 numpy: a device for machines that have nothing else, and a yardstick for the others.

It lives by the rules of a GPU: every array is allocated once, a step only fills arrays that exist, and a captured
graph is the sequence of those steps. What it computes is the formula of ``workloads/qda/classifier.py``. Moments are
centred on the class mean before they are squared: on raw float32 moments the cancellation takes most of the digits
that tell two classes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from gpu_tasks.devices.base import ReplayTiming
from gpu_tasks.devices.cpu import NO_EVENTS, CpuDevice
from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import BadInput, InfrastructureFailure, KernelIdentity
from gpu_tasks.workloads.base import Labels, Workload
from gpu_tasks.workloads.qda.classifier import singular_class

Step = Callable[[], object]
SMALLEST_PIVOT = 1e-6
"""Share of a feature's variance left after elimination, below which it may be float32 rounding and not data."""


class ReferenceQda(CpuDevice):
    """``gpu_tasks.devices.base.Device`` for the workload ``qda`` on the CPU."""

    def __init__(self, workload: Workload) -> None:
        n, m, d, c = workload.train_samples, workload.query_samples, workload.feature_count, workload.class_count
        super().__init__(workload)
        self._x = np.zeros((n, d), np.float32)
        self._labels = np.zeros(n, np.int64)
        self._q = np.zeros((m, d), np.float32)
        self._scratch = {
            "member": np.empty((c, n), np.float32),
            "count": np.empty((c, 1), np.float32),
            "mean": np.empty((c, d), np.float32),
            "centred": np.empty((c, n, d), np.float32),
            "covariance": np.empty((c, d, d), np.float32),
            "factor": np.empty((c, d, d), np.float32),
            "offset": np.empty((c, 1), np.float32),
            "deviation": np.empty((c, d, m), np.float32),
            "whitened": np.empty((c, d, m), np.float32),
            "scores": np.empty((c, m), np.float32),
        }
        self._best = np.empty(m, np.int64)
        self._predictions = np.empty(m, np.int32)
        self._graph: tuple[Step, ...] | None = None
        self.poison_scratch()

    def kernel(self) -> KernelIdentity:
        """numpy steps: no PTX, no launches."""
        return KernelIdentity(variant="numpy-float32", ptx_sha256=None, ptx_lines=None, launches=[])

    def load(self, x: Float32Array, labels: Labels, q: Float32Array) -> None:
        """Copy one draw's inputs in; raises ``BadInput`` on anything the discriminant is not defined for."""
        self._workload.check_inputs(x, labels, q)
        for name, target, values in (("x", self._x, x), ("q", self._q, q)):
            if values.shape != target.shape:
                raise BadInput("bad_shape", f"{name}: shape: expected {target.shape}, found {values.shape}")
        self._x[:] = x
        self._labels[:] = labels
        self._q[:] = q

    def poison_scratch(self) -> None:
        """NaN in every intermediate and -1 in the output, so that a step that forgets to write is seen."""
        for buffer in self._scratch.values():
            buffer.fill(np.nan)
        self._best.fill(-1)
        self._predictions.fill(-1)

    def eager(self) -> None:
        """Train and predict once; raises ``BadInput`` when a class is singular in float32."""
        for step in self._steps():
            step()

    def capture(self) -> None:
        """Freeze the sequence of steps, bound to the buffers; nothing runs."""
        self._graph = self._steps()

    def replay(self, repeats: int = 1) -> ReplayTiming:
        """Run the frozen steps ``repeats`` times on whatever the buffers hold now."""
        if self._graph is None:
            raise InfrastructureFailure("no_graph", "replay: expected a captured graph, found none")
        for _ in range(repeats):
            for step in self._graph:
                step()
        return ReplayTiming(device_ms_per_replay=None, reason=NO_EVENTS)

    def predictions(self) -> npt.NDArray[np.int32]:
        """Copy of the classes of the latest run, (m,) int32; -1 where nothing was written."""
        return self._predictions.copy()

    def intermediates(self) -> dict[str, Float32Array] | None:
        """Class means (10, 9) and scores (m, 10) of the latest run."""
        return {"means": self._scratch["mean"].copy(), "scores": self._scratch["scores"].T.copy()}

    def close(self) -> None:
        """Drop the graph; the arrays go with the object."""
        self._graph = None

    def _steps(self) -> tuple[Step, ...]:
        return self._training_steps() + self._prediction_steps()

    def _training_steps(self) -> tuple[Step, ...]:
        s, x = self._scratch, self._x
        classes = np.arange(len(s["count"]))[:, None]
        return (
            partial(np.equal, classes, self._labels[None, :], out=s["member"]),
            partial(np.sum, s["member"], axis=1, keepdims=True, out=s["count"]),
            partial(np.matmul, s["member"], x, out=s["mean"]),
            partial(np.divide, s["mean"], s["count"], out=s["mean"]),
            partial(np.subtract, x[None, :, :], s["mean"][:, None, :], out=s["centred"]),
            partial(np.multiply, s["centred"], s["member"][:, :, None], out=s["centred"]),
            partial(np.matmul, s["centred"].transpose(0, 2, 1), s["centred"], out=s["covariance"]),
            partial(np.divide, s["covariance"], s["count"][:, :, None], out=s["covariance"]),
            partial(_factorise, s["covariance"], s["count"], s["factor"]),
            partial(_offsets, s["factor"], s["count"], len(x), s["offset"]),
        )

    def _prediction_steps(self) -> tuple[Step, ...]:
        s = self._scratch
        return (
            partial(np.subtract, self._q.T[None, :, :], s["mean"][:, :, None], out=s["deviation"]),
            partial(_whiten, s["factor"], s["deviation"], s["whitened"]),
            partial(np.multiply, s["whitened"], s["whitened"], out=s["whitened"]),
            partial(np.sum, s["whitened"], axis=1, out=s["scores"]),
            partial(np.multiply, s["scores"], np.float32(-0.5), out=s["scores"]),
            partial(np.add, s["scores"], s["offset"], out=s["scores"]),
            partial(np.argmax, s["scores"], axis=0, out=self._best),
            partial(np.copyto, self._predictions, self._best, casting="same_kind"),
        )


def _factorise(covariance: Float32Array, count: Float32Array, factor: Float32Array) -> None:
    """Cholesky factor of each class's covariance, row by row; the upper triangle is zero."""
    factor.fill(0)
    for j in range(covariance.shape[1]):
        row = factor[:, j, :j]
        pivot = covariance[:, j, j] - np.einsum("ck,ck->c", row, row)
        singular = pivot <= SMALLEST_PIVOT * covariance[:, j, j]  # false for NaN: poison must show as wrong labels
        if np.any(singular):
            label = int(np.argmax(singular))
            raise singular_class(label, int(count[label, 0]))
        factor[:, j, j] = np.sqrt(pivot)
        below = covariance[:, j + 1 :, j] - np.einsum("cik,ck->ci", factor[:, j + 1 :, :j], row)
        factor[:, j + 1 :, j] = below / factor[:, j, j, None]


def _offsets(factor: Float32Array, count: Float32Array, samples: int, offset: Float32Array) -> None:
    diagonal = np.diagonal(factor, axis1=1, axis2=2)
    offset[:] = np.log(count / np.float32(samples)) - np.log(diagonal).sum(axis=1, keepdims=True)


def _whiten(factor: Float32Array, deviation: Float32Array, whitened: Float32Array) -> None:
    """Solve ``factor @ whitened = deviation`` for every class and query by forward substitution."""
    for j in range(factor.shape[1]):
        known = np.matmul(factor[:, None, j, :j], whitened[:, :j, :])[:, 0, :]
        np.subtract(deviation[:, j, :], known, out=whitened[:, j, :])
        whitened[:, j, :] /= factor[:, j, j, None]

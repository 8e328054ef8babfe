"""One task of the learner: reset, normalise, train from scratch, predict every query; eager, or as CUDA graphs.

All tensors live as long as the task and are named in ``tensors``; what a step makes in between is freed with it.

Imports torch: import this module where it is used, not at the head of one that must do without.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import cross_entropy, linear

from gpu_tasks.float32 import Float32Array
from gpu_tasks.records import BadInput
from gpu_tasks.workloads.learner.config import LearnerConfig, check_batch, check_config
from gpu_tasks.workloads.learner.core import run_core
from gpu_tasks.workloads.learner.graphs import Graphs, Step
from gpu_tasks.workloads.learner.initial import epoch_orders, parameter_shapes
from gpu_tasks.workloads.learner.inputs import CLASSES, Inputs, Labels, check_inputs
from gpu_tasks.workloads.learner.torch_settings import check_settings, one_thread

QUERY_ROWS = 1024
"""Queries predicted at once: what that makes in between stays small beside the tensors of the task."""


class LearnerTask:
    """A learner of ``config`` with its inputs resident on ``device`` (``cpu``, ``cuda``, ``cuda:1``).

    ``initial`` has the float32 parameters that every run starts from. ``dtype`` is ``float32`` or ``float64``.
    ``captured`` runs it as three CUDA graphs, for a GPU only. ``traced`` keeps gradients, parameters and velocities
    after every step of the latest epoch, for qualification. Raises ``BadInput`` as ``check_config``, ``check_inputs``
    and ``check_settings`` do, and ``bad_shape`` for initial parameters of another size.
    """

    def __init__(
        self,
        config: LearnerConfig,
        inputs: Inputs,
        initial: Mapping[str, Float32Array],
        *,
        device: str = "cpu",
        dtype: str = "float32",
        captured: bool = False,
        repeatable: bool = True,
        traced: bool = False,
    ) -> None:
        check_config(config)
        check_inputs(inputs)
        check_batch(config, len(inputs.x))
        check_settings(device.partition(":")[0], repeatable=repeatable)
        width = inputs.x.shape[1] + 1
        _check_initial(initial, parameter_shapes(config.depth, width))
        self.config, self.device, self.runs = config, torch.device(device), 0
        self._dtype = {"float32": torch.float32, "float64": torch.float64}[dtype]
        self.names = list(initial)
        self._place(inputs, initial, width)
        steps = -(-len(inputs.x) // config.batch_size) if traced else 0
        kinds = (self.gradients, self.parameters, self.velocities)
        self.trace = [tuple([torch.empty_like(t) for t in kind] for kind in kinds) for _ in range(steps)]
        self._reset, self._epoch, self._predict = self.reset, self.epoch, self.predict
        if captured:
            self.capture()

    def _place(self, inputs: Inputs, initial: Mapping[str, Float32Array], width: int) -> None:
        def placed(array: Any) -> Any:
            tensor = torch.tensor(array)
            return tensor.to(self.device, self._dtype if tensor.is_floating_point() else None)

        def empty(*shape: int, dtype: Any = self._dtype) -> Any:
            return torch.zeros(shape, dtype=dtype, device=self.device)

        self.initial = [placed(initial[name]) for name in self.names]
        self.parameters = [tensor.clone().requires_grad_() for tensor in self.initial]
        self.gradients = [torch.zeros_like(tensor) for tensor in self.initial]
        self.velocities = [torch.zeros_like(tensor) for tensor in self.initial]
        self.raw, self.raw_query = placed(inputs.x), placed(inputs.q)
        self.labels, self.orders = placed(inputs.labels), placed(epoch_orders(self.config, len(inputs.x)))
        self.order = self.orders[0].clone()
        self.x, self.q = empty(len(inputs.x), width), empty(len(inputs.q), width)
        self.scores = empty(len(inputs.q), CLASSES)
        self.predictions = empty(len(inputs.q), dtype=torch.int64)

    def tensors(self) -> dict[str, Any]:
        """Every tensor of the task by name, in the order of the original inventory."""
        named: dict[str, Any] = {}
        for name, parameter, gradient in zip(self.names, self.parameters, self.gradients, strict=True):
            named |= {f"parameters.{name}": parameter, f"gradients.{name}": gradient}
        for kind, tensors in (("initial", self.initial), ("velocity", self.velocities)):
            named |= {f"{kind}.{number}": tensor for number, tensor in enumerate(tensors)}
        for name in ("raw", "raw_query", "labels", "x", "q", "orders", "order", "predictions", "scores"):
            named[name] = getattr(self, name)
        return named

    def load(self, inputs: Inputs) -> None:
        """Put other inputs of the same sizes into the resident tensors, which graphs go on reading.

        Raises ``BadInput`` as ``check_inputs`` does, and ``bad_shape``.
        """
        check_inputs(inputs)
        places: dict[str, tuple[npt.NDArray[Any], Any]] = {
            "x": (inputs.x, self.raw),
            "labels": (inputs.labels, self.labels),
            "q": (inputs.q, self.raw_query),
        }
        for name, (values, place) in places.items():
            if values.shape != tuple(place.shape):
                raise BadInput("bad_shape", f"{name}: shape: expected {tuple(place.shape)}, found {values.shape}")
        for values, place in places.values():
            place.copy_(torch.tensor(values))

    def poison(self) -> None:
        """NaN in every value that a run makes, and in integers what no run leaves behind."""
        with torch.no_grad():
            for tensor in (*self.parameters, *self.gradients, *self.velocities, self.x, self.q, self.scores):
                tensor.fill_(float("nan"))
        self.predictions.fill_(-1)
        self.order.zero_()  # a place in the set all the same: what reads it too early trains on one sample alone

    def run(self) -> None:
        """One whole task, captured if it is. On a GPU it is queued on the current stream and not waited for."""
        self._run(self.run_reset, self._epoch, self.run_predict)

    def run_eagerly(self) -> None:
        """One whole task without graphs, whether it is captured or not."""
        self._run(self.reset, self.epoch, self.predict)

    def _run(self, reset: Step, epoch: Step, predict: Step) -> None:
        with one_thread() if self.device.type == "cpu" else nullcontext():
            reset()
            for number in range(self.config.epochs):
                self.order.copy_(self.orders[number])
                epoch()
            predict()
        self.runs += 1

    def run_reset(self) -> None:
        """The first part of a task, as ``run`` runs it: eager or captured."""
        self._reset()

    def run_epoch(self, epoch: int) -> None:
        """One epoch of a task, in its resident order."""
        self.order.copy_(self.orders[epoch])
        self._epoch()

    def run_predict(self) -> None:
        """The last part of a task."""
        self._predict()

    def classes(self) -> Labels:
        """(m,) int64 predictions of the latest run; waits for it."""
        predictions: Labels = self.predictions.cpu().numpy().copy()
        return predictions

    def check_finite(self) -> None:
        """Raise ``BadInput`` (``diverged``) naming the first query without an answer: its highest score is none.

        For whoever has nothing to hold the classes against: of a training that went to infinity they are all 0.
        """
        lost = torch.nonzero(~torch.isfinite(self.scores).all(dim=1))
        if len(lost):
            first = int(lost[0])
            found = self.scores[first].tolist()
            expected = f"scores: query {first}: expected finite numbers of a training that came to an end"
            raise BadInput("diverged", f"{expected}, found {found[0]:g} of class 0 ({len(lost)} such queries)")

    def reset(self) -> None:
        """Initial parameters, no momentum, no gradients; pixels to ``4 * pixel - 0.5`` with one zero column more."""
        with torch.no_grad():
            for parameter, first in zip(self.parameters, self.initial, strict=True):
                parameter.copy_(first)
            for tensor in (*self.gradients, *self.velocities):
                tensor.zero_()
            for raw, normal in ((self.raw, self.x), (self.raw_query, self.q)):
                normal[:, :-1].copy_(raw).mul_(4).sub_(0.5)
                normal[:, -1].zero_()

    def epoch(self) -> None:
        """Train once on every sample in the current order, batch by batch; the last batch has what is left."""
        for step, start in enumerate(range(0, len(self.order), self.config.batch_size)):
            self._train(self.order[start : start + self.config.batch_size])
            if self.trace:
                self._keep(step)

    def predict(self) -> None:
        """Scores of all queries; the prediction is the first class of the highest."""
        with torch.no_grad():
            for start in range(0, len(self.q), QUERY_ROWS):
                self.scores[start : start + QUERY_ROWS].copy_(self.forward(self.q[start : start + QUERY_ROWS]))
            self.predictions.copy_(self.scores.argmax(dim=1))

    def forward(self, states: Any) -> Any:
        """(n, 10) scores of normalised samples (n, width)."""
        *weights, head, bias = self.parameters
        return linear(run_core(states, weights, self.config.alpha), head, bias)

    def _train(self, batch: Any) -> None:
        samples, targets = self.x.index_select(0, batch), self.labels.index_select(0, batch)
        loss = cross_entropy(self.forward(samples), targets)
        found = torch.autograd.grad(loss, self.parameters)
        config = self.config
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters):
                gradient, velocity = self.gradients[number], self.velocities[number]
                gradient.copy_(found[number])
                if config.weight_decay:
                    gradient.add_(parameter, alpha=config.weight_decay)
                velocity.mul_(config.momentum).add_(gradient)
                parameter.sub_(velocity, alpha=config.learning_rate)

    def _keep(self, step: int) -> None:
        with torch.no_grad():
            for kept, now in zip(self.trace[step], (self.gradients, self.parameters, self.velocities), strict=True):
                for target, source in zip(kept, now, strict=True):
                    target.copy_(source)

    def capture(self) -> None:
        """Make the three graphs, which ``run`` then replays; raises ``BadInput`` (``not_captured``) on a CPU."""
        if self.device.type != "cuda":
            raise BadInput(
                "not_captured", f"device: expected a GPU, whose work a graph can capture, found {self.device}"
            )
        with torch.cuda.device(self.device):
            graphs = Graphs()
            self._reset = graphs.capture(self.reset)
            self._epoch = graphs.capture(self.epoch)
            self._predict = graphs.capture(self.predict)
            torch.cuda.synchronize()


def _check_initial(initial: Mapping[str, Float32Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
    if list(initial) != list(shapes):
        expected, found = ", ".join(shapes), ", ".join(initial)
        raise BadInput("bad_shape", f"initial: names: expected {expected}, found {found}")
    for name, shape in shapes.items():
        if initial[name].shape != shape or initial[name].dtype != np.float32:
            found = f"{initial[name].dtype} {initial[name].shape}"
            raise BadInput("bad_shape", f"initial: {name}: expected float32 {shape}, found {found}")

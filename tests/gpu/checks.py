"""What has to hold on a real GPU, as functions that raise: pytest runs them, and so does ``run_all`` without pytest.

A check takes nothing, opens what it needs, and may return a line of what it found. Nothing here is imported by the
programs. Those of energy are in the file beside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda import errors
from gpu_tasks.devices.cuda.device import CudaQda
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.records import BadInput, Outcome, Reason, TaskError
from gpu_tasks.validation import execute
from gpu_tasks.workloads.registry import get_workload
from tests.gpu.energy_checks import ENERGY_CHECKS, Check
from tests.unit.gpu_tasks.devices.emulated.launching import Problem, random_problem

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = ("class_blocks", "record", "fused")
QDA = get_workload("qda")
LG2_ERROR = 2.0**-22
"""Largest error of ``lg2.approx.f32``: absolute for arguments in (0.5, 2), relative elsewhere (PTX ISA, ``lg2``)."""


@cache
def draws() -> list[Draw]:
    """The eleven frozen draws."""
    payload = Payload("original", QDA)
    return [payload.load(number) for number in range(11)]


def on_gpu(variant: str) -> CudaQda:
    """The GPU with one variant's committed kernels."""
    return CudaQda(QDA, load_kernels(variant=variant))


@contextmanager
def refused(error: type[TaskError], code: str, *words: str) -> Iterator[None]:
    """Expect this error, this code and these words in its message."""
    try:
        yield
    except error as found:
        assert found.code == code, f"expected the code {code}, found {found.code}: {found.message}"
        missing = [word for word in words if word not in found.message]
        assert not missing, f"expected {missing} in {found.message!r}"
    else:
        raise AssertionError(f"expected {error.__name__} {code}, and nothing was raised")


def all_draws_agree(variant: str) -> None:
    """11000 of 11000, eager and replayed, through one graph that was captured on another draw."""
    agreed = 0
    with closing(on_gpu(variant)) as device:
        for other, draw in pairwise([draws()[-1], *draws()]):
            execution = execute(device, QDA, draw, other)
            assert execution.replays_equal_eager == [True] * 3
            agreed += int(np.sum(execution.predictions == draw.frozen_predictions))
    assert agreed == 11000, f"expected 11000, found {agreed}"


def one_graph_follows_its_inputs(variant: str) -> None:
    """One capture, then every draw replayed on it, forwards and backwards, poisoned before each."""
    with closing(on_gpu(variant)) as device:
        device.load(draws()[0].x, draws()[0].labels, draws()[0].q)
        device.capture()
        for draw in [*draws(), *reversed(draws())]:
            device.load(draw.x, draw.labels, draw.q)
            device.poison_scratch()
            device.replay()
            assert np.array_equal(device.predictions(), draw.frozen_predictions)


def emulator_agrees_bit_by_bit(variant: str) -> None:
    """Predictions and every intermediate word of draws and random problems, with ``lg2.approx`` within its error."""
    emulated = EmulatedQda(QDA, load_kernels(variant=variant), check_races=False)
    problems = [Problem(draw.x, draw.labels, draw.q) for draw in draws()] + [random_problem(seed) for seed in (1, 2, 3)]
    with closing(on_gpu(variant)) as device:
        for problem in problems:
            for each in (emulated, device):
                each.load(*problem)
                each.poison_scratch()
                each.eager()
            assert np.array_equal(device.predictions(), emulated.predictions())
            for name, found in device.scratch().items():
                _compare(name, found, *_emulated_words(emulated, name), problem)


def _emulated_words(emulated: EmulatedQda, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A buffer's float32 words, and which of them the kernels have written."""
    words, written = emulated._memory.copy_out(emulated._buffers[name], np.float32)
    return words, written


def _compare(name: str, found: np.ndarray, expected: np.ndarray, written: np.ndarray, problem: Problem) -> None:
    found, expected, written = found.reshape(-1), expected.reshape(-1), written.reshape(-1).copy()
    if name == "model":
        words = expected.reshape(10, 64)
        tolerance = _constant_tolerance(words[:, 54:63], problem.labels)
        error = np.abs(found.reshape(10, 64)[:, 63].astype(np.float64) - words[:, 63])
        assert (error <= tolerance).all(), f"constant: error {error.max():.3g} of at most {tolerance.min():.3g}"
        written.reshape(10, 64)[:, 63] = False
    differing = np.flatnonzero((found.view(np.uint32) != expected.view(np.uint32)) & written)
    assert not differing.size, (
        f"{name}[{differing[0]}]: GPU {found[differing[0]]!r}, emulator {expected[differing[0]]!r}"
    )


def _constant_tolerance(weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Error of log prior - 1/2 log determinant, (10,), that the error of nine and one ``lg2.approx`` explains.

    ``weights`` (10, 9) are the reciprocal pivots. On top, twenty roundings of float32 of the largest partial sum.
    """
    pivots = np.abs(np.log2(weights.astype(np.float64)))
    prior = np.abs(np.log2(np.bincount(labels, minlength=10) / len(labels)))
    lg2 = 0.5 * np.maximum(pivots, 1).sum(axis=1) + np.maximum(prior, 1)
    return np.log(2) * (LG2_ERROR * lg2 + 20 * 2.0**-24 * (pivots.sum(axis=1) + prior))


def poison_is_seen_and_overwritten(variant: str) -> None:
    """Poisoned predictions are none; a replay leaves no poison in anything that the kernels write."""
    emulated = EmulatedQda(QDA, load_kernels(variant=variant), check_races=False)
    draw = draws()[3]
    with closing(on_gpu(variant)) as device:
        for each in (emulated, device):
            each.load(draw.x, draw.labels, draw.q)
        device.capture()
        with refused(BadInput, "unwritten_output"):
            device.predictions()
        device.replay()
        emulated.eager()
        for name, words in device.scratch().items():
            _, written = _emulated_words(emulated, name)
            assert not np.isnan(words.reshape(-1)[written.reshape(-1)]).any(), name


def kernels_name_what_they_cannot_train(variant: str) -> None:
    """The kernels' own status words, for inputs that ``load`` would refuse, eagerly and in a graph."""
    good = random_problem(4)
    labels, flat, far = good.labels.astype(np.int32), good.x.copy(), good.q.copy()
    flat[labels == 4, 2] = 0.25
    far[321, 4] = 3e38
    outside = labels.copy()
    outside[500] = 10
    cases = (
        (good.x, np.where(labels == 7, 8, labels).astype(np.int32), good.q, "empty_class", "class 7"),
        (flat, labels, good.q, "singular_class", "class 4"),
        (good.x, outside, good.q, "bad_label", "found 999"),
        (good.x, labels, far, "score_not_finite", "query 321"),
    )
    with closing(on_gpu(variant)) as device:
        device.load(*good)
        device.capture()
        for x, changed, q, code, words in cases:
            device.load_unchecked(x, changed, q)
            for run in (device.eager, device.replay):
                device.poison_scratch()
                with refused(BadInput, code, words):
                    run()


def replays_are_timed() -> None:
    """Time by events grows with the number of replays and stays under the wall clock's."""
    with closing(on_gpu("class_blocks")) as device:
        device.load(draws()[0].x, draws()[0].labels, draws()[0].q)
        device.capture()
        device.replay(1000)
        start = time.perf_counter()
        timing = device.replay(1000)
        wall_ms = (time.perf_counter() - start) * 1000
    assert timing.device_ms_per_replay is not None
    assert 0 < timing.device_ms_per_replay * 1000 < wall_ms


def refused_text_comes_with_the_compilers_log() -> None:
    """The line of broken PTX is in the error, and the GPU works on afterwards."""
    kernels = load_kernels()
    broken = kernels.texts[0].replace("bar.sync", "bar.sunk", 1)
    with refused(errors.RefusedKernel, "cuda_error_invalid_ptx", "line"):
        CudaQda(QDA, replace(kernels, texts=[broken, kernels.texts[1]]))
    too_much = replace(load_kernels(variant="fused").launches[0], shared_dynamic_bytes=1_000_000)
    with refused(errors.RefusedKernel, "cuda_error_invalid_value", "1000000 bytes of dynamic shared memory"):
        CudaQda(QDA, replace(load_kernels(variant="fused"), launches=[too_much]))
    all_draws_agree("class_blocks")


BAD_STORE = """
from dataclasses import replace
from gpu_tasks.devices.cuda.device import CudaQda
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.records import TaskError
from tests.gpu.checks import QDA, draws

kernels = load_kernels(variant="fused")
parameters = ", ".join(f".param .u64 p{i}" for i in range(5))
text = (".version 7.0\\n.target sm_80\\n.address_size 64\\n"
        f".visible .entry fused({parameters}) {{ .reg .u64 %a; .reg .u32 %v; mov.u64 %a, 8; mov.u32 %v, 1; "
        "st.global.u32 [%a], %v; ret; }\\n")
device = CudaQda(QDA, replace(kernels, texts=[text]))
draw = draws()[0]
device.load(draw.x, draw.labels, draw.q)
try:
    device.eager()
except TaskError as error:
    print(error.outcome.value, error.code)
device.close()
"""


def a_wild_store_is_the_kernels_fault() -> None:
    """In a process of its own, because the context is lost with it; closing afterwards does not fail."""
    result = _child("-c", BAD_STORE)
    expected = "bad_input cuda_error_illegal_address"
    assert result.stdout.split("\n")[0] == expected, f"expected {expected}, found {result.stdout}{result.stderr}"
    assert result.returncode == 0, result.stderr


def the_programs_run_on_it() -> str:
    """``provision``, ``validate`` and ``measure`` as the night starts them.

    A host that cannot be measured (another process on the GPU, say) refuses the round, with its reason: the program
    works, and no figure comes of it. It has to come before this process has a context of its own on the GPU.
    """
    round_one = ["measure", "--round", "1", "--protocol", "classic", "--repeats", "2000"]
    for arguments in (["provision"], ["validate", "--draw", "3"], round_one):
        result = _child("-m", "gpu_tasks", *arguments, "--device", "cuda")
        record = json.loads(result.stdout)
        refused_round = arguments is round_one and record["outcome"] == Outcome.INVALID_MEASUREMENT.value
        assert refused_round or (result.returncode, record["outcome"]) == (0, "ok"), f"{arguments}: {result.stderr}"
    if refused_round:
        return f"no round with energy on this host: {record['reason']['message']}"
    without = record["energy_reason"]
    return f"a round without energy: {without['message']}" if without else "a round with energy"


def _child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@contextmanager
def replaying(kind: str) -> Iterator[Device]:
    """A device of this kind on which a graph of draw 0 can be replayed."""
    with closing(on_gpu("class_blocks") if kind == "cuda" else open_device(kind, QDA)) as device:
        device.load(draws()[0].x, draws()[0].labels, draws()[0].q)
        device.capture()
        device.poison_scratch()
        device.replay()
        yield device


def energy(check: Check, kind: str = "cuda") -> str:
    """One of the energy checks; where there is no counter, the reason for it is what is found."""
    with replaying(kind) as device:
        tools = device.instruments()
        if isinstance(tools, Reason):
            return f"not judged: {tools.code}: {tools.message}"
        return check(device, tools)


_FIRST = (the_programs_run_on_it,)
_EACH_VARIANT = (
    all_draws_agree,
    one_graph_follows_its_inputs,
    emulator_agrees_bit_by_bit,
    poison_is_seen_and_overwritten,
    kernels_name_what_they_cannot_train,
)
_ONCE = (
    replays_are_timed,
    refused_text_comes_with_the_compilers_log,
    a_wild_store_is_the_kernels_fault,
)
CHECKS: dict[str, Callable[[], str | None]] = {
    **{check.__name__: check for check in _FIRST},
    **{f"{check.__name__}[{variant}]": partial(check, variant) for check in _EACH_VARIANT for variant in VARIANTS},
    **{check.__name__: check for check in _ONCE},
    **{check.__name__: partial(energy, check) for check in ENERGY_CHECKS},
}
DRY_CHECKS: dict[str, Callable[[], str | None]] = {
    f"{check.__name__}[simulated]": partial(energy, check, "simulated") for check in ENERGY_CHECKS
}
"""Those that can be had without a GPU: they judge the checks, not a device."""

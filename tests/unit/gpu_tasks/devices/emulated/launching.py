"""Shared by the tests of the emulator and of the kernels: run a text, change a text, make a problem."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import GlobalMemory
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.manifest import Kernels, load_kernels
from gpu_tasks.workloads.qda.workload import Qda

DRAWS = Path(__file__).resolve().parents[5] / "gpu_tasks" / "payload" / "original"
VARIANTS = ("class_blocks", "record", "fused")


class Problem(NamedTuple):
    """One training set and its queries."""

    x: np.ndarray
    labels: np.ndarray
    q: np.ndarray


@cache
def draw(index: int) -> tuple[Problem, np.ndarray]:
    """One frozen draw and its frozen predictions."""
    with np.load(DRAWS / f"draw-{index:02}.npz") as arrays:
        return Problem(arrays["x"], arrays["labels"], arrays["q"]), arrays["frozen_predictions"]


def random_problem(seed: int, *, spread: float = 0.5) -> Problem:
    """Ten overlapping classes of correlated features, each with samples enough for a covariance."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(10).repeat(40), rng.integers(0, 10, 600)])
    rng.shuffle(labels)
    # Rotations times scales between 0.2 and 1: no covariance is worse conditioned than 25.
    mixing = np.linalg.qr(rng.normal(size=(10, 9, 9)))[0] * rng.uniform(0.2, 1, (10, 1, 9))
    centres = rng.normal(size=(10, 9)) * spread
    x = np.einsum("nij,nj->ni", mixing[labels], rng.normal(size=(1000, 9))) * 0.3 + centres[labels]
    of_query = rng.integers(0, 10, 1000)
    q = np.einsum("nij,nj->ni", mixing[of_query], rng.normal(size=(1000, 9))) * 0.3 + centres[of_query]
    return Problem(x.astype(np.float32), labels.astype(np.int64), q.astype(np.float32))


@cache
def shared_device(variant: str, *, check_races: bool = True) -> EmulatedQda:
    """One device a variant for all tests that only run it: binding costs as much as a draw."""
    return EmulatedQda(Qda(), load_kernels(variant=variant), check_races=check_races)


def predict(device: EmulatedQda, problem: Problem) -> np.ndarray:
    """Load, poison, run once."""
    device.load(*problem)
    device.poison_scratch()
    device.eager()
    return device.predictions()


def with_texts(kernels: Kernels, *texts: str) -> Kernels:
    """The same launches with other PTX."""
    return replace(kernels, texts=list(texts))


def substitute(text: str, pattern: str, replacement: str, *, occurrence: int = 0) -> tuple[str, int]:
    """Replace one match of ``pattern``; the new text, and the line on which the match began."""
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    assert len(matches) > occurrence, (
        f"the PTX has no match {occurrence} of {pattern!r}: the test has to follow the text"
    )
    match = matches[occurrence]
    changed = text[: match.start()] + match.expand(replacement) + text[match.end() :]
    assert changed != text
    return changed, text.count("\n", 0, match.start()) + 1


def line_of(text: str, pattern: str, *, occurrence: int = 0, after: int = 0) -> int:
    """Line of a match of ``pattern`` that begins after line ``after``."""
    lines = [text.count("\n", 0, match.start()) + 1 for match in re.finditer(pattern, text, re.MULTILINE)]
    return [line for line in lines if line > after][occurrence]


def module(body: str, *, parameters: str = "out", shared: str = "", target: str = "sm_80") -> str:
    """A whole module around the instructions of a small kernel."""
    listed = ", ".join(f".param .u64 {name}" for name in parameters.split())
    registers = ".reg .u32 %r<20>; .reg .f32 %f<20>; .reg .u64 %rd<20>; .reg .pred %p<8>; .reg .b32 %b<8>;"
    return (
        f".version {VERSIONS[target]}\n.target {target}\n.address_size 64\n"
        f".visible .entry small({listed})\n{{\n{registers}\n{shared}\n{body}\nret;\n}}\n"
    )


VERSIONS = {"sm_80": "7.0", "sm_90": "7.8"}  # of PTX: the first that knows the target
FIRST_LINE = 8  # of the body in ``module``
OWN_WORD = """
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd1, %rd0; mad.wide.u32 %rd2, %r3, 4, %rd1;
""".strip()  # %r0 thread, %r3 thread of the grid, %rd1 out, %rd2 this thread's word of out


def run_small(
    text: str,
    *,
    grid: int = 1,
    block: int = 32,
    dynamic: int = 0,
    words: int | None = None,
    inputs: dict[str, np.ndarray] | None = None,
    **options: Any,
) -> np.ndarray:
    """Run a small kernel whose first parameter is ``out`` (a word a thread by default); returns out as uint32."""
    memory = GlobalMemory()
    out = memory.allocate("out", 4 * (grid * block if words is None else words))
    arguments = [out.address]
    for name, values in (inputs or {}).items():
        buffer = memory.allocate(name, values.nbytes)
        memory.copy_in(buffer, values)
        arguments.append(buffer.address)
    limit = {"limit": options.pop("limit")} if "limit" in options else {}
    machine = Machine(parse(text), memory, (grid, 1, 1), (block, 1, 1), dynamic, **options)
    machine.run(arguments, {out.address}, **limit)
    return memory.copy_out(out, np.uint32)[0]

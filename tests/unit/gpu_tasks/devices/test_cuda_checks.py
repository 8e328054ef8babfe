"""The checks for a GPU, on the GPU device over a fake whose kernels are the emulator: the real PTX, end to end.

Without this, the checks themselves would run for the first time on the machine that they are to judge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.devices.cuda import device
from gpu_tasks.devices.cuda.driver import Driver
from tests.gpu.checks import CHECKS, ROOT
from tests.gpu.contestants import Contestant
from tests.gpu.race import race, table
from tests.unit.gpu_tasks.devices.cuda_emulating import EmulatingGpu
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import fake_torch


@pytest.fixture
def emulate(monkeypatch: pytest.MonkeyPatch) -> Callable[[EmulatingGpu], None]:
    def use(gpu: EmulatingGpu) -> None:
        monkeypatch.setattr(device, "find_gpu", lambda: Driver(FakeLibrary(gpu)))
        monkeypatch.setattr(device, "load_torch", lambda: fake_torch(gpu))

    return use


@pytest.mark.parametrize(
    "name",
    [
        "emulator_agrees_bit_by_bit[class_blocks]",
        "emulator_agrees_bit_by_bit[record]",
        "poison_is_seen_and_overwritten[record]",
        "kernels_name_what_they_cannot_train[fused]",
        "refused_text_comes_with_the_compilers_log",
    ],
)
def test_a_check_passes_where_the_gpu_does_what_the_emulator_does(
    name: str, emulate: Callable[[EmulatingGpu], None]
) -> None:
    emulate(EmulatingGpu())
    CHECKS[name]()


def scaled_constant(entry: str, arrays: list[np.ndarray], factor: float) -> None:
    if entry == "train":
        arrays[2][:, 63] *= np.float32(factor)


def test_the_error_of_the_logarithm_is_allowed_and_no_more(emulate: Callable[[EmulatingGpu], None]) -> None:
    emulate(EmulatingGpu(lambda entry, arrays: scaled_constant(entry, arrays, 1 + 2.0**-22)))
    CHECKS["emulator_agrees_bit_by_bit[class_blocks]"]()
    emulate(EmulatingGpu(lambda entry, arrays: scaled_constant(entry, arrays, 1 + 2.0**-17)))
    with pytest.raises(AssertionError, match="constant: error"):
        CHECKS["emulator_agrees_bit_by_bit[class_blocks]"]()


def last_bit(entry: str, arrays: list[np.ndarray]) -> None:
    if entry == "train":
        arrays[2].view(np.uint32)[7, 20] ^= 1


def forgotten(entry: str, arrays: list[np.ndarray]) -> None:
    if entry == "score":
        arrays[0][3] = np.nan


def other_class(entry: str, arrays: list[np.ndarray]) -> None:
    if entry == "fused":
        arrays[3][999] = (arrays[3][999] + 1) % 10


def never_singular(entry: str, arrays: list[np.ndarray]) -> None:
    if entry == "fused":
        np.abs(arrays[4], out=arrays[4])


@pytest.mark.parametrize(
    ("name", "after", "words"),
    [
        ("emulator_agrees_bit_by_bit[class_blocks]", last_bit, r"model\[468\]"),
        ("poison_is_seen_and_overwritten[class_blocks]", forgotten, "model"),
        ("one_graph_follows_its_inputs[fused]", other_class, None),
        ("kernels_name_what_they_cannot_train[fused]", never_singular, "singular_class"),
    ],
)
def test_a_check_fails_where_the_gpu_does_otherwise(
    name: str, after: Callable[..., None], words: str | None, emulate: Callable[[EmulatingGpu], None]
) -> None:
    emulate(EmulatingGpu(after))
    with pytest.raises(AssertionError, match=words):
        CHECKS[name]()


def contestant(name: str, us: list[float], log: list[str]) -> Contestant:
    times = iter([us[0], us[0], us[0], *us])  # three calls to warm up and to calibrate

    def run(repeats: int) -> float:
        log.append(name)
        return next(times) * repeats / 1000

    return Contestant(name, run, lambda: np.array([1, 2]), lambda: log.append(f"{name} closed"))


def test_a_race_is_interleaved_and_one_that_cannot_run_does_not_stop_it() -> None:
    log: list[str] = []

    def broken() -> Contestant:
        raise RuntimeError("no compiler\nand much more")

    makers = {
        "a": lambda: contestant("a", [10, 12, 11], log),
        "b": lambda: contestant("b", [33, 33, 36], log),
        "c": broken,
    }
    rows = race(makers, np.array([1, 3]), rounds=3, segment_ms=1)
    assert log == [*"aaa", *"bbb", *"ab", *"ba", *"ab", "a closed", "b closed"]
    assert [row.median_us for row in rows] == [pytest.approx(11), pytest.approx(33), None]
    assert [row.repeats for row in rows] == [100, 30, 0]
    assert [row.agreed for row in rows] == [1, 1, None]
    lines = table(rows)
    assert lines[2].split() == ["b", "33.00", "33.00", "36.00", "3.00", "1"]
    assert lines[3].split(maxsplit=1) == ["c", "not run: RuntimeError: no compiler"]


def run_all(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "run_all"), *arguments],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_run_all_says_politely_that_it_needs_a_gpu(tmp_path: Path) -> None:
    result = run_all("--out", str(tmp_path / "r.json"))
    (line,) = result.stderr.splitlines()
    assert (result.returncode, result.stdout) == (5, "")
    assert line.startswith("run_all: needs a CUDA GPU: ")
    assert not (tmp_path / "r.json").exists()


def test_a_dry_run_races_on_the_cpu_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs torch")
    result = run_all("--out", str(tmp_path / "r.json"), "--device", "cpu", "--quick")
    assert result.returncode == 0, result.stderr
    assert "these are no GPU figures" in result.stdout
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert (written["dry_run"], written["checks"]) == (True, [])
    assert {row["name"]: row["agreed"] for row in written["benchmark"]["rows"]} == {
        "class_blocks, graph": 1000,
        "record, graph": 1000,
        "fused, graph": 1000,
        "torch float32, eager": 1000,
        "torch float64, eager": 1000,
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torchs_version_of_the_task_is_right_on_every_draw(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from tests.gpu.checks import draws
    from tests.gpu.torch_qda import predict

    agreed = 0
    for draw in draws():
        x, q = (torch.from_numpy(values.copy()).to(getattr(torch, dtype)) for values in (draw.x, draw.q))
        predicted = predict(x, torch.from_numpy(draw.labels.copy()), q)
        agreed += int((predicted.numpy() == draw.frozen_predictions).sum())
    assert agreed == 11000

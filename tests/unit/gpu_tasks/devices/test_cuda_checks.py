"""The checks for a GPU, on the GPU device over a fake whose kernels are the emulator: the real PTX, end to end.

Without this, the checks themselves would run for the first time on the machine that they are to judge.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.cuda import board as shared
from gpu_tasks.devices.cuda import control, device, instruments
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.registry import Simulation, open_device
from gpu_tasks.energy import preflight
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.simulation.nvml import FakeNvml
from gpu_tasks.records import TaskError
from tests.gpu import checks, energy_checks
from tests.gpu.checks import CHECKS, DRY_CHECKS, QDA, ROOT
from tests.gpu.contestants import Contestant
from tests.gpu.race import race, table
from tests.unit.gpu_tasks.devices.cuda_board import UUID, Board
from tests.unit.gpu_tasks.devices.cuda_emulating import EmulatingGpu
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch


@pytest.fixture
def emulate(monkeypatch: pytest.MonkeyPatch) -> Callable[[EmulatingGpu], None]:
    def use(gpu: EmulatingGpu) -> None:
        monkeypatch.setattr(shared, "find_gpu", lambda: Driver(FakeLibrary(gpu)))
        monkeypatch.setattr(shared, "load_torch", lambda: fake_torch(gpu))

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


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Dry checks on a simulated board that is told to show something."""

    def use(inject: str, seed: int = 1) -> None:
        made_up = Simulation(inject=inject or None, seed=seed)
        monkeypatch.setattr(checks, "open_device", partial(open_device, simulation=made_up))

    return use


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("name", DRY_CHECKS)
def test_a_healthy_board_passes_the_energy_checks(name: str, seed: int, simulate: Callable[..., None]) -> None:
    simulate("", seed)
    assert DRY_CHECKS[name]()


UNHEALTHY = [
    ("the_sampler_delivers", "sampler_gap", "expected gaps under 0.5 s"),
    ("both_meters_agree", "counter_backwards", "counter -"),
    ("both_meters_agree", "lost_gpu", "fallen off the bus"),
    ("the_reference_load_costs_what_it_should", "faulty_sensor", "expected 6 to 11 J"),
    ("the_reference_load_costs_what_it_should", "sensor*0.5", "expected 6 to 11 J"),
    ("a_short_round_has_sensible_figures", "counter_backwards", "adjusted -"),
    ("a_short_round_has_sensible_figures", "stuck_counter", "expected a step within"),
]


@pytest.mark.parametrize(("name", "inject", "words"), UNHEALTHY)
def test_an_unhealthy_board_does_not(name: str, inject: str, words: str, simulate: Callable[..., None]) -> None:
    simulate(inject)
    with pytest.raises((AssertionError, TaskError), match=words):
        DRY_CHECKS[f"{name}[simulated]"]()


def test_meters_that_differ_by_more_than_is_allowed_are_found(
    simulate: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate("meters_disagree")  # by 5 %, less what the counter's steps hide
    monkeypatch.setattr(energy_checks, "METERS_AGREE_WITHIN", 0.045)
    with pytest.raises(AssertionError, match=r"counter 2.* J, samples 2.* J \(\+4\."):
        DRY_CHECKS["both_meters_agree[simulated]"]()


def test_a_counter_that_stands_still_is_found(simulate: Callable[..., None]) -> None:
    simulate("stuck_counter")
    with checks.replaying("simulated") as board, pytest.raises(TaskError, match="expected a step within"):
        board.replay(200_000)  # it stands still from the middle of the first window on
        energy_checks.the_counter_steps(board, opened(board))


def opened(of: Device) -> Instruments:
    found = of.instruments()
    assert isinstance(found, Instruments)
    return found


@pytest.fixture
def on_fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[device.CudaQda, Board]]:
    """The GPU device over the fakes, ready to replay, and the board that the fake NVML shows."""
    gpu, draw = FakeGpu(), checks.draws()[0]
    board = Board(gpu)
    monkeypatch.setattr(instruments, "load_nvml", lambda: FakeNvml(board))
    monkeypatch.setattr(control, "MOST_REPLAYS", 10)
    monkeypatch.setattr(energy_checks, "CONTROL_REPLAYS", 10)
    with closing(device.CudaQda(QDA, driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu))) as found:
        found.load(draw.x, draw.labels, draw.q)
        found.capture()
        yield found, board


def test_the_gpu_device_passes_what_needs_no_waiting(on_fakes: tuple[device.CudaQda, Board]) -> None:
    qda, board = on_fakes
    tools = opened(qda)
    board.reported_pid = 15008
    assert UUID in energy_checks.nvml_shows_the_board_that_computes(qda, tools)
    assert "is 15008 for NVML" in energy_checks.memory_that_is_held_shows_whose_process_it_is(qda, tools)
    assert energy_checks.the_control_lasts_as_long_as_the_task(qda, tools).endswith("us for 10000.00 us")


def test_a_control_of_another_length_is_found(
    on_fakes: tuple[device.CudaQda, Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    qda, _ = on_fakes
    right = qda.control
    monkeypatch.setattr(qda, "control", lambda replay_s: right(1.2 * replay_s))
    with pytest.raises(AssertionError, match=r"us for 1000\.00 us"):
        energy_checks.the_control_lasts_as_long_as_the_task(qda, opened(qda))


def test_memory_that_nobody_is_seen_to_hold_is_found(
    on_fakes: tuple[device.CudaQda, Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    qda, board = on_fakes
    monkeypatch.setattr(board, "processes", lambda: {1: 2**30})
    monkeypatch.setattr(preflight, "_SETTLED_S", 0.0)
    with pytest.raises(AssertionError, match=r"expected one process to hold 128 MiB, found set\(\) of 1: 1024 MiB"):
        energy_checks.memory_that_is_held_shows_whose_process_it_is(qda, opened(qda))


def test_without_a_counter_nothing_is_judged_and_the_reason_is_what_is_found(simulate: Callable[..., None]) -> None:
    simulate("no_counter")
    for check in DRY_CHECKS.values():
        found = check()
        assert found is not None
        assert found.startswith("not judged: no_energy_counter: nvmlDeviceGetTotalEnergyConsumption")


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
        timeout=600,
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
    assert written["dry_run"]
    assert [(check["name"], check["failure"]) for check in written["checks"]] == [(name, None) for name in DRY_CHECKS]
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

"""The reference load on a fake torch: float32 whatever the process chose, checked, timed and left without traces."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from gpu_tasks.devices.cuda import known_load
from gpu_tasks.devices.cuda.known_load import WARM_UP_S, TorchKnownLoad
from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.records import CounterReading
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, FakeTensor, fake_torch

SIZE = 64
WATTS = 250.0


class Meter:
    """Clock and counter over the fake GPU's own time: 250 W all along."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.reads = gpu, 0

    def now(self) -> float:
        return self.gpu.time_ms / 1000

    def sleep(self, seconds: float) -> None:
        self.gpu.time_ms += 1000 * seconds

    def read_counter(self) -> CounterReading:
        self.reads += 1
        self.gpu.called("read")
        return CounterReading(round(WATTS * self.gpu.time_ms), self.now(), 0.0)


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


def load(gpu: FakeGpu, size: int = SIZE) -> TorchKnownLoad:
    meter = Meter(gpu)
    return TorchKnownLoad(fake_torch(gpu), meter, meter, size)  # type: ignore[arg-type]  # only its counter is read


def test_it_works_for_the_wished_time_between_two_readings(gpu: FakeGpu) -> None:
    run = load(gpu).run(3.0)
    assert (run.size, run.repeats) == (SIZE, round(3000 / gpu.product_ms))
    assert run.end.time_s - run.start.time_s == pytest.approx(run.repeats * gpu.product_ms / 1000)
    assert run.end.energy_mj - run.start.energy_mj == pytest.approx(3000 * WATTS, rel=0.01)
    assert run.start.time_s >= WARM_UP_S, "warmed up before the first reading"
    first, last = [i for i, call in enumerate(gpu.calls) if call == "read"]
    between = gpu.calls[first + 1 : last]
    assert between.count("product") == run.repeats
    assert set(between) == {"product", "synchronize"}, "nothing is allocated or copied between the readings"


@pytest.mark.parametrize("seconds", [0.001, 0.0])
def test_it_always_works_once(gpu: FakeGpu, seconds: float) -> None:
    assert load(gpu).run(seconds).repeats == 1


@pytest.mark.parametrize("precision", ["high", "medium", "highest"])
def test_it_is_float32_and_the_processes_choice_is_back_afterwards(gpu: FakeGpu, precision: str) -> None:
    meter, torch = Meter(gpu), fake_torch(gpu)
    torch.set_float32_matmul_precision(precision)
    run = TorchKnownLoad(torch, meter, meter, SIZE).run(0.1)  # type: ignore[arg-type]
    assert run.largest_error < 1e-3
    assert torch.get_float32_matmul_precision() == precision


def test_the_choice_is_back_after_an_error_too(gpu: FakeGpu) -> None:
    meter, torch = Meter(gpu), fake_torch(gpu)
    torch.set_float32_matmul_precision("medium")
    gpu.fault = 700
    with pytest.raises(RuntimeError, match="illegal memory access"):
        TorchKnownLoad(torch, meter, meter, SIZE).run(0.1)  # type: ignore[arg-type]
    assert torch.get_float32_matmul_precision() == "medium"


def test_tf32_that_the_environment_forces_shows_in_the_error(gpu: FakeGpu) -> None:
    meter, torch = Meter(gpu), fake_torch(gpu)
    torch.backends.cuda.matmul.forced = True
    assert TorchKnownLoad(torch, meter, meter, SIZE).run(0.1).largest_error > 1e-3  # type: ignore[arg-type]


def test_a_wrong_product_shows_in_the_error(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    read = FakeTensor.cpu

    def damaged(tensor: FakeTensor) -> FakeTensor:
        found = read(tensor)
        found.array[:, 0] *= np.float32(1.01)
        return found

    monkeypatch.setattr(FakeTensor, "cpu", damaged)
    assert load(gpu, 16).run(0.1).largest_error == pytest.approx(0.01, rel=0.01)


def test_inputs_are_the_same_in_every_run_and_are_no_special_numbers(gpu: FakeGpu) -> None:
    copied: list[np.ndarray] = []
    torch = fake_torch(gpu)
    take = torch.from_numpy
    torch.from_numpy = lambda values: copied.append(values.copy()) or take(values)
    meter = Meter(gpu)
    for _ in range(2):
        TorchKnownLoad(torch, meter, meter, SIZE).run(0.1)  # type: ignore[arg-type]
    left, right, again, last = copied
    np.testing.assert_array_equal(left, again)
    np.testing.assert_array_equal(right, last)
    assert (left != right).all()
    assert left.std() == pytest.approx(1, rel=0.05)


def test_it_leaves_no_memory_behind(gpu: FakeGpu) -> None:
    load(gpu).run(0.1)
    assert gpu.process_bytes == 0


def test_torch_itself_takes_the_same_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, with a stand-in for what only a GPU has: names, signatures and the result are torch's own."""
    torch = pytest.importorskip("torch", reason="needs torch")
    monkeypatch.setattr(known_load, "WARM_UP_S", 0.01)
    on_cpu = SimpleNamespace(**{name: getattr(torch, name) for name in TORCH_NAMES})
    on_cpu.zeros = lambda shape, dtype, device: torch.zeros(shape, dtype=dtype, device={"cuda": "cpu"}[device])
    on_cpu.cuda = SimpleNamespace(synchronize=lambda: None, empty_cache=torch.cuda.empty_cache)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        run = TorchKnownLoad(on_cpu, Meter(FakeGpu()), MonotonicClock(), 64).run(0.0)  # type: ignore[arg-type]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert run.largest_error < 1e-3


TORCH_NAMES = (
    "float32",
    "from_numpy",
    "matmul",
    "backends",
    "get_float32_matmul_precision",
    "set_float32_matmul_precision",
)

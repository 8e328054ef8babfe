"""The control on a fake GPU: as many launches as the task's graph, as long as was asked, and freed with the device."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.devices.cuda import control, errors
from gpu_tasks.devices.cuda.control import STEPS, ControlFailed
from gpu_tasks.devices.cuda.device import CudaQda
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload
from tests.unit.gpu_tasks.devices.cuda_emulating import EmulatingGpu
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch

QDA = get_workload("qda")


def make(gpu: FakeGpu, variant: str = "class_blocks", qda: Workload = QDA) -> CudaQda:
    return CudaQda(qda, load_kernels(variant=variant), driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu))


@pytest.fixture(autouse=True, scope="module")
def few_replays() -> Iterator[None]:
    """Every replay of a calibration is Python here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(control, "WARM_UP_S", 1e-3)
        patch.setattr(control, "MEASURED_S", 1e-4)
        patch.setattr(control, "MOST_REPLAYS", 100)
        yield


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


def milliseconds(device: CudaQda, replay_s: float, repeats: int = 10) -> float:
    timing = device.control(replay_s)(repeats)
    assert timing.reason is None
    assert timing.device_ms_per_replay is not None
    return timing.device_ms_per_replay


@pytest.mark.parametrize(("variant", "launches"), [("class_blocks", 2), ("record", 2), ("fused", 1)])
def test_it_has_the_tasks_shape_and_the_wished_length(gpu: FakeGpu, variant: str, launches: int) -> None:
    device = make(gpu, variant)
    replay = device.control(17e-6)
    gpu.launches.clear()
    before = gpu.time_ms
    timing = replay(100)
    assert timing.device_ms_per_replay == pytest.approx(0.017, rel=0.05)
    assert gpu.time_ms - before == pytest.approx(1.7, rel=0.05)
    assert gpu.launches == [], "a replay must not launch eagerly"
    device._spins._record(3)
    assert gpu.launches == [("control", (1, 1, 1, 32, 1, 1), 0)] * 2 * launches  # to warm up, and in the graph


@settings(deadline=None, max_examples=200)
@given(
    replay_us=st.floats(5, 2000),
    iteration_ns=st.floats(3, 60),
    floor_us=st.floats(0.1, 2.3),
    hidden_us=st.floats(0, 4),
)
def test_it_is_calibrated_whatever_an_iteration_takes(
    replay_us: float, iteration_ns: float, floor_us: float, hidden_us: float
) -> None:
    """``hidden_us``: what of a launch's spin vanishes behind the time that launching takes anyway."""
    gpu = FakeGpu()
    gpu.control_ms = lambda iterations: (floor_us + max(0.0, iteration_ns * iterations / 1000 - hidden_us)) / 1000
    device = make(gpu)
    assert milliseconds(device, replay_us * 1e-6) * 1000 == pytest.approx(replay_us, rel=0.05)


def test_several_controls_stand_beside_each_other_and_the_task(gpu: FakeGpu) -> None:
    device = make(gpu)
    short, long = device.control(20e-6), device.control(500e-6)
    assert [replay(3).device_ms_per_replay for replay in (short, long, short)] == [
        pytest.approx(expected, rel=0.05) for expected in (0.02, 0.5, 0.02)
    ]
    assert gpu.calls.count("cuModuleLoadData") == 3, "one module for all controls, beside the task's two"


def test_launches_that_take_too_long_themselves_are_named(gpu: FakeGpu) -> None:
    device = make(gpu)
    with pytest.raises(ControlFailed, match=r"control of 3 us: expected 2 idle launches to take less, found 4 us") as e:
        device.control(3e-6)
    assert (e.value.code, e.value.outcome) == ("control_too_short", Outcome.INVALID_MEASUREMENT)


def test_a_clock_that_never_settles_is_given_up(gpu: FakeGpu) -> None:
    device = make(gpu)
    graphs = gpu.calls.count("reset")
    gpu.control_ms = lambda iterations: 0.001 if iterations < 1 else 1.0
    with pytest.raises(ControlFailed, match=rf"expected a replay within 5% of it, found .* after {STEPS} steps") as e:
        device.control(20e-6)
    assert e.value.code == "control_not_calibrated"
    assert gpu.calls.count("capture_begin") == STEPS
    assert gpu.calls.count("reset") - graphs == STEPS, "every graph of the calibration is freed"


@pytest.mark.parametrize("replay_s", [0.0, -1e-6, math.nan, math.inf])
def test_a_length_that_is_none_is_bad_input(gpu: FakeGpu, replay_s: float) -> None:
    with pytest.raises(BadInput, match="replay_s: expected a time over 0 s") as caught:
        make(gpu).control(replay_s)
    assert caught.value.code == "bad_replay_s"


def test_a_nonsensical_length_ends_soon(gpu: FakeGpu) -> None:
    device = make(gpu)
    before = gpu.calls.count("replay")
    with pytest.raises(ControlFailed, match="idle launches"):
        device.control(1e-12)
    assert gpu.calls.count("replay") - before <= 2 * control.MOST_REPLAYS


def test_closing_frees_graphs_and_module(gpu: FakeGpu) -> None:
    device = make(gpu)
    replay = device.control(20e-6)
    resets = gpu.calls.count("reset")
    device.close()
    assert gpu.calls.count("reset") == resets + 1
    assert gpu.modules == set()
    for late in (lambda: replay(1), lambda: device.control(20e-6)):
        with pytest.raises(InfrastructureFailure, match="expected an open device, found a closed one"):
            late()


def test_a_control_that_cannot_be_bound_leaves_no_module_behind(gpu: FakeGpu) -> None:
    device = make(gpu)
    modules = set(gpu.modules)
    gpu.failing = {"cuModuleGetFunction": 500}
    with pytest.raises(errors.RefusedKernel, match="control: cuModuleGetFunction"):
        device.control(20e-6)
    assert gpu.modules == modules


def test_the_kernel_itself_runs_in_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the emulator: the number of iterations arrives, and is what a lane has gone through."""
    monkeypatch.setattr(control, "MOST_REPLAYS", 3)
    gpu = EmulatingGpu()
    results: list[np.ndarray] = []
    gpu.after = lambda entry, arrays: results.append(arrays[0].copy()) if entry == "control" else None
    make(gpu).control(4.4e-6)(1)  # 2 launches of 2 us and 20 iterations of 10 ns
    x = np.arange(1, 33, dtype=np.float32) / np.float32(64)
    for _ in range(20):
        x = np.float32(3.75) * (x * (np.float32(1) - x))
    np.testing.assert_array_equal(results[-1], x)
    assert len(results) == 2 * (2 + 2 * 6) + 2, "two calibration steps, each warmed up and timed, and one replay"

"""The GPU device on a fake driver and a fake torch: order of calls, graph, poison, status, errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_tasks.devices.cuda import errors
from gpu_tasks.devices.cuda.device import INT_POISON, CudaQda
from gpu_tasks.devices.cuda.driver import Driver
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome, TaskError
from gpu_tasks.validation import execute
from gpu_tasks.workloads.base import Workload
from tests.unit.gpu_tasks.devices.cuda_fake_library import FakeLibrary
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, fake_torch, nearest_mean


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu()


def make(gpu: FakeGpu, qda: Workload, **options: object) -> CudaQda:
    return CudaQda(qda, driver=Driver(FakeLibrary(gpu)), torch=fake_torch(gpu), **options)


@pytest.fixture
def device(gpu: FakeGpu, qda: Workload) -> CudaQda:
    return make(gpu, qda)


def load(device: CudaQda, draw: Draw) -> np.ndarray:
    """Load a draw; what the fake kernels have to predict for it."""
    device.load(draw.x, draw.labels, draw.q)
    return nearest_mean(draw.x, draw.labels, draw.q)


def test_buffers_come_before_modules_and_every_launch_is_as_the_manifest_says(
    gpu: FakeGpu, device: CudaQda, draws: list[Draw]
) -> None:
    assert gpu.calls.count("zeros") == 6  # x, labels, model, status, q, predictions: model only once
    last_buffer = len(gpu.calls) - 1 - gpu.calls[::-1].index("zeros")
    assert last_buffer < gpu.calls.index("cuModuleLoadData")
    expected = load(device, draws[0])
    device.eager()
    assert gpu.launches == [("train", (10, 1, 1, 512, 1, 1), 0), ("score", (32, 1, 1, 320, 1, 1), 0)]
    np.testing.assert_array_equal(device.predictions(), expected)
    assert device.predictions().dtype == np.int32
    assert gpu.dynamic_shared == {}


def test_more_than_48_kib_of_shared_memory_is_opted_in(gpu: FakeGpu, qda: Workload) -> None:
    make(gpu, qda, kernels=load_kernels(variant="fused"))
    assert gpu.dynamic_shared == {"fused": 60992}


def test_capture_is_warmed_up_runs_nothing_itself_and_leaves_poison(
    gpu: FakeGpu, device: CudaQda, draws: list[Draw]
) -> None:
    load(device, draws[0])
    gpu.calls.clear()
    device.capture()
    begin = gpu.calls.index("capture_begin")
    assert "cuLaunchKernel" in gpu.calls[:begin]
    assert gpu.calls[begin - 1] == "synchronize"
    assert gpu.calls[begin + 1 : begin + 4] == ["cuLaunchKernel", "cuLaunchKernel", "capture_end"]
    assert gpu.capturing == {}
    with pytest.raises(BadInput, match=r"predictions\[0\] has not been written"):
        device.predictions()


def test_one_graph_serves_changed_inputs(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[10])
    device.capture()
    launches = len(gpu.launches)
    for draw in draws[:3]:
        expected = load(device, draw)
        device.poison_scratch()
        device.replay()
        np.testing.assert_array_equal(device.predictions(), expected)
    assert len(gpu.launches) == launches, "a replay must not launch eagerly"
    assert gpu.calls.count("capture_begin") == 1


def test_validation_runs_on_it(device: CudaQda, qda: Workload, draws: list[Draw]) -> None:
    execution = execute(device, qda, draws[4], draws[5])
    assert execution.replays_equal_eager == [True, True, True]
    np.testing.assert_array_equal(execution.predictions, nearest_mean(draws[4].x, draws[4].labels, draws[4].q))


def test_a_loop_of_replays_is_timed_by_events(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.capture()
    timing = device.replay(7)
    assert (timing.device_ms_per_replay, timing.reason) == (1.0, None)
    assert gpu.calls.count("replay") == 7


def test_poison_reaches_everything_that_is_written(device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.eager()
    device.poison_scratch()
    assert np.isnan(device.scratch()["model"]).all()
    for role in ("status", "predictions"):
        with pytest.raises(BadInput, match=role):
            device._output(role)
    assert np.array([INT_POISON], np.int32).view(np.uint32)[0] == 0xDEADBEEF


@pytest.mark.parametrize(("entry", "code"), [("score", "unwritten_output"), ("train", "unwritten_output")])
def test_a_launch_that_does_nothing_is_seen_after_poisoning(
    gpu: FakeGpu, device: CudaQda, draws: list[Draw], entry: str, code: str
) -> None:
    load(device, draws[0])
    device.capture()
    device.replay()
    gpu.skipped = {entry}
    device.replay()  # the outputs of the replay before hide it
    device.poison_scratch()
    with pytest.raises(BadInput) as caught:
        device.replay()
    assert caught.value.code == code


def test_the_kernels_name_the_class_that_they_cannot_train(device: CudaQda, draws: list[Draw]) -> None:
    draw = draws[0]
    device.load(draw.x, draw.labels, draw.q)
    device.capture()
    labels = draw.labels.astype(np.int32)
    flat = draw.x.copy()
    flat[labels == 4, 2] = 0.25
    cases = (
        (draw.x, np.where(labels == 7, 8, labels).astype(np.int32), "empty_class", "class 7"),
        (flat, labels, "singular_class", "class 4"),
        (draw.x, np.where(np.arange(1000) == 5, 10, labels).astype(np.int32), "bad_label", "found 999"),
    )
    for x, changed, code, words in cases:
        device.load_unchecked(x, changed, draw.q)
        for run in (device.eager, device.replay):
            with pytest.raises(BadInput, match=words) as caught:
                run()
            assert caught.value.code == code


def test_inputs_are_checked_on_loading(device: CudaQda, draws: list[Draw]) -> None:
    draw = draws[0]
    with pytest.raises(BadInput, match="999"):
        device.load(draw.x[1:], draw.labels[1:], draw.q)
    with pytest.raises(BadInput, match="int64"):
        device.load(draw.x, draw.labels.astype(np.int32), draw.q)  # type: ignore[arg-type]


def test_arrays_may_be_read_only_and_in_any_order(device: CudaQda, draws: list[Draw]) -> None:
    draw = draws[2]
    x, q = np.asfortranarray(draw.x), np.asfortranarray(draw.q)
    x.flags.writeable = q.flags.writeable = False
    device.load(x, draw.labels, q)
    device.eager()
    np.testing.assert_array_equal(device.predictions(), nearest_mean(draw.x, draw.labels, draw.q))


def test_triton_10596_pytorch_87794_a_failed_capture_ends_the_stream_and_falls_back_to_nothing(
    gpu: FakeGpu, device: CudaQda, draws: list[Draw]
) -> None:
    expected = load(device, draws[0])
    device.capture()
    gpu.failing = {"capture_end": 901}
    with pytest.raises(errors.CaptureFailed, match="found CUDA error: operation failed due to a previous") as caught:
        device.capture()
    assert caught.value.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert gpu.capturing == {}
    assert gpu.calls[-1] == "cuStreamEndCapture"
    with pytest.raises(InfrastructureFailure, match="expected a captured graph"):
        device.replay()
    gpu.failing = {}
    device.eager()
    np.testing.assert_array_equal(device.predictions(), expected)


def test_a_launch_refused_in_a_capture_ends_it_too(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    begin = device._driver.launch

    def refuse_in_capture(*arguments: object, **options: object) -> None:
        gpu.failing = {"cuLaunchKernel": 900} if gpu.capturing else {}
        begin(*arguments, **options)  # type: ignore[arg-type]

    device._driver.launch = refuse_in_capture  # type: ignore[method-assign,assignment]
    with pytest.raises(errors.CaptureFailed, match="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        device.capture()
    assert gpu.capturing == {}


def test_flagtree_1127_the_callers_work_is_waited_for(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.capture()
    first, second = draws[0], draws[1]
    expected = nearest_mean(first.x, first.labels, second.q)
    for run in (device.replay, device.eager):
        load(device, first)
        device._buffers["q"].copy_(fake_torch(gpu).from_numpy(second.q.copy()))  # queued on the caller's stream
        assert gpu.caller.pending
        run()
        np.testing.assert_array_equal(device.predictions(), expected)


@pytest.mark.parametrize(("code", "outcome"), [(46, Outcome.INFRASTRUCTURE_FAILURE), (700, Outcome.BAD_INPUT)])
def test_what_torch_raises_becomes_the_drivers_error(
    gpu: FakeGpu, device: CudaQda, draws: list[Draw], code: int, outcome: Outcome
) -> None:
    load(device, draws[0])
    gpu.fault = code
    with pytest.raises(TaskError) as caught:
        device.eager()
    assert caught.value.outcome is outcome
    assert caught.value.code == errors.CODES[code][0].lower()
    device.close()
    assert gpu.modules == set()


def test_too_little_memory_is_not_the_kernels_fault_and_leaves_nothing_behind(gpu: FakeGpu, qda: Workload) -> None:
    gpu.fault = 2
    with pytest.raises(errors.OutOfDeviceMemory, match="CUDA out of memory"):
        make(gpu, qda)
    assert gpu.modules == set()


def test_a_message_that_no_code_explains_is_the_machines(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    def broken() -> None:
        raise RuntimeError("something else\nwith more lines")

    device._stream.synchronize = broken
    with pytest.raises(errors.CudaFailure, match=r"found something else$") as caught:
        device.poison_scratch()
    assert caught.value.code == "cuda_runtime_error"


@pytest.mark.parametrize("name", ["eager", "capture"])
def test_a_run_needs_inputs(device: CudaQda, name: str) -> None:
    with pytest.raises(InfrastructureFailure, match=f"{name}: expected loaded inputs"):
        getattr(device, name)()


def test_the_fingerprint_is_the_drivers(device: CudaQda) -> None:
    fingerprint = device.fingerprint()
    assert (fingerprint.kind, fingerprint.name) == ("cuda", "NVIDIA A100-SXM4-40GB")
    assert fingerprint.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (fingerprint.multiprocessors, fingerprint.compute_capability) == (108, [8, 0])
    assert device.intermediates() is None


def test_closing_frees_and_may_be_repeated(gpu: FakeGpu, device: CudaQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.capture()
    device.close()
    assert gpu.modules == set()
    assert gpu.calls.index("reset") < gpu.calls.index("cuModuleUnload")
    calls = list(gpu.calls)
    device.close()
    assert gpu.calls == calls


def test_kernels_that_cannot_be_bound_leave_no_module_behind(gpu: FakeGpu, qda: Workload) -> None:
    gpu.failing = {"cuModuleGetFunction": 500}
    with pytest.raises(errors.RefusedKernel, match="train: cuModuleGetFunction"):
        make(gpu, qda)
    assert "cuModuleLoadData" in gpu.calls
    assert gpu.modules == set()


PARAMETERS = (
    ("wrong_entry", ".entry train", ".entry other"),
    ("wrong_parameter_count", ",\n\t.param .u64 status", ""),
    ("wrong_parameter_count", ".param .u64 x,", ".param .u64 x, .param .u64 more,"),
    ("wrong_parameter_type", ".param .u64 labels", ".param .u32 labels"),
    ("wrong_parameter_type", ".param .u64 labels", ".param .b64 labels[2]"),
)


@pytest.mark.parametrize(("code", "found", "changed"), PARAMETERS)
def test_parameters_that_the_driver_cannot_check_are_checked(
    gpu: FakeGpu, qda: Workload, code: str, found: str, changed: str
) -> None:
    kernels = load_kernels()
    assert found in kernels.texts[0]
    texts = [kernels.texts[0].replace(found, changed, 1), kernels.texts[1]]
    with pytest.raises(BadInput) as caught:
        make(gpu, qda, kernels=replace(kernels, texts=texts))
    assert caught.value.code == code
    assert "cuModuleLoadData" not in gpu.calls


def test_a_comment_is_no_entry(gpu: FakeGpu, qda: Workload) -> None:
    kernels = load_kernels()
    texts = ["// .entry train(none)\n" + kernels.texts[0], kernels.texts[1]]
    make(gpu, qda, kernels=replace(kernels, texts=texts))

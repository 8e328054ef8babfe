"""Faults: each strikes the call that it is for, when it is due and as often as it says, through the real adapter."""

from __future__ import annotations

import threading
from typing import Any

import pynvml
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.energy.nvml.errors import CODES, NvmlError, NvmlGpuIsLost, NvmlHung, NvmlNotReady, NvmlResetRequired
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.simulation import faults
from gpu_tasks.energy.simulation.faults import ENERGY, EVERY, Fault, FaultyNvml
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.energy.simulation.nvml import FakeNvml

CODES_OF_THE_BINDINGS = [value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")]


def faulty(*found: Fault, without: tuple[str, ...] = (), timeout_s: float | None = None) -> NvmlGpu:
    gpu = SimulatedGpu(seed=1)
    return NvmlGpu(
        FaultyNvml(FakeNvml(gpu), *found, without=without), uuid=gpu.uuid, clock=gpu.clock, timeout_s=timeout_s
    )


@pytest.mark.parametrize("code", sorted(set(CODES_OF_THE_BINDINGS)))
def test_each_code_after_some_reads(code: int) -> None:
    gpu = faulty(faults.failing(ENERGY, code, after=3, times=2))
    for _ in range(3):
        gpu.read_counter()
    for _ in range(2):
        with pytest.raises(NvmlError) as caught:
            gpu.read_counter()
        assert caught.value.value == code
        assert type(caught.value) is CODES[code]
    assert gpu.read_counter().energy_mj > 0


@settings(deadline=None)
@given(st.integers(0, 5), st.none() | st.integers(0, 5), st.integers(0, 12))
def test_a_fault_is_due_from_after_on_for_some_times(after: int, times: int | None, calls: int) -> None:
    due = faults.failing(ENERGY, 15, after, times).due(calls)
    assert due == (calls in range(after, 1000 if times is None else after + times))


def test_faults_strike_their_function_only() -> None:
    gpu = faulty(faults.failing("nvmlDeviceGetPowerUsage", 3), faults.failing("nvmlDeviceGetFieldValues", 3))
    state = gpu.state()
    assert state.power_w is None
    assert "NVML_ERROR_NOT_SUPPORTED" in state.unavailable["power_w"]
    assert state.sm_clock_mhz == 1410


def test_a_lost_gpu_stays_lost() -> None:
    gpu = faulty(faults.lost(after=6))
    with pytest.raises(NvmlGpuIsLost):
        gpu.state()
    with pytest.raises(NvmlGpuIsLost):
        gpu.read_counter()
    with pytest.raises(NvmlResetRequired):
        faulty(faults.reset(after=6)).state()


def test_stuck_and_backwards() -> None:
    def readings(*found: Fault) -> list[int]:
        gpu = SimulatedGpu(seed=1)
        adapter = NvmlGpu(FaultyNvml(FakeNvml(gpu), *found), uuid=gpu.uuid, clock=gpu.clock, timeout_s=None)
        taken = []
        for _ in range(6):
            taken.append(adapter.read_counter().energy_mj)
            gpu.clock.sleep(1.0)
        return taken

    free, stuck, fallen = readings(), readings(faults.stuck(after=2)), readings(faults.backwards(10**6, after=2))
    assert len(set(free)) == 6
    assert stuck == [*free[:3], *[free[2]] * 3]
    assert fallen == [*free[:2], *(value - 10**6 for value in free[2:])]


@pytest.mark.parametrize("width", [faults.BLANK_UINT, faults.BLANK_ULONGLONG])
def test_blank_values_are_no_numbers(width: int) -> None:
    gpu = faulty(faults.blank("nvmlDeviceGetTemperature", width), faults.blank(ENERGY, width))
    state = gpu.state()
    assert state.temperature_c is None
    assert set(state.unavailable) == {"temperature_c", "energy_counter"}


def test_throttle_bits_a_new_process_another_driver() -> None:
    gpu = faulty(
        *faults.throttled(0x40, after=1),
        faults.new_process(after=1),
        faults.other_driver("570.86.15", after=1),
        faults.answering("nvmlDeviceGetEnforcedPowerLimit", 300_000, after=1),
    )
    before, after = gpu.state(), gpu.state()
    assert before.throttle_reasons == 0x1
    assert after.throttle_reasons == 0x41
    assert (before.driver, after.driver) == ("580.105.08", "570.86.15")
    assert (before.power_limit_w, after.power_limit_w) == (400.0, 300.0)
    assert before.processes is not None
    assert after.processes is not None
    assert len(after.processes) == len(before.processes) + 1
    assert 4242 in gpu.process_memory()
    unknown = faulty(faults.new_process(used_bytes=None)).process_memory()
    assert unknown[4242] is None


def test_an_old_driver_and_old_bindings_lack_a_function() -> None:
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    for gpu in (faulty(faults.old_driver(name)), faulty(without=(name,))):
        assert gpu.state().throttle_reasons == 0x1  # by its older name
    assert not hasattr(FaultyNvml(FakeNvml(SimulatedGpu()), without=(name,)), name)
    rows = "nvmlDeviceGetRemappedRows"
    for gpu in (faulty(faults.old_driver(rows)), faulty(without=(rows,))):
        assert set(gpu.state().unavailable) == {"row_remap_pending"}


def test_the_first_reads_may_not_be_ready() -> None:
    gpu = faulty(faults.failing(ENERGY, pynvml.NVML_ERROR_NOT_READY, times=1))
    with pytest.raises(NvmlNotReady):
        gpu.read_counter()
    assert gpu.read_counter().energy_mj > 0


def test_a_call_that_hangs_until_it_is_let_go() -> None:
    release = threading.Event()
    gpu = faulty(faults.hanging(ENERGY, release), timeout_s=30.0)
    gpu._nvml._timeout_s = 0.05  # from now on: a busy machine may take its time before
    with pytest.raises(NvmlHung):
        gpu.read_counter()
    release.set()


def test_calls_are_counted_and_constants_pass_through() -> None:
    nvml = FaultyNvml(FakeNvml(SimulatedGpu()))
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    nvml.nvmlDeviceGetName(handle)
    nvml.nvmlDeviceGetTemperature(handle, sensor=nvml.NVML_TEMPERATURE_GPU)
    assert nvml.calls["nvmlDeviceGetName"] == 1
    assert nvml.calls[EVERY] == 3
    assert nvml.NVML_ERROR_GPU_IS_LOST == 15
    assert nvml.NVMLError is FakeNvml.NVMLError


def test_the_first_fault_that_is_due_decides() -> None:
    def value(*found: Fault) -> Any:
        nvml = FaultyNvml(FakeNvml(SimulatedGpu()), *found)
        nvml.nvmlInit()
        return nvml.nvmlDeviceGetCount()

    first, second = faults.answering("nvmlDeviceGetCount", 7), faults.answering("nvmlDeviceGetCount", 8)
    assert (value(first, second), value(second, first)) == (7, 8)
    assert value(faults.answering("nvmlDeviceGetCount", 7, after=1), second) == 8

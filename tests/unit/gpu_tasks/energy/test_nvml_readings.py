"""One GPU by NVML: readings of its counter, and samples."""

from __future__ import annotations

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import CODES, NvmlBlankValue, NvmlError, NvmlFailure, NvmlNotReady, NvmlNotSupported
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.trace import Sample
from gpu_tasks.records import CounterReading
from tests.unit.gpu_tasks.energy.nvml_gpus import ENERGY, QUESTIONS, opened
from tests.unit.gpu_tasks.energy.nvml_scripted import LATENCY_S, UUID, ScriptedNvml, process


def test_a_reading_is_stamped_at_the_middle_of_its_call(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    before = nvml.clock.now()
    reading = gpu.read_counter()
    assert reading == CounterReading(5_000_000, pytest.approx(before + LATENCY_S / 2), pytest.approx(LATENCY_S))


def test_a_counter_that_is_unsupported_is_an_error_and_never_0(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    nvml.fail(ENERGY, pynvml.NVML_ERROR_NOT_SUPPORTED)
    with pytest.raises(NvmlNotSupported):
        gpu.read_counter()


@pytest.mark.parametrize("blank", ["[N/A]", None, 2**64 - 1, -1])
def test_a_counter_that_is_blank_is_an_error_and_never_a_number(nvml: ScriptedNvml, blank: object) -> None:
    nvml.answers[ENERGY] = blank
    with pytest.raises(NvmlBlankValue, match=ENERGY):
        opened(nvml).read_counter()


def test_codecarbon_1316_608_586_energy_unsupported_leaves_everything_else_and_a_reason(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    assert "energy_counter" not in gpu.state().unavailable
    nvml.fail(ENERGY, pynvml.NVML_ERROR_NOT_SUPPORTED)
    state = gpu.state()
    assert state.unavailable["energy_counter"].startswith(f"{ENERGY}: expected success, found NVML_ERROR_NOT_SUPPORTED")
    assert (state.power_w, state.sm_clock_mhz) == (57.7, 1410)
    sample, kind = gpu.sample()
    assert (sample.counter_mj, sample.counter_time_s, sample.power_w, kind) == (None, None, 57.7, "instantaneous")


def test_pynvml_54_codecarbon_578_a_counter_that_is_not_ready_may_be_asked_again(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    readings = iter([pynvml.NVMLError(pynvml.NVML_ERROR_NOT_READY), 5_003_720])

    def scripted(handle: str) -> int:
        answer = next(readings)
        if isinstance(answer, Exception):
            raise answer
        return answer

    nvml.answers[ENERGY] = scripted
    with pytest.raises(NvmlNotReady) as caught:
        gpu.read_counter()
    assert caught.value.transient
    assert gpu.read_counter().energy_mj == 5_003_720


def test_a_sample_has_each_time_at_the_middle_of_its_call(nvml: ScriptedNvml) -> None:
    gpu = opened(nvml)
    before = nvml.clock.now()
    sample, kind = gpu.sample()
    assert kind == "instantaneous"
    assert sample == Sample(
        time_s=pytest.approx(before + LATENCY_S / 2),
        power_w=57.7,
        counter_time_s=pytest.approx(before + 3 * LATENCY_S / 2),
        counter_mj=5_000_000,
        sm_clock_mhz=1410,
        memory_clock_mhz=1215,
        temperature_c=31,
        utilisation_percent=98,
        performance_state=0,
        throttle_reasons=0,
        processes=None,
    )


def test_a_sample_has_the_bits_that_hold_the_clocks_down_and_processes_where_they_are_asked_for(
    nvml: ScriptedNvml,
) -> None:
    nvml.answers["nvmlDeviceGetCurrentClocksEventReasons"] = 0x84
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(1285, 1), process(7, None)]
    gpu = opened(nvml)
    assert gpu.sample()[0].throttle_reasons == 0x84
    assert "nvmlDeviceGetComputeRunningProcesses" not in nvml.calls
    assert gpu.sample(processes=True)[0].processes == 2
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = []
    assert gpu.sample(processes=True)[0].processes == 0


def test_bits_and_processes_that_nvml_does_not_know_are_missing_and_the_sample_is_there(nvml: ScriptedNvml) -> None:
    for name in (*QUESTIONS["throttle_reasons"], *QUESTIONS["processes"]):
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    sample, _ = opened(nvml).sample(processes=True)
    assert (sample.throttle_reasons, sample.processes, sample.power_w) == (None, None, 57.7)


def test_a_sample_without_power_is_of_the_moment_that_it_was_asked_for(nvml: ScriptedNvml) -> None:
    for name in QUESTIONS["power_w"]:
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    gpu = opened(nvml)
    before = nvml.clock.now()
    sample, kind = gpu.sample()
    assert (sample.time_s, sample.power_w, kind) == (before, None, None)
    assert sample.counter_mj == 5_000_000


@pytest.mark.parametrize("code", sorted(value for value in CODES if issubclass(CODES[value], NvmlFailure)))
def test_a_failure_of_the_machine_is_raised_from_everywhere(nvml: ScriptedNvml, code: int) -> None:
    gpu = opened(nvml)
    nvml.fail("nvmlDeviceGetTemperature", code)
    nvml.fail(ENERGY, code)
    nvml.fail("nvmlDeviceGetComputeRunningProcesses", code)
    for call in (gpu.state, gpu.sample, gpu.read_counter, gpu.process_memory):
        with pytest.raises(NvmlError) as caught:
            call()
        assert type(caught.value) is CODES[code]


def test_with_a_time_limit_the_same_values_come_through_the_thread(nvml: ScriptedNvml) -> None:
    with NvmlGpu(nvml, uuid=UUID, clock=nvml.clock) as gpu:
        before = nvml.clock.now()
        reading = gpu.read_counter()
        assert reading == CounterReading(5_000_000, pytest.approx(before + LATENCY_S / 2), pytest.approx(LATENCY_S))
        assert gpu.state().unavailable == {}
    assert nvml.calls[-1] == "nvmlShutdown"

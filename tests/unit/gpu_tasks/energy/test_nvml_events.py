"""Xid errors: registered for, asked for without waiting, and never in the way where they cannot be had."""

from __future__ import annotations

import pynvml
import pytest

from gpu_tasks.energy.nvml.errors import CODES, NvmlGpuIsLost, NvmlHung, NvmlTimeout
from gpu_tasks.energy.nvml.events import XID_CRITICAL, xid_reason
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.energy.simulation.nvml import FakeNvml
from tests.unit.gpu_tasks.energy.nvml_gpus import opened
from tests.unit.gpu_tasks.energy.nvml_scripted import ScriptedNvml

SET_UP = ("nvmlDeviceGetSupportedEventTypes", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2")


def test_the_bit_is_that_of_the_bindings() -> None:
    assert pynvml.nvmlEventTypeXidCriticalError == XID_CRITICAL


def test_errors_come_one_by_one_and_none_is_none(nvml: ScriptedNvml) -> None:
    registered: list[tuple[object, ...]] = []
    nvml.answers["nvmlDeviceRegisterEvents"] = lambda *arguments: registered.append(arguments)
    with opened(nvml).watch_xids() as xids:
        assert registered == [("handle 0", XID_CRITICAL, "events")]
        assert xids.next() is None
        nvml.xids = [31, 79]
        assert [xids.next(), xids.next(), xids.next()] == [31, 79, None]


def test_an_error_that_comes_while_the_watch_is_set_up_is_kept(nvml: ScriptedNvml) -> None:
    nvml.xids = [48]
    xids = opened(nvml).watch_xids()
    assert nvml.xids == []
    assert [xids.next(), xids.next()] == [48, None]


@pytest.mark.parametrize("name", SET_UP)
@pytest.mark.parametrize("code", sorted(code for code in CODES if code != pynvml.NVML_ERROR_TIMEOUT))
def test_where_they_cannot_be_watched_none_is_seen_and_nothing_fails(nvml: ScriptedNvml, name: str, code: int) -> None:
    nvml.fail(name, code)
    nvml.xids = [79]
    xids = opened(nvml).watch_xids()
    assert xids.next() is None
    xids.close()
    assert nvml.calls.count("nvmlEventSetFree") == (name in SET_UP[2:])


@pytest.mark.parametrize("name", [*SET_UP, "nvmlEventSetFree"])
def test_bindings_that_lack_the_function_are_fine(nvml: ScriptedNvml, name: str) -> None:
    nvml.absent = {name}
    with opened(nvml).watch_xids() as xids:
        assert xids.next() is None


@pytest.mark.parametrize("types", [0, pynvml.nvmlEventTypeClock, 2**64 - 1, "[N/A]"])
def test_a_gpu_without_such_events_is_not_registered(nvml: ScriptedNvml, types: object) -> None:
    nvml.answers["nvmlDeviceGetSupportedEventTypes"] = types
    with opened(nvml).watch_xids() as xids:
        assert xids.next() is None
    assert not {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetFree"} & set(nvml.calls)


def test_a_gpu_that_is_lost_while_it_is_watched_is_lost(nvml: ScriptedNvml) -> None:
    xids = opened(nvml).watch_xids()
    nvml.fail("nvmlEventSetWait_v2", pynvml.NVML_ERROR_GPU_IS_LOST)
    with pytest.raises(NvmlGpuIsLost):
        xids.next()


def test_a_call_that_hangs_is_no_sign_that_nothing_has_come(nvml: ScriptedNvml) -> None:
    xids = opened(nvml).watch_xids()

    def hang(name: str, *arguments: object) -> object:
        raise NvmlHung(name, 5.0)

    xids._nvml.call = hang  # type: ignore[method-assign]
    assert issubclass(NvmlHung, NvmlTimeout)
    with pytest.raises(NvmlHung):
        xids.next()


def test_closing_frees_the_events_once(nvml: ScriptedNvml) -> None:
    with opened(nvml).watch_xids() as xids:
        pass
    xids.close()
    assert nvml.calls.count("nvmlEventSetFree") == 1
    nvml.xids = [79]
    assert xids.next() is None


def test_the_reason_names_the_number() -> None:
    assert xid_reason(79).message == "Xid errors of the driver: expected none meanwhile, found Xid 79"
    assert xid_reason(79).code == "xid"


def test_a_simulated_gpu_gives_each_error_once_and_only_what_comes_after() -> None:
    gpu, quiet = SimulatedGpu(), SimulatedGpu()
    quiet.uuid = "GPU-another"
    nvml = FakeNvml(quiet, gpu)
    gpu.xids.append((gpu.clock.now(), 13))
    adapter = NvmlGpu(nvml, uuid=gpu.uuid, clock=gpu.clock, timeout_s=None)
    with adapter.watch_xids() as xids, NvmlGpu(nvml, uuid=quiet.uuid, clock=gpu.clock, timeout_s=None) as other:
        assert xids.next() is None
        gpu.xids += [(gpu.clock.now(), 31), (gpu.clock.now(), 79)]
        with other.watch_xids() as others:
            assert others.next() is None
        assert [xids.next(), xids.next(), xids.next()] == [31, 79, None]

"""What stands in for the bindings in a sampler's own process, by name: healthy, and what can go wrong there."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml

from tests.unit.gpu_tasks.energy.nvml_scripted import ScriptedNvml, field_value, process

GOOD_SAMPLES = 4
"""How many samples the ones that go wrong take before."""

_COUNTER, _FIELDS = "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFieldValues"

_TIMEOUT = pynvml.NVML_ERROR_TIMEOUT


def healthy() -> ScriptedNvml:
    """57.7 W, and a counter that goes with it, in steps of 0.1 s."""
    nvml = ScriptedNvml()
    nvml.answers[_COUNTER] = lambda handle: int(time.monotonic() * 10) * 5770
    return nvml


def _then(wrong: Callable[[], Any], good: int = GOOD_SAMPLES) -> ScriptedNvml:
    """Healthy for some samples; then ``wrong`` stands in for reading the power."""
    nvml = healthy()
    nvml.answers[_FIELDS] = lambda handle, ids: field_value(57_700) if nvml.calls.count(_FIELDS) <= good else wrong()
    return nvml


def _raise(code: int) -> Any:
    raise pynvml.NVMLError(code)


def lost() -> ScriptedNvml:
    return _then(lambda: _raise(pynvml.NVML_ERROR_GPU_IS_LOST))


def lost_at_once() -> ScriptedNvml:
    return _then(lambda: _raise(pynvml.NVML_ERROR_GPU_IS_LOST), good=0)


def not_ready_once() -> ScriptedNvml:
    nvml = healthy()
    nvml.answers[_FIELDS] = lambda handle, ids: (
        _raise(pynvml.NVML_ERROR_NOT_READY) if nvml.calls.count(_FIELDS) == 1 else field_value(57_700)
    )
    return nvml


def not_ready_any_more() -> ScriptedNvml:
    return _then(lambda: _raise(pynvml.NVML_ERROR_NOT_READY))


def dying() -> ScriptedNvml:
    return _then(lambda: os._exit(7))


def dying_at_once() -> ScriptedNvml:
    return _then(lambda: os._exit(7), good=0)


def crashing() -> ScriptedNvml:
    return _then(lambda: {}["what nobody thought of"])


def babbling() -> ScriptedNvml:
    """Somebody else writes to the same output: a line that is no sample, once."""
    nvml = healthy()

    def fields(handle: str, ids: list[int]) -> Any:
        if nvml.calls.count(_FIELDS) == GOOD_SAMPLES:
            os.write(sys.stdout.fileno(), b"WARNING: a library says hello\n")
        return field_value(57_700)

    nvml.answers[_FIELDS] = fields
    return nvml


def averaging() -> ScriptedNvml:
    """On a GPU whose other power is an average, the field is there no more."""
    nvml = _then(lambda: _raise(pynvml.NVML_ERROR_NOT_SUPPORTED))
    nvml.answers["nvmlDeviceGetName"] = "NVIDIA H200"
    return nvml


def without_power() -> ScriptedNvml:
    nvml = healthy()
    for name in (_FIELDS, "nvmlDeviceGetPowerUsage"):
        nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    return nvml


def with_an_xid() -> ScriptedNvml:
    """One Xid error, some samples after the first one, and then nothing more."""
    nvml = healthy()
    nvml.answers["nvmlEventSetWait_v2"] = lambda events, timeout_ms: (
        SimpleNamespace(eventData=79) if nvml.calls.count("nvmlEventSetWait_v2") == 3 else _raise(_TIMEOUT)
    )
    return nvml


def lost_after_an_xid() -> ScriptedNvml:
    nvml = lost()
    nvml.xids = [79]
    return nvml


def unwatchable() -> ScriptedNvml:
    nvml = healthy()
    nvml.fail("nvmlEventSetCreate", pynvml.NVML_ERROR_NOT_SUPPORTED)
    return nvml


def shared() -> ScriptedNvml:
    """Two processes compute."""
    nvml = healthy()
    nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(1285, 1), process(7, 1)]
    return nvml


def unsupported_counter() -> ScriptedNvml:
    nvml = healthy()
    nvml.fail(_COUNTER, pynvml.NVML_ERROR_NOT_SUPPORTED)
    return nvml


def no_driver() -> ScriptedNvml:
    nvml = healthy()
    nvml.fail("nvmlInit", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    return nvml


def silent() -> ScriptedNvml:
    """Never reads a power."""
    return _then(lambda: time.sleep(600), good=0)


def deaf() -> ScriptedNvml:
    """Does not notice that it should end: a power is never read, and a line says when that begins."""

    def hang() -> None:
        os.write(sys.stdout.fileno(), b"deaf\n")
        time.sleep(600)

    return _then(hang)

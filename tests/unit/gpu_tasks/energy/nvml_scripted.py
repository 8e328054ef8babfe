"""A small NVML for tests of the adapter: fixed answers, any of which a test replaces by another, an error or a script.

Errors and structures are those of the installed bindings. Time is a clock that a call moves on by its latency.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml

UUID = "GPU-5c63cb6b-1d35-a02e-0000-3f0c0f1e2d3c"
OTHER_UUID = "GPU-5c63d000-2222-3333-4444-555555555555"
BUS_ID = "00000000:50:00.0"
LATENCY_S = 0.003


class StepClock:
    """A clock that stands still unless somebody sleeps."""

    def __init__(self, start_s: float = 100.0) -> None:
        self.time_s = start_s

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.time_s += seconds


def field_value(milliwatts: int, value_type: int = 1, code: int = 0) -> Any:
    """What the bindings return for one field."""
    fields = (pynvml.c_nvmlFieldValue_t * 1)()
    fields[0].nvmlReturn, fields[0].valueType = code, value_type
    if value_type == 1:
        fields[0].value.uiVal = milliwatts
    else:
        fields[0].value.ullVal = milliwatts
    return fields


def process(pid: int, used: int | None) -> Any:
    """As the bindings list one."""
    return SimpleNamespace(pid=pid, usedGpuMemory=used, gpuInstanceId=0xFFFFFFFF, computeInstanceId=0xFFFFFFFF)


class ScriptedNvml:
    """Module-like. ``answers`` maps a function to its value, an exception, or a function of its arguments.

    ``absent`` functions are in neither driver nor bindings; ``calls`` are all that were made.
    """

    NVMLError = pynvml.NVMLError

    def __init__(self, clock: StepClock | None = None) -> None:
        self.clock = clock or StepClock()
        self.calls: list[str] = []
        self.absent: set[str] = set()
        self.uuids = [UUID]
        self.energy_mj = 5_000_000
        self.xids: list[int] = []  # which are waited for
        self.answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlSystemGetDriverVersion": "580.105.08",
            "nvmlDeviceGetCount": lambda: len(self.uuids),
            "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
            "nvmlDeviceGetHandleByUUID": self._by_uuid,
            "nvmlDeviceGetUUID": lambda handle: self.uuids[int(handle.split()[1])],
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId=BUS_ID),
            "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB",
            "nvmlDeviceGetArchitecture": 7,
            "nvmlDeviceGetTotalEnergyConsumption": lambda handle: self.energy_mj,
            "nvmlDeviceGetFieldValues": field_value(57_700),
            "nvmlDeviceGetPowerUsage": 57_700,
            "nvmlDeviceGetEnforcedPowerLimit": 400_000,
            "nvmlDeviceGetPowerManagementLimit": 400_000,
            "nvmlDeviceGetPowerManagementDefaultLimit": 400_000,
            "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1410, 2: 1215}[kind],
            "nvmlDeviceGetPerformanceState": 0,
            "nvmlDeviceGetTemperature": 31,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=98, memory=3),
            "nvmlDeviceGetCurrentClocksEventReasons": 0,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0,
            "nvmlDeviceGetViolationStatus": lambda handle, policy: SimpleNamespace(violationTime=policy),
            "nvmlDeviceGetComputeRunningProcesses": [process(1285, 450 << 20)],
            "nvmlDeviceGetComputeRunningProcesses_v2": [process(1285, 450 << 20)],
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
            "nvmlDeviceGetSupportedEventTypes": pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeClock,
            "nvmlEventSetCreate": "events",
            "nvmlDeviceRegisterEvents": None,
            "nvmlEventSetWait_v2": self._next_xid,
            "nvmlEventSetFree": None,
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or name in self.absent or name not in self.answers:
            raise AttributeError(name)
        return lambda *arguments: self._call(name, arguments)

    def fail(self, name: str, code: int) -> None:
        """From now on ``name`` returns this code."""
        self.answers[name] = pynvml.NVMLError(code)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self.calls.append(name)
        self.clock.sleep(LATENCY_S)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    def _next_xid(self, events: str, timeout_ms: int) -> Any:
        assert (events, timeout_ms) == ("events", 0), "nobody waits for an error"
        if not self.xids:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        return SimpleNamespace(eventType=pynvml.nvmlEventTypeXidCriticalError, eventData=self.xids.pop(0))

    def _by_uuid(self, uuid: str) -> str:
        if uuid not in self.uuids:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"handle {self.uuids.index(uuid)}"

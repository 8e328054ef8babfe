"""NVML that goes wrong after some calls: a wrapper around the fake one, or any other with its functions.

``FaultyNvml(nvml, failing("nvmlDeviceGetPowerUsage", 15, after=3))`` answers three times and then says that the GPU is
lost. Faults are looked at in their order; the first one that is due decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from types import SimpleNamespace
from typing import Any

from gpu_tasks.energy.simulation.gpu import OTHER_BYTES, OTHER_PID

EVERY = "*"
BLANK_UINT = 0xFFFFFFFF
BLANK_ULONGLONG = 0xFFFFFFFFFFFFFFFF
"""NVML_VALUE_NOT_AVAILABLE, of both widths."""

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
GPU_IS_LOST, RESET_REQUIRED, FUNCTION_NOT_FOUND = 15, 16, 13

Real = Callable[[], Any]
"""The call that the fault stands in front of."""


@dataclass(frozen=True)
class Fault:
    """What happens to calls of ``function`` (``EVERY``: each of a device) from number ``after`` on, ``times`` of them.

    ``outcome`` gets the call and returns what is returned, or raises; ``times`` null: for ever. Calls are counted by
    function; those of ``EVERY`` all together.
    """

    function: str
    outcome: Callable[[Any, Real], Any]
    after: int = 0
    times: int | None = None

    def due(self, calls: int) -> bool:
        """Whether it strikes when ``calls`` went before."""
        return calls >= self.after and (self.times is None or calls < self.after + self.times)


class FaultyNvml:
    """``nvml`` with ``faults``. Names in ``without`` are missing, as in bindings that are too old."""

    def __init__(self, nvml: Any, *faults: Fault, without: tuple[str, ...] = ()) -> None:
        self._nvml, self._faults, self._without = nvml, faults, without
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name in self._without:
            raise AttributeError(name)
        found = getattr(self._nvml, name)
        if not name.startswith("nvml") or not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            of_device = name.startswith("nvmlDevice")
            before = {name: self.calls[name], EVERY: self.calls[EVERY] if of_device else -1}
            self.calls[name] += 1
            self.calls[EVERY] += of_device
            for fault in self._faults:
                if fault.due(before.get(fault.function, -1)):
                    return fault.outcome(self._nvml, lambda: found(*arguments, **named))
            return found(*arguments, **named)

        return call


def failing(function: str, code: int, after: int = 0, times: int | None = None) -> Fault:
    """The call ends with NVML's error ``code``."""

    def outcome(nvml: Any, real: Real) -> Any:
        del real
        raise nvml.NVMLError(code)

    return Fault(function, outcome, after, times)


def lost(after: int = 0) -> Fault:
    """The GPU falls off the bus: from then on every call of a device says so."""
    return failing(EVERY, GPU_IS_LOST, after)


def reset(after: int = 0) -> Fault:
    """The GPU wants to be reset: from then on every call of a device says so."""
    return failing(EVERY, RESET_REQUIRED, after)


def old_driver(function: str) -> Fault:
    """The driver has no such function."""
    return failing(function, FUNCTION_NOT_FOUND)


def answering(function: str, value: Any, after: int = 0, times: int | None = None) -> Fault:
    """The call returns ``value``: a driver of another release, "[N/A]", a power limit that was changed."""
    return Fault(function, lambda _, __: value, after, times)


def blank(function: str, width: int = BLANK_UINT, after: int = 0, times: int | None = None) -> Fault:
    """The call succeeds with NVML_VALUE_NOT_AVAILABLE."""
    return answering(function, width, after, times)


def changed(function: str, change: Callable[[Any], Any], after: int = 0, times: int | None = None) -> Fault:
    """The call returns what ``change`` makes of its true value."""
    return Fault(function, lambda _, real: change(real()), after, times)


def stuck(function: str = ENERGY, after: int = 0) -> Fault:
    """The call returns the same value for ever, the one that it has when this begins."""
    kept: list[Any] = []

    def outcome(nvml: Any, real: Real) -> Any:
        del nvml
        found = real()  # it takes its time all the same
        if not kept:
            kept.append(found)
        return kept[0]

    return Fault(function, outcome, after)


def backwards(by_mj: int, after: int = 0) -> Fault:
    """The counter has lost ``by_mj``."""
    return changed(ENERGY, lambda value: value - by_mj, after)


def throttled(bits: int, after: int = 0, times: int | None = None) -> tuple[Fault, Fault]:
    """The clocks are held down by ``bits``, by both names of the function."""
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    first, second = (changed(name, lambda value: value | bits, after, times) for name in names)
    return first, second


def new_process(pid: int = OTHER_PID, used_bytes: int | None = OTHER_BYTES, after: int = 0) -> Fault:
    """One more process computes; ``used_bytes`` null: NVML does not know what it uses."""
    process = SimpleNamespace(pid=pid, usedGpuMemory=used_bytes, gpuInstanceId=BLANK_UINT, computeInstanceId=BLANK_UINT)
    return changed("nvmlDeviceGetComputeRunningProcesses", lambda found: [*found, process], after)


def other_driver(version: str, after: int = 0) -> Fault:
    """The driver was exchanged meanwhile."""
    return answering("nvmlSystemGetDriverVersion", version, after)


def hanging(function: str, release: Event, after: int = 0, times: int | None = None) -> Fault:
    """The call does not return before ``release`` is set, then as if nothing had been."""

    def outcome(nvml: Any, real: Real) -> Any:
        del nvml
        release.wait()
        return real()

    return Fault(function, outcome, after, times)

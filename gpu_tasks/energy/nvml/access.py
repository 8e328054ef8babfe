"""NVML itself: its Python bindings loaded, initialised, and every call made in one place.

The bindings are the package nvidia-ml-py, imported as ``pynvml`` when first needed: no GPU, no import.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from importlib import import_module, metadata
from types import TracebackType
from typing import Any

from gpu_tasks.energy.instruments import Clock
from gpu_tasks.energy.nvml.errors import NvmlError, NvmlFunctionNotFound, NvmlHung, NvmlUninitialized, nvml_error
from gpu_tasks.energy.nvml.worker import CallNotDone, Worker
from gpu_tasks.records import InfrastructureFailure

PACKAGES = ("nvidia-ml-py", "pynvml", "nvidia-ml-py3")
"""Distributions that have a module ``pynvml``; which of two is imported depends on the order of their installation."""

TIMEOUT_S = 5.0
"""A call takes some ms; one that wakes a GPU whose driver was unloaded, 1.5 s."""

INIT_TIMEOUTS = 12
"""``nvmlInit`` wakes every GPU of the machine, one after the other, and gets this many times as long."""

_loaded_in: int | None = None
"""Pid of the process that loaded NVML. A forked child inherits it, and may not use what it inherited."""


def load_nvml() -> Any:
    """The bindings, imported, not yet initialised.

    Raises ``InfrastructureFailure``: ``nvml_package_missing``, ``nvml_package_broken``, ``two_nvml_packages`` (names
    both), and ``nvml_after_fork`` in a forked child of a process that has loaded them.
    """
    global _loaded_in  # noqa: PLW0603 - a fact about the process, as NVML's own state is
    check_process(_loaded_in)
    found = nvml_packages()
    if len(found) > 1:
        message = f"packages: expected one that has the module pynvml, found {' and '.join(found)}"
        raise InfrastructureFailure("two_nvml_packages", f"{message}; uninstall all but nvidia-ml-py")
    try:
        nvml = import_module("pynvml")
    except ModuleNotFoundError as error:
        if error.name == "pynvml":
            message = "packages: expected nvidia-ml-py for reading the energy counter, found none"
            raise InfrastructureFailure("nvml_package_missing", message) from None
        raise _broken(error) from error
    except Exception as error:
        raise _broken(error) from error
    _loaded_in = os.getpid()
    return nvml


def nvml_packages() -> list[str]:
    """Installed distributions that bring the module ``pynvml``, each with its version.

    The distribution pynvml from version 12 on brings none and depends on nvidia-ml-py: no conflict.
    """
    found = []
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            distribution = metadata.distribution(name)
            files = distribution.files
            if files is None or any(str(file) in ("pynvml.py", "pynvml/__init__.py") for file in files):
                found.append(f"{name} {distribution.version}")
    return found


def check_process(pid: int | None) -> None:
    """Raise ``InfrastructureFailure`` (``nvml_after_fork``) where ``pid``, which used NVML, is not this process."""
    if pid not in (None, os.getpid()):
        message = f"NVML was used in process {pid}: expected a fresh process, found a fork of it ({os.getpid()})"
        raise InfrastructureFailure("nvml_after_fork", message)


@dataclass(frozen=True)
class TimedValue:
    """What a call returned, and when it began and ended by the caller's clock, taken right around it."""

    value: Any
    start_s: float
    end_s: float

    @property
    def middle_s(self) -> float:
        """The moment that the value is said to be of."""
        return (self.start_s + self.end_s) / 2

    @property
    def duration_s(self) -> float:
        """Length of the call."""
        return self.end_s - self.start_s


class NvmlLibrary:
    """NVML between initialisation and shutdown, for one process; a context manager.

    ``nvml`` is ``load_nvml()``, or anything with the same functions. ``timeout_s`` bounds each call; null calls
    directly, without a thread, for what cannot hang. NVML counts initialisations, so that several of these, or torch,
    may use it beside each other.
    """

    def __init__(self, nvml: Any, timeout_s: float | None = TIMEOUT_S) -> None:
        self._nvml, self._timeout_s, self._pid = nvml, timeout_s or 0.0, os.getpid()
        self._worker = None if timeout_s is None else Worker()
        self._open = True
        try:
            self._guarded("nvmlInit", self._function("nvmlInit"), INIT_TIMEOUTS)
        except BaseException:
            self._open = False
            if self._worker:
                self._worker.close()
            raise

    def call(self, name: str, *arguments: Any) -> Any:
        """What the NVML function ``name`` returns; raises the ``NvmlError`` of its code.

        A function that the driver or the bindings lack is ``NvmlFunctionNotFound``, for this call alone.
        """
        return self._guarded(name, lambda: self._function(name)(*arguments))

    def timed_call(self, clock: Clock, name: str, *arguments: Any) -> TimedValue:
        """As ``call``, with its times by ``clock``, taken right around it: waiting for the thread is not in them."""
        function = self._function(name)

        def work() -> TimedValue:
            start_s = clock.now()
            value = function(*arguments)
            return TimedValue(value, start_s, clock.now())

        timed: TimedValue = self._guarded(name, work)
        return timed

    def close(self) -> None:
        """Shut NVML down; safe to call twice, in a forked child and behind a call that hangs (it then stays open)."""
        if not self._open:
            return
        if self._pid == os.getpid() and not (self._worker and self._worker.stuck):
            with contextlib.suppress(NvmlError):  # nothing depends on it any more
                self.call("nvmlShutdown")
        self._open = False
        if self._worker:
            self._worker.close()

    def __enter__(self) -> NvmlLibrary:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._nvml, name)
        except AttributeError:
            raise NvmlFunctionNotFound(name) from None

    def _guarded(self, name: str, work: Any, timeouts: int = 1) -> Any:
        """The one place where calls are made: same process, still open, in time, errors by their code."""
        check_process(self._pid)
        if not self._open:
            raise NvmlUninitialized(name)
        limit_s = self._timeout_s * timeouts
        try:
            return self._worker.do(work, limit_s) if self._worker else work()
        except CallNotDone:
            raise NvmlHung(name, limit_s) from None
        except self._nvml.NVMLError as error:
            raise nvml_error(error.value, name) from None
        except getattr(self._nvml, "NVMLLibraryMismatchError", ()):  # what the bindings make of a missing symbol
            raise NvmlFunctionNotFound(name) from None


def _broken(error: Exception) -> InfrastructureFailure:
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return InfrastructureFailure("nvml_package_broken", f"pynvml: expected to be imported, found {line}")

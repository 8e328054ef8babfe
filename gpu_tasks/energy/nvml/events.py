"""Xid errors: what the driver itself reports of a GPU while somebody watches."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Any

from gpu_tasks.energy.nvml.access import NvmlLibrary
from gpu_tasks.energy.nvml.errors import NvmlError, NvmlHung, NvmlTimeout
from gpu_tasks.energy.nvml.values import count
from gpu_tasks.records import Reason

XID_CRITICAL = 0x8  # nvmlEventTypeXidCriticalError
_AT_ONCE_MS = 0


class XidWatch:
    """Critical Xid errors of one GPU from now on; a context manager.

    Where they cannot be watched nothing is ever seen: GPU, driver or bindings have no such events, or a container keeps
    them out. Whatever is wrong with the GPU itself shows in the next call. Errors of before are not seen.
    """

    def __init__(self, nvml: NvmlLibrary, handle: Any) -> None:
        self._nvml = nvml
        self._events: Any = None
        self._arrived: list[int] = []
        try:
            self._open(handle)
        except NvmlError:
            self.close()

    def next(self) -> int | None:
        """Number of the next Xid error that has arrived, null where none has: does not wait for one."""
        if self._arrived:
            return self._arrived.pop()
        if self._events is None:
            return None
        try:
            event = self._nvml.call("nvmlEventSetWait_v2", self._events, _AT_ONCE_MS)
        except NvmlHung:
            raise
        except NvmlTimeout:  # nothing has arrived
            return None
        return int(event.eventData)

    def close(self) -> None:
        """Watch no longer; safe to call twice."""
        events, self._events = self._events, None
        if events is not None:
            with suppress(NvmlError):  # nothing depends on it any more
                self._nvml.call("nvmlEventSetFree", events)

    def __enter__(self) -> XidWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, handle: Any) -> None:
        types = "nvmlDeviceGetSupportedEventTypes"
        if count(self._nvml.call(types, handle), types) & XID_CRITICAL:
            self._events = self._nvml.call("nvmlEventSetCreate")
            self._nvml.call("nvmlDeviceRegisterEvents", handle, XID_CRITICAL, self._events)
            number = self.next()  # also shows whether events can be asked for
            self._arrived = [] if number is None else [number]


def xid_reason(number: int) -> Reason:
    """Why what was measured while this Xid error came cannot be used."""
    return Reason("xid", f"Xid errors of the driver: expected none meanwhile, found Xid {number}")

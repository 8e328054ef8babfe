"""Identity of the machine, for the devices that are its CPU."""

from __future__ import annotations

import os
import platform
import socket
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from gpu_tasks.records import BadInput, DeviceFingerprint, Reason

MACHINE_ID = Path("/etc/machine-id")
CPU_INFO = Path("/proc/cpuinfo")
NO_COUNTER = Reason("no_energy_counter", "a CPU device has no energy counter that can be read")


def cpu_fingerprint(kind: str) -> DeviceFingerprint:
    """Fingerprint of this machine's CPU as a device of ``kind``; all kinds on one machine share the uuid."""
    return DeviceFingerprint(
        kind=kind,
        name=cpu_name(),
        uuid=machine_uuid(),
        memory_total_bytes=_memory_bytes(),
        multiprocessors=None,
        compute_capability=None,
        energy_counter=False,
        energy_counter_reason=NO_COUNTER,
    )


def no_control(kind: str, replay_s: float) -> BadInput:
    """What a device of ``kind``, which has no counter, says when it is asked for a control of ``replay_s``."""
    expected = f"control of {replay_s * 1e6:.3g} us: expected a device with an energy counter"
    return BadInput("no_control", f"{expected}, found {kind}")


def machine_uuid() -> str:
    """A stable name of this machine, ``CPU-`` and a version 5 UUID.

    Hashed from /etc/machine-id, so that it stays the same over restarts and updates while the machine id itself,
    which is meant to stay private, does not appear in records. Where there is no machine id (a container, say) it is
    hashed from host name, architecture and CPU name, and changes with them. Network addresses play no part.
    """
    try:
        identity = MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        identity = ""
    if not identity:
        identity = "/".join((socket.gethostname(), platform.machine(), cpu_name()))
    return f"CPU-{uuid5(NAMESPACE_URL, f'kernel-nightly:machine/{identity}')}"


def cpu_name() -> str:
    """Model name of the CPU as the system gives it, else the architecture."""
    try:
        lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None

"""Samplers whose child has a scripted NVML, and looks at what it writes and whether it lives."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_tasks.energy import sampler as module
from gpu_tasks.energy.sampler import ProcessSampler
from gpu_tasks.records import InvalidMeasurement, Outcome, PowerTrace
from tests.unit.gpu_tasks.energy.nvml_scripted import UUID

REPOSITORY = Path(__file__).parents[4]
LONGEST_S = 30.0
"""How long a test waits for another process before it fails."""


def sampler(kind: str, uuid: str = UUID, pci_bus_id: str | None = None) -> ProcessSampler:
    return ProcessSampler(
        uuid=uuid, pci_bus_id=pci_bus_id, period_s=0.01, nvml=f"tests.unit.gpu_tasks.energy.sampled_nvml:{kind}"
    )


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.005)


def child_of(running: ProcessSampler) -> subprocess.Popen[bytes]:
    assert running._child is not None
    return running._child


def written(running: ProcessSampler) -> list[str]:
    """Lines so far."""
    return module._contents(running._written).decode().splitlines()


def gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it is opened, or before it is read
        return True


def sampled(kind: str) -> PowerTrace:
    """The trace of a child that ends by itself."""
    running = sampler(kind)
    running.start()
    child_of(running).wait(LONGEST_S)
    return running.stop()


def refused(running: ProcessSampler, code: str) -> None:
    """Starting it raises this code, and nothing of it is left."""
    with pytest.raises(InvalidMeasurement, match=r": expected .*, found ") as caught:
        running.start()
    assert caught.value.code == code
    assert caught.value.outcome is Outcome.INVALID_MEASUREMENT
    assert running._child is None
    assert running._written.closed
    assert running._complaints.closed

"""Power sampled by a process of its own, beside the one that measures.

A thread of the measuring process gets the interpreter's lock at the wrong moments: beside a busy host loop it once
read 0.63 of the truth. Both processes take their times from CLOCK_MONOTONIC, which on Linux is one clock for all
processes of a machine, so that samples and counter readings can be laid over each other.

``python -m gpu_tasks.energy.sampler --uuid U --period-s 0.05`` writes the lines of a trace to its standard output
until its standard input is closed: nothing is left behind by a parent that was killed. Lines that begin with ``#`` are
not samples: ``#kind instantaneous`` says which power it is, ``#error CODE MESSAGE`` why it ended, or, with the code
``xid``, what the driver reported while it went on.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.instruments import Clock
from gpu_tasks.energy.nvml.access import load_nvml
from gpu_tasks.energy.nvml.errors import NvmlTransient
from gpu_tasks.energy.nvml.events import XidWatch, xid_reason
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.trace import HEADER, PROCESSES_EVERY_S, Sample, csv_line, csv_text, parse_line
from gpu_tasks.records import BadInput, InvalidMeasurement, PowerTrace, Reason, TaskError

PERIOD_S = 0.05
FIRST_SAMPLE_S = 60.0
"""As long as NVML may take to wake all GPUs of a machine whose driver was unloaded."""

END_S = 10.0
"""Twice the time limit of a call: the child notices that it should end between two calls."""

PATIENCE_S = 0.5
"""A gap that fails the telemetry gate: a GPU that is not ready for so long ends the sampling with that reason."""

ROOT = Path(__file__).resolve().parents[2]
_KIND, _ERROR = "#kind ", "#error "
_STDIN = 0
_POLL_S = 0.005


class ProcessSampler:
    """``gpu_tasks.energy.instruments.Sampler`` by a child process.

    ``uuid`` and ``pci_bus_id`` are CUDA's, as for ``NvmlGpu``. ``nvml`` is ``MODULE:FACTORY`` of what stands in for
    the bindings in the child. The child writes to a file without a name, which nobody reads while it samples: the
    measuring process spends no time on it and the pipe of a busy reader cannot fill up.
    """

    def __init__(
        self, *, uuid: str, pci_bus_id: str | None = None, period_s: float = PERIOD_S, nvml: str | None = None
    ) -> None:
        self._period_s = period_s
        self._command = [sys.executable, "-m", "gpu_tasks.energy.sampler", "--uuid", uuid, "--period-s", str(period_s)]
        self._command += ["--pci-bus-id", pci_bus_id] if pci_bus_id else []
        self._command += ["--nvml", nvml] if nvml else []
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin; returns once the first sample was taken.

        Raises ``InvalidMeasurement`` where there is none: with the child's own reason to end, or ``sampler_late``.
        """
        if self._child is not None:
            raise RuntimeError("start: expected a sampler that is not running, found one that is")
        self._written: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the child is
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=self._written,
            stderr=self._complaints,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # an interrupt from the terminal is for the parent, which then stops its child
        )
        until = time.monotonic() + FIRST_SAMPLE_S
        while child.poll() is None and not _has_sample(_contents(self._written)):
            if time.monotonic() > until:
                child.kill()
                self.stop()
                message = f"sampler: expected a first sample within {FIRST_SAMPLE_S:g} s, found none"
                raise InvalidMeasurement("sampler_late", message)
            time.sleep(_POLL_S)
        if not _has_sample(_contents(self._written)) and (error := self.stop().error):
            raise InvalidMeasurement(error.code, error.message)

    def stop(self) -> PowerTrace:
        """End the child; what it has sampled, with the error that ended it or made it unreliable."""
        child, self._child = self._child, None
        if child is None or child.stdin is None:
            raise RuntimeError("stop: expected a sampler that was started, found one that was not")
        ended_before = child.poll() is not None
        child.stdin.close()
        hung = None
        try:
            child.wait(END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            hung = Reason("sampler_hung", f"sampler: expected to end within {END_S:g} s, found it running")
        with self._written, self._complaints:
            samples, kind, told = _parsed(_contents(self._written))
            complaint = _contents(self._complaints).decode("utf-8", "replace").strip().splitlines()
        error = hung or told or _exit_error(child.returncode, ended_before, complaint)
        return PowerTrace(self._period_s, kind, csv_text(samples), error)


def _contents(file: IO[bytes]) -> bytes:
    """All that was written so far; the child's place in the file, which it shares, is left alone."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _has_sample(contents: bytes) -> bool:
    lines = contents.split(b"\n")[:-1]
    return sum(not line.startswith(b"#") for line in lines) > 1


def _parsed(contents: bytes) -> tuple[list[Sample], str | None, Reason | None]:
    """Samples, kind of power and error from what the child wrote; lines that are none of it are an error as well."""
    *lines, rest = contents.decode("utf-8", "replace").split("\n")
    samples: list[Sample] = []
    kind: str | None = None
    told: Reason | None = None
    garbage = [rest] if rest else []
    for line in lines:
        if line.startswith(_KIND):
            kind = line.removeprefix(_KIND)
        elif line.startswith(_ERROR):
            code, _, message = line.removeprefix(_ERROR).partition(" ")
            told = told or Reason(code, message)  # a GPU that is lost after an Xid error is lost by it
        elif sample := _sample(line, samples):
            samples.append(sample)
        elif line != HEADER:
            garbage.append(line)
    if garbage and told is None:
        message = f"sampler: expected samples in order of time, found {garbage[0][:80]!r}"
        told = Reason("sampler_garbage", message)
    return samples, kind, told


def _sample(line: str, earlier: Sequence[Sample]) -> Sample | None:
    """The sample that a line is, if it is one and later than those before it."""
    try:
        sample = parse_line(line, "sampler")
    except BadInput:
        return None
    return sample if not earlier or sample.time_s > earlier[-1].time_s else None


def _exit_error(status: int, ended_before: bool, complaint: Sequence[str]) -> Reason | None:
    """Why the child is not what it should be, if it said nothing itself."""
    if status != 0:
        why = f": {complaint[-1][:200]}" if complaint else ""
        return Reason("sampler_crashed", f"sampler: expected exit status 0, found {status}{why}")
    if ended_before:
        return Reason("sampler_ended", "sampler: expected to run until it is stopped, found it ended before")
    return None


def sample_until(
    gpu: NvmlGpu, clock: Clock, period_s: float, write: Callable[[str], None], closed: Callable[[float], bool]
) -> None:
    """Write a sample every ``period_s`` until ``closed``, which waits for that many seconds at most, says so.

    Moments that were missed are left out, not made up for. A sample that the driver is not ready for is left out as
    well, for ``PATIENCE_S``. About every ``PROCESSES_EVERY_S`` the processes are counted, and an Xid error that has
    come is told, after which sampling goes on. Raises what the adapter raises, and ``InvalidMeasurement``
    (``power_kind_changed``) where power of the moment would be mixed with averages.
    """
    with gpu.watch_xids() as xids:
        one = _OneKind(write)
        start_s = latest_s = look_s = clock.now()
        write(HEADER)
        while True:
            began_s = clock.now()
            look = began_s >= look_s
            try:
                one.write(*gpu.sample(processes=look))
                if look:
                    _tell(xids, write)
            except NvmlTransient:
                if clock.now() - latest_s > PATIENCE_S:
                    raise
            else:
                latest_s = clock.now()
                look_s = began_s + PROCESSES_EVERY_S if look else look_s
            passed = clock.now() - start_s
            if closed(period_s - passed % period_s):
                break
        with suppress(NvmlTransient):  # samples are there; this is only about what came after the last look
            _tell(xids, write)


class _OneKind:
    """Writes samples, and before the first one that has a power which kind that is: no other one may follow."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._first: str | None = None

    def write(self, sample: Sample, kind: str | None) -> None:
        if kind is not None and self._first is None:
            self._first = kind
            self._write(f"{_KIND}{kind}")
        if kind not in (None, self._first):
            message = f"power: expected {self._first} all through, found {kind}"
            raise InvalidMeasurement("power_kind_changed", message)
        self._write(csv_line(sample))


def _tell(xids: XidWatch, write: Callable[[str], None]) -> None:
    number = xids.next()
    if number is not None:
        reason = xid_reason(number)
        write(f"{_ERROR}{reason.code} {reason.message}")


def _stdin_closed(parent: int, wait_s: float) -> bool:
    """Wait; true as soon as nobody holds the other end of the standard input, or the parent is another."""
    until = time.monotonic() + wait_s
    while True:
        readable, _, _ = select.select([_STDIN], [], [], max(0.0, until - time.monotonic()))
        if readable and not os.read(_STDIN, 4096):
            return True
        if time.monotonic() >= until:
            return os.getppid() != parent


def _write(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _bindings(name: str | None) -> Any:
    if name is None:
        return load_nvml()
    module, _, factory = name.partition(":")
    return getattr(import_module(module), factory)()


def main(arguments: Sequence[str] | None = None) -> int:
    """The child: sample until the standard input is closed. Exit status of the error's class."""
    parent = os.getppid()
    parser = argparse.ArgumentParser(prog="python -m gpu_tasks.energy.sampler", description="Sample a GPU's power.")
    parser.add_argument("--uuid", required=True, help="the GPU, as CUDA names it")
    parser.add_argument("--pci-bus-id", help="its PCI bus id, as CUDA names it")
    parser.add_argument("--period-s", type=float, default=PERIOD_S, help="time from sample to sample in s")
    parser.add_argument("--nvml", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    clock = MonotonicClock()
    try:
        nvml = _bindings(options.nvml)
        with NvmlGpu(nvml, uuid=options.uuid, pci_bus_id=options.pci_bus_id, clock=clock) as gpu:
            sample_until(gpu, clock, options.period_s, _write, lambda wait_s: _stdin_closed(parent, wait_s))
    except TaskError as error:
        _write(f"{_ERROR}{error.code} {' '.join(error.message.split())}")
        return error.outcome.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

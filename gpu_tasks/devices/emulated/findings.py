"""What the emulator reports: text it does not accept, launches that cannot work, and kernels that misbehave."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_tasks.records import BadInput


class PtxError(BadInput):
    """PTX text outside the subset. ``line`` counts from 1."""

    def __init__(self, code: str, line: int, reason: str) -> None:
        super().__init__(code, f"PTX line {line}: {reason}")
        self.line = line


class LaunchError(BadInput):
    """A launch that hardware would refuse, or that does not fit the kernel's declaration."""


@dataclass(frozen=True)
class Access:
    """One access to memory, as a race report names it; ``kind`` is read or write."""

    kind: str
    line: int
    block: int
    thread: int

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line} by block {self.block} thread {self.thread}"


class KernelFinding(BadInput):
    """Something a correct kernel never does, with where it happened.

    ``line`` is the line of the PTX text, ``address`` a byte offset in the space or buffer (null where memory is
    not concerned), ``other`` the earlier access of a race.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        kernel: str,
        line: int,
        block: int | None = None,
        thread: int | None = None,
        address: int | None = None,
        other: Access | None = None,
    ) -> None:
        where = "" if thread is None else f", block {block}, thread {thread}"
        super().__init__(code, f"kernel {kernel}, PTX line {line}{where}: {message}")
        self.kernel, self.line, self.block, self.thread = kernel, line, block, thread
        self.address, self.other = address, other


class Fault(Exception):
    """A finding as the instruction sees it; the machine adds kernel, line, block and thread.

    ``thread`` counts over all threads of the launch; ``other_thread`` and ``other_step`` name the earlier access of
    a race by thread and executed step.
    """

    def __init__(
        self,
        code: str,
        message: str,
        thread: int | None = None,
        address: int | None = None,
        *,
        other_kind: str = "",
        other_thread: int = 0,
        other_step: int = -1,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.thread, self.address = code, message, thread, address
        self.other_kind, self.other_thread, self.other_step = other_kind, other_thread, other_step

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


@dataclass
class Fault(Exception):
    """A finding as the instruction sees it; the machine adds the kernel and turns steps into lines.

    ``thread`` counts over all threads of the launch, ``address`` is a byte offset in the buffer or in the block's
    shared memory; ``other`` is the earlier access of a race: kind, thread and executed step.
    """

    code: str
    message: str
    thread: int | None = None
    address: int | None = None
    other: tuple[str, int, int] | None = None


class KernelFinding(BadInput):
    """Something a correct kernel never does, with where it happened.

    ``line`` is the line of the PTX text, ``address`` a byte offset in the buffer or shared memory (null where
    no memory is concerned), ``other`` the earlier access of a race. An output that no instruction has written is
    found at the end: kernel and line are null then.
    """

    def __init__(
        self, fault: Fault, kernel: str | None, line: int | None, block_size: int, other: Access | None
    ) -> None:
        self.kernel, self.line, self.address, self.other = kernel, line, fault.address, other
        self.block: int | None = None
        self.thread: int | None = None
        if fault.thread is not None:
            self.block, self.thread = divmod(fault.thread, block_size)
        where = "" if kernel is None else f"kernel {kernel}, PTX line {line}"
        if fault.thread is not None:
            where += f", block {self.block}, thread {self.thread}"
        earlier = f" {other}" if other else ""
        super().__init__(fault.code, f"{where}{': ' if where else ''}{fault.message}{earlier}")

"""Whether a GPU can be measured now, and every reason why not.

Codes: ``mig_enabled``, ``other_process``, ``processes_unknown``, ``own_process_not_seen``, ``row_remap_pending``,
``uncorrected_ecc``, ``counter_unsupported``, ``counter_not_advancing``, ``unexpected_power_limit``,
``persistence_off``. Two more are found before there is a state to look at: ``two_nvml_packages`` when NVML is loaded,
``device_mismatch`` when the GPU is opened.

What a GPU cannot say is no reason to refuse it (one without ECC has no errors to report), except for its processes:
alone on the GPU is what the energy of a process rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from gpu_tasks.energy.instruments import Clock, Gpu, Instruments
from gpu_tasks.energy.nvml.errors import NvmlUnavailable
from gpu_tasks.energy.nvml.state import COUNTER
from gpu_tasks.records import GpuState, InvalidMeasurement, Reason

ADVANCE_S = 1.0
"""Ten times the longest update period that the counter is known to have."""

HELD_BYTES = 128 * 1024 * 1024
_MOST_BYTES = HELD_BYTES * 5 // 4  # allocators round up
_SETTLED_S = 1.0
_POLL_S = 0.005


def preflight(
    state: GpuState,
    counter_advances: bool | None,
    own: Collection[int],
    expected_power_limit_w: float | None,
) -> list[Reason]:
    """Reasons not to measure; none if there are none.

    ``counter_advances`` is what the function of that name found, ``own`` the numbers under which NVML lists this
    process (``own_process``), ``expected_power_limit_w`` the limit that figures are to be compared under, null where
    any will do.
    """
    reasons = []
    if state.mig_mode:
        reasons.append(Reason("mig_enabled", "MIG mode: expected off, found on: the counter is that of all slices"))
    reasons += _processes(state, own)
    if state.row_remap_pending:
        reasons.append(
            Reason("row_remap_pending", "memory rows: expected none to be remapped, found some; reset the GPU")
        )
    if state.uncorrected_ecc_errors:
        found = f"found {state.uncorrected_ecc_errors}"
        reasons.append(Reason("uncorrected_ecc", f"uncorrectable ECC errors since driver load: expected none, {found}"))
    reasons += _counter(state, counter_advances)
    if expected_power_limit_w is not None and state.power_limit_w != expected_power_limit_w:
        found = "none" if state.power_limit_w is None else f"{state.power_limit_w:g} W"
        message = f"power limit: expected {expected_power_limit_w:g} W, found {found}"
        reasons.append(Reason("unexpected_power_limit", message))
    if state.persistence_mode is False:
        message = "persistence mode: expected on, found off: the driver would start anew between measurements"
        reasons.append(Reason("persistence_off", f"{message}; nvidia-smi -pm 1"))
    return reasons


def refuse_unfit(instruments: Instruments, expected_power_limit_w: float | None = None) -> None:
    """Raise ``InvalidMeasurement`` where this GPU cannot be measured now, under the code of the first reason."""
    gpu, clock = instruments.gpu, instruments.clock
    own = own_process(gpu, instruments.hold_memory, instruments.own_pid, clock)
    reasons = preflight(gpu.state(), counter_advances(gpu, clock), own, expected_power_limit_w)
    if reasons:
        raise InvalidMeasurement(reasons[0].code, "; ".join(reason.message for reason in reasons))


def counter_advances(gpu: Gpu, clock: Clock) -> bool | None:
    """Whether the energy counter moves within ``ADVANCE_S``; null where the GPU has none."""
    try:
        first = gpu.read_counter()
        while clock.now() < first.time_s + ADVANCE_S:
            clock.sleep(_POLL_S)
            if gpu.read_counter().energy_mj != first.energy_mj:
                return True
    except NvmlUnavailable:
        return None
    return False


def own_process(
    gpu: Gpu, hold_memory: Callable[[int], AbstractContextManager[None]], own_pid: int, clock: Clock
) -> set[int]:
    """The number under which NVML lists this process, proved; nothing where it cannot be.

    A container may have other numbers than the host, whose NVML reports, so that neither a foreign number is another
    process for sure nor the own one this process. Proof is the memory: the one process whose use rises while
    ``HELD_BYTES`` are held and falls when they are freed. Where NVML knows no process's memory, only the number is
    left to go by.
    """
    try:
        before = gpu.process_memory()
        if before.get(own_pid, 0) is None:
            return {own_pid}
        with hold_memory(HELD_BYTES):
            risen = _wait_for(lambda: _moved(before, gpu.process_memory()), clock)
            during = gpu.process_memory()
        fallen = _wait_for(lambda: _moved(gpu.process_memory(), during), clock)
    except NvmlUnavailable:
        return set()
    found = risen & fallen
    return found if len(found) == 1 else set()


def _moved(low: dict[int, int | None], high: dict[int, int | None]) -> set[int]:
    """Processes that use about ``HELD_BYTES`` more in ``high`` than in ``low``."""
    used = {pid: (low.get(pid, 0), bytes_) for pid, bytes_ in high.items()}
    return {
        pid
        for pid, (less, more) in used.items()
        if less is not None and more is not None and HELD_BYTES <= more - less <= _MOST_BYTES
    }


def _wait_for(question: Callable[[], set[int]], clock: Clock) -> set[int]:
    """The answer as soon as it is not empty: NVML's books may follow a little later."""
    until = clock.now() + _SETTLED_S
    while not (answer := question()) and clock.now() < until:
        clock.sleep(_POLL_S)
    return answer


def _processes(state: GpuState, own: Collection[int]) -> list[Reason]:
    if state.processes is None:
        why = state.unavailable.get("processes", "not listed")
        return [Reason("processes_unknown", f"processes: expected to be listed, found {why}")]
    others = [str(process.pid) for process in state.processes if process.pid not in own]
    if others:
        message = f"processes: expected none but this one, found {', '.join(others)} not proved to be it"
        return [Reason("other_process", message)]
    if not state.processes:
        message = "processes: expected this one to be listed, found none: others may be hidden as well"
        return [Reason("own_process_not_seen", message)]
    return []


def _counter(state: GpuState, advances: bool | None) -> list[Reason]:
    if advances is None:
        why = state.unavailable.get(COUNTER, "none")
        return [Reason("counter_unsupported", f"energy counter: expected one, found {why}")]
    if not advances:
        message = f"energy counter: expected to advance within {ADVANCE_S:g} s, found to stand still"
        return [Reason("counter_not_advancing", message)]
    return []

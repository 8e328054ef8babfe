"""GPUs that cannot be measured now."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import pynvml
import pytest

from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.nvml.errors import NvmlGpuIsLost, NvmlNotReady
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.preflight import (
    ADVANCE_S,
    HELD_BYTES,
    counter_advances,
    own_process,
    preflight,
    refuse_unfit,
)
from gpu_tasks.records import GpuProcess, InvalidMeasurement
from tests.unit.gpu_tasks.energy.nvml_scripted import UUID, ScriptedNvml, process

ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
OWN = 1285
MIB = 1 << 20


class Machine:
    """A scripted GPU whose counter ticks and whose processes use memory; this process is listed as ``reported``."""

    def __init__(self) -> None:
        self.nvml = ScriptedNvml()
        self.clock = self.nvml.clock
        self.reported: int | None = OWN
        self.used: dict[int, int | None] = {OWN: 450 * MIB}
        self.held = 0
        self.delay_s = 0.0
        self.freed = True
        self.nvml.answers[ENERGY] = lambda handle: int(self.clock.now() * 10) * 3720
        self.nvml.answers[PROCESSES] = lambda handle: [process(pid, used) for pid, used in self.used.items()]
        self.gpu = NvmlGpu(self.nvml, uuid=UUID, clock=self.clock, timeout_s=None)

    @contextmanager
    def hold_memory(self, size: int) -> Iterator[None]:
        assert size == HELD_BYTES
        self.held += 1
        self._add(size)
        try:
            yield
        finally:
            self.held -= 1
            if self.freed:
                self._add(-size)

    def _add(self, size: int) -> None:
        used = self.used.get(self.reported) if self.reported is not None else None
        if used is not None:
            self.used[cast(int, self.reported)] = used + size

    def own(self) -> set[int]:
        found = own_process(self.gpu, self.hold_memory, OWN, self.clock)
        assert self.held == 0
        return found

    def instruments(self) -> Instruments:
        return Instruments(
            clock=self.clock,
            gpu=self.gpu,
            sampler=cast(Callable[[], Any], None),
            known_load=cast(Any, None),
            hold_memory=cast(Callable[[int], AbstractContextManager[None]], self.hold_memory),
            own_pid=OWN,
        )


@pytest.fixture
def machine() -> Machine:
    return Machine()


def codes(machine: Machine, limit_w: float | None = None, advances: bool | None = True) -> list[str]:
    reasons = preflight(machine.gpu.state(), advances, machine.own(), limit_w)
    assert all(": expected " in reason.message and ", found " in reason.message for reason in reasons)
    return [reason.code for reason in reasons]


def test_a_healthy_gpu_with_this_process_alone_is_measured(machine: Machine) -> None:
    assert codes(machine) == []
    refuse_unfit(machine.instruments())
    refuse_unfit(machine.instruments(), expected_power_limit_w=400.0)


@pytest.mark.parametrize(
    ("name", "answer", "code"),
    [
        ("nvmlDeviceGetMigMode", [1, 1], "mig_enabled"),
        ("nvmlDeviceGetRemappedRows", (0, 1, 1, 0), "row_remap_pending"),
        ("nvmlDeviceGetTotalEccErrors", 3, "uncorrected_ecc"),
        ("nvmlDeviceGetPersistenceMode", 0, "persistence_off"),
        (ENERGY, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED), "counter_unsupported"),
        (ENERGY, 7, "counter_not_advancing"),
    ],
)
def test_each_thing_that_spoils_a_measurement_refuses_it(
    machine: Machine, name: str, answer: object, code: str
) -> None:
    machine.nvml.answers[name] = answer
    with pytest.raises(InvalidMeasurement, match=r": expected .*, found ") as caught:
        refuse_unfit(machine.instruments())
    assert caught.value.code == code


def test_system76_power_492_gpud_431_persistence_off_is_refused_with_what_to_do(machine: Machine) -> None:
    machine.nvml.answers["nvmlDeviceGetPersistenceMode"] = 0
    with pytest.raises(InvalidMeasurement, match=r"persistence mode: expected on, found off.*nvidia-smi -pm 1"):
        refuse_unfit(machine.instruments())


@pytest.mark.parametrize(
    "name",
    [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetPowerManagementDefaultLimit",
    ],
)
def test_a_gpu_that_has_no_such_thing_is_not_refused_for_it(machine: Machine, name: str) -> None:
    machine.nvml.fail(name, pynvml.NVML_ERROR_NOT_SUPPORTED)
    refuse_unfit(machine.instruments())


@pytest.mark.parametrize(("limit_w", "found"), [(None, []), (400.0, []), (320.0, ["unexpected_power_limit"])])
def test_a_power_limit_that_is_not_the_expected_one_is_refused(
    machine: Machine, limit_w: float | None, found: list[str]
) -> None:
    assert codes(machine, limit_w) == found


def test_a_power_limit_that_nobody_knows_is_not_the_expected_one(machine: Machine) -> None:
    state = dataclasses.replace(machine.gpu.state(), power_limit_w=None)
    (reason,) = preflight(state, True, {OWN}, 400.0)
    assert reason.message == "power limit: expected 400 W, found none"


def test_the_reason_for_a_counter_that_is_unsupported_is_nvmls(machine: Machine) -> None:
    machine.nvml.fail(ENERGY, pynvml.NVML_ERROR_NOT_SUPPORTED)
    (reason,) = preflight(machine.gpu.state(), counter_advances(machine.gpu, machine.clock), {OWN}, None)
    assert reason.code == "counter_unsupported"
    assert "NVML_ERROR_NOT_SUPPORTED" in reason.message


def test_all_reasons_are_told_at_once_under_the_code_of_the_first(machine: Machine) -> None:
    machine.nvml.answers |= {"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetPersistenceMode": 0}
    machine.used[4242] = MIB
    with pytest.raises(InvalidMeasurement) as caught:
        refuse_unfit(machine.instruments(), expected_power_limit_w=320.0)
    assert caught.value.code == "mig_enabled"
    assert [part.split(":")[0] for part in caught.value.message.split("; ")][:2] == ["MIG mode", "processes"]
    assert "persistence mode" in caught.value.message
    assert "expected 320 W, found 400 W" in caught.value.message


def test_another_process_is_refused_by_its_number(machine: Machine) -> None:
    machine.used[4242] = 2048 * MIB
    assert codes(machine) == ["other_process"]
    (reason,) = preflight(machine.gpu.state(), True, {OWN}, None)
    assert reason.message == "processes: expected none but this one, found 4242 not proved to be it"


@pytest.mark.parametrize("reported", [15008, 1])
def test_nvidia_docker_1483_a_container_that_lists_us_under_another_number_raises_no_false_alarm(
    machine: Machine, reported: int
) -> None:
    machine.reported, machine.used = reported, {reported: 450 * MIB}
    assert machine.own() == {reported}
    assert codes(machine) == []


def test_nvidia_docker_1483_a_foreign_process_is_no_pass_though_it_is_the_only_one_listed(machine: Machine) -> None:
    machine.reported, machine.used = None, {15008: 450 * MIB}
    assert machine.own() == set()
    assert codes(machine) == ["other_process"]


def test_a_foreign_process_that_happens_to_have_our_number_is_no_pass(machine: Machine) -> None:
    machine.reported, machine.used = 15008, {OWN: 450 * MIB, 15008: 450 * MIB}
    assert machine.own() == {15008}
    assert codes(machine) == ["other_process"]


def test_memory_that_only_rises_proves_nothing(machine: Machine) -> None:
    machine.freed = False
    assert machine.own() == set()
    assert codes(machine) == ["other_process"]


@pytest.mark.parametrize("extra", [HELD_BYTES * 2, HELD_BYTES // 2, -HELD_BYTES])
def test_memory_that_moves_by_something_else_proves_nothing(machine: Machine, extra: int) -> None:
    machine.used[OWN] = 4096 * MIB
    add = machine._add
    machine._add = lambda size: add(extra if size > 0 else -extra)  # type: ignore[method-assign]
    assert machine.own() == set()


@pytest.mark.parametrize(("extra", "found"), [(-1, set()), (0, {OWN}), (32 * MIB, {OWN}), (32 * MIB + 1, set())])
def test_an_allocator_may_round_up_by_a_quarter(machine: Machine, extra: int, found: set[int]) -> None:
    assert HELD_BYTES == 128 * MIB
    add = machine._add
    machine._add = lambda size: add(size + (extra if size > 0 else -extra))  # type: ignore[method-assign]
    assert machine.own() == found


def test_two_processes_that_move_alike_prove_nothing(machine: Machine) -> None:
    machine.used[4242] = 450 * MIB
    add = machine._add

    def both(size: int) -> None:
        add(size)
        machine.used[4242] = cast(int, machine.used[4242]) + size

    machine._add = both  # type: ignore[method-assign]
    assert machine.own() == set()
    assert codes(machine) == ["other_process"]


def test_books_that_follow_later_are_waited_for(machine: Machine) -> None:
    steps: list[tuple[float, int]] = []
    machine._add = lambda size: steps.append((machine.clock.now() + 0.3, size))  # type: ignore[method-assign]

    def listed(handle: str) -> list[Any]:
        held = sum(size for time, size in steps if time <= machine.clock.now())
        return [process(OWN, 450 * MIB + held)]

    machine.nvml.answers[PROCESSES] = listed
    assert machine.own() == {OWN}


def test_where_memory_is_unknown_only_the_own_number_is_this_process(machine: Machine) -> None:
    machine.used = {OWN: None}
    assert machine.own() == {OWN}
    machine.used = {15008: None}
    assert machine.own() == set()
    assert codes(machine) == ["other_process"]
    machine.used = {OWN: None, 15008: None}
    assert codes(machine) == ["other_process"]


def test_a_list_that_does_not_show_this_process_is_no_proof_of_being_alone(machine: Machine) -> None:
    machine.reported, machine.used = None, {}
    assert codes(machine) == ["own_process_not_seen"]


def test_processes_that_cannot_be_listed_are_refused_with_the_reason(machine: Machine) -> None:
    for name in (PROCESSES, f"{PROCESSES}_v2"):
        machine.nvml.fail(name, pynvml.NVML_ERROR_NO_PERMISSION)
    assert machine.own() == set()
    (reason,) = preflight(machine.gpu.state(), True, set(), None)
    assert reason.code == "processes_unknown"
    assert "NVML_ERROR_NO_PERMISSION" in reason.message


def test_a_process_that_was_proved_is_told_from_the_others_in_the_list(machine: Machine) -> None:
    state = dataclasses.replace(machine.gpu.state(), processes=[GpuProcess(15008, 1), GpuProcess(9, 1)])
    assert [reason.code for reason in preflight(state, True, {15008, 9}, None)] == []
    (reason,) = preflight(state, True, {15008}, None)
    assert "found 9 not" in reason.message


def test_a_counter_that_ticks_advances(machine: Machine) -> None:
    assert counter_advances(machine.gpu, machine.clock) is True


def test_a_counter_is_given_a_second_to_advance_and_no_more(machine: Machine) -> None:
    start = machine.clock.now()
    machine.nvml.answers[ENERGY] = lambda handle: int(machine.clock.now() > start + 0.9 * ADVANCE_S)
    assert counter_advances(machine.gpu, machine.clock) is True
    start = machine.clock.now()
    machine.nvml.answers[ENERGY] = lambda handle: int(machine.clock.now() > start + 1.2 * ADVANCE_S)
    assert counter_advances(machine.gpu, machine.clock) is False


def test_a_counter_that_falls_is_not_one_that_stands_still_and_is_left_to_the_round(machine: Machine) -> None:
    machine.nvml.answers[ENERGY] = lambda handle: 10**9 - int(machine.clock.now() * 10)
    assert counter_advances(machine.gpu, machine.clock) is True


def test_codecarbon_608_a_counter_that_turns_out_unsupported_at_the_second_read_is_unsupported(
    machine: Machine,
) -> None:
    answers = iter([7, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)])

    def scripted(handle: str) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return cast(int, answer)

    machine.nvml.answers[ENERGY] = scripted
    assert counter_advances(machine.gpu, machine.clock) is None


@pytest.mark.parametrize(
    ("code", "error"),
    [(pynvml.NVML_ERROR_NOT_READY, NvmlNotReady), (pynvml.NVML_ERROR_GPU_IS_LOST, NvmlGpuIsLost)],
)
def test_a_gpu_that_is_not_ready_or_lost_is_not_called_unsupported(
    machine: Machine, code: int, error: type[Exception]
) -> None:
    machine.nvml.fail(ENERGY, code)
    with pytest.raises(error):
        refuse_unfit(machine.instruments())
    machine.nvml.fail(PROCESSES, code)
    with pytest.raises(error):
        machine.own()

"""The control kernel: what it computes, that nothing shortens its chain, and that it touches nothing but its output."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.devices.emulated.critical_path import critical_path
from gpu_tasks.devices.emulated.findings import KernelFinding
from gpu_tasks.devices.emulated.machine import INSTRUCTION_LIMIT, Machine
from gpu_tasks.devices.emulated.memory import GlobalMemory
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.manifest import load_control

CONTROL, TEXT = load_control()
KERNEL = parse(TEXT)


def spin(iterations: int, *, words: int = 32, **limit: int) -> tuple[Machine, np.ndarray]:
    """Run it under every check; the machine and what it wrote."""
    memory = GlobalMemory()
    result = memory.allocate("result", 4 * words)
    machine = Machine(KERNEL, memory, (1, 1, 1), (32, 1, 1))
    machine.run([result.address, iterations], {result.address}, **limit)
    values, written = memory.copy_out(result, np.float32)
    assert written.all()
    return machine, values


def logistic(iterations: int) -> np.ndarray:
    """The same map in numpy: float32, one rounding an operation."""
    x = np.arange(1, 33, dtype=np.float32) / np.float32(64)
    for _ in range(iterations):
        x = np.float32(3.75) * (x * (np.float32(1) - x))
    return x


@settings(deadline=None, max_examples=30)
@given(iterations=st.integers(0, 2000))
def test_it_computes_the_logistic_map_of_every_lane(iterations: int) -> None:
    _, values = spin(iterations)
    np.testing.assert_array_equal(values, logistic(iterations))
    assert ((values > 0) & (values < 1)).all()


def test_it_is_one_warp_and_the_manifest_names_its_entry() -> None:
    assert (KERNEL.name, KERNEL.block_required) == (CONTROL.entry, [32, 1, 1])
    assert KERNEL.parameters == ["result", "iterations"]
    assert (KERNEL.shared_bytes, KERNEL.dynamic_shared) == (0, None)
    assert CONTROL.ptx_lines == len(TEXT.splitlines())


def test_it_reads_no_memory_and_writes_its_output_once() -> None:
    memory = [i.mnemonic for i in KERNEL.code if i.mnemonic.startswith(("ld.", "st.", "cp."))]
    assert memory == ["ld.param.u64", "ld.param.u64", "st.global.f32"]
    with pytest.raises(KernelFinding) as found:
        spin(1, words=31)
    assert found.value.code == "out_of_bounds"


def test_every_iteration_waits_for_the_one_before() -> None:
    """Modelled: three dependent operations of float32 are at least 12 cycles, and unchained they would take three."""
    few, many = (critical_path(spin(iterations)[0]) for iterations in (100, 1100))
    assert many - few >= 1000 * 3 * 4


def test_the_emulators_limit_ends_it() -> None:
    with pytest.raises(KernelFinding, match=f"still running after {INSTRUCTION_LIMIT} instructions") as found:
        spin(2**31 - 1)
    assert found.value.code == "instruction_limit"
    machine, _ = spin(100)
    spin(100, limit=machine.step)
    with pytest.raises(KernelFinding, match="still running"):
        spin(100, limit=machine.step - 1)

"""A GPU that is not there, whose kernels are the emulator: as near to one as a machine without one comes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpu_tasks.devices.emulated.findings import PtxError
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import Buffer, GlobalMemory
from gpu_tasks.devices.emulated.parser import Kernel, parse
from gpu_tasks.devices.manifest import COMMITTED, read_manifest
from tests.unit.gpu_tasks.devices.cuda_fakes import FakeGpu, FakeTensor

_ACCESS = {("control", 2): ["write", "number"]} | {
    (launch.entry, len(launch.parameters)): [parameter.access for parameter in launch.parameters]
    for variant in read_manifest(COMMITTED).variants.values()
    for launch in variant.launches
}


class EmulatingGpu(FakeGpu):
    """Runs the PTX itself; ``after`` may change what an entry has left in its buffers."""

    def __init__(self, after: Callable[[str, list[np.ndarray]], None] | None = None) -> None:
        super().__init__()
        self.after = after
        self.kernels: dict[str, Kernel] = {}
        self.machines: dict[str, tuple[Machine, list[Buffer], GlobalMemory]] = {}

    def compile(self, text: str) -> int:
        try:
            kernel = parse(text)
            Machine(
                kernel, GlobalMemory(), (1, 1, 1), tuple(kernel.block_required or (32, 1, 1)), 0
            )  # knows the instructions
        except PtxError as error:
            self.log = str(error).encode()
            return 218
        self.kernels[kernel.name] = kernel
        self.machines.pop(kernel.name, None)
        return 0

    def launch(self, entry: str, arguments: list[FakeTensor | int], geometry: list[int], shared: int) -> None:
        tensors = [each for each in arguments if isinstance(each, FakeTensor)]
        if entry not in self.machines:
            memory = GlobalMemory()
            buffers = [memory.allocate(f"p{i}", tensor.array.nbytes) for i, tensor in enumerate(tensors)]
            machine = Machine(
                self.kernels[entry], memory, tuple(geometry[:3]), tuple(geometry[3:]), shared, check_races=False
            )
            self.machines[entry] = machine, buffers, memory
        machine, buffers, memory = self.machines[entry]
        for buffer, tensor in zip(buffers, tensors, strict=True):
            memory.copy_in(buffer, tensor.array)
        addresses = iter([buffer.address for buffer in buffers])
        values = [next(addresses) if isinstance(each, FakeTensor) else each for each in arguments]
        access = _ACCESS[entry, len(values)]
        machine.run(values, {value for value, how in zip(values, access, strict=True) if how == "write"})
        for buffer, tensor in zip(buffers, tensors, strict=True):
            tensor.array[...] = memory.copy_out(buffer, tensor.array.dtype)[0].reshape(tensor.array.shape)
        if self.after is not None:
            self.after(entry, [tensor.array for tensor in tensors])

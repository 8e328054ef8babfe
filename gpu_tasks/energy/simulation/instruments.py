"""What a protocol measures with on a simulated GPU: the real adapter over the fake NVML, and a sampler beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gpu_tasks.energy.clock import MonotonicClock
from gpu_tasks.energy.instruments import Instruments, LoadRun
from gpu_tasks.energy.nvml.events import xid_reason
from gpu_tasks.energy.nvml.gpu import NvmlGpu
from gpu_tasks.energy.nvml.queries import INSTANTANEOUS
from gpu_tasks.energy.simulation.gpu import SimulatedGpu
from gpu_tasks.energy.simulation.lag import Float64Array
from gpu_tasks.energy.simulation.nvml import FakeNvml
from gpu_tasks.energy.trace import PROCESSES_EVERY_S, Sample, csv_text
from gpu_tasks.records import CounterReading, PowerTrace, Reason

SAMPLE_PERIOD_S = 0.05
SAMPLE_JITTER_S = 2e-3
GAP_S = 1.5
COUNTER_AFTER_POWER_S = 2e-3
START_S = 0.05

LOAD_SIZE = 4096
LOAD_WARM_UP_S = 2.0
LOAD_SETTLE_S = 3.0
LOAD_ERROR = 3e-6


class VirtualSampler:
    """``gpu_tasks.energy.instruments.Sampler``: samples of the same history, taken when sampling ends.

    One sample about every 50 ms, each a little late, as a process of its own would take them.
    """

    def __init__(self, gpu: SimulatedGpu) -> None:
        self._gpu = gpu
        self._start_s: float | None = None

    def start(self) -> None:
        """Begin; time for one sample passes."""
        self._start_s = self._gpu.clock.now()
        self._gpu.kept_since_s.append(self._start_s)
        self._gpu.clock.sleep(START_S)

    def stop(self) -> PowerTrace:
        """End: the samples from the start to now, or to where the GPU was lost."""
        if self._start_s is None:
            raise RuntimeError("stop: expected a sampler that was started, found one that was not")
        gpu, start_s = self._gpu, self._start_s
        self._start_s, end_s = None, min(gpu.clock.now(), gpu.lost_s)
        gpu.kept_since_s.remove(start_s)
        count = int((end_s - start_s) / SAMPLE_PERIOD_S) + 1
        times: Float64Array = start_s + SAMPLE_PERIOD_S * np.arange(count, dtype=np.float64)
        times += [gpu.sample_delay() * SAMPLE_JITTER_S for _ in times]
        times = np.append(times[times < end_s - SAMPLE_JITTER_S], end_s)
        if gpu.effects.sampler_gap:
            times = times[np.abs(times - (start_s + end_s) / 2) > GAP_S / 2]
        return PowerTrace(SAMPLE_PERIOD_S, INSTANTANEOUS, csv_text(self._samples(times)), self._error(start_s))

    def _error(self, start_s: float) -> Reason | None:
        """What came first of what a process would have been told."""
        for time_s, number in self._gpu.xids:
            if time_s >= start_s:
                return xid_reason(number)
        return Reason("nvml_gpu_is_lost", "sampler: the GPU was lost") if self._gpu.lost else None

    def _samples(self, times: Float64Array) -> Iterator[Sample]:
        gpu = self._gpu
        columns = (
            times.tolist(),
            gpu.power.powers_w(times).tolist(),
            gpu.sm_clock_mhz.at_all(times).tolist(),
            np.rint(gpu.temperature.values(times)).astype(int).tolist(),
            np.rint(gpu.utilisation.values(times)).astype(int).tolist(),
        )
        counted = not gpu.effects.no_counter
        memory_clock_mhz, latest = gpu.profile.memory_clock_mhz, columns[0][-1] if columns[0] else 0.0
        look_s = 0.0
        for time_s, watts, sm_clock_mhz, temperature_c, utilisation_percent in zip(*columns, strict=True):
            counter_s = min(time_s + COUNTER_AFTER_POWER_S, latest)
            look = time_s >= look_s
            look_s = time_s + PROCESSES_EVERY_S if look else look_s
            yield Sample(
                time_s,
                gpu.disturbed_w(watts),
                counter_s if counted else None,
                gpu.counter.value_mj(counter_s) if counted else None,
                sm_clock_mhz,
                memory_clock_mhz,
                temperature_c,
                utilisation_percent,
                0,
                gpu.throttle_reasons(time_s),
                gpu.process_count.at(time_s) if look else None,
            )


class SimulatedLoad:
    """``gpu_tasks.energy.instruments.KnownLoad``: products that cost what the profile says they cost.

    The first ones, which bring the power up, are not counted, as on a GPU.
    """

    def __init__(self, gpu: SimulatedGpu, read_counter: Callable[[], CounterReading]) -> None:
        self._gpu, self._read_counter = gpu, read_counter

    def run(self, seconds: float, duty: float = 1.0) -> LoadRun:
        """Work for about ``seconds``; the result of the products is taken for right."""
        profile = self._gpu.profile
        tera_operations = 2 * LOAD_SIZE**3 / 1e12
        product_s = tera_operations / profile.tera_operations_per_s
        product_j = tera_operations * profile.joules_per_1e12_operations
        warm_up = round(LOAD_WARM_UP_S / product_s)
        self._gpu.work(warm_up * product_s, warm_up * product_j)
        repeats = max(1, round(seconds * duty / product_s))
        if duty < 1:
            self._gpu.clock.sleep(LOAD_SETTLE_S)
        start = self._read_counter()
        if duty < 1:
            for _ in range(repeats):
                self._gpu.work(product_s, product_j)
                self._gpu.clock.sleep(product_s * (1 - duty) / duty)
        else:
            self._gpu.work(repeats * product_s, repeats * product_j)
        return LoadRun(LOAD_SIZE, repeats, start, self._read_counter(), LOAD_ERROR)


def simulated_instruments(gpu: SimulatedGpu) -> Instruments:
    """The instruments of ``gpu``, on its clock. Raises what the adapter raises of a GPU that is lost, say."""
    adapter = NvmlGpu(FakeNvml(gpu), uuid=gpu.uuid, pci_bus_id=gpu.pci_bus_id, clock=gpu.clock, timeout_s=None)

    @contextmanager
    def hold_memory(size_bytes: int) -> Iterator[None]:
        gpu.own_bytes += size_bytes
        try:
            yield
        finally:
            gpu.own_bytes -= size_bytes

    return Instruments(
        clock=gpu.clock,
        gpu=adapter,
        sampler=lambda: VirtualSampler(gpu),
        known_load=SimulatedLoad(gpu, adapter.read_counter),
        hold_memory=hold_memory,
        own_pid=os.getpid(),
    )


def real_time_nvml() -> FakeNvml:
    """A healthy GPU that idles in real time, for a process that is to be told what to import: nothing else is.

    The time constants are those of the profile, so that a reading of its counter takes its 3 ms.
    """
    return FakeNvml(SimulatedGpu(clock=MonotonicClock()))

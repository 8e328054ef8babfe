"""One simulated GPU: what work does to power, counter, clocks, temperature and processes, at every moment.

Work takes its time on the clock and its energy on the board, and everything that NVML could say is derived from the
same history. Everything random comes from the seed, each quantity from a generator of its own, so that the same calls
give the same bits.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpu_tasks.energy.instruments import Clock
from gpu_tasks.energy.simulation.clock import VirtualClock
from gpu_tasks.energy.simulation.counter import EnergyCounter
from gpu_tasks.energy.simulation.drift import drift_model
from gpu_tasks.energy.simulation.lag import Lag
from gpu_tasks.energy.simulation.power import PowerModel, Sensor
from gpu_tasks.energy.simulation.profiles import A100_HEALTHY, FAULTY_SENSOR, Profile
from gpu_tasks.energy.simulation.steps import Steps
from gpu_tasks.records import Effects, InfrastructureFailure

TICK_PERIOD_S = 0.1
SHORTEST_WINDOW_S = 1.5
"""Replays for less than this are no window: calibration and warm-up in small portions."""

READ_LATENCY_S = (2.6e-3, 4.0e-3)
POWER_NOISE_W = 0.25
METERS_DISAGREE = 1.05
REFUSED_READS = range(1, 2)
FALL_MJ = 10_000_000  # more than any window uses, so that it ends below its start
SLIP_MJ = 20_000  # less than any window uses

GPU_IDLE, SW_POWER_CAP, HW_SLOWDOWN = 0x1, 0x4, 0x8  # bits of NVML's clocks event reasons
HW_THERMAL, HW_POWER_BRAKE = 0x40, 0x80
BRAKED = 0.95  # of the clock, and so no drop of it

XID = 74  # an error of NVLink: the work that does not use it goes on

CONTEXT_BYTES = 437 * 1024**2
OTHER_PID, OTHER_BYTES, OTHER_W = 4242, 2 * 1024**3, 12.0

UTILISATION_LAG_S = 0.1
HISTORY_S = 600.0


class GpuLost(InfrastructureFailure):
    """The GPU fell off the bus while it worked."""

    def __init__(self) -> None:
        super().__init__("gpu_lost", "simulated GPU: expected to finish its work, found to have fallen off the bus")


class SimulatedGpu:
    """A board of ``profile``, with ``effects``.

    ``drift`` is one of ``DRIFTS`` and stands back behind one in ``effects``. ``replay_s`` and ``replay_mj`` are what
    one replay of the task takes here, effects included: the truth that a measurement is after. The public attributes
    may be set: NVML reports what they are.
    """

    def __init__(
        self,
        profile: Profile = A100_HEALTHY,
        effects: Effects | None = None,
        seed: int = 0,
        *,
        tick_period_s: float = TICK_PERIOD_S,
        drift: str = "none",
        clock: Clock | None = None,
    ) -> None:
        self.profile = profile
        self.effects = effects = effects or Effects()
        self.clock: Clock = clock or VirtualClock()
        board, drifting, ticks, latency, noise, timing, sampling = map(np.random.default_rng, _seeds(seed, 7))
        start_s = self.clock.now()
        self.plain_replay_s = profile.replay_s * (1 + profile.replay_time_sd * board.standard_normal())
        self.plain_replay_mj = profile.replay_mj * (1 + profile.replay_energy_sd * board.standard_normal())
        self.replay_s = self.plain_replay_s * effects.time_factor
        self.replay_mj = self.plain_replay_mj * effects.energy_factor

        self.idle_w = profile.idle_w + profile.idle_sd_w * board.standard_normal()
        model = drift_model(drift if effects.drift == "none" else effects.drift, drifting)
        lag_s = effects.slow_tail_s or profile.lag_s
        self.power = PowerModel(self.idle_w, model, lag_s, _sensor(profile, effects), start_s)
        self.counter = EnergyCounter(self.power.energy_j, tick_period_s, ticks, start_s)
        self.temperature = Lag(profile.temperature_lag_s, start_s, profile.idle_temperature_c)
        self.utilisation = Lag(UTILISATION_LAG_S, start_s)
        self.sm_clock_mhz = Steps(profile.sm_clock_mhz)
        self.throttle = Steps(0)

        self.uuid, self.pci_bus_id = profile.uuid, profile.pci_bus_id
        self.driver = effects.driver or profile.driver
        self.power_limit_w = effects.power_limit_w or profile.power_limit_w
        self.persistence_mode, self.mig_mode = True, False
        self.uncorrected_ecc_errors, self.row_remap_pending = 0, False
        self.reported_pid = os.getpid()  # in a container perhaps another number than the process's own
        self.own_bytes = CONTEXT_BYTES
        self.others: dict[int, int] = {}
        self.process_count = Steps(1)
        self.xids: list[tuple[float, int]] = []
        self.lost_s = math.inf
        self.counter_reads, self.refused_reads = 0, REFUSED_READS if effects.not_ready else range(0)
        self.windows = self.open_devices = 0
        self.kept_since_s: list[float] = []

        self._background_w = 0.0
        low, high = READ_LATENCY_S
        self._latencies = _stream(lambda n: latency.uniform(low, high, n))
        self._noise = _stream(lambda n: noise.normal(0.0, POWER_NOISE_W, n))
        self._timing = _stream(timing.standard_normal)
        self._delays = _stream(sampling.random)

    @property
    def lost(self) -> bool:
        """Whether the GPU has fallen off the bus by now."""
        return self.clock.now() >= self.lost_s

    def work(self, seconds: float, joules: float, *, window: bool = False) -> float:
        """Work that needs ``seconds`` at full clocks and ``joules`` above idle, now; the seconds that it took.

        ``window``: replays of the task, on which the effects act. Raises ``GpuLost``.
        """
        if self.lost:
            raise GpuLost
        start_s, watts = self.clock.now(), joules / seconds
        for history in (self.power, self.temperature, self.utilisation):
            history.forget_before(min([start_s - HISTORY_S, *self.kept_since_s]))
        try:
            if window and seconds >= SHORTEST_WINDOW_S:
                self._window(seconds, watts)
            else:
                self._run(seconds, watts)
        finally:
            self._load(0.0)
        return self.clock.now() - start_s

    def measured_power_w(self, time_s: float) -> float:
        """What a reading of the power shows at a time, its noise included; never negative."""
        return self.disturbed_w(self.power.power_w(time_s))

    def disturbed_w(self, watts: float) -> float:
        """A true power as the power meter shows it."""
        factor = METERS_DISAGREE if self.effects.meters_disagree else 1.0
        return max(factor * (watts + next(self._noise)), self.effects.sensor_floor_w)

    def read_latency_s(self) -> float:
        """How long the next reading of the counter takes."""
        return next(self._latencies)

    def timing_noise(self) -> float:
        """Standard normal, for the device's own clock."""
        return next(self._timing)

    def sample_delay(self) -> float:
        """0 to 1: how late the next sample of a sampler is."""
        return next(self._delays)

    def throttle_reasons(self, time_s: float) -> int:
        """NVML's bits at a time."""
        idle = 0 if self.utilisation.value(time_s) >= 1 else GPU_IDLE
        return self.throttle.at(time_s) or idle

    def processes(self) -> dict[int, int]:
        """Compute processes: pid, as NVML reports it, to used bytes."""
        return {self.reported_pid: self.own_bytes, **self.others}

    def set_others(self, others: dict[int, int]) -> None:
        """From now on these processes compute here beside the own one: pid to used bytes."""
        self.others = others
        self.process_count.set(self.clock.now(), 1 + len(others))
        self._background_w = OTHER_W * len(others)

    def _window(self, seconds: float, watts: float) -> None:
        profile, effects = self.profile, self.effects
        self.windows += 1
        if effects.slow_start:
            self._limit(profile.reduced_clock_mhz, 0)
        self._run(0.4 * seconds, watts)
        if effects.slow_start:
            self._limit(profile.sm_clock_mhz, 0)
        if effects.throttle:
            self._limit(profile.reduced_clock_mhz, HW_SLOWDOWN | HW_THERMAL)
        if effects.power_brake:
            self._limit(round(BRAKED * profile.sm_clock_mhz), HW_SLOWDOWN | HW_POWER_BRAKE)
        if effects.passing_process:
            self.set_others({OTHER_PID: OTHER_BYTES})
        self._run(0.1 * seconds, watts)
        self._middle_of_window()
        self._run(0.1 * seconds, watts)
        if effects.throttle or effects.power_brake:
            self._limit(profile.sm_clock_mhz, 0)
        if effects.passing_process:
            self.set_others({})
        self._run(0.4 * seconds, watts)

    def _middle_of_window(self) -> None:
        now, effects = self.clock.now(), self.effects
        if effects.clock_drop:
            self._limit(self.profile.reduced_clock_mhz, 0)
        if effects.other_process:
            self.set_others({OTHER_PID: OTHER_BYTES})
        if effects.stuck_counter:
            self.counter.stick(now)
        if effects.counter_backwards:
            self.counter.fall(now, FALL_MJ)
        if effects.counter_slips:
            self.counter.fall(now, SLIP_MJ)
        if effects.xid:
            self.xids.append((now, XID))
        if effects.lost_gpu:
            self.lost_s = now
            raise GpuLost

    def _run(self, seconds: float, watts: float) -> None:
        """Work of ``watts`` at full clocks: at lower ones it takes longer and draws less, for the same energy."""
        now = self.clock.now()
        full, bits = self.profile.sm_clock_mhz, self.throttle.at(now)
        speed = self.sm_clock_mhz.at(now) / full
        allowed_w = max(self.power_limit_w - self.idle_w - self._background_w, 1.0)
        capped = speed * watts > allowed_w
        if capped:
            before, speed = self.sm_clock_mhz.at(now), allowed_w / watts
            self._limit(round(full * speed), bits | SW_POWER_CAP)
        self._load(speed * watts)
        self.clock.sleep(seconds / speed)
        if capped:
            self._limit(before, bits)

    def _limit(self, clock_mhz: int, bits: int) -> None:
        now = self.clock.now()
        self.sm_clock_mhz.set(now, clock_mhz)
        self.throttle.set(now, bits)

    def _load(self, watts: float) -> None:
        now, watts = self.clock.now(), watts + self._background_w
        profile = self.profile
        self.power.load(now, watts)
        self.temperature.set_target(now, profile.idle_temperature_c + profile.kelvin_per_w * watts)
        self.utilisation.set_target(now, 100.0 if watts > 0 else 0.0)


def _sensor(profile: Profile, effects: Effects) -> Sensor:
    sensor = FAULTY_SENSOR if effects.faulty_sensor else profile.sensor
    scale = sensor.scale * effects.sensor_scale
    return dataclasses.replace(sensor, scale=scale, floor_w=effects.sensor_floor_w)


def _seeds(seed: int, count: int) -> list[Any]:
    return list(np.random.SeedSequence(seed).spawn(count))


def _stream(draw: Callable[[int], Any]) -> Iterator[float]:
    """Draws one by one, made many at a time."""
    while True:
        yield from draw(1024).tolist()

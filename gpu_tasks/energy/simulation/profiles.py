"""Two hosts of an A100: a healthy one, and the one of the record, whose power sensor lies."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from gpu_tasks.energy.simulation.power import Sensor

HEALTHY_SENSOR = Sensor()
FAULTY_SENSOR = Sensor(ceiling_w=1.53, knee_w=65.0)
"""34.4 W above idle read as 0.63 W, 160 W as 1.4 W, 210 W as 1.5 W."""


@dataclass(frozen=True)
class Profile:
    """A board and what the task costs on it.

    ``replay_mj`` is the whole energy of one replay above idle. ``lag_s`` is the time constant of the power behind the
    load: a window of T seconds that ends with the last replay sees ``1 - lag/T`` of it, and the tail has the rest. The
    ``_sd`` figures are from one opening of the device to the next: of one replay's energy and time as shares, of the
    idle power in W.
    """

    key: str
    name: str
    memory_bytes: int = 42405855232
    multiprocessors: int = 108
    l2_cache_bytes: int = 40 * 1024**2
    capability: tuple[int, int] = (8, 0)
    driver: str = "580.105.08"
    pci_bus_id: str = "00000000:07:00.0"
    idle_w: float = 38.6
    idle_sd_w: float = 0.15
    replay_s: float = 17.05e-6
    replay_mj: float = 0.586
    replay_energy_sd: float = 0.006
    replay_time_sd: float = 0.003
    lag_s: float = 0.25
    power_limit_w: float = 400.0
    sm_clock_mhz: int = 1410
    reduced_clock_mhz: int = 1140
    memory_clock_mhz: int = 1215
    idle_temperature_c: float = 31.0
    kelvin_per_w: float = 0.12
    temperature_lag_s: float = 15.0
    tera_operations_per_s: float = 19.0
    joules_per_1e12_operations: float = 8.4
    sensor: Sensor = HEALTHY_SENSOR

    @property
    def uuid(self) -> str:
        """NVML's form of a UUID, the same on every machine."""
        return f"GPU-{uuid5(NAMESPACE_URL, f'kernel-nightly:simulated/{self.key}')}"


A100_HEALTHY = Profile(key="a100_healthy", name="NVIDIA A100-SXM4-40GB (simulated)")

A100_FAULTY_SENSOR = Profile(
    key="a100_faulty_sensor",
    name="NVIDIA A100-SXM4-40GB (simulated, faulty sensor)",
    idle_w=40.1,
    idle_sd_w=0.2,
    replay_s=16.39e-6,
    replay_mj=0.564,
    sensor=FAULTY_SENSOR,
)

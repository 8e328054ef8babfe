"""What the power sensor of the board sees over time, and the energy under it, exactly.

``P(t) = idle + drift(t) + response(t)``: the response follows the load with a lag, so that power rises late and a tail
is left after the work. The lag loses nothing: over all time its integral is the load's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu_tasks.energy.simulation.drift import Drift, NoDrift
from gpu_tasks.energy.simulation.lag import Float64Array, FlooredLag, Lag


@dataclass(frozen=True)
class Sensor:
    """What the board's sensor makes of the truth: both meters get this and nothing else.

    ``scale`` multiplies everything. With ``ceiling_w`` the power above idle saturates:
    ``ceiling * (1 - e^(-watts/knee))``. Nothing below ``floor_w`` is ever shown.
    """

    scale: float = 1.0
    ceiling_w: float | None = None
    knee_w: float = 1.0
    floor_w: float = 0.0

    def above_idle_w(self, watts: float) -> float:
        """What a load of ``watts`` above idle is taken for."""
        if self.ceiling_w is None:
            return self.scale * watts
        return self.scale * self.ceiling_w * -math.expm1(-watts / self.knee_w)


class PowerModel:
    """Power in W and energy in J since ``start_s``, as the sensor sees them. Before the start it idled.

    Under a floor that is above the idle power, what drifts is not seen.
    """

    def __init__(self, idle_w: float, drift: Drift, lag_s: float, sensor: Sensor, start_s: float) -> None:
        self._idle_w = sensor.scale * idle_w
        self._hidden_w = max(sensor.floor_w - self._idle_w, 0.0)
        self._drift = NoDrift() if self._hidden_w else drift
        self._sensor = sensor
        self._start_s = start_s
        self._response = FlooredLag(lag_s, start_s, self._hidden_w) if self._hidden_w else Lag(lag_s, start_s)

    def load(self, time_s: float, watts: float) -> None:
        """From ``time_s`` on the GPU works with ``watts`` above idle."""
        self._response.set_target(time_s, self._sensor.above_idle_w(watts))

    def power_w(self, time_s: float) -> float:
        """Power at a time."""
        elapsed = time_s - self._start_s
        if elapsed < 0:
            return self._idle_w + self._hidden_w
        return self._idle_w + self._sensor.scale * self._drift.power_w(elapsed) + self._response.value(time_s)

    def energy_j(self, time_s: float) -> float:
        """Energy from the start to a time; negative before it."""
        elapsed = time_s - self._start_s
        if elapsed < 0:
            return (self._idle_w + self._hidden_w) * elapsed
        drifted = self._sensor.scale * self._drift.energy_j(elapsed)
        return self._idle_w * elapsed + drifted + self._response.integral(time_s)

    def powers_w(self, times_s: Float64Array) -> Float64Array:
        """``power_w`` of many times from the start on."""
        drifted = self._sensor.scale * self._drift.powers_w(times_s - self._start_s)
        return self._idle_w + drifted + self._response.values(times_s)

    def forget_before(self, time_s: float) -> None:
        """Drop what no time from ``time_s`` on depends on."""
        self._response.forget_before(time_s)

    @property
    def changes(self) -> int:
        """Changes of the load that are remembered."""
        return self._response.changes

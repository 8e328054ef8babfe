"""Idle power that wanders: what it is above its starting value at each time, and its integral, exactly.

``linear`` rises or falls evenly. ``curvature`` relaxes to another value, as a board does whose temperature settles.
``random_walk`` is a Wiener process on a grid, straight between grid points.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from gpu_tasks.energy.simulation.lag import Float64Array
from gpu_tasks.records import DRIFTS

SLOPE_W_PER_S = (0.01, 0.03)
RELAXATION_W = 0.5
RELAXATION_S = (10.0, 60.0)
WALK_W_PER_SQRT_S = 0.07
GRID_S = 0.05
CHUNK = 4096


class Drift(Protocol):
    """Power above the idle power in W and its integral in J, ``elapsed_s`` after the start; 0 before it."""

    def power_w(self, elapsed_s: float) -> float:
        """Deviation at a time."""

    def energy_j(self, elapsed_s: float) -> float:
        """Integral of the deviation from the start."""

    def powers_w(self, elapsed_s: Float64Array) -> Float64Array:
        """``power_w`` of many times."""


class NoDrift:
    """Idle power that stays."""

    def power_w(self, elapsed_s: float) -> float:
        """0."""
        del elapsed_s
        return 0.0

    energy_j = power_w

    def powers_w(self, elapsed_s: Float64Array) -> Float64Array:
        """Zeros."""
        return np.zeros_like(elapsed_s)


class LinearDrift:
    """``slope * t``."""

    def __init__(self, slope_w_per_s: float) -> None:
        self._slope = slope_w_per_s

    def power_w(self, elapsed_s: float) -> float:
        """Deviation at a time."""
        return self._slope * max(elapsed_s, 0.0)

    def energy_j(self, elapsed_s: float) -> float:
        """Integral of the deviation from the start."""
        return self._slope * max(elapsed_s, 0.0) ** 2 / 2

    def powers_w(self, elapsed_s: Float64Array) -> Float64Array:
        """``power_w`` of many times."""
        return self._slope * np.maximum(elapsed_s, 0.0)


class Relaxation:
    """``amplitude * (1 - e^(-t/constant))``: curved within a round, settled after a few."""

    def __init__(self, amplitude_w: float, constant_s: float) -> None:
        self._amplitude, self._constant = amplitude_w, constant_s

    def power_w(self, elapsed_s: float) -> float:
        """Deviation at a time."""
        return -self._amplitude * math.expm1(-max(elapsed_s, 0.0) / self._constant)

    def energy_j(self, elapsed_s: float) -> float:
        """Integral of the deviation from the start."""
        elapsed = max(elapsed_s, 0.0)
        return self._amplitude * (elapsed + self._constant * math.expm1(-elapsed / self._constant))

    def powers_w(self, elapsed_s: Float64Array) -> Float64Array:
        """``power_w`` of many times."""
        return -self._amplitude * np.expm1(-np.maximum(elapsed_s, 0.0) / self._constant)


class RandomWalk:
    """Steps of ``w_per_sqrt_s * sqrt(GRID_S)``, drawn as time goes on: what was drawn never changes."""

    def __init__(self, w_per_sqrt_s: float, rng: np.random.Generator) -> None:
        self._rng = rng
        self._step_w = w_per_sqrt_s * math.sqrt(GRID_S)
        self._powers: Float64Array = np.zeros(1)
        self._energies: Float64Array = np.zeros(1)

    def power_w(self, elapsed_s: float) -> float:
        """Deviation at a time."""
        index, rest = self._cell(elapsed_s)
        before, after = self._powers.item(index), self._powers.item(index + 1)
        return before + (after - before) * rest / GRID_S

    def energy_j(self, elapsed_s: float) -> float:
        """Integral of the deviation from the start."""
        index, rest = self._cell(elapsed_s)
        before, after = self._powers.item(index), self._powers.item(index + 1)
        return self._energies.item(index) + before * rest + (after - before) * rest * rest / (2 * GRID_S)

    def powers_w(self, elapsed_s: Float64Array) -> Float64Array:
        """``power_w`` of many times."""
        if elapsed_s.size:
            self._cell(float(elapsed_s.max()))
        return np.interp(elapsed_s, GRID_S * np.arange(len(self._powers)), self._powers)

    def _cell(self, elapsed_s: float) -> tuple[int, float]:
        elapsed = max(elapsed_s, 0.0)
        index = int(elapsed / GRID_S)
        while index + 1 >= len(self._powers):
            self._extend()
        return index, elapsed - index * GRID_S

    def _extend(self) -> None:
        added = self._powers[-1] + np.cumsum(self._rng.normal(0.0, self._step_w, max(CHUNK, len(self._powers))))
        powers = np.concatenate((self._powers[-1:], added))
        cells = (powers[1:] + powers[:-1]) * (GRID_S / 2)
        self._energies = np.concatenate((self._energies, self._energies[-1] + np.cumsum(cells)))
        self._powers = np.concatenate((self._powers, added))


def drift_model(kind: str, rng: np.random.Generator) -> Drift:
    """A drift of one of ``DRIFTS``, its size drawn from ``rng``."""
    if kind == "none":
        return NoDrift()
    if kind == "linear":
        return LinearDrift(rng.choice((-1.0, 1.0)) * rng.uniform(*SLOPE_W_PER_S))
    if kind == "curvature":
        low, high = np.log(RELAXATION_S)
        return Relaxation(rng.normal(0.0, RELAXATION_W), math.exp(rng.uniform(low, high)))
    if kind == "random_walk":
        return RandomWalk(WALK_W_PER_SQRT_S, rng)
    raise ValueError(f"drift: expected one of {', '.join(DRIFTS)}, found {kind!r}")

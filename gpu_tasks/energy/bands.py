"""What the reference load must cost on a GPU whose power sensor is right, by model.

The A100's band holds what healthy boards have shown (8.1 to 8.8 J per 10^12 operations above idle at 19 TFLOP/s) and
nothing near a sensor at half or a hundredth of scale. A model that no band is shipped for is unchecked until accepted
runs have taught one, which then comes with the run's request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Band:
    """Joules per 10^12 operations above idle, and 10^12 operations per second, each low and high."""

    joules: tuple[float, float]
    tera_operations_per_s: tuple[float, float]


SHIPPED = {"NVIDIA A100": Band((6.0, 11.0), (15.0, 23.0))}
"""Beginning of the model's name to its band."""


def band_for(model: str, learnt: Mapping[str, list[float]]) -> Band | None:
    """The band of a model by its name: the shipped one, else one learnt from accepted runs, else None."""
    for beginning, band in SHIPPED.items():
        if model.startswith(beginning):
            return band
    if model in learnt:
        joules_low, joules_high, tera_low, tera_high = learnt[model]
        return Band((joules_low, joules_high), (tera_low, tera_high))
    return None

"""Columns of ``round`` with its outermost readings, which PostgreSQL takes from ``counters``."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Computed

from regression.results.columns import DOUBLE

WHERE = {"first": ("idle_before,start", "before the first"), "last": ("idle_after,end", "after the last")}


def reading_columns() -> tuple[Column[Any], ...]:
    """Moment (s) and counter (mJ) of both: to unpack all readings (4 kB) for them takes long over years."""
    return tuple(
        _taken_from_counters(f"{which}_reading_{unit}", f"{path},{name}", f"{what} {place} idle window, {said}")
        for which, (path, place) in WHERE.items()
        for unit, name, what, said in (
            ("s", "time_s", "Moment of the reading", "s"),
            ("mj", "energy_mj", "Counter", "mJ since driver load"),
        )
    )


def _taken_from_counters(name: str, path: str, comment: str) -> Column[Any]:
    taken = Computed(f"(counters #>> '{{{path}}}')::double precision", persisted=True)
    return Column(name, DOUBLE, taken, comment=f"{comment} (taken from counters)")

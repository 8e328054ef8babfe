"""What polling the counter finds: its steps, their period, a counter that stands still or falls, wandering power."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gpu_tasks.energy.counter import idle_edges, idle_wander, next_edge, read_latency_s, tick_period_s
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.records import CounterEdge, CounterReading, InvalidMeasurement
from tests.unit.gpu_tasks.energy.boards import Board


class Listed:
    """A counter that reads what it is told, a millisecond after the other."""

    def __init__(self, values: list[int]) -> None:
        self._values, self._now = values, 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds

    def read_counter(self) -> CounterReading:
        self._now += 0.001
        return CounterReading(self._values.pop(0) if len(self._values) > 1 else self._values[0], self._now, 0.001)


@pytest.mark.parametrize("period_s", [0.02, 0.05, 0.1])
def test_the_period_is_measured(period_s: float) -> None:
    board = Board(tick_period_s=period_s)
    found = tick_period_s(board.instruments.gpu, board.instruments.clock)
    assert found == pytest.approx(period_s, rel=0.1)


def test_an_edge_lies_between_two_reads() -> None:
    fake = Listed([5, 5, 5, 9])
    edge = next_edge(fake, fake)  # type: ignore[arg-type]
    assert (edge.energy_mj, edge.before_s, edge.after_s) == (9, pytest.approx(0.003), pytest.approx(0.004))


@pytest.mark.parametrize(("values", "code"), [([7], "counter_not_advancing"), ([7, 7, 3], "counter_backwards")])
def test_a_counter_that_does_not_count(values: list[int], code: str) -> None:
    fake = Listed(values)
    with pytest.raises(InvalidMeasurement) as caught:
        next_edge(fake, fake)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_latency() -> None:
    readings = [CounterReading(1, 0.0, duration) for duration in (0.002, 0.009, 0.003)]
    assert read_latency_s(readings) == 0.003


def test_an_idle_stretch_is_cut_at_steps() -> None:
    board = Board()
    edges = idle_edges(board.instruments.gpu, board.instruments.clock, 20.0, 5.0)
    gaps = [edge_time_s(b) - edge_time_s(a) for a, b in pairwise(edges)]
    assert gaps == pytest.approx([5.0] * 4, abs=0.21)


def walked(drift: str, seed: int) -> float:
    board = Board(drift=drift, seed=seed)
    wander = idle_wander(idle_edges(board.instruments.gpu, board.instruments.clock, 60.0, 5.0))
    assert wander is not None
    return wander.walk_w_per_sqrt_s


def test_a_walk_is_told_from_a_slope() -> None:
    """The simulated walk is 0.07 W in a second; over many boards its square comes out right."""
    walks = [walked("random_walk", seed) for seed in range(60)]
    assert sum(w**2 for w in walks) / len(walks) == pytest.approx(0.07**2, rel=0.2)
    assert max(walked("linear", seed) for seed in range(20)) < 0.02


def test_too_few_segments_say_nothing() -> None:
    edges = [CounterEdge(1000 * second, second, second) for second in range(4)]
    assert idle_wander(edges) is None

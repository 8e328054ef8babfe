"""The figures of a run against their history: what the checks of energy and of time find beside the round spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from regression.detectors import CheckVerdict, Verdict
from regression.detectors.long_term import (
    ADJUSTED,
    CUDA,
    ENERGY,
    GROSS,
    IDLE,
    WALL,
    HistoryMetric,
    judge_both,
    judge_long_term,
    looked_at,
)
from regression.results.checks import Finding
from regression.results.history import NO_ENERGY, problem_of
from regression.results.series import ALL, HistoryKey, Segment, key_of, segment_of, series_of
from regression.results.surroundings import beside_changes
from regression.results.times import no_gpu_time

FAILED = "failed"
Obstacle = tuple[Verdict, str, str]


def energy_history(connection: Connection, run: Row[Any]) -> list[Finding]:
    """Adjusted energy, gross energy and idle power against their history."""
    return _findings(connection, run, (ADJUSTED, GROSS, IDLE))


def time_history(connection: Connection, run: Row[Any]) -> list[Finding]:
    """CUDA time and wall time against their history."""
    return _findings(connection, run, (CUDA, WALL))


def _findings(connection: Connection, run: Row[Any], metrics: Sequence[HistoryMetric]) -> list[Finding]:
    key = key_of(run)
    found = []
    for metric in metrics:
        segment = segment_of(connection, key, metric) if key else ALL
        obstacle = _without_figures(run, metric) or _without_key(run, key) or _without_trust(run, metric, segment)
        judged = None if obstacle or key is None else _judge(connection, run, key, metric, segment)
        found.append(Finding(judged or _plain(metric, obstacle), segment.baseline_id))
    return found


def _judge(
    connection: Connection, run: Row[Any], key: HistoryKey, metric: HistoryMetric, segment: Segment
) -> CheckVerdict:
    own, *others = looked_at(metric, run.protocol)
    series = series_of(connection, key, own, segment, run=run)
    if run.rounds_valid and all(figure.value is None for figure in series.figures):
        text = f"rounds of the protocol {run.protocol} have no such figure"
        return _plain(metric, (Verdict.UNAVAILABLE, "not_measured", text))
    if others:
        sharper = series_of(connection, key, others[0], segment, run=run)
        verdict = judge_both(metric.check, series, sharper, run.protocol)
    else:
        verdict = judge_long_term(metric.check, series)
    return beside_changes(connection, run, verdict, segment.baseline_run_id)


def _without_figures(run: Row[Any], metric: HistoryMetric) -> Obstacle | None:
    """A device that has no such figure cannot fail for it."""
    if metric.group == ENERGY:
        if run.device_id is None or run.energy_trust != NO_ENERGY:
            return None
        return Verdict.UNAVAILABLE, "no_energy_counter", run.energy_trust_reason or "the device has no energy counter"
    problem = no_gpu_time(run)
    return (Verdict.UNAVAILABLE, problem.code, problem.message) if problem else None


def _without_key(run: Row[Any], key: HistoryKey | None) -> Obstacle | None:
    if key is not None:
        return None
    problem = problem_of(run)
    code, why = (problem.code, problem.message) if problem else ("no_figure", "device, payload or versions unknown")
    return Verdict.INVALID, code, f"no usable figure tonight: {why}"


def _without_trust(run: Row[Any], metric: HistoryMetric, segment: Segment) -> Obstacle | None:
    """Energy that nothing vouches for is not held against energy that something does."""
    if metric.group != ENERGY or run.energy_trust in segment.trusts:
        return None
    text = f"the trust in the energy of this run is {run.energy_trust}, as the check of energy says"
    if run.energy_trust == FAILED:
        return Verdict.INVALID, "gate_failed", text
    return Verdict.INCONCLUSIVE, "energy_unverified", text


def _plain(metric: HistoryMetric, obstacle: Obstacle | None) -> CheckVerdict:
    verdict, code, text = obstacle or (Verdict.INVALID, "no_figure", "no usable figure tonight")
    return CheckVerdict(metric.check, verdict, metric.metric.name, metric.metric.unit, code, text)

"""Energy and time of trials: the checks that every workload has, on nights of one that trains."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Connection, Row

from gpu_tasks.records import RoundRecord, RunRecord
from regression.detectors import Verdict
from regression.results.backtests import THRESHOLD, replayed, stored_history
from regression.results.checks import Finding
from regression.results.energies import energy_findings
from regression.results.history_checks import energy_history, time_history
from regression.results.times import time_findings
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy, figure
from tests.integration.regression.example_learner import trial_round
from tests.integration.regression.learner_nights import judged, learner_night
from tests.integration.regression.many_nights import accept, store

TRIALS, ALIGNED = (1032.0, 1069.0, 1106.0), (1130.0, 1133.0, 1136.0)
NIGHTS = 20


def trial(number: int, factor: float = 1.0, shift: float = 0.0) -> RoundRecord:
    """A trial by which a board shows ``factor`` of its energy; its own figure is ``shift`` off."""
    own, aligned = TRIALS[number] * factor + shift, ALIGNED[number] * factor
    return trial_round(number, own, energy=energy({}, figures=[figure("trial", own), figure("aligned", aligned)]))


def night(day: int, factor: float = 1.0, *, shift: float = 0.0, ms: float = 38.4) -> RunRecord:
    return learner_night(day, rounds=[trial(number, factor, shift) for number in range(3)], cuda_ms=ms)


def base(database: Database) -> int:
    record = night(0)
    store(database, record)
    return accept(database, record)


@pytest.mark.parametrize(
    ("factor", "verdict", "code", "told"),
    [
        (1.0, Verdict.OK, "within_spread", "trial"),
        (1.05, Verdict.REGRESSED, "energy_above_spread", "aligned"),
        (0.9, Verdict.REGRESSED, "energy_below_spread", "aligned"),
        (1.5, Verdict.REGRESSED, "energy_above_spread", "trial"),
    ],
)
def test_a_night_of_trials_is_held_against_its_baseline(
    database: Database, factor: float, verdict: Verdict, code: str, told: str
) -> None:
    baseline_id = base(database)
    found = judged(database, night(1, factor), energy_findings)["energy"]
    assert (found.verdict.verdict, found.verdict.reason_code, found.baseline_id) == (verdict, code, baseline_id)
    assert found.verdict.details["figure"] == told
    assert set(found.verdict.details["figures"]) == {"trial", "aligned"}
    other = "aligned" if told == "trial" else "trial"
    assert f"; {other} alone: " in found.verdict.reason


def test_what_a_trial_scatters_by_itself_is_no_finding(database: Database) -> None:
    base(database)
    found = judged(database, night(1, shift=90), energy_findings)["energy"].verdict
    assert (found.verdict, found.details["figure"]) == (Verdict.OK, "aligned")
    assert "trial alone: inconclusive" in found.reason


@pytest.mark.parametrize(
    ("ms", "code"),
    [(38.4, "within_spread"), (38.6, "below_floor"), (40.0, "time_above_spread"), (36.0, "time_below_spread")],
)
def test_a_task_of_tens_of_milliseconds_is_timed_like_any_other(database: Database, ms: float, code: str) -> None:
    base(database)
    assert judged(database, night(1, ms=ms), time_findings)["time"].verdict.reason_code == code


def test_trials_have_a_history(database: Database) -> None:
    rng = random.Random(3)
    quiet = [night(day, 1 + rng.gauss(0, 0.01), ms=38.4 * (1 + rng.gauss(0, 0.002))) for day in range(NIGHTS)]
    store(database, *quiet)

    def both(connection: Connection, run: Row[object]) -> list[Finding]:
        return [*energy_history(connection, run), *time_history(connection, run)]

    found = judged(database, night(NIGHTS), both)
    assert {check: one.verdict.reason_code for check, one in found.items()} == {
        "energy_history": "no_shift",
        "gross_energy_history": "no_shift",
        "idle_power_history": "no_shift",
        "time_history": "no_shift",
        "wall_time_history": "no_shift",
    }
    worse = judged(database, night(NIGHTS + 1, 1.08, ms=39.5), both)
    assert worse["energy_history"].verdict.reason_code == "shift_higher"
    assert worse["time_history"].verdict.reason_code == "shift_higher"


def test_the_aligned_figure_of_trials_has_a_history_too(database: Database) -> None:
    rng = random.Random(5)
    for day in range(NIGHTS):
        store(database, night(day, 1 + rng.gauss(0, 0.002), shift=rng.gauss(0, 40)))
    quiet = judged(database, night(NIGHTS), energy_history)["energy_history"].verdict
    assert (quiet.verdict, quiet.details["figure"]) == (Verdict.OK, "aligned")
    assert quiet.reason.startswith("aligned energy 1133 mJ tonight, usual 113")
    found = judged(database, night(NIGHTS + 1, 1.05), energy_history)["energy_history"].verdict
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.REGRESSED, "shift_higher", "higher")
    assert (found.metric, found.details["figure"]) == ("adjusted_energy_per_replay", "aligned")
    assert found.reason.endswith("; trial alone: ok, 1122 mJ")


def test_trials_that_have_no_other_figure_are_judged_by_their_own(database: Database) -> None:
    """As the original records are: what is not there cannot be asked."""
    for day in range(NIGHTS):
        store(database, learner_night(day, rounds=[bare(number, 1 + day % 3 / 1000) for number in range(3)]))
    worse = learner_night(NIGHTS, rounds=[bare(number, 1.2) for number in range(3)])
    found = judged(database, worse, energy_history)["energy_history"].verdict
    assert (found.reason_code, found.details["figure"]) == ("shift_higher", "trial")
    assert "aligned" not in found.reason


def test_a_backtest_replays_both_figures_of_trials(database: Database) -> None:
    rng = random.Random(5)
    for day in range(NIGHTS + 5):
        more = 1.05 if day >= NIGHTS else 1.0
        store(database, night(day, more * (1 + rng.gauss(0, 0.002)), shift=rng.gauss(0, 40)))
    with database.reader.connect() as connection:
        history = stored_history(connection, checks=["energy_history"])
    own, sharper = "adjusted_energy_per_replay", "aligned_adjusted_energy_per_replay"
    assert {(one.metric.name, one.metric.looks) for one in history.series} == {(own, 2), (sharper, 2)}
    assert [one.sharper and one.sharper.metric.name for one in history.series] == [sharper, None]
    alerts = [(alert.series.metric.name, alert.direction) for alert, _ in replayed(history, THRESHOLD).alerts]
    assert alerts == [(sharper, "higher")]


def bare(number: int, factor: float) -> RoundRecord:
    own = TRIALS[number] * factor
    return trial_round(number, own, energy=energy({"trial": own}))

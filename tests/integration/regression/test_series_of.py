"""Series of stored figures: what is of one key, what is left out, where a segment begins."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pytest

from gpu_tasks.records import Outcome, RunRecord
from regression.detectors.long_term import ADJUSTED, CUDA, GROSS, IDLE, METRICS, WALL, HistoryMetric
from regression.detectors.series import Series, usable_nights
from regression.results.baselines import retire_baseline
from regression.results.series import HistoryKey, key_of, segment_of, series_of, stored_keys
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import INVALID, SIMULATED_GPU
from tests.integration.regression.example_records import GPU, payload
from tests.integration.regression.many_nights import FIRST, MS, accept, night, store, stored_run


def series(database: Database, name: str, metric: HistoryMetric = CUDA) -> Series:
    """As the check of that run sees it."""
    with database.reader.connect() as connection:
        run = stored_run(connection, name)
        key = key_of(run)
        assert key is not None
        return series_of(connection, key, metric, segment_of(connection, key, metric), run=run)


def names(found: Series) -> list[str | None]:
    return [figure.run for figure in found.figures]


def test_figures_come_with_their_units_times_and_the_one_under_judgement_last(database: Database) -> None:
    """conbench 609: aware times in UTC."""
    store(database, *(night(day, ms=MS + day / 1000) for day in range(4)))
    found = series(database, "scheduled__002")
    assert names(found) == ["scheduled__000", "scheduled__001", "scheduled__002"]
    assert [figure.value for figure in found.figures] == pytest.approx([MS, MS + 0.001, MS + 0.002])
    assert [figure.time.astimezone(UTC) for figure in found.figures] == [FIRST + timedelta(days=n) for n in range(3)]
    assert {figure.unit for figure in found.figures} == {"ms"}
    assert found.metric.absolute_floor == pytest.approx(2 * 0.0005 / 1000)
    key = found.key
    assert key is not None
    assert (key.workload, key.device_uuid, key.device_name, key.protocol) == ("qda", "GPU-1", "Test GPU", "audited")


@pytest.mark.parametrize(
    ("metric", "figure", "value"),
    [(ADJUSTED, "mj", 0.7), (GROSS, "gross_mj", 1.4), (IDLE, "idle_w", 55.0), (CUDA, "ms", 0.02), (WALL, "wall_ms", 1)],
)
def test_every_metric_has_its_own_figure(database: Database, metric: HistoryMetric, figure: str, value: float) -> None:
    """conbench 567: one figure is never held against another's history."""
    store(database, night(0), night(1, **{figure: value}))
    for other in METRICS:
        found = usable_nights(series(database, "scheduled__001", other)).values
        assert (found[1] == pytest.approx(value)) == (other is metric), other.check
        assert found[0] != pytest.approx(found[1]) if other is metric else found[0] == pytest.approx(found[1])


def test_idle_power_is_the_median_of_valid_rounds(database: Database) -> None:
    record = night(0)
    rounds = [replace(r, idle_before_w=30.0 + r.round, idle_after_w=32.0 + r.round) for r in record.rounds]
    rounds[6] = replace(rounds[6], **INVALID)
    store(database, replace(record, rounds=rounds, outcome=Outcome.OK, reason=None))
    assert series(database, "scheduled__000", IDLE).figures[0].value == pytest.approx(33.5)


@pytest.mark.parametrize(
    "other",
    [
        {"device": replace(GPU, uuid="GPU-2")},
        {"device": replace(GPU, name="H100 with the same uuid")},
        {"device": replace(GPU, kind="simulated")},
        {"environment": {"driver": "580.2"}},
        {"request": {"workload": "learner"}},
    ],
)
def test_runs_of_another_key_are_in_another_series(database: Database, other: dict[str, Any]) -> None:
    """conbench 1412, 225, 1029: board and model are in the key; so are workload and versions."""
    store(database, night(0), night(1, "other", **other), night(2))
    assert names(series(database, "scheduled__002")) == ["scheduled__000", "scheduled__002"]
    assert names(series(database, "other")) == ["other"]


def test_other_payloads_and_protocols_are_other_series(database: Database) -> None:
    def changed(day: int, name: str, **parts: Any) -> RunRecord:
        record = night(day, name)
        return replace(record, **{part: replace(getattr(record, part), **change) for part, change in parts.items()})

    fresh = changed(1, "fresh", verify_payload={"payload": payload("fresh")})
    classic = changed(2, "classic", provision={"protocol": "classic"})
    store(database, night(0), fresh, classic, night(3))
    assert names(series(database, "scheduled__003")) == ["scheduled__000", "scheduled__003"]
    assert names(series(database, "fresh")) == ["fresh"]
    assert names(series(database, "classic")) == ["classic"]


def test_a_simulated_device_is_one_series_whatever_versions_it_runs_with(database: Database) -> None:
    store(database, *(night(n, device=SIMULATED_GPU, environment={"driver": f"{n}"}) for n in range(3)))
    assert len(series(database, "scheduled__002").figures) == 3


def test_withdrawn_runs_are_left_out_energies_also_where_only_these_were(database: Database) -> None:
    made = [night(day) for day in range(4)]
    store(database, *made)
    for record, scope in ((made[0], "all"), (made[1], "energy")):
        withdraw_run(database.writer, record.request.run_id, scope=scope, withdrawn_by="t", reason="its sensor")
    last = ["scheduled__002", "scheduled__003"]
    assert names(series(database, "scheduled__003", CUDA)) == ["scheduled__001", *last]
    for metric in (ADJUSTED, GROSS, IDLE):
        assert names(series(database, "scheduled__003", metric)) == last


def test_a_run_that_is_judged_is_in_its_series_though_it_was_withdrawn_since(database: Database) -> None:
    made = [night(day) for day in range(2)]
    store(database, *made)
    withdraw_run(database.writer, made[1].request.run_id, scope="all", withdrawn_by="t", reason="its sensor")
    assert names(series(database, "scheduled__001")) == ["scheduled__000", "scheduled__001"]


def test_injected_effects_are_no_history_but_that_of_a_run_with_some(database: Database) -> None:
    injected = [night(n, f"injected-{n}", device=SIMULATED_GPU, inject="time+3%", seed=n) for n in (1, 2)]
    store(database, night(0, device=SIMULATED_GPU), *injected, night(3, device=SIMULATED_GPU))
    assert names(series(database, "scheduled__003")) == ["scheduled__000", "scheduled__003"]
    assert names(series(database, "injected-2")) == ["scheduled__000", "injected-1", "injected-2"]


def test_what_somebody_tried_by_hand_is_no_history_of_the_nights(database: Database) -> None:
    def by_hand(day: int, name: str, variant: str | None) -> RunRecord:
        record = night(day, name, request={"variant": variant})
        assert record.kernel
        kernel = replace(record.kernel, variant=variant or "original")
        request = replace(record.request, trigger="manual")
        return replace(record, kernel=kernel, request=request)

    store(database, night(0), by_hand(1, "fused-1", "fused"), by_hand(2, "as it is", None), night(3))
    store(database, by_hand(4, "fused-2", "fused"), by_hand(5, "record-1", "record"))
    assert names(series(database, "scheduled__003")) == ["scheduled__000", "as it is", "scheduled__003"]
    assert names(series(database, "fused-2")) == ["fused-1", "fused-2"]
    assert names(series(database, "record-1")) == ["record-1"]
    assert names(series(database, "as it is")) == ["scheduled__000", "as it is"]
    with database.reader.connect() as connection:
        (key,) = stored_keys(connection)
        assert names(series_of(connection, key, CUDA)) == ["scheduled__000", "as it is", "scheduled__003"]


def test_rounds_of_another_number_of_replays_are_no_history(database: Database) -> None:
    """What a plain figure reads too little is lost once a window, however long that is."""
    longer = [night(n, f"longer-{n}", request={"repeats": 80_000, "trigger": "manual"}) for n in (1, 2)]
    store(database, night(0), *longer, night(3))
    assert names(series(database, "scheduled__003")) == ["scheduled__000", "scheduled__003"]
    assert names(series(database, "longer-2")) == ["longer-1", "longer-2"]
    with database.reader.connect() as connection:
        (key,) = stored_keys(connection)
        assert names(series_of(connection, key, CUDA)) == ["scheduled__000", "scheduled__003"]


def test_energy_that_nothing_vouches_for_is_there_and_not_valid(database: Database) -> None:
    store(database, night(0, unchecked=["sham_window"]), night(1, failed=["sham_window"]), night(2))
    energies, times = (series(database, "scheduled__002", metric) for metric in (ADJUSTED, CUDA))
    assert [figure.valid for figure in energies.figures] == [False, False, True]
    assert usable_nights(energies).dropped == {"not_valid": 2}
    assert [figure.valid for figure in times.figures] == [True, True, True]


def test_energy_that_was_accepted_unverified_is_held_against_others_like_it(database: Database) -> None:
    made = [night(day, unchecked=["sham_window"]) for day in range(2)]
    store(database, *made, night(2, failed=["sham_window"]), night(3))
    accept(database, made[0], for_energy=True)
    found = series(database, "scheduled__003", ADJUSTED)
    assert [figure.valid for figure in found.figures] == [True, True, False, True]


def test_a_segment_begins_with_the_run_that_was_accepted(database: Database) -> None:
    made = [night(day) for day in range(6)]
    store(database, *made)
    accept(database, made[1])
    assert names(series(database, "scheduled__005"))[0] == "scheduled__001"
    accept(database, made[3], for_energy=False)
    assert names(series(database, "scheduled__005", CUDA))[0] == "scheduled__003"
    assert names(series(database, "scheduled__005", ADJUSTED))[0] == "scheduled__000"  # no baseline for it any more
    retire_baseline(database.writer, made[3].request.run_id, retired_by="t", reason="r")
    assert names(series(database, "scheduled__005", CUDA))[0] == "scheduled__000"


def test_a_baseline_of_another_key_begins_no_segment(database: Database) -> None:
    made = [night(0), night(1, environment={"driver": "1"}), night(2, device=replace(GPU, uuid="GPU-2")), night(3)]
    store(database, *made)
    for record in made[1:3]:
        accept(database, record)
    assert names(series(database, "scheduled__003")) == ["scheduled__000", "scheduled__003"]


def test_an_older_run_that_is_accepted_again_begins_with_its_acceptance(database: Database) -> None:
    """What lies between was another level."""
    made = [night(day - 60) for day in range(50)]
    store(database, *made)
    accept(database, made[1])
    accept(database, made[20])
    accept(database, made[1])
    with database.reader.connect() as connection:
        key = key_of(stored_run(connection, made[49].request.dag_run_id))
        assert key is not None
        segment = segment_of(connection, key, CUDA)
    assert segment.since is not None
    assert segment.since > FIRST - timedelta(days=10)
    assert segment.baseline_run_id == made[1].request.run_id
    accept(database, made[30])
    assert len(series(database, made[49].request.dag_run_id).figures) == 20


def test_the_order_of_ingestion_does_not_matter(database: Database) -> None:
    """sage 35046, Horreum 2267: late and repeated records change nothing for the night that is judged."""
    made = [night(day, ms=MS * (1 + day / 100)) for day in range(6)]
    mixed = random.Random(3).sample(made, len(made))
    store(database, *mixed, *mixed)
    found = series(database, "scheduled__004")
    assert [figure.value for figure in found.figures] == pytest.approx([MS * (1 + day / 100) for day in range(5)])


def test_of_two_runs_at_one_time_the_one_that_is_judged_is_the_newest(database: Database) -> None:
    """airflow 47670, Horreum 209: two backfills of one date."""
    store(database, night(0), night(1, "one", ms=0.01), night(1, "two", ms=0.03))
    for name, value in (("one", 0.01), ("two", 0.03)):
        assert usable_nights(series(database, name)).values[-1] == value
        assert names(series(database, name)) == ["scheduled__000", name]


def test_a_run_that_measured_nothing_is_there_without_a_figure(database: Database) -> None:
    store(database, night(0), replace(night(1), rounds=[], summary=replace(night(1).summary, cuda_ms_median=None)))
    assert [figure.value for figure in series(database, "scheduled__001").figures] == [MS, None]


def test_every_key_of_the_database_for_a_backtest(database: Database) -> None:
    other = replace(GPU, uuid="GPU-2")
    store(database, night(0), night(1), night(2, device=other), night(3, environment={"driver": "580.2"}))
    store(database, *(night(n, device=SIMULATED_GPU, environment={"driver": f"{n}"}) for n in (4, 5)))
    with database.reader.connect() as connection:
        keys = stored_keys(connection)
        found = {key: len(series_of(connection, key, CUDA).figures) for key in keys}
    described = {(key.device_uuid, key.environment_class): count for key, count in found.items()}
    assert described == {
        ("GPU-1", "driver=570.1 cuda=12.8 torch=2.13.0"): 2,
        ("GPU-1", "driver=580.2 cuda=12.8 torch=2.13.0"): 1,
        ("GPU-2", "driver=570.1 cuda=12.8 torch=2.13.0"): 1,
        ("GPU-simulated", None): 2,
    }
    assert all(isinstance(key, HistoryKey) for key in keys)

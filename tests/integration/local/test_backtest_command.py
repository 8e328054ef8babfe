"""The backtest as a command: what it prints, and what it refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from local.backtest_command import Progress
from local.databases import engine_of
from local.paths import Home
from local.stack import hold
from regression.results.spool import load_record
from tests.integration.regression.many_nights import noisy
from tests.support.commands import Run


def test_alerts_thresholds_and_json(nightly: Run, home: Home) -> None:
    assert nightly("backtest", "--device", "GPU-1")[::2] == (
        2,
        "nightly: backtest: expected stored figures of a GPU, found none that fit\n",
    )
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        for record in (*noisy(22), *noisy(4, seed=8, first=22, time=1.06)):
            load_record(engine, home.records, record)
    line = ("backtest", "--device", "GPU-1", "--metric", "time_history")
    status, output, errors = nightly(*line)
    assert (status, errors) == (0, "replaying 26 figures of 1 series, 0 causes are known\n")
    head, row, *rest = [" ".join(text.split()) for text in output.splitlines()]
    assert head.startswith("threshold alerts of a cause false false a series-year causes missed precision recall")
    assert row.startswith("3.86 1 0 1 ") and row.endswith(" 0 0 0 - -")
    (alert,) = [text for text in rest if "cuda_time_per_replay higher none: a false one" in text]
    assert alert.startswith("2026-12-2") and "Test GPU" in alert

    status, output, errors = nightly(*line, "--threshold", "3.86", "20", "--json")
    assert [(each["threshold"], len(each["alerts"])) for each in json.loads(output)] == [(3.86, 1), (20.0, 0)]
    assert "threshold 20: 0 alerts" in errors
    status, output, _ = nightly(*line, "--since", "2027-06-01")
    assert (status, output.splitlines()[-1]) == (0, "  none")


def test_whoever_waits_is_told_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = iter([0.0, 1.0, 4.9, 5.0, 5.1, 6.0, 10.1, 10.1])
    progress = Progress("threshold 4", 100, lambda: next(seconds))
    for _ in range(5):
        progress.judged(datetime(2026, 11, 30, tzinfo=UTC))
    assert capsys.readouterr().err.splitlines() == [
        "threshold 4: 3 of 100 nights",
        "threshold 4: 5 of 100 nights",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--threshold", "0"],
        ["--threshold", "nan"],
        ["--threshold", "high"],
        ["--metric", "agreement"],
        ["--device", " "],
    ],
)
def test_what_cannot_be_replayed_is_refused(nightly: Run, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        nightly("backtest", *arguments)
    assert refused.value.code == 2


def test_a_time_that_is_none_is_refused(nightly: Run) -> None:
    status, output, errors = nightly("backtest", "--since", "soon")
    assert (status, output) == (2, "")
    assert errors.startswith("nightly: --since: expected a date")

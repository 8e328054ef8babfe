"""The command that replays the stored history: which alerts a threshold would have given, and how many were right."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gpu_tasks.records import Outcome
from local.baseline_texts import aligned
from local.databases import engine_of, told_by_the_database
from local.errors import Usage
from local.paths import Home
from local.record_commands import moment
from local.stack import hold
from regression.results.backtests import THRESHOLD, History, as_json, replayed, stored_history

PAUSE_S = 5.0


def command_backtest(home: Home, arguments: argparse.Namespace) -> int:
    """Read the history once, replay it with each threshold, and print what came of it."""
    since = moment(arguments.since) if arguments.since else None
    with (
        hold(home, arguments.dsn, need_airflow=False) as held,
        engine_of(held.databases().writer) as engine,  # not the reader, whose statements end after 30 s
        told_by_the_database(),
        engine.connect() as connection,
    ):
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        history = stored_history(connection, device=arguments.device, checks=arguments.metric)
    if not history.series:
        raise Usage("backtest: expected stored figures of a GPU, found none that fit")
    print(_what(history), file=sys.stderr)
    found = []
    for threshold in arguments.threshold or [THRESHOLD]:
        waiting = Progress(f"threshold {threshold:g}", nights_from(history, since))
        found.append(as_json(replayed(history, threshold, since, waiting.judged), threshold))
        if len(arguments.threshold or []) > 1:
            print(f"threshold {threshold:g}: {len(found[-1]['alerts'])} alerts", file=sys.stderr, flush=True)
    print(json.dumps(found) if arguments.json else "\n".join(report(found)))
    return Outcome.OK.exit_code


class Progress:
    """Says on standard error how many nights are replayed, every ``PAUSE_S`` seconds: years take their time."""

    def __init__(self, what: str, nights: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.nights, self.clock = what, nights, clock
        self.done, self.said = 0, clock()

    def judged(self, _night: datetime) -> None:
        """One more night is."""
        self.done += 1
        if self.clock() - self.said >= PAUSE_S:
            self.said = self.clock()
            print(f"{self.what}: {self.done} of {self.nights} nights", file=sys.stderr, flush=True)


def nights_from(history: History, since: datetime | None) -> int:
    """Nights of all series that are replayed, each night of each series counted."""
    return sum(len({f.time for f in one.figures if since is None or f.time >= since}) for one in history.series)


def report(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line a threshold, then the alerts and the missed causes of the first of them."""
    head = ["threshold", "alerts", "of a cause", "false", "false a series-year", "causes", "missed", "precision"]
    cells = [[*head, "recall", "nights to the alert"]]
    for each in found:
        counts = (len(each["alerts"]), each["alerts_of_a_cause"], each["alerts_false"])
        causes = (each["causes"], len(each["missed"]))
        cells.append(
            [
                *(f"{each['threshold']:g}", *map(str, counts), _number(each["false_per_series_year"])),
                *(*map(str, causes), _number(each["precision"]), _number(each["recall"])),
                _number(each["median_delay"]),
            ]
        )
    first = found[0]
    lines = [*aligned(cells), "", f"alerts at {first['threshold']:g}, in {first['series_years']:.2f} series-years:"]
    alerts = [["opened", "last", "nights", "device", "metric", "direction", "cause", "what"]]
    for alert in first["alerts"]:
        what = (alert["device"] or "-", alert["metric"], alert["direction"], alert["cause"] or "none: a false one")
        alerts.append([alert["opened"][:10], alert["last"][:10], str(alert["nights"]), *what, alert["reason"]])
    lines += aligned(alerts) if first["alerts"] else ["  none"]
    if first["missed"]:
        lines += ["", "causes that gave no alert:"]
        lines += aligned([[cause["start"][:10], cause["note"]] for cause in first["missed"]])
    return lines


def _what(history: History) -> str:
    figures = sum(len(series.figures) for series in history.series)
    return f"replaying {figures} figures of {len(history.series)} series, {len(history.causes)} causes are known"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"

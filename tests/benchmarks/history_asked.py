"""What is asked of the generated history: views as pages use them, every panel of Grafana, every question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from local.cookbook import questions
from tests.benchmarks.history_story import LAST_NIGHT
from tests.support.grafana import as_sent, dashboard, statements

PAGE_MS, REPORT_MS = 50.0, 1000.0
QUARTER = LAST_NIGHT - timedelta(days=89)
FORTNIGHT = LAST_NIGHT - timedelta(days=13)
VIEWS_BY_RUN = ("nightly", "round_trend", "validation_history", "environment_changes", "run_detail")
VIEWS_OF_FEW = ("open_alerts", "baseline_current", "withdrawn", "candidate_runs", "kernel_lineage")


@dataclass(frozen=True)
class Asked:
    """One statement with several sets of values, each as somebody would give it; ``aim_ms`` is of the p95."""

    kind: str
    name: str
    use: str
    sql: str
    values: Sequence[Mapping[str, Any] | None]
    aim_ms: float


def asked(boards: Sequence[str], runs: Sequence[str]) -> list[Asked]:
    """Everything; ``boards`` are uuids, ``runs`` a sample of run ids."""
    return [*_views(boards, runs), *_panels(boards), *_questions(boards, runs)]


def _views(boards: Sequence[str], runs: Sequence[str]) -> Iterator[Asked]:
    by_board = [{"board": board, "since": QUARTER} for board in boards]
    for view in VIEWS_BY_RUN:
        last_90 = "WHERE device_uuid = %(board)s AND started_at >= %(since)s ORDER BY started_at"
        last_14 = "WHERE night >= %(since)s ORDER BY started_at DESC"
        yield _view(view, "90 nights of a board", last_90, by_board)
        yield _view(view, "14 nights of every board", last_14, [{"since": FORTNIGHT}])
        yield _view(view, "one run", "WHERE run_id = %(run)s", [{"run": run} for run in runs])
    yield _view("nightly", "newest 14 rows", "ORDER BY started_at DESC LIMIT 14", [None])
    for view in VIEWS_OF_FEW:
        yield _view(view, "all of it", "", [None])


def _view(view: str, use: str, rest: str, values: Sequence[Mapping[str, Any] | None]) -> Asked:
    return Asked("view", view, use, f"SELECT * FROM {view} {rest}", values, PAGE_MS)


def _panels(boards: Sequence[str]) -> Iterator[Asked]:
    for statement in statements(dashboard()):
        chosen = boards[:1] if statement.repeated else boards
        sql = as_sent(
            statement.sql, f"{QUARTER}T00:00:00Z", f"{LAST_NIGHT}T23:59:59Z", {"workload": ("qda",), "device": chosen}
        )
        use = f"90 nights of {'a board' if statement.repeated else 'every board'}"
        yield Asked("Grafana", statement.title, use, sql, [None], PAGE_MS)


def _questions(boards: Sequence[str], runs: Sequence[str]) -> Iterator[Asked]:
    for question in questions():
        names = {parameter.name for parameter in question.parameters}
        if "run" in names:
            values = [question.values({"run": run}) for run in runs]
            yield Asked("question", question.name, "one run", question.bound, values, PAGE_MS)
        if {"device", "since"} <= names:
            values = [question.values({"device": board, "since": _text(QUARTER)}) for board in boards]
            yield Asked("question", question.name, "90 nights of a board", question.bound, values, PAGE_MS)
        everything = "its defaults" if names else "all of it"
        yield Asked("question", question.name, everything, question.bound, [question.values({})], REPORT_MS)


def _text(night: date) -> str:
    return night.isoformat()

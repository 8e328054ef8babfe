"""What is said of generated runs: baselines, three checks each, alerts with their events, a few withdrawals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

from psycopg2.extras import execute_values
from sqlalchemy import Engine

from regression.results import tables
from tests.benchmarks.history_copy import Sheet
from tests.benchmarks.history_story import Night

ACCEPTED_AGAIN = timedelta(days=200)
"""A baseline gives way to a newer one of the same key after so long."""
ACCEPTED_AFTER = timedelta(hours=8)
RETIRE = (
    "UPDATE baseline SET retired_at = newer.at::timestamptz, retired_by = 'ana', retired_reason = 'a newer one' "
    "FROM (VALUES %s) AS newer (baseline_id, at) WHERE baseline.baseline_id = newer.baseline_id"
)
OPEN_ALERTS = 12
KEPT_ALERTS = 400


@dataclass
class Baseline:
    """The current one of a board and an environment."""

    baseline_id: int
    night: Night


class Judgements:
    """Baselines and checks are rows of the run's own transaction; ``finish`` adds the rest."""

    def __init__(self, baselines: Sheet, checks: Sheet) -> None:
        self.baselines, self.checks = baselines, checks
        self.made = 0
        self.current: dict[tuple[int, str], Baseline] = {}
        self.alerts: list[Night] = []
        self.retired: list[tuple[int, datetime]] = []

    def add(self, night: Night, trust: str, key: dict[str, Any]) -> None:
        """The checks of one run, and its becoming a baseline where there is none or an old one."""
        place = (night.board.number, key["environment_class"])
        old = self.current.get(place)
        may_be = night.verdict == "ok" and trust == "verified" and night.trigger == "scheduled"
        if may_be and (old is None or night.started_at - old.night.started_at > ACCEPTED_AGAIN):
            if old:
                self.retired.append((old.baseline_id, night.started_at + ACCEPTED_AFTER))
            self.made += 1
            self.current[place] = Baseline(self.made, night)
            self._accept(self.current[place], key)
        found = self.current.get(place)
        if found and not night.lost:
            self._check(night, found)
        if night.verdict != "ok":
            self.alerts.append(night)

    def finish(self, writer: Engine) -> None:
        """Alerts, their events and withdrawals."""
        with writer.begin() as connection:
            for night in self.alerts[-KEPT_ALERTS:-OPEN_ALERTS]:
                _alert(connection, night, "resolved")
            for number, night in enumerate(self.alerts[-OPEN_ALERTS:]):
                _alert(connection, night, "open", f"metric_{number}")
            withdrawn = [
                {"run_id": night.run_id, "scope": scope, "withdrawn_by": "ana", "reason": "its sensor"}
                for night, scope in zip(self.alerts[::100], cycle(("energy", "all")), strict=False)
            ]
            if withdrawn:
                connection.execute(tables.withdrawal.insert(), withdrawn)

    def retire(self, cursor: Any) -> None:
        """End the baselines that gave way to newer ones, before those are stored."""
        if self.retired:
            execute_values(cursor, RETIRE, self.retired)
            self.retired.clear()

    def _accept(self, found: Baseline, key: dict[str, Any]) -> None:
        night = found.night
        self.baselines.add(
            **{name: key[name] for name in ("payload_id", "device_id", "environment_id", "environment_class")},
            baseline_id=found.baseline_id,
            workload="qda",
            protocol="audited",
            run_id=night.run_id,
            for_agreement=True,
            for_time=True,
            for_energy=True,
            energy_trust="verified",
            accepted_by="ana",
            accepted_at=night.started_at + ACCEPTED_AFTER,
            reason="first of its driver, or of half a year",
        )

    def _check(self, night: Night, found: Baseline) -> None:
        base = found.night
        wrong = sum(map(len, night.wrong.values()))
        common = {"run_id": night.run_id, "baseline_id": found.baseline_id, "checked_at": night.started_at}
        self.checks.add(
            **common,
            check_name="agreement",
            step=0,
            verdict="regressed" if wrong else "ok",
            metric="agreed",
            unit="predictions",
            value=11_000 - wrong,
            baseline_value=11_000,
            direction="lower" if wrong else None,
            reason_code="predictions_disagree" if wrong else "predictions_agree",
            reason=f"{wrong} of 11,000 predictions disagree",
            details={"draws": {f"draw-{draw:02d}": len(found) for draw, found in night.wrong.items()}},
        )
        figures = {
            name: {"verdict": "ok", "median_mj": night.median_mj, "detectable_mj": 0.01, "reason_code": "within_spread"}
            for name in ("classic", "aligned", "audited")
        }
        for step in range(2 if night.tripped else 1):
            self.checks.add(
                **common,
                check_name="energy",
                step=step,
                verdict="invalid" if night.failed_gate else "regressed" if night.tripped else "ok",
                metric="adjusted_mj",
                unit="mJ",
                value=night.median_mj,
                baseline_value=base.median_mj,
                baseline_low=base.median_mj * 0.98,
                baseline_high=base.median_mj * 1.02,
                direction="higher" if night.tripped else None,
                reason_code="above_spread" if night.tripped else "within_spread",
                reason=f"{night.median_mj:.4f} mJ against {base.median_mj:.4f} mJ",
                details={"figures": figures},
            )
        self.checks.add(
            **common,
            check_name="time",
            step=0,
            verdict="ok",
            metric="cuda_ms",
            unit="ms",
            value=night.valid[0].ms,
            baseline_value=base.valid[0].ms,
            baseline_low=base.valid[0].ms * 0.99,
            baseline_high=base.valid[0].ms * 1.01,
            reason_code="within_spread",
            reason="as before",
            details={},
        )


def _alert(connection: Any, night: Night, state: str, metric: str = "adjusted_mj") -> None:
    at = night.started_at
    values = {
        "workload": "qda",
        "metric": metric,
        "direction": "higher",
        "outcome": "regression",
        "state": state,
        "first_run_id": night.run_id,
        "last_run_id": night.run_id,
        "occurrences": 1,
        "value": 0.7,
        "baseline_value": 0.66,
        "unit": "mJ",
        "text": "more energy than its baseline",
        "opened_at": at,
        "last_seen_at": at,
        "resolved_at": at + timedelta(days=2) if state == "resolved" else None,
    }
    inserted = tables.alert.insert().values(values).returning(tables.alert.c.alert_id)
    alert_id = connection.execute(inserted).scalar_one()
    events = [
        {"alert_id": alert_id, "at": at + timedelta(hours=hours), "event": event, "author": "nightly", "text": "said"}
        for hours, event in enumerate(("opened", "notified", "seen_again"))
    ]
    connection.execute(tables.alert_event.insert(), events)

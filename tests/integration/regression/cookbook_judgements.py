"""What is said of the runs in the cookbook's history: baselines, checks, verdicts, alerts, withdrawals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, text

from regression.detectors import CheckVerdict, Verdict
from regression.detectors.comparison import judge_comparison
from regression.results.baselines import accept_baseline
from regression.results.checks import Finding, store_check, store_findings
from regression.results.columns import EXIT_CODES
from regression.results.history import find_run
from regression.results.kernel_comparisons import comparison_of
from regression.results.loading import load_run
from regression.results.promotion import promote_run
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.cookbook_history import IDS, records
from tests.integration.regression.example_comparisons import DAG
from tests.integration.regression.example_records import sha256_of


def store_history(writer: Engine) -> None:
    """Load every run, its checks, baselines, alerts and the withdrawal, in the order of the nights."""
    ids = {}
    for record, _ in records():
        load_run(writer, record, sha256_of(record))
        ids[record.request.dag_run_id] = record.request.run_id
    accepted = (("03-01", "ana", "first"), ("03-02", "ben", "better"), ("03-06", "ana", "new driver"))
    baselines = {day: accept_baseline(writer, ids[IDS[day]], accepted_by=who, reason=why) for day, who, why in accepted}
    with writer.begin() as connection:
        for day, step, found, baseline in _checks():
            store_check(connection, ids[IDS[day]], found, baselines.get(baseline) if baseline else None, step)
        for name in ("tile", "centring"):
            found_of_both = judge_comparison(comparison_of(connection, find_run(connection, DAG, IDS[name])))
            store_findings(connection, ids[IDS[name]], [Finding(found, None) for found in found_of_both])
        for record, verdict in records():
            connection.execute(
                text("UPDATE run SET verdict = :verdict, exit_code = :code WHERE run_id = :run_id"),
                {"verdict": verdict, "code": EXIT_CODES[verdict], "run_id": record.request.run_id},
            )
        _store_alerts(connection, ids)
    withdraw_run(
        writer,
        ids[IDS["2020"]],
        scope="energy",
        withdrawn_by="ana",
        reason="its sensor was wrong",
        successor_run_id=ids[IDS["03-01"]],
        figures="0.47 mJ; 0.60 mJ holds",
    )
    promote_run(writer, ids[IDS["tile"]], promoted_by="ben", reason="tile 64: a tenth less")
    withdraw_run(writer, ids[IDS["fused-8"]], scope="all", withdrawn_by="ben", reason="another kernel than it says")


def _checks() -> Sequence[tuple[str, int, CheckVerdict, str | None]]:
    """Night, step, what was found, and the night of the baseline."""

    def check(name: str, verdict: Verdict, reason: str, **figures: Any) -> CheckVerdict:
        metric, unit = ("agreed", "predictions") if name == "agreement" else ("adjusted_mj", "mJ")
        return CheckVerdict(name, verdict, metric, unit, reason.replace(" ", "_"), reason, **figures)

    figures = {
        "aligned": {
            "verdict": "regressed",
            "reason_code": "energy_above_spread",
            "median_mj": 0.65,
            "detectable_mj": 0.01,
        },
        "classic": {"verdict": "ok", "reason_code": "within_spread", "median_mj": 0.68, "detectable_mj": 0.2},
    }
    energy_figures = {"value": 0.66, "baseline_value": 0.61, "baseline_low": 0.60, "baseline_high": 0.62}
    return (
        ("03-02", 0, check("energy", Verdict.OK, "within spread"), "03-01"),
        ("fused-2c", 0, check("energy", Verdict.INVALID, "clock dropped"), None),
        ("fused-2c", 1, check("energy", Verdict.INCONCLUSIVE, "no valid round"), None),
        ("03-03", 0, check("agreement", Verdict.REGRESSED, "draw 3 disagrees"), "03-02"),
        ("03-03", 0, check("energy", Verdict.OK, "within spread"), "03-02"),
        ("03-06", 1, check("energy", Verdict.OK, "confirmed", details={"figures": figures}), "03-06"),
        (
            "03-06",
            0,
            check(
                "energy", Verdict.INCONCLUSIVE, "baseline of another driver", **energy_figures, details={"figures": {}}
            ),
            "03-02",
        ),
        ("03-07", 0, check("energy", Verdict.INVALID, "meters apart"), None),
        ("03-08", 0, check("agreement", Verdict.REGRESSED, "draws 0 and 3 disagree"), "03-06"),
        ("04-01", 0, check("energy", Verdict.INCONCLUSIVE, "sampling unchecked"), None),
    )


def _store_alerts(connection: Connection, ids: dict[str, str]) -> None:
    """One open for three days, one muted for ten, one resolved; the night that is missing has no device."""
    insert = text(
        "INSERT INTO alert (workload, device_id, metric, direction, outcome, state, first_run_id, last_run_id, "
        "occurrences, value, baseline_value, unit, text, opened_at, last_seen_at, acknowledged_by, acknowledged_at, "
        "acknowledged_reason, muted_until, resolved_at) VALUES "
        "('qda', (SELECT device_id FROM device WHERE uuid = 'GPU-1'), 'agreed', 'lower', 'regression', 'open', "
        " :third, :eighth, 2, 10998, 11000, 'predictions', 'draw 3 disagrees', now() - interval '73 hours', "
        " now() - interval '25 hours', NULL, NULL, NULL, NULL, NULL), "
        "('qda', NULL, 'night', 'missing', 'infrastructure_failure', 'muted', NULL, NULL, 2, NULL, NULL, NULL, "
        " 'no night', now() - interval '241 hours', now() - interval '217 hours', 'ben', now() - interval '200 hours', "
        " 'power cut', now() + interval '120 hours', NULL), "
        "('qda', (SELECT device_id FROM device WHERE uuid = 'GPU-1'), 'adjusted_mj', 'higher', 'regression', "
        " 'resolved', :third, :third, 1, 0.7, 0.6, 'mJ', 'more energy', now() - interval '481 hours', "
        " now() - interval '481 hours', NULL, NULL, NULL, NULL, now() - interval '460 hours')"
    )
    connection.execute(insert, {"third": ids[IDS["03-03"]], "eighth": ids[IDS["03-08"]]})

"""Known answers of the cookbook about nights, verdicts and predictions, for the history in ``cookbook_history``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GPU = {"device": "GPU-1"}


@dataclass(frozen=True)
class Answer:
    """What a question says with these params, in these of its columns; floats to six places, dates as text."""

    question: str
    columns: str
    rows: list[tuple[Any, ...]]
    params: dict[str, str] = field(default_factory=dict)


NIGHTS = [
    Answer(
        "nights_by_verdict",
        "month verdict nights percent_of_month",
        [
            ("2026-03-01", "ok", 12, 66.666667),
            ("2026-03-01", "regression", 3, 16.666667),
            ("2026-03-01", "invalid_measurement", 2, 11.111111),
            ("2026-03-01", "infrastructure_failure", 1, 5.555556),
            ("2026-04-01", "inconclusive", 1, 100.0),
        ],
    ),
    Answer(
        "nights_by_verdict",
        "month verdict nights",
        [("2026-03-01", "ok", 1), ("2026-03-01", "regression", 1)],
        GPU | {"since": "2026-03-03", "until": "2026-03-05"},
    ),
    Answer(
        "nights_not_ok",
        "night device verdict reason_code check_name check_verdict check_reason",
        [
            ("2026-04-01", "Test GPU", "inconclusive", None, "energy", "inconclusive", "sampling unchecked"),
            ("2026-03-08", "Test GPU", "regression", "predictions_disagree", "agreement", "regressed",
             "draws 0 and 3 disagree"),
            ("2026-03-07", "Test GPU", "invalid_measurement", "gate_failed", "energy", "invalid", "meters apart"),
            ("2026-03-03", "Test GPU", "regression", "predictions_disagree", "agreement", "regressed",
             "draw 3 disagrees"),
            ("2026-03-02", "Test GPU", "invalid_measurement", "clock_dropped", "energy", "inconclusive",
             "no valid round"),
        ],
        GPU,
    ),
    Answer(
        "nights_not_ok",
        "night device verdict reason_code check_name",
        [("2026-03-03", "Other GPU", "infrastructure_failure", "device_lost", None)],
        {"device": "Other GPU"},
    ),
    Answer(
        "compared_with",
        "night check_name step verdict value baseline_value baseline_low baseline_high unit accepted_by "
        "accepted_because",
        [
            ("2026-03-06", "energy", 0, "inconclusive", 0.66, 0.61, 0.6, 0.62, "mJ", "ben", "better"),
            ("2026-03-06", "energy", 1, "ok", None, None, None, None, "mJ", "ana", "new driver"),
        ],
        {"run": "scheduled__2026-03-06"},
    ),
    Answer("compared_with", "night check_name accepted_by", [("2026-04-01", "energy", None)]),
    Answer(
        "changed_between",
        "part name earlier later",
        [
            ("environment", "driver", "570.1", "580.2"),
            ("measurement", "power_limit_w", "400.0", "350.0"),
            ("sources", "a.py", "sha256 of a", "sha256 of changed"),
            ("sources", "b.py", None, "sha256 of b"),
        ],
        GPU | {"earlier": "2026-03-03", "later": "2026-03-06"},
    ),
    Answer(
        "changed_between",
        "part name earlier later",
        [("kernel", "ptx_sha256", "ab" * 32, "cd" * 32), ("kernel", "variant", "class_blocks", "fused")],
        {"later": "manual__fused-1"},
    ),
    Answer(
        "changed_between",
        "part name earlier later",
        [("kernel", "ptx_sha256", "cd" * 32, "ab" * 32), ("kernel", "variant", "fused", "class_blocks")],
        GPU,
    ),
    Answer("changed_between", "part name", [], {"device": "GPU-2"}),
    Answer("changed_between", "part name", [], {"earlier": "nothing"}),
    Answer(
        "environment_history",
        "night what from_value to_value detail previous_night",
        [
            ("2026-03-06", "driver", "570.1", "580.2", None, "2026-03-05"),
            ("2026-03-06", "kernel", "fused " + "cd" * 32, "class_blocks " + "ab" * 32, None, "2026-03-05"),
            ("2026-03-06", "power_limit_w", "400", "350", None, "2026-03-05"),
            ("2026-03-06", "sources", "sources of a", "sources of a and b", "a.py, b.py", "2026-03-05"),
        ],
        {"since": "2026-03-06", "until": "2026-03-06"},
    ),
    Answer(
        "environment_history",
        "night from_value to_value previous_night",
        [("2026-03-06", "570.1", "580.2", "2026-03-05"), ("2026-03-01", "560.1", "570.1", "2026-02-01")],
        {"what": "driver"},
    ),
    Answer(
        "slowest_nights",
        "night duration_s validation_s rounds_s reference_load_s other_s slowest_case slowest_case_s measured_again",
        [("2026-03-06", 600.0, 65.0, 0.1155, 1.3, 533.5845, "draw-04", 60.0, 4)],
        {"top": "1"},
    ),
    Answer(
        "slowest_nights",
        "dag_run_id duration_s",
        [("scheduled__2026-03-06", 600.0), ("scheduled__2026-03-01", 300.0)],
        GPU | {"top": "2"},
    ),
    Answer(
        "slowest_nights",
        "dag_run_id duration_s validation_s rounds_s reference_load_s other_s measured_again",
        [("scheduled__2026-03-01", 300.0, 5.5, 140.0, 1.3, 153.2, 0)],
        GPU | {"top": "1", "until": "2026-03-01"},
    ),
    Answer(
        "slowest_nights",
        "night other_s",
        [("2026-03-02", None)],
        {"device": "GPU-simulated", "until": "2026-03-02"},
    ),
    Answer(
        "missing_nights",
        "first_night last_night nights runs_by_hand",
        [("2026-03-04", "2026-03-05", 2, 2), ("2026-03-09", "2026-03-31", 23, 0), ("2026-04-02", "2026-04-02", 1, 0)],
        {"until": "2026-04-02"},
    ),
    Answer(
        "missing_nights",
        "first_night last_night nights",
        [("2026-03-05", "2026-03-05", 1)],
        {"since": "2026-03-05", "until": "2026-03-06"},
    ),
    Answer("missing_nights", "nights", [], {"until": "2026-03-03"}),
    Answer(
        "longest_streaks",
        "first_night last_night nights ok ended_by",
        [
            ("2026-03-01", "2026-03-02", 6, 5, "2026-03-03"),
            ("2026-03-05", "2026-03-07", 4, 3, "2026-03-08"),
            ("2026-03-08", "2026-04-01", 2, 1, None),
        ],
        GPU,
    ),
    Answer(
        "longest_streaks",
        "device nights ok first_night",
        [
            ("Test GPU", 6, 5, "2026-03-01"),
            ("Test GPU", 4, 3, "2026-03-05"),
            ("Test GPU", 2, 1, "2026-03-08"),
            ("Other GPU", 2, 1, "2026-03-01"),
            ("Test CPU", 1, 1, "2026-03-04"),
            ("Simulated GPU", 1, 1, "2026-03-03"),
        ],
    ),
    Answer("longest_streaks", "device nights", [("Test GPU", 6)], {"top": "1"}),
    Answer(
        "injected_runs",
        "night inject seed verdict noticed",
        [("2026-03-03", "faulty_sensor", 8, "ok", False), ("2026-03-02", "energy+10%", 7, "regression", True)],
    ),
    Answer(
        "baselines_over_time",
        "environment_class is_current adjusted_mj_median accepted_by reason checks",
        [
            ("driver=570.1 cuda=12.8 torch=2.13.0", False, 0.6, "ana", "first", 1),
            ("driver=570.1 cuda=12.8 torch=2.13.0", True, 0.61, "ben", "better", 3),
            ("driver=580.2 cuda=12.8 torch=2.13.0", False, 0.6605, "ana", "new driver", 2),
            ("driver=580.2 cuda=12.8 torch=2.13.0", True, 0.6, "ben", "tile 64: a tenth less", 0),
        ],
    ),
    Answer(
        "run_report",
        "night verdict rounds_valid invalid_rounds driver power_limit_w",
        [("2026-03-06", "ok", 6, ["2: throttled"], "580.2", 350.0)],
        {"run": "scheduled__2026-03-06"},
    ),
    Answer("run_report", "adjusted_mj_median withdrawn", [(0.47, "energy")], {"run": "import__2020"}),
    Answer("run_report", "night energy_trust", [("2026-04-01", "unverified")]),
    Answer(
        "open_alerts_by_age",
        "metric device state is_muted age_days unseen_days occurrences change_percent first_night last_night",
        [
            ("night", None, "muted", True, 10, 9, 2, None, None, None),
            ("agreed", "Test GPU", "open", False, 3, 1, 2, -0.018182, "2026-03-03", "2026-03-08"),
        ],
    ),
    Answer("open_alerts_by_age", "metric", [], {"workload": "learner"}),
    Answer(
        "withdrawn_figures",
        "night scope reason figures adjusted_mj_median successor_night successor_adjusted_mj_median withdrawn_by",
        [
            ("2026-03-08", "all", "another kernel than it says", None, 0.01, None, None, "ben"),
            ("2026-02-01", "energy", "its sensor was wrong", "0.47 mJ; 0.60 mJ holds", 0.47, "2026-03-01", 0.6, "ana"),
        ],
    ),
    Answer("withdrawn_figures", "night", [], {"workload": "learner"}),
]  # fmt: skip

PREDICTIONS = [
    Answer(
        "first_disagreement",
        "draw night agreed total predictions",
        [
            (0, "2026-03-08", 999, 1000, "5: 7 became 1"),
            (3, "2026-03-03", 998, 1000, "17: 2 became 5, 40: 1 became 0"),
        ],
    ),
    Answer("first_disagreement", "draw night", [(3, "2026-03-03")], {"draw": "3"}),
    Answer("first_disagreement", "draw night", [(0, "2026-03-08"), (3, "2026-03-08")], {"since": "2026-03-04"}),
    Answer(
        "flipping_queries",
        "draw query_index runs boards expected found first_night last_night",
        [
            (3, 17, 2, 1, 2, "5", "2026-03-03", "2026-03-08"),
            (0, 5, 1, 1, 7, "1", "2026-03-08", "2026-03-08"),
            (3, 40, 1, 1, 1, "0", "2026-03-03", "2026-03-03"),
        ],
    ),
    Answer("flipping_queries", "draw query_index", [(3, 17)], {"top": "1"}),
    Answer(
        "prediction_changes",
        "night night_before draw agreed_before agreed",
        [
            ("2026-03-08", "2026-03-08", 0, 999, 1000),
            ("2026-03-08", "2026-03-08", 3, 999, 1000),
            ("2026-03-08", "2026-03-07", 0, 1000, 999),
            ("2026-03-08", "2026-03-07", 3, 1000, 999),
            ("2026-03-05", "2026-03-03", 3, 998, 1000),
            ("2026-03-03", "2026-03-02", 3, 1000, 998),
        ],
    ),
    Answer(
        "prediction_changes",
        "night night_before draw",
        [("2026-03-05", "2026-03-03", 3)],
        {"since": "2026-03-05", "until": "2026-03-05"},
    ),
    Answer(
        "accuracy_by_draw",
        "draw runs agreed_percent device_correct_percent reference_correct_percent runs_that_differ",
        [
            (0, 14, 99.992857, 67.992857, 68.0, 1),
            *((draw, 14, 100.0, 68.0, 68.0, 0) for draw in (1, 2)),
            (3, 14, 99.978571, 67.985714, 68.0, 2),
            *((draw, 14, 100.0, 68.0, 68.0, 0) for draw in range(4, 11)),
        ],
        GPU,
    ),
    Answer("accuracy_by_draw", "draw runs", [(draw, 2) for draw in range(10)] + [(10, 1)], {"device": "GPU-2"}),
]

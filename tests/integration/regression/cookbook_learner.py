"""Three nights of a workload that trains, in the cookbook's history, and what its questions answer of them.

On the second the setting of cuBLAS is another one, a tensor grew and one draw left other scores; on the third a check
of the qualification failed, and the task left other scores after its last run than after its first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpu_tasks.records import LibrarySetting, RunRecord
from tests.integration.regression.cookbook_answers import Answer
from tests.integration.regression.example_energy import INVALID
from tests.integration.regression.example_learner import (
    PEAK,
    WORKSPACE,
    learner_run,
    memory,
    qualification,
    state_validation,
    trial_round,
)

WRONG = "epoch 0, batch 0: velocity weights.1"
OTHER_WORKSPACE = LibrarySetting(WORKSPACE.name, ":4096:8", "environment")


def moved(record: RunRecord, day: str, hour: int = 2, *, minutes: int = 5, **request: Any) -> RunRecord:
    """The record as of another day of 2026, so many minutes long, with changes to its request."""
    started, ended = f"2026-{day}T{hour:02}:00:00.000000Z", f"2026-{day}T{hour:02}:{minutes:02}:00.000000Z"
    return replace(
        record,
        started_at=started,
        completed_at=ended,
        created_at=ended,
        request=replace(record.request, accepted_at=started, logical_date=started, **request),
    )


def learners() -> list[tuple[RunRecord, str]]:
    """Every run with its verdict."""
    first, second, third = (f"scheduled__learner-{number}" for number in (1, 2, 3))
    grown = {"settings": [OTHER_WORKSPACE], "memory": memory(PEAK + 4096, extra=4096)}
    draws = [state_validation(0), state_validation(1, changed=["scores_sha256"])]
    wrong = {"qualification": qualification(WRONG, maximum_abs_error=0.5)}
    unstable = memory(PEAK + 4096, extra=4096, unmatched=["scores_sha256"])
    trials = [trial_round(0), trial_round(1, 1070.0, **INVALID)]
    last = learner_run(third, settings=[OTHER_WORKSPACE], validations=draws, rounds=trials, memory=unstable, **wrong)
    reason = wrong["qualification"].reason
    return [
        (moved(learner_run(first, settings=[WORKSPACE]), "03-02", 4, trigger="scheduled"), "ok"),
        (moved(learner_run(second, validations=draws, **grown), "03-06", 4, trigger="scheduled"), "regression"),
        (moved(replace(last, reason=reason), "03-07", 4, trigger="scheduled"), "regression"),
    ]


SINCE = {"since": "2026-03-07"}
NIGHTS = ("2026-03-02", "2026-03-06", "2026-03-07")

LEARNER = [
    Answer(
        "memory_trend",
        "night draw peak_allocated_bytes peak_change_bytes reserved_change_bytes named_storage_bytes "
        "named_change_bytes unassigned_change_bytes storages unmatched_states outcome",
        [
            (NIGHTS[0], 0, PEAK, None, None, 332_000, None, None, 2, None, "ok"),
            (NIGHTS[1], 0, PEAK + 4096, 4096, 0, 336_096, 4096, -4096, 2, None, "ok"),
            (NIGHTS[2], 0, PEAK + 4096, 0, 0, 336_096, 0, 0, 2, ["scores_sha256"], "regression"),
        ],
    ),
    Answer(
        "memory_trend",
        "peak_reserved_bytes unassigned_bytes tensors dag_run_id",
        [(29_360_128, 13_901_600, 3, "scheduled__learner-3")],
        {"device": "GPU-1"} | SINCE,
    ),
    Answer(
        "largest_tensors",
        "night name dtype shape logical_bytes storage_id storage_bytes percent_of_named aliases",
        [
            (NIGHTS[2], "raw", "torch.float32", [1000, 81], 324_000, 0, 328_096, 97.619728, ["raw", "raw.first"]),
            (NIGHTS[2], "labels", "torch.int64", [1000], 8000, 1, 8000, 2.380272, ["labels"]),
            (NIGHTS[2], "raw.first", "torch.float32", [81], 324, 0, 328_096, 97.619728, ["raw", "raw.first"]),
        ],
    ),
    Answer(
        "largest_tensors",
        "night name storage_bytes",
        [(NIGHTS[0], "raw", 324_000)],
        {"run": "scheduled__learner-1", "top": "1"},
    ),
    Answer(
        "state_changes",
        "night draw changed_states predictions_changed changed_settings previous_dag_run_id",
        [(NIGHTS[1], 1, ["scores_sha256"], False, ["CUBLAS_WORKSPACE_CONFIG"], "scheduled__learner-1")],
    ),
    Answer("state_changes", "night", [], SINCE),
    Answer(
        "settings_in_force",
        "name value origin runs first_night last_night",
        [
            (WORKSPACE.name, ":16:8", "program", 1, NIGHTS[0], NIGHTS[0]),
            (WORKSPACE.name, ":4096:8", "environment", 2, NIGHTS[1], NIGHTS[2]),
        ],
    ),
    Answer(
        "qualification_trend",
        "night passed checks checks_change cases_failed maximum_abs_error previous_maximum_abs_error reason_code",
        [
            (NIGHTS[0], True, 212, None, [], 1e-6, None, None),
            (NIGHTS[1], True, 212, 0, [], 1e-6, 1e-6, None),
            (NIGHTS[2], False, 212, 0, ["training depth 2"], 0.5, 1e-6, "not_qualified"),
        ],
    ),
    Answer(
        "qualification_trend",
        "failures computed_on captured tolerance",
        [({"training depth 2": [WRONG]}, "cuda:0", True, {"atol": 2e-5, "rtol": 3e-3})],
        SINCE,
    ),
    Answer(
        "learner_trials",
        "night trial valid reason_code repeats calibration_ms trial_mj aligned_mj aligned_less_trial_mj",
        [
            (NIGHTS[2], 0, True, None, 131, 38.45, 1069.0, 1133.0, 64.0),
            (NIGHTS[2], 1, False, "throttled", 131, 38.45, 1070.0, 1134.0, 64.0),
        ],
        SINCE,
    ),
    Answer(
        "learner_trials",
        "night trial trial_low_mj trial_high_mj aligned_low_mj aligned_high_mj",
        [
            (NIGHTS[0], 0, 1059.995, 1060.003, 1123.995, 1124.003),
            (NIGHTS[0], 1, 1068.995, 1069.003, 1132.995, 1133.003),
            (NIGHTS[0], 2, 1077.995, 1078.003, 1141.995, 1142.003),
        ],
        {"until": "2026-03-02"},
    ),
]  # fmt: skip

"""Judged runs as alerts see them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from regression.alerts.judged import Check, JudgedRun
from regression.detectors.environment import Difference

BEGAN = datetime(2026, 11, 30, 2, 0, 3, tzinfo=UTC)
RUN_ID = "5d2f6c1e-0000-5000-8000-000000000001"
ACCEPTED = "scheduled__2026-11-01T02:00:00+00:00, 2026-11-01 09:12 UTC, by ann"
DRIVER = Difference("driver", "driver", "570.86.15", "575.57.08", False)
NEW_CLASS = Difference("environment class", "environment class", "cuda 12.8 python 3.11", "cuda 12.9 python 3.11", True)
KERNEL = Difference("kernel", "kernel", "a" * 64, "b" * 64, False)


def check(name: str, verdict: str = "ok", **changes: Any) -> Check:
    values = {"metric": name, "unit": "mJ", "reason_code": "code", "plain_reason": f"{name} is as it was"}
    return Check(name=name, verdict=verdict, **{**values, **changes})


def run(*checks: Check, **changes: Any) -> JudgedRun:
    values = {
        "run_id": RUN_ID,
        "dag_id": "nightly_qda",
        "dag_run_id": "scheduled__2026-11-30T02:00:00+00:00",
        "workload": "qda",
        "trigger": "scheduled",
        "started_at": BEGAN,
        "verdict": "regression",
        "reason_code": None,
        "reason": None,
        "device_id": 1,
        "device": "NVIDIA A100-SXM4-40GB",
    }
    return JudgedRun(**{**values, **changes}, checks=checks)


ENERGY = check(
    "energy",
    "regressed",
    metric="adjusted_energy_per_replay",
    reason_code="energy_above_spread",
    plain_reason="adjusted energy 0.63 mJ a replay (median of 14 of 14 rounds) is above the round spread 0.59 to "
    "0.61 mJ of baseline NVIDIA A100-SXM4-40GB scheduled__2026-11-01T02:00:00+00:00, 0.03 mJ (5 %) from its median; a "
    "change counts from 0.0054 mJ (0.9 %) on",
    value=0.63,
    baseline_value=0.6,
    baseline_low=0.59,
    baseline_high=0.61,
    direction="higher",
    baseline_id=1,
    baseline=ACCEPTED,
    first_look="first rounds alone: regressed (0.632 mJ); with the confirmation rounds: regressed",
)
ENERGY_HISTORY = check(
    "energy_history",
    "regressed",
    metric="adjusted_energy_per_replay",
    reason_code="shift_higher",
    plain_reason="0.631 mJ tonight, usual 0.6 mJ of 60 nights; 0.0306 mJ (5.1 %) higher since 2026-11-29 (2 nights), "
    "7.2 standard deviations",
    value=0.631,
    baseline_value=0.6,
    direction="higher",
    details={"size": 0.0306, "since": "2026-11-29T02:00:04+00:00", "nights_since": 2},
)
GATE = {
    "reason_code": "gate_failed",
    "plain_reason": "no usable energy, telemetry gate failed: reference_load (before): reference load: expected 6 to "
    "11 J per 10^12 operations, found 0.0706",
    "details": {"failed_gates": [{"gate": "reference_load", "at": "before", "message": "found 0.0706"}]},
}
FAILED_TRUST = "the trust in the energy of this run is failed, as the check of energy says"
FAULTY_HISTORIES = [
    check(name, "invalid", reason_code="gate_failed", plain_reason=FAILED_TRUST)
    for name in ("energy_history", "idle_power_history")
]
FAULTY_ENERGY = check("energy", "invalid", metric="adjusted_energy_per_replay", **GATE)
TIME = check(
    "time",
    "regressed",
    metric="cuda_time_per_replay",
    unit="ms",
    reason_code="time_above_spread",
    plain_reason="CUDA time 2.06 ms a replay is above the round spread 1.99 to 2.01 ms",
    value=2.06,
    baseline_value=2.0,
    baseline_low=1.99,
    baseline_high=2.01,
    direction="higher",
)
AGREEMENT = check(
    "agreement",
    "regressed",
    metric="agreed_predictions",
    unit="predictions",
    reason_code="agreement_dropped",
    plain_reason="draw 3: 999 of 1000 agree, baseline 1000; index 17: expected 4, found 9",
    value=10999,
    baseline_value=11000,
    direction="lower",
    baseline_id=2,
    baseline=ACCEPTED,
)
QUALIFICATION = check(
    "qualification",
    "regressed",
    metric="checks_that_hold",
    unit="checks",
    reason_code="not_qualified",
    plain_reason="1 of 216 checks do not hold: training, depth 2: epoch 0, batch 0: velocity weights.1",
    value=215,
    baseline_value=216,
    direction="lower",
    baseline_id=1,
    baseline=ACCEPTED,
)
REPEATABILITY = check(
    "repeatability",
    "regressed",
    metric="changed_state_hashes",
    unit="hashes",
    reason_code="state_changed",
    plain_reason="draw 3: 2 of 26 hashes are others (final_parameter_sha256.weights.0, state_vector_sha256) than in "
    "run NVIDIA A100-SXM4-40GB scheduled__2026-11-29T02:00:00+00:00",
    value=2,
    direction="changed",
)
MEMORY = check(
    "memory",
    "regressed",
    metric="peak_allocated_memory",
    unit="bytes",
    reason_code="memory_higher",
    plain_reason="peak allocated 17,212,416 bytes, +1,549,312 bytes against baseline NVIDIA A100-SXM4-40GB "
    "scheduled__2026-11-01T02:00:00+00:00 (15,663,104 bytes, 9.9 %), as in the run before, NVIDIA A100-SXM4-40GB "
    "scheduled__2026-11-29T02:00:00+00:00",
    value=17_212_416,
    baseline_value=15_663_104,
    direction="higher",
    baseline_id=1,
    baseline=ACCEPTED,
)


def environment(*found: Difference, **changes: Any) -> Check:
    details = {"differences": [asdict(difference) for difference in found]}
    values = {"metric": "surroundings", "unit": "versions", "details": details, "baseline_id": 1, "baseline": ACCEPTED}
    verdict = "inconclusive" if any(difference.new_segment for difference in found) else "ok"
    return check("environment", verdict, **{**values, **changes})

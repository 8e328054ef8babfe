"""Validations made by hand, for what is derived from them."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_tasks.records import Outcome, PredictionMismatch, Reason, ValidationRecord


def validation(draw: int, wrong: Sequence[tuple[int, int, int]] = (), *, ran: bool = True) -> ValidationRecord:
    """One draw with ``wrong`` (index, frozen, found); not ``ran``: a finding ended it."""
    outcome = Outcome.OK if ran and not wrong else Outcome.REGRESSION
    return ValidationRecord(
        kind="validation",
        created_at="2026-11-30T00:00:00Z",
        outcome=outcome,
        reason=None if outcome is Outcome.OK else Reason("prediction_mismatch" if ran else "race", f"draw {draw}"),
        workload="qda",
        payload="original",
        device_uuid="cpu",
        draw=draw,
        dataset_seed=1,
        payload_sha256="0" * 64,
        total=1000 if ran else None,
        agreed=1000 - len(wrong) if ran else None,
        device_correct=500 if ran else None,
        reference_correct=500 if ran else None,
        predictions_int32_sha256="0" * 64 if ran else None,
        mismatches=[PredictionMismatch(*one) for one in wrong],
        replays_equal_eager=[True] * 3 if ran else [],
        scratch_poisoned_before_eager_and_each_replay=True if ran else None,
        captured_graph_reused_across_changed_inputs=True if ran else None,
        intermediate_floats_equal_reference_bitwise=None,
        duration_s=0.1 if ran else None,
    )

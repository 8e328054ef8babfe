"""Tables of what was seen of a candidate and of the kernel that it was held against."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, ForeignKey, Integer, SmallInteger, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from regression.results.columns import (
    DOUBLE,
    ENERGY_TRUST,
    OUTCOMES,
    TIMESTAMP,
    metadata,
    one_of,
    optional,
    reason_columns,
    required,
    together,
)

STATIC_FIGURES = ("ptx_lines", "instructions", "shared_bytes", "modelled_cycles")
"""Of one kernel, all there or all NULL; none of them is measured."""


def _static_columns(side: str, which: str) -> tuple[Column[Any], ...]:
    return (
        optional(f"{side}_ptx_lines", Integer, f"Lines of the PTX of the {which} (counted)"),
        optional(f"{side}_instructions", Integer, f"Instructions of the {which} (counted in its PTX)"),
        optional(f"{side}_shared_bytes", Integer, f"Most shared memory of a block of the {which}, bytes (counted)"),
        optional(f"{side}_modelled_cycles", BigInteger, f"Critical path of the {which}, clock cycles (modelled)"),
    )


def _static_names(side: str) -> list[str]:
    return [f"{side}_{name}" for name in STATIC_FIGURES]


def _comparison_key() -> Column[Any]:
    return required("run_id", UUID(as_uuid=False), "Run", ForeignKey("comparison.run_id"), primary_key=True)


comparison = Table(
    "comparison",
    metadata,
    required("run_id", UUID(as_uuid=False), "Run", ForeignKey("run.run_id"), primary_key=True),
    required(
        "outcome", Text, "Class of outcome: regression when the candidate is wrong, whether or not the other kernel is"
    ),
    *reason_columns(),
    *_static_columns("candidate", "candidate"),
    *_static_columns("pinned", "kernel that it was held against"),
    required("differing_total", Integer, "Predictions on which candidate, the other kernel and the frozen ones differ"),
    optional("not_measured_reason_code", Text, "Why the two did not take turns: documented snake_case word"),
    optional("not_measured_reason_message", Text, "Why the two did not take turns: one line"),
    required("energy_trust", Text, "Trust in the energy of the rounds in which they took turns: as in run"),
    optional("energy_trust_reason_code", Text, "Why that energy is not verified: documented snake_case word"),
    optional("energy_trust_reason_message", Text, "Why that energy is not verified: one line"),
    required("created_at", TIMESTAMP, "When its record was written (UTC)"),
    one_of("outcome", OUTCOMES),
    CheckConstraint("outcome = 'ok' OR reason_code IS NOT NULL", name="reason"),
    one_of("energy_trust", ENERGY_TRUST),
    together("candidate_static", *_static_names("candidate")),
    together("pinned_static", *_static_names("pinned")),
    CheckConstraint(
        f"least({', '.join([*_static_names('candidate'), *_static_names('pinned')])}) >= 0", name="static_figures"
    ),
    CheckConstraint("differing_total >= 0", name="differing_total"),
    comment="Comparisons of a candidate with another kernel, usually the pinned one: one row a run that made one",
)

comparison_block = Table(
    "comparison_block",
    metadata,
    _comparison_key(),
    required("round", SmallInteger, "Number of the round of arm comparison, from 0", primary_key=True),
    required("block", SmallInteger, "Number of the block in its round, from 0", primary_key=True),
    required("valid", Boolean, "Whether its round is valid: one that is not stays out of every statistic"),
    optional("candidate_mj", DOUBLE, "Energy of the candidate above idle, mJ a replay; NULL: no counter"),
    optional("pinned_mj", DOUBLE, "Energy of the other kernel above idle, mJ a replay"),
    optional("control_mj", DOUBLE, "Energy of the control above idle, mJ a replay"),
    optional("candidate_cuda_ms", DOUBLE, "CUDA-event time of the candidate, ms a replay; NULL without CUDA events"),
    optional("pinned_cuda_ms", DOUBLE, "CUDA-event time of the other kernel, ms a replay"),
    optional("candidate_wall_ms", DOUBLE, "Wall time of the candidate, ms a replay"),
    optional("pinned_wall_ms", DOUBLE, "Wall time of the other kernel, ms a replay"),
    CheckConstraint("round >= 0 AND block >= 0", name="numbers"),
    # Where a round was broken off, a block may have one of the two, and nothing is made of it.
    *(
        CheckConstraint(f"NOT valid OR num_nulls(candidate_{name}, pinned_{name}) IN (0, 2)", name=what)
        for what, name in (("energy", "mj"), ("cuda_ms", "cuda_ms"), ("wall_ms", "wall_ms"))
    ),
    CheckConstraint(
        "NOT valid OR least(candidate_cuda_ms, pinned_cuda_ms, candidate_wall_ms, pinned_wall_ms) > 0", name="times"
    ),
    comment="Blocks in which two kernels took turns within seconds: the pairs that a comparison is judged by",
)

comparison_difference = Table(
    "comparison_difference",
    metadata,
    _comparison_key(),
    required("draw", SmallInteger, "Number of the draw", primary_key=True),
    required("index", Integer, "Number of the query in the draw, from 0", primary_key=True),
    optional("candidate", Integer, "Class that the candidate predicted; NULL: none"),
    optional("pinned", Integer, "Class that the other kernel predicted; NULL: none"),
    required("frozen", Integer, "Frozen prediction"),
    optional("candidate_score", DOUBLE, "Score of the candidate's class by the float64 reference"),
    optional("pinned_score", DOUBLE, "Score of the other kernel's class (of the frozen one where they agree)"),
    optional("gap", DOUBLE, "pinned_score less candidate_score: next to nothing where rounding decided"),
    CheckConstraint("draw >= 0 AND index >= 0", name="numbers"),
    CheckConstraint("candidate IS DISTINCT FROM frozen OR pinned IS DISTINCT FROM frozen", name="differs"),
    comment="Predictions on which candidate, the other kernel and the frozen ones differ: the first of each comparison",
)

__all__ = ["comparison", "comparison_block", "comparison_difference"]

"""From what a run record says of a candidate to the values of its rows; no database here."""

from __future__ import annotations

import dataclasses
from typing import Any

from gpu_tasks.records import CandidateRecord, ComparisonRecord, KernelIdentity, RunRecord, StaticFigures, parse_utc
from regression.results.comparison_tables import STATIC_FIGURES
from regression.results.energy_rows import reason

Row = dict[str, Any]

ORIGIN = ("spec", "origin", "commit", "modified", "bundle", "against_bundle", "equals_pinned", "notes")


def candidate_columns_of(record: RunRecord) -> Row:
    """What ``run`` itself has of the kernel that is tried."""
    request, tried, compared = record.request, record.candidate, record.comparison
    against = (compared and compared.pinned) or (tried and tried.against)
    return {
        "candidate": request.candidate is not None or request.kernel_changed,
        "candidate_origin": _origin(tried) if tried else None,
        "pinned_variant": against.variant if against else None,
        "pinned_ptx_sha256": against.ptx_sha256 if against else None,
    }


def comparison_row(run_id: str, compared: ComparisonRecord) -> Row:
    """Values of ``comparison``."""
    return {
        "run_id": run_id,
        "outcome": compared.outcome.value,
        **reason(compared.reason),
        **_static("candidate", compared.candidate_static),
        **_static("pinned", compared.pinned_static),
        "differing_total": compared.differing_total,
        **reason(compared.not_measured, "not_measured_"),
        "energy_trust": compared.energy_trust,
        **reason(compared.energy_trust_reason, "energy_trust_"),
        "created_at": parse_utc(compared.created_at),
    }


def block_rows(run_id: str, compared: ComparisonRecord) -> list[Row]:
    """Values of ``comparison_block``."""
    return [{"run_id": run_id, **dataclasses.asdict(block)} for block in compared.blocks]


def difference_rows(run_id: str, compared: ComparisonRecord) -> list[Row]:
    """Values of ``comparison_difference``."""
    return [{"run_id": run_id, **dataclasses.asdict(differing)} for differing in compared.differing]


def _origin(tried: CandidateRecord) -> Row:
    return {name: getattr(tried, name) for name in ORIGIN} | {"kernel": _kernel(tried.kernel)}


def _kernel(kernel: KernelIdentity | None) -> Row | None:
    return {"variant": kernel.variant, "ptx_sha256": kernel.ptx_sha256} if kernel else None


def _static(side: str, figures: StaticFigures | None) -> Row:
    return {f"{side}_{name}": getattr(figures, name) if figures else None for name in STATIC_FIGURES}

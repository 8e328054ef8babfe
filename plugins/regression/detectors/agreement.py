"""Agreement with the frozen predictions: exact integers, no statistics.

Predictions on frozen inputs are integers that the payload defines, so any device's accepted run of the same
payload is a baseline for every device; times and energies never are. One changed prediction in eleven thousand
is a finding: a relative threshold or a z-score would hide it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regression.detectors.verdict import CheckVerdict, Problem, Verdict

CHECK = "agreement"
METRIC = "agreed_predictions"
UNIT = "predictions"
SHOWN_FINDINGS = 3
SHOWN_MISMATCHES = 3


@dataclass(frozen=True)
class DrawResult:
    """One draw of the run. Counts are None when it could not be run; ``problem`` then says why.

    ``mismatches`` are (index, expected, found) of every prediction that differs from the frozen one.
    """

    draw: int
    total: int | None
    agreed: int | None
    mismatches: tuple[tuple[int, int, int], ...] = ()
    predictions_sha256: str | None = None
    replays_equal_eager: tuple[bool, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True)
class AgreementRun:
    """The run under judgement: draws asked for, draws found, and what went wrong as a whole (``problem``)."""

    payload_manifest_sha256: str | None
    draws_expected: tuple[int, ...]
    results: tuple[DrawResult, ...]
    problem: Problem | None = None


@dataclass(frozen=True)
class BaselineDraw:
    """One draw of the baseline run."""

    total: int
    agreed: int
    mismatching_indices: frozenset[int]
    predictions_sha256: str | None


@dataclass(frozen=True)
class AgreementBaseline:
    """An accepted run. ``name`` is how messages call it (device and run)."""

    name: str
    payload_manifest_sha256: str | None
    draws: Mapping[int, BaselineDraw]


@dataclass(frozen=True)
class _Finding:
    verdict: Verdict
    code: str
    text: str
    draw: int | None = None
    direction: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


def judge_agreement(run: AgreementRun, baseline: AgreementBaseline | None) -> CheckVerdict:
    """Judge the predictions of ``run`` against ``baseline`` (None: against the frozen predictions alone).

    Seen disagreement wins over a part that could not be run, which wins over everything that is fine: a lost
    device is ``invalid``, never a regression, and nothing is ``ok`` for lack of data.
    """
    usable, no_baseline = _usable_baseline(run, baseline)
    by_draw = {result.draw: result for result in run.results}
    findings = [f for draw in run.draws_expected for f in _judge_draw(draw, by_draw.get(draw), run.problem, usable)]
    if not run.draws_expected or not run.results:
        findings = [_nothing_there(run)]
    elif no_baseline:
        findings.append(no_baseline)
    return _verdict_of(findings, run, by_draw, usable)


def _usable_baseline(
    run: AgreementRun, baseline: AgreementBaseline | None
) -> tuple[AgreementBaseline | None, _Finding | None]:
    if baseline is None:
        text = "no accepted baseline for this payload; judged against the frozen predictions only"
        return None, _Finding(Verdict.INCONCLUSIVE, "no_baseline", text)
    if baseline.payload_manifest_sha256 is None or baseline.payload_manifest_sha256 != run.payload_manifest_sha256:
        text = f"baseline {baseline.name} is of another payload; judged against the frozen predictions only"
        return None, _Finding(Verdict.INCONCLUSIVE, "baseline_other_payload", text)
    return baseline, None


def _nothing_there(run: AgreementRun) -> _Finding:
    if run.problem:
        return _Finding(Verdict.INVALID, run.problem.code, f"no draw was validated: {run.problem.message}")
    return _Finding(Verdict.INVALID, "no_validations", "no draw was validated and no record says why")


def _judge_draw(
    draw: int, result: DrawResult | None, run_problem: Problem | None, baseline: AgreementBaseline | None
) -> list[_Finding]:
    if result is None:
        if run_problem:
            return [
                _Finding(Verdict.INVALID, run_problem.code, f"draw {draw} was not run: {run_problem.message}", draw)
            ]
        return [_Finding(Verdict.REGRESSED, "draw_missing", f"draw {draw} is missing and no record says why", draw)]
    findings = []
    if not all(result.replays_equal_eager):
        differing = [n for n, equal in enumerate(result.replays_equal_eager) if not equal]
        text = f"draw {draw}: replay {', '.join(map(str, differing))} differs from the eager run"
        findings.append(_Finding(Verdict.REGRESSED, "replay_differs", text, draw, "changed", {"replays": differing}))
    if result.total is None or result.agreed is None:
        findings.append(_not_run(draw, result.problem))
    elif not 0 <= result.agreed <= result.total or result.total == 0:
        text = f"draw {draw}: {result.agreed} agreements of {result.total} predictions cannot be"
        findings.append(_Finding(Verdict.INVALID, "impossible_counts", text, draw))
    else:
        findings += _judge_counts(result, result.agreed, result.total, baseline)
        findings += _incomplete(result)
    return findings


def _incomplete(result: DrawResult) -> list[_Finding]:
    """What keeps a draw with counts from being fine: a problem on the way, or replays that were never made."""
    if result.problem:
        text = f"draw {result.draw} did not end well: {result.problem.message}"
        return [_Finding(Verdict.INVALID, result.problem.code, text, result.draw)]
    if not result.replays_equal_eager:
        return [_Finding(Verdict.INVALID, "no_replays", f"draw {result.draw}: no replay was compared", result.draw)]
    return []


def _not_run(draw: int, problem: Problem | None) -> _Finding:
    if problem is None:
        return _Finding(Verdict.REGRESSED, "draw_missing", f"draw {draw} has no counts and no record says why", draw)
    return _Finding(Verdict.INVALID, problem.code, f"draw {draw} could not be run: {problem.message}", draw)


def _judge_counts(result: DrawResult, agreed: int, total: int, baseline: AgreementBaseline | None) -> list[_Finding]:
    draw, shown = result.draw, f"draw {result.draw}: {agreed} of {total} agree"
    if baseline is None or draw not in baseline.draws:
        if agreed < total:
            text = f"{shown} with the frozen predictions{_mismatch_text(result.mismatches)}"
            return [_finding(Verdict.REGRESSED, "disagrees_with_frozen", text, result, "lower")]
        if baseline is None:
            return []
        return [_finding(Verdict.INCONCLUSIVE, "no_baseline_for_draw", f"{shown}, but the baseline lacks it", result)]
    expected = baseline.draws[draw]
    new = tuple(m for m in result.mismatches if m[0] not in expected.mismatching_indices)
    if total != expected.total:
        text = f"{shown}, baseline has {expected.total} predictions"
        return [_finding(Verdict.INVALID, "total_changed", text, result, "changed")]
    if agreed < expected.agreed:
        text = f"{shown}, baseline {expected.agreed}{_mismatch_text(new or result.mismatches)}"
        return [_finding(Verdict.REGRESSED, "agreement_dropped", text, result, "lower")]
    if new:
        text = f"{shown}, baseline {expected.agreed}, but other predictions disagree{_mismatch_text(new)}"
        return [_finding(Verdict.REGRESSED, "new_mismatches", text, result, "changed")]
    if agreed > expected.agreed:
        return [_finding(Verdict.IMPROVED, "agreement_rose", f"{shown}, baseline {expected.agreed}", result, "higher")]
    return _judge_hash(result, expected, shown)


def _judge_hash(result: DrawResult, expected: BaselineDraw, shown: str) -> list[_Finding]:
    if expected.predictions_sha256 is None:
        return []
    if result.predictions_sha256 is None:
        text = f"{shown} as before, but the hash of its predictions is missing"
        return [_finding(Verdict.REGRESSED, "prediction_hash_missing", text, result, "changed")]
    if result.predictions_sha256 != expected.predictions_sha256:
        text = (
            f"{shown} as before, but the predictions changed (int32 sha256 {result.predictions_sha256[:12]}, "
            f"baseline {expected.predictions_sha256[:12]})"
        )
        return [_finding(Verdict.REGRESSED, "predictions_changed", text, result, "changed")]
    return []


def _finding(verdict: Verdict, code: str, text: str, result: DrawResult, direction: str | None = None) -> _Finding:
    details = {"total": result.total, "agreed": result.agreed, "mismatches": [list(m) for m in result.mismatches]}
    return _Finding(verdict, code, text, result.draw, direction, details)


def _mismatch_text(mismatches: Sequence[tuple[int, int, int]]) -> str:
    shown = [f"; index {i}: expected {expected}, found {found}" for i, expected, found in mismatches[:SHOWN_MISMATCHES]]
    more = len(mismatches) - SHOWN_MISMATCHES
    return "".join(shown) + (f"; and {more} more" if more > 0 else "")


def _verdict_of(
    findings: list[_Finding],
    run: AgreementRun,
    by_draw: Mapping[int, DrawResult],
    baseline: AgreementBaseline | None,
) -> CheckVerdict:
    counted = [by_draw[d] for d in run.draws_expected if d in by_draw and by_draw[d].agreed is not None]
    agreed = sum(r.agreed or 0 for r in counted) if counted else None
    total = sum(r.total or 0 for r in counted)
    expected = _baseline_sum(counted, baseline)
    order = (Verdict.REGRESSED, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.IMPROVED)
    nothing_found = _Finding(Verdict.OK, "same_predictions", _same_text(run, counted, baseline))
    deciding = min(findings, key=lambda f: order.index(f.verdict), default=nothing_found)
    same = [f for f in findings if f.verdict is deciding.verdict] or [deciding]
    text = " | ".join(f.text for f in same[:SHOWN_FINDINGS])
    if len(same) > SHOWN_FINDINGS:
        text += f" | and {len(same) - SHOWN_FINDINGS} more findings"
    return CheckVerdict(
        check=CHECK,
        verdict=deciding.verdict,
        metric=METRIC,
        unit=UNIT,
        reason_code=deciding.code,
        reason=text,
        value=agreed,
        baseline_value=expected,
        direction=deciding.direction,
        details={
            "total": total,
            "draws": [r.draw for r in counted],
            "baseline": baseline.name if baseline else None,
            "findings": [
                {"verdict": f.verdict.value, "code": f.code, "text": f.text, "draw": f.draw, **f.details}
                for f in findings
            ],
        },
    )


def _baseline_sum(counted: Sequence[DrawResult], baseline: AgreementBaseline | None) -> int | None:
    if baseline is None or not all(r.draw in baseline.draws for r in counted) or not counted:
        return None
    return sum(baseline.draws[r.draw].agreed for r in counted)


def _same_text(run: AgreementRun, counted: Sequence[DrawResult], baseline: AgreementBaseline | None) -> str:
    if baseline is None:
        return ""
    agreed, total = sum(r.agreed or 0 for r in counted), sum(r.total or 0 for r in counted)
    left_out = len(baseline.draws.keys() - set(run.draws_expected))
    uncovered = f" ({left_out} of the baseline's {len(baseline.draws)} draws were not asked for)" if left_out else ""
    draws = "1 draw" if len(counted) == 1 else f"{len(counted)} draws"
    return f"{agreed} of {total} agree on {draws}, as in baseline {baseline.name}{uncovered}"

"""The predictions of a candidate kernel beside those of the pinned one and the frozen ones: exact, no statistics.

One query that is wrong where the pinned kernel is right makes the candidate worse, and so does a replay that differs or
anything that the emulator finds. How far apart the two classes' scores are says what kind of fault it is: next to no
gap, and rounding may have chosen either; a wide one, and no rounding did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from regression.detectors.agreement import DrawResult
from regression.detectors.verdict import CheckVerdict, Problem, Verdict, finite

CHECK = "compare_predictions"
METRIC = "agreed_predictions"
UNIT = "predictions"
SHOWN = 3
ROUNDING_GAP = 1e-3
"""Scores this close may be told apart by rounding. The closest two best scores of the original draws are 6.7e-4 apart,
and 3 of their 11,000 queries lie within this; float32 moves a difference of scores by 2 % of itself at most."""

OWN_FAULT = ("bad_input", "regression")
"""Outcomes that are the candidate's own doing: inputs are frozen and known to be good, so it is a finding of the
emulator, or a class that the candidate could not train."""


@dataclass(frozen=True)
class Differing:
    """One query on which candidate, pinned kernel and frozen prediction are not all the same; None: no prediction.

    The scores are the float64 reference's of the classes that the two kernels chose, ``gap`` pinned less candidate.
    """

    draw: int
    index: int
    candidate: int | None
    pinned: int | None
    frozen: int
    candidate_score: float | None
    pinned_score: float | None
    gap: float | None


@dataclass(frozen=True)
class ComparedPredictions:
    """Draw by draw, what was predicted: on the device by either kernel, and by the candidate on the emulator.

    ``emulated`` is empty where the device is the emulator. ``pinned`` is empty where only the candidate ran: it is then
    held against the frozen predictions. ``differing`` are the first of ``differing_total``.
    """

    draws_expected: tuple[int, ...]
    candidate: tuple[DrawResult, ...]
    pinned: tuple[DrawResult, ...] = ()
    emulated: tuple[DrawResult, ...] = ()
    differing: tuple[Differing, ...] = ()
    differing_total: int = 0
    problem: Problem | None = None


@dataclass(frozen=True)
class _Finding:
    verdict: Verdict
    code: str
    text: str
    draw: int | None = None


def judge_predictions(found: ComparedPredictions) -> CheckVerdict:
    """Worse before unusable, before better, before undecided, before same."""
    candidate, pinned = ({r.draw: r for r in results} for results in (found.candidate, found.pinned))
    findings = [f for result in found.emulated for f in _emulated(result, pinned.get(result.draw))]
    refused = any(f.verdict is Verdict.REGRESSED for f in findings)
    for draw in found.draws_expected:
        if draw in candidate or not refused:  # what the emulator refuses never runs on the device
            findings += _of_draw(draw, candidate.get(draw), pinned.get(draw), found)
    if found.problem and found.problem.outcome not in OWN_FAULT and not (found.pinned or found.emulated):
        text = f"the two kernels were not compared: {found.problem.message}"
        findings.append(_Finding(Verdict.INVALID, found.problem.code, text))
    elif not found.draws_expected:
        nothing = found.problem or Problem("", "no_validations", "and no record says why")
        findings.append(_Finding(Verdict.INVALID, nothing.code, f"no draw was validated: {nothing.message}"))
    return _verdict_of(findings, found, candidate, pinned)


def gap_text(differing: Sequence[Differing]) -> str:
    """Whether rounding can have made the candidate choose otherwise, in one clause; empty where no gap is known."""
    gaps = [gap for d in differing if d.candidate != d.pinned and (gap := finite(d.gap)) is not None]
    if not gaps:
        return ""
    small, nearest, farthest = sum(abs(gap) <= ROUNDING_GAP for gap in gaps), min(map(abs, gaps)), max(map(abs, gaps))
    apart = f"{farthest:.2g}" if nearest == farthest else f"{nearest:.2g} to {farthest:.2g}"
    if small == len(gaps):
        return f"scores {apart} apart: rounding may have chosen either"
    if small == 0:
        return f"scores {apart} apart: not rounding"
    return f"scores {apart} apart, {small} of {len(gaps)} within {ROUNDING_GAP:g}: not rounding alone"


def _emulated(result: DrawResult, pinned: DrawResult | None) -> list[_Finding]:
    """What the emulator found of the candidate; the pinned kernel's predictions are those of the device."""
    found = _own_findings(result)
    if result.agreed is not None:
        found += [f for f in _beside(result.draw, result, pinned) if f.verdict is Verdict.REGRESSED]
    return [replace(f, text=f"on the emulator, {f.text}") for f in found]


def _own_findings(result: DrawResult) -> list[_Finding]:
    """What is wrong with the candidate's own run of one draw, whatever the pinned kernel does."""
    said = f"draw {result.draw}"
    found = []
    if not all(result.replays_equal_eager):
        differing = [n for n, equal in enumerate(result.replays_equal_eager) if not equal]
        text = f"{said}: replay {', '.join(map(str, differing))} differs from the eager run"
        found.append(_Finding(Verdict.REGRESSED, "replay_differs", text, result.draw))
    if result.problem is not None:
        worse = result.problem.outcome in OWN_FAULT
        verdict = Verdict.REGRESSED if worse else Verdict.INVALID
        found.append(_Finding(verdict, result.problem.code, f"{said}: {result.problem.message}", result.draw))
    elif result.agreed is None:
        text = f"{said}: no predictions, and no record says why"
        found.append(_Finding(Verdict.REGRESSED, "draw_missing", text, result.draw))
    return found + _impossible(result, said)


def _impossible(result: DrawResult, said: str) -> list[_Finding]:
    """Everything here goes by which queries are wrong, so that there has to be one for each that is."""
    if result.agreed is None or (result.total or 0) - result.agreed == len({m[0] for m in result.mismatches}):
        return []
    text = f"{said}: {result.agreed} of {result.total} agree, and {len(result.mismatches)} are said to be wrong"
    return [_Finding(Verdict.INVALID, "impossible_counts", text, result.draw)]


def _of_draw(
    draw: int, candidate: DrawResult | None, pinned: DrawResult | None, found: ComparedPredictions
) -> list[_Finding]:
    if candidate is None:
        code, message = (found.problem.code, found.problem.message) if found.problem else ("draw_missing", "no result")
        return [_Finding(Verdict.INVALID, code, f"draw {draw} was not run: {message}", draw)]
    findings = _own_findings(candidate)
    if candidate.agreed is None:
        return findings
    if not candidate.replays_equal_eager:
        findings.append(_Finding(Verdict.INVALID, "no_replays", f"draw {draw}: no replay was compared", draw))
    if pinned is None and not found.pinned:
        return findings + _beside(draw, candidate, None)
    if pinned is None or pinned.agreed is None:
        why = f": {pinned.problem.message}" if pinned and pinned.problem else " and no record says why"
        text = f"draw {draw}: the pinned kernel has no predictions{why}"
        return [*findings, _Finding(Verdict.INVALID, "pinned_not_run", text, draw)]
    if pinned.total != candidate.total:
        text = f"draw {draw}: {candidate.total} predictions, pinned {pinned.total}"
        return [*findings, _Finding(Verdict.INVALID, "total_changed", text, draw)]
    return [*findings, *_impossible(pinned, f"draw {draw}, pinned"), *_beside(draw, candidate, pinned)]


def _beside(draw: int, candidate: DrawResult, pinned: DrawResult | None) -> list[_Finding]:
    """Queries that one of the two has wrong; without a pinned run it is taken to have all of them right."""
    wrong = {index: chosen for index, _, chosen in candidate.mismatches}
    wrong_pinned = {index: chosen for index, _, chosen in pinned.mismatches} if pinned else {}
    total, found = candidate.total, []
    if new := sorted(wrong.keys() - wrong_pinned.keys()):
        fault = "wrong that the pinned kernel has right" if pinned else "not as frozen"
        text = f"draw {draw}: {len(new)} of {total} predictions {fault}"
        found.append(_Finding(Verdict.REGRESSED, "newly_wrong", text, draw))
    if fixed := sorted(wrong_pinned.keys() - wrong.keys()):
        text = f"draw {draw}: {len(fixed)} of {total} predictions right that the pinned kernel has wrong"
        found.append(_Finding(Verdict.IMPROVED, "newly_right", text, draw))
    if other := [index for index in wrong.keys() & wrong_pinned.keys() if wrong[index] != wrong_pinned[index]]:
        text = f"draw {draw}: {len(other)} of {total} predictions wrong in both kernels, in another way in each"
        found.append(_Finding(Verdict.INCONCLUSIVE, "otherwise_wrong", text, draw))
    return found + ([] if found or pinned is None else _hashes(draw, candidate, pinned))


def _hashes(draw: int, candidate: DrawResult, pinned: DrawResult) -> list[_Finding]:
    """The lists of what is wrong say the same; so must the hashes over everything."""
    hashes = (candidate.predictions_sha256, pinned.predictions_sha256)
    if None in hashes or hashes[0] == hashes[1]:
        return []
    text = f"draw {draw}: the same queries are wrong, but the predictions are other ones (sha256 of either differs)"
    return [_Finding(Verdict.REGRESSED, "predictions_changed", text, draw)]


_ORDER = (Verdict.REGRESSED, Verdict.INVALID, Verdict.IMPROVED, Verdict.INCONCLUSIVE)
"""Wrong otherwise than before is undecided only where nothing else became right."""


def _verdict_of(
    findings: Sequence[_Finding],
    found: ComparedPredictions,
    candidate: Mapping[int, DrawResult],
    pinned: Mapping[int, DrawResult],
) -> CheckVerdict:
    ran = candidate or {result.draw: result for result in found.emulated}
    counted = [ran[d] for d in found.draws_expected if d in ran and ran[d].agreed is not None]
    agreed = sum(r.agreed or 0 for r in counted) if counted else None
    nothing = _Finding(Verdict.OK, "same_predictions", _same_text(counted, found))
    deciding = min(findings, key=lambda f: _ORDER.index(f.verdict), default=nothing)
    same = [f for f in findings if f.verdict is deciding.verdict] or [deciding]
    text = " | ".join(f.text for f in same[:SHOWN])
    text += f" | and {len(same) - SHOWN} more findings" if len(same) > SHOWN else ""
    gaps = gap_text(found.differing)
    beside = [pinned.get(r.draw) for r in counted]
    known = [r.agreed for r in beside if r is not None and r.agreed is not None]
    return CheckVerdict(
        check=CHECK,
        verdict=deciding.verdict,
        metric=METRIC,
        unit=UNIT,
        reason_code=deciding.code,
        reason=f"{text}; {gaps}" if gaps else text,
        value=agreed,
        baseline_value=sum(known) if counted and len(known) == len(counted) else None,
        direction={Verdict.REGRESSED: "lower", Verdict.IMPROVED: "higher"}.get(deciding.verdict),
        details=_details(findings, found, counted),
    )


def _details(findings: Sequence[_Finding], found: ComparedPredictions, counted: Sequence[DrawResult]) -> dict[str, Any]:
    return {
        "total": sum(r.total or 0 for r in counted),
        "draws": [r.draw for r in counted],
        "differing": [asdict(d) for d in found.differing[:SHOWN]],
        "differing_total": found.differing_total,
        "findings": [{"verdict": f.verdict.value, "code": f.code, "text": f.text, "draw": f.draw} for f in findings],
    }


def _same_text(counted: Sequence[DrawResult], found: ComparedPredictions) -> str:
    total, draws = sum(r.total or 0 for r in counted), "1 draw" if len(counted) == 1 else f"{len(counted)} draws"
    wrong = total - sum(r.agreed or 0 for r in counted)
    like = "those of the pinned kernel" if found.pinned else "the frozen ones"
    rest = f", {wrong} of them as wrong as before" if wrong else ""
    return f"{total} of {total} predictions on {draws} are {like}{rest}"

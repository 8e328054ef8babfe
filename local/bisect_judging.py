"""One commit of a search: its kernels against those of the good end, and on which side it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu_tasks.records import CandidateRecord, ComparisonRecord, Outcome
from local import first_look, runs
from local.bisect_state import BAD, GOOD, SKIPPED, Search, Step
from local.errors import LauncherError, Usage
from local.first_look import Told
from local.paths import Home
from local.runs import COMPARISON
from local.stack import Stack
from local.try_command import compare

AGREEMENT, MODELLED = "agreement", "modelled_cycles"
MEASURED = {"cuda_ms": ("compare_time", "ms"), "adjusted_mj": ("compare_energy", "mj")}
"""Check and unit of each metric that needs a device."""
DECIDED = ("regressed", "improved", "ok")


@dataclass(frozen=True)
class Seen:
    """What was found of a commit before it is said which side it is on; ``value`` None: it cannot be judged."""

    value: float | None
    told: str
    bundle: str | None
    low: float | None = None
    high: float | None = None


def see(home: Home, search: Search, commit: str, held: Stack | None) -> Seen:
    """Try one commit against the good end.

    A commit without kernels that can be built and launched cannot be judged. Raises ``LauncherError`` where the failure
    is not the commit's.
    """
    try:
        candidate = first_look.freeze(home, commit, variant=search.variant, against=search.against, quiet=True)
        known = next((step for step in search.steps if step.bundle == candidate.bundle), None)
        if known is not None:
            return Seen(known.value, known.told, candidate.bundle)
        request = runs.requested(home, _params(search, candidate), COMPARISON)
        record = first_look.look(home, candidate, payload=request.payload, draws=request.draws, quiet=True)
    except LauncherError as error:
        if error.outcome is Outcome.BAD_INPUT:
            return Seen(None, str(error), None)
        raise
    told = first_look.told(record)
    if search.metric == AGREEMENT:
        return _agreement(record, told, candidate.bundle)
    if told.is_worse:
        return Seen(None, told.checks["compare_predictions"].reason, candidate.bundle)
    if search.metric == MODELLED:
        return _modelled(record, candidate.bundle)
    return _measured(search, candidate, held)


def side(search: Search, seen: Seen) -> str:
    """Good or bad by the end that the value is nearer to; skipped where an interval reaches over the middle."""
    if seen.value is None:
        return SKIPPED
    known = next((step for step in search.steps if step.bundle == seen.bundle and seen.bundle), None)
    if known is not None:
        return known.judged
    ends = [step.value for step in search.steps[:2]]
    if len(ends) < 2 or ends[0] is None or ends[1] is None:
        raise LauncherError("bisect: expected both ends to be judged before any commit between them")
    middle, upwards = (ends[0] + ends[1]) / 2, ends[1] > ends[0]
    low, high = (seen.value if edge is None else edge for edge in (seen.low, seen.high))
    if low <= middle <= high and low < high:
        return SKIPPED
    return BAD if (seen.value > middle) == upwards else GOOD


def step_of(search: Search, commit: str, seen: Seen) -> Step:
    """The step that this makes."""
    judged = side(search, seen)
    told = seen.told
    if judged == SKIPPED and seen.value is not None:
        told = f"{told}: neither nearer to the good end nor to the bad one; more --blocks would tell"
    return Step(commit, judged, seen.value, told, seen.bundle)


def _agreement(record: ComparisonRecord, told: Told, bundle: str | None) -> Seen:
    """0 where the predictions are as right as those of the good end, 1 where they are worse."""
    line = told.checks["compare_predictions"]
    if line.verdict not in DECIDED:
        return Seen(None, line.reason, bundle)
    seen = [*record.emulated, *record.validations]
    total = sum(validation.total or 0 for validation in seen)
    agreed = sum(validation.agreed or 0 for validation in seen)
    worse = line.verdict == "regressed"
    count = f"{agreed} of {total} predictions agree"
    if not worse:
        return Seen(0.0, count, bundle)
    return Seen(1.0, f"{count}: {line.reason}" if total else line.reason, bundle)  # a race stops it before any counts


def _modelled(record: ComparisonRecord, bundle: str | None) -> Seen:
    if record.candidate_static is None:
        return Seen(None, "no critical path could be modelled", bundle)
    cycles = record.candidate_static.modelled_cycles
    return Seen(float(cycles), f"{cycles:,} cycles (modelled)", bundle)


def _measured(search: Search, candidate: CandidateRecord, held: Stack | None) -> Seen:
    """The difference from the good end; a kernel that is the good end's differs by nothing.

    Raises ``Usage`` where the device has no such figure, and ``LauncherError`` where the failure is not the commit's.
    """
    check, unit = MEASURED[search.metric]
    if candidate.equals_pinned:
        return Seen(0.0, "the kernel of the good commit", candidate.bundle)
    if held is None:
        raise LauncherError(f"bisect --metric {search.metric}: expected a stack to measure with, found none")
    ended, told = compare(held, _params(search, candidate))
    if told is not None and told.checks[check].verdict == "unavailable":
        raise Usage(_no_figure(search.metric, told.checks[check].reason))
    if told is None or told.checks[check].verdict not in (*DECIDED, "inconclusive"):
        why = told.checks[check].reason if told else f"the run ended without a comparison ({ended.result.verdict})"
        outcome = next(outcome for outcome in Outcome if outcome.exit_code == ended.result.exit_code)
        if outcome in (Outcome.OK, Outcome.REGRESSION, Outcome.BAD_INPUT):
            return Seen(None, why, candidate.bundle)
        raise LauncherError(why, outcome)
    figures = told.figures[check]
    if "energy_trust" in figures:  # what nothing vouches for decides nothing
        return Seen(None, told.checks[check].reason, candidate.bundle)
    value, low, high = (figures[f"{name}_{unit}"] for name in ("effect", "low", "high"))
    return Seen(value, told.checks[check].reason, candidate.bundle, low, high)


def _no_figure(metric: str, reason: str) -> str:
    """What to do where the device has no such figure: no other commit would have one there, either."""
    other = "; --metric cuda_ms needs no energy counter" if metric == "adjusted_mj" else ""
    return (
        f"bisect --metric {metric}: expected a device that has this figure, found none: {reason}. --continue goes on "
        f"where there is one, --reset forgets the search{other}"
    )


def _params(search: Search, candidate: CandidateRecord) -> dict[str, Any]:
    given = {
        "candidate": candidate.bundle,
        "against": candidate.against_bundle,
        "device": search.device,
        "rounds": 0,
        "label": f"bisect {candidate.spec[:12]}",
        "kernel_changed": not candidate.equals_pinned,
        **({} if search.blocks is None else {"blocks": search.blocks}),
    }
    return {**given, **search.params}

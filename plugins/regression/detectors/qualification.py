"""Qualification: whether a workload still computes what an independent implementation of it does.

Each check holds or does not, and needs no baseline for that. What the accepted run is needed for is completeness: a
case that is gone, or that makes fewer checks than it did, proves less and is never fine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regression.detectors.findings import Found, names, text_of, worst_of
from regression.detectors.verdict import CheckVerdict, Problem, Verdict, finite

CHECK = "qualification"
METRIC = "checks_that_hold"
UNIT = "checks"
NOT_HERE = ("no_qualification",)
"""Codes of records that say that the workload has no such thing."""


@dataclass(frozen=True)
class Case:
    """One case in ``checks`` single comparisons; ``failures`` names those that do not hold."""

    name: str
    passed: bool
    checks: int
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class QualificationRun:
    """The qualification of a run; ``checks`` and ``passed`` are None where none was made, and ``problem`` says why.

    ``computed_on`` is what it ran on, ``maximum_abs_error`` its largest difference (None: not known).
    """

    passed: bool | None
    checks: int | None
    cases: tuple[Case, ...]
    computed_on: str | None = None
    maximum_abs_error: float | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    problem: Problem | None = None


@dataclass(frozen=True)
class QualificationBaseline:
    """The qualification of an accepted run: how many checks each case makes. ``name`` is for messages."""

    name: str
    cases: Mapping[str, int]


def judge_qualification(
    run: QualificationRun | None, baseline: QualificationBaseline | None, problem: Problem | None = None
) -> CheckVerdict:
    """Judge the qualification of a run (None: it has none); ``problem`` is the run's own.

    A check that does not hold is ``regressed``. One that was not made is ``invalid``, except for a workload that has
    no qualification: that is ``unavailable``.
    """
    if run is None:
        found = problem or Problem("invalid_measurement", "no_qualification_record", "no record says why")
        return _verdict(None, [Found(Verdict.INVALID, found.code, f"the run was not qualified: {found.message}")])
    findings = [*_failures(run), *_not_made(run), *_vanished(run, baseline)]
    if not findings:
        counted = f"{run.checks} of {run.checks} checks hold on {run.computed_on or 'an unknown device'}"
        beside = f", as many as in baseline {baseline.name}" if baseline and _checks(baseline) == run.checks else ""
        findings = [Found(Verdict.OK, "qualified", counted + beside)]
    return _verdict(run, findings, baseline)


def _failures(run: QualificationRun) -> list[Found]:
    failing = [case for case in run.cases if not case.passed or case.failures]
    if failing:
        failed = sum(max(1, len(case.failures)) for case in failing)
        told = [f"{case.name}: {what}" for case in failing for what in case.failures or ("does not hold",)]
        text = f"{failed} of {run.checks or failed} checks do not hold: {names(told)}"
        return [Found(Verdict.REGRESSED, "not_qualified", text, "lower", {"failures": told})]
    if run.passed is False:
        return [Found(Verdict.REGRESSED, "not_qualified", "not all checks hold, and no record says which", "lower")]
    return []


def _not_made(run: QualificationRun) -> list[Found]:
    if run.problem and run.problem.code in NOT_HERE:
        return [Found(Verdict.UNAVAILABLE, run.problem.code, run.problem.message)]
    if run.problem:
        text = f"the checks could not be made: {run.problem.message}"
        return [Found(Verdict.INVALID, run.problem.code, text)]
    if run.passed is None or not run.checks or not run.cases:
        return [Found(Verdict.INVALID, "no_checks", "no check was made and no record says why")]
    counted = sum(case.checks for case in run.cases)
    if counted != run.checks or any(case.checks <= 0 for case in run.cases):
        text = f"the cases make {counted} checks, the record says {run.checks}: one of them cannot be"
        return [Found(Verdict.INVALID, "impossible_counts", text)]
    return []


def _vanished(run: QualificationRun, baseline: QualificationBaseline | None) -> list[Found]:
    if baseline is None or run.problem:
        return []
    found = {case.name: case.checks for case in run.cases}
    missing = sorted(baseline.cases.keys() - found.keys())
    fewer = sorted(name for name, checks in found.items() if checks < baseline.cases.get(name, 0))
    told = [f"{name} was not checked" for name in missing]
    told += [f"{name}: {found[name]} checks, {baseline.cases[name]} there" for name in fewer]
    if not told:
        return []
    text = f"less was checked than in baseline {baseline.name}: {'; '.join(told)}"
    return [Found(Verdict.INVALID, "checks_missing", text, "lower", {"missing": missing, "fewer": fewer})]


def _verdict(
    run: QualificationRun | None, findings: list[Found], baseline: QualificationBaseline | None = None
) -> CheckVerdict:
    deciding, held, cases = worst_of(findings), _held(run), run.cases if run else ()
    return CheckVerdict(
        check=CHECK,
        verdict=deciding.verdict,
        metric=METRIC,
        unit=UNIT,
        reason_code=deciding.code,
        reason=text_of(findings),
        value=held,
        baseline_value=_checks(baseline) if baseline else None,
        direction=deciding.direction,
        details={
            "checks": run.checks if run else None,
            "computed_on": run.computed_on if run else None,
            "maximum_abs_error": finite(run.maximum_abs_error) if run else None,
            "tolerance": dict(run.tolerance) if run else {},
            "cases": {case.name: {"passed": case.passed, "checks": case.checks} for case in cases},
            "baseline": baseline.name if baseline else None,
            "findings": [found.as_json() for found in findings],
        },
    )


def _held(run: QualificationRun | None) -> int | None:
    if run is None or run.checks is None:
        return None
    failed = sum(max(len(case.failures), not case.passed) for case in run.cases)
    return max(0, run.checks - failed)


def _checks(baseline: QualificationBaseline) -> int:
    return sum(baseline.cases.values())

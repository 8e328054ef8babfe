"""The outcome of a run from its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpu_tasks.energy.gates import failed as failed_gates
from gpu_tasks.programs.console import in_short
from gpu_tasks.programs.parts import Part
from gpu_tasks.records import GateResult, Outcome, Reason, RoundRecord, TelemetryRecord

FEWEST_ROUNDS = 3
"""Valid rounds that a run needs, as far as so many were asked for, and more than half of them: a few invalid ones are
left out, not made up for."""

NEVER_LEFT_OUT = "output_not_verified"
"""A round with wrong output is no disturbed measurement: something computed wrongly."""


def judge(parts: list[Part], rounds_expected: int, gates: Sequence[GateResult]) -> tuple[Outcome, Reason | None]:
    """Outcome of the run and its reason: the worst of the parts, as ``Outcome.worst`` orders them.

    The reason is that of the first part with that outcome. A part that never ran is explained when a part of an
    earlier stage did not end well (a verification mismatch stops the validations, say); otherwise it counts as an
    infrastructure failure. Either way the reason names the parts that are missing. Rounds that are invalid are left
    out as long as enough valid ones remain, and explain nothing; a failed gate makes the measurement invalid whatever
    its rounds say.
    """
    missing = [part for part in parts if part.outcome is None]
    failed = [part for part in parts if part.outcome not in (None, Outcome.OK) and not _may_be_left_out(part)]
    first_failure = min((part.stage for part in failed), default=None)
    unexplained = [part for part in missing if first_failure is None or part.stage <= first_failure]
    counted = [part for part in parts if part.outcome is not None and not _may_be_left_out(part)]
    outcomes = [part.outcome for part in counted if part.outcome is not None]
    if unexplained:
        outcomes.append(Outcome.INFRASTRUCTURE_FAILURE)
    measurement = _measurement_problem(parts, rounds_expected, gates)
    if measurement is not None:
        outcomes.append(Outcome.INVALID_MEASUREMENT)
    worst = Outcome.worst(outcomes)
    if worst is Outcome.OK:
        return worst, None
    not_run = f"did not run: {in_short([part.name for part in missing])}" if missing else None
    culprit = next((part for part in counted if part.outcome is worst), None)
    if culprit is not None and culprit.reason is not None:
        found = Reason(culprit.reason.code, f"{culprit.name}: {culprit.reason.message}")
    elif worst is Outcome.INVALID_MEASUREMENT and measurement is not None:
        found = measurement
    else:
        return worst, Reason("parts_missing", not_run or "a part failed without a reason")
    return worst, Reason(found.code, found.message + (f"; {not_run}" if not_run else ""))


def _may_be_left_out(part: Part) -> bool:
    """A disturbed round, and what telemetry found: the gates of the run say that."""
    if part.outcome is not Outcome.INVALID_MEASUREMENT:
        return False
    if isinstance(part.record, TelemetryRecord):
        return bool(part.record.gates)
    code = part.reason.code if part.reason else ""
    return isinstance(part.record, RoundRecord) and code != NEVER_LEFT_OUT


def _measurement_problem(parts: list[Part], expected: int, gates: Sequence[GateResult]) -> Reason | None:
    """Why the rounds as a whole cannot be used: a failed gate, or too few of them valid."""
    wrong = failed_gates(gates)
    if wrong:
        names = ", ".join(dict.fromkeys(gate.gate for gate in wrong))
        details = "; ".join(gate.reason.message for gate in wrong if gate.reason)
        return Reason("gate_failed", f"telemetry gate {names}: {details}")
    rounds = [part.record for part in parts if isinstance(part.record, RoundRecord)]
    invalid = [record for record in rounds if not record.valid]
    valid = len(rounds) - len(invalid)
    if not invalid or valid >= max(min(FEWEST_ROUNDS, expected), expected // 2 + 1):
        return None
    counts = Counter(record.reason.code for record in invalid if record.reason)
    told = ", ".join(f"{count} {code}" for code, count in counts.most_common())
    first = next((record.reason.message for record in invalid if record.reason), "")
    code = "too_few_valid_rounds" if valid else "no_valid_round"
    return Reason(code, f"{valid} of {expected} rounds are valid ({told}); the first: {first}")

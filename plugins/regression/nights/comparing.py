"""A comparison of two kernels for people: its verdicts from a record alone, and the table that shows them.

The verdicts of a stored run come from the database, by the same detector; these are for what is not stored, or not yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_tasks.records import ComparisonRecord, KernelIdentity, Outcome, Reason, ValidationRecord
from regression.detectors import CheckVerdict, DrawResult, Problem, Verdict
from regression.detectors.compared_predictions import CHECK as PREDICTIONS
from regression.detectors.compared_predictions import ComparedPredictions, Differing, gap_text
from regression.detectors.comparison import (
    ENERGY,
    TIME,
    KernelComparison,
    MetricRule,
    amount,
    judge_comparison,
    percent_digits,
)
from regression.detectors.paired import BlockPair
from regression.nights.table import aligned

SHOWN_DIFFERING = 10
NAMES = {PREDICTIONS: "predictions", TIME.check: "time", ENERGY.check: "energy"}


def verdicts_of(record: ComparisonRecord, validations: Sequence[ValidationRecord] = ()) -> list[CheckVerdict]:
    """Verdicts on predictions, time and energy. ``validations`` are the run's own where the record is part of one."""
    return judge_comparison(comparison_of_record(record, validations))


def comparison_of_record(record: ComparisonRecord, validations: Sequence[ValidationRecord] = ()) -> KernelComparison:
    """A record as the detector takes it."""
    own = [*record.validations, *validations]
    every = [*own, *record.pinned_validations, *record.emulated]
    problem = _problem(record.outcome, record.reason)
    return KernelComparison(
        predictions=ComparedPredictions(
            draws_expected=tuple(sorted({validation.draw for validation in every})),
            candidate=tuple(map(_draw, own)),
            pinned=tuple(map(_draw, record.pinned_validations)),
            emulated=tuple(map(_draw, record.emulated)),
            differing=tuple(Differing(**vars(found)) for found in record.differing),
            differing_total=record.differing_total,
            problem=problem,
        ),
        time=tuple(BlockPair(b.candidate_cuda_ms, b.pinned_cuda_ms, b.valid) for b in record.blocks),
        energy=tuple(BlockPair(b.candidate_mj, b.pinned_mj, b.valid) for b in record.blocks),
        not_measured=_as_problem(Outcome.OK, record.not_measured),
        energy_trust=record.energy_trust,
        energy_trust_reason=record.energy_trust_reason.message if record.energy_trust_reason else None,
        problem=problem,
    )


def comparison_table(record: ComparisonRecord, verdicts: Sequence[CheckVerdict]) -> str:
    """One line a metric, the reasons, what is modelled of both kernels, and the predictions that differ."""
    head = ("metric", "verdict", "candidate", "pinned", "effect", "95 % interval", "detectable", "blocks")
    lines = aligned([head, *map(_metric, verdicts)])
    lines += ["", *aligned(_reasons([found for found in verdicts if _says_more(found)]))]
    lines += _static(record)
    lines += _differing(record)
    lines += ["", f"candidate: {_kernel(record.candidate)}", f"pinned:    {_kernel(record.pinned)}"]
    return "\n".join(lines)


def _draw(record: ValidationRecord) -> DrawResult:
    """A disagreement is a finding, which the counts show, and not a problem."""
    counted = record.agreed is not None and record.outcome is Outcome.REGRESSION
    return DrawResult(
        draw=record.draw,
        total=record.total,
        agreed=record.agreed,
        mismatches=tuple((m.index, m.expected, m.found) for m in record.mismatches),
        predictions_sha256=record.predictions_int32_sha256,
        replays_equal_eager=tuple(record.replays_equal_eager),
        problem=None if counted else _problem(record.outcome, record.reason),
    )


def _problem(outcome: Outcome, reason: Reason | None) -> Problem | None:
    return None if outcome is Outcome.OK else _as_problem(outcome, reason or Reason(outcome.value, outcome.value))


def _as_problem(outcome: Outcome, reason: Reason | None) -> Problem | None:
    return Problem(outcome.value, reason.code, reason.message) if reason else None


def _says_more(found: CheckVerdict) -> bool:
    """Whether the reason says what its line does not: why there is no answer, or that it does not matter."""
    plain = {Verdict.REGRESSED: "higher", Verdict.IMPROVED: "lower", Verdict.OK: "within_margin"}
    return found.check == PREDICTIONS or plain.get(found.verdict) != found.reason_code


def _reasons(told: Sequence[CheckVerdict]) -> list[tuple[str, str]]:
    """A line for each reason; what has the same one shares it."""
    names: dict[str, list[str]] = {}
    for found in told:
        names.setdefault(found.reason, []).append(NAMES[found.check])
    return [(f"{', '.join(of)}:", reason) for reason, of in names.items()]


def _metric(found: CheckVerdict) -> tuple[str, ...]:
    """Both figures and their difference; the rest in percent of the pinned one, that a line fits on a screen."""
    name, figures = NAMES[found.check], found.details
    word = figures["word"]
    if found.check == PREDICTIONS:
        differ = f"{figures['differing_total']} of {figures['total']} differ"
        return (name, word, "-", "-", differ if figures["total"] else "-", "-", "-", "-")
    rule = {TIME.check: TIME, ENERGY.check: ENERGY}[found.check]
    if figures[rule.key("effect")] is None:
        return (name, word, "-", "-", "-", "-", "-", _blocks(figures))
    both = (f"{value:.6g} {rule.unit}" for value in (found.value, found.baseline_value))
    effect = amount(figures[rule.key("effect")], figures["effect_percent"], rule.unit)
    return (name, word, *both, effect, _interval(figures, rule), _detectable(figures, rule), _blocks(figures))


def _interval(figures: dict[str, Any], rule: MetricRule) -> str:
    low, high = figures["low_percent"], figures["high_percent"]
    if low is None:
        return f"{figures[rule.key('low')]:+.3g} to {figures[rule.key('high')]:+.3g} {rule.unit}"
    digits = percent_digits(low, high)
    return f"{low:+.{digits}f} to {high:+.{digits}f} %"


def _detectable(figures: dict[str, Any], rule: MetricRule) -> str:
    percent = figures["detectable_percent"]
    if percent is None:
        return f"{figures[rule.key('detectable')]:.3g} {rule.unit}"
    return f"{percent:.{percent_digits(percent)}f} %"


def _blocks(figures: dict[str, Any]) -> str:
    used, out = figures["blocks"], figures["blocks_left_out"]
    return f"{used} ({out} left out)" if out else str(used or "-")


def _static(record: ComparisonRecord) -> list[str]:
    """What is counted in the texts or modelled: no measurement, and never a verdict."""
    candidate, pinned = record.candidate_static, record.pinned_static
    if candidate is None or pinned is None:
        return []
    rows = [
        ("critical path, cycles", candidate.modelled_cycles, pinned.modelled_cycles, "modelled"),
        ("instructions", candidate.instructions, pinned.instructions, "counted"),
        ("PTX lines", candidate.ptx_lines, pinned.ptx_lines, "counted"),
        ("shared memory, bytes a block", candidate.shared_bytes, pinned.shared_bytes, "counted"),
    ]
    shown = [(name, f"{own:,}", f"{other:,}", _change(own, other), how) for name, own, other, how in rows]
    return ["", *aligned([("not measured", "candidate", "pinned", "change", "how"), *shown])]


def _change(own: int, other: int) -> str:
    return f"{100 * (own - other) / other:+.1f} %" if other else "-"


def _differing(record: ComparisonRecord) -> list[str]:
    """The first predictions that differ, with both scores: near each other, and it may be rounding."""
    if not record.differing:
        return []
    shown = record.differing[:SHOWN_DIFFERING]
    head = ("draw", "index", "candidate", "pinned", "frozen", "candidate score", "pinned score", "gap")
    rows = [
        (
            *(str(d.draw), str(d.index), _class(d.candidate), _class(d.pinned), str(d.frozen)),
            *(_score(d.candidate_score), _score(d.pinned_score), "-" if d.gap is None else f"{d.gap:+.2e}"),
        )
        for d in shown
    ]
    total = record.differing_total
    count = "1 prediction differs" if total == 1 else f"{total} predictions differ"
    first = f", the first {len(shown)} of them" if total > len(shown) else ""
    gaps = gap_text([Differing(**vars(found)) for found in record.differing])
    return ["", f"{count}{first}:", *aligned([head, *rows]), *([gaps] if gaps else [])]


def _class(found: int | None) -> str:
    return "-" if found is None else str(found)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _kernel(kernel: KernelIdentity | None) -> str:
    if kernel is None:
        return "not known"
    return f"{kernel.variant}, PTX sha256 {kernel.ptx_sha256}" if kernel.ptx_sha256 else f"{kernel.variant}, no PTX"

"""Which signals a judged run gives. Pure: what its checks found in, signals out.

One cause is one signal. The checks of a group (its round spread and its histories) are one; parts that cannot be used
for the same reason are one; and a night that could not be run at all is one, whatever its checks say of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu_tasks.records import Outcome
from regression.alerts import texts
from regression.alerts.judged import Check, JudgedRun
from regression.alerts.plain import one_line
from regression.alerts.signal import (
    AGREEMENT,
    ENERGY,
    ENVIRONMENT,
    MEMORY,
    MISSING,
    NIGHT,
    QUALIFICATION,
    REPEATABILITY,
    TIME,
    Signal,
)
from regression.detectors.environment import DEVICE, DRIVER, Difference, in_words

GROUPS = {
    AGREEMENT: ("agreement",),
    QUALIFICATION: ("qualification",),
    REPEATABILITY: ("repeatability",),
    ENERGY: ("energy", "energy_history", "gross_energy_history", "idle_power_history"),
    TIME: ("time", "time_history", "wall_time_history"),
    MEMORY: ("memory",),
}
"""Checks of each metric, the one that speaks for it first."""
REGRESSED, INVALID, FINE = "regressed", "invalid", ("ok", "improved")
BROKEN_NIGHT = {
    Outcome.INFRASTRUCTURE_FAILURE.value: MISSING,
    Outcome.VERIFICATION_MISMATCH.value: "changed",
    Outcome.BAD_INPUT.value: "changed",
}
"""Verdicts of a night that says nothing of the kernel, and the direction of its alert."""
SCHEDULED = ("scheduled", "backfill")


def signals_of(run: JudgedRun, airflow_url: str | None = None) -> list[Signal]:
    """The signals of a run, one for each metric at most. ``airflow_url`` is where Airflow's pages are, if known.

    A run that tries a kernel gives none: whoever tries it is told by its comparison. A rehearsal is called one in its
    headline, and so in the subject: nobody gets up for a made-up fault.
    """
    if run.candidate:
        return []
    found = [*_night(run), *_groups(run), *_environment(run)]
    link = texts.run_link(airflow_url, run.dag_id, run.dag_run_id)
    logs = [("logs", f"./nightly logs {run.dag_run_id}")]
    begins = "rehearsal: " if run.inject else ""
    return [replace(s, headline=begins + s.headline, facts=(*s.facts, *logs, *link)) for s in found]


def is_fine(run: JudgedRun, metric: str) -> bool:
    """Whether the run was judged by ``metric`` and found without fault: what an alert is resolved by."""
    if run.candidate:
        return False
    if metric == NIGHT:
        return run.trigger in SCHEDULED and run.verdict is not None and run.verdict not in BROKEN_NIGHT
    if metric == ENVIRONMENT:
        return any(c.name == ENVIRONMENT and c.verdict in FINE for c in run.checks) and not _environment(run)
    checks = [check for check in run.checks if check.name in GROUPS.get(metric, ())]
    return any(c.verdict in FINE for c in checks) and not any(c.verdict in (REGRESSED, INVALID) for c in checks)


def differences(checks: Sequence[Check]) -> list[Difference]:
    """In what the run was not like its baseline, as the check of the environment stored it."""
    return [
        Difference(**stored)
        for check in checks
        if check.name == ENVIRONMENT
        for stored in check.details.get("differences", ())
    ]


def _night(run: JudgedRun) -> list[Signal]:
    if run.verdict not in BROKEN_NIGHT or run.trigger not in SCHEDULED:
        return []
    also = [c for c in run.checks if c.verdict == INVALID and c.plain_reason != run.reason]
    lines = [(c.name.replace("_", " "), f"{c.plain_reason} [{c.reason_code}]") for c in also]
    facts = [("device", run.device)] if run.device else []
    reason = [("reason", f"{run.reason or 'none was recorded'} [{run.reason_code}]")] if run.reason_code else []
    return [
        Signal(
            workload=run.workload,
            metric=NIGHT,
            direction=BROKEN_NIGHT[run.verdict],
            outcome=run.verdict,
            headline=one_line(texts.night_headline(run)),
            facts=(*facts, *reason, *lines, *texts.run_facts(run)),
            run_id=run.run_id,
        )
    ]


def _groups(run: JudgedRun) -> list[Signal]:
    reds = {metric: _red(run, names) for metric, names in GROUPS.items()}
    told: list[tuple[str, list[Check]]] = []
    for metric, red in reds.items():
        same = [checks for _, checks in told if red and _one_cause(checks[0], red[0])]
        if same:
            same[0].extend(red)
        elif red:
            told.append((metric, red))
    return [_signal(run, metric, red) for metric, red in told]


def _red(run: JudgedRun, names: Sequence[str]) -> list[Check]:
    """Red checks of a group, regressions first; what a broken night could not measure is not theirs to tell."""
    red = [check for name in names for check in run.checks if check.name == name]
    wanted = (REGRESSED,) if run.verdict in BROKEN_NIGHT else (REGRESSED, INVALID)
    return sorted((c for c in red if c.verdict in wanted), key=lambda c: wanted.index(c.verdict))


def _one_cause(one: Check, other: Check) -> bool:
    return one.verdict == other.verdict == INVALID and one.reason_code == other.reason_code


def _signal(run: JudgedRun, metric: str, red: list[Check]) -> Signal:
    first, changed = red[0], differences(run.checks)
    is_regression = first.verdict == REGRESSED
    has_figures = first.value is not None or first.baseline_value is not None
    outcome = Outcome.REGRESSION if is_regression else Outcome.INVALID_MEASUREMENT
    return Signal(
        workload=run.workload,
        metric=metric,
        direction=(first.direction or "changed") if is_regression else MISSING,
        outcome=outcome.value,
        headline=one_line(texts.headline(first)),
        device_id=run.device_id,
        device=run.device,
        facts=tuple(texts.facts(first, run, red[1:], changed)),
        run_id=run.run_id,
        value=first.value,
        baseline_value=first.baseline_value,
        unit=first.unit if has_figures else None,
        baseline_id=first.baseline_id,
    )


def _environment(run: JudgedRun) -> list[Signal]:
    """What changed around the kernel, where that says something: in comparison with a baseline of the same device."""
    found = differences(run.checks)
    told = [difference for difference in found if difference.new_segment or difference.part == DRIVER]
    if not told or any(difference.part == DEVICE for difference in found):
        return []
    (check,) = (check for check in run.checks if check.name == ENVIRONMENT)
    others = [difference for difference in found if difference not in told]
    accepted = [("accepted", check.baseline)] if check.baseline else []
    segment = (
        "figures from before and after are not compared; once they look right: ./nightly baseline accept RUN"
        if any(difference.new_segment for difference in told)
        else "figures go on being compared with the same baseline"
    )
    also = [("changed too", in_words(others, texts.SHOWN_DIFFERENCES))] if others else []
    return [
        Signal(
            workload=run.workload,
            metric=ENVIRONMENT,
            direction="changed",
            outcome="environment_change",
            headline=one_line(texts.environment_headline(told)),
            device_id=run.device_id,
            device=run.device,
            facts=(
                *accepted,
                ("means", segment),
                *also,
                *texts.same_kernel(run, found),
                *texts.how_it_ended(run),
                *texts.run_facts(run),
            ),
            run_id=run.run_id,
            baseline_id=check.baseline_id,
        )
    ]

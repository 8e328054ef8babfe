"""The verdict of a whole run: computed once by its report, read by everyone else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, select

from gpu_tasks.records import BadInput, Outcome, run_id_for
from regression.detectors import Verdict
from regression.detectors.compared_predictions import CHECK as COMPARED_PREDICTIONS
from regression.detectors.repeatability import CHECK as REPEATABILITY
from regression.results import tables
from regression.results.beyond_predictions import outcomes_beyond_predictions
from regression.results.gates import GateLine, gates_not_passed
from regression.results.history import SUBJECT, find_run

INCONCLUSIVE = "inconclusive"
FINE = {Verdict.OK.value, Verdict.IMPROVED.value}
ENVIRONMENT, HISTORY = "environment", "_history"
OUTCOME_OF_CHECK = {
    Verdict.REGRESSED.value: Outcome.REGRESSION,
    Verdict.INVALID.value: Outcome.INVALID_MEASUREMENT,
}


@dataclass(frozen=True)
class Look:
    """What a check said of the first rounds alone."""

    verdict: str
    reason: str


@dataclass(frozen=True)
class CheckLine:
    """Verdict of one check at its last step and its one-line reason; ``first`` is the first look, if there are two."""

    verdict: str
    reason: str
    first: Look | None = None

    def as_json(self) -> dict[str, Any]:
        """Verdict and reason, and the first look where there is one."""
        told = {"verdict": self.verdict, "reason": self.reason}
        return told | ({"first_look": asdict(self.first)} if self.first else {})


@dataclass(frozen=True)
class FigureLine:
    """One energy figure over the valid rounds of the run, mJ a replay."""

    figure: str
    subject: str
    rounds: int
    median_mj: float
    sample_sd_mj: float | None
    detectable_mj: float | None


@dataclass(frozen=True)
class RunVerdict:
    """Verdict of a run. ``agreed`` of ``total`` predictions equal the frozen ones; None when none were made.

    ``variant`` and ``ptx_sha256`` say which kernels ran (None: no kernels, no PTX). ``gates`` are those that did not
    pass; ``figures`` are empty where no energy was measured. ``confirmation_rounds`` is how many were planned after a
    look at the first rounds, None where nobody looked; ``confirmation_reason`` says why.
    """

    run_id: str
    dag_run_id: str
    workload: str | None
    device: str | None
    verdict: str
    checks: dict[str, CheckLine]
    agreed: int | None
    total: int | None
    exit_code: int
    variant: str | None = None
    ptx_sha256: str | None = None
    energy_trust: str = "unavailable"
    figures: tuple[FigureLine, ...] = ()
    gates: tuple[GateLine, ...] = ()
    confirmation_rounds: int | None = None
    confirmation_reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that ``./nightly run --json`` prints as its last line."""
        return {
            "run_id": self.run_id,
            "dag_run_id": self.dag_run_id,
            "workload": self.workload,
            "device": self.device,
            "verdict": self.verdict,
            "checks": {name: line.as_json() for name, line in self.checks.items()},
            "agreement": {"agreed": self.agreed, "total": self.total},
            "kernel": {"variant": self.variant, "ptx_sha256": self.ptx_sha256},
            "energy": {
                "trust": self.energy_trust,
                "figures": [asdict(figure) for figure in self.figures],
                "gates_not_passed": [asdict(gate) for gate in self.gates],
            },
            "confirmation": {"rounds": self.confirmation_rounds, "reason": self.confirmation_reason},
            "exit": self.exit_code,
        }


def settle_verdict(connection: Connection, dag_id: str, dag_run_id: str, expected: Sequence[str]) -> RunVerdict:
    """Compute the verdict of a stored run, store it, and return it.

    ``expected`` names the checks that must have run; one that left no result is an infrastructure failure, because
    nothing passes for lack of data. Raises ``BadInput`` when the run is not stored.
    """
    run = find_run(connection, dag_id, dag_run_id)
    checks = _checks(connection, run.run_id)
    words, beyond = {n: c.verdict for n, c in checks.items()}, outcomes_beyond_predictions(connection, run.run_id)
    word, outcome = run_outcome(Outcome(run.outcome), words, expected, beyond)
    connection.execute(
        tables.run.update().where(tables.run.c.run_id == run.run_id).values(verdict=word, exit_code=outcome.exit_code)
    )
    return _assemble(connection, run, checks, word, outcome.exit_code)


def run_outcome(
    outcome: Outcome, checks: Mapping[str, str], expected: Sequence[str], beyond_predictions: Sequence[Outcome] = ()
) -> tuple[str, Outcome]:
    """Verdict word and class of a run from the outcome of its tasks and the verdicts of its checks.

    A disagreement with the frozen predictions that an accepted baseline shares is not a regression of this run:
    where the agreement check is fine, it has the last word on a record that says ``regression``. So has the check of
    a candidate's predictions, whatever it says: what the pinned kernel predicts just as wrongly is none of the
    candidate's. Neither says anything of ``beyond_predictions``, how the parts ended as far as no prediction explains
    it: a qualification that failed or bytes that changed are a regression whichever checks there are. What one check
    could not tell is not made good by another: the word is then ``inconclusive``, though the class is that of ``ok``.
    What only looks back, histories, surroundings and repeatability, counts when it is red, and else neither way.
    """
    parts = [*(OUTCOME_OF_CHECK.get(verdict, Outcome.OK) for verdict in checks.values()), *beyond_predictions]
    judged = checks.get("agreement") in FINE or COMPARED_PREDICTIONS in checks
    if not (outcome is Outcome.REGRESSION and judged):
        parts.append(outcome)
    if not set(expected) <= checks.keys():
        parts.append(Outcome.INFRASTRUCTURE_FAILURE)
    worst = Outcome.worst(parts)
    if worst is not Outcome.OK:
        return worst.value, worst
    told = {verdict for name, verdict in checks.items() if not looks_back(name)}
    return ("ok" if FINE & told and INCONCLUSIVE not in told else INCONCLUSIVE), worst


def looks_back(check: str) -> bool:
    """Whether a check says nothing of a night by itself: the first one has nothing to be held against."""
    return check in (ENVIRONMENT, REPEATABILITY) or check.endswith(HISTORY)


def run_verdict(connection: Connection, dag_id: str, dag_run_id: str) -> RunVerdict:
    """The stored verdict of a run, which must have ended.

    A run that is not stored, or was stored and never judged, is an infrastructure failure: something ended it.
    """
    failure = Outcome.INFRASTRUCTURE_FAILURE
    try:
        run = find_run(connection, dag_id, dag_run_id)
    except BadInput:
        run_id = run_id_for(dag_id, dag_run_id)
        return RunVerdict(run_id, dag_run_id, None, None, failure.value, {}, None, None, failure.exit_code)
    checks = _checks(connection, run.run_id)
    if run.verdict is None:
        return _assemble(connection, run, checks, failure.value, failure.exit_code)
    return _assemble(connection, run, checks, run.verdict, run.exit_code)


def _checks(connection: Connection, run_id: str) -> dict[str, CheckLine]:
    """Last step of each check of the run, with its first one where there are more."""
    found = tables.check_result.c
    stored = connection.execute(
        select(found.check_name, found.verdict, found.reason)
        .where(found.run_id == run_id)
        .order_by(found.check_name, found.step)
    )
    lines: dict[str, CheckLine] = {}
    for row in stored:
        before = lines.get(row.check_name)
        first = (before.first or Look(before.verdict, before.reason)) if before else None
        lines[row.check_name] = CheckLine(row.verdict, row.reason, first)
    return lines


def _assemble(
    connection: Connection, run: Row[Any], checks: dict[str, CheckLine], verdict: str, exit_code: int
) -> RunVerdict:
    return RunVerdict(
        run_id=run.run_id,
        dag_run_id=run.dag_run_id,
        workload=run.workload,
        device=run.device_name,
        verdict=verdict,
        checks=checks,
        agreed=run.agreed,
        total=run.total,
        exit_code=exit_code,
        variant=run.kernel_variant,
        ptx_sha256=run.kernel_ptx_sha256,
        energy_trust=run.energy_trust,
        figures=_figures(connection, run.run_id),
        gates=gates_not_passed(connection, run.run_id),
        confirmation_rounds=run.confirmation_rounds,
        confirmation_reason=run.confirmation_reason_message,
    )


def _figures(connection: Connection, run_id: str) -> tuple[FigureLine, ...]:
    energy = tables.run_energy.c
    stored = connection.execute(
        select(*(energy[field.name] for field in fields(FigureLine)))
        .where(energy.run_id == run_id)
        .order_by(energy.subject != SUBJECT, energy.subject, energy.figure)
    )
    return tuple(FigureLine(*row) for row in stored)

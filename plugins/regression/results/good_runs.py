"""Which stored runs may be the measure of others: those that were good by themselves.

A run whose task did something wrong, or of which a part was not made, leaves bytes and figures like any other. Nothing
is held against them: the next good night would differ from it, and not from what is usual. A verdict against other runs
plays no part: what was only different is the new state of things, and may be measured by.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, all_, and_, any_, func, literal, or_, select

from regression.detectors.agreement import CHECK as AGREEMENT
from regression.detectors.verdict import Verdict
from regression.results import tables
from regression.results.baselines import KEY

OK, REGRESSION = "ok", "regression"
AS_ACCEPTED = (Verdict.OK.value, Verdict.IMPROVED.value)


def was_good() -> ColumnElement[bool]:
    """Whether a run (a row of ``run``) was good by itself.

    Every draw that it was asked for was validated and is right, replays left the same bytes, the reference ended where
    it did when the draw was frozen, and neither its qualification nor its task in a second process failed.
    """
    stored, validation = tables.run.c, tables.validation.c
    expected, found = validation.reference_state_expected_sha256, validation.reference_state_found_sha256
    right = and_(
        validation.run_id == stored.run_id,
        validation.draw.is_not(None),
        or_(validation.outcome == OK, and_(validation.outcome == REGRESSION, _as_accepted())),
        literal(True) == all_(validation.replay_states_equal),
        func.coalesce(expected == found, literal(True)),
    )
    validated = select(func.count()).select_from(tables.validation).where(right).correlate(tables.run)
    failed = (_failed(tables.qualification), _failed(tables.task_memory))
    return and_(validated.scalar_subquery() >= stored.draws_expected, *(~part for part in failed))


def predicted_wrong() -> ColumnElement[bool]:
    """Whether a run (a row of ``run``) predicted something wrong that nobody has accepted: it did other work."""
    validation = tables.validation.c
    wrong = or_(
        validation.agreed.is_(None),
        validation.agreed < validation.total,
        literal(False) == any_(validation.replays_equal_eager),
    )
    of_run = validation.run_id == tables.run.c.run_id
    found = select(validation.run_id).where(of_run, validation.outcome == REGRESSION, wrong).correlate(tables.run)
    return and_(found.exists(), ~_as_accepted())


def _as_accepted() -> ColumnElement[bool]:
    """Whether its predictions are as its baseline's, right or wrong, or are a baseline that nobody took back."""
    run_id, check, baseline = tables.run.c.run_id, tables.check_result.c, tables.baseline.c
    of_run = (check.run_id == run_id, check.check_name == AGREEMENT, check.verdict.in_(AS_ACCEPTED))
    judged = select(check.run_id).where(*of_run).correlate(tables.run)
    stands = or_(baseline.retired_at.is_(None), _was_replaced())
    of_baseline = (baseline.run_id == run_id, baseline.for_agreement, stands)
    accepted = select(baseline.run_id).where(*of_baseline).correlate(tables.run)
    return or_(judged.exists(), accepted.exists())


def _was_replaced() -> ColumnElement[bool]:
    """Whether a baseline (a row of ``baseline``) ended as the next one of its key began: nobody took it back."""
    one, following = tables.baseline.c, tables.baseline.alias("following")
    same_key = [following.c[name] == one[name] for name in KEY]
    found = select(following.c.baseline_id).where(*same_key, following.c.accepted_at == one.retired_at)
    return found.correlate(tables.baseline).exists()


def _failed(part: Table) -> ColumnElement[bool]:
    of_run = part.c.run_id == tables.run.c.run_id
    return select(part.c.run_id).where(of_run, part.c.outcome == REGRESSION).correlate(tables.run).exists()

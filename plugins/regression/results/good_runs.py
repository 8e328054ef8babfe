"""Which stored runs may be the measure of others: those that were good by themselves.

A run whose task did something wrong, or of which a part was not made, leaves bytes and figures like any other. Nothing
is held against them: the next good night would differ from it, and not from what is usual. A verdict against other runs
plays no part: what was only different is the new state of things, and may be measured by.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, Table, all_, and_, any_, func, literal, or_, select

from regression.detectors.agreement import CHECK as AGREEMENT
from regression.detectors.verdict import Verdict
from regression.results import tables
from regression.results.baselines import KEY, WITHDRAWN

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
    """Whether its predictions are as its baseline's, right or wrong, or are one, and nobody took that back."""
    check, judged_by = tables.check_result.c, tables.baseline.alias("judged_by")
    of_run = (check.run_id == tables.run.c.run_id, check.check_name == AGREEMENT, check.verdict.in_(AS_ACCEPTED))
    with_it = (judged_by.c.baseline_id == check.baseline_id, _stands_accepted(judged_by))
    judged = select(check.run_id).where(*of_run, *with_it).correlate(tables.run)
    return or_(judged.exists(), _stands_accepted(tables.run))


def _stands_accepted(of: FromClause) -> ColumnElement[bool]:
    """Whether the run of a row is a baseline for predictions, or was one until something else ended it than they.

    Its latest acceptance decides. A baseline that is replaced ends at the moment at which the next one of its key is
    accepted. Any other end is that somebody retired it or withdrew its run; where only its energy was, that says
    nothing of what it predicted.
    """
    one, following, later = (tables.baseline.alias(name) for name in ("accepted", "following", "later"))
    withdrawal = tables.withdrawal.c
    as_it_ended = (following.c.accepted_at == one.c.retired_at, *(following.c[name] == one.c[name] for name in KEY))
    replaced = select(following.c.baseline_id).where(*as_it_ended).correlate(one)
    for_its_energy = select(withdrawal.run_id).where(
        withdrawal.run_id == one.c.run_id,
        withdrawal.scope == "energy",
        one.c.retired_reason == literal(WITHDRAWN) + withdrawal.reason,
    )
    stands = or_(one.c.retired_at.is_(None), replaced.exists(), for_its_energy.correlate(one).exists())
    again = select(later.c.baseline_id).where(
        later.c.run_id == one.c.run_id, later.c.for_agreement, later.c.accepted_at > one.c.accepted_at
    )
    latest = (one.c.run_id == of.c.run_id, one.c.for_agreement, ~again.correlate(one).exists())
    accepted = select(one.c.baseline_id).where(*latest, stands)
    return accepted.correlate(of).exists()


def _failed(part: Table) -> ColumnElement[bool]:
    of_run = part.c.run_id == tables.run.c.run_id
    return select(part.c.run_id).where(of_run, part.c.outcome == REGRESSION).correlate(tables.run).exists()

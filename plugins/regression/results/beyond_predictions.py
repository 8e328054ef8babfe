"""How the parts of a run ended that no accepted baseline can make good: all but what was predicted otherwise."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from gpu_tasks.records import Outcome
from regression.results import tables


def outcomes_beyond_predictions(connection: Connection, run_id: str) -> list[Outcome]:
    """Outcomes of a run's validations, qualification and memory, as far as another prediction does not explain them.

    A draw whose predictions alone disagree counts as ``ok`` here, and so does the memory of its task where that left
    the same behind as the draw's validation: the check of agreement judges those, against an accepted run.
    """
    validation, memory, qualification = tables.validation, tables.task_memory, tables.qualification
    draws = list(connection.execute(select(validation).where(validation.c.run_id == run_id)))
    found = [_of_draw(row) for row in draws]
    left = {row.draw: (row.agreed, row.state_hashes) for row in draws}
    found += [
        _of_memory(row, left.get(row.draw))
        for row in connection.execute(select(memory).where(memory.c.run_id == run_id))
    ]
    qualified = select(qualification.c.outcome).where(qualification.c.run_id == run_id)
    return found + [Outcome(outcome) for outcome in connection.execute(qualified).scalars()]


def _of_draw(row: Row[Any]) -> Outcome:
    expected, ended = row.reference_state_expected_sha256, row.reference_state_found_sha256
    repeats = all(row.replays_equal_eager) and all(row.replay_states_equal) and expected in (None, ended)
    return _without_disagreement(row, repeats)


def _of_memory(row: Row[Any], validated: tuple[int | None, dict[str, str] | None] | None) -> Outcome:
    repeats = set(row.hashes_matched) == set(row.state_hashes or {})
    return _without_disagreement(row, repeats and (row.agreed, row.state_hashes) == validated)


def _without_disagreement(row: Row[Any], is_all_else_fine: bool) -> Outcome:
    """The outcome of a part, ``ok`` where disagreement with the frozen predictions is all that there is to it."""
    outcome = Outcome(row.outcome)
    disagrees = row.agreed is not None and row.agreed < row.total
    return Outcome.OK if outcome is Outcome.REGRESSION and disagrees and is_all_else_fine else outcome

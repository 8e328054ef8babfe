"""A stored comparison of a candidate with another kernel in the form the comparison detector takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, select

from regression.detectors.agreement import DrawResult
from regression.detectors.compared_predictions import ComparedPredictions, Differing
from regression.detectors.comparison import KernelComparison
from regression.detectors.paired import BlockPair
from regression.detectors.verdict import Problem
from regression.results import tables
from regression.results.candidate_columns import EMULATED, PINNED
from regression.results.history import problem_of

OK = "ok"


def comparison_of(connection: Connection, run: Row[Any]) -> KernelComparison:
    """What was seen of the two kernels in a run as ``history.find_run`` gives it, whatever of it is there.

    Every draw that was asked for is expected. A run without a comparison has its own predictions at most, and the
    reason why there is nothing else.
    """
    table = tables.comparison
    compared = connection.execute(select(table).where(table.c.run_id == run.run_id)).one_or_none()
    if compared is None:
        lost = Problem("infrastructure_failure", "no_comparison", "no record of a comparison was left")
        problem: Problem | None = problem_of(run) or lost
        return KernelComparison(predictions=_predictions(connection, run, 0, problem), problem=problem)
    problem = _problem(compared.outcome, compared.reason_code, compared.reason_message)
    blocks = _blocks(connection, run.run_id)
    return KernelComparison(
        predictions=_predictions(connection, run, compared.differing_total, problem),
        time=tuple(BlockPair(row.candidate_cuda_ms, row.pinned_cuda_ms, row.valid) for row in blocks),
        energy=tuple(BlockPair(row.candidate_mj, row.pinned_mj, row.valid) for row in blocks),
        not_measured=_not_measured(compared),
        energy_trust=compared.energy_trust,
        energy_trust_reason=compared.energy_trust_reason_message,
        problem=problem,
    )


def _predictions(
    connection: Connection, run: Row[Any], differing_total: int, problem: Problem | None
) -> ComparedPredictions:
    results: dict[str, list[DrawResult]] = {"": [], PINNED: [], EMULATED: []}
    stored = select(tables.validation).where(tables.validation.c.run_id == run.run_id)
    for row in connection.execute(stored.order_by(tables.validation.c.case_name)):
        what, _, draw = row.case_name.rpartition("draw-")
        results[what].append(_draw_result(int(draw), row))
    table = tables.comparison_difference
    columns = [column for column in table.columns if column.name != "run_id"]
    differing = connection.execute(
        select(*columns).where(table.c.run_id == run.run_id).order_by(table.c.draw, table.c.index)
    )
    return ComparedPredictions(
        draws_expected=tuple(run.params["draws"]),
        candidate=tuple(results[""]),
        pinned=tuple(results[PINNED]),
        emulated=tuple(results[EMULATED]),
        differing=tuple(Differing(**row._mapping) for row in differing),
        differing_total=differing_total,
        problem=problem,
    )


def _draw_result(draw: int, row: Row[Any]) -> DrawResult:
    """A disagreement is a finding, which the counts show, and not a problem."""
    counted = row.agreed is not None and row.outcome == "regression"
    return DrawResult(
        draw=draw,
        total=row.total,
        agreed=row.agreed,
        mismatches=tuple((m["index"], m["expected"], m["found"]) for m in row.mismatches),
        predictions_sha256=row.predictions_int32_sha256,
        replays_equal_eager=tuple(row.replays_equal_eager),
        problem=None if counted else _problem(row.outcome, row.reason_code, row.reason_message),
    )


def _blocks(connection: Connection, run_id: str) -> list[Row[Any]]:
    block = tables.comparison_block
    stored = select(block).where(block.c.run_id == run_id).order_by(block.c.round, block.c.block)
    return list(connection.execute(stored))


def _not_measured(compared: Row[Any]) -> Problem | None:
    code, message = compared.not_measured_reason_code, compared.not_measured_reason_message
    return Problem(OK, code, message) if code else None


def _problem(outcome: str, code: str | None, message: str | None) -> Problem | None:
    return None if outcome == OK else Problem(outcome, code or outcome, message or outcome)


__all__ = ["comparison_of"]

"""Stored states of a run's task, by hash, in the form the repeatability detector takes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, exists, select

from regression.detectors import CheckVerdict
from regression.detectors.repeatability import (
    Circumstances,
    DrawState,
    Earlier,
    OtherProcess,
    ReferenceEnd,
    RepeatabilityRun,
    judge_repeatability,
    made_otherwise,
)
from regression.results import tables
from regression.results.checks import Finding
from regression.results.earlier import earlier_runs, settings_of, workload_sources
from regression.results.history import SIMULATED, name_of, problem_of
from regression.results.surroundings import beside_changes


def repeatability_findings(connection: Connection, run: Row[Any]) -> list[Finding]:
    """The states of a run within itself, and each draw against the latest run that was made alike."""
    states = repeatability_run(connection, run)
    earlier, run_ids = earlier_states(connection, run, states)
    found = judge_repeatability(states, earlier)
    return [Finding(beside_changes(connection, run, found, _first_changed(found, run_ids)), None)]


def repeatability_run(connection: Connection, run: Row[Any]) -> RepeatabilityRun:
    """Draws of a run, and its task in a process of its own."""
    return RepeatabilityRun(
        circumstances=circumstances_of(connection, run),
        draws_expected=tuple(run.params["draws"]),
        states=tuple(_state(row) for row in _validations(connection, run.run_id)),
        process=_process(connection, run.run_id),
        problem=problem_of(run),
    )


def circumstances_of(connection: Connection, run: Row[Any]) -> Circumstances:
    """What a run was made with. A simulated device has one name wherever it is, and computes on any machine."""
    simulated = run.kind in (None, SIMULATED)
    return Circumstances(
        device=None if simulated else f"{run.device_name} ({run.uuid})",
        payload_manifest_sha256=run.manifest_sha256,
        environment_class=run.environment_class,
        settings=settings_of(connection, run.run_id),
        sources=workload_sources(connection, run),
    )


def earlier_states(
    connection: Connection, run: Row[Any], states: RepeatabilityRun
) -> tuple[dict[int, Earlier], dict[int, str]]:
    """For each draw the latest earlier run that was made alike, else the latest there is; and the keys of both."""
    validation = tables.validation.c
    hashed = exists().where(validation.run_id == tables.run.c.run_id, validation.state_hashes.is_not(None))
    wanted, alike = set(states.draws_expected), set[int]()
    found: dict[int, Earlier] = {}
    run_ids: dict[int, str] = {}
    for earlier in earlier_runs(connection, run, hashed):
        circumstances = circumstances_of(connection, earlier)
        is_alike = not made_otherwise(states.circumstances, circumstances)
        for row in _validations(connection, earlier.run_id):
            known = row.draw in alike if is_alike else row.draw in found
            if row.draw not in wanted or row.state_hashes is None or known:
                continue
            has_reference = row.reference_state_found_sha256 is not None
            found[row.draw] = Earlier(name_of(earlier), circumstances, row.state_hashes, has_reference)
            run_ids[row.draw] = earlier.run_id
            alike |= {row.draw} if is_alike else set()
        if alike >= wanted:
            break
    return found, run_ids


def _validations(connection: Connection, run_id: str) -> list[Row[Any]]:
    validation = tables.validation
    stored = connection.execute(select(validation).where(validation.c.run_id == run_id, validation.c.draw.is_not(None)))
    return list(stored)


def _state(row: Row[Any]) -> DrawState:
    names = ("reference_state_name", "reference_state_expected_sha256", "reference_state_found_sha256")
    reference = ReferenceEnd(*(getattr(row, name) for name in names)) if row.reference_state_name else None
    return DrawState(row.draw, row.state_hashes, tuple(row.replay_states_equal), reference, problem_of(row))


def _process(connection: Connection, run_id: str) -> OtherProcess | None:
    memory = tables.task_memory
    row = connection.execute(select(memory).where(memory.c.run_id == run_id)).one_or_none()
    if row is None or row.state_hashes is None:
        return None
    return OtherProcess(row.draw, row.state_hashes, frozenset(row.hashes_matched), row.invocations)


def _first_changed(found: CheckVerdict, run_ids: dict[int, str]) -> str | None:
    """The run that the first changed draw was held against."""
    changed = (finding for finding in found.details["findings"] if finding.get("changed") and "run" in finding)
    return next((run_ids[finding["draw"]] for finding in changed if finding["draw"] in run_ids), None)

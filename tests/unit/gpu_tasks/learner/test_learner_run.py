"""A run of the learner put together from its parts, and held against itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.cli import main
from gpu_tasks.programs.parts import read_parts
from gpu_tasks.programs.summarise import run_record
from gpu_tasks.records import (
    BadInput,
    DeviceMemory,
    Outcome,
    QualificationRecord,
    ReferenceState,
    RunRecord,
    RunRequest,
    VerifyRecord,
    read_record,
    write_record,
)

pytest.importorskip("torch")

LEARNER = ("--workload", "learner")
SPRING = (*LEARNER, "--payload", "spring")
SIMULATED = ("--device", "simulated", "--seed", "5")

REQUEST = RunRequest(
    accepted_at="2026-11-30T12:00:00Z",
    workload="learner",
    dag_id="nightly_learner",
    dag_run_id="test",
    run_id="none",
    trigger="manual",
    logical_date=None,
    device="simulated",
    variant=None,
    payload="spring",
    draws=[0],
    rounds=3,
    repeats=None,
    protocol=None,
    label=None,
    note=None,
    seed=5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, one_draw: Path) -> Path:
    """The parts of a run on the simulated device, as its tasks would have left them."""
    found = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTLY_PAYLOADS", str(one_draw.parent))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        parts: list[tuple[str, str, list[str]]] = [
            ("provision", "provision", [*LEARNER, *SIMULATED]),
            ("verify", "verify-payload", [*SPRING, "--subject", "payload"]),
            ("qualify", "qualification", [*LEARNER, *SIMULATED]),
            ("validate", "validation-00", [*SPRING, *SIMULATED, "--draw", "0"]),
            ("telemetry", "telemetry-before", [*LEARNER, *SIMULATED, "--when", "before"]),
            *(("measure", f"round-0{n}", [*SPRING, *SIMULATED, "--round", str(n)]) for n in range(3)),
            ("memory", "memory", [*SPRING, *SIMULATED]),
            ("telemetry", "telemetry-after", [*LEARNER, *SIMULATED, "--when", "after"]),
        ]
        for program, name, options in parts:
            assert main([program, *options, "--out", str(found / f"{name}.json")]) == 0, name
    sources = dataclasses.replace(
        read_record(found / "verify-payload.json", VerifyRecord), subject="sources", payload=None
    )
    write_record(sources, found / "verify-sources.json")
    return found


def summarised(folder: Path) -> RunRecord:
    return run_record(REQUEST, read_parts(REQUEST, folder))


def test_a_whole_run_and_that_it_follows_from_itself(folder: Path) -> None:
    found = summarised(folder)
    assert (found.outcome, found.reason, found.energy_trust) == (Outcome.OK, None, "verified")
    assert found.qualification is not None
    assert found.memory is not None
    assert found.summary.agreed == 10_000
    assert found.summary.adjusted_mj_median == pytest.approx(1060, abs=100)
    assert {figure.figure for figure in found.summary.energy} == {"trial", "aligned"}
    check_run(found, "run.json")


def test_a_run_that_was_not_qualified_is_none(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name not in ("qualification.json", "memory.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    found = summarised(tmp_path)
    assert (found.outcome, found.memory) == (Outcome.INFRASTRUCTURE_FAILURE, None)
    assert found.reason is not None
    assert found.reason.message == "did not run: qualification"


def test_what_a_night_was_to_have_and_never_made_is_named(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name != "memory.json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert summarised(tmp_path).outcome is Outcome.OK, "nobody asked for it"
    asked = dataclasses.replace(REQUEST, parts=["qualification", "memory"])
    found = run_record(asked, read_parts(asked, tmp_path))
    assert (found.outcome, found.memory) == (Outcome.INFRASTRUCTURE_FAILURE, None)
    assert found.reason is not None
    assert (found.reason.code, found.reason.message) == ("parts_missing", "did not run: memory")
    (tmp_path / "qualification.json").unlink()
    missing = run_record(asked, read_parts(asked, tmp_path)).reason
    assert missing is not None
    assert missing.message == "did not run: qualification, memory"
    assert run_record(asked, read_parts(asked, folder)).outcome is Outcome.OK


def qualification(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: dataclasses.replace(run, qualification=dataclasses.replace(run.qualification, **changes))  # type: ignore[type-var]


def memory(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: dataclasses.replace(run, memory=dataclasses.replace(run.memory, **changes))  # type: ignore[type-var]


def validation(**changes: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda run: dataclasses.replace(run, validations=[dataclasses.replace(run.validations[0], **changes)])


def storages(run: RunRecord) -> RunRecord:
    assert run.memory is not None
    assert run.memory.inventory is not None
    inventory = dataclasses.replace(run.memory.inventory, unique_named_storage_bytes=1)
    return memory(inventory=inventory)(run)


def allocator(**changes: int) -> Callable[[RunRecord], RunRecord]:
    """The allocator's figures of the original measurement, some of them changed."""
    recorded = DeviceMemory(0, 0, 14237696, 15663104, 14237696, 29360128, 29360128, 15663104)
    return memory(memory=dataclasses.replace(recorded, **changes))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (qualification(checks=212), "$.qualification.checks"),
        (qualification(passed=False), "$.qualification.passed"),
        (qualification(cases=[]), "$.qualification.checks"),
        (memory(agreed=9_999), "$.memory.outcome"),
        (memory(hashes_matched=["scores_sha256"]), "$.memory.outcome"),
        (memory(hashes_matched=["nothing"]), "$.memory.hashes_matched"),
        (storages, "$.memory.inventory.unique_named_storage_bytes"),
        (allocator(added_peak_over_entry_allocated_bytes=1), "$.memory.memory.added_peak_over_entry_allocated_bytes"),
        (allocator(allocated_after_prepare_bytes=99_999_999), "$.memory.memory.allocated_after_prepare_bytes: 0 to "),
        (allocator(prepare_and_invoke_peak_reserved_bytes=5), "$.memory.memory.prepare_and_invoke_peak_reserved_bytes"),
        (allocator(), "$.memory.inventory.allocator_allocated_bytes: "),  # that of a CPU counts nothing
        (validation(replay_states_equal=[True, False, True]), "$.validations[0].replay_states_equal"),
        (
            validation(reference_state=ReferenceState("state_grid_sha256", "a", "b")),
            "$.validations[0].reference_state.found_sha256",
        ),
        (
            lambda run: dataclasses.replace(
                run, rounds=[dataclasses.replace(run.rounds[0], calibration_ms=60.0), *run.rounds[1:]]
            ),
            "$.rounds[0].",
        ),
    ],
)
def test_a_changed_field_is_named(folder: Path, change: Callable[[RunRecord], RunRecord], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_run(change(summarised(folder)), "run.json")
    assert caught.value.code == "record_contradicts_itself"
    assert caught.value.message.startswith(f"run.json: {field}")


def test_a_part_that_contradicts_itself_is_no_part(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    record = read_record(folder / "qualification.json", QualificationRecord)
    write_record(dataclasses.replace(record, checks=5), tmp_path / "qualification.json")
    found = summarised(tmp_path)
    assert (found.outcome, found.qualification) == (Outcome.BAD_INPUT, None)
    assert found.reason is not None
    assert "$.checks: expected 216, found 5" in found.reason.message

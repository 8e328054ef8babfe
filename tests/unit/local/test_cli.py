"""The command line: help without environments, params, refusals with their exit code."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import cli, secrets
from local.databases import databases, libpq_uri
from local.errors import LauncherError, Usage
from local.paths import ROOT, Home, default_home
from local.runs import COMPARISON, NIGHTS, accept_params, parse_params

SECRETS = secrets.Secrets(*(f"secret-{i}" for i in range(9)))


def _nightly(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | {"NIGHTLY_HOME": str(home)}
    environment.pop("NIGHTLY_ENVIRONMENTS", None)
    system_python = Path(sys.base_prefix) / "bin" / "python3"  # a user's: pip, and none of our packages
    command = [str(system_python), "-I", str(ROOT / "nightly"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


COMMANDS = ["run", "up", "down", "status", "logs", "trigger", "sql", "test", "doctor"]
COMMANDS += ["try", "promote", "bisect", "changed"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_no_environment_and_makes_nothing(command: str, tmp_path: Path) -> None:
    result = _nightly(*command.split(), "--help", home=tmp_path / "home")
    assert result.returncode == 0
    assert "usage: nightly" in result.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("arguments", [["fly"], ["run", "--device", "abacus"], ["sql", "--csv", "--json", "SELECT 1"]])
def test_unknown_words_are_bad_input(arguments: list[str], tmp_path: Path) -> None:
    result = _nightly(*arguments, home=tmp_path / "home")
    assert result.returncode == 2
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [["try", "fused", "--note=--"], ["promote", "x", "--reason=--"], ["run", "--dsn=--"]])
def test_two_dashes_are_no_value(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse drops them there and hands on an empty list."""
    with pytest.raises(SystemExit) as ended:
        cli.parsed(words)
    assert ended.value.code == 2
    assert f"argument {words[-1][:-3]}: expected a value, found '--'" in capsys.readouterr().err
    assert cli.parsed(["try", "fused", "--note", "a=--"]).note == "a=--"


def test_doctor_changes_nothing(tmp_path: Path) -> None:
    result = _nightly("doctor", home=tmp_path / "home")
    assert result.returncode == 0, result.stdout
    assert "to be made when needed: cpu, scheduler, test" in result.stdout
    assert not (tmp_path / "home").exists()


def test_params_are_json_where_they_can_be_and_text_otherwise() -> None:
    pairs = ["rounds=3", "draws=[0, 1]", "note=after a=b", "label=x", "repeats=null"]
    assert parse_params(pairs, "reference") == {
        "device": "reference",
        "rounds": 3,
        "draws": [0, 1],
        "note": "after a=b",
        "label": "x",
        "repeats": None,
    }


@pytest.mark.parametrize("pairs", [["rounds"], ["=3"], ["a=1", "a=2"], ["device=cuda"]])
def test_params_that_mean_nothing_are_refused(pairs: list[str]) -> None:
    with pytest.raises(Usage, match="--param"):
        parse_params(pairs, "reference")


def test_effects_are_for_the_simulated_device_and_are_refused_before_anything_is_started(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert accept_params(home, ["inject=energy+10%"], "simulated") == {"device": "simulated", "inject": "energy+10%"}
    for device in (None, "emulated"):
        with pytest.raises(Usage, match="param inject: expected none unless the device is simulated, found 'throttle'"):
            accept_params(home, ["inject=throttle"], device)
    assert not (tmp_path / "home").exists()


def test_a_param_is_called_as_it_was_given(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with pytest.raises(Usage, match=r"^--blocks: expected 0 to 100, found 101$"):
        accept_params(home, [], None, COMPARISON, {"candidate": "main", "blocks": 101, "rounds": None})
    with pytest.raises(Usage, match=r"^param rounds: expected 0 to 100, found 101$"):
        accept_params(home, ["rounds=101"], None, COMPARISON, {"candidate": "main", "blocks": 100, "rounds": None})
    with pytest.raises(Usage, match=r"^--device: expected one of auto, cuda, reference, simulated, found 'emulated'$"):
        accept_params(home, [], "emulated", NIGHTS["learner"])
    with pytest.raises(Usage, match=r"^param device: expected one of auto"):
        accept_params(home, ["device=emulated"], None, NIGHTS["learner"])


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.text(max_size=20), max_size=5))
def test_any_text_survives_as_a_param(values: dict[str, str]) -> None:
    import json

    pairs = [f"{key}={json.dumps(value)}" for key, value in values.items()]
    assert parse_params(pairs, None) == values


def test_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NIGHTLY_HOME", str(tmp_path))
    assert default_home() == tmp_path
    monkeypatch.delenv("NIGHTLY_HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_home() == tmp_path / "data" / "kernel-nightly"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert default_home() == Path.home() / ".local" / "share" / "kernel-nightly"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_home() == Path("/var/lib/kernel-nightly")


def test_secrets_are_made_once_and_readable_by_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "secrets.json"
    first = secrets.load(path)
    assert secrets.load(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first.jwt_secret) >= 64
    assert len({first.postgres_admin, first.owner, first.writer, first.reader}) == 4


def test_of_two_first_clients_at_once_the_first_ones_secrets_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secrets.json"
    first = secrets.load(path)
    monkeypatch.setattr(Path, "exists", lambda _: False)  # as the second one saw it
    assert secrets.load(path) == first
    assert [found.name for found in tmp_path.iterdir()] == ["secrets.json"]


def test_a_users_server_gets_two_databases_named_after_its_dsn() -> None:
    target = databases("postgresql://boss:p%40ss@db.example:6432/perf?sslmode=require", SECRETS, embedded=False)
    assert (target.results, target.airflow_database) == ("perf", "perf_airflow")
    assert libpq_uri(target.reader) == "postgresql://nightly_reader:secret-4@db.example:6432/perf?sslmode=require"


@pytest.mark.parametrize("dsn", ["mysql://a/b", "not a dsn", ""])
def test_other_databases_are_refused(dsn: str) -> None:
    with pytest.raises(Usage, match="--dsn: expected"):
        databases(dsn, SECRETS, embedded=False)


def test_every_command_is_carried_out_by_something() -> None:
    parser = cli.build_parser()
    (subparsers,) = [action for action in parser._actions if hasattr(action, "choices") and action.choices]
    elsewhere = {"test", "doctor", "task", "pin"}
    for name in set(subparsers.choices or ()) - elsewhere:
        assert callable(cli.action_of(name))


def test_what_is_too_deep_to_be_read_is_text() -> None:
    assert parse_params(["note=" + "[" * 100_000], None) == {"note": "[" * 100_000}


def test_what_the_launcher_says_is_one_line() -> None:
    assert str(Usage("a\nb: expected words,\x1b[31m found none")) == "a b: expected words,\\x1b[31m found none"


@pytest.mark.parametrize("value", ["\udc80", '"\\ud800"'])
def test_params_that_are_no_text_are_refused(value: str) -> None:
    with pytest.raises(Usage, match="--param note: expected text"):
        parse_params([f"note={value}"], None)


@pytest.mark.parametrize("home", ["/proc/nope", "/dev/null/x", "/etc/passwd"])
def test_a_home_that_cannot_be_is_said_in_one_line_and_is_no_regression(home: str) -> None:
    for command in (["status"], ["run", "--json"], ["logs"]):
        result = _nightly(*command, home=Path(home))
        assert result.returncode == 5, result.stderr
        assert "Traceback" not in result.stderr
        assert len(result.stderr.splitlines()) <= 2
    assert not result.stdout


def test_json_is_promised_and_kept_even_where_nothing_could_run() -> None:
    import json

    result = _nightly("run", "--json", home=Path("/proc/nope"))
    printed = json.loads(result.stdout.splitlines()[-1])
    assert (printed["verdict"], printed["exit"]) == ("infrastructure_failure", 5)
    assert set(printed) == {"run_id", "dag_run_id", "workload", "device", "verdict", "checks", "agreement", "exit"}


def test_secrets_that_were_damaged_are_named(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    for content in ("", "{}", "[1]", '{"owner": "x"}'):
        path.write_text(content)
        with pytest.raises(LauncherError, match=r"secrets\.json: expected the secrets of this installation"):
            secrets.load(path)

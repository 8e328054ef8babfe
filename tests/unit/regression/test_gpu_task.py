"""GpuTaskOperator: what it returns and raises, and that nothing it started outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowTaskTimeout

from gpu_tasks.records import RECORDS, Outcome, read_record
from regression.operators.child import GUARD, child_environment
from regression.operators.gpu_task import GpuTaskOperator
from regression.operators.locks import device_lock
from tests.unit.regression.programs import assert_all_end, wait_for, write_program

ROOT = Path(__file__).resolve().parents[3]
LIVES_ON = "grandchild(); signal.signal(15, signal.SIG_IGN); print('started'); time.sleep(60)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NIGHTLY_ROOT", str(tmp_path))
    monkeypatch.setenv("NIGHTLY_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("NIGHTLY_GPU_PYTHON", sys.executable)
    return tmp_path


def operator(folder: Path, body: str, **changes: Any) -> GpuTaskOperator:
    write_program(folder, body)
    defaults = {
        "program": "verify",
        "options": {"subject": "sources"},
        "record": str(folder / "out.json"),
        "grace_s": 0.3,
    }
    return GpuTaskOperator(task_id="t", **(defaults | changes))


def run(task: GpuTaskOperator) -> dict[str, Any]:
    """``execute`` without Airflow's check that only a task runner calls it."""
    return GpuTaskOperator.execute.__wrapped__(task, {})


def left_record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "out.json").read_text())


@pytest.mark.parametrize(("outcome", "status"), [("ok", 0), ("regression", 1)])
def test_an_end_with_a_finding_is_a_success_and_returns_little(folder: Path, outcome: str, status: int) -> None:
    reason = {"code": "c", "message": "m"} if status else None
    task = operator(folder, f"record({outcome!r}, {reason!r}); sys.exit({status})")
    assert run(task) == {"path": str(folder / "out.json"), "outcome": outcome, "reason": "m" if status else None}


@pytest.mark.parametrize(
    ("outcome", "status", "kind"),
    [
        ("bad_input", 2, AirflowFailException),
        ("invalid_measurement", 3, AirflowFailException),
        ("verification_mismatch", 4, AirflowFailException),
        ("infrastructure_failure", 5, AirflowException),
    ],
)
def test_other_ends_fail_with_class_and_reason(folder: Path, outcome: str, status: int, kind: type) -> None:
    task = operator(folder, f"record({outcome!r}, {{'code': 'c', 'message': 'why'}}); sys.exit({status})")
    with pytest.raises(AirflowException) as caught:
        run(task)
    assert type(caught.value) is kind
    assert str(caught.value) == f"{outcome} (exit {status}): c: why"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(0)", "verify ended with exit status 0: no record"),
        ("sys.exit(77)", "verify ended with exit status 77: no record"),
        ("os.kill(os.getpid(), 9)", "verify ended with signal 9: no record"),
        ("os.kill(os.getpid(), 6)", "verify ended with signal 6: no record"),
        ("record('ok'); sys.exit(3)", "verify ended with exit status 3 though its record says ok"),
        ("out.write_text('{'); sys.exit(0)", "expected JSON"),
    ],
)
def test_an_end_that_explains_nothing_is_an_infrastructure_failure_with_a_record(
    folder: Path, body: str, message: str
) -> None:
    with pytest.raises(AirflowException, match="infrastructure_failure") as caught:
        run(operator(folder, body))
    assert message in str(caught.value)
    left = left_record(folder)
    assert (left["outcome"], left["reason"]["code"]) == ("infrastructure_failure", "program_died")


def test_arguments_that_a_program_does_not_take_are_bad_input_with_its_last_words(folder: Path) -> None:
    body = """print('usage: ...', file=sys.stderr); print('verify: error: --draw: found "x"', file=sys.stderr)
print(file=sys.stderr); sys.exit(2)"""
    with pytest.raises(AirflowFailException) as caught:
        run(operator(folder, body))
    assert str(caught.value) == 'bad_input (exit 2): arguments_refused: verify: error: --draw: found "x"'
    left = left_record(folder)
    assert (left["outcome"], left["reason"]["code"]) == ("bad_input", "arguments_refused")


def test_a_number_that_is_none_is_bad_input_and_leaves_no_record_that_would_have_to_name_one(folder: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"bad_input .* error: three is no number"):
        run(operator(folder, "sys.exit(print('error: three is no number') or 2)", options={"draw": "three"}))
    assert not (folder / "out.json").exists()


@pytest.mark.parametrize("status", [1, 3, 4, 5])
def test_other_documented_ends_without_a_record_are_infrastructure_failures(folder: Path, status: int) -> None:
    with pytest.raises(AirflowException, match=r"infrastructure_failure .* no record") as caught:
        run(operator(folder, f"print('words'); sys.exit({status})"))
    assert type(caught.value) is AirflowException


@pytest.mark.parametrize(
    ("program", "options", "expected"),
    [
        ("provision", {"device": "cuda", "workload": "w"}, {"requested_device": "cuda", "workload": "w"}),
        ("verify", {"subject": "payload", "payload": "p"}, {"subject": "payload", "payload": "None"}),
        ("validate", {"draw": "3", "payload": "p", "device": "cuda"}, {"draw": "3", "payload": "p"}),
        ("measure", {"round": "2", "payload": "p", "protocol": "x", "repeats": ""}, {"round": "2", "protocol": "x"}),
        ("measure", {"round": "0", "payload": "p", "protocol": "x", "repeats": "9"}, {"repeats": "9", "payload": "p"}),
        ("telemetry", {"when": "after", "request": "r.json", "seed": "0"}, {"when": "after", "workload": "qda"}),
        ("summarise", {"request": "r.json"}, {}),
    ],
)
def test_every_program_gets_its_own_kind_of_failure_record(
    folder: Path, program: str, options: dict[str, str], expected: dict[str, str]
) -> None:
    with pytest.raises(AirflowException):
        run(operator(folder, "sys.exit(9)", program=program, options=options))
    if program == "summarise":
        assert not (folder / "out.json").exists()
    else:
        left = read_record(folder / "out.json", RECORDS[program][1])
        assert left.outcome is Outcome.INFRASTRUCTURE_FAILURE
        assert {name: str(getattr(left, name)) for name in expected} == expected


def test_options_without_a_value_are_flags_or_left_out(folder: Path) -> None:
    body = "Path('words').write_text(' '.join(sys.argv[1:])); record('ok')"
    options = {"subject": "sources", "allow-kernels": True, "races": False, "variant": "", "seed": "0"}
    run(operator(folder, body, options=options))
    assert (
        folder / "words"
    ).read_text() == f"verify --subject sources --allow-kernels --seed 0 --out {folder}/out.json"


def test_a_record_of_an_earlier_try_is_not_taken_for_this_one(folder: Path) -> None:
    run(operator(folder, "record('ok')"))
    with pytest.raises(AirflowException):
        run(operator(folder, "sys.exit(0)"))


def test_output_is_logged_line_by_line_whatever_its_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "print('one'); print('two', file=sys.stderr, flush=True); sys.stdout.buffer.write(b'\\xff\\n'); record('ok')"
    run(operator(folder, body))
    logged = capsys.readouterr().out
    assert all(f"] {line} " in logged for line in ("one", "two", "\ufffd")), logged


def test_what_a_program_leaves_behind_ends_with_it(folder: Path) -> None:
    started = time.monotonic()
    run(operator(folder, "grandchild(); record('ok')"))
    assert time.monotonic() - started < 30, "waited for what was left behind instead of ending it"
    assert_all_end((folder / "pids").read_text())


def test_what_left_the_group_ends_with_the_program_too(folder: Path) -> None:
    started = time.monotonic()
    run(operator(folder, "deserter(); record('ok')"))
    assert time.monotonic() - started < 30, "waited for what was left behind instead of ending it"
    assert_all_end((folder / "pids").read_text())


def test_a_time_out_ends_the_whole_group_even_if_it_ignores_sigterm(folder: Path) -> None:
    def alarm(*_: object) -> None:
        raise AirflowTaskTimeout("too long")

    before = signal.signal(signal.SIGALRM, alarm)
    threading.Thread(target=lambda: (wait_for(folder / "pids"), os.kill(os.getpid(), signal.SIGALRM))).start()
    try:
        with pytest.raises(AirflowTaskTimeout):
            run(operator(folder, LIVES_ON))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert_all_end((folder / "pids").read_text())
    assert left_record(folder)["reason"]["code"] == "timed_out"


def test_on_kill_gives_the_program_time_and_then_ends_all(folder: Path) -> None:
    body = "signal.signal(15, lambda *_: (Path('asked').touch(), sys.exit(5))); grandchild(); time.sleep(60)"
    task = operator(folder, body, grace_s=60)
    threading.Thread(target=lambda: (wait_for(folder / "pids"), task.on_kill())).start()
    with pytest.raises(AirflowException, match="infrastructure_failure"):
        run(task)
    assert (folder / "asked").exists()
    assert_all_end((folder / "pids").read_text())
    task.on_kill()


def test_kill_9_of_the_task_ends_program_and_grandchildren(folder: Path) -> None:
    write_program(folder, LIVES_ON)
    script = f"""
        from regression.operators.gpu_task import GpuTaskOperator
        record = {str(folder / "out.json")!r}
        GpuTaskOperator(task_id="t", program="verify", record=record, lock="GPU-1")._run()
    """
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, env=environment)
    pids = wait_for(folder / "pids")
    parent.kill()
    parent.wait()
    assert_all_end(pids)
    with device_lock(folder / "runs" / "locks", "GPU-1"):
        pass


def test_kill_9_of_the_task_ends_what_left_the_group(folder: Path) -> None:
    write_program(folder, "deserter(); time.sleep(60)")
    script = f"""
        from regression.operators.gpu_task import GpuTaskOperator
        GpuTaskOperator(task_id="t", program="verify", record={str(folder / "out.json")!r})._run()
    """
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, env=environment)
    pids = wait_for(folder / "pids")
    parent.kill()
    parent.wait()
    assert_all_end(pids)


def test_on_kill_ends_what_left_the_group(folder: Path) -> None:
    started = time.monotonic()
    task = operator(folder, "deserter(); time.sleep(60)", grace_s=0.1)
    threading.Thread(target=lambda: (wait_for(folder / "pids"), task.on_kill())).start()
    with pytest.raises(AirflowException, match="infrastructure_failure"):
        run(task)
    assert time.monotonic() - started < 30
    assert_all_end((folder / "pids").read_text())


def test_the_program_dies_with_its_guard_even_when_nobody_watches(folder: Path) -> None:
    write_program(folder, "Path('new').write_text(str(os.getpid())); Path('new').rename('pid'); time.sleep(60)")
    leash, held = os.pipe()
    command = [sys.executable, str(GUARD), str(leash), sys.executable, "-m", "gpu_tasks", "--out", "x"]
    guard = subprocess.Popen(command, cwd=folder, start_new_session=True, pass_fds=[leash])
    pid = wait_for(folder / "pid")
    guard.kill()
    guard.wait()
    assert_all_end(pid)
    os.close(leash)
    os.close(held)


def test_a_device_is_used_by_one_program_at_a_time(folder: Path) -> None:
    body = (
        "start = time.time(); time.sleep(0.4); record('ok'); "
        "Path(out.name + '.times').write_text(f'{start} {time.time()}')"
    )
    tasks = [operator(folder, body, record=str(folder / f"{n}.json"), lock="GPU/../1") for n in range(2)]
    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    spans = sorted(tuple(map(float, (folder / f"{n}.json.times").read_text().split())) for n in range(2))
    assert spans[0][1] <= spans[1][0]


def test_the_program_sees_neither_airflow_nor_secrets(folder: Path) -> None:
    given = {"AIRFLOW__X": "1", "PGPASSWORD": "1", "AIRFLOW_CONN_X": "1", "MY_TOKEN": "1", "NIGHTLY_DSN": "1"}
    kept = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0", "NIGHTLY_PAYLOADS": "/p"}
    assert child_environment(given | kept | {"PYTHONPATH": "/x"}, {"A": "b"}) == kept | {
        "PYTHONUNBUFFERED": "1",
        "A": "b",
    }


def test_the_environment_that_was_asked_for_is_the_programs_and_what_is_empty_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "by the machine")
    found = "open('found', 'w').write(repr([os.environ.get(name) for name in ('GIVEN', 'OTHER')])); record('ok')"
    for env, expected in (({"GIVEN": "", "OTHER": "x"}, ["by the machine", "x"]), ({"GIVEN": "y"}, ["y", None])):
        run(operator(folder, found, env=env))
        assert (folder / "found").read_text() == repr(expected)


def test_a_workload_may_have_an_interpreter_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_GPU_PYTHON", "/nowhere/python")
    with pytest.raises(AirflowException, match="infrastructure_failure"):
        run(operator(folder, "record('ok')", workload="learner"))
    monkeypatch.setenv("NIGHTLY_GPU_PYTHON_LEARNER", sys.executable)
    assert run(operator(folder, "record('ok')", workload="learner"))["outcome"] == "ok"
    with pytest.raises(AirflowException, match="infrastructure_failure"):
        run(operator(folder, "record('ok')", workload="qda"))


def test_an_unknown_program_is_refused_when_the_dag_is_read() -> None:
    with pytest.raises(ValueError, match="program: expected one of provision"):
        GpuTaskOperator(task_id="t", program="dance", record="x")


def test_an_interpreter_that_is_not_there_is_an_infrastructure_failure(folder: Path) -> None:
    with pytest.raises(AirflowException, match="infrastructure_failure"):
        run(operator(folder, "record('ok')", python="/nowhere/python"))

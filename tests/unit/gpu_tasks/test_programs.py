"""Every program as its users start it: a child process, its exit status, its record."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.devices.manifest import COMMITTED, read_manifest
from gpu_tasks.programs import measure, validate
from gpu_tasks.programs.cli import main
from gpu_tasks.records import (
    Outcome,
    ProvisionRecord,
    RoundRecord,
    RunRecord,
    RunRequest,
    ValidationRecord,
    VerifyRecord,
    from_json,
    read_record,
    run_id_for,
    write_record,
)
from tests.support.flip_label import flipping_python
from tests.unit.gpu_tasks.running import ROOT, complaint, program

PROGRAMS = [["provision"], ["verify"], ["validate"], ["measure"], ["summarise"], ["payload", "build"], ["pin"]]


def test_provision(tmp_path: Path) -> None:
    result = program("provision", "--workload", "qda", "--device", "auto", "--out", tmp_path / "p.json")
    assert (result.returncode, result.stdout) == (0, "")
    record = read_record(tmp_path / "p.json", ProvisionRecord)
    assert record.outcome is Outcome.OK
    assert record.requested_device == "auto"
    assert record.device is not None
    assert record.device.kind == "emulated"
    assert record.device.uuid.startswith("CPU-")
    assert record.kernel is not None
    committed = read_manifest(COMMITTED).variants["class_blocks"]
    assert (record.kernel.variant, record.kernel.ptx_sha256) == ("class_blocks", committed.ptx_sha256)
    assert record.environment is not None
    assert "numpy" in record.environment.packages


@pytest.mark.parametrize(
    ("arguments", "cls"),
    [
        (["provision"], ProvisionRecord),
        (["validate", "--draw", "0"], ValidationRecord),
        (["measure", "--round", "0"], RoundRecord),
    ],
)
def test_a_gpu_that_is_not_there_is_the_machines_failure(arguments: list[str], cls: type[Any]) -> None:
    result = program(*arguments, "--device", "cuda")
    record = from_json(result.stdout, cls, "stdout")
    assert (result.returncode, record.outcome) == (5, Outcome.INFRASTRUCTURE_FAILURE)
    assert record.reason.code in ("no_cuda_driver", "cuda_error_no_device", "no_visible_gpu")
    assert complaint(result).endswith(f"{record.reason.code}: {record.reason.message}")
    assert "Traceback" not in result.stderr


def test_a_slice_of_a_gpu_is_refused(tmp_path: Path) -> None:
    result = program("provision", "--out", tmp_path / "p.json", CUDA_VISIBLE_DEVICES="MIG-98d97ad6/1/0")
    assert result.returncode == 2
    assert "mig_not_supported" in complaint(result)


@pytest.mark.parametrize(("subject", "least"), [("sources", 40), ("payload", 23)])
def test_verify(tmp_path: Path, subject: str, least: int) -> None:
    result = program("verify", "--subject", subject, "--out", tmp_path / "v.json")
    record = read_record(tmp_path / "v.json", VerifyRecord)
    assert (result.returncode, record.outcome, record.mismatches) == (0, Outcome.OK, [])
    assert record.files_checked >= least


def test_validate_and_its_time(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = program("validate", "--draw", 10, "--device", "reference", "--out", tmp_path / "v.json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3.0  # 0.4 s of CPU, however busy
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert (result.returncode, record.outcome) == (0, Outcome.OK)
    assert (record.agreed, record.total, record.device_correct, record.reference_correct) == (1000, 1000, 670, 670)
    assert record.replays_equal_eager == [True] * 3
    assert record.captured_graph_reused_across_changed_inputs is True
    assert record.intermediate_floats_equal_reference_bitwise is False
    baseline = read_record(ROOT / "gpu_tasks/baselines/qda-original-a100.json", RunRecord)
    assert record.predictions_int32_sha256 == baseline.validations[10].predictions_int32_sha256


def test_measure(tmp_path: Path) -> None:
    result = program("measure", "--round", 2, "--repeats", 12, "--out", tmp_path / "r.json")
    record = read_record(tmp_path / "r.json", RoundRecord)
    assert (result.returncode, record.outcome, record.valid) == (0, Outcome.OK, True)
    assert (record.round, record.repeats, record.protocol, record.arm) == (2, 12, "classic", "candidate")
    assert record.measurement_start is not None
    assert record.measurement_end is not None
    seconds = record.measurement_end.time_s - record.measurement_start.time_s
    assert record.wall_ms == 1000 * seconds / 12
    assert record.wall_ms > 0
    assert (record.cuda_ms, record.gross_mj, record.adjusted_mj, record.idle_before) == (None, None, None, None)
    assert record.cuda_ms_reason is not None
    assert record.cuda_ms_reason.code == "no_device_events"
    assert record.energy_reason is not None
    assert record.energy_reason.code == "no_energy_counter"


def test_without_out_the_record_goes_to_standard_output() -> None:
    result = program("validate", "--draw", 99)
    record = from_json(result.stdout, ValidationRecord, "stdout")
    assert (result.returncode, record.outcome, record.draw) == (2, Outcome.BAD_INPUT, 99)


@pytest.mark.parametrize(
    ("arguments", "cls", "code"),
    [
        (["provision", "--inject", "energy+10%"], ProvisionRecord, "inject_needs_simulated"),
        (["provision", "--device", "simulated", "--inject", "luck"], ProvisionRecord, "bad_inject"),
        (["provision", "--device", "abacus"], ProvisionRecord, "unknown_device"),
        (["provision", "--workload", "lda"], ProvisionRecord, "unknown_workload"),
        (["verify", "--subject", "payload", "--payload", "nowhere"], VerifyRecord, "payload_not_found"),
        (["verify", "--subject", "payload", "--payload", "../x"], VerifyRecord, "bad_payload_name"),
        (["validate", "--draw", "11"], ValidationRecord, "draw_not_found"),
        (["validate", "--draw", "-1"], ValidationRecord, "draw_not_found"),
        (["measure", "--round", "-1"], RoundRecord, "bad_round"),
        (["measure", "--round", "0", "--repeats", "0"], RoundRecord, "bad_repeats"),
        (["measure", "--round", "0", "--protocol", "guess"], RoundRecord, "unknown_protocol"),
    ],
)
def test_bad_input_leaves_a_complete_record(tmp_path: Path, arguments: list[str], cls: type[Any], code: str) -> None:
    result = program(*arguments, "--out", tmp_path / "record.json")
    record = read_record(tmp_path / "record.json", cls)
    assert (result.returncode, record.outcome, record.reason.code) == (2, Outcome.BAD_INPUT, code)
    assert complaint(result) == f"gpu_tasks {arguments[0]}: bad_input: {code}: {record.reason.message}"
    assert "Traceback" not in result.stderr


def test_a_flipped_byte_is_a_mismatch_before_anything_runs(payload_copy: Path, tmp_path: Path) -> None:
    data = bytearray((payload_copy / "draw-07.npz").read_bytes())
    data[1000] ^= 1
    (payload_copy / "draw-07.npz").write_bytes(data)
    environment = {"NIGHTLY_PAYLOADS": str(payload_copy.parent)}
    out = tmp_path / "v.json"
    result = program("verify", "--subject", "payload", "--payload", "payload", "--out", out, **environment)
    record = read_record(out, VerifyRecord)
    assert (result.returncode, record.outcome) == (4, Outcome.VERIFICATION_MISMATCH)
    assert {mismatch.file for mismatch in record.mismatches} == {"draw-07.npz"}
    assert "draw-07.npz" in complaint(result)
    for draw in ("7", "6"):  # draw 6 captures its graph on draw 7
        assert program("validate", "--draw", draw, "--payload", "payload", **environment).returncode == 4
    assert program("validate", "--draw", "5", "--payload", "payload", **environment).returncode == 0
    result = program("payload", "verify", "--folder", payload_copy)
    assert result.returncode == 4
    assert "draw-07.npz: sha256: expected" in result.stderr


def test_a_flipped_label_is_a_regression(tmp_path: Path) -> None:
    python = flipping_python(tmp_path, draw=3, index=17)
    result = program("validate", "--draw", 3, "--out", tmp_path / "v.json", python=python)
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert (result.returncode, record.outcome, record.agreed) == (1, Outcome.REGRESSION, 999)
    assert [mismatch.index for mismatch in record.mismatches] == [17]
    assert record.replays_equal_eager == [True] * 3
    assert "draw 3: 1 of 1000 predictions disagree, the first at index 17" in complaint(result)
    assert program("validate", "--draw", 4, python=python).returncode == 0


def flipping(device: Any, when: int) -> Any:
    """``device`` with one label wrong in its ``when``-th answer."""
    predictions, calls = device.predictions, iter(range(99))

    def flipped() -> Any:
        found = predictions()
        if next(calls) == when:
            found[5] += 1
        return found

    device.predictions = flipped
    return device


def test_a_replay_that_differs_is_a_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opener = validate.open_device
    monkeypatch.setattr(validate, "open_device", lambda *a, **k: flipping(opener(*a, **k), when=2))
    assert main(["validate", "--draw", "1", "--out", str(tmp_path / "v.json")]) == 1
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert record.reason is not None
    assert record.reason.code == "replay_differs"
    assert record.replays_equal_eager == [True, False, True]
    assert record.agreed == 1000


@pytest.mark.parametrize(("when", "word", "measured"), [(0, "before", False), (1, "after", True)])
def test_a_round_without_verified_output_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int, word: str, measured: bool
) -> None:
    opener = measure.open_device
    monkeypatch.setattr(measure, "open_device", lambda *a, **k: flipping(opener(*a, **k), when=when))
    assert main(["measure", "--round", "0", "--repeats", "5", "--out", str(tmp_path / "r.json")]) == 3
    record = read_record(tmp_path / "r.json", RoundRecord)
    assert (record.outcome, record.valid) == (Outcome.INVALID_MEASUREMENT, False)
    assert record.reason is not None
    assert record.reason.code == "output_not_verified"
    assert f"{word} the round, the first at index 5" in record.reason.message
    assert (record.wall_ms is not None) is measured


def test_an_unexpected_error_is_an_infrastructure_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(validate, "open_device", explode)
    assert main(["validate", "--draw", "1", "--out", str(tmp_path / "v.json")]) == 5
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert record.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert record.reason is not None
    assert (record.reason.code, record.reason.message) == ("unexpected_error", "ZeroDivisionError: two lines")
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    def fill(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(validate, "open_device", fill)
    assert main(["validate", "--draw", "1", "--out", str(tmp_path / "v.json")]) == 5
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert record.reason is not None
    assert record.reason.code == "no_space"
    assert record.reason.message.endswith(os.strerror(number))
    assert "Traceback" not in capsys.readouterr().err


def test_a_missing_package_still_leaves_a_record(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy here')", encoding="utf-8")
    result = program("validate", "--draw", 0, "--out", tmp_path / "v.json", PYTHONPATH=str(tmp_path))
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert (result.returncode, record.outcome) == (5, Outcome.INFRASTRUCTURE_FAILURE)


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = program("provision", "--out", tmp_path / "file" / "p.json")
    assert result.returncode == 5
    assert "record_not_written" in complaint(result)


@pytest.mark.parametrize("where", ["/dev/full", "folder"])
def test_where_no_record_can_be_is_bad_input_and_not_the_status_of_a_regression(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    result = program("provision", "--out", tmp_path / where)
    assert result.returncode == 2
    assert ": bad_input: not_a_file: " in complaint(result)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "the keyboard")])
def test_a_signal_ends_a_round_with_a_record(tmp_path: Path, number: signal.Signals, word: str) -> None:
    arguments = ["measure", "--round", "0", "--repeats", "1000000", "--out", str(tmp_path / "r.json")]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits it ignored
    with subprocess.Popen(
        [sys.executable, "-m", "gpu_tasks", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stderr is not None
            assert child.stderr.readline().startswith("round 0: 1000000 replays, about ")
            child.send_signal(number)
            assert child.wait(timeout=120) == 5
        finally:
            child.kill()
            signal.signal(signal.SIGINT, before)
    record = read_record(tmp_path / "r.json", RoundRecord)
    assert record.reason is not None
    assert (record.reason.code, record.reason.message) == ("interrupted", f"ended by {word}")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def request(folder: Path) -> RunRequest:
    made = RunRequest(
        accepted_at="2026-11-30T02:00:00.000000Z",
        workload="qda",
        dag_id="nightly_qda",
        dag_run_id="manual__1",
        run_id=run_id_for("nightly_qda", "manual__1"),
        trigger="manual",
        logical_date=None,
        device="auto",
        variant=None,
        payload="original",
        draws=[0, 1],
        rounds=1,
        repeats=None,
        protocol="classic",
        label=None,
        note=None,
    )
    write_record(made, folder / "request.json")
    return made


def test_a_small_night_end_to_end(tmp_path: Path) -> None:
    made = request(tmp_path)
    assert program("provision", "--out", tmp_path / "provision.json").returncode == 0
    for subject in ("sources", "payload"):
        assert program("verify", "--subject", subject, "--out", tmp_path / f"verify-{subject}.json").returncode == 0
    for draw in made.draws:
        assert program("validate", "--draw", draw, "--out", tmp_path / f"validation-{draw:02d}.json").returncode == 0
    assert program("measure", "--round", 0, "--repeats", 10, "--out", tmp_path / "round-00.json").returncode == 0
    arguments = [
        "summarise",
        "--request",
        tmp_path / "request.json",
        "--folder",
        tmp_path,
        "--out",
        tmp_path / "run.json",
    ]
    assert program(*arguments).returncode == 0
    run = read_record(tmp_path / "run.json", RunRecord)
    assert (run.outcome, run.request) == (Outcome.OK, made)
    assert (run.summary.agreed, run.summary.total, run.summary.rounds_valid) == (2000, 2000, 1)
    assert (run.energy_trust, run.provenance) == ("unavailable", {})
    assert run.kernel is not None
    assert run.kernel.variant == "class_blocks"
    assert run.started_at == made.accepted_at
    (tmp_path / "round-00.json").unlink()
    result = program(*arguments)
    assert result.returncode == 5
    assert complaint(result).endswith("parts_missing: did not run: round-00")


def test_summarise_needs_a_request(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"workload": "qda"}', encoding="utf-8")
    result = program("summarise", "--request", tmp_path / "request.json", "--folder", tmp_path, "--out", tmp_path / "o")
    assert result.returncode == 2
    assert "request.json: $.accepted_at: expected a value" in complaint(result)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "original"], "payload_exists"),
        (["--set", "spring"], "bad_seeds: --seeds: expected the seeds of the new set spring"),
        (["--set", "original", "--seeds", "1", "--folder", "/nonexistent/x"], "bad_seeds"),
        (["--set", "Spring!", "--seeds", "1"], "bad_payload_name"),
        (["--set", "spring", "--seeds", "1"], "bad_source: /nonexistent"),
    ],
)
def test_payload_build_refuses(arguments: list[str], words: str) -> None:
    result = program("payload", "build", "--source", "/nonexistent", *arguments)
    assert result.returncode == 2
    assert words in complaint(result)


def test_payload_verify() -> None:
    result = program("payload", "verify")
    assert result.returncode == 0
    assert result.stdout.startswith("original: 23 files verified, manifest d16f219fcbbe")


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_needs_no_numpy(name: list[str], tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError", encoding="utf-8")
    result = program(*name, "--help", PYTHONPATH=str(tmp_path))
    assert result.returncode == 0
    assert "usage: python -m gpu_tasks" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["launch"], ["validate"], ["validate", "--draw", "one"], ["pin", "--force"]])
def test_wrong_usage_is_bad_input(arguments: list[str]) -> None:
    result = program(*arguments)
    assert result.returncode == 2
    assert "usage:" in result.stderr


@pytest.mark.parametrize(
    "words", [["candidate", "--spec=--"], ["validate", "--draw", "0", "--out=--"], ["pin", "-x=--"]]
)
def test_two_dashes_are_no_value(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """argparse drops them there and hands on an empty list."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert f"argument {words[-1][:-3]}: expected a value, found '--'" in capsys.readouterr().err

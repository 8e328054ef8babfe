"""Nights under the real scheduler, from the command line to the database."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from local.paths import ROOT
from tests.support.installation import Installation

SMALL = ("--param", "draws=[3]", "--param", "rounds=1")


def _result(finished: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(finished.stdout.splitlines()[-1])


def _supervisor_log(installation: Installation) -> str:
    return (installation.home / "logs" / "supervisor.log").read_text()


def _wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"ended without saying {text!r}")


def test_a_second_run_is_refused_and_a_killed_one_can_be_run_again_whole(installation: Installation) -> None:
    before = installation.query("SELECT count(*) AS runs FROM run")
    first = installation.start("run")
    _wait_for_line(first, "run run__")
    second = installation.nightly("run", *SMALL)
    assert second.returncode == 5
    assert f"another `nightly run` is in progress already (pid {first.pid})" in second.stderr
    refused = installation.nightly("down")
    assert refused.returncode == 5
    assert first.poll() is None, "they waited instead of saying so"

    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    installation.wait_until_quiet()
    assert installation.query("SELECT count(*) AS runs FROM run") == before

    night = installation.nightly("run", "--json")
    assert night.returncode == 0, night.stderr
    assert "of nightly_qda: whoever waited for it is gone; marked as failed" in _supervisor_log(installation)
    result = _result(night)
    assert result["agreement"] == {"agreed": 11000, "total": 11000}
    assert result["checks"]["agreement"]["verdict"] == "ok"
    assert result["checks"]["energy"]["verdict"] == "unavailable"
    assert (result["verdict"], result["exit"]) == ("ok", 0)
    pinned = json.loads((ROOT / "kernels/ptx/manifest.json").read_text())["variants"]["class_blocks"]["ptx_sha256"]
    assert result["kernel"] == {"variant": "class_blocks", "ptx_sha256": pinned}
    (row,) = installation.query("SELECT agreed, total, rounds_valid, verdict, run_id FROM nightly")
    assert row == {"agreed": 11000, "total": 11000, "rounds_valid": 7, "verdict": "ok", "run_id": result["run_id"]}
    assert (installation.home / "records" / f"{result['run_id']}.json").exists()
    asked = installation.nightly("sql", "--name", "run_report", "--param", f"run={result['run_id']}", "--json")
    (report,) = json.loads(asked.stdout)
    assert (report["verdict"], report["agreed"], report["rounds_valid"]) == ("ok", 11000, 7)
    table = installation.nightly("sql", "--name", "accuracy_by_draw")
    assert (table.returncode, "(11 rows)" in table.stdout) == (0, True), table.stderr
    assert installation.processes() == []


def test_ctrl_c_ends_the_run_and_everything_it_started(installation: Installation) -> None:
    run = installation.start("run", *SMALL)
    _wait_for_line(run, "run run__")
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=300) == 130
    installation.wait_until_quiet()


@pytest.mark.parametrize(
    ("param", "said"),
    [("roundz=3", "param roundz"), ("rounds=0", "rounds"), ("payload=../x", "payload")],
)
def test_params_that_mean_nothing_are_bad_input(installation: Installation, param: str, said: str) -> None:
    refused = installation.nightly("run", "--param", param)
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr


def test_a_flipped_byte_or_an_unpinned_line_ends_before_any_measurement_and_a_flipped_label_after_it(
    installation: Installation, copied_checkout: Path
) -> None:
    source, draw = "gpu_tasks/workloads/qda/reference_device.py", "gpu_tasks/payload/original/draw-03.npz"
    whole = (copied_checkout / draw).read_bytes()
    (copied_checkout / draw).write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    _flip_a_label(copied_checkout / source)
    stopped = installation.nightly("run", "--json", "--device", "reference")
    assert stopped.returncode == 4, stopped.stderr
    result = _result(stopped)
    assert (result["verdict"], result["exit"]) == ("verification_mismatch", 4)
    (row,) = installation.query(
        "SELECT verdict, exit_code, reason_message,"
        " (SELECT count(*) FROM validation v WHERE v.run_id = n.run_id) AS validations,"
        " (SELECT count(*) FROM round r WHERE r.run_id = n.run_id) AS rounds"
        f" FROM nightly n WHERE run_id = '{result['run_id']}'"
    )
    assert (row["verdict"], row["exit_code"], row["validations"], row["rounds"]) == ("verification_mismatch", 4, 0, 0)
    assert source in row["reason_message"]
    assert source in stopped.stderr
    assert "draw-03.npz" in installation.nightly("logs", result["dag_run_id"], "verify_payload").stdout

    (copied_checkout / draw).write_bytes(whole)
    assert installation.nightly("pin").returncode == 0
    night = installation.nightly("run", "--json", "--device", "reference", *SMALL)
    assert night.returncode == 1, night.stderr
    reason = _result(night)["checks"]["agreement"]["reason"]
    assert "draw 3" in reason
    assert "index 17" in reason
    assert installation.processes() == []


def _flip_a_label(source: Path) -> None:
    text = source.read_text()
    wrong = "\n\n_right = ReferenceQda.predictions\n\n\ndef _wrong(self):\n    found = _right(self)\n"
    wrong += "    found[17] = (found[17] + 1) % 10\n    return found\n\n\nReferenceQda.predictions = _wrong\n"
    assert "class ReferenceQda" in text
    source.write_text(text + wrong)

"""A kernel that changes, from its source to the baseline of the next night, under the real scheduler."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.paths import Home
from local.stack import Stack
from tests.support.installation import Installation
from tests.support.scratch import CHANGES, PERSON

SIMULATED = ("--device", "simulated", "--draws", "3", "--rounds", "1", "--blocks", "4", "--param", "seed=1")
SOURCE = "kernels/class_blocks.py"
DONE = "SELECT dag_run_id, verdict, predictions_word, origin, commit, note FROM candidate_runs"


@pytest.fixture(scope="module")
def checkout(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout that is a repository, with a running stack."""
    installation.copy_checkout(tmp_path_factory.mktemp("checkout") / "checkout")
    git(installation.root, "init", "--quiet", "--initial-branch=main")
    git(installation.root, "add", "--all")
    git(installation.root, "commit", "--quiet", "--message", "as it was")
    started = installation.nightly("up", "--schedule", "0 3 1 1 *")
    assert started.returncode == 0, started.stderr
    yield installation.root
    installation.nightly("down", "--force")
    installation.wait_until_quiet(timeout_s=10)


def git(root: Path, *arguments: str) -> str:
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(root), *PERSON, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def last_line(finished: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(finished.stdout.splitlines()[-1])


def follow_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line.strip()
    pytest.fail(f"ended without saying {text!r}")


def wait_for(installation: Installation, statement: str) -> dict:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        rows = installation.query(statement)
        if rows:
            return rows[0]
        time.sleep(1)
    pytest.fail(f"no row of {statement}")


def test_from_an_edit_to_the_baseline_of_the_next_night(installation: Installation, checkout: Path) -> None:
    git(checkout, "apply", str(CHANGES / "reordered.patch"))
    tried = installation.nightly("try", SOURCE, *SIMULATED, "--json")
    assert tried.returncode == 0, tried.stderr
    found = last_line(tried)
    words = {name: check["word"] for name, check in found["comparison"].items()}
    assert words == {"compare_predictions": "same", "compare_time": "same", "compare_energy": "same"}
    assert (found["verdict"], found["agreement"]) == ("ok", {"agreed": 1000, "total": 1000})
    assert set(found["checks"]) == {"compare_predictions", "compare_time", "compare_energy"}
    run_id, tile = found["dag_run_id"], found["kernel"]["ptx_sha256"]
    (row,) = installation.query(f"{DONE} WHERE dag_run_id = '{run_id}'")
    assert row["commit"] == git(checkout, "rev-parse", "HEAD")
    assert installation.query(f"SELECT count(*) AS nights FROM nightly WHERE dag_run_id = '{run_id}'") == [
        {"nights": 0}
    ]

    early = installation.nightly("promote", run_id, "--reason", "words first")
    assert early.returncode == 2
    assert "expected the kernel that nights run" in early.stderr
    assert installation.nightly("pin").returncode == 0
    promoted = installation.nightly("promote", run_id, "--reason", "words first")
    assert promoted.returncode == 0, promoted.stderr
    assert f"-> class_blocks {tile[:12]}" in promoted.stdout

    params = ("draws=[3]", "rounds=3", "confirm_rounds=0", "seed=1")
    night = installation.nightly("run", "--json", *SIMULATED[:2], *(f"--param={param}" for param in params))
    result = last_line(night)
    assert result["kernel"]["ptx_sha256"] == tile
    assert result["checks"]["agreement"]["verdict"] == "ok", night.stderr
    assert f"as in baseline {result['device']} {run_id}" in result["checks"]["agreement"]["reason"]
    assert run_id in result["checks"]["time"]["reason"]
    git(checkout, "commit", "--quiet", "--all", "--message", "words first")


def test_a_merge_is_measured_by_the_hook_and_down_waits_for_it(installation: Installation, checkout: Path) -> None:
    hook = checkout / ".git/hooks/post-merge"
    hook.parent.mkdir(exist_ok=True)
    text = (checkout / "docs/hooks/post-merge").read_text()
    hook.write_text(text.replace("changed HEAD", "changed HEAD --device emulated"))
    hook.chmod(0o755)
    git(checkout, "checkout", "--quiet", "-b", "tile", "HEAD")
    git(checkout, "apply", str(CHANGES / "swapped.patch"))
    with (checkout / "kernels/ptx/fused.ptx").open("a") as ptx:
        ptx.write("// what the hook looks at\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "no centre")
    merged = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "main")
    environment = os.environ | {"NIGHTLY_HOME": str(installation.home)}
    command = ["git", *PERSON, "merge", "--no-edit", "tile"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "kernel_changed: event " in done.stdout + done.stderr
    airflow = Stack(Home(installation.home), None).airflow()
    deadline = time.monotonic() + 300
    while not airflow.unfinished_runs("compare_kernels") and time.monotonic() < deadline:
        time.sleep(0.2)
    refused = installation.nightly("down")
    assert refused.returncode == 5, refused.stdout
    assert "is in progress; wait for it, or use --force" in refused.stderr
    row = wait_for(installation, f"{DONE} WHERE commit = '{merged}' AND verdict <> 'not judged'")
    assert row["dag_run_id"].startswith("changed__")
    assert row["note"] == f"merged as {merged[:7]}"
    assert (row["origin"], row["predictions_word"]) == ("ref", "same")
    git(checkout, "reset", "--quiet", "--hard", "HEAD~1")


def test_a_killed_try_takes_its_run_along_and_leaves_the_stack(installation: Installation, checkout: Path) -> None:
    git(checkout, "apply", str(CHANGES / "swapped.patch"))
    tried = installation.start("try", SOURCE, *SIMULATED)
    run_id = follow_until(tried, "run try__").removeprefix("run ")
    tried.send_signal(signal.SIGKILL)
    tried.communicate()
    log = installation.home / "logs" / "supervisor.log"
    deadline = time.monotonic() + 300
    while run_id not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert f"run {run_id} of compare_kernels: whoever waited for it is gone; marked as failed" in log.read_text()
    interrupted = installation.start("try", SOURCE, *SIMULATED)
    follow_until(interrupted, "run try__")
    interrupted.send_signal(signal.SIGTERM)
    assert interrupted.wait(timeout=300) == 130
    interrupted.communicate()
    again = installation.nightly("try", SOURCE, *SIMULATED, "--json")  # and the GPU is free
    assert again.returncode == 0, again.stderr
    git(checkout, "checkout", "--quiet", "--", ".")


def test_a_queued_trial_returns_at_once(installation: Installation, checkout: Path) -> None:
    git(checkout, "apply", str(CHANGES / "swapped.patch"))
    queued = installation.nightly("try", SOURCE, *SIMULATED, "--queue", "--note", "no hurry")
    assert queued.returncode == 0, queued.stderr
    run_id = queued.stdout.strip()
    git(checkout, "checkout", "--quiet", "--", ".")  # what was looked at is what is compared
    row = wait_for(installation, f"{DONE} WHERE dag_run_id = '{run_id}' AND verdict <> 'not judged'")
    assert (row["predictions_word"], row["note"]) == ("same", "no hurry")


def test_a_measured_search_goes_by_the_interval_and_tries_no_kernel_twice(
    installation: Installation, checkout: Path
) -> None:
    """The simulated device makes every kernel slower that is not the good one: the first other one is to be found."""
    good, source = git(checkout, "rev-parse", "HEAD"), checkout / SOURCE
    at = "    stage_query_word(queries, word, at)\n"
    for remark, added in (("# a remark\n", ""), ("", "    move(1)\n"), ("", "    move(2)\n")):
        source.write_text(source.read_text().replace(at, added + at) + remark)
        git(checkout, "commit", "--quiet", "--all", "--message", f"kernels {added.strip() or 'as before'}")
    before = installation.query("SELECT count(*) AS runs FROM candidate_runs")[0]["runs"]
    measured = ("--metric", "cuda_ms", "--device", "simulated", "--blocks", "4")
    params = ("--param", "inject=time+3%", "--param", "draws=[3]", "--param", "seed=1")
    found = installation.nightly("bisect", "--good", good, "--bad", "HEAD", *measured, *params)
    assert found.returncode == 0, found.stderr
    _, commit, good_line, bad_line = found.stdout.splitlines()
    assert commit.endswith("kernels move(1)")
    assert good_line.startswith("cuda_ms before: the kernel of the good commit (")
    assert bad_line.startswith("cuda_ms after:  CUDA time ")
    assert installation.query("SELECT count(*) AS runs FROM candidate_runs") == [{"runs": before + 2}]
    git(checkout, "reset", "--quiet", "--hard", good)

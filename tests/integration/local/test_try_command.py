"""``nightly try`` without a stack: the answers to prepared changes, what is refused, what an interruption leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.processes import is_alive
from tests.support.scratch import Scratch

pytest.importorskip("pyptx", reason="pyptx is not installed: no kernel source can be tried")

TRAIN = "kernels/ptx/class_blocks_train.ptx"
SOURCE = "kernels/class_blocks.py"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("scratch"))


@pytest.fixture
def scratch(place: Scratch) -> Iterator[Scratch]:
    """The same checkout for every test, as it was."""
    yield place
    place.restore()
    place.git("clean", "--quiet", "--force", "-d")


def last_line(finished: subprocess.CompletedProcess[str]) -> dict:
    found: dict = json.loads(finished.stdout.splitlines()[-1])
    return found


def test_a_harmless_reordering_is_the_same_kernel_but_for_its_text(scratch: Scratch) -> None:
    scratch.change("reordered")
    tried = scratch.nightly("try", SOURCE, "--json")
    assert tried.returncode == 0, tried.stderr
    found = last_line(tried)
    assert found["comparison"]["compare_predictions"]["word"] == "same"
    assert "11000 of 11000 predictions on 11 draws" in found["comparison"]["compare_predictions"]["reason"]
    assert found["comparison"]["compare_time"]["verdict"] == "unavailable"
    assert (found["verdict"], found["exit"], found["run_id"]) == ("ok", 0, None)
    assert (found["candidate"]["origin"], found["candidate"]["modified"]) == ("source", True)
    assert found["candidate"]["commit"] == scratch.git("rev-parse", "HEAD")
    assert "verdict: not worse on the emulator (exit 0)" in tried.stderr
    assert "no GPU here" in tried.stderr
    assert not (scratch.home / "stack.json").exists()  # nothing was started for it


def test_moments_that_are_not_centred_give_wrong_predictions_and_no_rounding_ones(scratch: Scratch) -> None:
    scratch.change("uncentred")
    tried = scratch.nightly("try", "kernels/qda.py", "--draws", "0,3", "--device", "emulated", "--json")
    assert tried.returncode == 1, tried.stderr  # and no stack is started for what is wrong
    found = last_line(tried)["comparison"]["compare_predictions"]
    assert (found["verdict"], found["word"], found["draws"]) == ("regressed", "worse", [0, 3])
    assert 100 < found["differing_total"] < 1000
    assert "not rounding" in tried.stderr
    assert "draw  index  candidate  pinned  frozen" in tried.stderr
    assert "also changed and not tried: record, fused" in tried.stderr
    assert not (scratch.home / "stack.json").exists()


def test_a_barrier_that_is_gone_is_a_race_with_its_two_lines(scratch: Scratch) -> None:
    scratch.change("unsynchronised")
    tried = scratch.nightly("try", SOURCE, "--json")
    assert tried.returncode == 1, tried.stderr
    found = last_line(tried)["comparison"]["compare_predictions"]
    assert found["word"] == "worse"
    assert "read of byte" in found["reason"]
    assert "with no barrier since a write at line" in found["reason"]
    assert last_line(tried)["verdict"] == "regression"


def test_arithmetic_that_gets_every_draw_right_by_chance_is_worse(scratch: Scratch) -> None:
    """On raw moments all frozen predictions come out; moved by a constant, the same problem does not."""
    scratch.change("raw_moments")
    tried = scratch.nightly("try", SOURCE, "--json")
    assert tried.returncode == 1, tried.stderr
    found = last_line(tried)["comparison"]["compare_predictions"]
    assert (found["word"], found["differing_total"]) == ("worse", 0)
    assert "right as it is, wrong where every feature is moved by a constant" in found["reason"]


def test_another_order_of_the_same_instructions_is_the_same(scratch: Scratch) -> None:
    scratch.change("swapped")
    tried = scratch.nightly("try", SOURCE, "--json")
    assert tried.returncode == 0, tried.stderr
    assert last_line(tried)["comparison"]["compare_predictions"]["word"] == "same"


def test_the_pinned_kernel_itself_is_refused_and_offered_as_an_a_a_run(scratch: Scratch) -> None:
    refused = scratch.nightly("try", SOURCE, "--json")
    assert refused.returncode == 2
    assert "found the same text and geometry; --aa compares a kernel with itself" in refused.stderr
    assert last_line(refused)["verdict"] == "bad_input"
    compared = scratch.nightly("try", SOURCE, "--aa", "--draws", "3", "--json")
    assert compared.returncode == 0, compared.stderr
    assert last_line(compared)["comparison"]["compare_predictions"]["word"] == "same"
    scratch.change("reordered")
    for asked in (["--aa"], ["--param", "kernel_changed=false"]):
        refused = scratch.nightly("try", SOURCE, *asked)
        assert refused.returncode == 2
        assert "expected the pinned kernel itself for an A/A run, found another" in refused.stderr


def test_a_ref_a_variant_a_text_and_a_bundle_are_tried_as_a_source_is(scratch: Scratch) -> None:
    scratch.change("reordered")
    commit = scratch.commit("words first")
    try:
        by_ref = scratch.nightly("try", "HEAD", "--draws", "0", "--json")
        found = last_line(by_ref)["candidate"]
        assert (found["origin"], found["commit"], found["modified"]) == ("ref", commit, False)
    finally:
        scratch.git("reset", "--quiet", "--hard", "HEAD~1")
    again = scratch.nightly("try", found["bundle"], "--draws", "0", "--json")
    assert last_line(again)["candidate"]["origin"] == "bundle"
    assert last_line(again)["candidate"]["bundle"] == found["bundle"]
    variant = scratch.nightly("try", "record", "--draws", "0", "--json")
    assert (variant.returncode, last_line(variant)["candidate"]["origin"]) == (0, "variant")
    text = scratch.root / TRAIN
    text.write_text(text.read_text() + "// a remark\n")
    remarked = scratch.nightly("try", TRAIN, "--draws", "0", "--json")
    assert (remarked.returncode, last_line(remarked)["candidate"]["origin"]) == (0, "ptx"), remarked.stderr


def test_a_path_is_meant_from_where_one_stands(scratch: Scratch) -> None:
    scratch.change("reordered")
    tried = scratch.nightly("try", "class_blocks.py", "--draws", "0", "--json", cwd=scratch.root / "kernels")
    assert tried.returncode == 0, tried.stderr
    assert last_line(tried)["candidate"]["spec"] == SOURCE
    elsewhere = scratch.nightly("try", SOURCE, "--draws", "0", "--json", cwd=scratch.root.parent)
    assert last_line(elsewhere)["candidate"]["spec"] == SOURCE


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("/etc/passwd", "expected a path inside the repository"),
        ("../home", "expected a path inside the repository"),
        ("kernels", "expected a file, found a folder"),
        ("README.md", "expected kernels/*.py, a .ptx or a kernel manifest"),
        ("no-such-ref", "expected a path in the repository, a variant"),
        ("candidate-0000000000000000", "expected a bundle in"),
        ("kernels/outside.py", "expected a path inside the repository"),
    ],
)
def test_what_is_no_kernel_is_refused_in_one_line(scratch: Scratch, spec: str, told: str) -> None:
    scratch.home.mkdir(exist_ok=True)
    (scratch.root / "kernels" / "outside.py").symlink_to("/etc/passwd")
    refused = scratch.nightly("try", spec, "--json")
    assert refused.returncode == 2, refused.stderr
    line = refused.stderr.splitlines()[-1]
    assert line.startswith(f"nightly: {spec}: ")
    assert told in line
    assert (last_line(refused)["exit"], last_line(refused)["candidate"]) == (2, None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--draws", "11"], "--draws: payload original has"),
        (["--draws", "a"], "expected numbers such as 0,3"),
        (["--blocks", "-1"], "expected a number from 0"),
        (["--blocks", "9999"], "--blocks: expected 0 to 100, found 9999"),
        (["--param", "blocks=101"], "param blocks: expected 0 to 100, found 101"),
        (["--device", "reference"], "invalid choice"),
        (["--param", "inject=throttle"], "param inject: expected none unless the device is simulated"),
        (["--param", "roundz=3"], "param roundz"),
        (["--param", "note=a", "--note", "b"], "--param: note is given twice"),
        (["--note", " "], "expected some words"),
        (["--variant", "nope"], "expected class_blocks or fused or record"),
        (["--queue"], "try --queue: expected a running stack, found none"),
        (["--queue", "--json"], "not allowed with"),
    ],
)
def test_options_that_mean_nothing_are_refused(scratch: Scratch, options: list[str], told: str) -> None:
    refused = scratch.nightly("try", SOURCE, *options)
    assert refused.returncode == 2, refused.stderr
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_source_that_does_not_build_is_said_in_one_line(scratch: Scratch) -> None:
    scratch.replace(SOURCE, "THREADS = 512\n", "THREADS = 512 +\n")
    refused = scratch.nightly("try", SOURCE)
    assert refused.returncode == 2
    assert "expected kernels that build, found: SyntaxError" in refused.stderr.splitlines()[-1]


def descendants(pid: int) -> set[int]:
    """Pids of a process and of all that came of it, as far as they still have it as an ancestor."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("line", ["candidate: ", "emulator: 11 draws"], ids=["frozen", "emulating"])
def test_an_interruption_leaves_nothing_running_and_nothing_half_written(
    scratch: Scratch, number: signal.Signals, line: str
) -> None:
    scratch.change("reordered")
    tried = scratch.start("try", SOURCE, "--json")
    assert tried.stderr is not None
    if not any(line in said for said in tried.stderr):
        pytest.fail(f"it ended without saying {line!r}")
    started = descendants(tried.pid)
    tried.send_signal(number)
    status = tried.wait(timeout=120)
    tried.communicate()
    if number is not signal.SIGKILL:
        assert status in (130, -signal.SIGTERM)  # the latter before it listens
    deadline = time.monotonic() + 120
    while any(map(is_alive, started)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in started if is_alive(pid)] == []
    candidates = scratch.home / "candidates"
    for path in candidates.iterdir() if candidates.exists() else ():
        assert path.name.startswith("candidate-")  # nothing temporary
        if path.is_dir():
            assert sorted(file.suffix for file in path.iterdir()) == [".json", ".ptx", ".ptx"]
        else:
            assert json.loads(path.read_text())["kind"] == "source"
    assert scratch.nightly("try", SOURCE, "--draws", "0").returncode == 0


def test_a_closed_pipe_ends_it_quietly(scratch: Scratch) -> None:
    scratch.change("reordered")
    tried = scratch.start("try", SOURCE, "--draws", "0", "--json")
    assert tried.stdout is not None
    assert tried.stderr is not None
    tried.stdout.close()
    said = tried.stderr.read()
    assert tried.wait(timeout=120) == 141, said
    assert "Traceback" not in said

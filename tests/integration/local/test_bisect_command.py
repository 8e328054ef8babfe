"""``nightly bisect`` among twenty commits, with the real programs: a wrong kernel and a slower one, by its metric."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.scratch import Scratch

pytest.importorskip("pyptx", reason="pyptx is not installed: no commit can be tried")

SOURCE = "kernels/class_blocks.py"
AT = "    stage_query_word(queries, word, at)\n"
SLOW = """\
    slow = fetch_query_word(q, at)
    for _ in range(20):
        slow = fadd(slow, slow)
"""
WRONG, SLOWER = 13, 6
"""Numbers of the commits that predict wrong from then on, and take longer from then on."""
FEW = ("--param", "draws=[0]")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """Twenty commits, each another kernel; and a branch on which one does not build and the next one is wrong."""
    place = Scratch(tmp_path_factory.mktemp("scratch"))
    place.git("tag", "v0")
    before = AT
    for number in range(1, 21):
        after = f"    move({number})\n{AT}"
        if number >= SLOWER:
            after = (
                f"    slow = fetch_query_word(q, at)\n    for _ in range(20):\n        slow = fadd(slow, slow)\n{after}"
            )
        place.replace(SOURCE, before, after)
        before = after
        if number == WRONG:
            place.change("uncentred")
        place.commit(f"kernels {number}")
        place.git("tag", f"v{number}")
    place.git("checkout", "--quiet", "-b", "side", "v2")
    place.replace(SOURCE, "THREADS = 512\n", "THREADS = 512 +\n")
    place.commit("half a change")
    place.replace(SOURCE, "THREADS = 512 +\n", "THREADS = 512\n")
    place.change("uncentred")
    place.commit("the other half")
    place.git("checkout", "--quiet", "main")
    return place


def state(scratch: Scratch) -> dict:
    found: dict = json.loads((scratch.home / "bisect" / "search.json").read_text())
    return found


def test_the_wrong_commit_is_found_over_a_kill_and_nothing_of_the_checkout_is_touched(scratch: Scratch) -> None:
    (scratch.root / "kernels" / "mine.txt").write_text("not committed\n")
    before = (scratch.git("status", "--porcelain"), scratch.git("rev-parse", "HEAD"), _files(scratch.root / "kernels"))
    search = scratch.start("bisect", "--good", "v0", "--bad", "HEAD", *FEW)
    assert search.stderr is not None
    for line in search.stderr:
        if "commits left" in line:  # the ends are done, and a step has begun
            break
    search.send_signal(signal.SIGKILL)
    search.communicate(timeout=60)
    ends = state(scratch)["steps"]
    assert [step["judged"] for step in ends] == ["good", "bad"]
    refused = scratch.nightly("bisect", "--good", "v0", "--bad", "v20")
    assert (refused.returncode, "--continue goes on with it" in refused.stderr) == (2, True)

    found = scratch.nightly("bisect", "--continue")
    assert found.returncode == 0, found.stderr
    first, commit, good, bad = found.stdout.splitlines()
    assert first == "first bad commit:"
    assert commit.split()[0] == scratch.git("rev-parse", f"v{WRONG}")
    assert commit.split()[1] == "Ann"
    assert commit.endswith(f"kernels {WRONG}")
    assert good.startswith("agreement before: 1000 of 1000 predictions agree (")
    assert good.endswith(f"({scratch.git('rev-parse', f'v{WRONG - 1}')[:12]})")
    assert bad.startswith("agreement after:  ")
    assert "not rounding" in bad
    assert state(scratch)["steps"][:2] == ends  # what was done before the kill was not done again
    assert len(state(scratch)["steps"]) <= 8
    assert before == (
        scratch.git("status", "--porcelain"),
        scratch.git("rev-parse", "HEAD"),
        _files(scratch.root / "kernels"),
    )


def test_the_slower_commit_is_found_by_what_is_modelled(scratch: Scratch) -> None:
    good, bad = f"v{SLOWER - 3}", f"v{SLOWER + 3}"
    found = scratch.nightly("bisect", "--good", good, "--bad", bad, "--metric", "modelled_cycles", *FEW)
    assert found.returncode == 0, found.stderr
    _, commit, *figures = found.stdout.splitlines()
    assert commit.endswith(f"kernels {SLOWER}")
    before, after = (int(line.split()[2].replace(",", "")) for line in figures)
    assert after > before
    assert all(line.split()[4] == "(modelled)" for line in figures)


def test_a_commit_that_does_not_build_is_left_out_and_named(scratch: Scratch) -> None:
    found = scratch.nightly("bisect", "--good", "v2", "--bad", "side", *FEW)
    assert found.returncode == 0, found.stderr
    first, *commits = found.stdout.splitlines()
    assert first == "the first bad commit is one of these, as those between could not be judged:"
    assert sorted(line.rpartition("  ")[2] for line in commits[:2]) == ["half a change", "the other half"]
    half = scratch.git("rev-parse", "side~1")[:12]
    assert commits[-1].startswith(f"not judged: {half}: ")
    assert "expected kernels that build, found: SyntaxError" in commits[-1]


def test_ends_that_do_not_differ_are_refused(scratch: Scratch) -> None:
    refused = scratch.nightly("bisect", "--good", "v0", "--bad", "v1", *FEW)
    assert refused.returncode == 2
    assert "expected a bad commit by agreement, found 1000 of 1000 predictions agree" in refused.stderr
    backwards = scratch.nightly("bisect", "--good", "v1", "--bad", "v0", *FEW)
    assert backwards.returncode == 2
    assert "expected a commit in the history of v0, found a later one: are the two swapped?" in backwards.stderr


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}

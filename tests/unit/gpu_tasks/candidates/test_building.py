"""Sources that do what kernel sources should not, when they are built."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu_tasks.candidates import building
from gpu_tasks.records import BadInput, InfrastructureFailure
from tests.unit.gpu_tasks.candidates.checkouts import Checkout
from tests.unit.gpu_tasks.candidates.conftest import Candidate
from tests.unit.gpu_tasks.running import ROOT


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A checkout whose kernels build nothing but a manifest that nobody has read yet."""
    house = tmp_path / "checkout/kernels"
    house.mkdir(parents=True)
    (house / "__init__.py").write_text("", encoding="utf-8")
    return house.parent


def built(sources: Path, text: str) -> str:
    """What is said of sources that do this before they write their manifest."""
    begun = "import pathlib, sys\nfolder = pathlib.Path(sys.argv[-1])\nfolder.mkdir()\n"
    ended = "\n(folder / 'manifest.json').write_text('{}')\n"
    (sources / "kernels/__main__.py").write_text(begun + text + ended, encoding="utf-8")
    try:
        building.build(sources, sources.parent / "built", "mine")
    except BadInput as error:
        assert error.code == "does_not_build"
        return error.message
    return "built"


def is_running(marker: str) -> bool:
    """Whether a process has ``marker`` among its arguments; one that is killed may take a moment to go."""
    for _ in range(300):
        if not any(marker.encode() in arguments_of(process) for process in Path("/proc").glob("[0-9]*")):
            return False
        time.sleep(0.1)
    return True


def arguments_of(process: Path) -> bytes:
    """None of one that is gone: it may go between being listed and being read."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_good_sources(sources: Path) -> None:
    assert built(sources, "print('x' * 10_000_000); print('y' * 10_000_000, file=sys.stderr)") == "built"


def test_what_a_build_leaves_running_is_neither_waited_for_nor_left(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "TIMEOUT_S", 20.0)
    marker = f"left-by-a-build-of-{sources}"
    leave = f"import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}])"
    assert built(sources, leave) == "built", "it holds the build's standard error open"
    assert not is_running(marker)


def test_a_build_that_does_not_end_takes_along_what_it_started(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "TIMEOUT_S", 1.0)
    marker = f"left-by-a-build-of-{sources}"
    leave = f"import subprocess\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}])"
    assert "within 1 s, found the build running" in built(sources, leave)
    assert not is_running(marker)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(folder / 'a.ptx').symlink_to('/etc/passwd')", "found another kind: a.ptx"),
        ("import os; os.mkfifo(folder / 'a.ptx')", "found another kind: a.ptx"),
        ("(folder / 'a\\nb').mkdir()", "found another kind: a b"),
        ("sys.exit(0)", "expected a build that writes manifest.json, found none"),
        (
            "folder.rmdir(); folder.write_text(''); sys.exit(0)",
            "expected a build that writes manifest.json, found none",
        ),
        ("sys.exit(3)", "found: exit status 3"),
        ("raise ValueError('a\\nb')", 'found: b (File "kernels/__main__.py", line 4'),
        ("sys.exit('\\x1b[31mred\\0 and \\udcff')", "found: \\x1b[31mred\\x00 and "),
        ("sys.stderr.buffer.write(bytes(range(255))); sys.exit(1)", "found: "),
        ("x = bytearray(10**11)", "MemoryError"),
        (f"(folder / 'a.ptx').write_bytes(bytes({building.MOST_BYTES + 1}))", "OSError: [Errno 27] File too large"),
    ],
)
def test_what_is_said_of_other_builds(sources: Path, text: str, words: str) -> None:
    said = built(sources, text)
    assert (words in said, said.isprintable()) == (True, True), said
    assert str(sources) not in said


def test_a_minute_of_cpu_is_the_limit_even_where_nobody_waits(sources: Path) -> None:
    """The parent may be killed, and a loop would be there for ever."""
    text = "import resource\nsys.exit(str(resource.getrlimit(resource.RLIMIT_CPU)[0]))"
    assert built(sources, text).endswith("found: 60")


def test_a_full_disk_is_no_fault_of_the_sources(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage("/")._replace(free=building.LEAST_FREE_BYTES - 1)
    monkeypatch.setattr(building.shutil, "disk_usage", lambda _: full)
    assert built(sources, "") == "built"
    shutil.rmtree(sources.parent / "built")
    with pytest.raises(InfrastructureFailure, match="expected space to build mine in") as failed:
        built(sources, "sys.exit(1)")
    assert failed.value.code == "no_space"


PARENT = """
import pathlib, sys
from gpu_tasks.candidates.building import build
build(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), "mine")
"""


def test_a_build_ends_with_a_parent_that_is_killed(sources: Path) -> None:
    """One that waits uses no CPU time, and would wait for ever."""
    marker = f"{sources.parent}/built"
    text = "import sys, time\nopen(sys.argv[-1], 'w')\ntime.sleep(600)\n"
    (sources / "kernels/__main__.py").write_text(text, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(sources), marker], cwd=ROOT)
    while not Path(marker).exists():
        assert parent.poll() is None
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    assert not is_running(marker)


def test_a_commit_that_is_excluded_is_none(checkout: Checkout, candidate: Candidate) -> None:
    """git verifies ``^HEAD`` as a revision: all but that commit."""
    status, record = candidate("^HEAD")
    assert (status, record.reason and record.reason.code) == (2, "unknown_candidate")

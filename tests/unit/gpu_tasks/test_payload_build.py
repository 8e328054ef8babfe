"""Building sets of draws: the recipe, and that nothing that exists is ever touched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.payload import build
from gpu_tasks.payload.build import build_set
from gpu_tasks.payload.mnist import Images
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import BadInput, VerificationMismatch
from gpu_tasks.workloads.base import Workload


def quiet(_: str) -> None:
    pass


def test_a_new_set(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    lines: list[str] = []
    build_set("spring", tmp_path / "new" / "spring", blobs, [7, 0], workload=qda, progress=lines.append)
    folder = tmp_path / "new" / "spring"
    report = verify_payload("spring", folder, qda)
    assert report.mismatches == []
    assert report.files_checked == 5
    assert [line.partition(":")[0] for line in lines] == ["draw 1 of 2", "draw 2 of 2"]
    assert [path.name for path in folder.parent.iterdir()] == ["spring"]
    assert "CC BY-SA 3.0" in (folder / "ATTRIBUTION.md").read_text(encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert list(manifest) == ["seeds", "draws", "source_sha256"]
    assert list(manifest["source_sha256"]) == ["train-images", "train-labels"]


def test_the_recipe(blobs: Images, qda: Workload) -> None:
    arrays = build.draw_arrays(blobs, 7, qda)
    order = np.random.default_rng(7).permutation(2500)
    np.testing.assert_array_equal(arrays["x"], qda.features(blobs.images[order[:1000]]))
    np.testing.assert_array_equal(arrays["q"], qda.features(blobs.images[order[1000:2000]]))
    np.testing.assert_array_equal(arrays["labels"], blobs.labels[order[:1000]])
    np.testing.assert_array_equal(arrays["test_labels"], blobs.labels[order[1000:2000]])
    assert int(arrays["dataset_seed"]) == 7


def test_the_same_seeds_give_the_same_bytes(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    for name in ("one", "two"):
        build_set(name, tmp_path / name, blobs, [3], workload=qda, progress=quiet)
    for file in ("manifest.json", "draw-00.npz", "predictions/draw-00.npy"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("existing", ["file", "folder", "dangling link"])
def test_an_existing_set_is_refused_and_untouched(tmp_path: Path, blobs: Images, qda: Workload, existing: str) -> None:
    folder = tmp_path / "set"
    if existing == "file":
        folder.write_text("mine", encoding="utf-8")
    elif existing == "folder":
        folder.mkdir()
    else:
        folder.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="nothing was changed") as caught:
        build_set("set", folder, blobs, [1], workload=qda, progress=quiet)
    assert caught.value.code == "payload_exists"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_an_interrupted_build_leaves_nothing(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_set("set", tmp_path / "set", blobs, [1], workload=qda, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_original_from_another_source_is_not_kept(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    with pytest.raises(VerificationMismatch, match=r"manifest\.json: sha256: expected d16f219f.*nothing was kept"):
        build_set("original", tmp_path / "set", blobs, [1], workload=qda, progress=quiet)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seeds", "words"), [([], "found 0"), ([1, 2, 1], "found 1 more than once"), ([-1], "found -1"), ([2**63], "2..63")]
)
def test_seeds(tmp_path: Path, blobs: Images, qda: Workload, seeds: list[int], words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        build_set("set", tmp_path / "set", blobs, seeds, workload=qda, progress=quiet)
    assert caught.value.code == "bad_seeds"


def test_a_draw_that_cannot_be_used_is_named(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    no_sixes = Images(blobs.images, np.where(blobs.labels == 6, 0, blobs.labels).astype(np.uint8))
    with pytest.raises(BadInput, match=r"draw 0 \(seed 9\): labels: .* none of class 6") as caught:
        build_set("set", tmp_path / "set", no_sixes, [9], workload=qda, progress=quiet)
    assert caught.value.code == "empty_class"


def test_too_few_images(tmp_path: Path, blobs: Images, qda: Workload) -> None:
    few = Images(blobs.images[:1999], blobs.labels[:1999])
    with pytest.raises(BadInput, match="expected at least 2000, found 1999"):
        build_set("set", tmp_path / "set", few, [1], workload=qda, progress=quiet)

"""Sources of images: both forms, and what is refused."""

from __future__ import annotations

import gzip
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_tasks.payload.mnist import Images, check_is_mnist, read_source
from gpu_tasks.records import BadInput

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
LABELS = np.array([5, 0, 4, 1, 9, 2], np.uint8)


def idx_images(images: np.ndarray = IMAGES, magic: int = 0x803) -> bytes:
    return struct.pack(">4I", magic, len(images), 28, 28) + images.tobytes()


def idx_labels(labels: np.ndarray = LABELS) -> bytes:
    return struct.pack(">2I", 0x801, len(labels)) + labels.tobytes()


def write_idx(folder: Path, images: bytes, labels: bytes) -> Path:
    (folder / "train-images-idx3-ubyte").write_bytes(images)
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, mtime=0))
    return folder


def write_pickle(folder: Path, content: Any, protocol: int = 3) -> Path:
    path = folder / "mnist.pkl.gz"
    path.write_bytes(gzip.compress(pickle.dumps(content, protocol), mtime=0))
    return path


def parts(images: np.ndarray, labels: np.ndarray) -> Any:
    scaled = (images.reshape(-1, 784) / 256).astype(np.float32)
    return (scaled[:4], labels[:4].astype(np.int64)), (scaled[4:], labels[4:].astype(np.int64)), ([], [])


def assert_read(path: Path) -> None:
    source = read_source(path)
    np.testing.assert_array_equal(source.images, IMAGES)
    np.testing.assert_array_equal(source.labels, LABELS)
    assert source.images.dtype == source.labels.dtype == np.uint8


def test_idx_folder(tmp_path: Path) -> None:
    assert_read(write_idx(tmp_path, idx_images(), idx_labels()))


@pytest.mark.parametrize("protocol", [3, 4])
def test_pickle(tmp_path: Path, protocol: int) -> None:
    assert_read(write_pickle(tmp_path, parts(IMAGES, LABELS), protocol))


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (idx_images(magic=0x801), idx_labels(), "magic number: expected 0x803, found 0x801"),
        (idx_images()[:-1], idx_labels(), "size: expected 4720 bytes for 6 items, found 4719"),
        (idx_images() + b"x", idx_labels(), "size: expected 4720"),
        (b"", idx_labels(), "size: expected at least 16"),
        (struct.pack(">4I", 0x803, 2**32 - 1, 28, 28), idx_labels(), "size: expected 3367254359296"),
        (struct.pack(">4I", 0x803, 1, 32, 32) + bytes(1024), idx_labels(), r"image size: expected \(28, 28\)"),
        (idx_images(), idx_labels(LABELS[:5]), "labels: expected 6, one for each image, found 5"),
    ],
)
def test_damaged_idx(tmp_path: Path, images: bytes, labels: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        read_source(write_idx(tmp_path, images, labels))
    assert caught.value.code == "bad_source"


class Trap:
    def __reduce__(self) -> Any:
        return divmod, (1, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (Trap(), "divmod is not a numpy array"),
        ((parts(IMAGES, LABELS)[0], Trap()), "divmod is not a numpy array"),
        (17, "pickle: expected"),
        (((IMAGES.reshape(6, 784).astype(np.float64), LABELS),) * 2, r"images: expected float32 \(n, 784\)"),
        (((IMAGES.reshape(6, 784).astype(np.float32), LABELS.astype(np.int64)),) * 2, "bytes divided by 256"),
        (((np.full((1, 784), 0.5 / 256, np.float32), LABELS[:1].astype(np.int64)),) * 2, "bytes divided by 256"),
        (((np.full((1, 784), np.nan, np.float32), LABELS[:1].astype(np.int64)),) * 2, "bytes divided by 256"),
        (parts(IMAGES, LABELS + 200), "labels: expected classes 0..9"),
        (((parts(IMAGES, LABELS)[0][0], LABELS),) * 2, r"labels: expected int64 \(4,\)"),
    ],
)
def test_damaged_pickle(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        read_source(write_pickle(tmp_path, content))
    assert caught.value.code == "bad_source"


CUT, JUNK = gzip.compress(b"x" * 99, mtime=0)[:-9], gzip.compress(b"\x80\x05junk", mtime=0)


@pytest.mark.parametrize("data", [b"", b"no gzip", CUT, JUNK])
def test_no_pickle_at_all(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "mnist.pkl.gz"
    path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        read_source(path)
    assert caught.value.code == "bad_source"


def test_missing_source(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"expected a mnist\.pkl\.gz file or a folder of IDX files, found nothing"):
        read_source(tmp_path / "none")
    with pytest.raises(
        BadInput, match=r"expected train-images-idx3-ubyte or train-images-idx3-ubyte\.gz, found neither"
    ):
        read_source(tmp_path)


def test_other_images_are_not_mnist(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="images sha256: expected 741c988805d0"):
        check_is_mnist(Images(IMAGES, LABELS), tmp_path)

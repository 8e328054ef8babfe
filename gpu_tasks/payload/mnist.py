"""The MNIST training images, from the two forms in which they are passed around.

``mnist.pkl.gz``: a pickle of (train, validation, test), each (images float32 (n, 784) = byte/256, labels int64); train
and validation are the 60,000 training images in their original order. IDX folder: ``train-images-idx3-ubyte`` and
``train-labels-idx1-ubyte``, each plain or with ``.gz``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import struct
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_tasks.records import BadInput

SIDE = 28
IMAGES_SHA256 = "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"
LABELS_SHA256 = "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13"
MAX_SOURCE_BYTES = 512 * 1024 * 1024
"""The larger form, the pickle, is 220 MB unpacked."""

_IDX_IMAGES, _IDX_LABELS = 0x803, 0x801


@dataclass(frozen=True)
class Images:
    """(n, 28, 28) uint8 images and their (n,) uint8 labels."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]


def read_source(path: Path) -> Images:
    """Read a ``mnist.pkl.gz`` or an IDX folder; raises ``BadInput`` (``bad_source``) naming what is wrong."""
    if path.is_dir():
        return _read_idx_folder(path)
    if path.is_file():
        return _read_pickle(path)
    raise bad_source(path, "source", "a mnist.pkl.gz file or a folder of IDX files", "nothing")


def check_is_mnist(source: Images, path: Path) -> None:
    """Raise ``BadInput`` unless these are the 60,000 MNIST training images in their original order."""
    for field, array, expected in (
        ("images", source.images, IMAGES_SHA256),
        ("labels", source.labels, LABELS_SHA256),
    ):
        found = hashlib.sha256(array.tobytes()).hexdigest()
        if found != expected:
            raise bad_source(path, f"{field} sha256", f"{expected} (MNIST training {field})", found)


def bad_source(path: Path, field: str, expected: str, found: str) -> BadInput:
    """The error for a source that cannot be used."""
    return BadInput("bad_source", f"{path}: {field}: expected {expected}, found {found}")


def _read_bytes(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            data = stream.read(MAX_SOURCE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise bad_source(path, "file", "a readable file", str(error)) from None
    if len(data) > MAX_SOURCE_BYTES:
        raise bad_source(path, "size", f"at most {MAX_SOURCE_BYTES} bytes unpacked", "more")
    return data


def _read_idx_folder(folder: Path) -> Images:
    images = _read_idx(folder, "train-images-idx3-ubyte", _IDX_IMAGES, (SIDE, SIDE))
    labels = _read_idx(folder, "train-labels-idx1-ubyte", _IDX_LABELS, ())
    if len(images) != len(labels):
        raise bad_source(folder, "labels", f"{len(images)}, one for each image", str(len(labels)))
    return Images(images, labels)


def _read_idx(folder: Path, name: str, magic: int, item: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise bad_source(folder, "file", f"{name} or {name}.gz", "neither")
    data = _read_bytes(path)
    header = struct.Struct(f">{2 + len(item)}I")
    if len(data) < header.size:
        raise bad_source(path, "size", f"at least {header.size} bytes", f"{len(data)} bytes")
    found_magic, count, *found_item = header.unpack_from(data)
    if found_magic != magic:
        raise bad_source(path, "magic number", f"{magic:#x}", f"{found_magic:#x}")
    if tuple(found_item) != item:
        raise bad_source(path, "image size", str(item), str(tuple(found_item)))
    size = header.size + count * int(np.prod(item, dtype=np.int64))
    if len(data) != size:
        raise bad_source(path, "size", f"{size} bytes for {count} items", f"{len(data)} bytes")
    return np.frombuffer(data, np.uint8, offset=header.size).reshape(count, *item)


class _ArraysOnly(pickle.Unpickler):
    """Unpickles numpy arrays in tuples and lists; any other class or function is refused before it is looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np.empty(0).__reduce__()[0]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not a numpy array")


def _read_pickle(path: Path) -> Images:
    data = _read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old pickles spell dtypes in a way that numpy now warns of
            content = _ArraysOnly(io.BytesIO(data), encoding="latin1").load()
        parts = [(np.asarray(images), np.asarray(labels)) for images, labels in content[:2]]
    except Exception as error:  # a hostile or damaged pickle can raise anything
        raise bad_source(path, "pickle", "(train, validation, test) of numpy arrays", repr(error)[:200]) from None
    return Images(
        np.concatenate([_pixels(path, images) for images, _ in parts]),
        np.concatenate([_classes(path, labels, len(images)) for images, labels in parts]),
    )


def _pixels(path: Path, images: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    if images.dtype != np.float32 or images.ndim != 2 or images.shape[1] != SIDE * SIDE:
        raise bad_source(path, "images", "float32 (n, 784)", f"{images.dtype} {images.shape}")
    pixels = images * np.float32(256)
    if not np.all((pixels >= 0) & (pixels <= 255) & (pixels == np.rint(pixels))):
        raise bad_source(path, "images", "bytes divided by 256", "other values")
    return pixels.astype(np.uint8).reshape(-1, SIDE, SIDE)


def _classes(path: Path, labels: npt.NDArray[Any], count: int) -> npt.NDArray[np.uint8]:
    if labels.dtype != np.int64 or labels.shape != (count,):
        raise bad_source(path, "labels", f"int64 ({count},)", f"{labels.dtype} {labels.shape}")
    if not np.all((labels >= 0) & (labels <= 9)):
        raise bad_source(path, "labels", "classes 0..9", "other values")
    return labels.astype(np.uint8)

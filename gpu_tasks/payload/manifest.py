"""The manifest of a payload: which draws it has, and the sha256 of every file and every array in them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gpu_tasks.payload.errors import PayloadDefect
from gpu_tasks.payload.layout import ArrayLayout, draw_layout
from gpu_tasks.records import MAX_DRAWS, BadInput, DrawIdentity, PayloadIdentity, from_json
from gpu_tasks.workloads.base import DrawnWorkload

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1024 * 1024

_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]{1,200}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ArrayEntry:
    """Shape, dtype and sha256 (of the little-endian C-order bytes) of one array."""

    shape: list[int]
    dtype: str
    sha256: str


@dataclass(frozen=True)
class DrawEntry:
    """One draw: its seed, its .npz, the arrays in it, and the file of its frozen predictions."""

    draw: int
    dataset_seed: int
    path: str
    sha256: str
    arrays: dict[str, ArrayEntry]
    frozen_prediction_path: str
    frozen_prediction_sha256: str


@dataclass(frozen=True)
class Manifest:
    """A set of draws. The last three fields are provenance: they name what the set was made from."""

    seeds: list[int]
    draws: list[DrawEntry]
    source_sha256: dict[str, str] = field(default_factory=dict)
    prediction_manifest_sha256: str | None = field(default_factory=lambda: None)
    draw_manifest_sha256: str | None = field(default_factory=lambda: None)

    def to_json(self) -> str:
        """The text of ``manifest.json``; provenance that is not there is left out."""
        content = {key: value for key, value in dataclasses.asdict(self).items() if value}
        return json.dumps(content, indent=2) + "\n"

    def draw(self, number: int) -> DrawEntry:
        """One draw; raises ``BadInput`` (``draw_not_found``)."""
        if not 0 <= number < len(self.draws):
            raise BadInput("draw_not_found", f"--draw: expected 0 to {len(self.draws) - 1}, found {number}")
        return self.draws[number]


def read_manifest(folder: Path, workload: DrawnWorkload) -> tuple[Manifest, str]:
    """The checked manifest of the payload in ``folder`` and its sha256; raises ``BadInput``."""
    data = read_inside(folder, MANIFEST, MAX_MANIFEST_BYTES)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise PayloadDefect(MANIFEST, "text", "UTF-8", "other bytes") from None
    manifest = from_json(text, Manifest, MANIFEST)
    _check(manifest, draw_layout(workload))
    return manifest, hashlib.sha256(data).hexdigest()


def identity(name: str, manifest: Manifest, manifest_sha256: str) -> PayloadIdentity:
    """The payload as records name it."""
    draws = [DrawIdentity(d.draw, d.dataset_seed, d.sha256, d.frozen_prediction_sha256) for d in manifest.draws]
    return PayloadIdentity(name, manifest_sha256, draws)


def read_inside(folder: Path, relative: str, max_bytes: int) -> bytes:
    """Bytes of the regular file ``relative`` in ``folder``, at most ``max_bytes``; raises ``PayloadDefect``.

    Refuses absolute paths, ``..`` and symbolic links that lead out of the folder.
    """
    if not _PLAIN_PATH.fullmatch(relative) or relative.startswith("/") or ".." in PurePosixPath(relative).parts:
        raise PayloadDefect(MANIFEST, "path", "a plain path inside the payload folder", ascii(relative)[:80])
    path = folder / relative
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise PayloadDefect(relative, "path", "a file inside the payload folder", "a link that leads out of it")
        if not path.is_file():
            raise PayloadDefect(relative, "file", "a regular file", "something else" if path.exists() else "nothing")
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise PayloadDefect(relative, "file", "a readable file", str(error)[:200]) from None
    if len(data) > max_bytes:
        raise PayloadDefect(relative, "size", f"at most {max_bytes} bytes", "more")
    return data


def check_seeds(seeds: list[int], source: str) -> None:
    """Raise ``BadInput`` unless the seeds are one to ``MAX_DRAWS`` distinct integers from 0 to 2**63 - 1."""
    if not 1 <= len(seeds) <= MAX_DRAWS:
        raise BadInput("bad_seeds", f"{source}: expected 1 to {MAX_DRAWS} seeds, found {len(seeds)}")
    if len(set(seeds)) < len(seeds):
        twice = next(seed for seed in seeds if seeds.count(seed) > 1)
        raise BadInput("bad_seeds", f"{source}: expected distinct seeds, found {twice} more than once")
    outside = [seed for seed in seeds if not 0 <= seed < 2**63]
    if outside:
        raise BadInput("bad_seeds", f"{source}: expected seeds from 0 to 2**63 - 1, found {outside[0]}")


def _check(manifest: Manifest, layouts: dict[str, ArrayLayout]) -> None:
    check_seeds(manifest.seeds, f"{MANIFEST}: $.seeds")
    _expect("$.draws", f"{len(manifest.seeds)} draws", f"{len(manifest.draws)} draws")
    for index, (seed, entry) in enumerate(zip(manifest.seeds, manifest.draws, strict=True)):
        where = f"$.draws[{index}]"
        _expect(f"{where}.draw", index, entry.draw)
        _expect(f"{where}.dataset_seed", seed, entry.dataset_seed)
        _expect_sha256(f"{where}.sha256", entry.sha256)
        _expect_sha256(f"{where}.frozen_prediction_sha256", entry.frozen_prediction_sha256)
        _expect(f"{where}.arrays", ", ".join(layouts), ", ".join(entry.arrays))
        for name, array in entry.arrays.items():
            _expect(f"{where}.arrays.{name}.shape", list(layouts[name].shape), array.shape)
            _expect(f"{where}.arrays.{name}.dtype", layouts[name].dtype, array.dtype)
            _expect_sha256(f"{where}.arrays.{name}.sha256", array.sha256)


def _expect(where: str, expected: object, found: object) -> None:
    if expected != found:
        raise PayloadDefect(MANIFEST, where, str(expected), ascii(found)[:80])


def _expect_sha256(where: str, found: str) -> None:
    if not _SHA256.fullmatch(found):
        raise PayloadDefect(MANIFEST, where, "64 lower-case hexadecimal digits", ascii(found)[:80])

"""Bundles: one variant, frozen. A folder ``candidate-<16 hex digits>`` with a manifest and the PTX that it pins.

The name is the sha256 of the manifest, which has the sha256 of every file: a bundle cannot change and keep its name,
and the same kernels always have the same one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.devices.manifest import KernelManifest, Kernels, Variant, load_kernels
from gpu_tasks.records import (
    BadInput,
    InfrastructureFailure,
    TaskError,
    VerificationMismatch,
    read_record,
    to_json,
    write_record,
    write_text_atomically,
)

NAME = re.compile(r"candidate-([0-9a-f]{16})")
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Source:
    """Where the kernels of a bundle were last frozen from; it is for people, and stands beside the bundle."""

    kind: str  # "source"
    spec: str
    commit: str | None
    modified: bool | None


def write_bundle(candidates: Path, manifest: KernelManifest, kernels: Kernels) -> str:
    """Freeze ``kernels``, which are of ``manifest``, in the folder ``candidates``; returns the bundle's name.

    Raises ``InfrastructureFailure`` where the folder cannot be written, ``VerificationMismatch`` where the bundle is
    there and is not what its name says.
    """
    texts = {f"{launch.entry}.ptx": text for launch, text in zip(kernels.launches, kernels.texts, strict=True)}
    frozen = to_json(_frozen(manifest, kernels))
    name = f"candidate-{hashlib.sha256(frozen.encode()).hexdigest()[:16]}"
    try:
        candidates.mkdir(parents=True, exist_ok=True)
        if not (candidates / name).exists():
            _write(candidates, name, {**texts, MANIFEST: frozen})
    except OSError as error:
        message = f"{candidates}: expected a folder that can be written, found: {error.strerror}"
        raise InfrastructureFailure("candidates_not_written", message) from None
    try:
        bundle_manifest(candidates, name)
    except TaskError as error:  # somebody has been in there; what they left is not ours to remove
        message = f"{error.message}; remove {candidates / name} to have it written again"
        raise VerificationMismatch("bundle_changed", message) from None
    return name


def bundle_manifest(candidates: Path, name: str) -> Path:
    """Manifest of the bundle ``name``, verified; raises ``BadInput`` (``unknown_bundle``)."""
    path = candidates / name / MANIFEST
    if not path.is_file():
        raise BadInput("unknown_bundle", f"{name}: expected a bundle in {candidates}, found none")
    verify_bundle(path)
    return path


def verify_bundle(manifest: Path) -> None:
    """Raise ``VerificationMismatch`` where a manifest lies in a bundle's folder and the bundle is not what it was.

    A manifest elsewhere is not asked anything.
    """
    folder = manifest.absolute().parent.name
    if not NAME.fullmatch(folder):
        return
    found = hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else "nothing"
    if folder != f"candidate-{found[:16]}":
        message = f"{manifest}: sha256: expected it to begin with {folder[-16:]}, found {found}"
        raise VerificationMismatch("bundle_changed", message)
    load_kernels(manifest)


def note_source(candidates: Path, name: str, source: Source) -> None:
    """Keep where a bundle came from; the same kernels may come from somewhere else the next time."""
    try:
        write_record(source, candidates / f"{name}.source.json")
    except OSError as error:
        message = f"{candidates}: expected a folder that can be written, found: {error.strerror}"
        raise InfrastructureFailure("candidates_not_written", message) from None


def source_of(candidates: Path, name: str) -> Source | None:
    """Where a bundle last came from; null where nobody knows any more."""
    try:
        return read_record(candidates / f"{name}.source.json", Source)
    except BadInput:
        return None


def _frozen(manifest: KernelManifest, kernels: Kernels) -> KernelManifest:
    """The manifest of one variant, every hash filled in; the control is the checkout's, whatever it is one for."""
    launches = [
        dataclasses.replace(
            launch,
            ptx=f"{launch.entry}.ptx",
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            ptx_lines=len(text.splitlines()),
        )
        for launch, text in zip(kernels.launches, kernels.texts, strict=True)
    ]
    description = manifest.variants[kernels.variant].description
    variant = Variant(description, kernels.ptx_sha256, launches)
    return dataclasses.replace(manifest, default=kernels.variant, variants={kernels.variant: variant}, control=None)


def _write(candidates: Path, name: str, files: dict[str, str]) -> None:
    temporary = Path(tempfile.mkdtemp(dir=candidates, prefix=f".{name}."))
    try:
        for file, text in files.items():
            write_text_atomically(text, temporary / file)
        temporary.chmod(0o755)
        try:
            temporary.rename(candidates / name)
        except OSError:
            if not (candidates / name).is_dir():  # otherwise somebody else was as fast
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    folder = os.open(candidates, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

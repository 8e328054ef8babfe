"""Reading a spec: which kernels it offers, and which of their variants it means.

In this order, as soon as one fits: the id of a bundle, a path in the repository (a kernel source, a ``.ptx``, a kernel
manifest), the name of a committed variant, a git ref.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpu_tasks.candidates import repository
from gpu_tasks.candidates.building import HOUSE, build
from gpu_tasks.candidates.bundle import NAME, bundle_manifest, source_of
from gpu_tasks.devices.kernel_files import read_text
from gpu_tasks.devices.manifest import COMMITTED, KernelManifest, Kernels, load_kernels, read_manifest
from gpu_tasks.records import BadInput, TaskError, VerificationMismatch
from gpu_tasks.sources import ROOT

PTX_FOLDER = "kernels/ptx"
LONGEST_SPEC = 1000


@dataclass(frozen=True)
class Offer:
    """The kernels that a spec stands for: a manifest's, some of their text replaced by ``ptx``.

    ``what`` is their name in messages. ``variants`` are those that can be meant, the likeliest first; ``settled`` says
    that it is that one unless another is asked for, and otherwise it is the first that somebody has changed.
    """

    origin: str
    what: str
    manifest: Path
    variants: list[str]
    settled: bool
    ptx: tuple[Path, ...] = ()
    commit: str | None = None
    modified: bool | None = None
    notes: list[str] = field(default_factory=list)

    def read(self) -> KernelManifest:
        """Its manifest, checked; an error names the offer, as the file may be of a moment only."""
        try:
            return read_manifest(self.manifest)
        except TaskError as error:
            raise self._named(error) from None

    def load(self, variant: str) -> Kernels:
        """One variant, read and verified."""
        if variant not in self.read().variants:
            known = " or ".join(sorted(self.read().variants))
            raise BadInput("unknown_variant", f"{self.what}: variant: expected {known}, found {variant!r}")
        try:
            return load_kernels(self.manifest, variant, self.ptx)
        except TaskError as error:
            raise self._named(error) from None

    def _named(self, error: TaskError) -> TaskError:
        folder = f"{self.manifest.parent}/"
        if self.origin in ("source", "ref"):
            return type(error)(error.code, f"{self.what}: {error.message.replace(folder, '')}")
        return error


def read_spec(spec: str, candidates: Path, scratch: Path) -> Offer:
    """What ``spec`` offers; sources are built in the folder ``scratch``. Raises ``TaskError`` for what is none."""
    if NAME.fullmatch(spec):
        return _of_bundle(spec, candidates)
    path = _path(spec)
    if path is not None:
        return _of_path(path, scratch)
    known = read_manifest(COMMITTED).variants
    if spec in known:
        return _with_head(PTX_FOLDER, Offer("variant", spec, COMMITTED, [spec], settled=True))
    commit = repository.resolve(ROOT, spec) if _may_be_name(spec) else None
    if commit is not None:
        return _of_commit(spec, commit, scratch)
    names = ", ".join(known)
    message = f"expected a path in the repository, a variant ({names}), a git ref or a bundle, found {spec!r:.200}"
    if (why := repository.why_silent(ROOT)) is not None:
        message += f"; there are no refs here: {why}"
    raise BadInput("unknown_candidate", message)


def committed(scratch: Path) -> Offer:
    """The pinned kernels: those of the checkout, or of HEAD where text of the checkout is not what it pins."""
    manifest = read_manifest(COMMITTED)
    names = [manifest.default, *(name for name in manifest.variants if name != manifest.default)]
    found = _with_head(PTX_FOLDER, Offer("variant", "the pinned kernels", COMMITTED, names, settled=False))
    try:
        for name in names:
            found.load(name)
    except VerificationMismatch:
        if found.commit is None:
            raise
        repository.export(ROOT, found.commit, PTX_FOLDER, scratch)
        notes = [f"{PTX_FOLDER} is not what it pins: the pinned kernels are those of commit {found.commit[:12]}"]
        text = scratch / PTX_FOLDER / COMMITTED.name
        return Offer("ref", "HEAD", text, names, settled=False, commit=found.commit, modified=False, notes=notes)
    return found


def same_kernels(one: Kernels, other: Kernels) -> bool:
    """Whether two variants are launched alike and have the same text, whatever they are called."""
    return one.ptx_sha256 == other.ptx_sha256 and one.identity().launches == other.identity().launches


def _path(spec: str) -> Path | None:
    """The file that a spec names from the root of the repository; None where it names nothing that is there."""
    if not _may_be_name(spec):
        return None
    found = ROOT / spec
    if not os.path.lexists(found):
        if Path(spec).is_absolute():
            raise BadInput("no_such_file", f"{spec}: expected a file in the repository, found none")
        return None
    _check_inside(found)
    if found.is_dir():
        raise BadInput("bad_candidate", f"{spec}: expected a file, found a folder")
    return found


def _check_inside(path: Path) -> None:
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a link to nowhere, or in a circle
        raise BadInput("no_such_file", f"{path}: expected a file in the repository, found a broken link") from None
    if not found.is_relative_to(ROOT.resolve()):
        raise BadInput("candidate_outside", f"{path}: expected a path inside the repository, found {found}")


def _of_bundle(name: str, candidates: Path) -> Offer:
    """What was frozen before, with the commit that it was frozen at."""
    manifest = bundle_manifest(candidates, name)
    found = Offer("bundle", name, manifest, [read_manifest(manifest).default], settled=True)
    source = source_of(candidates, name)
    if source is None:
        return found
    notes = [f"{name} was frozen from {source.spec}"]
    return replace(found, commit=source.commit, modified=source.modified, notes=notes)


def _of_path(path: Path, scratch: Path) -> Offer:
    inside = path.resolve().relative_to(ROOT.resolve())
    if path.suffix == ".py" and inside.parent.as_posix() == HOUSE:
        return _of_source(inside, scratch)
    if path.suffix == ".ptx":
        return _with_head(str(inside.parent), _of_ptx(path, str(inside)))
    if path.suffix == ".json":
        manifest = read_manifest(path)
        for variant in manifest.variants.values():
            for launch in variant.launches:
                _check_inside(path.parent / launch.ptx)
        found = Offer("manifest", str(inside), path, [manifest.default], settled=True)
        return _with_head(str(inside.parent), found)
    expected = f"{HOUSE}/*.py, a .ptx or a kernel manifest (.json)"
    raise BadInput("bad_candidate", f"{inside}: expected {expected}, found another file")


def _of_source(inside: Path, scratch: Path) -> Offer:
    """The checkout's sources, built: a kernel's own file says which variant is meant, one that they share does not."""
    manifest = build(ROOT, scratch / "built", str(inside))
    names = _likely(read_manifest(manifest), inside.stem)
    return _with_head(HOUSE, Offer("source", str(inside), manifest, names, settled=False))


def _of_ptx(path: Path, what: str) -> Offer:
    """A text, launched as the manifest beside it says, or as the committed one does."""
    beside = path.parent / COMMITTED.name
    manifest = beside if beside.is_file() else COMMITTED
    entry = re.search(r"\.entry\s+(\w+)", read_text(path))
    known = read_manifest(manifest)
    defining = {name: [launch.entry for launch in variant.launches] for name, variant in known.variants.items()}
    names = [name for name in _likely(known, path.stem) if entry is not None and entry[1] in defining[name]]
    if not names:
        expected = ", ".join(dict.fromkeys(e for entries in defining.values() for e in entries))
        found = entry[1] if entry else "none"
        raise BadInput("no_such_entry", f"{what}: .entry: expected one of {expected}, found {found}")
    return Offer("ptx", what, manifest, names, settled=True, ptx=(path,))


def _of_commit(ref: str, commit: str, scratch: Path) -> Offer:
    """The kernels that the sources of a commit make, whatever PTX is committed beside them."""
    what = f"{ref} ({commit[:12]})" if ref != commit else commit[:12]
    checkout = scratch / "commit"
    repository.export(ROOT, commit, HOUSE, checkout)
    manifest = build(checkout, scratch / "built", what)
    notes = []
    beside = checkout / PTX_FOLDER
    unlike = [f.name for f in sorted(manifest.parent.iterdir()) if not _same_bytes(f, beside / f.name)]
    if unlike:
        notes.append(f"{what}: the committed {', '.join(unlike)} is not what its sources build; these are tried")
    names = _likely(read_manifest(manifest), "")
    return Offer("ref", what, manifest, names, settled=False, commit=commit, modified=False, notes=notes)


def _likely(manifest: KernelManifest, stem: str) -> list[str]:
    """Its variants: the one that a file is called after first, then the default, then the others."""
    names = [manifest.default, *manifest.variants]
    called = [name for name in names if stem == name or stem.startswith(f"{name}_")]
    return list(dict.fromkeys([*called, *names]))


def _with_head(path: str, offer: Offer) -> Offer:
    commit = repository.head(ROOT)
    return replace(offer, commit=commit, modified=repository.modified(ROOT, path) if commit is not None else None)


def _may_be_name(spec: str) -> bool:
    return 0 < len(spec) <= LONGEST_SPEC and spec.isprintable()


def _same_bytes(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()

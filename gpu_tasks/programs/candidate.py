"""``candidate``: from a spec to two bundles, the kernel that is tried and the one that it is held against."""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from pathlib import Path

from gpu_tasks.candidates.bundle import Source, note_source, write_bundle
from gpu_tasks.candidates.offers import Offer, committed, read_spec, same_kernels
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.manifest import KernelManifest, Kernels, load_control
from gpu_tasks.programs.console import progress
from gpu_tasks.records import BadInput, CandidateRecord, Outcome, Reason, utc_now
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload

FOLDER_VARIABLE = "NIGHTLY_CANDIDATES"
CONTROL = "control.ptx"


def run(arguments: Namespace) -> CandidateRecord:
    """Resolve both sides, refuse what no device could run, and freeze them."""
    workload = get_workload(arguments.workload)
    candidates = _folder(arguments)
    spec, against = arguments.spec, arguments.against
    arguments.spec = spec.encode("utf-8", "backslashreplace").decode()  # as the record of a failure can hold it
    for option, text in (("--spec", spec), ("--against", against or "")):
        if not text.isprintable():
            raise BadInput("bad_candidate", f"{option}: expected printable text, found {text!r:.200}")
    with tempfile.TemporaryDirectory(prefix="kernel-nightly-candidate-") as scratch:
        own = read_spec(spec, candidates, Path(scratch, "own"))
        other_scratch = Path(scratch, "other")
        other = committed(other_scratch) if against is None else read_spec(against, candidates, other_scratch)
        variant = _asked(own, arguments.variant) or _meant(own, other)
        counterpart = _counterpart(other, variant, named=own.origin == "variant" and against is None)
        kernels, pinned = own.load(variant), other.load(counterpart)
        for offer, found in ((own, kernels), (other, pinned)):
            _check(workload, offer, found)
        notes = [*own.notes, *other.notes, *_others(own, other, variant)]
        bundle = write_bundle(candidates, own.read(), kernels)
        against_bundle = write_bundle(candidates, other.read(), pinned)
        if own.origin != "bundle":
            note_source(candidates, bundle, Source("source", spec, own.commit, own.modified))
    equal = same_kernels(kernels, pinned)
    progress(f"candidate: {_named(variant, own)}, {bundle}")
    progress(f"against:   {_named(counterpart, other)}, {against_bundle}")
    for note in [*notes, *(["both are the same kernel"] if equal else [])]:
        progress(note)
    refused = _refusal(own, other, kernels, pinned, equal=equal, expected=arguments.expect)
    return CandidateRecord(
        kind="candidate",
        created_at=utc_now(),
        outcome=Outcome.BAD_INPUT if refused else Outcome.OK,
        reason=refused,
        workload=workload.name,
        spec=spec,
        origin=own.origin,
        commit=own.commit,
        modified=own.modified,
        bundle=bundle,
        kernel=kernels.identity(),
        against=pinned.identity(),
        against_bundle=against_bundle,
        equals_pinned=equal,
        notes=notes,
    )


def _named(variant: str, offer: Offer) -> str:
    return variant if variant == offer.what else f"{variant} of {offer.what}"


def _refusal(
    own: Offer, other: Offer, kernels: Kernels, pinned: Kernels, *, equal: bool, expected: str | None
) -> Reason | None:
    """Nobody takes chance for an effect by accident, or an effect for chance."""
    if equal and expected == "another":
        message = (
            f"{own.what}: expected another kernel than {other.what}, found the same, ptx sha256 {pinned.ptx_sha256}; "
            "to see what chance alone shows, ask for an A/A run: kernel_changed=false"
        )
        return Reason("candidate_is_pinned", message)
    if not equal and expected == "same":
        message = (
            f"{own.what}: expected the same kernel as {other.what} for an A/A run, found another, ptx sha256 "
            f"{kernels.ptx_sha256}; to compare the two, leave out kernel_changed=false"
        )
        return Reason("candidate_is_another", message)
    return None


def _folder(arguments: Namespace) -> Path:
    text = arguments.candidates or os.environ.get(FOLDER_VARIABLE)
    if not text:
        message = f"--candidates: expected a folder, or one in {FOLDER_VARIABLE}, found neither"
        raise BadInput("no_candidates_folder", message)
    return Path(text).expanduser().absolute()


def _asked(own: Offer, variant: str | None) -> str | None:
    if own.origin == "variant" and variant not in (None, own.variants[0]):
        raise BadInput("unknown_variant", f"--variant: expected {own.variants[0]}, as --spec has it, found {variant!r}")
    return variant


def _meant(own: Offer, other: Offer) -> str:
    """The variant that a spec means: of sources, the first that is not what the other side has."""
    if own.settled:
        return own.variants[0]
    return next((name for name in own.variants if _differs(own, other, name)), own.variants[0])


def _differs(own: Offer, other: Offer, name: str) -> bool:
    if name not in other.read().variants:
        return not other.settled  # a new one; but who has one kernel only says nothing of the others
    return not same_kernels(own.load(name), other.load(name))


def _counterpart(other: Offer, variant: str, *, named: bool) -> str:
    """What a variant is held against: its namesake; the default where there is none, or only a name was given."""
    if other.settled:
        return other.variants[0]
    known = other.read()
    return variant if variant in known.variants and not named else known.default


def _check(workload: Workload, offer: Offer, kernels: Kernels) -> None:
    """Refuse kernels that no device of their target could launch, before anything is frozen."""
    try:
        EmulatedQda(workload, kernels)
    except BadInput as error:
        raise BadInput(error.code, f"{offer.what}: {error.message}") from None
    target = offer.read().target
    for launch, text in zip(kernels.launches, kernels.texts, strict=True):
        found = parse(text).target
        if found != target:
            message = f"{offer.what}: {launch.ptx}: .target: expected {target}, as the manifest has it, found {found}"
            raise BadInput("other_architecture", message)


def _others(own: Offer, other: Offer, variant: str) -> list[str]:
    """What else the spec has changed, and is not tried."""
    if own.settled:
        return []
    manifest = own.read()
    notes = []
    changed = [name for name in manifest.variants if name != variant and _differs(own, other, name)]
    if changed:
        notes.append(f"{own.what}: also changed and not tried: {', '.join(changed)} (--variant chooses)")
    if _control_changed(manifest):
        notes.append(f"{own.what}: the control kernel is changed as well; what is measured beside is the pinned one")
    return notes


def _control_changed(manifest: KernelManifest) -> bool:
    pinned, _ = load_control()
    return manifest.control is not None and manifest.control.sha256 != pinned.sha256

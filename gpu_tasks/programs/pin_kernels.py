"""Building the kernels that are to be pinned: beside the pinned ones, until the emulator has found them right."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gpu_tasks.candidates.building import build
from gpu_tasks.comparison.emulation import Wanted, emulate, wrongs
from gpu_tasks.devices.emulated.parser import parse
from gpu_tasks.devices.kernel_files import read_text
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_control, load_kernels, read_manifest
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.console import progress
from gpu_tasks.records import Regression, TaskError
from gpu_tasks.sources import ROOT
from gpu_tasks.workloads.registry import default_payload, get_workload

MOST_TOLD = 10


def tried_kernels() -> dict[Path, str]:
    """Build, and try what is new on the emulator: the files that have to change, with their text.

    Raises ``Regression`` (``kernel_wrong``) for kernels that are wrong; what ``build`` raises, and ``BadInput`` for
    text that the emulator does not take.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-nightly-pin-") as scratch:
        manifest = build(ROOT, Path(scratch, "ptx"), "kernels")
        _try(manifest)
        folder = COMMITTED.parent
        built = {path.name: read_text(path) for path in sorted(manifest.parent.iterdir())}
    changed = {folder / name: text for name, text in built.items() if _text(folder / name) != text}
    if not changed:
        progress(f"{folder}: up to date")
    return changed


def _try(manifest: Path) -> None:
    """Every variant that is not what is pinned, and the default always, on all draws with all checks."""
    found = read_manifest(manifest)
    _, control = load_control(manifest)
    parse(control)
    workload = get_workload(found.workload)
    payload = Payload(default_payload(found.workload), workload)  # the draws that vouch for them
    draws = [entry.draw for entry in payload.manifest.draws]
    tried = [name for name in found.variants if name == found.default or _changed(manifest, name)]
    progress(f"emulator: {', '.join(tried)} on {len(draws)} draws, races looked for")
    wanted = [Wanted(name, load_kernels(manifest, name), draws, static=False) for name in tried]
    wrong = []
    for name, emulated in zip(tried, emulate(workload, payload, wanted), strict=True):
        wrong += [f"{name}: {reason.message}" for reason in wrongs(emulated.validations)]
    for line in wrong[:MOST_TOLD]:
        progress(line)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Regression("kernel_wrong", f"{wrong[0]}{more}; nothing was written")


def _changed(manifest: Path, name: str) -> bool:
    """Whether a variant that was built is another than the pinned one; one that cannot be read is no longer it."""
    try:
        pinned: Kernels | None = load_kernels(COMMITTED, name)
    except TaskError:
        pinned = None
    built = load_kernels(manifest, name)
    return pinned is None or (pinned.launches, pinned.texts) != (built.launches, built.texts)


def _text(path: Path) -> str | None:
    return path.read_bytes().decode("ascii", "replace") if path.is_file() else None

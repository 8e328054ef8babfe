"""The kernel manifest: which PTX files a variant consists of, and how each is launched.

The committed one is ``kernels/ptx/manifest.json``; a user's own has the same form and may leave hashes null. It is
checked field by field before any PTX is read, and PTX files stay inside the manifest's folder.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.devices.emulated.parser import TARGETS
from gpu_tasks.devices.kernel_files import MAX_MANIFEST_BYTES, read_text, refuse
from gpu_tasks.records import KernelIdentity, VerificationMismatch, from_json
from gpu_tasks.workloads.registry import declared, workload_names

FORMAT = "kernel-nightly-kernels/1"
COMMITTED = Path(__file__).resolve().parents[2] / "kernels" / "ptx" / "manifest.json"
MAX_BUFFER_BYTES = 64 * 1024 * 1024
ITEM_BYTES = {"float32": 4, "int32": 4}
GRID_LIMIT = (2**31 - 1, 65535, 65535)  # the hardware's (CUDA programming guide, table 21), as are the next four
BLOCK_LIMIT = (1024, 1024, 64)
BLOCK_THREADS = 1024
STATIC_SHARED_BYTES = 48 * 1024
SHARED_BYTES = 227 * 1024  # static and dynamic, of the largest device; what a target has less is the device's to say
INPUT_ROLES = ("x", "labels", "q")
ROLES = (*INPUT_ROLES, "predictions", "status", "scratch")


@dataclass(frozen=True)
class Parameter:
    """One pointer parameter. ``name`` identifies the buffer across launches, ``formula`` explains its shape.

    ``role`` is x, labels, q (inputs), predictions, status (outputs) or scratch; ``access`` is read or write.
    """

    name: str
    role: str
    access: str
    dtype: str
    shape: list[int]
    formula: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return ITEM_BYTES[self.dtype] * math.prod(self.shape)


@dataclass(frozen=True)
class Launch:
    """One launch: entry of a PTX file, geometry, shared memory in bytes a block, parameters in order.

    ``sha256`` null: any text, of any number of lines; ``ptx_lines`` 0: not said.
    """

    entry: str
    ptx: str
    sha256: str | None
    ptx_lines: int
    grid: list[int]
    block: list[int]
    shared_static_bytes: int
    shared_dynamic_bytes: int
    parameters: list[Parameter]


@dataclass(frozen=True)
class Variant:
    """The launches of one variant in order; ``ptx_sha256`` is over their files' bytes, one after the other."""

    description: str
    ptx_sha256: str | None
    launches: list[Launch]


@dataclass(frozen=True)
class Control:
    """The kernel of the control, of no variant: one warp that spins, and writes one float32 a lane.

    It takes the address to write to and the number of its iterations (under 2^31), 64 bits each.
    """

    entry: str
    ptx: str
    sha256: str | None
    ptx_lines: int


@dataclass(frozen=True)
class KernelManifest:
    """All variants for one workload size: ``n`` training samples, ``m`` queries."""

    format: str
    workload: str
    target: str
    ptx_version: str
    n: int
    m: int
    default: str
    variants: dict[str, Variant]
    control: Control | None = None


@dataclass(frozen=True)
class Kernels:
    """One variant, read and verified: launches, and the PTX text of each."""

    variant: str
    n: int
    m: int
    launches: list[Launch]
    texts: list[str]

    @property
    def ptx_sha256(self) -> str:
        """sha256 over the bytes of the PTX files in the order of the launches."""
        return hashlib.sha256("".join(self.texts).encode()).hexdigest()

    def identity(self) -> KernelIdentity:
        """What a record says of the kernels."""
        launches = [
            {
                "entry": launch.entry,
                "grid": launch.grid,
                "block": launch.block,
                "shared_static_bytes": launch.shared_static_bytes,
                "shared_dynamic_bytes": launch.shared_dynamic_bytes,
                "ptx_sha256": hashlib.sha256(text.encode()).hexdigest(),
                "ptx_lines": len(text.splitlines()),
            }
            for launch, text in zip(self.launches, self.texts, strict=True)
        ]
        lines = sum(len(text.splitlines()) for text in self.texts)
        return KernelIdentity(self.variant, self.ptx_sha256, lines, launches)


def load_kernels(manifest: Path = COMMITTED, variant: str | None = None, ptx: tuple[Path, ...] = ()) -> Kernels:
    """Read one variant (the manifest's default where none is named).

    Each file of ``ptx`` replaces the launch whose entry it defines, unpinned; every other file has to have the
    manifest's hash and number of lines, and so has the variant where all its files are pinned. Raises ``BadInput``
    with file, field, expected and found, and ``VerificationMismatch``.
    """
    found = read_manifest(manifest)
    name = found.default if variant is None else variant
    if name not in found.variants:
        refuse(manifest, "variant", " or ".join(sorted(found.variants)), name or "an empty name")
    launches = found.variants[name].launches
    texts = {launch.entry: "" for launch in launches}
    for path in ptx:
        text = read_text(path)
        entry = re.search(r"\.entry\s+(\w+)", text)
        if entry is None or entry[1] not in texts:
            refuse(path, ".entry", f"one of {', '.join(texts)}", entry[1] if entry else "none")
        if texts[entry[1]]:
            refuse(path, ".entry", "an entry that no other file defines", entry[1])
        texts[entry[1]] = text
    for launch in launches:
        if not texts[launch.entry]:
            texts[launch.entry] = _pinned_text(manifest.parent / launch.ptx, launch)
    kernels = Kernels(name, found.n, found.m, launches, [texts[launch.entry] for launch in launches])
    expected, pinned = found.variants[name].ptx_sha256, not ptx and all(launch.sha256 for launch in launches)
    if pinned and expected is not None and kernels.ptx_sha256 != expected:
        where = f"{manifest}: variants.{name}.ptx_sha256"
        raise VerificationMismatch("ptx_changed", f"{where}: expected {expected}, found {kernels.ptx_sha256}")
    return kernels


def load_control(manifest: Path = COMMITTED) -> tuple[Control, str]:
    """The control kernel and its text: the committed one, whatever kernels it is a control for."""
    control = read_manifest(manifest).control
    if control is None:
        refuse(manifest, "control", "the control kernel", "none")
    return control, _pinned_text(manifest.parent / control.ptx, control)


def read_manifest(path: Path) -> KernelManifest:
    """Read and check a manifest; raises ``BadInput`` naming file and field."""
    manifest = from_json(read_text(path, MAX_MANIFEST_BYTES), KernelManifest, str(path))
    if manifest.format != FORMAT:
        refuse(path, "format", FORMAT, manifest.format)
    if manifest.workload not in workload_names() or not declared(manifest.workload).ptx_kinds:
        refuse(path, "workload", "one that runs PTX", manifest.workload)
    if manifest.target not in TARGETS:
        refuse(path, "target", " or ".join(TARGETS), manifest.target)
    version = re.fullmatch(r"([78])\.([0-8])", manifest.ptx_version, re.ASCII)
    oldest = TARGETS[manifest.target]
    if version is None or (int(version[1]), int(version[2])) < oldest:
        refuse(path, "ptx_version", "{}.{} to 8.8".format(*oldest), manifest.ptx_version)
    if not 0 < manifest.n <= 10**6 or not 0 < manifest.m <= 10**6:
        refuse(path, "n, m", "1 to 1000000", (manifest.n, manifest.m))
    if manifest.default not in manifest.variants:
        refuse(path, "default", "the name of a variant", manifest.default)
    for name, variant in manifest.variants.items():
        _check_variant(path, name, variant, manifest)
    if manifest.control is not None:
        _check_file(path, "control.ptx", manifest.control.ptx)
    return manifest


def _check_variant(path: Path, name: str, variant: Variant, manifest: KernelManifest) -> None:
    required = {
        "x": ("float32", [manifest.n, 9]),
        "labels": ("int32", [manifest.n]),
        "q": ("float32", [manifest.m, 9]),
        "predictions": ("int32", [manifest.m]),
        "status": ("int32", [10]),
    }
    buffers: dict[str, tuple[str, str, list[int]]] = {}
    if not variant.launches:
        refuse(path, f"variants.{name}.launches", "one launch or more", "none")
    if len({launch.entry for launch in variant.launches}) < len(variant.launches):
        refuse(path, f"variants.{name}.launches", "entries with different names", "one name twice")
    for index, launch in enumerate(variant.launches):
        where = f"variants.{name}.launches[{index}]"
        _check_file(path, f"{where}.ptx", launch.ptx)
        _check_launch(path, where, launch)
        for parameter in launch.parameters:
            field = f"{where}.parameters.{parameter.name}"
            form = (parameter.role, parameter.dtype, parameter.shape)
            _check_parameter(path, field, parameter)
            if parameter.role in required and form[1:] != required[parameter.role]:
                refuse(path, field, required[parameter.role], form[1:])
            if buffers.setdefault(parameter.name, form) != form:
                refuse(path, field, buffers[parameter.name], form)
    roles = [role for role, _, _ in buffers.values()]
    for role in required:
        if roles.count(role) != 1:
            refuse(path, f"variants.{name}", f"one buffer of role {role}", roles.count(role))


def _check_file(path: Path, field: str, name: str) -> None:
    if Path(name).name != name or not name.endswith(".ptx"):
        refuse(path, field, "the name of a .ptx file beside the manifest", name)


def _check_launch(path: Path, where: str, launch: Launch) -> None:
    """Geometry and shared memory within what any device has: a driver takes 32 bits of each and drops the rest."""
    for field, sizes, limits in (("grid", launch.grid, GRID_LIMIT), ("block", launch.block, BLOCK_LIMIT)):
        if len(sizes) != 3 or any(not 0 < size <= limit for size, limit in zip(sizes, limits, strict=True)):
            refuse(path, f"{where}.{field}", f"three integers from 1 to at most {list(limits)}", sizes)
    if math.prod(launch.block) > BLOCK_THREADS:
        refuse(path, f"{where}.block", f"at most {BLOCK_THREADS} threads", launch.block)
    static, dynamic = launch.shared_static_bytes, launch.shared_dynamic_bytes
    if not 0 <= static <= STATIC_SHARED_BYTES:
        refuse(path, f"{where}.shared_static_bytes", f"0 to {STATIC_SHARED_BYTES}", static)
    if not 0 <= dynamic <= SHARED_BYTES - static:
        refuse(path, f"{where}.shared_dynamic_bytes", f"0 to {SHARED_BYTES - static} beside the static", dynamic)
    if launch.ptx_lines < 0:
        refuse(path, f"{where}.ptx_lines", "0 or more", launch.ptx_lines)


def _check_parameter(path: Path, field: str, parameter: Parameter) -> None:
    if parameter.role not in ROLES:
        refuse(path, f"{field}.role", ", ".join(ROLES), parameter.role)
    allowed = ("read",) if parameter.role in INPUT_ROLES else ("read", "write")
    if parameter.access not in allowed:
        refuse(path, f"{field}.access", " or ".join(allowed), parameter.access)
    if parameter.dtype not in ITEM_BYTES:
        refuse(path, f"{field}.dtype", " or ".join(ITEM_BYTES), parameter.dtype)
    if not parameter.shape or min(parameter.shape) < 1 or parameter.size_bytes > MAX_BUFFER_BYTES:
        refuse(path, f"{field}.shape", f"positive sizes and at most {MAX_BUFFER_BYTES} bytes", parameter.shape)


def _pinned_text(path: Path, launch: Launch | Control) -> str:
    text = read_text(path)
    if launch.sha256 is None:
        return text
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != launch.sha256:
        raise VerificationMismatch("ptx_changed", f"{path}: sha256: expected {launch.sha256}, found {found}")
    lines = len(text.splitlines())
    if launch.ptx_lines not in (0, lines):
        raise VerificationMismatch("ptx_changed", f"{path}: ptx_lines: expected {launch.ptx_lines}, found {lines}")
    return text

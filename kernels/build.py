"""From pyptx sources to the pinned files: PTX text, ``manifest.json`` and ``SHA256SUMS``.

The text that pyptx emits is the same in every process, so that source and committed text can be compared byte
for byte. Needs pyptx; the result needs nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels import class_blocks, control, fused, record

FOLDER = Path(__file__).resolve().parent / "ptx"
FORMAT = "kernel-nightly-kernels/1"
DEFAULT = "class_blocks"
SAMPLES = 1000
QUERIES = 1000
FUSED_SHARED_BYTES = 60992  # samples 36000, lists 20000, moments 2560, scores 1280, queries 1152

# name: role, dtype, shape, how the shape comes about
BUFFERS: dict[str, tuple[str, str, list[int], str]] = {
    "x": ("x", "float32", [SAMPLES, 9], "n x features"),
    "labels": ("labels", "int32", [SAMPLES], "n"),
    "q": ("q", "float32", [QUERIES, 9], "m x features"),
    "partial": ("scratch", "float32", [8, 10, 64], "parts x classes x (55 moments, padded)"),
    "model": ("scratch", "float32", [10, 64], "classes x (centre 9, mean 9, multipliers 36, weights 9, constant 1)"),
    "predictions": ("predictions", "int32", [QUERIES], "m"),
    "status": ("status", "int32", [10], "classes"),
}


@dataclass(frozen=True)
class Source:
    """One launch: pyptx kernel, file, geometry (x dimension), dynamic shared memory, parameters in order.

    Names in ``writes`` are the parameters that the kernel stores to.
    """

    kernel: Any
    file: str
    grid: int
    block: int
    parameters: tuple[str, ...]
    writes: tuple[str, ...]
    dynamic_shared_bytes: int = 0


VARIANTS: dict[str, tuple[str, tuple[Source, ...]]] = {
    "class_blocks": (
        "one block trains one class, then every block scores 32 queries",
        (
            Source(
                class_blocks.train,
                "class_blocks_train.ptx",
                10,
                512,
                ("x", "labels", "model", "status"),
                ("model", "status"),
            ),
            Source(
                class_blocks.score, "class_blocks_score.ptx", 32, 320, ("model", "q", "predictions"), ("predictions",)
            ),
        ),
    ),
    "record": (
        "the recorded geometry: partial moments of 125 samples a block, merged and factorised in every scoring block",
        (
            Source(record.stats, "record_stats.ptx", 8, 512, ("x", "labels", "partial"), ("partial",)),
            Source(
                record.score,
                "record_score.ptx",
                32,
                320,
                ("partial", "x", "q", "predictions", "status"),
                ("predictions", "status"),
            ),
        ),
    ),
    "fused": (
        "one launch: every block trains all classes and scores 32 queries",
        (
            Source(
                fused.fused,
                "fused.ptx",
                32,
                320,
                ("x", "labels", "q", "predictions", "status"),
                ("predictions", "status"),
                FUSED_SHARED_BYTES,
            ),
        ),
    ),
}

CONTROL_FILE = "control.ptx"


def emit() -> dict[str, str]:
    """File name to content of everything that is pinned."""
    texts = {source.file: source.kernel.ptx() for _, sources in VARIANTS.values() for source in sources}
    texts[CONTROL_FILE] = control.control.ptx()
    manifest = {
        "format": FORMAT,
        "workload": "qda",
        "target": "sm_80",
        "ptx_version": "7.0",
        "n": SAMPLES,
        "m": QUERIES,
        "default": DEFAULT,
        "variants": {name: _variant(name, texts) for name in VARIANTS},
        "control": _control(texts[CONTROL_FILE]),
    }
    files = {**texts, "manifest.json": json.dumps(manifest, indent=2) + "\n"}
    sums = "".join(f"{_sha256(content)}  {name}\n" for name, content in sorted(files.items()))
    return {**files, "SHA256SUMS": sums}


def build(folder: Path = FOLDER) -> list[str]:
    """Write every pinned file whose content differs from what the sources emit; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    changed = differing(folder)
    files = emit()
    for name in changed:
        (folder / name).write_bytes(files[name].encode())
    return changed


def differing(folder: Path = FOLDER) -> list[str]:
    """Names of pinned files that are missing or differ from what the sources emit."""
    return [
        name
        for name, content in emit().items()
        if not (folder / name).is_file() or (folder / name).read_bytes() != content.encode()
    ]


def _variant(name: str, texts: dict[str, str]) -> dict[str, Any]:
    description, sources = VARIANTS[name]
    return {
        "description": description,
        "ptx_sha256": _sha256("".join(texts[source.file] for source in sources)),
        "launches": [_launch(source, texts[source.file]) for source in sources],
    }


def _control(text: str) -> dict[str, Any]:
    return {
        "entry": _entry(text),
        "ptx": CONTROL_FILE,
        "sha256": _sha256(text),
        "ptx_lines": len(text.splitlines()),
    }


def _entry(text: str) -> str:
    (entry,) = re.findall(r"\.entry (\w+)\(", text)
    return str(entry)


def _launch(source: Source, text: str) -> dict[str, Any]:
    return {
        "entry": _entry(text),
        "ptx": source.file,
        "sha256": _sha256(text),
        "ptx_lines": len(text.splitlines()),
        "grid": [source.grid, 1, 1],
        "block": [source.block, 1, 1],
        "shared_static_bytes": _static_shared_bytes(text),
        "shared_dynamic_bytes": source.dynamic_shared_bytes,
        "parameters": [_parameter(name, name in source.writes) for name in source.parameters],
    }


def _parameter(name: str, written: bool) -> dict[str, Any]:
    role, dtype, shape, formula = BUFFERS[name]
    access = "write" if written else "read"
    return {"name": name, "role": role, "access": access, "dtype": dtype, "shape": shape, "formula": formula}


def _static_shared_bytes(text: str) -> int:
    end = 0
    for alignment, size in re.findall(r"^\s*\.shared \.align (\d+) \.b8 \w+\[(\d+)\];", text, re.MULTILINE):
        end = -(-end // int(alignment)) * int(alignment) + int(size)
    return end


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

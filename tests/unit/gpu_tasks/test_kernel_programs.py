"""The kernels through the programs: every variant, a kernel that a user has changed, and what is refused."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.devices.manifest import COMMITTED, read_manifest
from gpu_tasks.records import (
    AVAILABLE_DEVICES,
    DEVICE_KINDS,
    Outcome,
    ProvisionRecord,
    RunRecord,
    ValidationRecord,
    from_json,
    read_record,
)
from gpu_tasks.workloads import registry
from tests.unit.gpu_tasks.running import ROOT, complaint, program

VARIANTS = read_manifest(COMMITTED).variants
TRAIN = (COMMITTED.parent / "class_blocks_train.ptx").read_text(encoding="ascii")
BARRIERS = [index for index, line in enumerate(TRAIN.splitlines()) if line.strip() == "bar.sync 0;"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the committed kernels that a user may change."""
    return Path(shutil.copytree(COMMITTED.parent, tmp_path / "ptx"))


def test_the_kinds_that_can_be_opened_are_those_that_are_announced() -> None:
    declared = {kind for name in registry.workload_names() for kind in registry.declared(name).devices}
    assert declared == set(AVAILABLE_DEVICES) <= set(DEVICE_KINDS)
    assert "auto, cuda, emulated, reference or simulated" in " ".join(program("validate", "--help").stdout.split())


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_agrees_and_has_no_race(variant: str) -> None:
    result = program("validate", "--draw", 6, "--device", "emulated", "--variant", variant, "--check", "races")
    assert result.returncode == 0, result.stderr
    record = from_json(result.stdout, ValidationRecord, "stdout")
    assert (record.agreed, record.total, record.replays_equal_eager) == (1000, 1000, [True] * 3)
    baseline = read_record(ROOT / "gpu_tasks/baselines/qda-original-a100.json", RunRecord)
    assert record.predictions_int32_sha256 == baseline.validations[6].predictions_int32_sha256
    assert f"kernels: {variant}, ptx sha256 {VARIANTS[variant].ptx_sha256}" in result.stderr


@pytest.mark.parametrize("variant", VARIANTS)
def test_provision_names_variant_and_hash(variant: str) -> None:
    record = from_json(program("provision", "--variant", variant).stdout, ProvisionRecord, "stdout")
    assert record.kernel is not None
    assert (record.kernel.variant, record.kernel.ptx_sha256) == (variant, VARIANTS[variant].ptx_sha256)


@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_removed_barrier_is_refused_with_the_race_named(tmp_path: Path, barrier: int) -> None:
    lines = TRAIN.splitlines()
    lines[barrier] = ""
    changed = tmp_path / "train.ptx"
    changed.write_text("\n".join(lines), encoding="ascii")
    arguments = ["validate", "--draw", 0, "--device", "emulated", "--ptx", changed]
    result = program(*arguments, "--check", "races")
    record = from_json(result.stdout, ValidationRecord, "stdout")
    assert (result.returncode, record.outcome, record.agreed) == (2, Outcome.BAD_INPUT, None)
    assert record.reason is not None
    assert record.reason.code == "race"
    found = re.fullmatch(
        r"kernel train, PTX line (\d+), block (\d+), thread (\d+): read of byte \d+ of shared memory "
        r"with no barrier since a write at line (\d+) by block (\d+) thread (\d+)",
        record.reason.message,
    )
    assert found is not None, record.reason.message
    line, block, thread, other_line, other_block, other_thread = map(int, found.groups())
    assert other_line < barrier + 1 < line
    assert "ld.shared" in lines[line - 1]
    assert "st.shared" in lines[other_line - 1]
    assert block == other_block
    assert thread != other_thread
    # Without the check the emulator's one schedule happens to be a good one: agreement alone proves nothing.
    unchecked = program(*arguments)
    assert unchecked.returncode == 0
    assert "races between threads are not looked for; --check races does" in unchecked.stderr


def test_a_harmless_change_passes_under_another_hash(tmp_path: Path) -> None:
    lines = TRAIN.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if "mov.u32" in line and "mov.u32" in lines[i + 1])
    assert lines[first] != lines[first + 1]
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    changed = tmp_path / "train.ptx"
    changed.write_text("// mine\n" + "".join(lines), encoding="ascii")
    result = program("validate", "--draw", 0, "--ptx", changed, "--check", "races")
    assert result.returncode == 0, result.stderr
    assert from_json(result.stdout, ValidationRecord, "stdout").agreed == 1000
    kernel = from_json(program("provision", "--ptx", changed).stdout, ProvisionRecord, "stdout").kernel
    assert kernel is not None
    score = (COMMITTED.parent / "class_blocks_score.ptx").read_bytes()
    assert kernel.ptx_sha256 == hashlib.sha256(changed.read_bytes() + score).hexdigest()
    assert kernel.ptx_sha256 != VARIANTS["class_blocks"].ptx_sha256
    assert f"ptx sha256 {kernel.ptx_sha256}" in result.stderr


TEXTS: dict[str, tuple[Callable[[str], str], str, str]] = {
    "malformed": (
        lambda t: t.replace("\tbar.sync 0;", "\tbar.sync 0", 1),
        "ptx_syntax",
        f"PTX line {BARRIERS[0] + 1}: ",
    ),
    "cut off": (lambda t: t[: len(t) // 2], "ptx_syntax", "PTX line "),
    "no PTX": (lambda _: "Dear kernel,\n", "bad_kernel_manifest", ".entry: expected one of train, score, found none"),
    "empty": (lambda _: "", "bad_kernel_manifest", ".entry: expected one of train, score, found none"),
    "unknown instruction": (
        lambda t: t.replace("\tbar.sync 0;", "\tnanosleep.u32 20;", 1),
        "ptx_unknown_instruction",
        f"PTX line {BARRIERS[0] + 1}: nanosleep.u32 is not in the emulated subset",
    ),
    "free to contract": (lambda t: t.replace("add.rn.f32", "add.f32", 1), "ptx_unknown_instruction", "without .rn"),
    "wrong entry": (
        lambda t: t.replace(".entry train(", ".entry teach("),
        "bad_kernel_manifest",
        ".entry: expected one of train, score, found teach",
    ),
    "one parameter more": (
        lambda t: t.replace(".param .u64 status\n", ".param .u64 status,\n\t.param .u64 more\n"),
        "wrong_parameter_count",
        "train: expected 4 parameters, found 5",
    ),
    "another block size": (lambda t: t.replace(".reqntid 512", ".reqntid 256"), "bad_geometry", ".reqntid [256, 1, 1]"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_that_cannot_run_is_refused(tmp_path: Path, what: str) -> None:
    change, code, words = TEXTS[what]
    assert change(TRAIN) != TRAIN
    changed = tmp_path / "train.ptx"
    changed.write_text(change(TRAIN), encoding="ascii")
    refused(["--ptx", changed], code, words)


def refused(arguments: list[Any], code: str, words: str) -> None:
    """``validate`` ends as bad input with this code and these words, and with nothing that reads as an answer."""
    result = program("validate", "--draw", 0, *arguments)
    record = from_json(result.stdout, ValidationRecord, "stdout")
    assert (result.returncode, record.outcome, record.agreed) == (2, Outcome.BAD_INPUT, None)
    assert record.reason is not None
    assert (record.reason.code, words in record.reason.message) == (code, True), record.reason
    assert complaint(result) == f"gpu_tasks validate: bad_input: {code}: {record.reason.message}"
    assert "Traceback" not in result.stderr


def launch(manifest: Any, variant: str, index: int = 0) -> Any:
    return manifest["variants"][variant]["launches"][index]


MANIFESTS: dict[str, tuple[str, Callable[[Any], None], str, str]] = {
    "block over the limit": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(block=[2048, 1, 1]),
        "bad_kernel_manifest",
        "launches[0].block: expected three integers from 1 to at most [1024, 1024, 64], found [2048, 1, 1]",
    ),
    "grid over the limit": (
        "class_blocks",
        lambda m: launch(m, "class_blocks", 1).update(grid=[2**31, 1, 1]),
        "bad_kernel_manifest",
        "launches[1].grid: expected three integers from 1 to at most [2147483647, 65535, 65535], found [2147483648,",
    ),
    "part of a warp": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(block=[500, 1, 1]),
        "bad_geometry",
        "train: block: expected whole warps of 32, found 500 threads",
    ),
    "two dimensions": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(grid=[5, 2, 1]),
        "bad_geometry",
        "expected [x, 1, 1] each, found [5, 2, 1]",
    ),
    "too few blocks": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(grid=[9, 1, 1]),
        "unwritten_read",
        "of model",
    ),
    "too little static shared memory": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(shared_static_bytes=1024),
        "shared_memory",
        "train: static: expected 1024 bytes, found 46336",
    ),
    "too little dynamic shared memory": (
        "fused",
        lambda m: launch(m, "fused").update(shared_dynamic_bytes=4096),
        "out_of_bounds",
        "past the 4096 there are",
    ),
    "too much dynamic shared memory": (
        "fused",
        lambda m: launch(m, "fused").update(shared_dynamic_bytes=200_000),
        "shared_memory",
        "fused: expected at most 166912 bytes",
    ),
    "wrong entry": (
        "class_blocks",
        lambda m: launch(m, "class_blocks").update(entry="teach"),
        "wrong_entry",
        "class_blocks_train.ptx: .entry: expected teach, found train",
    ),
    "too few parameters": (
        "class_blocks",
        lambda m: launch(m, "class_blocks", 1)["parameters"].append(launch(m, "class_blocks")["parameters"][0]),
        "wrong_parameter_count",
        "score: expected 4 parameters, found 3",
    ),
    "another size of the problem": (
        "class_blocks",
        lambda m: m.update(n=10**7),
        "bad_kernel_manifest",
        "manifest.json: n, m: expected 1 to 1000000",
    ),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_launch_that_cannot_work_is_refused(folder: Path, what: str) -> None:
    variant, change, code, words = MANIFESTS[what]
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    refused(["--variant", variant, "--manifest", path], code, words)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["--variant", ""],
            "bad_kernel_manifest",
            "class_blocks or fused or record, found an empty name",
        ),
        (["--variant", "fastest"], "bad_kernel_manifest", "variant: expected class_blocks or fused or record"),
        (["--ptx", "nowhere.ptx"], "kernel_file_unreadable", "nowhere.ptx: expected a readable file"),
        (["--ptx", "gpu_tasks/payload/original/draw-00.npz"], "kernel_file_not_text", "draw-00.npz: expected ASCII"),
        (["--ptx", "kernels/ptx/fused.ptx"], "bad_kernel_manifest", "expected one of train, score, found fused"),
        (["--manifest", "nowhere.json"], "kernel_file_unreadable", "nowhere.json: expected a readable file"),
        (["--manifest", "kernels/ptx/fused.ptx"], "record_not_json", "fused.ptx"),
        (["--device", "reference", "--ptx", "kernels/ptx/fused.ptx"], "no_ptx_here", "found reference"),
        (["--device", "reference", "--manifest", "kernels/manifest.json"], "no_ptx_here", "found reference"),
        (["--device", "reference", "--variant", ""], "no_ptx_here", "found reference"),
        (["--ptx", "/dev/zero"], "kernel_file_unreadable", "/dev/zero: expected a regular file"),
        (["--device", "reference", "--variant", "record"], "no_ptx_here", "found reference"),
    ],
)
def test_a_wrong_choice_of_kernels_is_refused(arguments: list[str], code: str, words: str) -> None:
    refused(arguments, code, words)


def test_a_committed_text_that_was_changed_and_not_pinned_is_a_mismatch(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    unwanted = shutil.ignore_patterns("__pycache__")
    for house in ("gpu_tasks", "kernels"):
        shutil.copytree(ROOT / house, root / house, ignore=unwanted)
    environment = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    assert program("pin", root=root, **environment).returncode == 0
    path = root / "kernels/ptx/class_blocks_train.ptx"
    path.write_text(path.read_text(encoding="ascii") + "// not pinned\n", encoding="ascii")
    for arguments in (["provision"], ["validate", "--draw", "0"], ["measure", "--round", "0"]):
        result = program(*arguments, root=root, **environment)
        assert result.returncode == 4
        assert f": verification_mismatch: ptx_changed: {path}: sha256: expected " in complaint(result)
    result = program("verify", "--subject", "sources", root=root, **environment)
    assert result.returncode == 4
    assert "kernels/ptx/class_blocks_train.ptx: sha256: expected" in complaint(result)
    assert program("validate", "--draw", "0", "--variant", "record", root=root, **environment).returncode == 0

"""Kernel manifests are checked field by field, and PTX files against their hashes."""

import json
import os
import shutil
from pathlib import Path

import pytest

from gpu_tasks.devices.manifest import COMMITTED, load_control, load_kernels
from gpu_tasks.records import BadInput, VerificationMismatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the committed kernels that a user may change."""
    copy = tmp_path / "ptx"
    shutil.copytree(COMMITTED.parent, copy)
    return copy


def rewrite(folder: Path, change) -> Path:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    return path


def launch_of(manifest: dict, index: int = 0) -> dict:
    return manifest["variants"]["class_blocks"]["launches"][index]


def parameter(manifest: dict, name: str) -> dict:
    return next(p for p in launch_of(manifest)["parameters"] if p["name"] == name)


def test_the_default_variant_is_the_manifests():
    assert load_kernels().variant == "class_blocks"
    assert load_kernels(variant="fused").launches[0].shared_dynamic_bytes > 48 * 1024


def test_an_unknown_variant_names_the_known_ones():
    with pytest.raises(BadInput, match="class_blocks or fused or record"):
        load_kernels(variant="fastest")


def test_changed_text_beside_the_manifest_is_a_mismatch(folder):
    path = folder / "class_blocks_train.ptx"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(VerificationMismatch, match=r"class_blocks_train\.ptx: sha256: expected"):
        load_kernels(folder / "manifest.json")


def test_a_manifest_of_ones_own_may_leave_hashes_out(folder):
    path = folder / "class_blocks_train.ptx"
    path.write_text(path.read_text() + "\n")
    manifest = rewrite(folder, lambda m: launch_of(m).update(sha256=None))
    assert load_kernels(manifest).texts[0] == path.read_text()


def test_a_named_file_replaces_the_launch_whose_entry_it_defines(folder):
    changed = folder / "mine.ptx"
    changed.write_text((folder / "class_blocks_score.ptx").read_text() + "// mine\n")
    kernels = load_kernels(COMMITTED, ptx=(changed,))
    assert kernels.texts[1].endswith("// mine\n")
    assert kernels.ptx_sha256 != load_kernels().ptx_sha256


@pytest.mark.parametrize("names", [("fused.ptx",), ("class_blocks_score.ptx", "record_score.ptx"), ("SHA256SUMS",)])
def test_files_that_replace_no_launch_or_the_same_one_are_refused(folder, names):
    with pytest.raises(BadInput, match=r"\.entry"):
        load_kernels(COMMITTED, ptx=tuple(folder / name for name in names))


BAD_FIELDS = {
    "format": (lambda m: m.update(format="other/1"), "format"),
    "missing field": (lambda m: m.pop("default"), "default"),
    "unknown field": (lambda m: m.update(extra=1), "extra"),
    "wrong type": (lambda m: launch_of(m).update(grid="10"), "grid"),
    "default": (lambda m: m.update(default="none"), "default"),
    "n": (lambda m: m.update(n=0), "n, m"),
    "path outside": (lambda m: launch_of(m).update(ptx="../x.ptx"), "ptx"),
    "not a ptx file": (lambda m: launch_of(m).update(ptx="x.cubin"), "ptx"),
    "no launches": (lambda m: m["variants"]["class_blocks"].update(launches=[]), "launches"),
    "same entry twice": (lambda m: launch_of(m, 1).update(entry="train"), "launches"),
    "role": (lambda m: parameter(m, "model").update(role="workspace"), "model.role"),
    "input written": (lambda m: parameter(m, "x").update(access="write"), "x.access"),
    "dtype": (lambda m: parameter(m, "model").update(dtype="float16"), "model.dtype"),
    "shape of x": (lambda m: parameter(m, "x").update(shape=[1000, 10]), "parameters.x"),
    "negative shape": (lambda m: parameter(m, "model").update(shape=[-1]), "model.shape"),
    "huge": (lambda m: parameter(m, "model").update(shape=[10**9]), "model.shape"),
    "two shapes of one buffer": (lambda m: parameter(m, "model").update(shape=[640]), "parameters.model"),
    "no grid": (lambda m: launch_of(m).update(grid=[]), "launches[0].grid"),
    "grid of two": (lambda m: launch_of(m).update(grid=[10, 1]), "launches[0].grid"),
    "negative grid": (lambda m: launch_of(m).update(grid=[-1, 1, 1]), "launches[0].grid"),
    "grid of 2^31": (lambda m: launch_of(m, 1).update(grid=[2**31, 1, 1]), "launches[1].grid"),
    "grid that wraps": (lambda m: launch_of(m).update(grid=[2**32 + 10, 1, 1]), "launches[0].grid"),
    "grid y": (lambda m: launch_of(m).update(grid=[1, 65536, 1]), "launches[0].grid"),
    "grid z": (lambda m: launch_of(m).update(grid=[1, 1, 65536]), "launches[0].grid"),
    "no threads": (lambda m: launch_of(m).update(block=[0, 1, 1]), "launches[0].block"),
    "block of 2048": (lambda m: launch_of(m).update(block=[2048, 1, 1]), "launches[0].block"),
    "block of 64 x 32": (lambda m: launch_of(m).update(block=[64, 32, 1]), "launches[0].block"),
    "block z": (lambda m: launch_of(m).update(block=[1, 1, 65]), "launches[0].block"),
    "negative shared": (lambda m: launch_of(m).update(shared_static_bytes=-4), "shared_static_bytes"),
    "static shared over 48 KiB": (lambda m: launch_of(m).update(shared_static_bytes=49156), "shared_static_bytes"),
    "negative dynamic": (lambda m: launch_of(m).update(shared_dynamic_bytes=-1), "shared_dynamic_bytes"),
    "dynamic that wraps": (lambda m: launch_of(m).update(shared_dynamic_bytes=2**32 + 16), "shared_dynamic_bytes"),
    "dynamic over the limit": (lambda m: launch_of(m).update(shared_dynamic_bytes=227 * 1024), "shared_dynamic_bytes"),
    "workload": (lambda m: m.update(workload="lda"), "workload"),
    "target": (lambda m: m.update(target="sm_75"), "target"),
    "ptx version": (lambda m: m.update(ptx_version="7"), "ptx_version"),
    "ptx lines": (lambda m: launch_of(m).update(ptx_lines=-1), "ptx_lines"),
    "control outside": (lambda m: m["control"].update(ptx="../control.ptx"), "control.ptx"),
    "control field": (lambda m: m["control"].update(grid=[1, 1, 1]), "control.grid"),
    "no status": (lambda m: launch_of(m)["parameters"].pop(), "class_blocks"),
}


@pytest.mark.parametrize("what", BAD_FIELDS)
def test_a_bad_manifest_is_refused_by_file_and_field(folder, what):
    change, field = BAD_FIELDS[what]
    with pytest.raises(BadInput) as refused:
        load_kernels(rewrite(folder, change))
    assert "manifest.json" in refused.value.message
    assert field in refused.value.message


def own_variant(manifest: dict) -> dict:
    return manifest["variants"]["class_blocks"]


def test_what_the_manifest_says_of_its_files_holds(folder):
    with pytest.raises(VerificationMismatch, match=r"class_blocks\.ptx_sha256: expected 0+, found c8486f22"):
        load_kernels(rewrite(folder, lambda m: own_variant(m).update(ptx_sha256="0" * 64)))


def test_the_number_of_lines_holds(folder):
    path = rewrite(folder, lambda m: launch_of(m).update(ptx_lines=7))
    with pytest.raises(VerificationMismatch, match=r"class_blocks_train\.ptx: ptx_lines: expected 7, found 1197"):
        load_kernels(path)


def test_hash_and_lines_are_not_asked_of_a_replaced_file(folder):
    changed = folder / "mine.ptx"
    changed.write_text((folder / "class_blocks_train.ptx").read_text() + "// mine\n")
    assert load_kernels(folder / "manifest.json", ptx=(changed,)).texts[0].endswith("// mine\n")


def test_the_control_is_pinned_and_needed_only_where_it_is_used(folder):
    control, text = load_control(folder / "manifest.json")
    assert (control.ptx, text) == ("control.ptx", (folder / "control.ptx").read_text())
    (folder / "control.ptx").write_text(text.replace("0f40700000", "0f40600000"))
    with pytest.raises(VerificationMismatch, match=r"control\.ptx: sha256: expected") as refused:
        load_control(folder / "manifest.json")
    assert refused.value.code == "ptx_changed"
    without = rewrite(folder, lambda m: m.pop("control"))
    assert load_kernels(without).variant == "class_blocks"
    with pytest.raises(BadInput, match=r"manifest\.json: control: expected the control kernel, found none"):
        load_control(without)


def test_an_empty_variant_is_not_the_default():
    with pytest.raises(BadInput, match="variant: expected class_blocks or fused or record"):
        load_kernels(variant="")


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "/dev/null", "."])
def test_only_regular_files_are_read(tmp_path, name):
    os.mkfifo(tmp_path / "pipe")
    for arguments in ({"manifest": tmp_path / name}, {"ptx": (tmp_path / name,)}):
        with pytest.raises(BadInput, match=r"expected a .* file") as refused:
            load_kernels(**arguments)
        assert refused.value.code == "kernel_file_unreadable"


def test_a_file_over_the_limit_is_refused(tmp_path):
    path = tmp_path / "big.ptx"
    path.write_bytes(b" " * (4 * 1024 * 1024 + 1))
    with pytest.raises(BadInput, match=r"big\.ptx: size: expected at most 4194304 bytes"):
        load_kernels(ptx=(path,))


def test_missing_and_binary_files_are_refused(folder):
    with pytest.raises(BadInput) as refused:
        load_kernels(folder / "nowhere.json")
    assert refused.value.code == "kernel_file_unreadable"
    (folder / "class_blocks_train.ptx").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput) as refused:
        load_kernels(folder / "manifest.json")
    assert refused.value.code == "kernel_file_not_text"

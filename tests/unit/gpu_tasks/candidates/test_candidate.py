"""From a spec to two frozen kernels: what is meant, what it is held against, and what people are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpu_tasks.candidates import offers
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from gpu_tasks.records import Outcome
from tests.unit.gpu_tasks.candidates.checkouts import Checkout
from tests.unit.gpu_tasks.candidates.conftest import Candidate

PINNED = {name: variant.ptx_sha256 for name, variant in read_manifest(COMMITTED).variants.items()}


def test_a_variant_is_held_against_the_default(checkout: Checkout, candidate: Candidate) -> None:
    status, record = candidate("fused")
    assert (status, record.outcome, record.origin, record.spec) == (0, Outcome.OK, "variant", "fused")
    assert record.kernel is not None
    assert record.against is not None
    assert (record.kernel.variant, record.kernel.ptx_sha256) == ("fused", PINNED["fused"])
    assert (record.against.variant, record.against.ptx_sha256) == ("class_blocks", PINNED["class_blocks"])
    assert (record.commit, record.modified, record.equals_pinned) == (checkout.first, False, False)


def test_a_variant_of_a_commit_is_held_against_its_namesake(checkout: Checkout, candidate: Candidate) -> None:
    _, record = candidate("fused", "--against", "HEAD")
    assert record.against is not None
    assert (record.against.variant, record.equals_pinned) == ("fused", True)


def test_the_pinned_kernel_equals_itself(candidate: Candidate) -> None:
    _, record = candidate("class_blocks")
    assert record.equals_pinned is True
    assert record.bundle == record.against_bundle
    assert candidate("class_blocks", "--expect", "same")[0] == 0
    status, record = candidate("class_blocks", "--expect", "another")
    assert (status, record.reason and record.reason.code) == (2, "candidate_is_pinned")


def test_an_ab_run_is_no_aa_run(candidate: Candidate) -> None:
    assert candidate("fused", "--against", "class_blocks", "--expect", "another")[0] == 0
    status, record = candidate("fused", "--against", "class_blocks", "--expect", "same")
    assert (status, record.reason and record.reason.code) == (2, "candidate_is_another")


def test_a_changed_source(checkout: Checkout, candidate: Candidate, tmp_path: Path) -> None:
    checkout.change("reordered")
    status, record = candidate("kernels/class_blocks.py")
    assert (status, record.origin, record.commit, record.modified) == (0, "source", checkout.first, True)
    assert record.kernel is not None
    assert record.against is not None
    assert record.kernel.variant == record.against.variant == "class_blocks"
    assert record.kernel.ptx_sha256 != record.against.ptx_sha256 == PINNED["class_blocks"]
    assert (record.equals_pinned, record.notes) == (False, [])
    assert load_kernels(tmp_path / "candidates" / str(record.bundle) / "manifest.json").identity() == record.kernel
    assert not (checkout.root / "kernels/__pycache__").exists()
    assert checkout.git("status", "--porcelain") == "M kernels/class_blocks.py", "nothing else was touched"


def test_an_unchanged_source_is_the_pinned_kernel(candidate: Candidate) -> None:
    for name in ("class_blocks", "record", "fused"):
        _, record = candidate(f"kernels/{name}.py")
        assert record.kernel is not None
        assert (record.kernel.variant, record.equals_pinned, record.modified) == (name, True, False)


def test_a_source_that_variants_share(checkout: Checkout, candidate: Candidate) -> None:
    checkout.change("uncentred")
    _, record = candidate("kernels/qda.py")
    assert record.kernel is not None
    assert record.kernel.variant == "class_blocks"
    assert record.notes == ["kernels/qda.py: also changed and not tried: record, fused (--variant chooses)"]
    for spec, options in (("kernels/qda.py", ["--variant", "fused"]), ("kernels/fused.py", [])):
        _, record = candidate(spec, *options)
        assert record.kernel is not None
        assert record.against is not None
        assert (record.kernel.variant, record.against.variant) == ("fused", "fused")


def test_the_variant_that_was_changed_is_meant(checkout: Checkout, candidate: Candidate) -> None:
    """The one that the file is called after has not changed; another has, and is the only one that can be meant."""
    checkout.change("reordered")
    _, record = candidate("kernels/fused.py")
    assert record.kernel is not None
    assert record.kernel.variant == "class_blocks"


def test_a_changed_control_is_said(checkout: Checkout, candidate: Candidate) -> None:
    path = checkout.root / "kernels/control.py"
    text = path.read_text(encoding="utf-8")
    assert "GROWTH = 3.75" in text
    path.write_text(text.replace("GROWTH = 3.75", "GROWTH = 3.5"), encoding="utf-8")
    status, record = candidate("kernels/class_blocks.py")
    assert (status, record.equals_pinned) == (0, True)
    assert record.notes == [
        "kernels/class_blocks.py: the control kernel is changed as well; what is measured beside is the pinned one"
    ]


def test_a_text_of_its_own_folder(checkout: Checkout, candidate: Candidate) -> None:
    own = checkout.root / "mine"
    own.mkdir()
    text = (checkout.ptx / "fused.ptx").read_text(encoding="ascii")
    (own / "whatever.ptx").write_text("// mine\n" + text, encoding="ascii")
    status, record = candidate("mine/whatever.ptx")
    assert (status, record.origin, record.modified) == (0, "ptx", True)
    assert record.kernel is not None
    assert (record.kernel.variant, record.kernel.ptx_lines) == ("fused", len(text.splitlines()) + 1)


def test_an_entry_of_two_variants(checkout: Checkout, candidate: Candidate) -> None:
    """``score`` is an entry of two: the file's name chooses, else the default, else --variant."""
    (checkout.root / "score.ptx").write_bytes((checkout.ptx / "class_blocks_score.ptx").read_bytes())
    for spec, options, expected in (
        ("kernels/ptx/record_score.ptx", [], "record"),
        ("kernels/ptx/class_blocks_score.ptx", [], "class_blocks"),
        ("score.ptx", [], "class_blocks"),
    ):
        _, record = candidate(spec, *options)
        assert record.kernel is not None
        assert (record.kernel.variant, record.equals_pinned) == (expected, True)


def test_a_pinned_text_that_is_edited_in_place(checkout: Checkout, candidate: Candidate) -> None:
    path = checkout.ptx / "class_blocks_train.ptx"
    path.write_text(path.read_text(encoding="ascii") + "// mine\n", encoding="ascii")
    status, record = candidate("kernels/ptx/class_blocks_train.ptx")
    assert status == 0
    assert record.against is not None
    assert record.against.ptx_sha256 == PINNED["class_blocks"]
    assert record.equals_pinned is False
    assert record.notes == [
        f"kernels/ptx is not what it pins: the pinned kernels are those of commit {checkout.first[:12]}"
    ]


def test_a_manifest(checkout: Checkout, candidate: Candidate) -> None:
    own = checkout.root / "mine"
    own.mkdir()
    for path in checkout.ptx.iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((own / "manifest.json").read_text(encoding="utf-8"))
    manifest["default"] = "fused"
    (own / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    _, record = candidate("mine/manifest.json")
    assert record.kernel is not None
    assert (record.origin, record.kernel.variant, record.equals_pinned) == ("manifest", "fused", True)
    _, record = candidate("mine/manifest.json", "--variant", "record")
    assert record.kernel is not None
    assert record.kernel.variant == "record"


def test_another_geometry_of_the_same_text_is_another_kernel(checkout: Checkout, candidate: Candidate) -> None:
    path = checkout.root / "kernels/build.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("FUSED_SHARED_BYTES = 60992", "FUSED_SHARED_BYTES = 61008"), encoding="utf-8")
    _, record = candidate("kernels/build.py")
    assert record.kernel is not None
    assert record.against is not None
    assert record.kernel.variant == "fused"
    assert (record.kernel.ptx_sha256, record.equals_pinned) == (record.against.ptx_sha256, False)


def test_a_ref_is_built_from_its_sources(checkout: Checkout, candidate: Candidate) -> None:
    checkout.change("reordered")
    second = checkout.commit("reordered, and its PTX forgotten")
    checkout.git("tag", "-a", "-m", "t", "faster")
    for spec, what in (("faster", f"faster ({second[:12]})"), (second, second[:12]), ("HEAD", f"HEAD ({second[:12]})")):
        status, record = candidate(spec)
        assert (status, record.origin, record.commit, record.modified) == (0, "ref", second, False)
        assert record.equals_pinned is False
        unlike = "SHA256SUMS, class_blocks_score.ptx, manifest.json"
        assert record.notes == [f"{what}: the committed {unlike} is not what its sources build; these are tried"]
    _, record = candidate("HEAD~1", "--against", "HEAD")
    assert (record.commit, record.equals_pinned) == (checkout.first, False)
    assert record.kernel is not None
    assert record.kernel.ptx_sha256 == PINNED["class_blocks"]
    assert checkout.git("status", "--porcelain") == ""


def test_the_same_kernels_are_the_same_bundle(checkout: Checkout, candidate: Candidate, tmp_path: Path) -> None:
    _, record = candidate("fused")
    for spec in ("kernels/fused.py", "kernels/ptx/fused.ptx"):
        assert candidate(spec)[1].bundle == record.bundle
    status, again = candidate(str(record.bundle), "--against", str(record.against_bundle))
    assert (status, again.origin) == (0, "bundle")
    assert (again.kernel, again.against, again.bundle) == (record.kernel, record.against, record.bundle)
    assert sorted(path.name for path in (tmp_path / "candidates").iterdir()) == sorted(
        [str(record.bundle), f"{record.bundle}.source.json", str(record.against_bundle)]
    )


def test_a_bundle_is_still_known_by_where_it_was_frozen_from(
    checkout: Checkout, candidate: Candidate, tmp_path: Path
) -> None:
    """The last time: the same kernels may be of several commits, and which of them was meant is what was said last."""
    _, frozen = candidate("fused")
    checkout.git("commit", "--quiet", "--allow-empty", "--message", "another")
    _, last = candidate("kernels/ptx/fused.ptx")
    assert (last.bundle, last.commit == frozen.commit) == (frozen.bundle, False)
    _, again = candidate(str(frozen.bundle))
    assert (again.spec, again.origin) == (frozen.bundle, "bundle")
    assert (again.commit, again.modified) == (last.commit, False)
    assert f"{frozen.bundle} was frozen from kernels/ptx/fused.ptx" in again.notes
    source = tmp_path / "candidates" / f"{frozen.bundle}.source.json"
    for damaged in ("", "[]"):
        source.write_text(damaged)
        status, unknown = candidate(str(frozen.bundle))
        assert (status, unknown.commit, unknown.modified) == (0, None, None)


def test_what_has_one_kernel_knows_nothing_of_the_others(checkout: Checkout, candidate: Candidate) -> None:
    """Held against a bundle, two kernels that nobody has touched are none that changed."""
    _, frozen = candidate("class_blocks")
    (checkout.root / "kernels/class_blocks.py").open("a", encoding="utf-8").write("# a remark\n")
    _, record = candidate("kernels/class_blocks.py", "--against", str(frozen.bundle))
    assert (record.equals_pinned, record.notes) == (True, [f"{frozen.bundle} was frozen from class_blocks"])


def test_a_name_that_fits_several(checkout: Checkout, candidate: Candidate) -> None:
    checkout.git("branch", "fused")
    assert candidate("fused")[1].origin == "variant"
    assert candidate("heads/fused")[1].origin == "ref"
    checkout.git("branch", "kernels/fused.py")
    assert candidate("kernels/fused.py")[1].origin == "source"


def test_without_a_repository(checkout: Checkout, candidate: Candidate) -> None:
    (checkout.root / ".git").rename(checkout.root / "no-longer-git")
    _, record = candidate("kernels/fused.py")
    assert (record.origin, record.commit, record.modified) == ("source", None, None)
    status, record = candidate("HEAD")
    assert (status, record.reason and record.reason.code) == (2, "unknown_candidate")


def test_the_repository_of_a_hook_is_not_asked(
    checkout: Checkout, candidate: Candidate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(offers.ROOT.parent / "elsewhere.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    _, record = candidate("fused")
    assert record.commit == checkout.first

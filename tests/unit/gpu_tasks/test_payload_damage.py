"""A damaged or hostile payload: every difference is named, nothing is trusted, nothing is unpickled."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_tasks.payload import npz, sets
from gpu_tasks.payload.draws import Payload
from gpu_tasks.payload.errors import PayloadDefect
from gpu_tasks.payload.layout import ArrayLayout, draw_layout
from gpu_tasks.payload.manifest import read_manifest
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import BadInput, VerificationMismatch
from gpu_tasks.workloads.base import Workload

SMALL = {"x": ArrayLayout((2, 3), "float32"), "n": ArrayLayout((), "int64")}
ARRAYS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(7)}


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("file", "offset", "fields"),
    [
        ("draw-03.npz", 500, {"sha256", "zip archive"}),
        ("draw-03.npz", -1, {"sha256"}),
        ("predictions/draw-03.npy", 200, {"sha256", "prediction 9"}),
        ("predictions/draw-03.npy", 20, {"sha256", "predictions header"}),
        ("manifest.json", -3, {"sha256"}),
        ("manifest.json", 10, {"sha256"}),
    ],
)
def test_one_flipped_byte(payload_copy: Path, qda: Workload, file: str, offset: int, fields: set[str]) -> None:
    flip(payload_copy / file, offset)
    report = verify_payload("original", payload_copy, qda)
    assert {mismatch.file for mismatch in report.mismatches} == {file}
    assert {mismatch.field for mismatch in report.mismatches} == fields


def test_a_shortened_predictions_file(payload_copy: Path, qda: Workload) -> None:
    path = payload_copy / "predictions/draw-03.npy"
    path.write_bytes(path.read_bytes()[:1000])
    fields = {mismatch.field for mismatch in verify_payload("original", payload_copy, qda).mismatches}
    assert fields == {"sha256", "predictions size"}


def test_every_damaged_file_is_named(payload_copy: Path, qda: Workload) -> None:
    flip(payload_copy / "draw-00.npz", 500)
    (payload_copy / "draw-05.npz").unlink()
    (payload_copy / "draw-06.npz").unlink()
    (payload_copy / "draw-06.npz").mkdir()
    (payload_copy / "predictions/draw-10.npy").write_bytes(b"")
    report = verify_payload("original", payload_copy, qda)
    assert {mismatch.file for mismatch in report.mismatches} == {
        "draw-00.npz",
        "draw-05.npz",
        "draw-06.npz",
        "predictions/draw-10.npy",
    }


def test_arrays_that_moved_between_draws_are_seen(payload_copy: Path, qda: Workload) -> None:
    """Whole valid files swapped: hashes, arrays and the seed inside all disagree."""
    (payload_copy / "draw-01.npz").write_bytes((payload_copy / "draw-02.npz").read_bytes())
    fields = {mismatch.field for mismatch in verify_payload("original", payload_copy, qda).mismatches}
    assert {"sha256", "x sha256", "labels sha256", "dataset_seed"} <= fields


def test_loading_a_changed_draw_is_refused(payload_copy: Path, qda: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "SHIPPED", payload_copy.parent)
    flip(payload_copy / "draw-03.npz", 500)
    with pytest.raises(VerificationMismatch, match=r"payload/draw-03\.npz: sha256: expected 4d4ab1467218"):
        Payload("payload", qda).load(3)


def edited_manifest(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    edit(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize(
    "path", ["/etc/hostname", "../outside.npz", "a/../../outside.npz", "..", "a\\b", "", "x" * 999]
)
def test_paths_stay_inside(payload_copy: Path, qda: Workload, path: str) -> None:
    (payload_copy.parent / "outside.npz").write_bytes((payload_copy / "draw-02.npz").read_bytes())
    edited_manifest(payload_copy, lambda m: m["draws"][2].update(path=path))
    mismatches = verify_payload("copy", payload_copy, qda).mismatches
    assert [(m.file, m.field) for m in mismatches] == [("manifest.json", "path")]


def test_a_path_that_no_file_can_have_is_refused_as_the_manifest_is_read(payload_copy: Path, qda: Workload) -> None:
    edited_manifest(payload_copy, lambda m: m["draws"][2].update(path="a\0b"))
    with pytest.raises(BadInput, match=r"\$\.draws\[2\]\.path: expected text without NUL characters"):
        verify_payload("copy", payload_copy, qda)


def test_links_stay_inside(payload_copy: Path, qda: Workload) -> None:
    outside = payload_copy.parent / "outside.npz"
    (payload_copy / "draw-02.npz").rename(outside)
    (payload_copy / "draw-02.npz").symlink_to(outside)
    (payload_copy / "draw-04.npz").unlink()
    (payload_copy / "draw-04.npz").symlink_to("draw-04.npz")
    found = {m.file: m.found for m in verify_payload("original", payload_copy, qda).mismatches}
    assert found["draw-02.npz"] == "a link that leads out of it"
    assert "draw-04.npz" in found


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda m: m.pop("seeds"), r"\$\.seeds: expected a value"),
        (lambda m: m.update(extra=1), r"\$\.extra: expected no such field"),
        (lambda m: m["seeds"].append(1), r"\$\.draws: expected 12 draws, found .11 draws"),
        (lambda m: m.update(seeds=[], draws=[]), "expected 1 to 100 seeds"),
        (lambda m: m["seeds"].__setitem__(1, 20261201), "found 20261201 more than once"),
        (lambda m: m["seeds"].__setitem__(1, -1), "found -1"),
        (lambda m: m["draws"].reverse(), r"\$\.draws\[0\]\.draw: expected 0, found 10"),
        (lambda m: m["draws"][1].update(sha256="XYZ"), r"\$\.draws\[1\]\.sha256: expected 64 lower-case"),
        (lambda m: m["draws"][1]["arrays"].pop("q"), r"\$\.draws\[1\]\.arrays: expected x, labels, q"),
        (lambda m: m["draws"][1]["arrays"]["q"].update(shape=[1000, 8]), r"q\.shape: expected \[1000, 9\]"),
        (lambda m: m["draws"][1]["arrays"]["q"].update(dtype="float64"), r"q\.dtype: expected float32"),
        (lambda m: m["draws"][1].update(draw="1"), r"\$\.draws\[1\]\.draw: expected an integer"),
    ],
)
def test_manifest_schema(
    payload_copy: Path, qda: Workload, edit: Callable[[dict[str, Any]], object], words: str
) -> None:
    edited_manifest(payload_copy, edit)
    with pytest.raises(BadInput, match=rf"manifest\.json: .*{words}"):
        read_manifest(payload_copy, qda)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"seeds": 1, "seeds": 2}', b"[" * 100000])
def test_manifest_that_is_no_manifest(payload_copy: Path, qda: Workload, text: bytes) -> None:
    (payload_copy / "manifest.json").write_bytes(text)
    with pytest.raises(BadInput, match=r"manifest\.json"):
        verify_payload("copy", payload_copy, qda)


def test_files_larger_than_can_be_are_not_read(payload_copy: Path, qda: Workload) -> None:
    with (payload_copy / "draw-03.npz").open("r+b") as stream:
        stream.truncate(2**40)  # sparse
    fields = {
        mismatch.field: mismatch.expected for mismatch in verify_payload("original", payload_copy, qda).mismatches
    }
    assert list(fields) == ["size"]
    (payload_copy / "manifest.json").write_bytes(b" " * 2**21)
    with pytest.raises(BadInput, match=r"manifest\.json: size: expected at most 1048576 bytes"):
        verify_payload("copy", payload_copy, qda)


def saved(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zipped(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


GOOD = {name: npz.npy_bytes(ARRAYS[name], layout) for name, layout in SMALL.items()}


class Trap:
    """Unpickling this would raise ZeroDivisionError: proof that somebody unpickled."""

    def __reduce__(self) -> Any:
        return divmod, (1, 0)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (saved(x=ARRAYS["x"].astype(np.float64), n=ARRAYS["n"]), "x size"),
        (saved(x=ARRAYS["x"].view(np.int32), n=ARRAYS["n"]), "x header"),
        (saved(x=ARRAYS["x"].astype(">f4"), n=ARRAYS["n"]), "x header"),
        (saved(x=np.asfortranarray(ARRAYS["x"]), n=ARRAYS["n"]), "x header"),
        (saved(x=ARRAYS["x"].reshape(3, 2), n=ARRAYS["n"]), "x header"),
        (saved(x=np.array([Trap()], object), n=ARRAYS["n"]), "x size"),
        (saved(n=ARRAYS["n"], x=ARRAYS["x"]), "members"),
        (saved(x=ARRAYS["x"]), "members"),
        (saved(**ARRAYS, more=ARRAYS["n"]), "members"),
        (zipped(zipfile.ZIP_DEFLATED, **GOOD), "x compression"),
        (zipped(x=GOOD["x"] + b"\0" * 10_000_000, n=GOOD["n"]), "x size"),
        (zipped(zipfile.ZIP_DEFLATED, x=b"\0" * 100_000_000, n=GOOD["n"]), "x compression"),
        (zipped(x=b"\0" * len(GOOD["x"]), n=GOOD["n"]), "x header"),
        (zipped(x=pickle.dumps(Trap()).ljust(len(GOOD["x"]), b"\0"), n=GOOD["n"]), "x header"),
        (pickle.dumps(Trap()), "zip archive"),
        (saved(**ARRAYS)[:-30], "zip archive"),
        (b"", "zip archive"),
    ],
)
def test_npz_is_checked_before_its_data(data: bytes, field: str) -> None:
    with pytest.raises(PayloadDefect) as caught:
        npz.read_npz(data, SMALL, "draw-00.npz")
    assert (caught.value.mismatch.file, caught.value.mismatch.field) == ("draw-00.npz", field)
    assert "\n" not in caught.value.message


def test_a_member_name_that_is_no_text() -> None:
    content = bytearray(saved(**ARRAYS))
    entry = content.index(b"PK\x01\x02")
    content[entry + 8 : entry + 10] = (0x800).to_bytes(2, "little")  # claims that the name is UTF-8
    content[entry + 46] = 0xFF
    with pytest.raises(PayloadDefect, match=r"a readable \.npz"):
        npz.read_npz(bytes(content), SMALL, "draw-00.npz")


def test_a_good_npz_is_read() -> None:
    arrays = npz.read_npz(saved(**ARRAYS), SMALL, "draw-00.npz")
    np.testing.assert_array_equal(arrays["x"], ARRAYS["x"])
    assert int(arrays["n"]) == 7


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_damage_to_an_npz_is_an_error_of_ours_or_harmless(data: st.DataObject) -> None:
    content = bytearray(saved(**ARRAYS))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        arrays = npz.read_npz(bytes(content), SMALL, "draw-00.npz")
    except PayloadDefect:
        return
    np.testing.assert_array_equal(arrays["x"], ARRAYS["x"])  # only bytes outside the data were hit


def test_writer_refuses_another_shape(qda: Workload) -> None:
    with pytest.raises(ValueError, match="expected float32"):
        npz.npy_bytes(np.zeros((2, 3)), SMALL["x"])
    assert list(draw_layout(qda)) == ["x", "labels", "q", "frozen_predictions", "test_labels", "dataset_seed"]


@pytest.mark.parametrize("name", ["", "..", "A", "a/b", "-a", "a b", "a" * 65, "original/", "é"])
def test_set_names(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        sets.find_set(name)
    assert caught.value.code == "bad_payload_name"


def test_sets_are_looked_up_in_the_users_folder_first(payload_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"payload payload: expected a manifest\.json in"):
        sets.find_set("payload")
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(payload_copy.parent))
    assert sets.find_set("payload") == payload_copy
    shutil.copytree(payload_copy, payload_copy.parent / "original")
    assert sets.find_set("original") == sets.SHIPPED / "original"

"""The committed draws are those of the record, byte for byte."""

from __future__ import annotations

import hashlib
import io
import json

import numpy as np
import pytest

from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.payload.layout import ArrayLayout, draw_layout
from gpu_tasks.payload.npz import npz_bytes
from gpu_tasks.payload.sets import SHIPPED
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import BadInput, RunRecord, read_record
from gpu_tasks.sources import ROOT
from gpu_tasks.workloads.base import Workload

FOLDER = SHIPPED / "original"
MANIFEST_SHA256 = "d16f219fcbbe909923e7ad1b3d92f1896020442025db702e2cfb9fedd4bd7ee1"
CORRECT = [654, 681, 687, 648, 631, 682, 679, 706, 710, 717, 670]
BASELINE = ROOT / "gpu_tasks/baselines/qda-original-a100.json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_every_hash_of_the_manifest() -> None:
    """Written without the code under test: numpy's own reader, hashlib and the manifest."""
    text = (FOLDER / "manifest.json").read_bytes()
    assert sha256(text) == MANIFEST_SHA256
    manifest = json.loads(text)
    arrays_checked = 0
    for number, entry in enumerate(manifest["draws"]):
        assert entry["dataset_seed"] == 20261201 + number == manifest["seeds"][number]
        assert sha256((FOLDER / entry["path"]).read_bytes()) == entry["sha256"]
        assert sha256((FOLDER / entry["frozen_prediction_path"]).read_bytes()) == entry["frozen_prediction_sha256"]
        with np.load(FOLDER / entry["path"], allow_pickle=False) as archive:
            assert list(archive) == list(entry["arrays"])
            for name, array in archive.items():
                assert sha256(array.tobytes()) == entry["arrays"][name]["sha256"], (number, name)
                arrays_checked += 1
        predictions = np.load(FOLDER / entry["frozen_prediction_path"], allow_pickle=False)
        assert sha256(predictions.tobytes()) == entry["arrays"]["frozen_predictions"]["sha256"]
    assert arrays_checked == 66


def test_int32_predictions_are_the_records(draws: list[Draw]) -> None:
    baseline = read_record(BASELINE, RunRecord)
    found = [sha256(draw.frozen_predictions.astype("<i4").tobytes()) for draw in draws]
    assert found == [validation.predictions_int32_sha256 for validation in baseline.validations]


def test_reference_reproduces_the_frozen_predictions(draws: list[Draw], qda: Workload) -> None:
    for number, draw in enumerate(draws):
        found = qda.predict(draw.x, draw.labels, draw.q)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, draw.frozen_predictions)
        assert int(np.sum(found == draw.test_labels)) == CORRECT[number]
    assert sum(CORRECT) == 7465


def test_verification_finds_nothing(qda: Workload) -> None:
    report = verify_payload("original", FOLDER, qda)
    assert report.mismatches == []
    assert report.files_checked == 23
    assert report.payload is not None
    assert report.payload.manifest_sha256 == MANIFEST_SHA256
    assert [draw.dataset_seed for draw in report.payload.draws] == list(range(20261201, 20261212))


def test_written_bytes_are_the_committed_ones_and_numpy_reads_them(qda: Workload) -> None:
    """Not compared with ``numpy.savez``: the bytes of its zip depend on the version of Python."""
    with np.load(FOLDER / "draw-04.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    written = npz_bytes(arrays, draw_layout(qda))
    assert written == (FOLDER / "draw-04.npz").read_bytes()
    with np.load(io.BytesIO(written), allow_pickle=False) as archive:
        assert list(archive) == list(arrays)
        for name, array in arrays.items():
            assert archive[name].dtype == array.dtype
            np.testing.assert_array_equal(archive[name], array)


@pytest.mark.parametrize("shape", [(), (1,), (1000,), (60000, 784), (10**9, 10**9)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_headers_are_numpys_own(shape: tuple[int, ...], dtype: str) -> None:
    layout = ArrayLayout(shape, dtype)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": np.dtype(dtype).str})
    assert layout.npy_header() == stream.getvalue()


def test_attribution_is_beside_the_draws() -> None:
    text = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for words in ("Yann LeCun", "Corinna Cortes", "Burges", "CC BY-SA 3.0"):
        assert words in text


@pytest.mark.parametrize("number", [-1, 11, 10**30])
def test_a_draw_that_is_not_there(qda: Workload, number: int) -> None:
    with pytest.raises(BadInput, match="expected 0 to 10") as caught:
        Payload("original", qda).load(number)
    assert caught.value.code == "draw_not_found"

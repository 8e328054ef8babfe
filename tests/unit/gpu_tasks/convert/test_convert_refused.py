"""What is no original record: another form, values that no run can have, no record at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.convert.forms import FORMS, convert_file
from gpu_tasks.records import BadInput, RunRecord, read_record
from tests.support.original_records import MADE, QDA, qda_record
from tests.unit.gpu_tasks.convert.originals import Where, converted, refused, with_leaf
from tests.unit.gpu_tasks.running import complaint, program


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("spoil", ["missing", "unknown", "type", "null"])
def test_the_form_is_kept_to_the_letter(name: str, spoil: str, tmp_path: Path) -> None:
    content = MADE[name]()
    energy = content["rounds"][2] if "rounds" in content else (content.get("result") or content)["energy"]
    field = "repeats" if "repeats" in energy else "calibration_ms"
    if spoil == "missing":
        del energy[field]
    else:
        energy["new" if spoil == "unknown" else field] = {"unknown": 1, "type": "1", "null": None}[spoil]
    assert ("new" if spoil == "unknown" else field) in refused(content, tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("completed_at_utc",), "2026-09-15T11:52:23Z"),
        (("completed_at_utc",), "2026-09-15T11:55:29"),
        (("verified_at_utc",), "yesterday"),
        (("rounds", 0, "repeats"), 0),
        (("rounds", 0, "repeats"), -5),
        (("rounds", 0, "cuda_ms"), 0.0),
        (("rounds", 0, "measurement_start", "energy_mj"), 2**70),
        (("rounds", 0, "measurement_start", "energy_mj"), -1),
        (("rounds", 0, "idle_before", "end", "time_s"), 0.0),
        (("rounds",), []),
        (("validation", "draws"), []),
        (("validation", "draws", 0, "mismatching_prediction_indices"), [7]),
        (("provenance", "ptx_sha256"), "38D3"),
        (("versions",), {"torch": "2.5.1"}),
    ],
)
def test_what_no_run_can_be_is_refused(path: Where, value: Any, tmp_path: Path) -> None:
    message = refused(with_leaf(qda_record(), path, value), tmp_path)
    assert "$." in message


@pytest.mark.parametrize("content", [{}, {"rounds": []}, {"kind": "run", "format": "kernel-nightly/1"}])
def test_another_form_is_said_to_be_another_one(content: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        converted(content, tmp_path)
    assert caught.value.code == "unknown_form"


def test_the_forms_cannot_be_taken_for_each_other() -> None:
    for name, make in MADE.items():
        matching = [form for form, (keys, _) in FORMS.items() if keys <= make().keys()]
        assert len(matching) == 1, (name, matching)


def test_the_program_writes_the_record_or_one_line(tmp_path: Path) -> None:
    original, out = tmp_path / "original.json", tmp_path / "run.json"
    original.write_text(json.dumps(qda_record()))
    assert program("convert", original, "--out", out).returncode == 0
    assert read_record(out, RunRecord) == read_record(QDA, RunRecord)
    out.unlink()
    original.write_text(json.dumps(with_leaf(qda_record(), ("rounds", 3, "adjusted_mj"), 0.5)))
    result = program("convert", original, "--out", out)
    assert result.returncode == 2 and not out.exists()
    assert complaint(result) == (
        f"gpu_tasks convert: bad_input: record_contradicts_itself: {original}: $.rounds[3].adjusted_mj: expected "
        "0.010378672372650355, found 0.5"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "record_not_json"),
        (json.dumps(qda_record())[:-200], "record_not_json"),
        (json.dumps(qda_record()).replace("0.667483", "NaN"), "bad_record"),
        (json.dumps(qda_record()).replace("0.667483", "1e999"), "bad_record"),
        ("[" * 100_000, "record_not_json"),
        ("[]", "bad_record"),
        ('"x"', "bad_record"),
    ],
)
def test_what_is_no_record_at_all_is_refused(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        convert_file(path)
    assert caught.value.code == code
    assert str(path) in caught.value.message

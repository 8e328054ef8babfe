"""Records: strict on the way in, atomic on the way out."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.records import (
    BadInput,
    CounterReading,
    Outcome,
    RunRecord,
    WindowEdge,
    from_json,
    parse_utc,
    read_record,
    read_record_bytes,
    record_files,
    record_name,
    run_id_for,
    to_json,
    utc_now,
    write_record,
)
from gpu_tasks.sources import ROOT

BASELINE = ROOT / "gpu_tasks/baselines/qda-original-a100.json"


def test_a_whole_run_survives_the_round_trip(tmp_path: Path) -> None:
    record = read_record(BASELINE, RunRecord)
    write_record(record, tmp_path / "deep" / "run.json")
    written = (tmp_path / "deep" / "run.json").read_bytes()
    assert read_record(tmp_path / "deep" / "run.json", RunRecord) == record
    write_record(read_record(tmp_path / "deep" / "run.json", RunRecord), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == written


def test_a_record_from_before_a_field_existed_is_read_with_its_default() -> None:
    record = read_record(BASELINE, RunRecord)
    assert '"gates"' not in BASELINE.read_text()
    assert (record.gates, record.telemetry, record.rounds[0].energy, record.request.inject) == ([], [], None, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"energy_mj": 1, "time_s": NaN, "read_duration_s": 0.0}', r"\$\.time_s: expected a finite number, found NaN"),
        (
            '{"energy_mj": 1, "time_s": -Infinity, "read_duration_s": 0.0}',
            r"\$\.time_s: expected a finite number, found -Infinity",
        ),
        (
            '{"energy_mj": 1, "time_s": 1e999, "read_duration_s": 0.0}',
            r"\$\.time_s: expected a finite number, found 1e999",
        ),
        ('{"energy_mj": 1, "time_s": 1.0, "time_s": 2.0, "read_duration_s": 0.0}', "'time_s' appears twice"),
        ('{"energy_mj": 1.0, "time_s": 1.0, "read_duration_s": 0.0}', r"\$\.energy_mj: expected an integer, found 1.0"),
        ('{"energy_mj": true, "time_s": 1.0, "read_duration_s": 0.0}', "expected an integer, found True"),
        ('{"energy_mj": null, "time_s": 1.0, "read_duration_s": 0.0}', "expected an integer, found None"),
        ('{"energy_mj": 1, "time_s": "1", "read_duration_s": 0.0}', "expected a number, found '1'"),
        ('{"energy_mj": 1, "time_s": 1' + "0" * 400 + ', "read_duration_s": 0.0}', "expected a finite number"),
        ('{"energy_mj": 1, "time_s": 1.0}', r"\$\.read_duration_s: expected a value, found nothing"),
        ('{"energy_mj": 1, "time_s": 1.0, "read_duration_s": 0.0, "watts": 1}', r"\$\.watts: expected no such field"),
        ("[1, 2]", r"\$: expected an object"),
        ("", "expected JSON"),
        ("[" * 100_000, "expected JSON"),
    ],
)
def test_strict_decoding(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        from_json(text, CounterReading, "round-00.json")
    assert caught.value.message.startswith("round-00.json: ")


def test_duplicate_keys_are_refused_in_free_form_parts_too() -> None:
    text = BASELINE.read_text(encoding="utf-8").replace('"kernel_mode":', '"source": "x", "kernel_mode":')
    with pytest.raises(BadInput, match="'source' appears twice"):
        from_json(text, RunRecord, "run.json")
    text = BASELINE.read_text(encoding="utf-8").replace('"fp16_inputs": false', '"fp16_inputs": 1e999')
    with pytest.raises(BadInput, match=r"\$\.provenance\.fp16_inputs: expected a finite number, found 1e999"):
        from_json(text, RunRecord, "run.json")


@pytest.mark.parametrize("value", ["fine", 3, [], {}, None])
def test_unknown_outcomes(value: Any) -> None:
    content = json.loads(BASELINE.read_text(encoding="utf-8"))
    content["rounds"][4]["outcome"] = value
    with pytest.raises(BadInput, match=r"\$\.rounds\[4\]\.outcome: expected one of ok, regression"):
        from_json(json.dumps(content), RunRecord, "run.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_replaced_value_is_accepted_or_refused_by_name(data: st.DataObject) -> None:
    """Replace one value anywhere in a run record by any JSON: nothing but ``BadInput`` may come out."""
    content = json.loads(BASELINE.read_text(encoding="utf-8"))
    spot: Any = content
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(spot[key], dict | list) and spot[key]) or data.draw(st.booleans()):
            break
        spot = spot[key]
    spot[key] = data.draw(JSON)
    try:
        record = from_json(json.dumps(content), RunRecord, "run.json")
    except BadInput as error:
        assert error.message.startswith("run.json: ")
    else:
        assert from_json(to_json(record), RunRecord, "again") == record


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_bits(value: float) -> None:
    edge = WindowEdge(None, value, 0.0)
    found = from_json(to_json(edge), WindowEdge, "x").time_s
    assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


def test_nan_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(WindowEdge(None, math.nan, 0.0))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "round.json"
    write_record(WindowEdge(1, 1.0, 0.0), path)
    old = path.read_bytes()

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), fail)
        with pytest.raises(KeyboardInterrupt):
            write_record(WindowEdge(2, 2.0, 0.0), path)
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["round.json"]


def test_unreadable_records(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected a readable record"):
        read_record(tmp_path / "none.json", WindowEdge)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="expected UTF-8"):
        read_record(tmp_path / "bytes.json", WindowEdge)
    (tmp_path / "big.json").write_bytes(b" " * (16 * 1024 * 1024 + 1))
    with pytest.raises(BadInput, match="size: expected at most"):
        read_record(tmp_path / "big.json", WindowEdge)


def test_a_compressed_record_is_the_same_record_and_always_the_same_bytes(tmp_path: Path) -> None:
    run = read_record(BASELINE, RunRecord)
    paths = [tmp_path / "run.json.gz", tmp_path / "b.json.gz"]
    for path in paths:
        write_record(run, path)
    assert read_record(paths[0], RunRecord) == run
    assert read_record_bytes(paths[0]) == to_json(run).encode()
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size < BASELINE.stat().st_size / 3
    write_record(run, tmp_path / "a.json")
    (tmp_path / "notes.gz").write_text("no record")
    assert [record_name(path) for path in record_files(tmp_path)] == ["a", "b", "run"]


def test_a_compressed_record_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    write_record(WindowEdge(1, 1.0, 0.0), path)
    whole = path.read_bytes()
    wrong_sum = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    wrong_code = whole[:12] + bytes(byte ^ 255 for byte in whole[12:30]) + whole[30:]
    for content in (b"", b"{}", whole[:-9], whole[:3], wrong_sum, wrong_code):
        path.write_bytes(content)
        with pytest.raises(BadInput) as caught:
            read_record(path, WindowEdge)
        assert caught.value.code in ("record_unreadable", "record_not_json")
        assert caught.value.message.startswith(f"{path}: expected ")
    path.write_bytes(gzip.compress(b" " * (16 * 1024 * 1024 + 1)))
    with pytest.raises(BadInput, match="size: expected at most 16777216 bytes within, found more"):
        read_record(path, WindowEdge)


def test_times_are_aware_utc() -> None:
    assert utc_now().endswith("Z")
    assert parse_utc(utc_now()).utcoffset() is not None
    assert parse_utc("2026-01-01T02:00:00+02:00").hour == 0
    for text in ("2026-01-01T00:00:00", "yesterday", ""):
        with pytest.raises(BadInput):
            parse_utc(text)


def test_run_ids() -> None:
    assert run_id_for("nightly_qda", "scheduled__1") == run_id_for("nightly_qda", "scheduled__1")
    assert run_id_for("nightly_qda", "scheduled__1") != run_id_for("nightly_qda", "scheduled__2")
    assert run_id_for("import", "qda-eleven-draws") == "9fb0d280-736c-5a92-a150-6736bcd08ffd"


def test_exit_codes_are_fixed() -> None:
    assert {outcome.value: outcome.exit_code for outcome in Outcome} == {
        "ok": 0,
        "regression": 1,
        "bad_input": 2,
        "invalid_measurement": 3,
        "verification_mismatch": 4,
        "infrastructure_failure": 5,
    }


def test_records_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        WindowEdge(None, 0.0, 0.0).time_s = 1.0  # type: ignore[misc]


@given(st.text())
def test_the_message_of_a_failure_is_one_line_that_shows(text: str) -> None:
    """It quotes what was read from files and arguments, and these may hold anything."""
    message = BadInput("bad", f"file: expected {text} , found nothing").message
    assert message.isprintable()
    assert not text.isprintable() or text in message


def test_lines_of_a_message_are_joined() -> None:
    assert BadInput("bad", "a\n  b \n\nc").message == "a b c"
    assert str(BadInput("bad", "a\x1b[31m  b\0")) == "a\\x1b[31m  b\\x00"

"""The programs around the rounds: probe and pictures, comparison of kernels, refusals, progress."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest

from gpu_tasks.programs.cli import main
from gpu_tasks.programs.console import Phases
from gpu_tasks.records import Outcome, RoundRecord, RunRequest, TelemetryRecord, read_record, write_record
from tests.unit.gpu_tasks.energy.nights import simulated_night
from tests.unit.gpu_tasks.running import ROOT, complaint, program

SIMULATED = ("--device", "simulated")


def test_probe(tmp_path: Path) -> None:
    found = program("probe", *SIMULATED, "--seconds", 60, "--rounds", 7, "--plot", tmp_path / "probe.svg")
    assert found.returncode == 0, found.stderr
    assert "NVIDIA A100-SXM4-40GB (simulated)" in found.stdout
    assert "found, 7 rounds" in found.stdout
    assert "For a change of 3 %" in found.stdout
    assert (tmp_path / "probe.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_probe_as_json_finds_what_the_board_was_made_with() -> None:
    found = json.loads(program("probe", *SIMULATED, "--json").stdout)
    assert found["probe"]["tick_period_s"] == pytest.approx(0.1, rel=0.02)
    assert found["probe"]["read_latency_s"] == pytest.approx(0.0033, rel=0.05)
    assert found["probe"]["idle_w"] == pytest.approx(38.6, abs=1.0)
    assert found["conditions"]["replay_s"] == pytest.approx(17.05e-6, rel=0.02)
    by_name = {entry["figure"]: entry for entry in found["figures"]}
    classic, aligned = by_name["classic (classic round)"], by_name["aligned (classic round)"]
    assert aligned["detectable_mj"] < classic["detectable_mj"] / 10
    assert classic["round_sd_mj"] == pytest.approx(0.006, rel=0.15)  # what 2,000 simulated boards show


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (("probe", "--device", "emulated"), "no_energy_counter", 3),
        (("probe", *SIMULATED, "--inject", "no_counter"), "no_energy_counter", 3),
        (("probe", *SIMULATED, "--power-limit", "300"), "unexpected_power_limit", 3),
        (("telemetry", *SIMULATED, "--when", "after", "--power-limit", "300"), "unexpected_power_limit", 3),
        (("measure", *SIMULATED, "--round", "0", "--power-limit", "300"), "unexpected_power_limit", 3),
        (("probe", *SIMULATED, "--seconds", "3"), "bad_seconds", 2),
        (("probe", *SIMULATED, "--rounds", "1"), "bad_rounds", 2),
        (("probe", *SIMULATED, "--blocks", "0"), "bad_blocks", 2),
        (("probe", *SIMULATED, "--plot", "x.bmp"), "bad_picture", 2),
        (("measure", *SIMULATED, "--round", "0", "--blocks", "0"), "bad_blocks", 2),
        (("measure", *SIMULATED, "--round", "0", "--against", "record"), "against_needs_interleaved", 2),
        (("measure", "--round", "0", "--protocol", "audited"), "protocol_needs_energy", 2),
        (("telemetry", "--when", "before", "--inject", "throttle"), "inject_needs_simulated", 2),
        (("telemetry", *SIMULATED, "--when", "before", "--request", "nowhere.json"), "record_unreadable", 2),
        (("measure", *SIMULATED, "--round", "1", "--telemetry", "/dev/null"), "record_unreadable", 2),
        (("plot", "nowhere.json", "--out", "x.svg"), "record_unreadable", 2),
        (("measure", *SIMULATED, "--round", "200"), "bad_round", 2),
        (("measure", *SIMULATED, "--round", "1", "--repeats", "1" + 400 * "0"), "bad_repeats", 2),
        (("measure", "--device", "emulated", "--round", "1", "--repeats", "1" + 400 * "0"), "bad_repeats", 2),
        (("measure", *SIMULATED, "--round", "1", "--sm-clock-floor", "nan"), "bad_limit", 2),
        (("measure", *SIMULATED, "--round", "1", "--sm-clock-floor", "-1"), "bad_limit", 2),
        (("measure", *SIMULATED, "--round", "1", "--power-limit", "nan"), "bad_limit", 2),
        (("telemetry", *SIMULATED, "--when", "before", "--power-limit", "inf"), "bad_limit", 2),
        (("probe", *SIMULATED, "--power-limit", "0"), "bad_limit", 2),
        (("probe", *SIMULATED, "--blocks", "101"), "bad_blocks", 2),
    ],
)
def test_refusals(tmp_path: Path, arguments: tuple[str, ...], code: str, status: int) -> None:
    found = program(*arguments)
    assert found.returncode == status
    assert f": {code}: " in complaint(found)


def test_telemetry_without_a_counter_says_so_and_passes(tmp_path: Path) -> None:
    assert main(["telemetry", "--when", "before", "--out", str(tmp_path / "t.json")]) == 0
    record = read_record(tmp_path / "t.json", TelemetryRecord)
    assert record.energy_reason is not None
    assert (record.reference_load, record.gates, record.outcome) == (None, [], Outcome.OK)


def test_telemetry_before_learns_how_idle_power_wanders_and_rounds_use_it(tmp_path: Path) -> None:
    path = tmp_path / "telemetry-before.json"
    assert main(["telemetry", *SIMULATED, "--when", "before", "--out", str(path)]) == 0
    record = read_record(path, TelemetryRecord)
    assert record.wander is not None
    assert record.wander.duration_s == pytest.approx(60, abs=1)
    assert record.tick_period_s == pytest.approx(0.1, rel=0.02)
    out = str(tmp_path / "r.json")
    assert main(["measure", *SIMULATED, "--round", "1", "--telemetry", str(path), "--out", out]) == 0
    measured = read_record(tmp_path / "r.json", RoundRecord)
    assert measured.energy is not None
    assert (measured.energy.wander, measured.energy.tick_period_s) == (record.wander, record.tick_period_s)


def test_work_that_is_shorter_than_a_tick_is_no_measurement(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    for number in range(40):  # whether a tick falls into 17 us is chance, and it does not here
        options = ["--round", str(number), "--repeats", "1", "--protocol", "classic", "--out", str(out)]
        assert main(["measure", *SIMULATED, *options]) == 3
        record = read_record(out, RoundRecord)
        assert record.reason is not None
        if record.reason.code == "counter_unchanged":
            return
    raise AssertionError(record.reason)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tick_period_s", 1e6),  # each plain reading would wait for up to that long
        ("tick_period_s", -0.1),
        ("tick_period_s", 1e-300),
        ("kind", "round"),
        ("wander.walk_w_per_sqrt_s", -1.0),
        ("wander.walk_w_per_sqrt_s", 1e300),
        ("wander.degrees_of_freedom", 0.0),
    ],
)
def test_what_no_counter_can_have_taught_is_refused(tmp_path: Path, field: str, value: object) -> None:
    before, out = tmp_path / "telemetry-before.json", tmp_path / "r.json"
    record = simulated_night().telemetry[0]
    assert record.wander is not None
    name = field.removeprefix("wander.")
    if name == field:
        record = dataclasses.replace(record, **{name: value})  # type: ignore[arg-type]
    else:
        record = dataclasses.replace(record, wander=dataclasses.replace(record.wander, **{name: value}))  # type: ignore[arg-type]
    write_record(record, before)
    assert main(["measure", *SIMULATED, "--round", "1", "--telemetry", str(before), "--out", str(out)]) == 2
    found = read_record(out, RoundRecord)
    assert found.reason is not None
    assert found.reason.code == "bad_telemetry"
    assert f"$.{field}: expected" in found.reason.message


def test_a_limit_that_is_set_to_nothing_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NIGHTLY_POWER_LIMIT_W", "NIGHTLY_SM_CLOCK_FLOOR_MHZ"):
        monkeypatch.setenv(name, "")
    assert main(["measure", *SIMULATED, "--round", "1", "--out", str(tmp_path / "r.json")]) == 0


def test_what_another_board_taught_is_not_used(tmp_path: Path) -> None:
    before, out = tmp_path / "telemetry-before.json", tmp_path / "r.json"
    assert main(["telemetry", *SIMULATED, "--when", "before", "--out", str(before)]) == 0
    record = read_record(before, TelemetryRecord)
    write_record(dataclasses.replace(record, device_uuid="GPU-other"), before)
    assert main(["measure", *SIMULATED, "--round", "1", "--telemetry", str(before), "--out", str(out)]) == 2
    found = read_record(out, RoundRecord)
    assert found.reason is not None
    assert found.reason.code == "telemetry_of_another_device"


def test_rounds_run_under_the_limit_of_the_known_load(tmp_path: Path) -> None:
    before, out = tmp_path / "telemetry-before.json", str(tmp_path / "r.json")
    assert main(["telemetry", *SIMULATED, "--when", "before", "--out", str(before)]) == 0
    options = ["--round", "1", "--telemetry", str(before), "--inject", "power_limit=300", "--out", out]
    assert main(["measure", *SIMULATED, *options]) == 3
    record = read_record(tmp_path / "r.json", RoundRecord)
    assert record.reason is not None
    assert record.reason.code == "unexpected_power_limit"


def test_a_band_that_accepted_runs_taught_comes_with_the_request(tmp_path: Path) -> None:
    """The shipped band of the A100 has the last word; what the request says of another model is not looked at."""
    request = simulated_night().request
    changed = RunRequest(**{**vars(request), "reference_bands": {"NVIDIA H200": [1.0, 2.0, 3.0, 4.0]}})
    write_record(changed, tmp_path / "request.json")
    out = tmp_path / "t.json"
    options = ["--when", "after", "--request", str(tmp_path / "request.json"), "--out", str(out)]
    assert main(["telemetry", *SIMULATED, *options]) == 0
    assert read_record(out, TelemetryRecord).gates[0].passed is True


def test_two_kernels_are_compared_in_turns_on_one_board(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    options = ["--round", "0", "--protocol", "interleaved", "--against", "record", "--inject", "energy+10%"]
    assert main(["measure", *SIMULATED, *options, "--out", str(out)]) == 0
    record = read_record(out, RoundRecord)
    assert record.energy is not None
    figures = {figure.subject: figure for figure in record.energy.figures}
    assert set(figures) == {
        "candidate",
        "baseline",
        "control",
        "candidate - baseline",
        "candidate - control",
        "baseline - control",
        "idle - idle",
    }
    difference = figures["candidate - baseline"]
    assert difference.uncertainty.low_mj > 0.05
    assert difference.adjusted_mj == pytest.approx(0.0586, abs=0.004)


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures_of_what_was_stored(tmp_path: Path, suffix: str) -> None:
    run = simulated_night()
    write_record(run.rounds[0], tmp_path / "round.json")
    write_record(run.telemetry[0], tmp_path / "telemetry.json")
    write_record(run, tmp_path / "run.json")
    for name in ("round", "telemetry", "run"):
        picture = tmp_path / f"{name}.{suffix}"
        assert main(["plot", str(tmp_path / f"{name}.json"), "--out", str(picture)]) == 0
        assert picture.stat().st_size > 5000
    assert len({(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("round", "telemetry", "run")}) == 3


def test_a_picture_says_what_was_made_up_and_what_does_not_count(tmp_path: Path) -> None:
    """An SVG whose text is text can be searched; a picture goes where its record does not."""
    arguments = ["--device", "simulated", "--inject", "throttle", "--out", str(tmp_path / "r.json")]
    assert main(["measure", "--round", "4", *arguments]) == 3
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        assert main(["plot", str(tmp_path / "r.json"), "--out", str(tmp_path / "r.svg")]) == 0
    text = (tmp_path / "r.svg").read_text()
    assert "round 4, audited, injected: throttle, not valid: violation_time_grew" in text
    assert "power, W" in text


def test_the_advice_names_a_figure_that_the_task_is_in() -> None:
    """On a restless board the control's figure is the quietest, and says nothing of the task."""
    found = program("probe", *SIMULATED, "--inject", "drift=random_walk").stdout
    quietest = min(re.findall(r"^  (interleaved, [a-z -]+?) +([0-9.]+) mJ", found, re.M), key=lambda row: float(row[1]))
    assert quietest[0] == "interleaved, control"
    assert "For a change of 3 %: interleaved, candidate - control, 3 rounds or more." in found


def test_a_python_without_numpy_is_told_in_one_line() -> None:
    text = "import sys; sys.modules['numpy'] = None; from gpu_tasks.programs.cli import main; sys.exit(main(['probe']))"
    found = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 5
    assert re.fullmatch(r"gpu_tasks probe: infrastructure_failure: numpy_missing: .*\./nightly task .*\n", found.stderr)


def test_a_picture_of_no_format_is_refused_before_anything_is_measured() -> None:
    assert "idle" not in program("probe", *SIMULATED, "--plot", "x.bmp").stderr


def test_a_record_without_samples_has_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--round", "0", "--repeats", "1", "--out", str(tmp_path / "r.json")]) == 0
    assert main(["plot", str(tmp_path / "r.json"), "--out", str(tmp_path / "r.svg")]) == 2
    assert "no_trace" in capsys.readouterr().err
    assert not (tmp_path / "r.svg").exists()


def test_logs_have_a_line_a_phase(capsys: pytest.CaptureFixture[str]) -> None:
    with Phases("round 3") as say:
        say("settle", 3.0)
        say("replays", 20.0)
    assert capsys.readouterr().err == "round 3: settle, 3.0 s\nround 3: replays, 20.0 s\n"


def test_a_terminal_has_one_line_that_is_kept_up_to_date(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Phases("round 3") as say:
        say("replays", 20.0)
        assert say.refreshed.wait(60)
    found = capsys.readouterr().err
    assert found.startswith("\r\033[Kround 3: replays ")
    assert found.endswith("round 3: done\n")
    assert found.count("\n") == 1

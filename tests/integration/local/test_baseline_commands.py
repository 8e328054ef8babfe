"""The commands about baselines and withdrawals, on an installation of their own: what they print, store and refuse.

Each test has a board of its own, so that the baselines of the others are none of its.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import Outcome, PredictionMismatch, RunRecord
from local import people
from local.databases import engine_of
from local.paths import Home
from local.stack import hold
from regression.results.decisions import files as decision_files
from regression.results.decisions import read_decisions
from regression.results.spool import load_record
from tests.integration.regression.example_energy import ENERGIES, SIMULATED_GPU, energy_run
from tests.integration.regression.example_records import CPU, GPU, measured, run_record, validation
from tests.support.commands import Run


def store(home: Home, record: RunRecord) -> str:
    with hold(home, None, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        return load_record(engine, home.records, record).run_id


def board(name: str, **changes: Any) -> Any:
    return replace(GPU, uuid=f"GPU-{name}", **changes)


def with_one_wrong(record: RunRecord) -> RunRecord:
    """The same run with one prediction of draw 3 that disagrees."""
    wrong = [validation(draw, (PredictionMismatch(17, 4, 9),) if draw == 3 else ()) for draw in range(11)]
    return replace(record, validations=wrong, summary=replace(record.summary, agreed=10_999))


def query(home: Home, statement: str) -> list[dict[str, Any]]:
    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().reader) as engine,
        engine.connect() as connection,
    ):
        return [dict(row._mapping) for row in connection.execute(text(statement))]


@pytest.fixture
def nightly_home(nightly: Run, home: Home) -> tuple[Run, Home]:
    return nightly, home


def lines_of(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def test_a_changed_kernel_is_accepted_in_the_place_of_the_one_before(nightly: Run, home: Home) -> None:
    device = board("accept")
    first = store(home, energy_run("accept-before", device=device))
    slower = tuple(mj * 1.1 for mj in ENERGIES)
    second = store(home, with_one_wrong(energy_run("accept-after", slower, device=device)))

    status, output, errors = nightly("baseline", "accept", "accept-before", "--reason", "first night", "--by", "ann")
    assert status == 0, errors
    assert "replaced: nothing, it is the first of its key or the one before had ended" in lines_of(output)

    of = "of 7 valid rounds, which judge every later night: "
    advice = f"{of}a run of 14 or more (--param rounds=14) cries wolf less often"
    assert advice in lines_of(output)

    status, output, errors = nightly("baseline", "accept", second[:13], "--reason", "new tile size", "--by", "ben")
    assert status == 0, errors
    told = lines_of(output)
    assert told[0] == f"accepted: run {second} (accept-after, 2026-11-30), by ben: new tile size"
    (replaced,) = [line for line in told if line.startswith(f"replaced: run {first} (accept-before), accepted by ann")]
    assert replaced.endswith(": first night, for predictions, time, energy")
    assert "predictions 11000 of 11000 -> 10999 of 11000" in told
    assert "energy 0.6 -> 0.66 mJ (+10.00 %)" in told
    where = "qda, payload original Test GPU (GPU-accept) audited, driver=570.1 cuda=12.8 torch=2.13.0"
    assert [f"{what} {where}" for what in ("time", "energy")] == [x for x in told if x.endswith(where)]
    assert "predictions qda, payload original Test GPU (GPU-accept) any protocol and environment" in told

    stored = "SELECT run_id::text, retired_by FROM baseline JOIN device USING (device_id) WHERE uuid = 'GPU-accept'"
    assert query(home, f"{stored} ORDER BY baseline_id") == [
        {"run_id": first, "retired_by": "ben"},
        {"run_id": second, "retired_by": None},
    ]
    decisions, _ = read_decisions(path for path in decision_files(home.records) if second in path.name)
    assert [(d.kind, getattr(d, "accepted_by", None)) for d in decisions] == [("baseline_accepted", "ben")]


def test_the_name_of_whoever_is_logged_in_is_kept(nightly: Run, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    store(home, energy_run("login", device=board("login")))
    monkeypatch.setenv("LOGNAME", "carla")
    assert nightly("baseline", "accept", "login", "--reason", "r")[0] == 0
    assert query(home, "SELECT accepted_by FROM baseline_current WHERE device_uuid = 'GPU-login'") == [
        {"accepted_by": "carla"}
    ]

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(people.getpass, "getuser", nobody)
    monkeypatch.setattr(people.os, "getuid", lambda: 4711)
    assert people.author(None) == "uid 4711"


@pytest.mark.parametrize(
    ("name", "changes", "option", "told"),
    [
        (
            "unverified",
            {"unchecked": ["exclusive"]},
            "--for-energy",
            "accept unverified --for-energy: its energy is unverified because exclusive; "
            "say --energy-unverified to accept it by name",
        ),
        (
            "verified",
            {},
            "--energy-unverified",
            "accept verified --energy-unverified: expected unverified energy, its energy is verified; say --for-energy",
        ),
        (
            "failed",
            {"failed": ["sham_window"], "outcome": Outcome.OK, "reason": None},
            "--for-energy",
            "accept failed --for-energy: its energy is failed because sham_window",
        ),
        (
            "failed by name",
            {"failed": ["sham_window"], "outcome": Outcome.OK, "reason": None},
            "--energy-unverified",
            "accept failed by name --energy-unverified: expected unverified energy, its energy is failed because "
            "sham_window",
        ),
    ],
)
def test_energy_that_nothing_vouches_for_is_accepted_only_by_its_name(
    nightly_home: tuple[Run, Home], name: str, changes: dict[str, Any], option: str, told: str
) -> None:
    nightly, home = nightly_home
    store(home, energy_run(name, device=board(name.replace(" ", "-")), **changes))
    before = query(home, "SELECT * FROM baseline ORDER BY baseline_id")
    assert nightly("baseline", "accept", name, "--reason", "r", option) == (2, "", f"nightly: {told}\n")
    assert query(home, "SELECT * FROM baseline ORDER BY baseline_id") == before


def test_unverified_energy_stays_out_until_it_is_asked_for(nightly: Run, home: Home) -> None:
    store(home, energy_run("asked", unchecked=["exclusive"], device=board("asked")))
    status, output, errors = nightly("baseline", "accept", "asked", "--reason", "r")
    assert status == 0, errors
    told = "not for energy: it is unverified because exclusive; say --energy-unverified to accept it by name"
    assert told in lines_of(output)
    assert "for: predictions, time (energy unverified)" in lines_of(output)
    status, output, errors = nightly("baseline", "accept", "asked", "--reason", "r", "--energy-unverified")
    assert "for: predictions, time, energy (energy unverified)" in lines_of(output), errors
    status, output, errors = nightly("baseline", "accept", "asked", "--reason", "r", "--no-energy", "--no-time")
    assert "for: predictions (energy unverified)" in lines_of(output), errors
    assert "this key has no baseline for time, energy any more" in lines_of(output)
    assert query(home, "SELECT for_time, for_energy FROM baseline_current WHERE device_uuid = 'GPU-asked'") == [
        {"for_time": False, "for_energy": False}
    ]


def test_a_run_on_a_cpu_is_accepted_for_what_it_is_compared_for(nightly: Run, home: Home) -> None:
    """Its times are never judged: to be told that it is for time would promise what no night does."""
    own = replace(CPU, uuid="cpu-of-one")
    run_id = store(home, run_record("on a cpu", rounds=[measured(number, None) for number in range(7)], device=own))
    status, output, errors = nightly("baseline", "accept", "on a cpu", "--reason", "r")
    assert status == 0, errors
    told = lines_of(output)
    assert "for: predictions" in told
    assert "not for time: those of the reference device are a CPU's, and never judged" in told
    assert "time" not in [line.split()[0] for line in told], "compared with it"
    assert not any("cries wolf" in line for line in told), "rounds that judge nothing"
    stored = "SELECT for_agreement, for_time, for_energy FROM baseline WHERE run_id = '{}' AND retired_at IS NULL"
    assert query(home, stored.format(run_id)) == [{"for_agreement": True, "for_time": False, "for_energy": False}]

    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().owner) as engine,
        engine.begin() as connection,
    ):  # as a version before accepted it
        connection.execute(text(f"UPDATE baseline SET for_time = true WHERE run_id = '{run_id}'"))
    (row,) = [line for line in lines_of(nightly("baseline", "list")[1]) if run_id[:8] in line]
    assert f"{run_id[:8]} predictions unavailable" in row
    assert "for: predictions" in lines_of(nightly("baseline", "show", run_id)[1])
    ended = lines_of(nightly("baseline", "retire", run_id, "--reason", "r")[1])
    assert ended[0].endswith("for predictions")
    assert not any(line.startswith("time of") for line in ended)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--no-energy", "--no-time", "--no-agreement"], "expected predictions, time or energy, found none of them"),
        (
            ["--no-agreement"],
            "found none of them (its energy is unavailable, and its times are a CPU's, as the device is reference)",
        ),
        (["--for-energy"], "accept nothing --for-energy: its energy is unavailable because no_energy_counter"),
    ],
)
def test_a_baseline_for_nothing_is_refused(nightly: Run, home: Home, options: list[str], told: str) -> None:
    rounds = [measured(number, None) for number in range(7)]
    store(home, run_record("nothing", rounds=rounds, device=CPU))
    status, output, errors = nightly("baseline", "accept", "nothing", "--reason", "r", *options)
    assert (status, output) == (2, "")
    assert told in errors or told.replace("no_energy_counter", "the reference device") in errors, errors


@pytest.mark.parametrize("action", ["accept", "retire"])
def test_decisions_need_a_reason_that_says_something(nightly: Run, action: str) -> None:
    for words in ([], ["--reason", "  "], ["--reason", "a\0b"], ["--reason", "\udc80"]):
        with pytest.raises(SystemExit) as refused:
            nightly("baseline", action, "x", *words)
        assert refused.value.code == 2


def test_what_is_no_run_or_no_baseline_is_said(nightly: Run, home: Home) -> None:
    store(home, energy_run("never-1", device=board("never")))
    store(home, energy_run("never-2", device=board("never")))
    assert "expected a stored run, found none" in nightly("baseline", "show", "no such run")[2]
    assert "expected one run, found " in nightly("baseline", "accept", "never", "--reason", "r")[2]
    told = "expected a baseline, current or ended, found a run that was never accepted"
    assert told in nightly("baseline", "show", "never-1")[2]
    status, _, errors = nightly("baseline", "retire", "never-1", "--reason", "r")
    assert (status, errors.count("\n")) == (2, 1)
    assert "expected a current baseline, found none" in errors


def test_the_list_has_key_run_purposes_and_who(nightly: Run, home: Home) -> None:
    run_id = store(home, energy_run("listed", device=board("listed")))
    nightly("baseline", "accept", "listed", "--reason", "the usual", "--by", "ann")
    head, *rows = lines_of(nightly("baseline", "list")[1])
    assert head == "workload payload device board protocol environment run for energy accepted by why"
    key = "qda original Test GPU GPU-listed audited driver=570.1 cuda=12.8 torch=2.13.0"
    (row,) = [row for row in rows if "GPU-listed" in row]
    assert row.startswith(f"{key} {run_id[:8]} predictions, time, energy verified 20")
    assert row.endswith("ann the usual")
    (shipped,) = [row for row in rows if " 9fb0d280 " in row]
    assert "classic" in shipped and "predictions, time unverified 20" in shipped
    nightly("baseline", "retire", "listed", "--reason", "the board is gone", "--by", "ben")
    assert "GPU-listed" not in nightly("baseline", "list")[1]
    (row,) = [row for row in lines_of(nightly("baseline", "list", "--all")[1]) if "GPU-listed" in row]
    assert row.endswith("the usual; ended by ben: the board is gone")
    found = json.loads(nightly("baseline", "list", "--all", "--json", "--workload", "qda")[1])
    (row,) = [row for row in found if row["device_uuid"] == "GPU-listed"]
    assert (row["run_id"], row["retired_by"], row["adjusted_mj_median"]) == (run_id, "ben", 0.6)
    assert nightly("baseline", "list", "--workload", "none of mine")[1].startswith("no baselines: accept a run with")


def test_one_is_shown_with_its_rounds_its_spread_and_what_came_before(nightly: Run, home: Home) -> None:
    device = board("shown")
    first = store(home, energy_run("shown-1", device=device))
    second = store(home, with_one_wrong(energy_run("shown-2", device=device)))
    for number, name in enumerate(("ann", "ben"), 1):
        nightly("baseline", "accept", f"shown-{number}", "--reason", f"reason {number}", "--by", name)
    status, output, errors = nightly("baseline", "show", second)
    assert status == 0, errors
    told = lines_of(output)
    assert told[0].startswith(f"run {second} (nightly_qda/shown-2, 2026-11-30 02:00 UTC)")
    assert "state: current" in told
    assert "draw-03 999 1000 17" in told and "draw-04 1000 1000 -" in told
    assert "agreement: 10999 of 11000 predictions" in told
    assert "candidate 6 0.0164 0.0165 0.61 yes" in told
    assert "energy: median 0.6 mJ a replay, spread 0.59 to 0.61, sd 0.00646603" in told
    history = told[told.index("baselines of this key:") + 2 :]
    assert [(f" {first[:8]} " in line, f" {second[:8]} " in line, line.startswith("*")) for line in history] == [
        (True, False, False),
        (False, True, True),
    ]
    assert history[0].endswith(f"ann reason 1; ended by ben: run {second} was accepted in its place")
    assert (
        f"ended by ben: run {second} was accepted in its place"
        not in nightly("baseline", "show", second)[1].split("baselines of this key:")[0]
    )
    assert "state: ended 20" in " ".join(nightly("baseline", "show", first)[1].split())


def test_a_retired_baseline_leaves_what_is_left(nightly: Run, home: Home) -> None:
    store(home, energy_run("left", device=board("left")))
    nightly("baseline", "accept", "left", "--reason", "r")
    status, output, errors = nightly("baseline", "retire", "left", "--reason", "its sensor is wrong")
    assert status == 0, errors
    told = lines_of(output)
    assert told[0].startswith("ended: run ")
    assert "energy of Test GPU (GPU-left): compared with nothing: that check will be inconclusive" in told
    assert any(line.startswith("predictions of Test GPU (GPU-left): compared with baseline ") for line in told)


def test_a_simulated_board_is_compared_whatever_versions_it_is_run_with(nightly: Run, home: Home) -> None:
    device = replace(SIMULATED_GPU, uuid="GPU-sim-shown")
    store(home, energy_run("simulated-base", device=device))
    record = energy_run("simulated-later", device=device)
    assert record.provision and record.provision.environment
    other = replace(record.provision.environment, driver="580.1")
    later = replace(record, provision=replace(record.provision, environment=other), started_at=record.completed_at)
    store(home, later)
    _, output, errors = nightly("baseline", "accept", "simulated-base", "--reason", "r")
    compared = [line for line in lines_of(output) if line.startswith(("energy qda", "time qda"))]
    assert len(compared) == 4, (output, errors)
    assert sum("driver=580.1" in line for line in compared) == 2


def test_an_open_alert_of_the_board_is_pointed_at(nightly: Run, home: Home) -> None:
    run_id = store(home, energy_run("alerted", device=board("alerted")))
    statement = (
        "INSERT INTO alert (workload, device_id, metric, direction, outcome, state, first_run_id, last_run_id,"
        " occurrences, text) SELECT workload, device_id, 'energy', 'higher', 'regression', 'open', run_id,"
        " run_id, 1, 'energy rose' FROM run WHERE run_id = :run_id RETURNING alert_id"
    )
    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().writer) as engine,
        engine.begin() as connection,
    ):
        number = connection.execute(text(statement), {"run_id": run_id}).scalar_one()
    _, output, errors = nightly("baseline", "accept", "alerted", "--reason", "r")
    told = f"alert {number} of this device is not resolved (energy higher, open): ./nightly alerts show {number}"
    assert told in output.splitlines(), errors


def test_energy_is_withdrawn_and_the_rest_may_be_kept(nightly: Run, home: Home) -> None:
    device = board("withdrawn")
    run_id = store(home, energy_run("withdrawn-1", device=device))
    successor = store(home, energy_run("withdrawn-2", device=device))
    nightly("baseline", "accept", "withdrawn-1", "--reason", "r")
    options = ["--reason", "the sensor was wrong", "--successor", "withdrawn-2", "--figures", "0.6 mJ; 0.7 holds"]
    status, output, errors = nightly("withdraw", "withdrawn-1", "--scope", "energy", "--by", "ann", *options)
    assert status == 0, errors
    told = lines_of(output)
    assert told[0] == f"withdrawn: the energy of run {run_id}"
    assert told[1].startswith(f"ended: run {run_id} (withdrawn-1), accepted by ")
    again = f"./nightly baseline accept {run_id[:8]} --no-energy --reason TEXT"
    assert told[-1] == f"to keep it for predictions and time: {again}"
    assert query(
        home,
        "SELECT scope, reason, figures, withdrawn_by, successor_run_id::text FROM withdrawn "
        "WHERE device_uuid = 'GPU-withdrawn'",
    ) == [
        {
            "scope": "energy",
            "reason": "the sensor was wrong",
            "figures": "0.6 mJ; 0.7 holds",
            "withdrawn_by": "ann",
            "successor_run_id": successor,
        }
    ]
    assert (
        "it was withdrawn: the sensor was wrong"
        in nightly("baseline", "accept", "withdrawn-1", "--reason", "r", "--for-energy")[2]
    )
    shown = lines_of(nightly("baseline", "show", "withdrawn-1")[1])
    (line,) = [line for line in shown if line.startswith("withdrawn: energy, 20")]
    assert line.endswith(f"by ann: the sensor was wrong; use run {successor} instead")
    assert nightly("baseline", "accept", run_id[:8], "--no-energy", "--reason", "predictions and time hold")[0] == 0
    status, output, errors = nightly("withdraw", "withdrawn-1", "--scope", "energy", "--reason", "again")
    assert (status, output) == (2, "")
    assert "its energy was withdrawn by ann on 20" in errors and errors.endswith(": the sensor was wrong\n")
    assert nightly("withdraw", "withdrawn-1", "--scope", "all", "--reason", "the kernel was another one")[0] == 0
    assert query(home, "SELECT 1 FROM baseline_current WHERE device_uuid = 'GPU-withdrawn'") == []


def test_a_successor_must_stand_itself(nightly: Run, home: Home) -> None:
    for name in ("stands-1", "stands-2"):
        store(home, energy_run(name, device=board("stands")))
    nightly("withdraw", "stands-2", "--scope", "energy", "--reason", "off", "--by", "ann")
    status, _, errors = nightly(
        "withdraw", "stands-1", "--scope", "energy", "--reason", "off", "--successor", "stands-2"
    )
    assert status == 2
    assert ": expected a run that stands, it was withdrawn by ann on " in errors
    status, _, errors = nightly(
        "withdraw", "stands-1", "--scope", "energy", "--reason", "off", "--successor", "no such run"
    )
    assert (status, "expected a stored run, found none" in errors) == (2, True)
    assert query(home, "SELECT count(*) FROM withdrawn WHERE device_uuid = 'GPU-stands'") == [{"count": 1}]


def test_each_decision_is_on_file_at_once_so_that_a_rebuild_has_it(nightly: Run, home: Home) -> None:
    run_id = store(home, energy_run("kept", device=board("kept")))
    found = []
    for command in (("baseline", "accept"), ("baseline", "retire"), ("withdraw", "--scope", "all")):
        assert nightly(*command, "kept", "--reason", "r")[0] == 0
        decisions, broken = read_decisions(path for path in decision_files(home.records) if run_id in path.name)
        found.append([d.kind for d in decisions])
        assert broken == []
    kinds = ["baseline_accepted", "baseline_retired", "withdrawal"]
    assert found == [kinds[:1], kinds[:2], kinds]

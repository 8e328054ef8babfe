"""Figures of stored nights against their history: short ones, changes, devices without figures, and the run's word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_tasks.records import Outcome, Reason, RunRecord
from regression.detectors import Verdict
from regression.results.checks import store_findings
from regression.results.history_checks import energy_history, time_history
from regression.results.outcome import run_outcome
from regression.results.times import time_findings
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_energy import SIMULATED_GPU
from tests.integration.regression.example_records import CPU, GPU, NO_COUNTER, digest, run_record
from tests.integration.regression.many_nights import (
    GROSS_MJ,
    IDLE_W,
    MJ,
    MS,
    WALL_MS,
    accept,
    codes,
    histories,
    night,
    noisy,
    store,
    stored_run,
)

CHECKS = ["energy_history", "gross_energy_history", "idle_power_history", "time_history", "wall_time_history"]
NIGHTS = 30


@pytest.mark.parametrize(("nights", "code"), [(1, "short_history"), (12, "short_history"), (13, "no_shift")])
def test_the_first_nights_are_told_that_they_are_too_few(database: Database, nights: int, code: str) -> None:
    """orion 263 and 269."""
    store(database, *noisy(nights))
    found = histories(database, f"scheduled__{nights - 1:03d}")
    assert list(found) == CHECKS
    assert set(codes(found)) == {code}


@pytest.mark.parametrize(
    ("change", "check", "code"),
    [
        ({"mj": MJ * 1.05}, "energy_history", "shift_higher"),
        ({"mj": MJ * 0.95}, "energy_history", "shift_lower"),
        ({"gross_mj": GROSS_MJ * 1.05}, "gross_energy_history", "shift_higher"),
        ({"idle_w": IDLE_W * 1.1}, "idle_power_history", "shift_higher"),
        ({"idle_w": IDLE_W * 1.04}, "idle_power_history", "below_floor"),
        ({"ms": MS * 1.05}, "time_history", "shift_higher"),
        ({"wall_ms": WALL_MS * 1.05}, "wall_time_history", "shift_higher"),
    ],
)
def test_a_step_of_one_figure_is_told_by_its_own_check(
    database: Database, change: dict[str, float], check: str, code: str
) -> None:
    store(database, *noisy(NIGHTS), night(NIGHTS, **change))
    found = histories(database, f"scheduled__{NIGHTS:03d}")
    assert codes(found, check) == [code]
    assert {c for name, c in zip(found, codes(found), strict=True) if name != check} == {"no_shift"}
    red = found[check].verdict.verdict is Verdict.REGRESSED
    assert red == (code == "shift_higher")


def test_the_line_says_since_when_how_much_and_what_else_changed(database: Database) -> None:
    """Megatron-LM 5059."""
    nights = list(noisy(NIGHTS))
    store(database, *nights)
    accepted = accept(database, nights[0])
    slower = night(NIGHTS, ms=MS * 1.05)
    assert slower.kernel
    slower = replace(slower, kernel=replace(slower.kernel, ptx_sha256=digest("other")))
    store(database, slower)
    found = histories(database, f"scheduled__{NIGHTS:03d}")["time_history"]
    assert found.baseline_id == accepted
    told = found.verdict
    assert told.reason.startswith("0.01722 ms tonight, usual 0.01")
    assert "(5.2 %) higher since 2026-12-31 (1 night), " in told.reason
    assert told.reason.endswith(f"; also changed: kernel {digest('ptx')[:12]} -> {digest('other')[:12]}")
    assert told.details["also_changed"][0]["part"] == "kernel"


def test_a_night_that_is_judged_again_is_judged_as_it_was(database: Database) -> None:
    """What came later is not known to it."""
    store(database, *noisy(NIGHTS), night(NIGHTS, ms=MS * 1.05))
    name = f"scheduled__{NIGHTS:03d}"
    first = histories(database, name)
    store(database, *noisy(10, 8, first=NIGHTS + 1, time=1.2))
    assert histories(database, name) == first


def test_a_new_driver_begins_a_history_of_its_own(database: Database) -> None:
    store(database, *noisy(NIGHTS), night(NIGHTS, ms=MS * 1.2, environment={"driver": "580.2"}))
    found = histories(database, f"scheduled__{NIGHTS:03d}")["time_history"].verdict
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "short_history")


def test_a_change_that_was_accepted_is_the_new_usual(database: Database) -> None:
    store(database, *noisy(NIGHTS))
    later = list(noisy(20, 9, first=NIGHTS, time=1.05))
    store(database, *later[:2])
    name = later[1].request.dag_run_id
    assert codes(histories(database, name), "time_history") == ["shift_higher"]
    accept(database, later[0])
    assert codes(histories(database, name), "time_history") == ["short_history"]
    store(database, *later[2:])
    assert codes(histories(database, later[-1].request.dag_run_id), "time_history") == ["no_shift"]


@pytest.mark.parametrize("device", [CPU, replace(CPU, kind="emulated")])
def test_a_cpu_device_has_no_figures_that_could_be_held_against_anything(database: Database, device: Any) -> None:
    store(database, run_record("cpu", device=device, energies=[None] * 7))
    found = histories(database, "cpu")
    assert {finding.verdict.verdict for finding in found.values()} == {Verdict.UNAVAILABLE}
    assert codes(found) == ["no_energy_counter"] * 3 + ["no_gpu_time"] * 2
    assert found["energy_history"].verdict.reason == NO_COUNTER.message
    assert found["time_history"].verdict.reason == f"the {device.kind} device has no GPU whose time could be measured"


def test_a_simulated_device_stands_for_a_gpu(database: Database) -> None:
    store(database, *(replace(n, provision=replace(n.provision, device=SIMULATED_GPU)) for n in noisy(13)))  # type: ignore[type-var]
    assert set(codes(histories(database, "scheduled__012"))) == {"no_shift"}


@pytest.mark.parametrize(
    ("gates", "verdict", "code"),
    [
        ({"failed": ["sham_window"]}, Verdict.INVALID, "gate_failed"),
        ({"unchecked": ["sham_window"]}, Verdict.INCONCLUSIVE, "energy_unverified"),
    ],
)
def test_energy_that_nothing_vouches_for_is_not_judged_and_the_time_is(
    database: Database, gates: dict[str, Any], verdict: Verdict, code: str
) -> None:
    store(database, *noisy(NIGHTS), night(NIGHTS, **gates))
    found = histories(database, f"scheduled__{NIGHTS:03d}")
    assert codes(found) == [code] * 3 + ["no_shift"] * 2
    assert {found[check].verdict.verdict for check in CHECKS[:3]} == {verdict}
    trust = "failed" if "failed" in gates else "unverified"
    told = f"the trust in the energy of this run is {trust}, as the check of energy says"
    assert found["energy_history"].verdict.reason == told


def test_a_faulty_night_is_no_history_of_the_next_ones(database: Database) -> None:
    """dotnet/performance 3121, Horreum 2305: a sensor that showed half is neither usual nor a change afterwards."""
    faulty = [night(NIGHTS + n, mj=MJ / 2, gross_mj=GROSS_MJ / 2, failed=["sham_window"]) for n in range(3)]
    store(database, *noisy(NIGHTS), *faulty, night(NIGHTS + 3))
    found = histories(database, f"scheduled__{NIGHTS + 3:03d}")["energy_history"].verdict
    assert (found.reason_code, found.details["dropped"]) == ("no_shift", {"not_valid": 3})


def test_a_figure_that_the_protocol_never_has_is_unavailable_and_one_that_went_missing_is_not(
    database: Database,
) -> None:
    """base/benchmark 109, foundry 15720: nothing passes for lack of data."""

    def without_gross(record: RunRecord) -> RunRecord:
        return replace(record, summary=replace(record.summary, gross_mj_median=None))

    store(database, *map(without_gross, noisy(14)))
    assert codes(histories(database, "scheduled__013"), "gross_energy_history") == ["not_measured"]
    store(database, *noisy(14, first=14), without_gross(night(28)))
    gone = histories(database, "scheduled__028")["gross_energy_history"].verdict
    assert (gone.verdict, gone.reason_code) == (Verdict.INVALID, "no_figure")


def test_a_run_that_broke_has_no_usable_figure(database: Database) -> None:
    lost = Reason("device_lost", "the GPU fell off the bus")
    empty = replace(night(NIGHTS), rounds=[], outcome=Outcome.INFRASTRUCTURE_FAILURE, reason=lost)
    nothing = {"cuda_ms_median": None, "wall_ms_median": None, "gross_mj_median": None, "rounds_valid": 0}
    nothing |= {name: None for name in vars(empty.summary) if name.startswith(("adjusted", "negative"))}
    empty = replace(empty, summary=replace(empty.summary, energy=[], **nothing))
    store(database, *noisy(NIGHTS), empty)
    assert empty.provision
    alone = replace(empty.provision, device=replace(GPU, uuid="GPU-2"))
    store(database, replace(empty, provision=alone, request=night(0, "its first night").request))
    assert set(codes(histories(database, "its first night"))) == {"no_figure"}
    store(database, replace(night(NIGHTS + 1, "bare"), provision=None, outcome=empty.outcome, reason=lost))
    assert set(codes(histories(database, empty.request.dag_run_id))) == {"no_figure"}
    bare = histories(database, "bare")
    assert set(codes(bare)) == {"device_lost"}
    assert bare["time_history"].verdict.reason == "no usable figure tonight: the GPU fell off the bus"
    assert {finding.verdict.verdict for finding in bare.values()} == {Verdict.INVALID}


def test_what_the_checks_find_can_be_stored_and_repeated(database: Database) -> None:
    store(database, *noisy(NIGHTS), night(NIGHTS, ms=MS * 1.05))
    for _ in range(2):
        with database.writer.begin() as connection:
            run = stored_run(connection, f"scheduled__{NIGHTS:03d}")
            findings = [
                *energy_history(connection, run),
                *time_findings(connection, run),
                *time_history(connection, run),
            ]
            store_findings(connection, run.run_id, findings)
    told = "SELECT count(*) AS checks, count(*) FILTER (WHERE verdict = 'regressed') AS red FROM check_result"
    assert one(database, told) == {"checks": 6, "red": 1}


def test_what_only_looks_back_counts_when_it_is_red_and_else_neither_way() -> None:
    """dotnet/performance 4312: thirteen nights without a history are no thirteen nights without a verdict."""
    expected = ("agreement", "energy", "time")
    fine = dict.fromkeys(expected, "ok")
    for check in (*CHECKS, "environment"):
        for word in ("inconclusive", "unavailable", "ok", "improved"):
            assert run_outcome(Outcome.OK, fine | {check: word}, expected) == ("ok", Outcome.OK)
        assert run_outcome(Outcome.OK, fine | {check: "regressed"}, expected)[0] == "regression"
        assert run_outcome(Outcome.OK, fine | {check: "invalid"}, expected)[0] == "invalid_measurement"
        only = dict.fromkeys(expected, "unavailable") | {check: "ok"}
        assert run_outcome(Outcome.OK, only, expected)[0] == "inconclusive"
    assert run_outcome(Outcome.OK, fine | {"time": "inconclusive"}, expected)[0] == "inconclusive"
    asked = (*expected, "environment")
    assert run_outcome(Outcome.OK, fine | {"environment": "inconclusive"}, asked) == ("ok", Outcome.OK)
    assert run_outcome(Outcome.OK, fine, asked)[1].exit_code == 5  # it left no result
    assert run_outcome(Outcome.OK, {"agreement": "ok", "energy": "ok"}, expected)[1].exit_code == 5


def test_another_board_has_a_history_of_its_own(database: Database) -> None:
    """conbench 1412 and 225."""
    other = replace(GPU, uuid="GPU-2")
    store(database, *noisy(NIGHTS), night(NIGHTS, "other", device=other, ms=MS * 2))
    assert set(codes(histories(database, "other"))) == {"short_history"}

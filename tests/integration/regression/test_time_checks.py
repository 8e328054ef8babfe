"""Times of stored runs against their baseline: what is compared, with what, before and after confirmation rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_tasks.records import RunRecord
from regression.detectors import CheckVerdict, Verdict
from regression.results.checks import Finding
from regression.results.times import time_findings
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import INVALID, SIMULATED_GPU, STATE, energy, energy_round
from tests.integration.regression.example_records import CPU, GPU, OTHER_GPU, digest, payload, run_record
from tests.integration.regression.many_nights import MS, accept, night, store, stored_run
from tests.integration.regression.test_confirmation_rows import plan


def judged(database: Database, record: RunRecord) -> list[Finding]:
    store(database, record)
    with database.reader.connect() as connection:
        return time_findings(connection, stored_run(connection, record.request.dag_run_id))


def verdict(database: Database, record: RunRecord) -> CheckVerdict:
    (found,) = judged(database, record)
    assert found.step == 0
    return found.verdict


def base(database: Database, record: RunRecord | None = None, **purposes: Any) -> int:
    record = record or night(0, "base")
    store(database, record)
    return accept(database, record, **purposes)


@pytest.mark.parametrize(
    ("factor", "expected", "code"),
    [
        (1.0, Verdict.OK, "within_spread"),
        (1.005, Verdict.OK, "below_floor"),
        (1.03, Verdict.REGRESSED, "time_above_spread"),
        (0.97, Verdict.IMPROVED, "time_below_spread"),
    ],
)
def test_the_median_of_the_rounds_is_held_against_the_baseline(
    database: Database, factor: float, expected: Verdict, code: str
) -> None:
    baseline_id = base(database)
    (found,) = judged(database, night(1, ms=MS * factor))
    assert (found.verdict.verdict, found.verdict.reason_code) == (expected, code)
    assert (found.baseline_id, found.step) == (baseline_id, 0)
    assert found.verdict.details["rounds_used"] == list(range(7))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"device": OTHER_GPU}, "baseline_other_device"),
        ({"device": replace(GPU, uuid="GPU-3")}, "baseline_other_device"),
        ({"environment": {"driver": "580.2"}}, "baseline_other_environment"),
        ({"device": SIMULATED_GPU}, "no_baseline"),
    ],
)
def test_times_of_other_devices_and_versions_are_not_compared(
    database: Database, change: dict[str, Any], code: str
) -> None:
    base(database)
    found = verdict(database, night(1, ms=2 * MS, **change))
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, code)


def test_times_of_other_payloads_protocols_and_limits_are_not_compared(database: Database) -> None:
    base(database)
    record = night(1)
    fresh = replace(night(1, "fresh"), verify_payload=replace(record.verify_payload, payload=payload("fresh")))  # type: ignore[type-var]
    classic = replace(night(1, "classic"), provision=replace(record.provision, protocol="classic"))  # type: ignore[type-var]
    state = replace(STATE, power_limit_w=300.0)
    rounds = [energy_round(n, energy=energy({"audited": 0.6}, state_before=state)) for n in range(7)]
    limited = replace(night(1, "limited"), rounds=rounds, telemetry=[])
    for record, code in (
        (fresh, "baseline_other_payload"),
        (classic, "baseline_other_protocol"),
        (limited, "baseline_other_power_limit"),
    ):
        assert verdict(database, record).reason_code == code


def test_the_baseline_is_one_for_time(database: Database) -> None:
    """conbench 1029: the one that was asked for is used."""
    for_energy = base(database, night(0, "energy only"), for_time=False)
    found = judged(database, night(2))[0]
    assert (found.verdict.reason_code, found.baseline_id) == ("baseline_time_not_accepted", for_energy)
    base(database, night(1, "of another driver", environment={"driver": "580.2"}))
    found = judged(database, night(3))[0]
    assert found.verdict.reason_code == "baseline_other_environment"  # for time, though of another class


def test_a_run_with_bad_energy_is_judged_by_its_time_all_the_same(database: Database) -> None:
    base(database)
    assert verdict(database, night(1, failed=["sham_window"])).verdict is Verdict.OK


def test_only_valid_rounds_count_on_either_side(database: Database) -> None:
    def disturbed(record: RunRecord, ms: float) -> RunRecord:
        first, *rest = record.rounds
        return replace(record, rounds=[replace(first, cuda_ms=ms, **INVALID), *rest])

    base(database, disturbed(night(0, "base"), 10 * MS))
    found = verdict(database, disturbed(night(1, ms=1.03 * MS), MS))
    assert (found.verdict, found.details["rounds_used"]) == (Verdict.REGRESSED, list(range(1, 7)))
    assert found.details["baseline_rounds"] == 6


def test_a_cpu_device_has_no_gpu_time(database: Database) -> None:
    found = verdict(database, run_record("cpu", device=CPU, energies=[None] * 7))
    assert (found.verdict, found.reason_code) == (Verdict.UNAVAILABLE, "no_gpu_time")


def test_a_simulated_device_is_compared_with_a_simulated_one_in_whatever_versions(database: Database) -> None:
    base(database, night(0, "base", device=SIMULATED_GPU))
    later = night(1, device=SIMULATED_GPU, environment={"driver": "999"})
    assert verdict(database, later).verdict is Verdict.OK


def test_what_else_changed_is_said_beside_a_slower_run(database: Database) -> None:
    base(database)
    slower = night(1, ms=1.03 * MS, environment={"python": "3.12.1"})
    assert slower.kernel
    slower = replace(slower, kernel=replace(slower.kernel, ptx_sha256=digest("new")))
    found = verdict(database, slower)
    changes = f"environment python 3.11.9 -> 3.12.1, kernel {digest('ptx')[:12]} -> {digest('new')[:12]}"
    assert found.reason.endswith(f"; the kernel is another one than the baseline's; also changed: {changes}")
    same = verdict(database, replace(slower, rounds=night(2).rounds, request=night(2).request))
    assert "also changed" not in same.reason


@pytest.mark.parametrize(
    ("more", "verdicts", "begins"),
    [
        ([], [Verdict.REGRESSED], "CUDA time 0.01722 ms a replay (median of 7 of 7 rounds)"),
        ([1.0] * 14, [Verdict.REGRESSED, Verdict.OK], "first 7 rounds: above; with 14 confirmation rounds: within"),
        ([1.05] * 7, [Verdict.REGRESSED] * 2, "first 7 rounds: above; with 7 confirmation rounds: above"),
    ],
)
def test_first_rounds_are_judged_alone_and_then_with_the_confirmation_rounds(
    database: Database, more: list[float], verdicts: list[Verdict], begins: str
) -> None:
    base(database)
    slower = night(1, ms=1.05 * MS)
    further = [energy_round(7 + n, cuda_ms=MS * factor) for n, factor in enumerate(more)]
    planned = list(range(7, 7 + len(more)))
    record = replace(
        slower,
        rounds=[*slower.rounds, *further],
        request=replace(slower.request, confirm_rounds=len(more)),
        summary=replace(slower.summary, rounds_expected=7 + len(more), rounds_valid=7 + len(more)),
        confirmation=replace(plan(planned), workload="qda") if more else None,
    )
    found = judged(database, record)
    assert [(f.step, f.verdict.verdict) for f in found] == list(enumerate(verdicts))
    assert found[-1].verdict.reason.startswith(begins)
    assert found[0].verdict.details["rounds_expected"] == 7
    assert found[-1].verdict.details["rounds_used"] == list(range(7 + len(more)))

"""What a run that tries a kernel leaves in the database, and what the detector and people get back from it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from gpu_tasks.records import BlockFigures, Outcome, Reason, RunRecord
from regression.detectors import CheckVerdict, Verdict
from regression.detectors.comparison import judge_comparison
from regression.detectors.long_term import IDLE
from regression.nights.comparing import comparison_of_record
from regression.results import baseline_reports, history, series, steps, times
from regression.results.history import find_run
from regression.results.kernel_comparisons import comparison_of
from regression.results.loading import load_run
from tests.integration.regression.cookbook_rounds import LIMITED
from tests.integration.regression.databases import Database, one
from tests.integration.regression.example_comparisons import (
    BUNDLE,
    COMMIT,
    DAG,
    DIFFERING,
    NO_ENERGY,
    OTHER_BUNDLE,
    TRIED,
    blocks,
    candidate_run,
    comparison,
    wrong_run,
)
from tests.integration.regression.example_energy import INVALID, energy_run
from tests.integration.regression.example_nights import asked, store
from tests.integration.regression.example_records import KERNEL, lost_validation, sha256_of, validation

DEEPLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def given_back(database: Database, record: RunRecord) -> Any:
    with database.reader.connect() as connection:
        return comparison_of(connection, find_run(connection, DAG, record.request.dag_run_id))


def test_a_run_says_what_it_tried_and_against_what(database: Database) -> None:
    store(database, candidate_run())
    found = one(database, "SELECT candidate, candidate_origin, pinned_variant, pinned_ptx_sha256 FROM run")
    assert found == {
        "candidate": True,
        "candidate_origin": {
            **{"spec": "kernels/original.py", "origin": "source", "commit": COMMIT, "modified": True},
            **{"bundle": BUNDLE, "against_bundle": OTHER_BUNDLE, "equals_pinned": False},
            **{"notes": ["fused changed, too"], "kernel": {"variant": TRIED.variant, "ptx_sha256": TRIED.ptx_sha256}},
        },
        "pinned_variant": KERNEL.variant,
        "pinned_ptx_sha256": KERNEL.ptx_sha256,
    }


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, False),
        ({"kernel_changed": True}, True),
        ({"candidate": "fused"}, True),
        ({"candidate": "fused", "kernel_changed": False}, True),
    ],
)
def test_a_run_is_a_candidate_where_its_request_says_so(
    database: Database, request_: dict[str, Any], expected: bool
) -> None:
    record = energy_run()
    store(database, replace(record, request=replace(record.request, **request_)))
    assert one(database, "SELECT candidate, candidate_origin FROM run") == {
        "candidate": expected,
        "candidate_origin": None,
    }


def test_every_part_has_its_row(database: Database) -> None:
    record = candidate_run()
    store(database, record)
    cases = asked(
        database, "SELECT split_part(case_name, 'draw-', 1), count(*), count(draw) FROM validation GROUP BY 1"
    )
    assert sorted(cases) == [("", 11, 11), ("emulated-", 11, 0), ("pinned-", 11, 0)]
    arms = asked(database, "SELECT arm, count(*), min(step), max(protocol) FROM round GROUP BY arm ORDER BY arm")
    assert arms == [("candidate", 7, 0, "audited"), ("comparison", 2, 0, "interleaved")]
    assert record.comparison
    found = asked(database, "SELECT to_jsonb(b) - 'run_id' FROM comparison_block AS b ORDER BY round, block")
    assert [row for (row,) in found] == [asdict(block) for block in record.comparison.blocks]
    store(database, wrong_run())
    found = asked(database, "SELECT to_jsonb(d) - 'run_id' FROM comparison_difference AS d ORDER BY draw, index")
    assert [row for (row,) in found] == [asdict(differing) for differing in DIFFERING]
    compared = one(database, "SELECT * FROM comparison WHERE differing_total = 0")
    statics = (compared["candidate_modelled_cycles"], compared["pinned_ptx_lines"], compared["energy_trust"])
    assert statics == (41_000, 3738, "verified")
    reasons = one(database, "SELECT * FROM comparison WHERE differing_total = 1")
    assert (reasons["not_measured_reason_code"], reasons["energy_trust_reason_code"]) == (
        "candidate_wrong",
        "not_measured",
    )


def test_a_later_record_of_an_unjudged_run_takes_the_place_of_all_of_it(database: Database) -> None:
    store(database, wrong_run("tried__1"))
    assert load_run(database.writer, candidate_run(), sha256_of(candidate_run())).status.value == "replaced"
    assert asked(database, "SELECT count(*) FROM comparison_difference") == [(0,)]
    assert asked(database, "SELECT outcome, differing_total FROM comparison") == [("ok", 0)]
    assert asked(database, "SELECT count(*) FROM comparison_block") == [(8,)]


@pytest.mark.parametrize("make", [candidate_run, wrong_run])
def test_the_detector_gets_from_the_database_what_it_gets_from_the_record(database: Database, make: Any) -> None:
    record: RunRecord = make()
    store(database, record)
    assert record.comparison
    found = given_back(database, record)
    assert found == comparison_of_record(record.comparison, record.validations)
    verdicts = {verdict.check: verdict for verdict in judge_comparison(found)}
    expected = Verdict.REGRESSED if make is wrong_run else Verdict.OK
    assert verdicts["compare_predictions"].verdict is expected


def _block(draw: st.DrawFn) -> BlockFigures:
    """Both or none of each figure; of a round that was broken off also one alone."""
    ms, mj, valid = st.floats(1e-4, 10), st.floats(-1, 10), draw(st.booleans())
    pairs = [draw(st.none() | st.tuples(figure, figure)) or (None, None) for figure in (mj, ms, ms)]
    if not valid:
        pairs = [draw(st.sampled_from([pair, (pair[0], None), (None, pair[1])])) for pair in pairs]
    energy, cuda, wall = pairs
    control = draw(st.none() | st.floats(-1, 1))
    return BlockFigures(draw(st.integers(0, 3)), draw(st.integers(0, 5)), valid, *energy, control, *cuda, *wall)


@DEEPLY
@given(
    st.lists(st.composite(_block)(), max_size=12, unique_by=lambda b: (b.round, b.block)),
    st.sampled_from(["verified", "failed", "unverified", "unavailable"]),
    st.sampled_from([None, NO_ENERGY]),
    st.sets(st.integers(0, 10)),
)
def test_whatever_was_measured_comes_back_as_it_was(
    database: Database, found: list[BlockFigures], trust: str, not_measured: Reason | None, lost: set[int]
) -> None:
    in_order = sorted(found, key=lambda b: (b.round, b.block))
    pinned = [lost_validation(draw) if draw in lost else validation(draw) for draw in range(11)]
    compared = comparison(
        in_order,
        rounds=[],
        energy_trust=trust,
        energy_trust_reason=Reason("x", "why") if trust != "verified" else None,
        not_measured=not_measured,
        pinned_validations=pinned,
    )
    record = candidate_run(compared=compared)
    store(database, record)
    assert given_back(database, record) == comparison_of_record(compared, record.validations)


def test_a_run_whose_comparison_was_lost_says_so(database: Database) -> None:
    lost = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "the GPU fell off the bus")}
    store(
        database,
        replace(candidate_run("lost", **lost), comparison=None),
        replace(candidate_run("none"), comparison=None),
    )
    by_name = {name: given_back(database, candidate_run(name)) for name in ("lost", "none")}
    assert {name: found.problem.code for name, found in by_name.items()} == {
        "lost": "device_lost",
        "none": "no_comparison",
    }
    for found in by_name.values():
        assert {v.verdict for v in judge_comparison(found) if v.check != "compare_predictions"} == {Verdict.INVALID}
    assert asked(database, "SELECT pinned_variant FROM run") == [(KERNEL.variant,)] * 2, "known all the same"


def test_the_rounds_against_another_kernel_are_none_of_the_runs_own(database: Database) -> None:
    """They are more, far off, of few replays, hot, and under another power limit; one of them is not valid."""
    compared = comparison(blocks(mj=5.0, rounds=9))
    others = [
        replace(r, repeats=10, idle_before_w=90.0, idle_after_w=90.0, energy=replace(r.energy, state_before=LIMITED))
        for r in compared.rounds
        if r.energy
    ]
    others[1] = replace(others[1], **INVALID)
    record = candidate_run(compared=replace(compared, rounds=others))
    store(database, record)
    run_id = record.request.run_id
    with database.reader.connect() as connection:
        run = find_run(connection, DAG, record.request.dag_run_id)
        assert [r.valid for r in history.energy_run(connection, run, 1).rounds] == [True] * 7
        assert max(r.adjusted_mj or 0 for r in history.energy_run(connection, run, 1).rounds) == 0.55
        assert len(times.time_run(connection, run, 1).rounds) == 7
        assert len(history.agreement_run(connection, run).results) == 11
        assert len(baseline_reports.rounds_of(connection, run_id)) == 7
        assert [draw.case_name for draw in baseline_reports.draws_of(connection, run_id)] == [
            f"draw-{number:02d}" for number in range(11)
        ]
        assert series._repeats(connection, run) == 1000
        assert history.conditions_of(connection, run).power_limits_w == (400.0,)
        key = series.key_of(run)
        assert key is not None
        (idle,) = series.series_of(connection, key, IDLE, run=run).figures
        assert idle.value == pytest.approx(40.05)
        assert len(steps.findings_by_step(connection, run, None, _nothing)) == 1


def _nothing(step: int) -> Any:
    return CheckVerdict("energy", Verdict.OK, "adjusted_energy_per_replay", "mJ", "x", f"step {step}")


def test_the_database_refuses_what_cannot_be_of_a_night(database: Database) -> None:
    store(database, energy_run())
    for change in ("pinned_variant = 'x'", "candidate_origin = '{}'"):
        with pytest.raises(Exception, match="run_candidate_check"), database.admin.begin() as connection:
            connection.execute(text(f"UPDATE run SET {change}"))

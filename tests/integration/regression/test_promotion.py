"""A run that tried a kernel becomes the baseline of the nights that run it: when it may, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import BadInput, KernelIdentity, Outcome, Reason, RunRecord
from regression.detectors.comparison import judge_comparison
from regression.results import decisions
from regression.results.baselines import accept_baseline
from regression.results.checks import Finding, store_findings
from regression.results.history import find_run
from regression.results.kernel_comparisons import comparison_of
from regression.results.outcome import settle_verdict
from regression.results.promotion import promotable, promote_run
from regression.results.withdrawals import withdraw_run
from tests.integration.regression.databases import Database
from tests.integration.regression.example_comparisons import (
    COMMIT,
    DAG,
    TRIED,
    blocks,
    candidate_run,
    comparison,
    wrong_run,
)
from tests.integration.regression.example_energy import energy_round, energy_run
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.example_records import CPU, KERNEL
from tests.integration.regression.test_verdicts import judge, settle

CHECKS = ("compare_predictions", "compare_time", "compare_energy")


def tried(database: Database, record: RunRecord, expected: Sequence[str] = CHECKS) -> str:
    """Store, judge and settle a candidate as its DAG does."""
    store(database, record)
    name = record.request.dag_run_id
    with database.writer.begin() as connection:
        run = find_run(connection, DAG, name)
        found = judge_comparison(comparison_of(connection, run))
        store_findings(connection, run.run_id, [Finding(verdict, None) for verdict in found])
        settle_verdict(connection, DAG, name, expected)
    return record.request.run_id


def on_kernel(record: RunRecord, kernel: KernelIdentity) -> RunRecord:
    assert record.provision
    return replace(record, kernel=kernel, provision=replace(record.provision, kernel=kernel))


def refusal(database: Database, run_id: str, **options: Any) -> str:
    with pytest.raises(BadInput) as caught, database.writer.connect() as connection:
        promotable(connection, run_id, **options)
    assert str(caught.value).count("\n") == 0
    return caught.value.code


def test_a_candidate_says_what_it_would_put_in_place_of_what(database: Database) -> None:
    run_id = tried(database, candidate_run())
    with database.reader.connect() as connection:
        found = promotable(connection, run_id)
    assert (found.variant, found.ptx_sha256) == (TRIED.variant, TRIED.ptx_sha256)
    assert (found.pinned_variant, found.pinned_ptx_sha256) == (KERNEL.variant, KERNEL.ptx_sha256)
    assert (found.spec, found.commit, found.for_time) == ("kernels/original.py", COMMIT, True)
    words = {"compare_predictions": "same", "compare_time": "same", "compare_energy": "better"}
    assert (found.words, found.worse) == (words, ())


def test_the_next_night_is_compared_with_what_was_promoted(database: Database, tmp_path: Path) -> None:
    store(database, night(1, "old", of=energy_run))
    accept_baseline(database.writer, energy_run("old").request.run_id, accepted_by="ana", reason="first")
    run_id = tried(database, candidate_run(started_at="2026-12-02T12:00:00Z", completed_at="2026-12-02T12:05:00Z"))
    promote_run(database.writer, run_id, promoted_by="ben", reason="a tenth less", records=tmp_path)
    energies = (0.53, 0.535, 0.54, 0.54, 0.541, 0.545, 0.55)
    judge(database, on_kernel(night(3, "new", of=lambda name, **of: energy_run(name, energies, **of)), TRIED))
    settle(database, "new")
    (row,) = asked(database, "SELECT checks FROM run_detail WHERE dag_run_id = 'new'")
    assert row[0]["energy"]["baseline_run_id"] == run_id
    assert (row[0]["energy"]["verdict"], row[0]["agreement"]["verdict"]) == ("ok", "ok")
    assert row[0]["energy"]["baseline_value"] == pytest.approx(0.54)
    lineage = asked(
        database,
        "SELECT replaced_ptx_sha256, kernel_ptx_sha256, kernel_changed, promoted, accepted_by, reason, commit, "
        "predictions_word, time_word, energy_word, retired_at IS NULL FROM kernel_lineage ORDER BY accepted_at",
    )
    assert lineage == [
        (None, KERNEL.ptx_sha256, None, False, "ana", "first", None, None, None, None, False),
        (
            *(KERNEL.ptx_sha256, TRIED.ptx_sha256, True, True, "ben", "a tenth less", COMMIT),
            *("same", "same", "better", True),
        ),
    ]
    assert asked(database, "SELECT promoted_by, is_baseline FROM candidate_runs") == [("ben", True)]
    assert {type(d) for d in decisions.read_decisions(decisions.files(tmp_path))[0]} == {
        decisions.BaselineAccepted,
        decisions.BaselineRetired,
    }


def test_what_is_no_candidate_or_not_known_is_not_promoted(database: Database) -> None:
    store(database, energy_run())
    assert refusal(database, energy_run().request.run_id) == "not_a_candidate"
    assert refusal(database, candidate_run("never").request.run_id) == "run_not_stored"


def test_a_candidate_becomes_a_baseline_in_no_other_way(database: Database) -> None:
    run_id = tried(database, candidate_run())
    with pytest.raises(BadInput, match="promote tried__1") as caught:
        accept_baseline(database.writer, run_id, accepted_by="ana", reason="looks right")
    assert caught.value.code == "run_is_candidate"
    assert asked(database, "SELECT count(*) FROM baseline") == [(0,)]


LOST = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": Reason("device_lost", "the GPU fell off the bus")}
BAD_ROUND = {"valid": False, "outcome": Outcome.OK, "reason": Reason("throttled", "too hot")}


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (candidate_run(rounds=[]), "no_rounds"),
        (candidate_run(rounds=[energy_round(0, **BAD_ROUND)]), "no_rounds"),
        (candidate_run(**LOST), "run_not_acceptable"),
        (candidate_run(inject="energy-10%", seed=1), "run_not_acceptable"),
        (candidate_run(validations=[]), "not_compared"),
        (candidate_run(compared=comparison(blocks(mj=0.06))), "candidate_worse"),
        (candidate_run(compared=comparison(blocks(ms=0.01))), "candidate_worse"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_reason_against_it_is_said(database: Database, record: RunRecord, code: str) -> None:
    assert refusal(database, tried(database, record)) == code


def test_a_run_without_a_verdict_waits_for_one(database: Database) -> None:
    store(database, candidate_run())
    assert refusal(database, candidate_run().request.run_id) == "run_not_judged"


def test_what_was_withdrawn_is_not_promoted(database: Database) -> None:
    run_id = tried(database, candidate_run())
    withdraw_run(database.writer, run_id, scope="all", withdrawn_by="ana", reason="another kernel than it says")
    assert refusal(database, run_id) == "run_withdrawn"


def test_a_worse_one_needs_to_be_called_so(database: Database) -> None:
    """Also one with wrong predictions, as a night with differences may be accepted; but never without rounds."""
    worse = tried(database, candidate_run(compared=comparison(blocks(mj=0.06))))
    with database.reader.connect() as connection:
        assert promotable(connection, worse, although_worse=True).worse == ("compare_energy",)
    promote_run(database.writer, worse, promoted_by="ana", reason="needed for the new layout", although_worse=True)
    assert asked(database, "SELECT energy_word FROM kernel_lineage") == [("worse",)]
    assert refusal(database, tried(database, wrong_run()), although_worse=True) == "no_rounds"


def test_a_device_without_times_has_predictions_to_promote(database: Database) -> None:
    """Nights compare nothing else there, and measure nothing that is compared."""
    own = candidate_run(
        "on a cpu", comparison([], energy_trust="unavailable", not_measured=_none()), device=CPU, rounds=[]
    )
    own = replace(own, energy_trust="unavailable", energy_trust_reason=_none(), telemetry=[], gates=[])
    run_id = tried(database, own)
    promote_run(database.writer, run_id, promoted_by="ana", reason="same predictions")
    assert refusal(database, run_id) == "already_promoted"
    assert asked(database, "SELECT for_agreement, for_time, for_energy FROM kernel_lineage") == [(True, False, False)]


def _none() -> Reason:
    return Reason("no_energy_counter", "no counter")


def test_a_marked_night_is_promoted_by_what_its_checks_say(database: Database) -> None:
    """It has no comparison: nothing but the baseline of the kernel before."""
    record = night(1, "marked", of=energy_run)
    record = replace(record, request=replace(record.request, kernel_changed=True))
    judge(database, record)
    settle(database, "marked")
    run_id = record.request.run_id
    with database.reader.connect() as connection:
        assert promotable(connection, run_id).words == {}
    with database.admin.begin() as connection:
        connection.execute(text("UPDATE check_result SET verdict = 'regressed' WHERE check_name = 'energy'"))
    assert refusal(database, run_id) == "candidate_worse"

"""A comparison for people, word for word (the files in golden/), and its verdicts from a record alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.records import (
    BlockFigures,
    ComparisonRecord,
    DifferingPrediction,
    KernelIdentity,
    Outcome,
    PredictionMismatch,
    Reason,
    StaticFigures,
    ValidationRecord,
)
from gpu_tasks.records.failure import failure_record
from regression.nights.comparing import comparison_table, verdicts_of

GOLDEN = Path(__file__).with_name("golden")
AT = "2026-11-30T02:00:00.000Z"
DISAGREES = Reason("predictions_disagree", "draw 3: 12 of 1000 predictions disagree")
RACE = Reason("race", "race: kernel train, PTX line 706, block 0, thread 2: read of byte 4 of shared memory")
LOST = Reason("device_lost", "CUDA_ERROR_UNKNOWN")
NO_COUNTER = Reason("no_energy_counter", "a CPU device has no energy counter that can be read")
UNVERIFIED = Reason("gates_unchecked", "reference_load (before): no band for this model")


def kernel(name: str) -> KernelIdentity:
    return KernelIdentity("class_blocks", name * 64, 3738, [])


def validation(draw: int, wrong: dict[int, int] | None = None, **changes: Any) -> ValidationRecord:
    """A draw whose queries are all of class 1, but for those predicted ``wrong``."""
    wrong = wrong or {}
    record = ValidationRecord(
        kind="validation",
        created_at=AT,
        outcome=Outcome.REGRESSION if wrong else Outcome.OK,
        reason=DISAGREES if wrong else None,
        workload="qda",
        payload="original",
        device_uuid="GPU-1",
        draw=draw,
        dataset_seed=draw,
        payload_sha256="c" * 64,
        total=1000,
        agreed=1000 - len(wrong),
        device_correct=650,
        reference_correct=650,
        predictions_int32_sha256=f"{draw}{sorted(wrong.items())}",
        mismatches=[PredictionMismatch(index, 1, found) for index, found in sorted(wrong.items())],
        replays_equal_eager=[True, True, True],
        scratch_poisoned_before_eager_and_each_replay=True,
        captured_graph_reused_across_changed_inputs=True,
        intermediate_floats_equal_reference_bitwise=None,
        duration_s=0.1,
    )
    return replace(record, **changes)


def failed(draw: int, outcome: Outcome, reason: Reason) -> ValidationRecord:
    return validation(
        draw, outcome=outcome, reason=reason, total=None, agreed=None, mismatches=[], replays_equal_eager=[]
    )


def block(number: int, mj: float, ms: float, valid: bool = True) -> BlockFigures:
    """Candidate with so much more than 0.586 mJ and 0.01705 ms, a little scattered."""
    off = 0.0005 * (number % 4 - 1.5)
    energies, times = (0.586 + mj + off, 0.586, 0.14), (0.01705 + ms + off / 100, 0.01705)
    return BlockFigures(number // 4, number % 4, valid, *energies, *times, *times)


def record_of(**changes: Any) -> ComparisonRecord:
    record = ComparisonRecord(
        kind="comparison",
        created_at=AT,
        outcome=Outcome.OK,
        reason=None,
        workload="qda",
        payload="original",
        device_uuid="GPU-1",
        candidate=kernel("a"),
        pinned=kernel("b"),
        candidate_static=StaticFigures(3700, 3200, 46_336, 4_100),
        pinned_static=StaticFigures(3738, 3211, 46_336, 4_216),
        emulated=[validation(draw) for draw in range(11)],
        validations=[validation(draw) for draw in range(11)],
        pinned_validations=[validation(draw) for draw in range(11)],
        differing=[],
        differing_total=0,
        rounds=[],
        blocks=[block(number, -0.0586, 0.00034) for number in range(8)],
        not_measured=None,
        energy_trust="verified",
        energy_trust_reason=None,
    )
    return replace(record, **changes)


def differing(index: int, gap: float | None) -> DifferingPrediction:
    score = None if gap is None else -10.25
    return DifferingPrediction(3, index, 4, 1, 1, None if gap is None else -10.25 - gap, score, gap)


WRONG = [validation(draw, dict.fromkeys(range(12), 4) if draw == 3 else None) for draw in range(11)]
REFUSED: dict[str, Any] = {
    "outcome": Outcome.REGRESSION,
    "blocks": [],
    "not_measured": Reason("candidate_wrong", "the candidate is wrong"),
}
EMULATED: dict[str, Any] = {
    "emulated": [],
    "pinned_validations": [],
    "blocks": [],
    "not_measured": NO_COUNTER,
    "energy_trust": "unavailable",
}
RECORDS = {
    "better": record_of(),
    "same": record_of(blocks=[block(number, 0.0001, 0.000002) for number in range(8)]),
    "inconclusive": record_of(
        blocks=[block(n, 0.02 * (-1) ** n, 0.0, valid=n < 4) for n in range(8)],
        energy_trust="unverified",
        energy_trust_reason=UNVERIFIED,
    ),
    "bug": record_of(
        **REFUSED,
        reason=DISAGREES,
        emulated=WRONG,
        validations=[],
        pinned_validations=[],
        differing=[differing(index, 0.4 + index / 10) for index in range(12)],
        differing_total=12,
    ),
    "rounding": record_of(
        outcome=Outcome.REGRESSION,
        reason=DISAGREES,
        validations=[validation(3, {17: 4})],
        pinned_validations=[validation(3)],
        emulated=[validation(3)],
        differing=[differing(17, 6.7e-4)],
        differing_total=1,
        blocks=[],
        not_measured=Reason("candidate_wrong", "the candidate is wrong"),
    ),
    "race": record_of(
        **REFUSED,
        reason=RACE,
        emulated=[failed(0, Outcome.BAD_INPUT, RACE)],
        validations=[],
        pinned_validations=[],
        candidate_static=None,
    ),
    "emulated": record_of(**EMULATED),
}


def words(record: ComparisonRecord, *own: ValidationRecord) -> list[str]:
    return [found.details["word"] for found in verdicts_of(record, own)]


@pytest.mark.parametrize("name", RECORDS)
def test_tables(name: str) -> None:
    """NIGHTLY_WRITE_GOLDEN=1 writes the files, to be read before they are committed."""
    record, path = RECORDS[name], GOLDEN / f"comparison-{name}.txt"
    found = comparison_table(record, verdicts_of(record)) + "\n"
    if os.environ.get("NIGHTLY_WRITE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("document", "name", "first", "last"),
    [
        ("README.md", "better", "  metric ", "  energy "),
        ("docs/comparing.md", "better", "  metric ", "  energy "),
        ("docs/comparing.md", "rounding", "1 prediction differs:", "scores "),
    ],
)
def test_the_documents_show_it_as_it_is(document: str, name: str, first: str, last: str) -> None:
    lines = (GOLDEN / f"comparison-{name}.txt").read_text(encoding="utf-8").splitlines()
    begin, end = (next(n for n, line in enumerate(lines) if line.startswith(start)) for start in (first, last))
    shown = "\n".join(["```", *lines[begin : end + 1], "```"])
    assert shown in (GOLDEN.parents[3] / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RECORDS)
def test_a_table_fits_in_120_columns(name: str) -> None:
    assert max(map(len, comparison_table(RECORDS[name], verdicts_of(RECORDS[name])).splitlines())) <= 120


def test_a_reason_that_two_metrics_share_is_told_once_and_is_one_for_both() -> None:
    told = comparison_table(RECORDS["emulated"], verdicts_of(RECORDS["emulated"]))
    assert told.count("time, energy:") == told.count("not measured, neither time nor energy: a CPU device") == 1


def test_an_interval_that_excludes_zero_does_not_look_as_if_it_began_there() -> None:
    """Of 0.004 %, too little for two decimals."""
    blocks = [BlockFigures(n // 4, n % 4, True, None, None, None, 0.01700068, 0.017, None, None) for n in range(8)]
    record = record_of(blocks=blocks)
    time = next(line for line in comparison_table(record, verdicts_of(record)).splitlines() if line[2:6] == "time")
    assert "+0.0040 to +0.0040 %" in time


def test_every_golden_file_is_of_a_table() -> None:
    assert {path.stem.removeprefix("comparison-") for path in GOLDEN.glob("comparison-*.txt")} == RECORDS.keys()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("better", ["same", "worse", "better"]),
        ("same", ["same", "same", "same"]),
        ("inconclusive", ["same", "same", "inconclusive"]),
        ("bug", ["worse", "inconclusive", "inconclusive"]),
        ("rounding", ["worse", "inconclusive", "inconclusive"]),
        ("race", ["worse", "inconclusive", "inconclusive"]),
        ("emulated", ["same", "unavailable", "unavailable"]),
    ],
)
def test_verdicts_from_a_record_alone(name: str, expected: list[str]) -> None:
    assert words(RECORDS[name]) == expected


def test_validations_of_the_run_are_those_of_its_candidate() -> None:
    """In a run record the comparison has none of its own."""
    record = record_of(validations=[])
    assert words(record)[0] == "invalid"
    assert words(record, *record_of().validations)[0] == "same"
    assert words(record, *WRONG)[0] == "worse"


def test_a_lost_device_is_no_verdict_on_the_kernel() -> None:
    lost: dict[str, Any] = {"outcome": Outcome.INFRASTRUCTURE_FAILURE, "reason": LOST}
    own = [validation(0), failed(1, Outcome.INFRASTRUCTURE_FAILURE, LOST)]
    found = verdicts_of(record_of(**lost, validations=own, blocks=[]))
    assert [(one.verdict.value, one.reason_code) for one in found] == [("invalid", "device_lost")] * 3
    nothing = failure_record("compare", {"workload": "qda", "payload": "original"}, *lost.values())
    assert isinstance(nothing, ComparisonRecord)
    found = verdicts_of(nothing)
    assert [(one.verdict.value, one.reason_code) for one in found] == [("invalid", "device_lost")] * 3
    assert comparison_table(nothing, found).count("invalid") == 3


@pytest.mark.parametrize("outcome", [Outcome.BAD_INPUT, Outcome.REGRESSION])
def test_a_finding_keeps_its_reason_whatever_it_is_counted_as(outcome: Outcome) -> None:
    found = verdicts_of(record_of(**REFUSED, emulated=[failed(0, outcome, RACE)], validations=[]))[0]
    assert (found.verdict.value, found.reason_code) == ("regressed", "race")


def test_blocks_of_an_invalid_round_are_told_and_not_counted() -> None:
    blocks = [block(number, -0.0586, 0.0, valid=number >= 4) for number in range(12)]
    found = verdicts_of(record_of(blocks=blocks))[2]
    assert (found.details["blocks"], found.details["blocks_left_out"]) == (8, 4)
    assert "8 (4 left out)" in comparison_table(record_of(blocks=blocks), verdicts_of(record_of(blocks=blocks)))


def test_only_the_first_ten_predictions_are_shown_and_all_are_counted() -> None:
    many = record_of(differing=[differing(index, None) for index in range(30)], differing_total=1234)
    told = comparison_table(many, verdicts_of(many))
    assert "1234 predictions differ, the first 10 of them:" in told
    assert told.count("\n  3     ") == 10

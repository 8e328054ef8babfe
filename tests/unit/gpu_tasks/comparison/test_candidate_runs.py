"""A run that tries a kernel: put together from its parts, and held against itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.convert.own import check_run
from gpu_tasks.programs.cli import main
from gpu_tasks.programs.parts import read_parts
from gpu_tasks.programs.summarise import check_request, run_record
from gpu_tasks.records import (
    BadInput,
    CandidateRecord,
    ComparisonRecord,
    DifferingPrediction,
    Outcome,
    ProvisionRecord,
    Reason,
    RunRecord,
    read_record,
    write_record,
)
from tests.support.run_parts import write_parts
from tests.unit.gpu_tasks.comparison.records import validation
from tests.unit.gpu_tasks.comparison.runs import REQUEST, candidate_run


def test_a_whole_run() -> None:
    run = candidate_run()
    assert (run.outcome, run.reason, run.energy_trust) == (Outcome.OK, None, "verified")
    assert run.candidate is not None
    assert run.comparison is not None
    assert run.provision is not None
    assert run.kernel == run.candidate.kernel == run.comparison.candidate == run.provision.kernel
    assert run.comparison.pinned == run.candidate.against
    assert [v.draw for v in run.validations] == [0, 1]
    assert run.comparison.validations == [], "they are the run's own"
    assert [v.draw for v in run.comparison.pinned_validations] == [0, 1]
    assert (run.summary.draws_validated, run.summary.agreed) == (2, 2000)
    assert [r.arm for r in run.rounds] == ["candidate"] * 3
    assert [r.arm for r in run.comparison.rounds] == ["comparison"] * 2
    assert len(run.comparison.blocks) == 8
    assert (run.comparison.energy_trust, run.comparison.energy_trust_reason) == ("verified", None)
    assert run.summary.rounds_expected == run.rounds_expected == 3, "the comparison's rounds are none of the run's"
    check_run(run, "run")


def test_a_sensor_that_nobody_should_trust() -> None:
    run = candidate_run("faulty_sensor")
    assert run.comparison is not None
    assert run.comparison.energy_trust == "failed"
    assert run.comparison.energy_trust_reason is not None
    assert run.comparison.energy_trust_reason.code == "gate_failed"
    check_run(run, "run")


def test_on_a_board_without_a_counter() -> None:
    """Time is compared, energy is not: what the rounds say of themselves is what the run says of them."""
    run = candidate_run("no_counter,time+2%")
    assert run.outcome is Outcome.OK, run.reason
    assert run.comparison is not None
    assert (run.comparison.not_measured, run.comparison.energy_trust) == (None, "unavailable")
    assert (run.comparison.energy_trust_reason or Reason("", "")).code == "no_energy_counter"
    assert {(b.candidate_mj, b.candidate_cuda_ms is None) for b in run.comparison.blocks} == {(None, False)}
    assert len(run.comparison.turns) == 4 * len(run.comparison.blocks) > 0
    check_run(run, "run")


def test_on_the_emulator() -> None:
    run = candidate_run(device="emulated")
    assert run.outcome is Outcome.OK, run.reason
    assert run.comparison is not None
    assert run.comparison.not_measured is not None
    assert run.comparison.not_measured.code == "no_energy_counter"
    assert (run.comparison.energy_trust, len(run.validations), run.comparison.emulated) == ("unavailable", 2, [])
    check_run(run, "run")


def parts_of(run: RunRecord, folder: Path) -> Path:
    """The parts that ``run`` was made of, as far as they are looked at here."""
    assert run.comparison is not None
    assert run.candidate is not None
    whole = dataclasses.replace(run.comparison, validations=run.validations)
    write_parts(dataclasses.replace(run, validations=[]), folder)
    write_record(run.candidate, folder / "candidate.json")
    write_record(whole, folder / "comparison.json")
    for look in run.telemetry:
        write_record(look, folder / f"telemetry-{look.when}.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return parts_of(candidate_run(), tmp_path)


def summarised(folder: Path) -> RunRecord:
    return run_record(REQUEST, read_parts(REQUEST, folder))


def change(folder: Path, name: str, cls: type[Any], **fields: Any) -> None:
    path = folder / f"{name}.json"
    write_record(dataclasses.replace(read_record(path, cls), **fields), path)


def test_the_parts_make_the_same_run(folder: Path) -> None:
    found = summarised(folder)
    assert dataclasses.replace(found, created_at="") == dataclasses.replace(candidate_run(), created_at="")


def test_a_candidate_that_is_none_explains_the_rest(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "candidate.json":
            path.unlink()
    refused = {"outcome": Outcome.BAD_INPUT, "reason": Reason("unknown_candidate", "none"), "kernel": None}
    change(folder, "candidate", CandidateRecord, **refused)
    found = summarised(folder)
    assert (found.outcome, found.kernel, found.validations) == (Outcome.BAD_INPUT, None, [])
    assert found.reason is not None
    assert found.reason.message.startswith("candidate: none; did not run: provision, ")
    assert "comparison" in found.reason.message
    check_run(found, "run")


def test_a_comparison_that_never_ran_is_missing(folder: Path) -> None:
    (folder / "comparison.json").unlink()
    found = summarised(folder)
    assert found.outcome is Outcome.INFRASTRUCTURE_FAILURE
    assert found.reason == Reason("parts_missing", "did not run: comparison")
    assert (found.comparison, found.validations) == (None, [])


def test_a_wrong_candidate_explains_why_nothing_was_measured(folder: Path) -> None:
    wrong = [validation(0, ran=False)]
    fields: dict[str, Any] = {"outcome": Outcome.REGRESSION, "reason": Reason("race", "emulator: line 7")}
    fields |= {"emulated": wrong, "validations": [], "pinned_validations": [], "rounds": [], "blocks": []}
    fields |= {"not_measured": Reason("candidate_wrong", "line 7"), "device_uuid": None}
    change(folder, "comparison", ComparisonRecord, **fields)
    for path in folder.glob("round-*.json"):
        path.unlink()
    found = summarised(folder)
    assert (found.outcome, found.validations, found.rounds) == (Outcome.REGRESSION, [], [])
    assert found.reason == Reason("race", "comparison: emulator: line 7; did not run: round-00 to round-02")
    assert found.comparison is not None
    assert (found.comparison.energy_trust, found.comparison.emulated) == ("unavailable", wrong)
    check_run(found, "run")


def test_a_night_has_neither(folder: Path) -> None:
    """A request without a candidate does not look for one, whatever lies in the folder."""
    night = dataclasses.replace(REQUEST, candidate=None, draws=[0])
    names = [part.name for part in read_parts(night, folder)]
    assert "candidate" not in names
    assert "comparison" not in names
    assert "validation-00" in names


def of_comparison(**fields: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder, "comparison", ComparisonRecord, **fields)


def of_draw(name: str, draw: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        board = read_record(folder / "comparison.json", ComparisonRecord).device_uuid
        of_comparison(**{name: [dataclasses.replace(validation(draw), device_uuid=board)]})(folder)

    return spoil


def of_rounds(**fields: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        first, *others = read_record(folder / "comparison.json", ComparisonRecord).rounds
        change(folder, "comparison", ComparisonRecord, rounds=[dataclasses.replace(first, **fields), *others])

    return spoil


def another_kernel(folder: Path) -> None:
    record = read_record(folder / "provision.json", ProvisionRecord)
    assert record.kernel is not None
    change(folder, "provision", ProvisionRecord, kernel=dataclasses.replace(record.kernel, ptx_sha256="0" * 64))


def another_pinned_kernel(folder: Path) -> None:
    record = read_record(folder / "candidate.json", CandidateRecord)
    change(folder, "candidate", CandidateRecord, against=record.kernel)


STRANGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "another spec": (lambda f: change(f, "candidate", CandidateRecord, spec="record"), "$.spec: expected 'fused'"),
    "another device": (of_comparison(device_uuid="GPU-another"), "$.device_uuid: expected "),
    "another payload": (of_comparison(payload="other"), "$.payload: expected 'original'"),
    "another kind": (of_comparison(kind="round"), "$.kind: expected 'comparison'"),
    "another kernel": (another_kernel, "$.candidate.ptx_sha256: expected '000"),
    "another pinned kernel": (another_pinned_kernel, "$.pinned.ptx_sha256: expected "),
    "a draw too few": (of_draw("validations", 0), "$.validations.draw: expected [0, 1], found [0]"),
    "a strange draw": (of_draw("pinned_validations", 9), "$.pinned.draw: expected [], found [9]"),
    "another board": (of_comparison(pinned_validations=[validation(0)]), "$.pinned_validations[0].device_uuid"),
    "a night's round": (of_rounds(arm="candidate"), "$.rounds.arm: expected 'comparison'"),
    "another protocol": (of_rounds(protocol="audited"), "$.rounds"),
    "a round of another kernel": (of_rounds(kernel_ptx_sha256="0" * 64), "$.rounds.kernel_ptx_sha256"),
    "a figure that follows from nothing": (of_rounds(adjusted_mj=0.1), "$.rounds[0].adjusted_mj"),
    "no block": (of_comparison(blocks=[]), "$.blocks: expected "),
    "a prediction that does not differ": (of_comparison(differing_total=1), "$.differing_total: expected 0, found 1"),
    "counts that contradict each other": (
        of_comparison(emulated=[dataclasses.replace(validation(0), agreed=1001)]),
        "$.agreed: expected 0 to 1000",
    ),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_part_of_another_run_or_that_contradicts_itself(folder: Path, what: str) -> None:
    spoil, words = STRANGE[what]
    spoil(folder)
    found = summarised(folder)
    assert found.outcome is Outcome.BAD_INPUT
    assert found.reason is not None
    assert found.reason.code in ("wrong_part", "contradictory_part")
    assert words in found.reason.message, found.reason


@pytest.mark.parametrize(("blocks", "holds"), [(0, True), (100, True), (101, False), (-1, False)])
def test_bounds_of_a_request(blocks: int, holds: bool) -> None:
    request = dataclasses.replace(REQUEST, blocks=blocks)
    if holds:
        check_request(request, Path("request.json"))
    else:
        with pytest.raises(BadInput, match=r"\$\.blocks: expected 0 to 100"):
            check_request(request, Path("request.json"))


def changed(**fields: Any) -> Callable[[RunRecord], RunRecord]:
    def change_it(run: RunRecord) -> RunRecord:
        assert run.comparison is not None
        return dataclasses.replace(run, comparison=dataclasses.replace(run.comparison, **fields))

    return change_it


def first_block(**fields: Any) -> Callable[[RunRecord], RunRecord]:
    def change_it(run: RunRecord) -> RunRecord:
        assert run.comparison is not None
        first, *others = run.comparison.blocks
        return changed(blocks=[dataclasses.replace(first, **fields), *others])(run)

    return change_it


def elsewhere(name: str) -> Callable[[RunRecord], RunRecord]:
    """The last part of that name is of another board."""

    def change_it(run: RunRecord) -> RunRecord:
        *others, last = getattr(run.comparison, name)
        return changed(**{name: [*others, dataclasses.replace(last, device_uuid="GPU-another")]})(run)

    return change_it


def lying_score(run: RunRecord) -> RunRecord:
    """One prediction is wrong; its gap is made small, as if it was rounding."""
    listed = [DifferingPrediction(0, 7, 2, 1, 1, 1.0, 5.0, 1e-6)]
    run = dataclasses.replace(run, validations=[validation(0, [(7, 1, 2)]), *run.validations[1:]])
    summary = dataclasses.replace(run.summary, agreed=1999, device_correct=None, reference_correct=None)
    run = dataclasses.replace(run, summary=summary)
    return changed(differing=listed, differing_total=1, outcome=Outcome.REGRESSION, rounds=[], blocks=[])(run)


@pytest.mark.parametrize(
    ("change_it", "field"),
    [
        (first_block(candidate_mj=0.1), "$.comparison.blocks"),
        (first_block(pinned_cuda_ms=None), "$.comparison.blocks"),
        (first_block(valid=False), "$.comparison.blocks"),
        (changed(blocks=[]), "$.comparison.blocks"),
        (changed(rounds=[]), "$.comparison.blocks"),
        (changed(differing_total=3), "$.comparison.differing_total"),
        (changed(validations=[validation(0)]), "$.comparison.validations"),
        (changed(energy_trust="failed"), "$.comparison.energy_trust"),
        (changed(pinned_validations=[validation(0, [(1, 2, 3)])]), "$.comparison.differing"),
        (changed(device_uuid="GPU-another"), "$.comparison.pinned_validations[0].device_uuid"),
        (elsewhere("pinned_validations"), "$.comparison.pinned_validations[1].device_uuid"),
        (elsewhere("rounds"), "$.comparison.rounds[1].device_uuid"),
    ],
)
def test_a_changed_field_is_named(change_it: Callable[[RunRecord], RunRecord], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_run(change_it(candidate_run()), "run.json")
    assert caught.value.code == "record_contradicts_itself"
    assert caught.value.message.startswith(f"run.json: {field}"), caught.value.message


def test_a_gap_that_does_not_follow_from_the_scores(folder: Path) -> None:
    run = lying_score(candidate_run())
    assert run.comparison is not None
    whole = dataclasses.replace(run.comparison, validations=run.validations)
    write_record(whole, folder / "comparison.json")
    found = summarised(folder)
    assert found.reason is not None
    assert "$.differing[0].gap: expected 4.0, found 1e-06" in found.reason.message


def test_the_program_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(candidate_run(), tmp_path / "run.json")
    assert main(["check", str(tmp_path / "run.json")]) == 0
    expected = "2 draws and 3 rounds, and a comparison of 8 blocks, say the same again"
    assert expected in capsys.readouterr().err

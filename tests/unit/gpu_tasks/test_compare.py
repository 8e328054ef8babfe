"""``compare``: correctness before speed, on every kind of device that needs no GPU, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.candidates.bundle import write_bundle
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_kernels, read_manifest
from gpu_tasks.programs import compare as program
from gpu_tasks.programs.cli import main
from gpu_tasks.records import ComparisonRecord, Outcome, TelemetryRecord, read_record
from gpu_tasks.workloads.qda.simulated_device import SimulatedQda
from tests.unit.gpu_tasks.energy.nights import simulated_night

MANIFEST = read_manifest(COMMITTED)
PINNED = load_kernels(COMMITTED)
Compare = Callable[..., tuple[int, ComparisonRecord]]


def uncentred(text: str) -> str:
    """The score kernel takes the centre for zero: every prediction rests on it."""
    lines = text.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if "sub.rn.f32" in line)
    return "".join([*lines[:first], lines[first].replace("sub.rn.f32", "add.rn.f32"), *lines[first + 1 :]])


def without_barrier(text: str) -> str:
    before, _, after = text.partition("\tbar.sync 0;\n")
    return f"{before}{after}"


def changed(change: Callable[[str], str], index: int) -> Kernels:
    texts = list(PINNED.texts)
    texts[index] = change(texts[index])
    assert texts != PINNED.texts
    return dataclasses.replace(PINNED, texts=texts)


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """``compare`` of ``candidate`` with ``pinned``: exit status and record."""

    def run(candidate: Kernels, *options: object, pinned: Kernels = PINNED) -> tuple[int, ComparisonRecord]:
        sides = []
        for option, kernels in (("--manifest", candidate), ("--against-manifest", pinned)):
            bundle = write_bundle(tmp_path / "candidates", MANIFEST, kernels)
            sides += [option, str(tmp_path / "candidates" / bundle / "manifest.json")]
        out = tmp_path / "comparison.json"
        status = main(["compare", *sides, *map(str, options), "--out", str(out)])
        return status, read_record(out, ComparisonRecord)

    return run


FUSED = load_kernels(COMMITTED, "fused")


def test_on_the_emulator(compare: Compare, capsys: pytest.CaptureFixture[str]) -> None:
    status, record = compare(FUSED, "--device", "emulated", "--draws", "6,0")
    assert (status, record.outcome, record.reason) == (0, Outcome.OK, None)
    assert (record.candidate, record.pinned) == (FUSED.identity(), PINNED.identity())
    assert [(v.draw, v.agreed) for v in record.validations] == [(6, 1000), (0, 1000)]
    assert [(v.draw, v.agreed) for v in record.pinned_validations] == [(6, 1000), (0, 1000)]
    assert {v.device_uuid for v in record.validations} == {record.device_uuid}
    assert (record.emulated, record.differing, record.differing_total) == ([], [], 0)
    assert record.candidate_static is not None
    assert record.pinned_static is not None
    assert record.candidate_static.modelled_cycles > record.pinned_static.modelled_cycles
    assert (record.rounds, record.blocks, record.energy_trust) == ([], [], "unavailable")
    assert record.not_measured is not None
    assert record.not_measured.code == "no_energy_counter"
    assert "emulator: 2 draws with all checks" in capsys.readouterr().err


def test_all_draws_are_the_default(compare: Compare) -> None:
    _, record = compare(PINNED, "--device", "emulated")
    assert [v.draw for v in record.validations] == list(range(11))
    assert sum(v.agreed or 0 for v in record.validations) == 11000


@pytest.mark.parametrize("device", ["emulated", "simulated"])
def test_a_wrong_candidate_is_not_measured(compare: Compare, device: str) -> None:
    status, record = compare(changed(uncentred, 1), "--device", device, "--draws", "0,1")
    assert (status, record.outcome) == (1, Outcome.REGRESSION)
    assert record.reason is not None
    assert record.reason.code == "prediction_mismatch"
    assert record.reason.message.startswith("emulator: draw 0: ")
    assert record.not_measured is not None
    assert (record.not_measured.code, record.rounds) == ("candidate_wrong", [])
    seen = record.validations if device == "emulated" else record.emulated
    assert [v.draw for v in seen] == [0, 1]
    assert (record.validations == []) is (device == "simulated")
    assert [v.agreed for v in record.pinned_validations] == [1000, 1000], "what the pinned kernel says is known"
    wrong = sum(len(v.mismatches) for v in seen)
    assert record.differing_total == wrong > 100
    assert {(one.candidate == one.frozen, one.pinned == one.frozen) for one in record.differing} == {(False, True)}
    assert max(one.gap or 0.0 for one in record.differing) > 0.1, "no rounding: the reference is far from undecided"


def test_a_finding_names_the_line_and_ends_it(compare: Compare) -> None:
    status, record = compare(changed(without_barrier, 0), "--device", "simulated")
    assert (status, record.outcome) == (1, Outcome.REGRESSION)
    assert record.reason is not None
    assert record.reason.code == "race"
    assert record.reason.message.startswith("emulator: draw 0: kernel train, PTX line ")
    assert len(record.emulated) == 1
    assert (record.validations, record.pinned_validations, record.device_uuid) == ([], [], None)
    assert (record.candidate_static, record.differing_total) == (None, 0)


@pytest.mark.parametrize(("blocks", "sizes"), [(1, [1]), (4, [4]), (6, [4, 2])])
def test_rounds_of_four_until_the_blocks_are_there(compare: Compare, blocks: int, sizes: list[int]) -> None:
    _, record = compare(FUSED, "--device", "simulated", "--draws", "0", "--blocks", blocks)
    found = [len({s.block for s in r.energy.segments}) for r in record.rounds if r.energy]
    assert found == sizes
    assert len(record.blocks) == blocks


def test_no_blocks_are_wanted(compare: Compare) -> None:
    _, record = compare(FUSED, "--device", "simulated", "--draws", "0", "--blocks", "0")
    assert (record.rounds, record.outcome) == ([], Outcome.OK)
    assert record.not_measured is not None
    assert record.not_measured.code == "no_blocks"


def test_the_candidate_is_opened_first(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a simulated board the first one has the effects; on a GPU the order makes no difference."""
    opened: list[str] = []
    real = program.open_device

    def opening(kind: str, workload: Any, kernels: Any, **options: Any) -> Any:
        device = real(kind, workload, kernels, **options)
        opened.append(device.kernel().variant)
        return device

    monkeypatch.setattr(program, "open_device", opening)
    compare(FUSED, "--device", "simulated", "--draws", "0", "--blocks", "1")
    assert opened == ["fused", "class_blocks"]


def test_a_pinned_kernel_that_is_wrong(compare: Compare) -> None:
    status, record = compare(PINNED, "--device", "simulated", "--draws", "0", pinned=changed(uncentred, 1))
    assert (status, record.outcome) == (0, Outcome.OK)
    assert record.not_measured is not None
    assert record.not_measured.code == "pinned_wrong"
    assert record.differing_total > 100
    assert {one.candidate == one.frozen for one in record.differing} == {True}
    assert all((one.gap or 0.0) < 0 for one in record.differing), "the candidate chose the better class"


def test_a_device_that_disagrees_with_the_emulator(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU does otherwise than the emulator is seen on the GPU, before it is measured."""
    predictions = SimulatedQda.predictions

    def flipped(self: SimulatedQda) -> Any:
        found = predictions(self)
        if self.kernel().variant == "fused":
            found[17] = (found[17] + 1) % 10
        return found

    monkeypatch.setattr(SimulatedQda, "predictions", flipped)
    status, record = compare(FUSED, "--device", "simulated", "--draws", "0")
    assert (status, record.outcome) == (1, Outcome.REGRESSION)
    assert [v.outcome for v in record.emulated] == [Outcome.OK]
    assert record.reason is not None
    assert record.reason.message.startswith("draw 0: 1 of 1000 predictions disagree, the first at index 17")
    assert (record.rounds, record.not_measured and record.not_measured.code) == ([], "candidate_wrong")
    assert [(one.draw, one.index, one.pinned == one.frozen) for one in record.differing] == [(0, 17, True)]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--blocks", "-1"], "bad_blocks", "--blocks: expected 0 to 100, found -1"),
        (["--blocks", "101"], "bad_blocks", "found 101"),
        (["--draws", "0,x"], "bad_draws", "--draws: expected numbers with commas between them, found '0,x'"),
        (["--draws", ""], "bad_draws", "found ''"),
        (["--draws", "1,1"], "bad_draws", "each number once, found '1,1'"),
        (["--draws", "11"], "draw_not_found", "--draws: expected 0 to 10, found 11"),
        (["--draws", "0,-1"], "draw_not_found", "--draws: expected 0 to 10, found -1"),
        (["--device", "reference"], "no_ptx_here", "found reference"),
        (["--device", "abacus"], "unknown_device", "found 'abacus'"),
        (["--device", "emulated", "--inject", "energy+10%"], "inject_needs_simulated", "found emulated"),
        (["--device", "simulated", "--inject", "luck"], "bad_inject", "luck"),
        (["--device", "emulated", "--seed", "1"], "seed_needs_simulated", "--seed: expected --device simulated"),
        (["--payload", "nothing"], "payload_not_found", "nothing"),
        (["--power-limit", "0"], "bad_limit", "--power-limit"),
        (["--manifest", "nowhere.json"], "kernel_file_unreadable", "nowhere.json"),
    ],
)
def test_what_is_refused(compare: Compare, options: list[str], code: str, words: str) -> None:
    status, record = compare(FUSED, *options)
    assert (status, record.outcome) == (2, Outcome.BAD_INPUT)
    assert record.reason is not None
    assert (record.reason.code, words in record.reason.message) == (code, True), record.reason
    assert (record.validations, record.emulated, record.energy_trust) == ([], [], "unavailable")
    assert record.not_measured == record.reason


def test_text_for_a_newer_board_than_there_is(compare: Compare, tmp_path: Path) -> None:
    newer = [text.replace(".version 7.0\n.target sm_80", ".version 8.0\n.target sm_90") for text in FUSED.texts]
    manifest = dataclasses.replace(MANIFEST, target="sm_90", ptx_version="8.0")
    bundle = write_bundle(tmp_path / "candidates", manifest, dataclasses.replace(FUSED, texts=newer))
    path = tmp_path / "candidates" / bundle / "manifest.json"
    status, record = compare(FUSED, "--manifest", path, "--device", "simulated", "--draws", "0")
    assert status == 2
    assert record.reason is not None
    assert record.reason.code == "other_architecture"
    assert "target: expected at most sm_80 on" in record.reason.message
    status, _ = compare(FUSED, "--manifest", path, "--device", "emulated", "--draws", "0")
    assert status == 0


def test_a_bundle_that_was_changed(compare: Compare, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "candidates", MANIFEST, FUSED)
    path = tmp_path / "candidates" / bundle / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["variants"]["fused"]["launches"][0]["shared_dynamic_bytes"] += 16
    path.write_text(json.dumps(manifest), encoding="utf-8")
    changed_one = tmp_path / "mine"
    path.parent.rename(changed_one)
    changed_one.rename(path.parent)
    status = main(["compare", "--manifest", str(path), "--against-manifest", str(path), "--out", str(tmp_path / "c")])
    assert status == 4
    record = read_record(tmp_path / "c", ComparisonRecord)
    assert (record.outcome, record.reason and record.reason.code) == (Outcome.VERIFICATION_MISMATCH, "bundle_changed")


def test_telemetry_is_used_and_another_device_s_is_refused(compare: Compare, tmp_path: Path) -> None:
    before = simulated_night().telemetry[0]
    for uuid, expected in ((before.device_uuid, 0), ("GPU-another", 2)):
        path = tmp_path / "telemetry.json"
        telemetry = dataclasses.replace(before, device_uuid=uuid)
        path.write_text(json.dumps(dataclasses.asdict(telemetry)), encoding="utf-8")
        assert read_record(path, TelemetryRecord).device_uuid == uuid
        options = ["--device", "simulated", "--draws", "0", "--blocks", "4", "--telemetry", path]
        status, record = compare(FUSED, *options)
        assert status == expected
        if expected:
            assert record.reason is not None
            assert record.reason.code == "telemetry_of_another_device"
        else:
            assert record.rounds[0].energy is not None
            assert record.rounds[0].energy.wander == before.wander is not None

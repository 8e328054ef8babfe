"""Kernels on the emulator: what a finding leaves, what is counted and modelled, and the same on any number of CPUs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest

from gpu_tasks.comparison.emulation import Wanted, emulate, first_wrong
from gpu_tasks.comparison.moved import moved_fault
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.manifest import COMMITTED, Kernels, load_kernels
from gpu_tasks.payload.draws import Payload
from gpu_tasks.records import BadInput, Outcome, StaticFigures, ValidationRecord
from gpu_tasks.workloads.base import Workload

PINNED = load_kernels(COMMITTED)


def changed(change: Callable[[str], str]) -> Kernels:
    """The default kernels, the text of their first launch changed."""
    first, *others = PINNED.texts
    assert change(first) != first
    return dataclasses.replace(PINNED, texts=[change(first), *others])


def without_barrier(text: str) -> str:
    before, _, after = text.partition("\tbar.sync 0;\n")
    return f"{before}{after}"


def spinning(text: str) -> str:
    return text.replace("\tbar.sync 0;\n", "$spin:\n\tbra $spin;\n\tbar.sync 0;\n", 1)


@pytest.fixture
def payload(qda: Workload) -> Payload:
    return Payload("original", qda)


def plain(records: list[ValidationRecord]) -> list[ValidationRecord]:
    """Without what differs from run to run."""
    return [dataclasses.replace(record, created_at="", duration_s=None) for record in records]


def test_both_sides_and_their_figures(qda: Workload, payload: Payload) -> None:
    fused = load_kernels(COMMITTED, "fused")
    wanted = [Wanted("candidate", fused, [3, 0]), Wanted("pinned", PINNED, [0], races=False)]
    own, other = emulate(qda, payload, wanted, processes=2)
    assert [(v.draw, v.agreed, v.outcome) for v in own.validations] == [(3, 1000, Outcome.OK), (0, 1000, Outcome.OK)]
    assert [v.draw for v in other.validations] == [0]
    assert own.validations[1].predictions_int32_sha256 == other.validations[0].predictions_int32_sha256
    # The figures of docs/kernels.md.
    assert own.static == StaticFigures(ptx_lines=2176, instructions=1194, shared_bytes=60992, modelled_cycles=5641)
    assert other.static == StaticFigures(
        ptx_lines=1586, instructions=646 + 184, shared_bytes=46336, modelled_cycles=3439 + 777
    )


def test_on_one_process_it_is_the_same(qda: Workload, payload: Payload) -> None:
    wanted = [Wanted("candidate", PINNED, [1, 0])]
    (one,) = emulate(qda, payload, wanted, processes=1)
    (two,) = emulate(qda, payload, wanted, processes=2)
    assert plain(one.validations) == plain(two.validations)
    assert one.static == two.static


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (without_barrier, "race", "with no barrier since a write at line"),
        (spinning, "instruction_limit", "this branch was executed 49"),
    ],
)
def test_a_finding_is_the_last_thing_that_is_said(
    qda: Workload, payload: Payload, change: Callable[[str], str], code: str, words: str
) -> None:
    wanted = [Wanted("candidate", changed(change), [4, 2, 0]), Wanted("pinned", PINNED, [4])]
    own, other = emulate(qda, payload, wanted)
    (record,) = own.validations
    assert (record.draw, record.outcome, record.total, record.agreed) == (4, Outcome.REGRESSION, None, None)
    assert record.reason is not None
    assert record.reason.code == code
    assert record.reason.message.startswith("kernel train, PTX line ")
    assert words in record.reason.message
    assert (own.static, other.static, other.validations) == (None, None, [])
    said = first_wrong(own.validations)
    assert said is not None
    assert said.message == f"draw 4: {record.reason.message}"


def test_races_are_looked_for_only_where_that_is_wanted(qda: Workload, payload: Payload) -> None:
    """The one schedule of the emulator happens to be a good one."""
    racing = changed(without_barrier)
    (unchecked,) = emulate(qda, payload, [Wanted("candidate", racing, [0], races=False)])
    assert [record.outcome for record in unchecked.validations] == [Outcome.OK]


def test_a_kernel_that_calls_good_draws_bad_is_wrong(qda: Workload, payload: Payload) -> None:
    """It says that every class has one sample: the status words then mean that labels were outside."""
    (stored,) = [line for line in PINNED.texts[0].splitlines() if "st.global.u32" in line or "st.global.s32" in line]
    register = stored.rsplit(",", 1)[1].strip(" ;")
    text = PINNED.texts[0].replace(stored, f"\tmov.u32 {register}, 1;\n{stored}")
    wrong = dataclasses.replace(PINNED, texts=[text, *PINNED.texts[1:]])
    (own,) = emulate(qda, payload, [Wanted("candidate", wrong, [0])])
    (record,) = own.validations
    assert (record.outcome, record.agreed) == (Outcome.REGRESSION, None)
    assert record.reason is not None
    assert record.reason.code == "bad_label"


def without_centre(kernels: Kernels) -> Kernels:
    """The variant ``record`` on raw moments: every subtraction of the centre becomes a copy."""
    stats, score = kernels.texts
    subtraction = re.compile(r"sub\.rn\.f32 (%f\d+), (%f\d+), %f\d+;")
    copy = r"mov.f32 \1, \2;"
    # Of the query the first nine; the nine after them take the mean of the class away.
    return dataclasses.replace(kernels, texts=[subtraction.sub(copy, stats), subtraction.sub(copy, score, count=9)])


def test_arithmetic_that_the_draws_are_too_easy_for_is_found_where_they_are_moved(
    qda: Workload, payload: Payload
) -> None:
    record = load_kernels(COMMITTED, "record")
    raw = without_centre(record)
    easy, hard = (Wanted("candidate", raw, [2, 0], static=False, moved=moved) for moved in (False, True))
    (own,) = emulate(qda, payload, [easy])
    assert [one.agreed for one in own.validations] == [1000, 1000]
    (own,) = emulate(qda, payload, [hard])
    said = first_wrong(own.validations)
    assert said is not None
    assert (said.code, said.message.partition(",")[0]) == ("arithmetic_worse", "draw 2: right as it is")
    (own,) = emulate(qda, payload, [dataclasses.replace(hard, beside=record)])
    assert first_wrong(own.validations) == said


def test_what_the_kernel_beside_does_not_stand_either_is_no_fault(qda: Workload, payload: Payload) -> None:
    raw = without_centre(load_kernels(COMMITTED, "record"))
    (own,) = emulate(qda, payload, [Wanted("candidate", raw, [0], static=False, beside=raw)])
    assert first_wrong(own.validations) is None


@pytest.mark.parametrize("variant", ["class_blocks", "record", "fused"])
def test_the_pinned_kernels_stand_eight_times_as_much(qda: Workload, payload: Payload, variant: str) -> None:
    device = EmulatedQda(qda, load_kernels(COMMITTED, variant), check_races=False)
    draw = payload.load(0)
    assert moved_fault(device, qda, draw) is None
    moved = dataclasses.replace(draw, x=draw.x + np.float32(56), q=draw.q + np.float32(56))
    assert moved_fault(device, qda, moved) is None


def test_kernels_that_cannot_be_launched_are_refused(qda: Workload, payload: Payload) -> None:
    with pytest.raises(BadInput, match="PTX line"):
        emulate(qda, payload, [Wanted("candidate", changed(lambda text: text[: len(text) // 2]), [0])])


def test_a_draw_that_is_not_there(qda: Workload, payload: Payload) -> None:
    with pytest.raises(BadInput, match="expected 0 to 10, found 11"):
        emulate(qda, payload, [Wanted("candidate", PINNED, [11])])

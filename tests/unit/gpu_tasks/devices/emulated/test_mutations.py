"""The pinned kernels with one thing wrong: each is refused, for the right reason and at the right line."""

import re
from dataclasses import replace

import pytest

from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.findings import KernelFinding
from gpu_tasks.devices.manifest import Kernels, load_kernels
from gpu_tasks.workloads.qda.workload import Qda
from tests.unit.gpu_tasks.devices.emulated.launching import (
    line_of,
    predict,
    random_problem,
    substitute,
    with_texts,
)

PROBLEM = random_problem(3)


def found_in(kernels: Kernels) -> KernelFinding:
    with pytest.raises(KernelFinding) as found:
        predict(EmulatedQda(Qda(), kernels), PROBLEM)
    return found.value


def mutated(variant: str, launch: int, pattern: str, replacement: str, *, occurrence: int = 0) -> tuple[Kernels, int]:
    """A variant with one substitution in the text of one launch, and the line of it."""
    kernels = load_kernels(variant=variant)
    texts = list(kernels.texts)
    texts[launch], line = substitute(texts[launch], pattern, replacement, occurrence=occurrence)
    return with_texts(kernels, *texts), line


BARRIERS = [
    (variant, launch, occurrence)
    for variant in ("class_blocks", "record", "fused")
    for launch, text in enumerate(load_kernels(variant=variant).texts)
    for occurrence in range(text.count("\tbar.sync 0;"))
]


@pytest.mark.parametrize(("variant", "launch", "occurrence"), BARRIERS)
def test_every_block_barrier_is_needed(variant, launch, occurrence):
    kernels, line = mutated(variant, launch, r"\tbar\.sync 0;", "", occurrence=occurrence)
    found = found_in(kernels)
    assert found.code in ("race", "unwritten_read")
    assert found.line > line
    if found.code == "race":
        assert found.other is not None
        assert found.other.line < line
        assert found.other.kind == "write"
        assert (found.block, found.thread) != (found.other.block, found.other.thread)


@pytest.mark.parametrize(("variant", "launch"), [("class_blocks", 0), ("record", 1), ("fused", 0)])
def test_every_warp_barrier_is_needed(variant, launch):
    kernels, line = mutated(variant, launch, r"\tbar\.warp\.sync 0xFFFFFFFF;", "")
    found = found_in(kernels)
    assert found.code == "race"
    assert found.other is not None
    assert found.other.line < line < found.line
    assert found.thread is not None
    assert found.thread // 32 == found.other.thread // 32  # within one warp
    assert f"write at line {found.other.line}" in found.message


MUTATIONS: dict[str, tuple[str, int, str, str, int, str, str]] = {
    # what: variant, launch, pattern, replacement, occurrence, finding, pattern of the finding's line
    "asynchronous copy not waited for": (
        "fused", 0, r"\tcp\.async\.wait_group 0;", "", 0, "unwritten_read", r"ld\.shared\.f32"),
    "asynchronous copy waited for after the barrier": (
        "fused", 0, r"(\tcp\.async\.wait_group 0;)\n(\tbar\.sync 0;)", r"\2\n\1", 0, "race", r"ld\.shared\.f32"),
    "asynchronous copy never committed": (
        "fused", 0, r"\tcp\.async\.commit_group;", "", 0, "unwritten_read", r"ld\.shared\.f32"),
    "guard of the labels one too far": (
        "class_blocks", 0, r"(setp\.lt\.u32 %p3, %r16, )1000;", r"\g<1>1001;", 0, "out_of_bounds",
        r"@%p3 ld\.global\.nc\.u32"),
    "guard of the last query one too far": (
        "class_blocks", 1, r"(setp\.lt\.u32 %p\d+, %r\d+, )1000;", r"\g<1>1001;", 0, "out_of_bounds", r"st\.global"),
    "guard of the copy one too far": (
        "fused", 0, r"(setp\.lt\.u32 %p8, %r60, )2250;", r"\g<1>2251;", 0, "out_of_bounds", r"@%p8 cp\.async"),
    "read of poisoned padding": (
        "record", 1, r"(setp\.lt\.u32 %p1, %r2, )23;", r"\g<1>24;", 0, "unwritten_read", r"@%p1 ld\.global"),
    "one store of the model forgotten": (
        "class_blocks", 0, r"\t@%p\d+ st\.global\.v4\.f32 \[%rd\d+\+32\].*;", "", 0, "unwritten_read", ""),
    "one moment of the last lane forgotten": (
        "class_blocks", 0, r"(setp\.lt\.u32 %p\d+, %r2, )24;", r"\g<1>23;", 0, "unwritten_read", r"ld\.shared\.v4"),
    "default of a guarded load forgotten": (
        "class_blocks", 0, r"\tmov\.u32 %r17, 0xFFFFFFFF;", "", 0, "uninitialised_register", r"setp\.eq\.u32 %p4"),
    "vector load off by one word": (
        "class_blocks", 1, r"(ld\.global\.nc\.v4\.f32 .*)\+16\];", r"\1+20];", 0, "misaligned",
        r"ld\.global\.nc\.v4\.f32 .*\+20\]"),
    "pointer before the start of a buffer": (
        "record", 1, r"(ld\.global\.nc\.f32 %f9, \[%rd\d+)\+0\];", r"\1+-4];", 0, "out_of_bounds",
        r"ld\.global\.nc\.f32 %f9"),
    "model written over the samples": (
        "class_blocks", 0, r"ld\.param\.u64 (%rd\d+), \[model\];", r"ld.param.u64 \1, [x];", 0, "read_only_write",
        r"st\.global\.v4"),
    "training reads what it writes through the constant cache": (
        "record", 0, r"ld\.param\.u64 (%rd\d+), \[labels\];", r"ld.param.u64 \1, [partial];", 0,
        "constant_read_of_writable", r"ld\.global\.nc\.u32"),
    "some warps wait at another barrier": (
        "class_blocks", 0, r"\t(@%p25) ret;", r"\t\1 bra elsewhere;\n\tbar.sync 0;\n\telsewhere:\n\tbar.sync 0;", 0,
        "divergent_barrier", r"bar\.sync"),
    "ballot inside a branch": (
        "class_blocks", 0, r"\tvote\.sync\.ballot\.b32 %r18", r"\t@%p3 vote.sync.ballot.b32 %r18", 0,
        "divergent_warp", r"@%p3 vote"),
    "loop counter not advanced": (
        "class_blocks", 0, r"\tadd\.u32 %r44, %r44, 9;", "", 0, "unwritten_read", r"ld\.shared\.f32 %f21"),
    "loop never left": (
        "class_blocks", 0, r"\tadd\.u32 %r44, %r44, 9;\n\tadd\.u32 %r45, %r45, 396;", "", 0, "instruction_limit",
        r"bra next_sample;"),
    "status written by every lane": (
        "class_blocks", 0, r"\t@%p\d+ (st\.global\.u32)", r"\t\1", 0, "race", r"st\.global\.u32"),
    "status written by every block": (
        "fused", 0, r"setp\.eq\.u32 (%p\d+), %r1, 0;", r"setp.ge.u32 \1, %r1, 0;", 0, "race", r"st\.global\.u32"),
    "lists of 16-bit offsets too short": (
        "fused", 0, r"(mad\.lo\.u32 %r\d+, %r3, )2000,", r"\g<1>32,", 0, "race", r"st\.shared\.u16"),
    "row of a sample beyond shared memory": (
        "class_blocks", 0, r"mad\.lo\.u32 (%r34, %r33), 44,", r"mad.lo.u32 \1, 4400,", 0, "out_of_bounds",
        r"@%p4 st\.shared\.f32 \[%r34"),
    "return forgotten": ("class_blocks", 1, r"\tret;\n\}", "}", 0, "no_return", r"st\.global"),
}  # fmt: skip


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_mutated_kernel_is_refused_for_the_right_reason(what):
    variant, launch, pattern, replacement, occurrence, code, at = MUTATIONS[what]
    kernels, _ = mutated(variant, launch, pattern, replacement, occurrence=occurrence)
    found = found_in(kernels)
    assert found.code == code
    if at:
        line = kernels.texts[launch].splitlines()[found.line - 1]
        assert re.search(at, line)
    else:  # what one launch leaves out is found by the next, which reads it
        assert (found.kernel, launch) == ("score", 0)
        assert "of model" in found.message


def test_an_output_one_element_short_is_found():
    kernels, _ = mutated("class_blocks", 1, r"(setp\.lt\.u32 %p\d+, %r\d+, )1000;", r"\g<1>999;")
    found = found_in(kernels)
    assert found.code == "unwritten_output"
    assert found.message == "predictions[999] (byte 3996) has not been written at the end"
    assert (found.kernel, found.line, found.block, found.thread) == (None, None, None, None)


def test_too_little_dynamic_shared_memory_is_found():
    kernels = load_kernels(variant="fused")
    (launch,) = kernels.launches
    short = replace(kernels, launches=[replace(launch, shared_dynamic_bytes=launch.shared_dynamic_bytes - 4)])
    found = found_in(short)
    assert (found.code, found.address) == ("out_of_bounds", launch.shared_dynamic_bytes - 4)
    assert found.line in [line_of(kernels.texts[0], r"st\.shared\.f32", occurrence=n) for n in range(2)]

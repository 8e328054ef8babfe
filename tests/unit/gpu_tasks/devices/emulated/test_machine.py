"""Divergence, barriers, launches that cannot work, and kernels that do not end."""

import numpy as np
import pytest

from gpu_tasks.devices.emulated.findings import KernelFinding, LaunchError
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import GlobalMemory
from gpu_tasks.devices.emulated.parser import parse
from tests.unit.gpu_tasks.devices.emulated.launching import OWN_WORD, line_of, module, run_small


def found_in(text: str, **options) -> KernelFinding:
    with pytest.raises(KernelFinding) as found:
        run_small(text, **options)
    return found.value


def test_threads_of_a_branch_part_and_meet_again():
    body = f"""{OWN_WORD}
    setp.lt.u32 %p0, %r0, 10; mov.u32 %r4, 1;
    @%p0 bra small_ones;
    add.u32 %r4, %r4, 10; bra together;
    small_ones: add.u32 %r4, %r4, 100;
    together: redux.sync.add.u32 %r5, %r4, -1; st.global.u32 [%rd2], %r5;"""
    assert (run_small(module(body)) == 10 * 101 + 22 * 11).all()


def test_a_loop_runs_as_often_as_each_thread_needs():
    body = f"""{OWN_WORD}
    mov.u32 %r4, 0; mov.u32 %r5, 0;
    again: setp.ge.u32 %p0, %r5, %r3; @%p0 bra done;
    add.u32 %r4, %r4, %r5; add.u32 %r5, %r5, 1; bra again;
    done: st.global.u32 [%rd2], %r4;"""
    assert run_small(module(body), grid=2, block=64).tolist() == [n * (n - 1) // 2 for n in range(128)]


def test_a_predicate_guards_single_threads_and_can_be_negated():
    body = f"""{OWN_WORD} mov.u32 %r4, 7; setp.eq.u32 %p0, %r0, 3;
    @%p0 mov.u32 %r4, 8; @!%p0 add.u32 %r4, %r4, 100; st.global.u32 [%rd2], %r4;"""
    assert run_small(module(body)).tolist() == [8 if t == 3 else 107 for t in range(32)]


def test_shared_memory_is_each_blocks_own():
    body = f"""{OWN_WORD} mad.lo.u32 %r4, %r0, 4, 0; st.shared.u32 [%r4], %r3; bar.sync 0;
    xor.b32 %r5, %r4, 252; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd2], %r6;"""
    shared = ".shared .align 4 .b8 words[256];"
    found = run_small(module(body, shared=shared), grid=3, block=64)
    assert found.reshape(3, 64)[:, ::-1].ravel().tolist() == list(range(192))


def test_sixteen_bit_values_are_widened_and_cut():
    body = f"""{OWN_WORD} mul.lo.u32 %r4, %r0, 2; add.u32 %r5, %r3, 0xABCD0000; st.shared.u16 [%r4], %r5;
    ld.shared.u16 %r6, [%r4]; st.global.u32 [%rd2], %r6;"""
    assert run_small(module(body, shared=".shared .align 2 .b8 w[64];")).tolist() == list(range(32))


def test_returned_threads_do_not_hold_up_a_barrier():
    body = f"{OWN_WORD} setp.ge.u32 %p0, %r0, 32; @%p0 ret; bar.sync 0; st.global.u32 [%rd2], %r0;"
    assert run_small(module(body), block=64, words=64).tolist()[:32] == list(range(32))


def test_waiting_at_different_barriers_is_a_finding():
    body = f"""{OWN_WORD}
    setp.lt.u32 %p0, %r0, 32;
    @%p0 bra other;
    bar.sync 0;
    bra end;
    other:
    bar.sync 0;
    end:"""
    text = module(body)
    found = found_in(text, block=64)
    assert found.code == "divergent_barrier"
    barriers = [line_of(text, r"^\s*bar\.sync", occurrence=n) for n in (0, 1)]
    assert found.line in barriers
    assert str(sum(barriers) - found.line) in found.message


LATE = """
setp.ge.u32 %p0, %r0, 32; mov.u32 %r4, 0;
@%p0 bra later;
top: bar.sync 0;
BODY
ret;
later: bra top;"""  # the second warp reaches the barrier by a backward branch, after the first


@pytest.mark.parametrize("grid", [1, 3])
def test_threads_that_reach_a_barrier_later_join_those_that_wait(grid):
    text = module(OWN_WORD + LATE.replace("BODY", "st.global.u32 [%rd2], 7;"))
    assert (run_small(text, grid=grid, block=64) == 7).all()


@pytest.mark.parametrize("thread", [5, 40])
def test_what_both_groups_do_after_a_barrier_is_checked(thread):
    body = f"setp.eq.u32 %p1, %r0, {thread};\n@%p1 st.global.u32 [%rd2+4096], 7;"
    text = module(OWN_WORD + LATE.replace("BODY", body))
    found = found_in(text, block=64)
    assert (found.code, found.thread, found.line) == ("out_of_bounds", thread, line_of(text, "^@%p1 st"))


def test_a_loop_with_a_barrier_at_its_top_may_be_entered_late():
    body = "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3; @%p1 bra top; st.global.u32 [%rd2], %r4;"
    text = module(OWN_WORD + LATE.replace("BODY", body))
    assert (run_small(text, grid=2, block=64) == 3).all()


def test_a_launch_that_loses_threads_is_a_finding(monkeypatch):
    part = Machine._part

    def losing(machine, pc, lanes, chosen):
        part(machine, pc, lanes, np.arange(32) if machine.kernel.code[pc].mnemonic == "ret" else chosen)

    monkeypatch.setattr(Machine, "_part", losing)
    monkeypatch.setattr(np, "setdiff1d", lambda *_, **__: np.arange(0))
    found = found_in(module(OWN_WORD), block=64)
    assert (found.code, found.block, found.thread) == ("lost_threads", 0, 32)


@pytest.mark.parametrize(
    "instruction",
    [
        "shfl.sync.idx.b32 %b0, %r0, 0, 31, -1;",
        "vote.sync.ballot.b32 %r4, %p0, -1;",
        "redux.sync.add.u32 %r4, %r0, -1;",
        "bar.warp.sync -1;",
    ],
)
def test_a_warp_instruction_without_the_whole_warp_is_a_finding(instruction):
    body = f"{OWN_WORD}\nsetp.lt.u32 %p0, %r0, 5;\n@%p0 {instruction}"
    found = found_in(module(body), block=64)
    assert (found.code, found.block, found.thread) == ("divergent_warp", 0, 0)


def test_a_kernel_that_does_not_end_names_the_line_that_spins():
    ends = "once: setp.ge.u32 %p0, %r4, 9;\n@%p0 bra forever;\nadd.u32 %r4, %r4, 1;\nbra once;"
    spins = "forever:\nadd.u32 %r4, %r4, 1;\nbra forever;"
    text = module(f"{OWN_WORD}\nmov.u32 %r4, 0;\n{ends}\n{spins}")
    found = found_in(text, limit=2000)
    assert found.code == "instruction_limit"
    assert found.line == line_of(text, "^bra forever")


def test_running_past_the_end_is_a_finding():
    text = module(OWN_WORD).replace("\nret;", "")
    found = found_in(text)
    assert found.code == "no_return"
    assert found.line == line_of(text, "mad.wide")


def test_a_register_read_before_it_is_written_names_the_thread():
    body = f"{OWN_WORD}\nsetp.lt.u32 %p0, %r0, 5;\n@%p0 mov.u32 %r4, 1;\nadd.u32 %r5, %r4, 1;"
    text = module(body)
    found = found_in(text, block=64)
    assert (found.code, found.line, found.thread) == ("uninitialised_register", line_of(text, "^add.u32 %r5"), 5)


def test_a_predicate_read_before_it_is_written_is_a_finding():
    assert found_in(module(f"{OWN_WORD} @%p1 mov.u32 %r4, 1;")).code == "uninitialised_register"


GEOMETRY = [
    ({"block": 2048}, "bad_geometry", "1024"),
    ({"block": 0}, "bad_geometry", "1 to 1024"),
    ({"block": 48}, "bad_geometry", "whole warps"),
    ({"grid": 0}, "bad_geometry", "1 or more"),
    ({"grid": 2**31}, "bad_geometry", "threads here"),
    ({"dynamic": 64}, "shared_memory", "declares none"),
]


@pytest.mark.parametrize(("options", "code", "reason"), GEOMETRY)
def test_a_launch_that_cannot_work_is_refused(options, code, reason):
    with pytest.raises(LaunchError, match=reason) as refused:
        run_small(module(OWN_WORD), words=1, **options)
    assert refused.value.code == code


def test_only_one_dimension_is_launched():
    for grid, block in (((2, 2, 1), (32, 1, 1)), ((2, 1, 1), (32, 2, 1)), ((1, 1), (32, 1, 1))):
        with pytest.raises(LaunchError) as refused:
            Machine(parse(module(OWN_WORD)), GlobalMemory(), grid, block)
        assert refused.value.code == "bad_geometry"


def test_required_block_size_holds():
    text = module(OWN_WORD).replace("\n{", "\n.reqntid 64, 1, 1\n{", 1)
    with pytest.raises(LaunchError, match="reqntid"):
        run_small(text)
    run_small(text, block=64)


@pytest.mark.parametrize(
    ("target", "size", "fits"), [("sm_80", 166912, True), ("sm_80", 166928, False), ("sm_90", 200000, True)]
)
def test_shared_memory_is_limited_by_the_target(target, size, fits):
    extern = ".extern .shared .align 16 .b8 dynamic[];\n.visible"
    text = module(OWN_WORD, target=target).replace(".visible", extern)
    if fits:
        run_small(text, dynamic=size)
        return
    with pytest.raises(LaunchError, match="at most 166912"):
        run_small(text, dynamic=size)


@pytest.mark.parametrize(("alignment", "start"), [(1, 16), (16, 16), (128, 128), (1024, 1024)])
def test_dynamic_shared_memory_starts_where_its_alignment_says(alignment, start):
    extern = f".extern .shared .align {alignment} .b8 dynamic[];\n.visible"
    body = f"{OWN_WORD} mov.u32 %r4, dynamic; st.shared.u32 [%r4+60], %r0; st.global.u32 [%rd2], %r4;"
    text = module(body, shared=".shared .align 4 .b8 first[4];").replace(".visible", extern)
    assert (run_small(text, dynamic=64, check_races=False) == start).all()


def test_static_shared_memory_is_limited():
    with pytest.raises(LaunchError, match="at most 49152"):
        run_small(module(OWN_WORD, shared=".shared .align 4 .b8 big[49156];"))


def test_the_number_of_parameters_has_to_match():
    with pytest.raises(LaunchError) as refused:
        run_small(module(OWN_WORD, parameters="out more"))
    assert refused.value.code == "wrong_parameter_count"


def test_two_runs_of_one_machine_are_the_same():
    body = f"{OWN_WORD} mul.lo.u32 %r4, %r3, 2654435761; st.global.u32 [%rd2], %r4;"
    memory = GlobalMemory()
    out = memory.allocate("out", 4 * 64)
    machine = Machine(parse(module(body)), memory, (2, 1, 1), (32, 1, 1))
    results = []
    for _ in range(2):
        memory.poison(out)
        machine.run([out.address], {out.address})
        results.append((memory.copy_out(out, np.uint32)[0].tolist(), list(machine.trace)))
    assert results[0] == results[1]

"""Findings about memory: bounds, alignment, permissions, unwritten data, asynchronous copies and races."""

import numpy as np
import pytest

from gpu_tasks.devices.emulated import races
from gpu_tasks.devices.emulated.findings import Access, KernelFinding
from tests.unit.gpu_tasks.devices.emulated.launching import OWN_WORD, line_of, module, run_small

WORDS = ".shared .align 16 .b8 words[512];"
OWN_SHARED = "mov.u32 %r4, words; mad.lo.u32 %r5, %r0, 4, %r4;"  # %r5: this thread's word


def found_in(text: str, **options) -> KernelFinding:
    with pytest.raises(KernelFinding) as found:
        run_small(text, **options)
    return found.value


def check_line(found: KernelFinding, text: str, pattern: str) -> None:
    assert found.line == line_of(text, pattern)


# Bounds, alignment, permissions


@pytest.mark.parametrize(
    ("address", "thread", "offset"),
    [("[%rd2+4]", 31, 128), ("[%rd2+-4]", 0, -4), ("[%rd2+2000000000]", 0, 2000000000), ("[%rd2+-2000]", 0, -2000)],
)
def test_an_address_outside_its_buffer_is_found_however_far_it_is(address, thread, offset):
    text = module(f"{OWN_WORD}\nld.global.u32 %r6, {address};", parameters="out more")
    text = text.replace("\nld.global", "\nst.global.u32 [%rd2], %r0;\nld.global")
    found = found_in(text, inputs={"more": np.zeros(32, np.uint32)})
    check_line(found, text, "^ld.global")
    assert (found.code, found.block, found.thread) == ("out_of_bounds", 0, thread)
    assert found.address == offset
    assert found.message.endswith(f"(byte {offset} of out)")


def test_an_access_before_a_buffer_names_that_one_and_not_its_neighbour():
    body = f"{OWN_WORD} ld.param.u64 %rd3, [more];\nst.global.u32 [%rd2], %r0; ld.global.u32 %r6, [%rd3+-4];"
    found = found_in(module(body, parameters="out more"), inputs={"more": np.zeros(32, np.uint32)})
    assert (found.code, found.address) == ("out_of_bounds", -4)
    assert found.message.endswith("4 bytes before the start (byte -4 of more)")


def test_a_null_pointer_is_outside():
    text = module(f"{OWN_WORD}\nmov.u64 %rd3, 0;\nst.global.u32 [%rd3], %r0;")
    found = found_in(text)
    assert (found.code, found.thread, found.address) == ("out_of_bounds", 0, None)
    assert found.message.endswith("4 bytes at 0x0, outside every buffer")


def test_shared_memory_ends_with_its_block():
    text = module(f"{OWN_WORD} {OWN_SHARED}\nst.shared.u32 [%r5+388], %r0;", shared=WORDS)
    found = found_in(text, grid=2)
    check_line(found, text, "^st.shared")
    assert (found.code, found.block, found.thread, found.address) == ("out_of_bounds", 0, 31, 512)


def test_misaligned_vectors_are_found():
    text = module(f"{OWN_WORD} {OWN_SHARED}\nst.shared.v4.u32 [%r4+8], {{%r0, %r0, %r0, %r0}};", shared=WORDS)
    found = found_in(text)
    assert (found.code, found.address) == ("misaligned", 8)


def test_writing_an_input_is_found():
    body = f"{OWN_WORD} ld.param.u64 %rd3, [x];\nst.global.u32 [%rd3], %r0;"
    found = found_in(module(body, parameters="out x"), inputs={"x": np.zeros(1, np.uint32)})
    assert found.code == "read_only_write"


def test_the_constant_path_of_a_buffer_that_may_be_written_is_found():
    found = found_in(module(f"{OWN_WORD} st.global.u32 [%rd2], %r0;\nld.global.nc.u32 %r4, [%rd2];"))
    assert found.code == "constant_read_of_writable"


# Unwritten memory


def test_unwritten_global_memory_is_found():
    text = module(f"{OWN_WORD}\nld.global.u32 %r4, [%rd2];")
    found = found_in(text)
    check_line(found, text, "^ld.global")
    assert (found.code, found.thread, found.address) == ("unwritten_read", 0, 0)


def test_unwritten_shared_memory_is_found_to_the_byte():
    body = f"{OWN_WORD} {OWN_SHARED} st.shared.u16 [%r5], %r0;\nld.shared.u32 %r6, [%r5];"
    text = module(body, shared=WORDS)
    found = found_in(text)
    assert (found.code, found.address) == ("unwritten_read", 0)
    run_small(text.replace("\nld.shared", " st.shared.u16 [%r5+2], %r0;\nld.shared"))


COPY = f"""{OWN_WORD} {OWN_SHARED} ld.param.u64 %rd3, [x]; mad.wide.u32 %rd4, %r0, 4, %rd3;
cp.async.ca.shared.global [%r5], [%rd4], 4;
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
xor.b32 %r6, %r5, 4;
ld.shared.u32 %r7, [%r6];
st.global.u32 [%rd2], %r7;"""


def run_copy(body: str) -> np.ndarray:
    return run_small(module(body, parameters="out x", shared=WORDS), inputs={"x": np.arange(32, dtype=np.uint32)})


def test_an_asynchronous_copy_arrives_after_the_wait():
    assert run_copy(COPY).tolist() == [t ^ 1 for t in range(32)]
    assert run_copy(COPY.replace("wait_group 0", "wait_all")).tolist() == [t ^ 1 for t in range(32)]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("cp.async.wait_group 0;\n", "", "unwritten_read"),
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;", "unwritten_read"),
        ("cp.async.commit_group;\n", "", "unwritten_read"),
        ("bar.sync 0;\n", "", "race"),
        ("cp.async.wait_group 0;\nbar.sync 0;", "bar.sync 0;\ncp.async.wait_group 0;", "race"),
    ],
)
def test_an_asynchronous_copy_that_is_not_waited_for_is_found(old, new, code):
    with pytest.raises(KernelFinding) as found:
        run_copy(COPY.replace(old, new))
    assert found.value.code == code
    text = module(COPY.replace(old, new), parameters="out x", shared=WORDS)
    check_line(found.value, text, "^ld.shared")


@pytest.mark.parametrize(
    ("old", "store"),
    [
        ("cp.async.commit_group;", "st.shared.u32 [%r5], %r0;"),  # the very thread that copies
        ("cp.async.commit_group;", "xor.b32 %r6, %r5, 4; st.shared.u32 [%r6], %r0;"),
        ("cp.async.wait_group 0;", "st.shared.u16 [%r5+2], %r0;"),
        ("cp.async.wait_group 0;", "cp.async.ca.shared.global [%r5], [%rd4], 4;"),
    ],
)
@pytest.mark.parametrize("check_races", [True, False])
def test_a_store_to_where_a_copy_is_on_its_way_is_found(old, store, check_races):
    text = module(COPY.replace(old, f"\n{store}\n{old}"), parameters="out x", shared=WORDS)
    with pytest.raises(KernelFinding) as found:
        run_small(text, inputs={"x": np.arange(32, dtype=np.uint32)}, check_races=check_races)
    assert found.value.code in (["copy_overwritten", "race"] if "%r6" in store else ["copy_overwritten"])
    assert found.value.line == text[: text.index(f"\n{store}\n{old}")].count("\n") + 2
    later = module(COPY.replace("bar.sync 0;", f"{store}\nbar.sync 0;"), parameters="out x", shared=WORDS)
    if store.startswith("st"):
        run_small(later, inputs={"x": np.arange(32, dtype=np.uint32)})


def test_the_latest_group_may_still_be_on_its_way():
    second = "cp.async.ca.shared.global [%r5+128], [%rd4], 4;\ncp.async.commit_group;\ncp.async.wait_group 1;"
    body = COPY.replace("cp.async.wait_group 0;", second)
    assert run_copy(body).tolist() == [t ^ 1 for t in range(32)]
    with pytest.raises(KernelFinding) as found:
        run_copy(body.replace("ld.shared.u32 %r7, [%r6];", "ld.shared.u32 %r7, [%r6+128];"))
    assert found.value.code == "unwritten_read"


# Races

EXCHANGE = f"""{OWN_WORD} {OWN_SHARED}
st.shared.u32 [%r5], %r0;
BARRIER
xor.b32 %r6, %r5, DISTANCE;
ld.shared.u32 %r7, [%r6];
st.global.u32 [%rd2], %r7;"""


def exchange(barrier: str, distance: int, **options) -> np.ndarray:
    body = EXCHANGE.replace("BARRIER", barrier).replace("DISTANCE", str(4 * distance))
    return run_small(module(body, shared=WORDS), block=64, **options)


@pytest.mark.parametrize(("barrier", "distance"), [("bar.sync 0;", 1), ("bar.sync 0;", 32), ("bar.warp.sync -1;", 1)])
def test_a_barrier_orders_a_read_after_a_write(barrier, distance):
    assert exchange(barrier, distance).tolist() == [t ^ distance for t in range(64)]


@pytest.mark.parametrize(("barrier", "distance"), [("", 1), ("", 32), ("bar.warp.sync -1;", 32)])
def test_a_read_after_a_write_without_a_barrier_is_a_race(barrier, distance):
    body = EXCHANGE.replace("BARRIER", barrier).replace("DISTANCE", str(4 * distance))
    text = module(body, shared=WORDS)
    found = found_in(text, block=64)
    check_line(found, text, "^ld.shared")
    assert (found.code, found.block, found.thread, found.address) == ("race", 0, 0, 4 * distance)
    assert found.other == Access("write", line_of(text, "^st.shared"), 0, distance)


def test_without_race_checks_the_race_goes_unnoticed():
    assert exchange("", 1, check_races=False).tolist() == [t ^ 1 for t in range(64)]


AFTER_READ = f"""{OWN_WORD} {OWN_SHARED}
st.shared.u32 [%r5], %r0;
bar.sync 0;
xor.b32 %r6, %r5, DISTANCE;
ld.shared.u32 %r7, [%r6];
BARRIER
st.shared.u32 [%r5], %r7;"""


@pytest.mark.parametrize(
    ("barrier", "distance", "race"),
    [("bar.sync 0;", 128, False), ("bar.warp.sync -1;", 4, False), ("bar.warp.sync -1;", 128, True), ("", 4, True)],
)
def test_a_write_after_a_read_needs_a_barrier(barrier, distance, race):
    text = module(AFTER_READ.replace("BARRIER", barrier).replace("DISTANCE", str(distance)), shared=WORDS)
    if not race:
        run_small(text, block=64)
        return
    found = found_in(text, block=64)
    assert found.code == "race"
    assert found.other is not None
    assert (found.other.kind, found.other.line) == ("read", line_of(text, "^ld.shared"))


def test_a_read_in_an_earlier_phase_of_the_warp_still_collides_with_another_warp():
    body = f"""{OWN_WORD} {OWN_SHARED}
    setp.lt.u32 %p0, %r0, 32; st.shared.u32 [%r5], %r0; bar.sync 0;
    @%p0 ld.shared.u32 %r7, [%r5];
    bar.warp.sync -1; xor.b32 %r6, %r5, 128;
    @!%p0 st.shared.u32 [%r6], %r0;"""
    found = found_in(module(body, shared=WORDS), block=64)
    assert (found.code, found.thread) == ("race", 32)
    assert found.other is not None
    assert (found.other.kind, found.other.thread) == ("read", 0)


def test_two_writes_of_one_instruction_to_one_place_are_a_race():
    text = module(f"{OWN_WORD} {OWN_SHARED}\nst.shared.u32 [%r4], 7;", shared=WORDS)
    found = found_in(text)
    check_line(found, text, "^st.shared")
    assert found.code == "race"
    assert found.other is not None
    assert (found.other.kind, found.other.line) == ("write", found.line)


def test_two_writes_of_different_instructions_are_a_race():
    body = f"""{OWN_WORD} {OWN_SHARED} setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 40;
    @%p0 st.shared.u32 [%r4], 1;
    @%p1 st.shared.u32 [%r4], 2;"""
    found = found_in(module(body, shared=WORDS), block=64)
    assert (found.code, found.thread, found.other and found.other.thread) == ("race", 40, 0)


def test_neighbouring_sixteen_bit_values_do_not_race_but_the_same_ones_do():
    body = f"{OWN_WORD} mov.u32 %r4, words; SHIFT mad.lo.u32 %r5, %r6, 2, %r4;\nst.shared.u16 [%r5], %r0;"
    run_small(module(body.replace("SHIFT", "mov.u32 %r6, %r0;"), shared=WORDS))
    assert found_in(module(body.replace("SHIFT", "shr.u32 %r6, %r0, 1;"), shared=WORDS)).code == "race"


def test_a_word_collides_with_half_of_it():
    body = f"""{OWN_WORD} mov.u32 %r4, words; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1;
    @%p0 st.shared.u32 [%r4], 1;
    @%p1 st.shared.u16 [%r4+2], %r0;"""
    assert found_in(module(body, shared=WORDS)).code == "race"


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_blocks_are_never_ordered_among_each_other(barrier):
    body = f"""{OWN_WORD} setp.eq.u32 %p0, %r3, 0; setp.eq.u32 %p1, %r3, 32;
    @%p0 st.global.u32 [%rd1], 1; {barrier}
    @%p1 st.global.u32 [%rd1], 2;"""
    found = found_in(module(body), grid=2)
    assert (found.code, found.block, found.other and found.other.block) == ("race", 1, 0)


def test_a_barrier_orders_global_memory_within_a_block():
    body = f"""{OWN_WORD} st.global.u32 [%rd2], %r0; bar.sync 0;
    xor.b32 %r4, %r3, 1; mad.wide.u32 %rd3, %r4, 4, %rd1; ld.global.u32 %r5, [%rd3];"""
    run_small(module(body), grid=2)
    assert found_in(module(body.replace("bar.sync 0;", "")), grid=2).code == "race"
    assert found_in(module(body.replace("%r3, 1;", "%r3, 32;")), grid=2).code == "race"


def test_a_thread_never_races_with_itself():
    body = f"{OWN_WORD} {OWN_SHARED} st.shared.u32 [%r5], 1; ld.shared.u32 %r6, [%r5]; st.shared.u32 [%r5], %r6;"
    run_small(module(body, shared=WORDS), block=64)


def test_reads_are_remembered_through_a_loop_without_filling_memory(monkeypatch):
    monkeypatch.setattr(races, "MAX_READS", 1000)
    body = f"""{OWN_WORD} {OWN_SHARED} st.shared.u32 [%r5], %r0; bar.sync 0; mov.u32 %r6, 0; xor.b32 %r8, %r5, 4;
again: setp.ge.u32 %p0, %r6, 200; @%p0 bra done;
ld.shared.u32 %r7, [%r5]; add.u32 %r6, %r6, 1; bra again;
done: BARRIER
st.shared.u32 [%r8], %r7;"""
    found = found_in(module(body.replace("BARRIER", ""), shared=WORDS), block=64)
    assert found.code == "race"
    assert found.other is not None
    assert found.other.kind == "read"
    run_small(module(body.replace("BARRIER", "bar.sync 0;"), shared=WORDS), block=64)


def test_compacting_keeps_the_latest_read_of_each_place():
    detector = races.RaceDetector(1024, 4, (64, 64), lambda position: (position, "memory"), across_blocks=False)
    positions = np.arange(64) * 4
    for step in range(1, 200):
        detector.read(slice(None), positions, 4, (0, 256), step)
    detector._compact()
    (kept,) = detector._reads
    assert kept.places.size == 64
    assert (kept.steps == 199).all()

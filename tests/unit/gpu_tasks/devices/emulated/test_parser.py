"""The parser takes all of a text or refuses it with the line of the first thing it does not know."""

import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_tasks.devices.emulated.findings import PtxError
from gpu_tasks.devices.emulated.machine import Machine
from gpu_tasks.devices.emulated.memory import GlobalMemory
from gpu_tasks.devices.emulated.parser import Address, Immediate, Register, Symbol, Vector, parse
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.records import BadInput
from tests.unit.gpu_tasks.devices.emulated.launching import FIRST_LINE, VARIANTS, module, run_small

TEXTS = [text for variant in VARIANTS for text in load_kernels(variant=variant).texts]


def test_a_module_becomes_a_kernel():
    kernel = parse(
        module(
            "@!%p0 ld.global.nc.v2.f32 {%f0, %f1}, [%rd0+8];\nagain:\nst.shared.f32 [a + -4], 0f3F800000;\nbra again;",
            parameters="out x",
            shared=".shared .align 4 .b8 a[6];\n.shared .align 16 .b8 b[8];",
        )
    )
    assert (kernel.name, kernel.target, kernel.parameters) == ("small", "sm_80", ["out", "x"])
    assert kernel.shared == {"a": 0, "b": 16}
    assert kernel.shared_bytes == 24
    assert kernel.registers["%f19"] == "f32"
    assert kernel.labels == {"again": 1}
    load, store, branch, _ = kernel.code
    assert load.guard == ("%p0", True)
    assert load.operands == (Vector((Register("%f0"), Register("%f1"))), Address(Register("%rd0"), 8))
    assert store.operands == (Address(Symbol("a"), -4), Immediate(0x3F800000, is_float=True))
    assert branch.operands == (Symbol("again"),)
    assert load.line == FIRST_LINE + 1


def test_comments_count_as_blank_and_keep_the_line_numbers():
    kernel = parse(module("// mov.u32 %r0, 1;\n/* mov.u32\n%r0, 2; */ mov.u32 %r0, 3; // last"))
    assert next((i.line, i.mnemonic) for i in kernel.code) == (FIRST_LINE + 2, "mov.u32")


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.split(".entry ")[1].split("(")[0])
def test_the_committed_kernels_are_consumed_whole(text):
    statements = [line.strip() for line in text.splitlines() if line.strip().endswith(";")]
    instructions = [line for line in statements if not line.startswith((".reg", ".shared", ".extern"))]
    assert len(parse(text).code) == len(instructions)


BODY = FIRST_LINE
REFUSED = [
    ("mov.u32 %r0, 1", "ptx_syntax", BODY),  # the semicolon is missing, and the next statement runs into it
    ("mov.u32 %r0 1;", "ptx_syntax", BODY),
    ("mov.u32 %r0, 1,;", "ptx_syntax", BODY),
    ("mov.u32 %r0, , 1;", "ptx_syntax", BODY),
    ("mov.u32 %r0, 1 2;", "ptx_syntax", BODY),
    ("add.f32 %f0, 0f3F8, 0f00000000;", "ptx_syntax", BODY),
    ("ld.shared.f32 %f0, [%r0;", "ptx_syntax", BODY),
    ("ld.shared.f32 %f0, [%r0+%r1];", "ptx_syntax", BODY),
    ("ld.shared.v2.f32 {%f0 %f1}, [%r0];", "ptx_syntax", BODY),
    ("@%p0, mov.u32 %r0, 1;", "ptx_syntax", BODY),
    ("{ mov.u32 %r0, 1; }", "ptx_syntax", BODY),
    ("here:\nmov.u32 %r0, 1;\nhere:", "ptx_syntax", BODY + 2),
    (".reg .u32 %r0;", "ptx_syntax", BODY),
    (".reg .f16 %h0;", "ptx_syntax", BODY),
    (".reg .u32 %z<99999>;", "ptx_too_large", BODY),
    (".local .align 4 .b8 l[4];", "ptx_syntax", BODY),
    ("mov.u32 %r0, 1; §", "ptx_syntax", BODY),
    ("mov.u32 %r0, 010;", "ptx_syntax", BODY),  # octal in PTX
    ("mov.u32 %r0, 08;", "ptx_syntax", BODY),
    ("mov.u32 %r0, -00;", "ptx_syntax", BODY),
    ("ld.global.u32 %r0, [%rd0+010];", "ptx_syntax", BODY),
    ("ld.global.u32 %r0, [%rd0+-010];", "ptx_syntax", BODY),
    ("ld.global.u32 %r0, [%rd0-4];", "ptx_syntax", BODY),
    ("ld.global.u32 %r0, [%rd0--4];", "ptx_syntax", BODY),
    (".reg .u32 %q<010>;", "ptx_syntax", BODY),
    (".shared .align 4 .b8 a[010];", "ptx_syntax", BODY),
    (".shared .align 04 .b8 a[8];", "ptx_syntax", BODY),
    (".shared .align 3 .b8 a[8];", "ptx_syntax", BODY),
    (".shared .align 0 .b8 a[8];", "ptx_syntax", BODY),
    (".shared .align 4 .b8 a[0];", "ptx_syntax", BODY),
    (".shared .align 4 .b8 out[8];", "ptx_syntax", BODY),
    (".shared .align 4 .b8 a[8];\na:", "ptx_syntax", BODY + 1),
    ("out:", "ptx_syntax", BODY),
    ("mov.u32 %q, 1;\n.reg .u32 %q;", "ptx_undeclared", BODY + 1),
    ("@%q ret;\n.reg .pred %q;", "ptx_undeclared", BODY + 1),
    ("mov.u32 %r0, a;\n.shared .align 4 .b8 a[8];", "ptx_undeclared", BODY + 1),
    ("ret;\n}\n.visible .entry other() {", "ptx_syntax", BODY + 2),
]


@pytest.mark.parametrize(("body", "code", "line"), REFUSED, ids=[body for body, _, _ in REFUSED])
def test_malformed_statements_are_refused_with_their_line(body, code, line):
    with pytest.raises(PtxError) as refused:
        parse(module("\n" + body))
    assert (refused.value.code, refused.value.line) == (code, line + 1)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (".version 7.0", ".version 9.9", 1),
        (".version 7.0\n", "", 1),
        (".version 7.0", ".version 6.5", 2),
        (".version 7.0", ".version 7.9", 1),
        (".target sm_80", ".target sm_90", 2),
        (".param .u64 out", ".param .u64 out,", 4),
        (".param .u64 out", ".param .u64 out .param .u64 more", 4),
        (".param .u64 out", ".param .u64 out, .param .u64 out", 4),
        (".visible", ".extern .shared .align 48 .b8 d[];\n.visible", 4),
        (".visible", ".extern .shared .align 16 .b8 out[];\n.visible", 5),
        (".target sm_80", ".target sm_90a", 2),
        (".target sm_80", ".target sm_75", 2),
        (".address_size 64", ".address_size 32", 3),
        (".u64 out", ".u32 out", 4),
        ("}\n", "", 9),
    ],
)
def test_another_header_than_the_emulator_can_run_is_refused(old, new, line):
    with pytest.raises(PtxError) as refused:
        parse(module("").replace(old, new))
    assert abs(refused.value.line - line) <= (5 if ".target" in new else 1)


UNKNOWN = [
    ("ex2.approx.f32 %f0, 0f3F800000;", "ptx_unknown_instruction", "not in the emulated subset"),
    ("add.f32 %f0, 0f3F800000, 0f3F800000;", "ptx_unknown_instruction", "contract"),
    ("add.rn.ftz.f32 %f0, 0f3F800000, 0f3F800000;", "ptx_unknown_instruction", "not in the emulated subset"),
    ("ld.shared.nc.f32 %f0, [%r0];", "ptx_unknown_instruction", "not in the emulated subset"),
    ("ld.global.v3.f32 {%f0, %f1, %f2}, [%rd0];", "ptx_unknown_instruction", "not in the emulated subset"),
    ("atom.shared.add.u32 %r0, [%r1], 1;", "ptx_unknown_instruction", "not in the emulated subset"),
    ("bar.sync 1;", "ptx_unknown_instruction", "barrier 0"),
    ("bar.sync 0, 64;", "ptx_operands", "expected 1 operands"),
    ("@%p0 bar.sync 0;", "ptx_unknown_instruction", "without a guard"),
    ("bar.warp.sync 1;", "ptx_operands", "subset"),
    ("shfl.sync.idx.b32 %b0, %b1, 0, 31, 0xFFFF;", "ptx_operands", "subset"),
    ("cp.async.cg.shared.global [%r0], [%rd0], 8;", "ptx_operands", "subset"),
    ("add.u32 %r0, %r1;", "ptx_operands", "expected 3 operands"),
    ("add.u32 1, %r1, %r2;", "ptx_operands", "destination"),
    ("add.u32 %r0, %tid.x, 1;", "ptx_undeclared", "%tid.x"),
    ("add.u32 %r0, %r99, 1;", "ptx_undeclared", "%r99"),
    ("add.u32 %f0, %r0, 1;", "ptx_types", "does not fit"),
    ("add.rn.f32 %f0, %f1, 1;", "ptx_types", "does not fit"),
    ("add.u32 %r0, %r0, 0f3F800000;", "ptx_types", "does not fit"),
    ("add.u32 %r0, %r0, 0x1FFFFFFFF;", "ptx_types", "does not fit"),
    ("selp.u32 %r0, %r1, %r2, %r3;", "ptx_types", "does not fit"),
    ("@%r0 mov.u32 %r0, 1;", "ptx_types", "does not fit"),
    ("mov.u32 %r0, nowhere;", "ptx_operands", "expected a register"),
    ("bra nowhere;", "ptx_undeclared", "label"),
    ("bra %r0;", "ptx_undeclared", "label"),
    ("ret %r0;", "ptx_operands", "expected 0 operands"),
    ("ld.param.u64 %rd0, [nowhere];", "ptx_operands", "parameter"),
    ("ld.global.f32 %f0, %rd0;", "ptx_operands", "brackets"),
    ("ld.global.f32 {%f0, %f1}, [%rd0];", "ptx_operands", "register"),
    ("ld.global.v2.f32 %f0, [%rd0];", "ptx_operands", "register"),
    ("ld.global.f32 %f0, [%r0];", "ptx_types", "does not fit"),
    ("ld.global.b16 %f0, [%rd0];", "ptx_types", "does not fit"),  # would have to keep bits, not the number
    ("ld.shared.b16 %f0, [%r0];", "ptx_types", "does not fit"),
    ("st.global.b16 [%rd0], %f0;", "ptx_types", "does not fit"),
    (".reg .b64 %q; ld.global.f32 %q, [%rd0];", "ptx_types", "does not fit"),
    ("ld.global.v4.u64 {%rd0, %rd1, %rd2, %rd3}, [%rd4];", "ptx_unknown_instruction", "not in the emulated subset"),
]


@pytest.mark.parametrize(("body", "code", "reason"), UNKNOWN, ids=[body for body, _, _ in UNKNOWN])
def test_what_is_outside_the_subset_is_refused_before_anything_runs(body, code, reason):
    with pytest.raises(PtxError, match=reason) as refused:
        run_small(module("\n" + body))
    assert (refused.value.code, refused.value.line) == (code, FIRST_LINE + 1)


ACCEPTED = [
    "mov.u32 %r0, 0;",
    "mov.u32 %r0, 0x10;",
    "mov.u32 %r0, -10;",
    "ld.global.u32 %r0, [%rd0+-4];",
    "ld.global.u32 %r0, [%rd0+0];",
    "ld.global.u32 %rd1, [%rd0];",
    "ld.global.b32 %f0, [%rd0];",
    "ld.global.v2.u64 {%rd1, %rd2}, [%rd0];",
    ".shared .align 256 .b8 a[8]; mov.u32 %r0, a;",
    "small: bra small;",
    "mov.u32 %r0, 1; .shared .align 4 .b8 mov[8]; mov.u32 %r0, mov;",
    "@%p0 mov.u32 %r0, 0x1A; .shared .align 4 .b8 x1A[8]; mov.u32 %r0, x1A;",
    "bra on;\non:",
]
STRICTER = {  # ptxas accepts these: no difference of opinion, just outside the subset
    "add.rn.ftz.f32 %f0, 0f3F800000, 0f3F800000;",
    "mov.u32 %r0, 010;",
    "mov.u32 %r0, -00;",
    "ld.global.u32 %r0, [%rd0+010];",
    "ld.global.u32 %r0, [%rd0+-010];",
    ".reg .u32 %q<010>;",
    ".shared .align 4 .b8 a[010];",
    ".shared .align 04 .b8 a[8];",
    "{ mov.u32 %r0, 1; }",
    ".reg .f16 %h0;",
    ".reg .u32 %z<99999>;",
    ".local .align 4 .b8 l[4];",
    "ret;\n}\n.visible .entry other() {",
    "ex2.approx.f32 %f0, 0f3F800000;",
    "add.f32 %f0, 0f3F800000, 0f3F800000;",
    "atom.shared.add.u32 %r0, [%r1], 1;",
    "bar.sync 1;",
    "bar.sync 0, 64;",
    "@%p0 bar.sync 0;",
    "bar.warp.sync 1;",
    "shfl.sync.idx.b32 %b0, %b1, 0, 31, 0xFFFF;",
    "add.u32 %r0, %r0, 0x1FFFFFFFF;",
    "ld.global.b16 %f0, [%rd0];",
    "ld.shared.b16 %f0, [%r0];",
    "st.global.b16 [%rd0], %f0;",
    ".reg .b64 %q; ld.global.f32 %q, [%rd0];",
}


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_the_subset_admits_is_bound(body):
    Machine(parse(module(body)), GlobalMemory(), (1, 1, 1), (32, 1, 1))


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed: its verdicts are not compared")
@pytest.mark.parametrize("body", [*ACCEPTED, *(body for body, _, _ in [*REFUSED, *UNKNOWN])])
def test_ptxas_refuses_nothing_that_is_accepted_here(body, tmp_path):
    text = module("\n" + body)
    (tmp_path / "text.ptx").write_text(text, encoding="utf-8")
    command = ["ptxas", "-arch=sm_80", str(tmp_path / "text.ptx"), "-o", str(tmp_path / "out")]
    by_ptxas = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        Machine(parse(text), GlobalMemory(), (1, 1, 1), (32, 1, 1))
    except BadInput:
        assert by_ptxas == (body in STRICTER)
    else:
        assert by_ptxas


HEADERS = [
    (".version 7.0", ".version 7.8", True),
    (".version 7.0", ".version 8.8", True),
    (".version 7.0\n.target sm_80", ".version 7.8\n.target sm_90", True),
    (".param .u64 out", "", True),
    (".param .u64 out", ".param .u64 out, .param .u64 more", True),
    (".visible", ".extern .shared .align 128 .b8 d[];\n.visible", True),
    (".version 7.0", ".version 6.5", False),
    (".version 7.0", ".version 7.9", False),
    (".version 7.0", ".version 8.9", False),
    (".version 7.0\n.target sm_80", ".version 7.7\n.target sm_90", False),
    (".param .u64 out", ".param .u64 out,", False),
    (".param .u64 out", ", .param .u64 out", False),
    (".param .u64 out", ".param .u64 out .param .u64 more", False),
    (".param .u64 out", ".param .u64 out, .param .u64 out", False),
    (".visible", ".extern .shared .align 48 .b8 d[];\n.visible", False),
    (".visible", ".extern .shared .align 0 .b8 d[];\n.visible", False),
]


@pytest.mark.parametrize(("old", "new", "accepted"), HEADERS)
def test_headers_are_accepted_or_refused(old, new, accepted):
    text = module("").replace(old, new)
    if accepted:
        parse(text)
        return
    with pytest.raises(PtxError):
        parse(text)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed: its verdicts are not compared")
@pytest.mark.parametrize(("old", "new", "accepted"), HEADERS)
def test_ptxas_says_the_same_of_headers(old, new, accepted, tmp_path):
    (tmp_path / "text.ptx").write_text(module("").replace(old, new), encoding="utf-8")
    command = ["ptxas", "-arch=sm_90", str(tmp_path / "text.ptx"), "-o", str(tmp_path / "out")]
    assert (subprocess.run(command, capture_output=True, check=False).returncode == 0) == accepted


SMALL = module("mov.u32 %r0, %tid.x;\n@%p0 bra on;\nadd.u32 %r1, %r0, 0x1F;\non:\nst.shared.f32 [%r0+4], %f0;")
ALPHABET = st.sampled_from(
    [
        *"%.,;:@!{}[]()+-<>/* \n09xfrU",
        "0f3F800000",
        "7U",
        "99999999999999999999",
        "[on]",
        "ret;",
        "bra on;",
        ".reg .u32 %q;",
        "é",
    ]
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_mutated_text_is_run_or_refused_but_never_crashes(data):
    text = SMALL
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        text = text[:start] + "".join(data.draw(st.lists(ALPHABET, max_size=4))) + text[end:]
    try:
        run_small(text, limit=200)
    except BadInput as refused:
        assert refused.code
        assert len(refused.message.splitlines()) == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_committed_kernel_with_lines_lost_or_swapped_never_crashes(data):
    lines = data.draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        first, second = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if data.draw(st.booleans()):
            lines[first], lines[second] = lines[second], lines[first]
        else:
            del lines[first]
    try:
        parse("\n".join(lines))
    except PtxError as refused:
        assert 1 <= refused.line <= len(lines)

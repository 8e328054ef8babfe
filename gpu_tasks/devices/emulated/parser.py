"""PTX text to a ``Kernel``: one entry, the directives that kernels here need, and nothing skipped.

Every statement has to match one of a few forms as a whole, and every character has to belong to a statement; the
first that does not is refused with its line. Grammar after the PTX ISA manual, version 7.0, sections 4 to 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from gpu_tasks.devices.emulated.findings import PtxError

MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_REGISTERS = 65536
REGISTER_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64")
TARGETS = {"sm_80": (7, 0), "sm_90": (7, 8)}  # and the first PTX version that knows each

_NAME, _REG, _INT = r"[A-Za-z_$][\w$]*", r"%[A-Za-z_]\w*(?:\.[xyz])?", r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20})U?"
_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_OPERAND = re.compile(
    rf"(?P<register>{_REG})|(?P<float>0[fF][0-9a-fA-F]{{8}})|(?P<integer>{_INT})|(?P<symbol>{_NAME})"
    rf"|\[\s*(?P<base>{_REG}|{_NAME})\s*(?:\+\s*(?P<offset>{_INT}))?\s*\]"
    rf"|\{{\s*(?P<vector>{_REG}(?:\s*,\s*{_REG})*)\s*\}}",
    re.ASCII,
)
_PARAMETER = rf"\.param\s+\.u64\s+{_NAME}"
_SEPARATOR = re.compile(r"\s*,\s*")
_HEADER = [
    (re.compile(form, re.ASCII), expected)
    for form, expected in (
        (r"\.version\s+(?P<version>[78]\.[0-8])\b", "a .version from 7.0 to 7.8 or 8.0 to 8.8"),
        (r"\.target\s+(?P<target>\w+)", "a .target"),
        (r"\.address_size\s+64\b", ".address_size 64"),
        (rf"(?:\.extern\s+\.shared\s+\.align\s+(?P<align>\d{{1,4}})\s+\.b8\s+(?P<dynamic>{_NAME})\s*\[\s*\]\s*;)?", ""),
        (rf"(?:\.visible\s+)?\.entry\s+(?P<name>{_NAME})", "one .entry"),
        (rf"\((?P<parameters>(?:\s*{_PARAMETER}(?:\s*,\s*{_PARAMETER})*)?)\s*\)", "parameters, all .param .u64"),
        (r"(?:\.reqntid\s+(?P<block>\d+(\s*,\s*\d+){0,2}))?", ""),
        (r"\{", "'{'"),
    )
]
_DECLARE = re.compile(r"\.reg\s+\.(\w+)\s+(%[A-Za-z_]\w*)(?:<(\d{1,5})>)?\s*;", re.ASCII)
_SHARED = re.compile(rf"\.shared\s+\.align\s+(\d{{1,3}})\s+\.b8\s+({_NAME})\s*\[(\d{{1,9}})\]\s*;", re.ASCII)
_USED = re.compile(rf"{_REG}|(?<![\w$.%]){_NAME}", re.ASCII)
_LABEL = re.compile(rf"({_NAME})\s*:", re.ASCII)
_INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z]\w*(?:\.\w+)*)(?=[\s;])\s*([^;]*);", re.ASCII)


@dataclass(frozen=True)
class Register:
    """A register operand, with its ``%``."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A constant: an integer, or the bit pattern of a float32."""

    value: int
    is_float: bool = False


@dataclass(frozen=True)
class Symbol:
    """A label, or the name of a shared variable or parameter."""

    name: str


@dataclass(frozen=True)
class Address:
    """``[base + offset]``; the base is a register or a symbol."""

    base: Register | Symbol
    offset: int


@dataclass(frozen=True)
class Vector:
    """``{%f0, %f1}``."""

    registers: tuple[Register, ...]


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True)
class Instruction:
    """One instruction: ``guard`` is its predicate register and whether it is negated."""

    line: int
    mnemonic: str
    operands: tuple[Operand, ...]
    guard: tuple[str, bool] | None


@dataclass
class Kernel:
    """One entry of one PTX module. ``shared`` maps a variable to its offset in the block's shared memory."""

    target: str
    name: str
    parameters: list[str]
    block_required: list[int] | None
    dynamic_shared: str | None
    dynamic_alignment: int = 16
    registers: dict[str, str] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)

    @property
    def dynamic_start(self) -> int:
        """Offset of the dynamic shared memory in the block's: after the static, aligned to 16 bytes or more."""
        return -(-self.shared_bytes // self.dynamic_alignment) * self.dynamic_alignment


@lru_cache(maxsize=32)
def parse(text: str) -> Kernel:
    """Parse one module; raises ``PtxError`` with the line of the first thing that is not understood."""
    if len(text) > MAX_TEXT_BYTES:
        raise PtxError("ptx_too_large", 1, f"expected at most {MAX_TEXT_BYTES} characters, found {len(text)}")
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._position, self._counted, self._line = text, 0, 0, 1
        self._names: set[str] = set()  # of parameters, shared variables and labels
        self._used: set[str | None] = set()  # registers and symbols, by instructions so far

    def module(self) -> Kernel:
        found: dict[str, str | None] = {}
        alignment = 16
        for form, expected in _HEADER:
            part = self._need(form, expected).groupdict()
            found |= part
            if "target" in part:
                self._check_target(part["target"], found["version"] or "")
            if part.get("dynamic"):
                self._names.add(part["dynamic"])
                alignment = self._alignment(part["align"])
        parameters: dict[str, Any] = {}
        for name in re.findall(rf"\.u64\s+({_NAME})", found["parameters"] or "", re.ASCII):
            self._declare(parameters, name, None)
        block = [self._number(size.strip()) for size in found["block"].split(",")] if found["block"] else None
        kernel = Kernel(found["target"] or "", found["name"] or "", list(parameters), block, found["dynamic"])
        kernel.dynamic_alignment = max(16, alignment)
        while not self._take(re.compile(r"\}")):
            self._statement(kernel)
        self._need(re.compile(r"\Z"), "the end of the text after one entry")
        return kernel

    def _check_target(self, target: str, version: str) -> None:
        if target not in TARGETS:
            raise PtxError("ptx_target", self._line, f"expected .target {' or '.join(TARGETS)}, found {target}")
        major, minor = TARGETS[target]
        if tuple(map(int, version.split("."))) < (major, minor):
            message = f"{target}: expected a .version of {major}.{minor} or later, found {version}"
            raise PtxError("ptx_target", self._line, message)

    def _statement(self, kernel: Kernel) -> None:
        if match := self._take(_DECLARE):
            kind, name, count = match.groups()
            if kind not in REGISTER_TYPES:
                raise PtxError("ptx_syntax", self._line, f".reg: unknown type .{kind}")
            for each in [f"{name}{index}" for index in range(self._number(count))] if count else [name]:
                self._declare(kernel.registers, each, kind)
            if len(kernel.registers) > MAX_REGISTERS:
                raise PtxError("ptx_too_large", self._line, f"expected at most {MAX_REGISTERS} registers")
        elif match := self._take(_SHARED):
            alignment, size = self._alignment(match[1]), self._number(match[3])
            if size == 0:
                raise PtxError("ptx_syntax", self._line, f".shared {match[2]}: expected 1 byte or more, found 0")
            offset = -(-kernel.shared_bytes // alignment) * alignment
            self._declare(kernel.shared, match[2], offset)
            kernel.shared_bytes = offset + size
        elif match := self._take(_LABEL):
            self._declare(kernel.labels, match[1], len(kernel.code), label=True)
        else:
            match = self._need(_INSTRUCTION, "a declaration, a label or an instruction")
            guard = (match[2], match[1] == "!") if match[2] else None
            kernel.code.append(Instruction(self._line, match[3], self._operands(match[4]), guard))
            self._used |= {match[2], *_USED.findall(match[4])}

    def _operands(self, text: str) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        position, text = 0, text.strip()
        while position < len(text):
            match = _OPERAND.match(text, position)
            end = _SEPARATOR.match(text, match.end()) if match else None
            if not match or (not end and match.end() < len(text)) or (end and end.end() == len(text)):
                raise PtxError("ptx_syntax", self._line, f"expected operands, found {text[position:]!r}")
            operands.append(self._operand(match))
            position = end.end() if end else len(text)
        return tuple(operands)

    def _operand(self, match: re.Match[str]) -> Operand:
        found = match.groupdict()
        if found["register"]:
            return Register(found["register"])
        if found["float"]:
            return Immediate(int(found["float"][2:], 16), is_float=True)
        if found["integer"]:
            return Immediate(self._number(found["integer"]))
        if found["symbol"]:
            return Symbol(found["symbol"])
        if found["vector"]:
            return Vector(tuple(Register(name.strip()) for name in found["vector"].split(",")))
        base = found["base"]
        base_operand = Register(base) if base.startswith("%") else Symbol(base)
        return Address(base_operand, self._number(found["offset"] or "0"))

    def _declare(self, table: dict[str, Any], name: str, value: object, *, label: bool = False) -> None:
        register = name.startswith("%")
        if name in (table if register else self._names):
            raise PtxError("ptx_syntax", self._line, f"{name} is declared twice")
        if name in self._used and not label:
            raise PtxError("ptx_undeclared", self._line, f"{name} is used before its declaration")
        table[name] = value
        if not register:
            self._names.add(name)

    def _number(self, text: str) -> int:
        """The value of an integer; those that PTX reads as octal are refused."""
        digits = text.rstrip("U")
        if re.match(r"-?0\d", digits):
            raise PtxError("ptx_syntax", self._line, f"{text}: PTX reads digits after a leading 0 as octal; not here")
        return int(digits, 16 if "x" in digits.lower() else 10)

    def _alignment(self, text: str) -> int:
        value = self._number(text)
        if value < 1 or value & (value - 1):
            raise PtxError("ptx_syntax", self._line, f".align: expected a power of two, found {value}")
        return value

    def _skip_blank(self) -> None:
        """Move to the next statement; ``_line`` is the line on which it starts."""
        start = self._position
        self._position = end = _BLANK.match(self._text, start).end()  # type: ignore[union-attr]  # matches nothing too
        self._line += self._text.count("\n", self._counted, end)
        self._counted = end

    def _take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        """Consume ``form`` if it comes next."""
        self._skip_blank()
        match = form.match(self._text, self._position)
        self._position = match.end() if match else self._position
        return match

    def _need(self, form: re.Pattern[str], expected: str) -> re.Match[str]:
        match = self._take(form)
        if match is None:
            found = self._text[self._position :].partition("\n")[0][:60]
            raise PtxError("ptx_syntax", self._line, f"expected {expected}, found {found!r}")
        return match

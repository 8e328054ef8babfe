"""PTX text to a ``Kernel``: one entry, the directives that kernels here need, and nothing skipped.

The whole text is split into tokens and every token has to be consumed; whatever is left over or unexpected is
refused with its line. Grammar after the PTX ISA manual, version 7.0, sections 4 to 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

from gpu_tasks.devices.emulated.findings import PtxError

MAX_TEXT_BYTES = 4 * 1024 * 1024
MAX_REGISTERS = 65536
REGISTER_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64")
TARGETS = ("sm_80", "sm_90")

_TOKEN = re.compile(
    r"(?P<blank>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)|(?P<word>[.%$\w][.$\w]*)|(?P<mark>[{}()\[\]<>,;:@!+-])",
    re.DOTALL | re.ASCII,
)
_FLOAT = re.compile(r"0[fF][0-9a-fA-F]{8}")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})U?")
_REGISTER = re.compile(r"%[A-Za-z_]\w*(\.[xyz])?", re.ASCII)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)


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
    """A label, or the name of a shared variable."""

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
    """One entry of one PTX module."""

    target: str
    name: str
    parameters: list[str] = field(default_factory=list)
    block_required: tuple[int, ...] | None = None
    registers: dict[str, str] = field(default_factory=dict)
    shared: dict[str, tuple[int, int]] = field(default_factory=dict)  # name: offset, bytes
    shared_bytes: int = 0
    dynamic_shared: str | None = None
    labels: dict[str, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)


@lru_cache(maxsize=32)
def parse(text: str) -> Kernel:
    """Parse one module; raises ``PtxError`` with the line of the first thing that is not understood."""
    if len(text) > MAX_TEXT_BYTES:
        raise PtxError("ptx_too_large", 1, f"expected at most {MAX_TEXT_BYTES} bytes, found {len(text)}")
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        self._next = 0
        position, self._line = 0, 1
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise PtxError("ptx_syntax", self._line, f"unexpected character {text[position]!r}")
            if match.lastgroup != "blank":
                self._tokens.append((match[0], self._line))
            self._line += match[0].count("\n")
            position = match.end()

    def module(self) -> Kernel:
        self._expect(".version")
        version = self._take()
        if not re.fullmatch(r"[678]\.\d", version):
            self._fail(f".version: expected 6.0 to 8.9, found {version}")
        self._expect(".target")
        target = self._take()
        if target not in TARGETS:
            self._fail(f".target: expected {' or '.join(TARGETS)}, found {target}", "ptx_target")
        self._expect(".address_size")
        self._expect("64")
        dynamic = self._dynamic_shared() if self._peek() == ".extern" else None
        if self._peek() == ".visible":
            self._take()
        self._expect(".entry")
        kernel = Kernel(target, self._name("an entry name"), dynamic_shared=dynamic)
        self._parameters(kernel)
        if self._peek() == ".reqntid":
            self._take()
            kernel.block_required = self._dimensions()
        self._expect("{")
        while self._peek() != "}":
            self._statement(kernel)
        self._expect("}")
        if self._next < len(self._tokens):
            self._fail(f"expected the end of the text after the entry, found {self._take()!r}")
        self._check_branches(kernel)
        return kernel

    # Directives

    def _dynamic_shared(self) -> str:
        for word in (".extern", ".shared", ".align"):
            self._expect(word)
        self._integer()
        self._expect(".b8")
        name = self._name("a variable name")
        for word in ("[", "]", ";"):
            self._expect(word)
        return name

    def _parameters(self, kernel: Kernel) -> None:
        self._expect("(")
        while self._peek() != ")":
            if kernel.parameters:
                self._expect(",")
            self._expect(".param")
            self._expect(".u64")
            kernel.parameters.append(self._fresh("a parameter name", kernel.parameters))
        self._expect(")")

    def _dimensions(self) -> tuple[int, ...]:
        sizes = [self._integer()]
        while self._peek() == "," and len(sizes) < 3:
            self._take()
            sizes.append(self._integer())
        return tuple(sizes + [1] * (3 - len(sizes)))

    def _declare_registers(self, kernel: Kernel) -> None:
        kind = self._take().removeprefix(".")
        if kind not in REGISTER_TYPES:
            self._fail(f".reg: unknown type .{kind}; known are {', '.join(REGISTER_TYPES)}")
        while True:
            name = self._take()
            if not _REGISTER.fullmatch(name) or "." in name:
                self._fail(f".reg: expected a register name, found {name!r}")
            names = [name]
            if self._peek() == "<":
                self._take()
                count = self._integer()
                names = [f"{name}{index}" for index in range(min(count, MAX_REGISTERS + 1))]
                self._expect(">")
            for each in names:
                if each in kernel.registers:
                    self._fail(f".reg: {each} is declared twice")
                kernel.registers[each] = kind
            if len(kernel.registers) > MAX_REGISTERS:
                self._fail(f".reg: expected at most {MAX_REGISTERS} registers")
            if self._peek() != ",":
                break
            self._take()
        self._expect(";")

    def _declare_shared(self, kernel: Kernel) -> None:
        self._expect(".align")
        alignment = self._integer()
        if alignment not in (1, 2, 4, 8, 16, 32, 64, 128):
            self._fail(f".align: expected a power of two up to 128, found {alignment}")
        self._expect(".b8")
        name = self._fresh("a variable name", kernel.shared)
        self._expect("[")
        size = self._integer()
        self._expect("]")
        self._expect(";")
        offset = -(-kernel.shared_bytes // alignment) * alignment
        kernel.shared[name] = (offset, size)
        kernel.shared_bytes = offset + size

    # Body

    def _statement(self, kernel: Kernel) -> None:
        word = self._peek()
        if word == ".reg":
            self._take()
            self._declare_registers(kernel)
        elif word == ".shared":
            self._take()
            self._declare_shared(kernel)
        elif self._peek(1) == ":":
            kernel.labels[self._fresh("a label", kernel.labels)] = len(kernel.code)
            self._expect(":")
        else:
            kernel.code.append(self._instruction())

    def _instruction(self) -> Instruction:
        guard = None
        if self._peek() == "@":
            self._take()
            negated = self._peek() == "!"
            if negated:
                self._take()
            guard = (self._register().name, negated)
        mnemonic = self._take()
        line = self._line
        if not re.fullmatch(r"[a-z]\w*(\.\w+)*", mnemonic, re.ASCII):
            self._fail(f"expected an instruction, found {mnemonic!r}")
        operands: list[Operand] = []
        while self._peek() != ";":
            if operands:
                self._expect(",")
            operands.append(self._operand())
        self._expect(";")
        return Instruction(line, mnemonic, tuple(operands), guard)

    def _operand(self) -> Operand:
        word = self._peek()
        if word == "[":
            return self._address()
        if word == "{":
            self._take()
            registers = [self._register()]
            while self._peek() == ",":
                self._take()
                registers.append(self._register())
            self._expect("}")
            return Vector(tuple(registers))
        if word.startswith("%"):
            return self._register()
        if _FLOAT.fullmatch(word):
            return Immediate(int(self._take()[2:], 16), is_float=True)
        if word == "-" or word[:1].isdigit():
            return Immediate(self._signed())
        return Symbol(self._name("an operand"))

    def _address(self) -> Address:
        self._expect("[")
        base = self._register() if self._peek().startswith("%") else Symbol(self._name("an address"))
        offset = 0
        if self._peek() in ("+", "-"):
            if self._peek() == "+":
                self._take()
            offset = self._signed()
        self._expect("]")
        return Address(base, offset)

    def _check_branches(self, kernel: Kernel) -> None:
        for instruction in kernel.code:
            if instruction.mnemonic == "bra":
                (target,) = instruction.operands if len(instruction.operands) == 1 else (None,)
                if not isinstance(target, Symbol) or target.name not in kernel.labels:
                    raise PtxError("ptx_syntax", instruction.line, "bra: expected one label of this kernel")

    # Tokens

    def _peek(self, ahead: int = 0) -> str:
        index = self._next + ahead
        if index >= len(self._tokens):
            if ahead == 0:
                self._fail("unexpected end of the text")
            return ""
        return self._tokens[index][0]

    def _take(self) -> str:
        word = self._peek()
        self._line = self._tokens[self._next][1]
        self._next += 1
        return word

    def _expect(self, word: str) -> None:
        found = self._take()
        if found != word:
            self._fail(f"expected {word!r}, found {found!r}")

    def _matching(self, pattern: re.Pattern[str], what: str) -> str:
        word = self._take()
        if not pattern.fullmatch(word):
            self._fail(f"expected {what}, found {word!r}")
        return word

    def _name(self, what: str) -> str:
        return self._matching(_NAME, what)

    def _fresh(self, what: str, taken: list[str] | dict[str, int] | dict[str, tuple[int, int]]) -> str:
        name = self._name(what)
        if name in taken:
            self._fail(f"{name} is declared twice")
        return name

    def _register(self) -> Register:
        return Register(self._matching(_REGISTER, "a register"))

    def _integer(self) -> int:
        return int(self._matching(_INTEGER, "an integer").rstrip("U"), 0)

    def _signed(self) -> int:
        if self._peek() == "-":
            self._take()
            return -self._integer()
        return self._integer()

    def _fail(self, reason: str, code: str = "ptx_syntax") -> NoReturn:
        raise PtxError(code, self._line, reason)

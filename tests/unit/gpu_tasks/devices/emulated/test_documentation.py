"""The table of instructions in docs/emulator.md is the subset, no more and no less."""

import itertools
import re
from pathlib import Path

from gpu_tasks.devices.emulated import instructions, machine
from gpu_tasks.devices.emulated.operations import OPERATIONS, WARP_OPERATIONS

DOCUMENT = Path(__file__).resolve().parents[5] / "docs" / "emulator.md"


def expand(pattern: str) -> list[str]:
    """``a.{b,c}`` to a.b and a.c."""
    pieces = re.split(r"[{}]", pattern)  # text and alternatives in turn
    chosen = [piece.split(",") if index % 2 else [piece] for index, piece in enumerate(pieces)]
    return ["".join(words) for words in itertools.product(*chosen)]


def documented() -> set[str]:
    section = DOCUMENT.read_text().split("## The subset")[1].split("Directives:")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in first_cells for pattern in re.findall(r"`([^`]+)`", cell) for name in expand(pattern)}


def test_the_documented_instructions_are_the_subset():
    memory = {name for name in documented() if instructions._MEMORY.fullmatch(name)}
    others = documented() - memory
    control = {"bra", "ret", "bar.sync"}
    assert others == OPERATIONS.keys() | WARP_OPERATIONS.keys() | instructions._OTHERS.keys() | control
    assert control == set(machine._CONTROL)
    forms = "{ld.global,ld.global.nc,ld.shared,st.global,st.shared}"
    small = "{u16,s16,b16,u32,s32,b32,f32}"
    assert memory == {*expand(f"{forms}{{,.v2,.v4}}.{small}"), *expand(f"{forms}{{,.v2}}.{{u64,s64,b64}}")}
    assert all(instructions._MEMORY.fullmatch(name) for name in memory)

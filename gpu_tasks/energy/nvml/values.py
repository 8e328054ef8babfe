"""What NVML hands out, made plain: bytes or text, numbers or what stands for none, bus ids in two spellings."""

from __future__ import annotations

import re

from gpu_tasks.energy.nvml.errors import NvmlBlankValue
from gpu_tasks.records import BadInput

_BLANKS = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)  # NVML_VALUE_NOT_AVAILABLE, as unsigned int and as unsigned long long
_BLANK_TEXT = re.compile(r"(\[.*\]|n/?a|not (available|supported)|unknown|)", re.IGNORECASE)
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE)


def text(value: object, what: str) -> str:
    """Text of a value that is bytes with old bindings and str with new ones, without padding.

    Raises ``NvmlBlankValue`` for what stands for no text: "[N/A]", "Unknown", nothing at all, another type.
    """
    plain = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    plain = plain.split("\0")[0].strip() if isinstance(plain, str) else ""
    if _BLANK_TEXT.fullmatch(plain):
        raise NvmlBlankValue(what, value)
    return plain


def count(value: object, what: str) -> int:
    """A number that counts something; raises ``NvmlBlankValue`` for text, all bits set, and anything negative."""
    if type(value) is not int or value < 0 or value in _BLANKS:
        raise NvmlBlankValue(what, value)
    return value


def switch(value: object, what: str) -> bool:
    """Whether something is on: NVML's 1 and 0; raises ``NvmlBlankValue`` for anything else."""
    if type(value) is not int or value not in (0, 1):
        raise NvmlBlankValue(what, value)
    return value == 1


def bus_id(value: str | bytes) -> str:
    """A PCI bus id as NVML spells it, ``00000000:50:00.0``.

    CUDA and sysfs write ``0000:50:00.0``, in either case of letters; a missing domain or function is 0. Raises
    ``BadInput`` (``bad_pci_bus_id``) on anything else.
    """
    plain = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    found = _BUS_ID.fullmatch(plain.split("\0")[0].strip())
    if not found:
        raise BadInput("bad_pci_bus_id", f"PCI bus id: expected such as 0000:50:00.0, found {plain[:80]!r}")
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups())
    return f"{domain:08X}:{bus:02X}:{device:02X}.{function:X}"

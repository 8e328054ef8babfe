"""Converting an original record, and saying something else in one of its fields."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.convert.forms import convert_file
from gpu_tasks.records import BadInput, RunRecord

Where = tuple[str | int, ...]


def converted(content: dict[str, Any], folder: Path, name: str = "original.json") -> RunRecord:
    path = folder / name
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return convert_file(path)


def refused(content: dict[str, Any], folder: Path) -> str:
    with pytest.raises(BadInput) as caught:
        converted(content, folder)
    assert str(folder / "original.json") in caught.value.message
    assert "expected" in caught.value.message and "found" in caught.value.message
    return caught.value.message


def leaves(value: Any, path: Where = ()) -> Iterator[tuple[Where, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path, value
    else:
        for key, item in items:
            yield from leaves(item, (*path, key))


def with_leaf(content: dict[str, Any], path: Where, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(content)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def other_value(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.001 + 1e-9
    if len(value) == 64:
        return value[::-1] if value != value[::-1] else "0" * 64
    if value[:4].isdecimal() and value.endswith(("Z", "+00:00")):
        return value.replace("2026", "2027")
    return value + "x"

"""Rows of generated runs as lines of COPY, which PostgreSQL reads faster than any INSERT."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects.postgresql import JSONB

LARGE_NUMBER = re.compile(r"\d{7,}(?:\.\d+)?")
DIGITS = [f"{random.Random(n).random():.10f}"[1:] for n in range(997)]
"""Fractions of a second: what makes raw readings hard to compress."""


class Sheet:
    """Lines for one table: every row is ``template`` but for what ``add`` is given."""

    def __init__(self, table: Table, template: Mapping[str, Any]) -> None:
        columns = [column for column in table.columns if column.name in template]
        self.table = table
        self.names = [column.name for column in columns]
        self.rows = 0
        self._json = {column.name for column in columns if isinstance(column.type, JSONB)}
        self._places = {name: place for place, name in enumerate(self.names)}
        self._template = [self._cell(name, template[name]) for name in self.names]
        self._lines: list[str] = []

    def add(self, **changes: Any) -> None:
        """One row. A JSON column takes text that is JSON already, or what becomes it."""
        cells = self._template.copy()
        for name, value in changes.items():
            cells[self._places[name]] = self._cell(name, value)
        self._lines.append("\t".join(cells))

    def copy(self, cursor: Any) -> None:
        """Hand what was added since the last time to PostgreSQL."""
        if self._lines:
            stream = io.StringIO("\n".join(self._lines) + "\n")
            names = ", ".join(self.names)
            cursor.copy_expert(f'COPY "{self.table.name}" ({names}) FROM STDIN', stream)
            self.rows += len(self._lines)
            self._lines.clear()

    def _cell(self, name: str, value: Any) -> str:
        if value is None:
            return "\\N"
        if isinstance(value, bool):
            return "t" if value else "f"
        if isinstance(value, datetime):
            return value.isoformat()
        if name in self._json:
            return value if isinstance(value, str) else json.dumps(value)
        if isinstance(value, list):
            return "{" + ",".join(self._cell(name, part) for part in value) + "}"
        return str(value)


class Readings:
    """A JSON text whose large numbers (moments and counter readings) are other ones in every row, in rising order."""

    def __init__(self, example: Any) -> None:
        self._pieces = LARGE_NUMBER.split(json.dumps(example))
        self._moments = ["." in number for number in LARGE_NUMBER.findall(json.dumps(example))]

    def text(self, start: int) -> str:
        """The JSON of a row whose first reading is at ``start``, any integer."""
        parts = [self._pieces[0]]
        for n, (moment, piece) in enumerate(zip(self._moments, self._pieces[1:], strict=True)):
            parts.append(
                f"{start + 2 * n}{DIGITS[(start * 31 + n) % 997]}" if moment else str(start * 977 + 76_543 * n)
            )
            parts.append(piece)
        return "".join(parts)

"""The dashboard's statements as Grafana would send them: for the tests and for the benchmark of the history.

Grafana replaces two things before PostgreSQL sees a statement, and so does ``as_sent``:

- ``$__timeFilter(COLUMN)`` becomes ``COLUMN BETWEEN 'FROM' AND 'TO'``, the chosen range of time;
- ``${NAME:sqlstring}`` becomes the values of a variable, separated by commas, each in single quotes with the quotes in
  it doubled.

Every other macro or form of a variable is refused here, so that none comes in unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "grafana"
DASHBOARD = FOLDER / "dashboards" / "nights.json"

_TIME_FILTER = re.compile(r"\$__timeFilter\(([a-z_.]+)\)")
_VARIABLE = re.compile(r"\$\{(\w+):sqlstring\}")


@dataclass(frozen=True)
class Statement:
    """One query of the dashboard: of a panel, an annotation or a variable."""

    title: str
    sql: str
    repeated: bool = False


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def statements(found: Mapping[str, Any]) -> list[Statement]:
    """Every query of the dashboard in the order of the file: variables, annotations, panels."""
    variables = [Statement(f"variable {one['name']}", one["query"]) for one in found["templating"]["list"]]
    annotations = [Statement(one["name"], one["target"]["rawSql"]) for one in found["annotations"]["list"]]
    panels = [
        Statement(panel["title"].partition(":")[0], target["rawSql"], "repeat" in panel)
        for panel in found["panels"]
        for target in panel["targets"]
    ]
    return [*variables, *annotations, *panels]


def as_sent(sql: str, since: str, until: str, variables: Mapping[str, Sequence[str]]) -> str:
    """``sql`` with its macros and variables replaced; raises ``ValueError`` on what is not known here."""
    sent = _TIME_FILTER.sub(lambda place: f"{place[1]} BETWEEN '{since}' AND '{until}'", sql)
    if "$" in _VARIABLE.sub("", sent):
        raise ValueError(f"expected $__timeFilter(column) and ${{name:sqlstring}} only, found {sent!r}")
    return _VARIABLE.sub(lambda place: ", ".join(_quoted(value) for value in variables[place[1]]), sent)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

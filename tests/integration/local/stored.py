"""What an installation of a test has stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from local.databases import engine_of
from local.paths import Home
from local.stack import hold
from tests.integration.regression.natural import natural


def rows(home: Home, dsn: str | None = None) -> dict[str, list[Any]]:
    with hold(home, dsn, need_airflow=False) as held, engine_of(held.databases().writer) as engine:
        return natural(engine)


def of_others(found: dict[str, list[Any]], whose: Callable[[dict[str, Any]], bool]) -> dict[str, list[Any]]:
    """What the tables of ``rows`` have, less what is of the runs that ``whose`` is true of."""
    left_out = {dict(row)["run_id"] for row in found["run"] if whose(dict(row))}
    return {table: [row for row in each if dict(row).get("run_id") not in left_out] for table, each in found.items()}


def is_trained(run: dict[str, Any]) -> bool:
    return bool(run["workload"] == "learner")


def is_imported(run: dict[str, Any]) -> bool:
    """Whether it is of the made-up originals, which no baseline is."""
    return is_trained(run) and bool(re.fullmatch(r"learner-(measure|qualification)-[0-9a-f]{12}", run["dag_run_id"]))


def kept(home: Home) -> dict[str, bytes]:
    folder = home.records
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.json")}


def names(home: Home) -> set[str]:
    return {dict(row)["dag_run_id"] for row in rows(home)["run"]}

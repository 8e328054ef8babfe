"""Rows that generated runs have in common: boards, environments, sources and the payload, each made when first met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, Table

from regression.results import rows, tables
from tests.benchmarks.history_story import Board, digest
from tests.integration.regression.example_records import ENVIRONMENT, GPU, payload

Row = dict[str, Any]


class Shared:
    """Keys by what the story calls them."""

    def __init__(self, writer: Engine, fleet: Sequence[Board]) -> None:
        self.writer = writer
        self.devices: dict[int, int] = {}
        self.environments: dict[int, tuple[int, str]] = {}
        self.sources: dict[int, int] = {}
        identity = payload()
        with writer.begin() as connection:
            self.payload_id = insert_row(connection, tables.payload, rows.payload_row(identity))
            connection.execute(tables.payload_draw.insert(), rows.payload_draw_rows(identity, self.payload_id))
            for board in fleet:
                gpu = replace(GPU, uuid=board.uuid, name=board.model)
                self.devices[board.number] = insert_row(connection, tables.device, rows.device_row(gpu))

    def environment(self, driver: int) -> tuple[int, str]:
        if driver not in self.environments:
            packages = {f"package-{n}": f"{driver // (1 + n % 4)}.{n}" for n in range(40)}
            packages |= {"torch": f"2.{driver // 2}.0", "numpy": f"2.{driver // 3}"}
            values = rows.environment_row(
                replace(ENVIRONMENT, driver=f"{450 + 10 * driver}.1", cuda=f"12.{driver // 2}", packages=packages)
            )
            with self.writer.begin() as connection:
                key = insert_row(connection, tables.environment, values)
            self.environments[driver] = key, values["environment_class"]
        return self.environments[driver]

    def source_state(self, number: int) -> int:
        if number not in self.sources:
            files = {f"gpu_tasks/part_{n:02d}.py": digest(n, number // (1 + n % 5)) for n in range(60)}
            fingerprint = digest("sources", number)
            values = {"fingerprint_sha256": fingerprint, "sources_sha256": fingerprint, "sources": files}
            with self.writer.begin() as connection:
                self.sources[number] = insert_row(connection, tables.source_state, values)
        return self.sources[number]


def insert_row(connection: Connection, table: Table, values: Row) -> int:
    (key,) = table.primary_key.columns
    return int(connection.execute(table.insert().values(**values).returning(key)).scalar_one())

"""Generated nights as rows: what the loader would have written, in the same tables, through COPY."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta

from psycopg2.extras import execute_values
from sqlalchemy import Engine, Table, text

from gpu_tasks.records import RunRecord
from regression.results import energy_rows, rows, tables
from regression.results.columns import EXIT_CODES
from regression.results.energy_tables import WANDER, WANDER_FIELDS
from tests.benchmarks import history_night
from tests.benchmarks.history_copy import Readings, Sheet
from tests.benchmarks.history_judgements import Judgements
from tests.benchmarks.history_shared import Row, Shared
from tests.benchmarks.history_story import DRAWS, ROUND_SD, ROUNDS, Board, Night, boards, digest, story

NIGHTS_A_COPY = 50
EPOCH_S = 1_400_000_000
"""Since when the counters of every board have run, in seconds since 1970: before the first night."""
NO_WANDER = dict.fromkeys(f"{WANDER}{name}" for name in WANDER_FIELDS)
"""The idle power is watched before the rounds only."""
REFERENCE_KEYS = ("device_id", "environment_id", "source_state_id", "payload_id")
JUDGE = (
    "UPDATE run SET verdict = judged.verdict, exit_code = judged.exit_code::smallint "
    "FROM (VALUES %s) AS judged (run_id, verdict, exit_code) WHERE run.run_id = judged.run_id::uuid"
)


@dataclass(frozen=True)
class Generated:
    """Rows by table, seconds that making and loading them took, and those of it that PostgreSQL did."""

    rows: dict[str, int]
    seconds: float
    loading_s: float


def generate(writer: Engine, count: int, nights: int, seed: int, said: Callable[[str], None]) -> Generated:
    """Fill an empty database, which has its schema."""
    began = time.perf_counter()
    history = History(writer, boards(count, random.Random(seed)))
    for place, runs in story(count, nights, random.Random(seed)):
        for run in runs:
            history.add(run)
        if place % NIGHTS_A_COPY == NIGHTS_A_COPY - 1 or place == nights - 1:
            history.store()
        if place % 365 == 364:
            said(f"{place + 1} nights")
    history.judgements.finish(writer)
    rows_by_table = {sheet.table.name: sheet.rows for sheet in history.sheets}
    return Generated(rows_by_table, time.perf_counter() - began, history.loading_s)


class History:
    """Sheets of every table with many rows; keys of the others."""

    def __init__(self, writer: Engine, fleet: list[Board]) -> None:
        self.writer = writer
        record = history_night.night("template")
        self.sheets = self._sheets(record)
        by_name = {sheet.table.name: sheet for sheet in self.sheets}
        (self.run, self.validation, self.round, self.round_energy, self.run_energy) = (
            by_name[name] for name in ("run", "validation", "round", "round_energy", "run_energy")
        )
        self.telemetry, self.gate = by_name["telemetry"], by_name["telemetry_gate"]
        self.judgements = Judgements(by_name["baseline"], by_name["check_result"])
        self.gates = record.gates
        self.readings = Readings(rows.round_row("", record.rounds[1])["counters"])
        self.telemetry_readings = Readings(energy_rows.telemetry_row("", record.telemetry[0])["readings"])
        self.shared = Shared(writer, fleet)
        self.loading_s = 0.0
        self.verdicts: list[tuple[str, str, int]] = []

    def _sheets(self, record: RunRecord) -> list[Sheet]:
        run_id, example = "", record.rounds[1]
        run = rows.run_row(record, "0" * 64) | dict.fromkeys(REFERENCE_KEYS)
        (figure, *_) = energy_rows.round_energy_rows(run_id, example)
        templates: list[tuple[Table, Row]] = [
            (tables.run, run),
            (tables.validation, rows.validation_row(run_id, record.validations[0])),
            (tables.round_, rows.round_row(run_id, example)),
            (tables.round_energy, figure),
            (tables.run_energy, energy_rows.run_energy_rows(record)[0]),
            (tables.telemetry, energy_rows.telemetry_row(run_id, record.telemetry[0])),
            (tables.telemetry_gate, energy_rows.gate_row(run_id, record.gates[0])),
            (tables.baseline, dict.fromkeys(column.name for column in tables.baseline.columns)),
            (tables.check_result, dict.fromkeys(column.name for column in tables.check_result.columns)),
        ]
        return [Sheet(table, template) for table, template in templates]

    def store(self) -> None:
        """Write what was added, in one transaction, in an order that every foreign key allows; then judge it."""
        began = time.perf_counter()
        with self.writer.begin() as connection:
            cursor = connection.connection.cursor()
            self.judgements.retire(cursor)
            for sheet in self.sheets:
                sheet.copy(cursor)
            execute_values(cursor, JUDGE, self.verdicts, page_size=len(self.verdicts))
        self.verdicts.clear()
        self.loading_s += time.perf_counter() - began

    def add(self, night: Night) -> None:
        """All rows of one run."""
        environment_id, environment_class = self.shared.environment(night.driver)
        references = {
            "device_id": self.shared.devices[night.board.number],
            "environment_id": environment_id,
            "source_state_id": self.shared.source_state(night.sources),
            "payload_id": self.shared.payload_id,
        }
        trust = "verified"
        if night.lost or night.failed_gate:
            trust = "failed" if night.failed_gate else "unverified"
        self.verdicts.append((night.run_id, night.verdict, EXIT_CODES[night.verdict]))
        self.run.add(**references, **_run_columns(night), energy_trust=trust)
        for draw in range(6 if night.lost else DRAWS):
            self._add_validation(night, draw)
        for number in range(len(night.rounds)):
            self._add_round(night, number)
        if not night.lost:
            self._add_energy(night)
            self._add_telemetry(night)
        self.judgements.add(night, trust, references | {"environment_class": environment_class})

    def _add_validation(self, night: Night, draw: int) -> None:
        wrong = night.wrong.get(draw, [])
        changes: Row = {}
        if wrong:
            changes = {
                "outcome": "regression",
                "reason_code": "predictions_disagree",
                "reason_message": f"draw {draw} disagrees",
                "agreed": 1000 - len(wrong),
                "device_correct": 680 - len(wrong),
                "mismatches": [dict(zip(("index", "expected", "found"), one, strict=True)) for one in wrong],
            }
        self.validation.add(
            run_id=night.run_id,
            case_name=f"draw-{draw:02d}",
            draw=draw,
            payload_sha256=digest("draw", draw),
            predictions_int32_sha256=digest("predictions", draw, wrong),
            duration_s=0.4 + (night.sources + draw) % 10 / 40,
            created_at=night.started_at + timedelta(seconds=30 + draw),
            **changes,
        )

    def _add_round(self, night: Night, number: int) -> None:
        measured = night.rounds[number]
        at = night.started_at + timedelta(seconds=60 + 55 * number)
        start = int(at.timestamp()) - EPOCH_S
        changes: Row = {}
        if measured.reason:
            changes = {
                "valid": False,
                "outcome": "invalid_measurement",
                "reason_code": measured.reason,
                "reason_message": measured.reason,
                "earlier_attempts": [{"code": measured.reason, "message": "first attempt"}] * (start % 3),
            }
        self.round.add(
            run_id=night.run_id,
            round=number,
            adjusted_mj=measured.mj,
            gross_mj=measured.mj * 2.05,
            cuda_ms=measured.ms,
            wall_ms=measured.ms * 1.006,
            idle_before_w=38 + measured.ms,
            idle_after_w=38.2 + measured.ms,
            counter_j=measured.mj * 1000,
            integrated_j=measured.mj * 1001,
            power_integral_mj=measured.mj * 1.001,
            counters=self.readings.text(start),
            created_at=at,
            **changes,
        )
        for name, offset in zip(history_night.FIGURES, (0.02, -0.01, 0.0), strict=True):
            mj = measured.mj + offset
            self.round_energy.add(
                run_id=night.run_id,
                round=number,
                figure=name,
                adjusted_mj=mj,
                gross_mj=mj * 2.05,
                combined_mj=mj * ROUND_SD,
                degrees_of_freedom=None if name == "classic" else 12.0,
                low_mj=mj * (1 - 1.96 * ROUND_SD),
                high_mj=mj * (1 + 1.96 * ROUND_SD),
            )

    def _add_energy(self, night: Night) -> None:
        for name, offset in zip(history_night.FIGURES, (0.02, -0.01, 0.0), strict=True):
            values = [measured.mj + offset for measured in night.valid]
            middle = statistics.median(values)
            self.run_energy.add(
                run_id=night.run_id,
                figure=name,
                rounds=len(values),
                median_mj=middle,
                min_mj=min(values),
                max_mj=max(values),
                sample_sd_mj=statistics.stdev(values),
                detectable_mj=middle * 0.018,
                per_reference_load=middle / night.joules,
            )

    def _add_telemetry(self, night: Night) -> None:
        for moment, factor in (("before", 0.99), ("after", 1.01)):
            at = night.started_at + timedelta(seconds=50 if moment == "before" else 450)
            unknown = {} if moment == "before" else NO_WANDER
            self.telemetry.add(
                run_id=night.run_id,
                moment=moment,
                reference_joules_per_1e12_operations=night.joules * factor,
                readings=self.telemetry_readings.text(int(at.timestamp()) - EPOCH_S),
                created_at=at,
                **unknown,
            )
        for gate in self.gates:
            failed = gate.gate == night.failed_gate
            why = f"{gate.gate}_off" if failed else None
            self.gate.add(
                run_id=night.run_id,
                gate=gate.gate,
                at=gate.where,
                passed=not failed,
                value=0.01 + night.board.number / 1000,
                reason_code=why,
                reason_message=why,
            )


def _run_columns(night: Night) -> Row:
    valid, wrong = night.valid, sum(map(len, night.wrong.values()))
    draws = 6 if night.lost else DRAWS
    energies = [measured.mj for measured in valid]
    outcome, why = "ok", None
    if night.lost:
        outcome, why = "infrastructure_failure", "device_lost"
    elif wrong:
        outcome, why = "regression", "predictions_disagree"
    elif night.failed_gate:
        outcome, why = "invalid_measurement", "gate_failed"
    return {
        "run_id": night.run_id,
        "dag_run_id": night.dag_run_id,
        "trigger": night.trigger,
        "logical_date": night.started_at.replace(minute=0, second=0),
        "params": _params(night),
        "outcome": outcome,
        "reason_code": why,
        "reason_message": why,
        "started_at": night.started_at,
        "completed_at": night.started_at + timedelta(seconds=480 + night.started_at.second),
        "energy_trust_reason": night.failed_gate or ("device_lost" if night.lost else None),
        "kernel_variant": night.kernel,
        "kernel_ptx_sha256": night.ptx_sha256,
        "draws_validated": draws,
        "total": 1000 * draws,
        "agreed": 1000 * draws - wrong,
        "device_correct": 680 * draws - wrong,
        "reference_correct": 680 * draws,
        "rounds_expected": ROUNDS,
        "rounds_valid": len(valid),
        "cuda_ms_median": statistics.median(measured.ms for measured in valid) if valid else None,
        "wall_ms_median": statistics.median(measured.ms for measured in valid) * 1.006 if valid else None,
        "gross_mj_median": night.median_mj * 2.05 if valid else None,
        "adjusted_mj_median": night.median_mj if valid else None,
        "adjusted_mj_min": min(energies) if valid else None,
        "adjusted_mj_max": max(energies) if valid else None,
        "adjusted_mj_sample_sd": statistics.stdev(energies) if valid else None,
        "negative_adjusted_rounds": 0 if valid else None,
        "reference_joules_per_1e12_operations": None if night.lost else night.joules,
        "record_sha256": digest("record", night.run_id),
    }


REQUEST = asdict(history_night.night("template").request)


def _params(night: Night) -> Row:
    return REQUEST | {"run_id": night.run_id, "dag_run_id": night.dag_run_id, "trigger": night.trigger}


def settle(admin: Engine) -> None:
    """What autovacuum does within minutes of a load this size: statistics and visibility."""
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM (ANALYZE)"))
        connection.execute(text("CHECKPOINT"))

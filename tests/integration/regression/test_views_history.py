"""Views that look back: a draw against the run before it, an environment against the one before it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpu_tasks.records import KernelIdentity, RunRecord
from local.cookbook import find_question
from regression.results.surroundings import NO_PLATFORM
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_nights import asked, night, store
from tests.integration.regression.example_records import (
    GPU,
    OTHER_GPU,
    lost_validation,
    run_record,
    validation,
)


def test_validation_history_compares_with_the_latest_run_that_has_the_draw(database: Database) -> None:
    wrong = validation(1, predictions_int32_sha256="a" * 64)
    second = [validation(0), wrong]
    third = [lost_validation(0), lost_validation(1)]
    fourth = [validation(1)]  # a run of one draw only
    fifth = [validation(0, predictions_int32_sha256="b" * 64), wrong]
    nights = (
        night(d, validations=v) for d, v in enumerate(([validation(0), validation(1)], second, third, fourth, fifth), 1)
    )
    store(database, *reversed(list(nights)), night(3, "other", validations=fifth, device=OTHER_GPU))  # in any order
    found = asked(
        database,
        "SELECT v.night, v.draw, v.agreed, v.changed, p.dag_run_id FROM validation_history v "
        "LEFT JOIN run p ON p.run_id = v.previous_run_id WHERE v.device = 'Test GPU' ORDER BY night, draw",
    )
    first, second_, fourth_ = "scheduled__01", "scheduled__02", "scheduled__04"
    assert [(day.day, *rest) for day, *rest in found] == [
        (1, 0, 1000, None, None),
        (1, 1, 1000, None, None),
        (2, 0, 1000, False, first),
        (2, 1, 1000, True, first),
        (3, 0, None, None, second_),
        (3, 1, None, None, second_),
        (4, 1, 1000, True, second_),
        (5, 0, 1000, True, second_),
        (5, 1, 1000, True, fourth_),
    ]
    assert asked(database, "SELECT changed FROM validation_history WHERE device = 'Other GPU'") == [(None,), (None,)]


def changed_run(record: RunRecord, **changes: Any) -> RunRecord:
    """The record in another environment: fields of it, packages, or (``kernel``) with other kernels."""
    assert record.provision
    assert record.provision.environment
    packages = record.provision.environment.packages | changes.pop("packages", {})
    packages = {name: version for name, version in packages.items() if version}
    kernel = changes.pop("kernel", record.kernel)
    environment = replace(record.provision.environment, **changes, packages=packages)
    return replace(record, provision=replace(record.provision, environment=environment), kernel=kernel)


def with_power_limit(record: RunRecord, watts: float | None) -> RunRecord:
    states = [t for t in record.telemetry if t.state_before]
    told = [replace(t, state_before=replace(t.state_before, power_limit_w=watts)) for t in states if t.state_before]
    return replace(record, telemetry=told)


def test_environment_changes_name_what_changed_once_and_nothing_else(database: Database) -> None:
    assert run_record().verify_sources
    other_sources = replace(run_record().verify_sources, sources={"a.py": "1" * 64, "b.py": "2" * 64})
    other_kernel = KernelIdentity("rolled", "3" * 64, 100, [])
    second = {"driver": "575.2", "cuda": None, "packages": {"numpy": None, "scipy": "1.15"}}
    store(
        database,
        night(1, of=energy_run),
        changed_run(night(2, of=energy_run), **second),
        night(3, provision=None, validations=[], rounds=[]),  # failed before its environment was known
        changed_run(night(4, of=energy_run, verify_sources=other_sources), **second),
        with_power_limit(changed_run(night(5, of=energy_run, verify_sources=other_sources), **second), 320.0),
        changed_run(night(6, of=energy_run, verify_sources=None, verify_payload=None), **second, kernel=other_kernel),
        night(6, "another device", device=OTHER_GPU),
    )
    found = asked(
        database,
        "SELECT extract(day FROM night)::int, what, from_value, to_value, extract(day FROM previous_night)::int, "
        "detail FROM environment_changes ORDER BY night, what",
    )
    sources = [row for row in found if row[1] == "sources"]
    assert [row for row in found if row[1] != "sources"] == [
        (2, "cuda", "12.8", None, 1, None),
        (2, "driver", "570.1", "575.2", 1, None),
        (2, "numpy", "2.2", None, 1, None),
        (2, "scipy", None, "1.15", 1, None),
        (5, "power_limit_w", "400", "320", 4, None),
        (6, "kernel", f"original {run_record().kernel.ptx_sha256}", f"rolled {'3' * 64}", 5, None),
        (6, "power_limit_w", "320", "400", 5, None),
    ]
    assert [(day, previous, detail) for day, _, _, _, previous, detail in sources] == [(4, 2, "a.py, b.py")]


def test_a_platform_that_a_record_does_not_state_has_not_changed(database: Database) -> None:
    """What ships is of no machine; a platform that both runs state is one of the changes."""
    platforms = [*NO_PLATFORM, "Linux 6.1", "Linux 6.8", *NO_PLATFORM[:1], "Linux 6.8"]
    store(database, *(changed_run(night(day), platform=name) for day, name in enumerate(platforms, start=1)))
    assert asked(database, "SELECT what, from_value, to_value FROM environment_changes") == [
        ("platform", "Linux 6.1", "Linux 6.8")
    ]
    last, question = len(NO_PLATFORM), find_question("changed_between")

    def changes_to(day: int) -> list[tuple[Any, ...]]:
        names = {"earlier": f"scheduled__{day - 1:02}", "later": f"scheduled__{day:02}"}
        with database.reader.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(question.bound, question.values(names))]

    told = {day: found for day in range(2, len(platforms) + 1) if (found := changes_to(day))}
    assert told == {last + 2: [("environment", "platform", "Linux 6.1", "Linux 6.8")]}


DRIVERS = ("570.1", "575.2", None)


def random_nights(seed: int) -> Iterator[RunRecord]:
    """Nights on two devices: draws missing, lost or with other predictions, drivers that come and go, failed ones."""
    draw_of = random.Random(seed)
    for day in range(1, 25):
        device = draw_of.choice([GPU, OTHER_GPU])
        validations = [
            lost_validation(draw)
            if draw_of.random() < 0.2
            else validation(draw, predictions_int32_sha256=draw_of.choice("ab") * 64)
            for draw in range(3)
            if draw_of.random() < 0.7
        ]
        record = night(day, validations=validations, rounds=[], device=device)
        if draw_of.random() < 0.2:
            yield replace(record, provision=None, validations=[], kernel=None)
        else:
            yield changed_run(record, driver=draw_of.choice(DRIVERS))


@pytest.mark.parametrize("seed", range(3))
def test_both_views_and_the_question_say_what_a_walk_through_the_nights_says(database: Database, seed: int) -> None:
    nights = list(random_nights(seed))
    predictions: dict[tuple[str, int], str] = {}
    drivers: dict[str, str | None] = {}
    changed, changes = [], []
    for record in nights:
        if record.provision is None:
            continue
        assert record.provision.device
        assert record.provision.environment
        uuid, driver = record.provision.device.uuid, record.provision.environment.driver
        for found in record.validations:
            before, now = predictions.get((uuid, found.draw)), found.predictions_int32_sha256
            changed.append((record.request.dag_run_id, found.draw, before != now if before and now else None))
            predictions |= {(uuid, found.draw): now} if now else {}
        if uuid in drivers and drivers[uuid] != driver:
            changes.append((record.request.dag_run_id, drivers[uuid], driver))
        drivers[uuid] = driver
    assert {told for *_, told in changed} == {None, True, False}
    assert len(changes) > 5
    store(database, *random.Random(seed).sample(nights, len(nights)))  # the order of loading does not matter
    told = asked(database, "SELECT dag_run_id, draw, changed FROM validation_history ORDER BY started_at, draw")
    assert told == changed
    question = find_question("prediction_changes")
    with database.reader.connect() as connection:
        rows = connection.exec_driver_sql(question.bound, question.values({})).all()
    assert {(row.dag_run_id, row.draw) for row in rows} == {(name, draw) for name, draw, differs in changed if differs}
    told = asked(
        database,
        "SELECT dag_run_id, from_value, to_value FROM environment_changes WHERE what = 'driver' ORDER BY started_at",
    )
    assert told == changes

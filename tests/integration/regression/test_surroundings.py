"""What else changed, from the database: the baseline it is held against, and what is not a change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.records import RunRecord, read_record, run_id_for
from regression.detectors import CheckVerdict, Verdict
from regression.detectors.environment import judge_environment
from regression.results.baselines import ensure_first_baseline, retire_baseline
from regression.results.surroundings import environment_baseline, surroundings_of
from tests.integration.regression.databases import Database
from tests.integration.regression.example_energy import SIMULATED_GPU, STATE, energy, energy_round
from tests.integration.regression.example_records import CPU, OTHER_GPU, digest, payload, run_record
from tests.integration.regression.many_nights import accept, night, store, stored_run

ROOT = Path(__file__).resolve().parents[3]


def judged(database: Database, record: RunRecord) -> tuple[CheckVerdict, int | None]:
    store(database, record)
    with database.reader.connect() as connection:
        run = stored_run(connection, record.request.dag_run_id)
        baseline, baseline_id = environment_baseline(connection, run)
        return judge_environment(surroundings_of(connection, run), baseline), baseline_id


def base(database: Database, record: RunRecord | None = None) -> int:
    record = record or night(0, "base")
    store(database, record)
    return accept(database, record)


def sourced(record: RunRecord, **files: str) -> RunRecord:
    assert record.verify_sources
    return replace(record, verify_sources=replace(record.verify_sources, sources=files))


def test_everything_a_run_was_made_with_is_read(database: Database) -> None:
    store(database, night(0))
    with database.reader.connect() as connection:
        found = surroundings_of(connection, stored_run(connection, "scheduled__000"))
    assert found.device == "Test GPU (GPU-1)"
    assert (found.protocol, found.payload_manifest_sha256) == ("audited", payload().manifest_sha256)
    assert found.environment_class == "driver=570.1 cuda=12.8 torch=2.13.0"
    assert found.versions == {"driver": "570.1", "cuda": "12.8", "python": "3.11.9", "platform": "Linux x86_64"}
    assert found.packages == {"torch": "2.13.0", "numpy": "2.2"}
    assert found.sources == {"a.py": digest("a")}
    assert (found.kernel_sha256, found.power_limit_w) == (digest("ptx"), 400.0)


def test_a_run_like_its_baseline_is_fine(database: Database) -> None:
    accepted = base(database)
    found, baseline_id = judged(database, night(1))
    assert (found.verdict, found.reason_code, baseline_id) == (Verdict.OK, "same_surroundings", accepted)


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        (
            {"environment": {"driver": "580.2"}},
            "new_segment",
            "a new segment begins, which needs a baseline of its own: environment class driver=570.1 cuda=12.8 "
            "torch=2.13.0 -> driver=580.2 cuda=12.8 torch=2.13.0, driver 570.1 -> 580.2",
        ),
        ({"environment": {"python": "3.12.1"}}, "surroundings_changed", "environment python 3.11.9 -> 3.12.1"),
        (
            {"environment": {"packages": {"torch": "2.13.0", "numpy": "2.3"}}},
            "surroundings_changed",
            "package numpy 2.2 -> 2.3",
        ),
    ],
)
def test_versions_are_named(database: Database, changes: dict[str, Any], code: str, text: str) -> None:
    base(database)
    found, _ = judged(database, night(1, **changes))
    assert found.reason_code == code
    assert found.reason.endswith(text)
    assert (found.unit, found.direction, found.value) == ("versions", "changed", found.reason.count(" -> "))


def test_sources_and_power_limit_are_named(database: Database) -> None:
    base(database)
    found, _ = judged(database, sourced(night(1), **{"a.py": digest("b"), "c.py": digest("c")}))
    assert found.reason.endswith(f"source a.py {digest('a')[:12]} -> {digest('b')[:12]}, "
                                 f"source c.py unknown -> {digest('c')[:12]}")  # fmt: skip
    state = replace(STATE, power_limit_w=300.0)
    rounds = [energy_round(n, energy=energy({"audited": 0.6}, state_before=state)) for n in range(7)]
    found, _ = judged(database, replace(night(2), rounds=rounds))
    assert (found.reason_code, found.details["differences"][0]["after"]) == ("new_segment", "300 W")


@pytest.mark.parametrize("place_holder", ["simulated", "reference", "not recorded"])
def test_a_platform_that_a_record_does_not_state_is_no_change(database: Database, place_holder: str) -> None:
    """The records that ship are of no machine: tonight's real platform has not taken the place of another."""
    base(database, night(0, "base", environment={"platform": place_holder}))
    found, _ = judged(database, night(1))
    assert (found.reason_code, found.details["differences"]) == ("same_surroundings", [])
    found, _ = judged(database, night(2, environment={"python": "3.12.1"}))
    assert found.reason == "changed since the baseline: environment python 3.11.9 -> 3.12.1"


def test_a_platform_that_both_state_is_compared(database: Database) -> None:
    base(database)
    found, _ = judged(database, night(1, environment={"platform": "Linux arm64"}))
    assert found.reason == "changed since the baseline: environment platform Linux x86_64 -> Linux arm64"


@pytest.mark.parametrize("name", ["qda-simulated-a100-healthy", "learner-simulated-a100-healthy"])
def test_what_ships_for_the_simulated_device_names_no_platform_beside_a_real_one(database: Database, name: str) -> None:
    shipped = read_record(ROOT / "gpu_tasks" / "baselines" / f"{name}.json.gz", RunRecord)
    ensure_first_baseline(database.writer, ROOT / "gpu_tasks" / "baselines" / f"{name}.json.gz")
    assert shipped.provision
    assert shipped.provision.environment
    environment = replace(shipped.provision.environment, platform="Linux-6.1-x86_64", python="3.13.1")
    request = replace(
        shipped.request,
        dag_id="nightly_qda",
        dag_run_id="tonight",
        run_id=run_id_for("nightly_qda", "tonight"),
        trigger="manual",
    )
    found, baseline_id = judged(
        database,
        replace(shipped, request=request, provision=replace(shipped.provision, environment=environment)),
    )
    assert baseline_id is not None
    assert (
        found.reason
        == f"changed since the baseline: environment python {shipped.provision.environment.python} -> 3.13.1"
    )


def test_a_payload_that_changed_under_its_name_is_named(database: Database) -> None:
    base(database)
    record = night(1)
    assert record.verify_payload
    changed = replace(payload(), manifest_sha256=digest("another"))
    found, _ = judged(database, replace(record, verify_payload=replace(record.verify_payload, payload=changed)))
    assert (found.reason_code, found.details["differences"][0]["part"]) == ("new_segment", "payload")


def test_what_was_asked_for_is_no_change(database: Database) -> None:
    """Another set, protocol, device or workload has a baseline of its own, or none yet."""
    base(database)
    record = night(1)
    assert record.verify_payload
    assert record.provision
    fresh = replace(night(1, "fresh"), verify_payload=replace(record.verify_payload, payload=payload("fresh")))
    classic = replace(night(1, "classic"), provision=replace(record.provision, protocol="classic"))
    others = (night(1, "other", device=OTHER_GPU), run_record("cpu", device=CPU, energies=[None] * 7))
    for asked_for in (fresh, classic, *others, night(1, "learner", request={"workload": "learner"})):
        found, baseline_id = judged(database, asked_for)
        assert (found.verdict, found.reason_code, baseline_id) == (Verdict.INCONCLUSIVE, "no_baseline", None)


def test_going_back_to_a_driver_that_has_a_baseline_is_no_change(database: Database) -> None:
    """conbench 567: one baseline a key, the closest is asked."""
    old = base(database, night(0, "old"))
    new = base(database, night(1, "new", environment={"driver": "580.2"}))
    assert judged(database, night(2)) [1] == old  # fmt: skip
    assert judged(database, night(3, environment={"driver": "580.2"}))[1] == new
    assert judged(database, night(4, environment={"driver": "590.3"}))[1] == new  # the newest of those that differ


def test_a_baseline_that_was_ended_is_asked_no_more(database: Database) -> None:
    record = night(0, "base")
    base(database, record)
    retire_baseline(database.writer, record.request.run_id, retired_by="t", reason="r")
    assert judged(database, night(1))[0].reason_code == "no_baseline"


def test_a_baseline_without_sources_makes_no_list_of_all_files(database: Database) -> None:
    base(database, replace(night(0, "imported"), verify_sources=None))
    found, _ = judged(database, night(1))
    assert found.reason_code == "same_surroundings"


def test_a_simulated_driver_is_named_and_begins_no_segment(database: Database) -> None:
    base(database, night(0, "base", device=SIMULATED_GPU))
    found, _ = judged(database, night(1, device=SIMULATED_GPU, environment={"driver": "581.1"}))
    assert (found.verdict, found.reason_code) == (Verdict.OK, "surroundings_changed")
    assert found.reason == "changed since the baseline: driver 570.1 -> 581.1"


def test_a_run_without_a_device_says_what_is_not_known(database: Database) -> None:
    base(database)
    found, _ = judged(database, replace(night(1, "bare"), provision=None))
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "no_baseline")

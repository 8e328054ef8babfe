"""Nights of ``nightly_learner`` from end to end, with the wiring that all nights share: what is different about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from gpu_tasks.records import RunRecord, read_record
from regression.nights.workloads import LEARNER, QDA
from tests.integration.dags.conftest import Ran
from tests.integration.regression.databases import Database

pytest.importorskip("torch")

Night = Callable[..., Ran]
SUCCESS, FAILED, NOT_RUN, SKIPPED = {"success"}, {"failed"}, {"upstream_failed"}, {"skipped"}
SMALL: dict[str, Any] = {"dag": LEARNER.dag_id, "device": "reference", "draws": [0], "rounds": 1, "repeats": 3}


@pytest.fixture(scope="module")
def payloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty for the first night, which builds the set; the others find it."""
    return tmp_path_factory.mktemp("payloads")


def test_the_first_night_builds_the_set_and_has_every_part(
    run_night: Night, database: Database, tmp_path: Path, payloads: Path
) -> None:
    ran = run_night(environment={"NIGHTLY_PAYLOADS": str(payloads)}, cublas_workspace=":4096:8", **SMALL)
    assert ran.state == "success", ran.log[-3000:]
    assert ran.tasks.pop("remeasure") == SKIPPED, "there is nothing to confirm"
    assert all(states == SUCCESS for states in ran.tasks.values())
    assert ran.tasks.keys() >= {"qualify", "account_memory", *LEARNER.checks}
    assert (payloads / "learner" / "manifest.json").is_file()
    assert "building the set learner" in ran.log
    assert (ran.verdict["workload"], ran.verdict["verdict"], ran.verdict["exit"]) == ("learner", "ok", 0)
    assert ran.verdict["agreement"] == {"agreed": 10000, "total": 10000}
    assert ran.verdict["checks"].keys() >= set(LEARNER.checks)
    told = {name: ran.verdict["checks"][name]["verdict"] for name in LEARNER.checks}
    assert (told["qualification"], told["energy"], told["time"]) == ("ok", "unavailable", "unavailable")
    assert (told["agreement"], told["memory"]) == ("ok", "ok"), "as in the baseline that ships"
    assert told["repeatability"] == "inconclusive", "nothing to look back on"
    (path,) = (tmp_path / "records").glob("*.json")
    record = read_record(path, RunRecord)
    assert record.qualification is not None
    assert (record.qualification.passed, record.qualification.device_uuid) == (True, record.provision.device.uuid)
    assert record.memory is not None
    assert (record.memory.agreed, record.memory.profile_reason.code) == (10000, "no_profile_here")
    assert record.memory.predictions_file is not None
    assert Path(record.memory.predictions_file).is_file()
    settings = {setting.name: (setting.value, setting.origin) for setting in record.provision.settings}
    assert settings["CUBLAS_WORKSPACE_CONFIG"] == (":4096:8", "environment")
    assert record.request.variables == {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    assert (record.protocol, record.request.variant, record.rounds[0].repeats) == ("trial", None, 3)
    with database.reader.connect() as connection:
        night = connection.execute(text("SELECT workload, verdict FROM nightly WHERE run_id = :id"), {"id": path.stem})
        assert tuple(night.one()) == ("learner", "ok")


def test_parts_that_fail_leave_the_rest_of_the_night_whole(run_night: Night, tmp_path: Path, payloads: Path) -> None:
    ran = run_night("fail:qualify,memory", environment={"NIGHTLY_PAYLOADS": str(payloads)}, **SMALL)
    assert ran.state == "failed"
    assert (ran.tasks["qualify"], ran.tasks["account_memory"]) == (FAILED, FAILED)
    assert (ran.tasks["validate"], ran.tasks["measure"], ran.tasks["agreement"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert (ran.tasks["summarise"], ran.tasks["load"], ran.tasks["release"]) == (SUCCESS, SUCCESS, SUCCESS)
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("infrastructure_failure", 5)
    (path,) = (tmp_path / "records").glob("*.json")
    record = read_record(path, RunRecord)
    assert record.reason is not None
    assert "qualification: qualify ended with exit status 5" in record.reason.message
    assert record.memory is not None
    assert record.memory.reason is not None
    assert "memory ended with exit status 5" in record.memory.reason.message
    assert (len(record.validations), len(record.rounds)) == (1, 1)
    told = {name: ran.verdict["checks"][name]["verdict"] for name in ("qualification", "memory")}
    assert not {"ok", "inconclusive"} & set(told.values()), told


def test_a_flipped_byte_of_the_built_set_stops_the_night(run_night: Night, tmp_path: Path, payloads: Path) -> None:
    draw = payloads / "learner" / "draw-03.npz"
    content = draw.read_bytes()
    draw.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    try:
        ran = run_night(environment={"NIGHTLY_PAYLOADS": str(payloads)}, **SMALL)
    finally:
        draw.write_bytes(content)
    assert (ran.tasks["verify_payload"], ran.tasks["qualify"], ran.tasks["account_memory"]) == (
        FAILED,
        NOT_RUN,
        NOT_RUN,
    )
    assert (ran.verdict["verdict"], ran.verdict["exit"]) == ("verification_mismatch", 4)
    (path,) = (tmp_path / "records").glob("*.json")
    reason = read_record(path, RunRecord).reason
    assert reason is not None
    assert "did not run: qualification, validation-00, round-00" in reason.message
    assert reason.message.endswith("memory")


def test_a_workload_names_only_what_there_is() -> None:
    from regression.nights import wiring, workloads

    for workload in (QDA, LEARNER):
        assert set(workload.parts) <= set(workloads.PARTS)
        assert set(workload.checks) <= set(wiring.CHECKS)
        assert set(workload.settings) <= set(workload.schema)
        assert workload.schema["payload"]["default"] == workload.payload

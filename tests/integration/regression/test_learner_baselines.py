"""What nights of the learner are held against: the records that ship, and what somebody accepts in their place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from gpu_tasks.environments.differences import differences
from gpu_tasks.programs.baseline import night
from gpu_tasks.programs.cli import main
from gpu_tasks.records import (
    DeviceFingerprint,
    Outcome,
    RunRecord,
    RunRequest,
    from_json,
    read_record,
    run_id_for,
    to_json,
    utc_now,
)
from gpu_tasks.sources import ROOT
from regression.detectors import CheckVerdict, judge_agreement
from regression.results import history
from regression.results.accounts import memory_findings
from regression.results.baselines import accept_baseline, ensure_first_baselines, import_record
from regression.results.checks import last_findings
from regression.results.comparisons import compared
from regression.results.energies import energy_findings
from regression.results.loading import LoadStatus, load_run
from regression.results.qualifications import qualification_findings
from regression.results.times import time_findings
from tests.integration.gpu_tasks.test_build_from_mnist import SOURCE
from tests.integration.regression.databases import Database
from tests.integration.regression.example_records import sha256_of
from tests.support.original_records import with_sentences

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(SOURCE is None, reason="no MNIST images, of which the set learner is made")

BASELINES = ROOT / "gpu_tasks" / "baselines"
SIMULATED, REFERENCE = "learner-simulated-a100-healthy", "learner-reference"
A100 = DeviceFingerprint(
    kind="cuda",
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-11111111-2222-3333-4444-555555555555",
    memory_total_bytes=42405855232,
    multiprocessors=108,
    compute_capability=[8, 0],
    energy_counter=True,
    energy_counter_reason=None,
)


@pytest.fixture(scope="module", autouse=True)
def payloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The set ``learner``, built for these tests, and no GPU to be found."""
    folder = tmp_path_factory.mktemp("payloads")
    built = ["payload", "build", "--workload", "learner", "--set", "learner", "--source", str(SOURCE)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTLY_PAYLOADS", str(folder))
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert main([*built, "--folder", str(folder / "learner")]) == 0
        yield folder


def simulated_night(folder: Path, inject: str | None) -> RunRecord:
    """Every program of a night of one draw and three rounds, by hand."""
    name = inject or "healthy"
    request = RunRequest(
        accepted_at=utc_now(),
        workload="learner",
        dag_id="nightly_learner",
        dag_run_id=name,
        run_id=run_id_for("nightly_learner", name),
        trigger="manual",
        logical_date=None,
        device="simulated",
        variant=None,
        payload="learner",
        draws=[0],
        rounds=3,
        repeats=None,
        protocol=None,
        label=None,
        note=None,
        inject=inject,
        seed=4,
        parts=["qualification", "memory"],
    )
    record = night(request, folder)
    assert (record.outcome, record.energy_trust) == (Outcome.OK, "verified"), record.reason
    return record


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return simulated_night(tmp_path_factory.mktemp("healthy"), None)


@pytest.fixture(scope="module")
def dear(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return simulated_night(tmp_path_factory.mktemp("dear"), "energy+10%")


@pytest.fixture
def shipped(database: Database) -> Database:
    """A database as it is set up, with what ships."""
    ensure_first_baselines(database.writer, BASELINES)
    return database


def judge(database: Database, record: RunRecord) -> dict[str, CheckVerdict]:
    """Load a run and ask the checks of its night, as the operators do."""
    load_run(database.writer, record, sha256_of(record))
    with database.reader.connect() as connection:
        run = history.find_run(connection, record.request.dag_id, record.request.dag_run_id)
        agreement, _ = history.agreement_baseline(connection, run)
        parts = (energy_findings, time_findings, memory_findings, qualification_findings)
        findings = [found for part in parts for found in part(connection, run)]
        found = {finding.verdict.check: finding.verdict for finding in last_findings(findings)}
        return {"agreement": judge_agreement(history.agreement_run(connection, run), agreement), **found}


def words(found: dict[str, CheckVerdict]) -> dict[str, str]:
    return {name: verdict.verdict.value for name, verdict in found.items()}


def on_an_a100(record: RunRecord, name: str) -> RunRecord:
    """The night as if that board had made it: its uuid in every part, and a GPU's environment."""
    assert record.provision and record.provision.device and record.provision.environment
    whole = to_json(record).replace(f'"{record.provision.device.uuid}"', f'"{A100.uuid}"')
    record = from_json(whole, RunRecord, "the night on an A100")
    assert record.provision and record.provision.environment
    environment = replace(record.provision.environment, driver="580.105.08", cuda="13.0")
    request = replace(
        record.request, device="cuda", seed=None, dag_run_id=name, run_id=run_id_for("nightly_learner", name)
    )
    return replace(record, request=request, provision=replace(record.provision, device=A100, environment=environment))


def test_all_four_records_are_accepted_each_for_what_it_is_good_for(shipped: Database) -> None:
    statement = text(
        "SELECT dag_run_id, payload, protocol, for_agreement, for_time, for_energy FROM baseline_current "
        "WHERE workload = 'learner' ORDER BY dag_run_id"
    )
    with shipped.reader.connect() as connection:
        found = [tuple(row) for row in connection.execute(statement)]
    assert found == [
        ("learner-measure", "learner-record", "trial", True, True, False),
        ("learner-qualification", "learner-record", "trial", True, True, False),
        (REFERENCE, "learner", "trial", True, False, False),
        (SIMULATED, "learner", "trial", True, True, True),
    ]


@pytest.mark.parametrize("name", ["learner-measure", "learner-qualification"])
def test_an_original_that_is_imported_after_the_set_up_is_the_run_that_shipped(
    shipped: Database, tmp_path: Path, name: str
) -> None:
    record = read_record(BASELINES / f"{name}-a100.json", RunRecord)
    original, imported = tmp_path / "original.json", tmp_path / "imported.json"
    original.write_text(json.dumps(with_sentences(record.provenance)), encoding="utf-8")
    assert main(["convert", str(original), "--out", str(imported)]) == 0
    assert import_record(shipped.writer, imported).status is LoadStatus.UNCHANGED


def test_a_simulated_night_is_ok_by_the_one_that_shipped(shipped: Database, healthy: RunRecord) -> None:
    assert healthy.provision and healthy.provision.device
    board = healthy.provision.device.uuid
    found = judge(shipped, healthy)
    assert words(found) == dict.fromkeys(("agreement", "energy", "time", "memory", "qualification"), "ok")
    for name in ("agreement", "energy", "time"):
        assert SIMULATED in found[name].reason, name
    with shipped.reader.connect() as connection:
        of_this_night = [c for c in compared(connection) if (c.workload, c.device_uuid) == ("learner", board)]
        told = {(c.purpose, c.payload) for c in of_this_night}
    assert told == {(purpose, "learner") for purpose in ("predictions", "time", "energy")}


def test_ten_percent_more_energy_is_a_regression_of_the_energy_alone(shipped: Database, dear: RunRecord) -> None:
    found = judge(shipped, dear)
    assert found.pop("energy").direction == "higher"
    assert set(words(found).values()) == {"ok"}
    assert words(judge(shipped, dear))["energy"] == "regressed"


def test_a_night_on_an_a100_has_its_predictions_from_the_reference_and_waits_for_a_baseline_of_its_own(
    shipped: Database, healthy: RunRecord
) -> None:
    """The imported records are of other boards, and of images with other last bits: never judged by, and not lost."""
    first = on_an_a100(healthy, "first")
    found = judge(shipped, first)
    assert (found["agreement"].verdict.value, REFERENCE in found["agreement"].reason) == ("ok", True)
    for name in ("energy", "time"):
        assert found[name].verdict.value == "inconclusive"
        assert found[name].reason_code.startswith("baseline_other_"), name
    accept_baseline(shipped.writer, first.request.run_id, accepted_by="test", reason="looks right")
    again = words(judge(shipped, on_an_a100(healthy, "second")))
    assert again == dict.fromkeys(("agreement", "energy", "time", "memory", "qualification"), "ok")


def test_versions_are_compared_with_those_of_the_same_kind_of_device(healthy: RunRecord) -> None:
    assert healthy.provision and healthy.provision.environment and healthy.provision.device
    environment = replace(healthy.provision.environment, python="3.99.0")
    named = {
        kind: {d.baseline for d in differences(environment, replace(healthy.provision.device, kind=kind), "learner")}
        for kind in ("cuda", "reference", "simulated", "emulated")
    }
    assert named == {
        "cuda": {"learner-measure-a100"},
        "reference": {REFERENCE},
        "simulated": {SIMULATED},
        "emulated": set(),
    }

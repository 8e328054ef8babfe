"""``nightly promote`` on an installation of its own: what it accepts, what it prints, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_tasks.records import KernelIdentity, RunRecord
from local import promote_command
from local.databases import engine_of
from local.paths import Home
from local.stack import hold
from regression.detectors.comparison import judge_comparison
from regression.results.checks import Finding, store_findings
from regression.results.history import find_run
from regression.results.kernel_comparisons import comparison_of
from regression.results.outcome import settle_verdict
from tests.integration.local.test_baseline_commands import board, lines_of, query, store
from tests.integration.regression.example_comparisons import COMMIT, DAG, TRIED, blocks, candidate_run, comparison
from tests.integration.regression.example_energy import energy_run
from tests.integration.regression.example_records import KERNEL, digest
from tests.support.commands import Run

LAUNCH = {"entry": "train", "grid": [10, 1, 1], "block": [512, 1, 1], "shared_static_bytes": 8}
LAUNCH |= {"shared_dynamic_bytes": 0, "ptx_sha256": digest("tried ptx"), "ptx_lines": 12}
CHECKS = ("compare_predictions", "compare_time", "compare_energy")
Pin = Callable[[KernelIdentity], None]


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pin:
    """What nights run, as the manifest has it."""
    path = tmp_path / "manifest.json"
    monkeypatch.setattr(promote_command, "PINNED", path)

    def pin(kernel: KernelIdentity) -> None:
        variant = {"ptx_sha256": kernel.ptx_sha256, "launches": kernel.launches}
        path.write_text(json.dumps({"default": kernel.variant, "variants": {kernel.variant: variant}}))

    return pin


def tried(home: Home, record: RunRecord) -> str:
    """Store, judge and settle a candidate as its DAG does."""
    run_id = store(home, record)
    with (
        hold(home, None, need_airflow=False) as held,
        engine_of(held.databases().writer) as engine,
        engine.begin() as connection,
    ):
        run = find_run(connection, DAG, record.request.dag_run_id)
        verdicts = judge_comparison(comparison_of(connection, run))
        store_findings(connection, run.run_id, [Finding(verdict, None) for verdict in verdicts])
        settle_verdict(connection, DAG, record.request.dag_run_id, CHECKS)
    return run_id


def of_kernel(record: RunRecord, kernel: KernelIdentity) -> RunRecord:
    assert record.provision
    return replace(record, kernel=kernel, provision=replace(record.provision, kernel=kernel))


def current(home: Home, uuid: str) -> list[dict[str, Any]]:
    return query(home, f"SELECT run_id::text, accepted_by FROM baseline_current WHERE device_uuid = 'GPU-{uuid}'")


def test_a_pinned_candidate_takes_the_place_of_the_kernel_before(nightly: Run, home: Home, pinned: Pin) -> None:
    device = board("promoted")
    store(home, energy_run("before", device=device))
    assert nightly("baseline", "accept", "before", "--reason", "first night", "--by", "ann")[0] == 0
    run_id = tried(home, candidate_run("promoted__1", device=device))
    pinned(TRIED)
    status, output, errors = nightly("promote", "promoted__1", "--reason", "a tenth less", "--by", "ben")
    assert status == 0, errors
    told = lines_of(output)
    assert told[0] == f"accepted: run {run_id} (promoted__1, 2026-11-30), by ben: a tenth less"
    assert "energy 0.6 -> 0.54 mJ (-10.00 %)" in told
    old, new = f"original {KERNEL.ptx_sha256[:12]}", f"original {TRIED.ptx_sha256[:12]}"
    assert f"kernel: {old} -> {new} (commit {COMMIT[:12]}, modified)" in told
    assert f"side by side with {old}: predictions same, time same, energy better" in told
    assert current(home, "promoted") == [{"run_id": run_id, "accepted_by": "ben"}]
    lineage = (
        "SELECT replaced_ptx_sha256, kernel_ptx_sha256, reason FROM kernel_lineage WHERE device_uuid = 'GPU-promoted'"
    )
    assert query(home, f"{lineage} ORDER BY accepted_at")[-1] == {
        "replaced_ptx_sha256": KERNEL.ptx_sha256,
        "kernel_ptx_sha256": TRIED.ptx_sha256,
        "reason": "a tenth less",
    }


@pytest.mark.parametrize(("modified", "told"), [(True, ", modified)"), (False, ")")])
def test_an_edit_on_top_of_a_commit_is_not_called_that_commit(
    nightly: Run, home: Home, pinned: Pin, modified: bool, told: str
) -> None:
    name = f"edited-{modified}".lower()
    tried(home, candidate_run(name, device=board(name), of={"modified": modified}))
    pinned(TRIED)
    status, output, errors = nightly("promote", name, "--reason", "r")
    assert status == 0, errors
    assert f"(commit {COMMIT[:12]}{told}" in output
    lineage = query(home, f"SELECT commit, modified FROM kernel_lineage WHERE device_uuid = 'GPU-{name}'")
    assert lineage == [{"commit": COMMIT, "modified": modified}]


def test_nights_must_run_the_kernel_by_then(nightly: Run, home: Home, pinned: Pin) -> None:
    run_id = tried(home, candidate_run("not-pinned", device=board("not-pinned")))
    pinned(KERNEL)
    status, output, errors = nightly("promote", "not-pinned", "--reason", "r")
    assert (status, output) == (2, "")
    found = f"found original {TRIED.ptx_sha256[:12]}, and nights run original {KERNEL.ptx_sha256[:12]}"
    assert errors == (
        f"nightly: run {run_id}: expected the kernel that nights run, {found}; bring the change into kernels/, then "
        "`./nightly pin`\n"
    )
    assert current(home, "not-pinned") == []


def test_the_same_text_launched_otherwise_is_another_kernel(nightly: Run, home: Home, pinned: Pin) -> None:
    kernel = replace(TRIED, launches=[LAUNCH])
    tried(home, of_kernel(candidate_run("launched", device=board("launched")), kernel))
    pinned(replace(kernel, launches=[LAUNCH | {"grid": [11, 1, 1]}]))
    status, _, errors = nightly("promote", "launched", "--reason", "r")
    assert (status, "and nights run the same text, launched otherwise" in errors) == (2, True), errors
    pinned(kernel)
    assert nightly("promote", "launched", "--reason", "r")[0] == 0


def test_a_worse_kernel_is_promoted_by_its_name_only(nightly: Run, home: Home, pinned: Pin) -> None:
    slower = comparison(blocks(ms=0.002))
    run_id = tried(home, candidate_run("slower", slower, device=board("slower")))
    pinned(TRIED)
    status, output, errors = nightly("promote", "slower", "--reason", "needed for the next step")
    assert (status, output, current(home, "slower")) == (2, "", [])
    assert "expected a kernel that is not worse, or --although-worse, found compare_time: CUDA time" in errors
    status, output, errors = nightly("promote", "slower", "--reason", "needed for the next step", "--although-worse")
    assert status == 0, errors
    assert any(line.endswith("predictions same, time worse, energy better") for line in lines_of(output))
    assert [row["run_id"] for row in current(home, "slower")] == [run_id]


def test_what_is_no_candidate_is_refused(nightly: Run, home: Home, pinned: Pin) -> None:
    store(home, energy_run("a-night", device=board("a-night")))
    pinned(TRIED)
    assert "expected one that tried a kernel, found a night" in nightly("promote", "a-night", "--reason", "r")[2]
    assert "expected a stored run, found none" in nightly("promote", "nothing", "--reason", "r")[2]


@pytest.mark.parametrize("content", [None, "", "{}", '{"default": "a", "variants": {"a": {"ptx_sha256": "b"}}}'])
def test_a_manifest_that_says_nothing_is_named(
    nightly: Run, home: Home, pinned: Pin, tmp_path: Path, content: str | None
) -> None:
    name = f"manifest-{len(content or 'none')}"
    tried(home, candidate_run(name, device=board(name)))
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    status, _, errors = nightly("promote", name, "--reason", "r")
    assert status == 4
    assert "manifest.json: expected the manifest of the pinned kernels, found" in errors
    assert len(errors.splitlines()) == 1

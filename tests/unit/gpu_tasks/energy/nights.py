"""Whole simulated nights for the tests, each made once: every program in turn, on the virtual clock."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from gpu_tasks.candidates.bundle import write_bundle
from gpu_tasks.devices.manifest import COMMITTED, load_kernels, read_manifest
from gpu_tasks.programs.baseline import night
from gpu_tasks.programs.cli import main
from gpu_tasks.records import ComparisonRecord, RunRecord, RunRequest, read_record, utc_now


@cache
def simulated_night(
    inject: str | None = None, seed: int = 1, rounds: int = 3, protocol: str | None = None
) -> RunRecord:
    """The run record of a night with one draw; its sources are taken as they are."""
    request = RunRequest(
        accepted_at=utc_now(),
        workload="qda",
        dag_id="nightly_qda",
        dag_run_id="test",
        run_id="none",
        trigger="manual",
        logical_date=None,
        device="simulated",
        variant=None,
        payload="original",
        draws=[0],
        rounds=rounds,
        repeats=None,
        protocol=protocol,
        label=None,
        note=None,
        inject=inject,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        return night(request, Path(folder))


@cache
def simulated_comparison(inject: str | None = None, seed: int = 1, variant: str = "fused") -> ComparisonRecord:
    """``variant`` beside the default on one draw of the simulated device, in the default number of blocks."""
    manifest = read_manifest(COMMITTED)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        options = ["--device", "simulated", "--draws", "0", "--seed", str(seed)]
        for option, name in (("--manifest", variant), ("--against-manifest", manifest.default)):
            bundle = write_bundle(folder, manifest, load_kernels(COMMITTED, name))
            options += [option, str(folder / bundle / "manifest.json")]
        main(["compare", *options, *(["--inject", inject] if inject else []), "--out", str(folder / "comparison.json")])
        return read_record(folder / "comparison.json", ComparisonRecord)

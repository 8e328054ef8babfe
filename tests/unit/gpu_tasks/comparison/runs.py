"""A whole run that tries a kernel, as its programs write it, made once for each way it can go."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import cache
from pathlib import Path

from gpu_tasks.programs.cli import main
from gpu_tasks.records import (
    CandidateRecord,
    Outcome,
    RunRecord,
    RunRequest,
    VerifyRecord,
    read_record,
    run_id_for,
    utc_now,
    write_record,
)

REQUEST = RunRequest(
    accepted_at=utc_now(),
    workload="qda",
    dag_id="compare_kernels",
    dag_run_id="test",
    run_id=run_id_for("compare_kernels", "test"),
    trigger="manual",
    logical_date=None,
    device="simulated",
    variant=None,
    payload="original",
    draws=[0, 1],
    rounds=3,
    repeats=None,
    protocol=None,
    label=None,
    note=None,
    candidate="fused",
    blocks=8,
    kernel_changed=True,
)


def write_run(request: RunRequest, folder: Path) -> None:
    """The part records of a run of ``request``; its sources are taken as they are."""

    def program(name: str, part: str, *options: str) -> None:
        main([name, *options, "--out", str(folder / f"{part}.json")])

    write_record(request, folder / "request.json")
    program("candidate", "candidate", f"--spec={request.candidate}", "--candidates", str(folder / "candidates"))
    tried = read_record(folder / "candidate.json", CandidateRecord)
    own, other = (f"{folder}/candidates/{name}/manifest.json" for name in (tried.bundle, tried.against_bundle))
    device = ["--device", request.device, *(["--inject", request.inject] if request.inject else [])]
    program("provision", "provision", *device, "--manifest", own)
    program("verify", "verify-payload", "--subject", "payload")
    sources = read_record(folder / "verify-payload.json", VerifyRecord)
    write_record(dataclasses.replace(sources, subject="sources", payload=None), folder / "verify-sources.json")
    telemetry = ["--manifest", own, "--request", str(folder / "request.json")]
    program("telemetry", "telemetry-before", "--when", "before", *device, *telemetry)
    learnt = ["--telemetry", str(folder / "telemetry-before.json")]
    sides = ["--manifest", own, "--against-manifest", other, "--draws", ",".join(map(str, request.draws))]
    program("compare", "comparison", *device, *sides, *learnt, "--blocks", str(request.blocks))
    for number in range(request.rounds):
        program("measure", f"round-{number:02d}", "--round", str(number), *device, "--manifest", own, *learnt)
    program("telemetry", "telemetry-after", "--when", "after", *device, *telemetry)


@cache
def candidate_run(inject: str | None = None, device: str = "simulated") -> RunRecord:
    """The run record of ``fused`` beside the default."""
    request = dataclasses.replace(REQUEST, inject=inject, device=device)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write_run(request, folder)
        main(["summarise", "--request", f"{folder}/request.json", "--folder", text, "--out", f"{folder}/run.json"])
        found = read_record(folder / "run.json", RunRecord)
    assert found.outcome is not Outcome.INFRASTRUCTURE_FAILURE, found.reason
    return found

"""``baseline``: a whole night of the healthy simulated device, as the run record that ships for it.

A simulated night has something to be compared with from the first day on. The noise comes from a fixed seed, so that
the same programs write the same figures again.
"""

from __future__ import annotations

import dataclasses
import tempfile
from argparse import Namespace
from pathlib import Path

from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.console import progress
from gpu_tasks.records import (
    InvalidMeasurement,
    Outcome,
    RunRecord,
    RunRequest,
    read_record,
    run_id_for,
    utc_now,
    write_record,
)
from gpu_tasks.workloads.base import QualifiedWorkload
from gpu_tasks.workloads.registry import default_payload, get_workload

DAG_ID, DAG_RUN_ID = "import", "simulated-a100-healthy"
SEED = 20261130
ROUNDS = 14
"""Twice those of a night: what all nights are held against must not be chance (docs/baselines.md)."""
NOTE = "one night of the simulated device without any effect, shipped as its first baseline"


def run(arguments: Namespace) -> None:
    """Write the record to ``--out``; raises ``InvalidMeasurement`` when that night is not fine itself."""
    workload = get_workload(arguments.workload)
    request = RunRequest(
        accepted_at=utc_now(),
        workload=workload.name,
        dag_id=DAG_ID,
        dag_run_id=DAG_RUN_ID,
        run_id=run_id_for(DAG_ID, DAG_RUN_ID),
        trigger="import",
        logical_date=None,
        device="simulated",
        variant=None,
        payload=default_payload(workload.name),
        draws=[draw.draw for draw in Payload(default_payload(workload.name), workload).manifest.draws],
        rounds=ROUNDS,
        repeats=None,
        protocol=None,
        label=None,
        note=NOTE,
        seed=SEED,
    )
    with tempfile.TemporaryDirectory() as folder:
        record = night(request, Path(folder))
    if record.outcome is not Outcome.OK or record.energy_trust != "verified":
        found = record.reason or record.energy_trust_reason
        raise InvalidMeasurement("baseline_not_fine", f"the baseline's night: expected ok and verified, found {found}")
    write_record(_anywhere(record), arguments.out)


def _anywhere(record: RunRecord) -> RunRecord:
    """``record`` without the machine that it was made on, and without the sources of that day, which change daily."""
    provision = record.provision
    if provision is None or provision.environment is None:
        raise ValueError("a night that is fine has its environment")
    environment = dataclasses.replace(provision.environment, platform="simulated")
    provenance = {"device": "simulated", "seed": SEED, "command": "python -m gpu_tasks baseline"}
    provision = dataclasses.replace(provision, environment=environment)
    return dataclasses.replace(record, provision=provision, verify_sources=None, provenance=provenance)


def night(request: RunRequest, folder: Path) -> RunRecord:
    """Every program of a night, one after the other, in ``folder``; whatever fails is in the record that it returns."""
    from gpu_tasks.programs.cli import main

    def program(name: str, part: str, *options: str) -> None:
        progress(part)
        common = ["--workload", request.workload] if name != "summarise" else []
        if name in ("verify", "validate", "measure"):
            common += ["--payload", request.payload]
        if name not in ("verify", "summarise"):
            common += ["--device", request.device, "--seed", str(request.seed)]
            common += ["--inject", request.inject] if request.inject else []
        main([name, *common, *options, "--out", str(folder / f"{part}.json")])

    write_record(request, folder / "request.json")
    program("provision", "provision")
    for subject in ("sources", "payload"):
        program("verify", f"verify-{subject}", "--subject", subject)
    if isinstance(get_workload(request.workload), QualifiedWorkload):
        program("qualify", "qualification")
    for draw in request.draws:
        program("validate", f"validation-{draw:02d}", "--draw", str(draw))
    program("telemetry", "telemetry-before", "--when", "before")
    learnt = ["--telemetry", str(folder / "telemetry-before.json")]
    if request.protocol:
        learnt += ["--protocol", request.protocol]
    for number in range(request.rounds):
        program("measure", f"round-{number:02d}", "--round", str(number), *learnt)
    program("telemetry", "telemetry-after", "--when", "after")
    program("summarise", "run", "--request", str(folder / "request.json"), "--folder", str(folder))
    return read_record(folder / "run.json", RunRecord)

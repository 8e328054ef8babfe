"""``baseline``: a whole night of the healthy simulated device, or of the reference, as the record that ships for it.

A simulated night has something to be compared with from the first day on. The noise comes from a fixed seed, so that
the same programs write the same figures again. That of the reference says what predictions are, on whatever device: it
ships for a workload whose draws no record from elsewhere has.
"""

from __future__ import annotations

import dataclasses
import tempfile
from argparse import Namespace
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gpu_tasks.devices.base import AccountedDevice
from gpu_tasks.devices.registry import open_device
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.console import progress
from gpu_tasks.records import (
    InvalidMeasurement,
    Outcome,
    RunRecord,
    RunRequest,
    from_json,
    read_record,
    run_id_for,
    to_json,
    utc_now,
    write_record,
)
from gpu_tasks.workloads.base import QualifiedWorkload, Workload
from gpu_tasks.workloads.registry import default_payload, get_workload

DAG_ID = "import"
SEED = 20261130


@dataclass(frozen=True)
class Shipped:
    """What ships of a kind of device: the end of its name, rounds, note, and what must be said of its energy.

    ``uuid`` takes the place of the board's where that is the machine's own; None: it is nobody's already.
    """

    name: str
    rounds: int
    note: str
    energy_trust: str
    uuid: str | None = None


SHIPPED = {
    # Twice the rounds of a night: what all nights are held against must not be chance (docs/baselines.md).
    "simulated": Shipped(
        "simulated-a100-healthy",
        14,
        "one night of the simulated device without any effect, shipped as its first baseline",
        "verified",
    ),
    # Rounds of a CPU are compared with nothing.
    "reference": Shipped(
        "reference", 1, "one night of the reference, shipped for its predictions", "unavailable", "CPU-shipped"
    ),
}


def run(arguments: Namespace) -> None:
    """Write the record to ``--out``; raises ``InvalidMeasurement`` when that night is not fine itself."""
    workload, shipped = get_workload(arguments.workload), SHIPPED[arguments.device]
    payload, dag_run_id = default_payload(workload.name), f"{workload.name}-{shipped.name}"
    request = RunRequest(
        accepted_at=utc_now(),
        workload=workload.name,
        dag_id=DAG_ID,
        dag_run_id=dag_run_id,
        run_id=run_id_for(DAG_ID, dag_run_id),
        trigger="import",
        logical_date=None,
        device=arguments.device,
        variant=None,
        payload=payload,
        draws=[draw.draw for draw in Payload(payload, workload).manifest.draws],
        rounds=shipped.rounds,
        repeats=None,
        protocol=None,
        label=None,
        note=shipped.note,
        seed=SEED if arguments.device == "simulated" else None,
        parts=_parts(workload, arguments.device),
    )
    with tempfile.TemporaryDirectory() as folder:
        record = night(request, Path(folder))
    if record.outcome is not Outcome.OK or record.energy_trust != shipped.energy_trust:
        found = record.reason or record.energy_trust_reason
        expected = f"expected ok and energy {shipped.energy_trust}"
        raise InvalidMeasurement("baseline_not_fine", f"the baseline's night: {expected}, found {found}")
    write_record(_anywhere(record, shipped), arguments.out)


def _parts(workload: Workload, device_kind: str) -> list[str]:
    """What a run of the workload has beside what every run has."""
    with closing(open_device(device_kind, workload)) as device:
        found = {
            "qualification": isinstance(workload, QualifiedWorkload),
            "memory": isinstance(device, AccountedDevice),
        }
    return [name for name, has in found.items() if has]


def _anywhere(record: RunRecord, shipped: Shipped) -> RunRecord:
    """``record`` without the machine that it was made on, and without the sources of that day, which change daily."""
    provision, request = record.provision, record.request
    if provision is None or provision.environment is None or provision.device is None:
        raise ValueError("a night that is fine has its device and environment")
    environment = provision.environment
    if shipped.uuid is not None:
        whole = to_json(record).replace(f'"{provision.device.uuid}"', f'"{shipped.uuid}"')
        record = from_json(whole, RunRecord, "the baseline's night")
        device = dataclasses.replace(provision.device, uuid=shipped.uuid, name=request.device, memory_total_bytes=None)
        provision = dataclasses.replace(provision, device=device)
    environment = dataclasses.replace(environment, platform=request.device)
    command = f"python -m gpu_tasks baseline --workload {request.workload} --device {request.device}"
    provenance = {"device": request.device, "command": command} | ({"seed": SEED} if request.seed is not None else {})
    provision = dataclasses.replace(provision, environment=environment, environment_differences=[])
    return dataclasses.replace(record, provision=provision, verify_sources=None, provenance=provenance)


def night(request: RunRequest, folder: Path) -> RunRecord:
    """Every program of a night, one after the other, in ``folder``; whatever fails is in the record that it returns."""
    from gpu_tasks.programs.cli import main

    def program(name: str, part: str, *options: str) -> None:
        progress(part)
        common = ["--workload", request.workload] if name != "summarise" else []
        if name in ("verify", "validate", "measure", "memory"):
            common += ["--payload", request.payload]
        if name not in ("verify", "summarise"):
            common += ["--device", request.device]
            common += ["--seed", str(request.seed)] if request.seed is not None else []
            common += ["--inject", request.inject] if request.inject else []
        main([name, *common, *options, "--out", str(folder / f"{part}.json")])

    write_record(request, folder / "request.json")
    program("provision", "provision")
    for subject in ("sources", "payload"):
        program("verify", f"verify-{subject}", "--subject", subject)
    parts = _parts(get_workload(request.workload), request.device)
    if "qualification" in parts:
        program("qualify", "qualification")
    for draw in request.draws:
        program("validate", f"validation-{draw:02d}", "--draw", str(draw))
    program("telemetry", "telemetry-before", "--when", "before")
    learnt = ["--telemetry", str(folder / "telemetry-before.json")]
    if request.protocol:
        learnt += ["--protocol", request.protocol]
    for number in range(request.rounds):
        program("measure", f"round-{number:02d}", "--round", str(number), *learnt)
    if "memory" in parts:
        program("memory", "memory")
    program("telemetry", "telemetry-after", "--when", "after")
    program("summarise", "run", "--request", str(folder / "request.json"), "--folder", str(folder))
    return read_record(folder / "run.json", RunRecord)

"""``telemetry``: the sensor before or after the rounds, and the gates that can be judged there."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from contextlib import closing

from gpu_tasks.devices.registry import open_device
from gpu_tasks.energy.gates import failed
from gpu_tasks.energy.telemetry import as_fields, look
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.bounds import check_limits
from gpu_tasks.programs.console import Phases
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import Outcome, Reason, RunRequest, TelemetryRecord, read_record, utc_now
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> TelemetryRecord:
    """Look at the device's sensor; a device without energy says so and has nothing to judge."""
    check_limits(arguments)
    bands = read_record(arguments.request, RunRequest).reference_bands if arguments.request else {}
    workload = get_workload(arguments.workload)
    made_up = simulation(arguments, f"telemetry-{arguments.when}")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        instruments = repeated(f"telemetry {arguments.when}", lambda _: device.instruments())
        fingerprint = device.fingerprint()
        record = TelemetryRecord(
            kind="telemetry",
            created_at=utc_now(),
            outcome=Outcome.OK,
            reason=None,
            workload=workload.name,
            device_uuid=fingerprint.uuid,
            when=arguments.when,
            tick_period_s=None,
            read_latency_s=None,
            wander=None,
            idle_edges=[],
            reference_load=None,
            gates=[],
            state_before=None,
            state_after=None,
            trace=None,
            energy_reason=None,
        )
        if isinstance(instruments, Reason):
            return dataclasses.replace(record, energy_reason=instruments)
        with Phases(f"telemetry {arguments.when}") as say:
            found = repeated(
                f"telemetry {arguments.when}",
                lambda _: look(
                    instruments,
                    fingerprint.name,
                    arguments.when,
                    bands,
                    power_limit_w=arguments.power_limit,
                    say=say,
                ),
                instruments.clock.sleep,
            )
    record = dataclasses.replace(record, created_at=utc_now(), **as_fields(found))  # type: ignore[arg-type]
    wrong = failed(record.gates)
    if not wrong:
        return record
    message = "; ".join(gate.reason.message for gate in wrong if gate.reason)
    reason = Reason("gate_failed", f"telemetry gate {wrong[0].gate}: {message}")
    return dataclasses.replace(record, outcome=Outcome.INVALID_MEASUREMENT, reason=reason)

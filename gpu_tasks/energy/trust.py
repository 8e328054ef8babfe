"""Whether the energy of a run may be used: its gates, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpu_tasks.energy.gates import failed, run_gates, unchecked
from gpu_tasks.records import (
    DeviceFingerprint,
    GateResult,
    ProvisionRecord,
    Reason,
    RoundRecord,
    TelemetryRecord,
)

NO_DEVICE = Reason("no_device", "no device was provisioned")


def energy_trust(
    provision: ProvisionRecord | None,
    telemetry: Sequence[TelemetryRecord],
    rounds: Sequence[RoundRecord],
    learnt_bands: Mapping[str, list[float]],
) -> tuple[list[GateResult], str, Reason | None]:
    """The gates of a run, its trust as ``RunRecord.energy_trust`` has it, and why it is not verified.

    A device without a counter has no gates; rounds that have an energy all the same are judged by them.
    """
    device = provision.device if provision else None
    if device is None:
        return [], "unavailable", NO_DEVICE
    if not device.energy_counter and not any(record.energy is not None for record in rounds):
        return [], "unavailable", device.energy_counter_reason
    gates = run_gates(telemetry, rounds, device.name, learnt_bands)
    return gates, *_trust(gates, rounds)


def comparison_trust(
    device: DeviceFingerprint | None,
    telemetry: Sequence[TelemetryRecord],
    rounds: Sequence[RoundRecord],
    learnt_bands: Mapping[str, list[float]],
    not_measured: Reason | None,
) -> tuple[str, Reason | None]:
    """The same of the interleaved rounds of a comparison, and why it is not verified.

    What their figures are compared within is a block; how far apart whole rounds lie is no gate of theirs. Rounds that
    were timed alone say themselves why they have no energy.
    """
    if not_measured is not None or device is None:
        return "unavailable", not_measured or NO_DEVICE
    no_counter = next((record.energy_reason for record in rounds if record.energy_reason is not None), None)
    if no_counter is not None and all(record.energy is None for record in rounds):
        return "unavailable", no_counter
    gates = run_gates(telemetry, rounds, device.name, learnt_bands)
    return _trust([gate for gate in gates if gate.gate != "round_spread"], rounds)


def _trust(gates: Sequence[GateResult], rounds: Sequence[RoundRecord]) -> tuple[str, Reason | None]:
    for trust, found in (("failed", failed(gates)), ("unverified", unchecked(gates))):
        if found:
            reasons = [gate.reason for gate in found if gate.reason]
            code = "gate_failed" if trust == "failed" else reasons[0].code
            return trust, Reason(code, "; ".join(reason.message for reason in reasons))
    if not any(record.valid for record in rounds):
        return "unverified", Reason("no_valid_round", "no round is valid")
    return "verified", None

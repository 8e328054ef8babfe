"""``compare``: is the candidate right, and what does it cost beside the pinned kernel, in one process on one device.

Correctness comes before speed: the emulator sees the candidate first, with every check, and nothing is measured of
kernels that are wrong. Devices are opened candidate first: what a simulated board is told to show is the candidate's.
"""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from gpu_tasks.candidates.bundle import verify_bundle
from gpu_tasks.comparison.differing import differing, with_scores
from gpu_tasks.comparison.emulation import Emulated, Wanted, emulate, first_wrong, validated
from gpu_tasks.devices.base import Device
from gpu_tasks.devices.manifest import read_manifest
from gpu_tasks.devices.registry import KernelChoice, check_simulation, open_device, resolve_kind
from gpu_tasks.energy.blocks import block_figures
from gpu_tasks.energy.trust import comparison_trust
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.bounds import check_blocks, check_limits, shortened
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.interleaving import Pair, measure_blocks
from gpu_tasks.programs.rounds import check_same_device, read_telemetry
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.programs.timed_turns import measure_turns
from gpu_tasks.records import (
    BadInput,
    ComparisonRecord,
    DeviceFingerprint,
    Outcome,
    Reason,
    RoundRecord,
    TelemetryRecord,
    TimedTurn,
    ValidationRecord,
    utc_now,
)
from gpu_tasks.validation import chosen_draw
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> ComparisonRecord:
    """Emulate, validate, measure, in this order, and each only if what came before it went well."""
    check_limits(arguments)
    check_blocks(arguments.blocks, fewest=0)
    return _Compared(arguments).record(read_telemetry(arguments.telemetry))


class _Compared:
    """One comparison on its way into the record. Raises ``BadInput`` for whatever can be refused beforehand."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._workload = get_workload(arguments.workload)
        self._payload = Payload(arguments.payload, self._workload)
        self._draws = _draws(arguments.draws, self._payload)
        self._kind = resolve_kind(arguments.device, self._workload.name)
        self._simulation = simulation(arguments, "compare")
        check_simulation(self._kind, self._simulation)
        if self._kind == "reference":
            raise BadInput("no_ptx_here", "--device: expected a device that runs PTX, found reference")
        self._choices = [_choice(arguments.manifest), _choice(arguments.against_manifest)]
        self._kernels = [choice.load() for choice in self._choices]

    def record(self, telemetry: TelemetryRecord | None) -> ComparisonRecord:
        """All of it."""
        emulated, pinned = self._emulated()
        validations = emulated.validations
        record = ComparisonRecord(
            kind="comparison",
            created_at=utc_now(),
            outcome=Outcome.OK,
            reason=None,
            workload=self._workload.name,
            payload=self._payload.name,
            device_uuid=None,
            candidate=self._kernels[0].identity(),
            pinned=self._kernels[1].identity(),
            candidate_static=emulated.static,
            pinned_static=pinned.static,
            emulated=[] if self._kind == "emulated" else validations,
            validations=validations if self._kind == "emulated" else [],
            pinned_validations=pinned.validations,
            differing=[],
            differing_total=0,
            rounds=[],
            blocks=[],
            not_measured=None,
            energy_trust="unavailable",
            energy_trust_reason=None,
        )
        wrong = first_wrong(validations)
        if wrong is None or self._kind == "emulated":
            record = self._on_device(record, telemetry)
            validations = record.validations
        return self._finished(record, validations)

    def _emulated(self) -> tuple[Emulated, Emulated]:
        """Both sides on the emulator: of the pinned one no more than is needed to see what is different."""
        candidate, pinned = self._kernels
        progress(f"emulator: {_counted(self._draws)} with all checks")
        here = self._draws if self._kind == "emulated" else []
        wanted = [
            Wanted("candidate", candidate, self._draws, beside=pinned),
            Wanted("pinned", pinned, here, races=False, moved=False),
        ]
        own, other = emulate(self._workload, self._payload, wanted)
        _tell("emulator, candidate", own.validations)
        parted = [record.draw for record in own.validations if record.mismatches]
        if parted and not other.validations:
            again = [Wanted("pinned", pinned, parted, races=False, static=False, moved=False)]
            (seen,) = emulate(self._workload, self._payload, again)
            other = dataclasses.replace(other, validations=seen.validations)
        return own, other

    def _on_device(self, record: ComparisonRecord, telemetry: TelemetryRecord | None) -> ComparisonRecord:
        """Validated and measured on the device; on the emulator, which has seen both sides, nothing is left to do."""
        with ExitStack() as stack:
            devices = [stack.enter_context(closing(self._opened(choice))) for choice in self._choices]
            fingerprint = repeated("compare", lambda _: devices[0].fingerprint())
            record = dataclasses.replace(record, device_uuid=fingerprint.uuid)
            check_same_device(telemetry, self._arguments.telemetry, fingerprint.uuid)
            self._check_architecture(fingerprint)
            if self._kind != "emulated":
                own, other = (self._validated(name, device) for name, device in zip(_SIDES, devices, strict=True))
                record = dataclasses.replace(record, validations=own, pinned_validations=other)
            why_not = self._why_not_measured(record)
            instruments = why_not or repeated("compare", lambda _: devices[0].instruments())
            rounds, turns = list[RoundRecord](), list[TimedTurn]()
            if isinstance(instruments, Reason):
                no_counter = why_not or Reason("no_energy_counter", instruments.message)
                if why_not is None and self._kind != "emulated":  # which has no time either
                    draw = self._payload.load(self._workload.benchmark_draw)
                    rounds, turns = measure_turns(self._arguments, devices[0], devices[1], draw, no_counter)
                else:
                    why_not = no_counter
            else:
                draw = self._payload.load(self._workload.benchmark_draw)
                pair = Pair(devices[0], devices[1], instruments, draw)
                rounds = measure_blocks(self._arguments, pair, telemetry)
        trust, reason = comparison_trust(fingerprint, [telemetry] if telemetry else [], rounds, {}, why_not)
        return dataclasses.replace(
            record,
            rounds=rounds,
            blocks=block_figures(rounds, turns),
            turns=turns,
            not_measured=why_not,
            energy_trust=trust,
            energy_trust_reason=reason,
        )

    def _opened(self, choice: KernelChoice) -> Device:
        return open_device(self._kind, self._workload, choice, simulation=self._simulation)

    def _validated(self, name: str, device: Device) -> list[ValidationRecord]:
        progress(f"{self._kind}, {name}: {_counted(self._draws)}")
        uuid = repeated("compare", lambda _: device.fingerprint()).uuid
        chosen = [chosen_draw(self._payload, number) for number in self._draws]
        found = [validated(device, self._workload, self._payload, one, uuid) for one in chosen]
        _tell(f"{self._kind}, {name}", found)
        return found

    def _why_not_measured(self, record: ComparisonRecord) -> Reason | None:
        for code, validations in (("candidate_wrong", record.validations), ("pinned_wrong", record.pinned_validations)):
            wrong = first_wrong(validations)
            if wrong is not None:
                return Reason(code, f"correctness comes before speed: {wrong.message}")
        if not self._arguments.blocks:
            return Reason("no_blocks", "--blocks 0: nothing was to be measured")
        return None

    def _check_architecture(self, fingerprint: DeviceFingerprint) -> None:
        """A device of an older architecture than the text is for says so in words of its own, and late."""
        for choice in self._choices:
            target = read_manifest(choice.manifest).target
            wanted = [int(target.removeprefix("sm_")[:-1]), int(target[-1])]
            if fingerprint.compute_capability is not None and fingerprint.compute_capability < wanted:
                found = "sm_{}{}".format(*fingerprint.compute_capability)
                message = f"{choice.manifest}: target: expected at most {found} on {fingerprint.name}, found {target}"
                raise BadInput("other_architecture", message)

    def _finished(self, record: ComparisonRecord, validations: Sequence[ValidationRecord]) -> ComparisonRecord:
        """Where predictions part, and how it ended."""
        parted = differing(validations, record.pinned_validations)
        record = dataclasses.replace(
            record,
            differing=with_scores(parted.listed, self._workload, self._payload),
            differing_total=parted.total,
            created_at=utc_now(),
        )
        wrong = first_wrong(validations)
        if wrong is not None:
            where = "emulator: " if validations is record.emulated or self._kind == "emulated" else ""
            why = Reason("candidate_wrong", f"correctness comes before speed: {where}{wrong.message}")
            reason = Reason(wrong.code, where + wrong.message)
            return dataclasses.replace(
                record, outcome=Outcome.REGRESSION, reason=reason, not_measured=why, energy_trust_reason=why
            )
        outcome, found = _of_rounds(record.rounds)
        return dataclasses.replace(record, outcome=outcome, reason=found)


_SIDES = ("candidate", "pinned")


def _choice(manifest: Path) -> KernelChoice:
    verify_bundle(manifest)
    return KernelChoice(manifest=manifest)


def _draws(text: str | None, payload: Payload) -> list[int]:
    """Numbers of draws of the set, each once; all of them where none is named."""
    if text is None:
        return [entry.draw for entry in payload.manifest.draws]
    try:
        draws = [int(word) for word in text.split(",")]
    except ValueError:
        raise BadInput("bad_draws", f"--draws: expected numbers with commas between them, found {text!r:.80}") from None
    if len(set(draws)) < len(draws):
        raise BadInput("bad_draws", f"--draws: expected each number once, found {text!r:.80}")
    last = len(payload.manifest.draws) - 1
    for number in draws:
        if not 0 <= number <= last:
            raise BadInput("draw_not_found", f"--draws: expected 0 to {last}, found {shortened(number)}")
    return draws


def _of_rounds(rounds: Sequence[RoundRecord]) -> tuple[Outcome, Reason | None]:
    """A few invalid rounds are left out; wrong output, a lost device, and none that is valid are not."""
    for record in rounds:
        lost = record.outcome is Outcome.INFRASTRUCTURE_FAILURE
        if lost or (record.reason is not None and record.reason.code == "output_not_verified"):
            return record.outcome, record.reason
    if rounds and not any(record.valid for record in rounds):
        return Outcome.INVALID_MEASUREMENT, rounds[0].reason
    return Outcome.OK, None


def _tell(who: str, validations: Sequence[ValidationRecord]) -> None:
    agreed, total = (sum(getattr(record, name) or 0 for record in validations) for name in ("agreed", "total"))
    if total:
        progress(f"{who}: {agreed} of {total} predictions agree")
    wrong = first_wrong(validations)
    if wrong is not None and who.endswith(_SIDES[1]):  # the candidate's is what the whole comparison ends with
        progress(f"{who}: {wrong.message}")


def _counted(draws: Sequence[int]) -> str:
    return f"{len(draws)} draw{'s' * (len(draws) != 1)}"

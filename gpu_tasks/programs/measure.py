"""``measure``: one round on the benchmark draw, its output verified before and after."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack, closing

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.registry import KernelChoice, open_device
from gpu_tasks.energy.figures import trial_repeats
from gpu_tasks.energy.rounds import Bench, Limits, measure_energy
from gpu_tasks.energy.windows import LONGEST_S, active_window, check_repeats, default_repeats, seconds_per_replay
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.bounds import check_blocks, check_limits, check_replays, check_round
from gpu_tasks.programs.console import Phases, progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.rounds import (
    blank_round,
    check_same_device,
    make_ready,
    output_disagreement,
    read_telemetry,
    wrong_output_after,
)
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import STORED_PROTOCOLS, TRIAL, BadInput, Outcome, Reason, RoundRecord
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload

ANNOUNCED_S = 2.0
"""A window longer than this is announced, so that nobody takes a busy program for a stuck one."""

WITHOUT_ENERGY = ("classic", TRIAL)
"""Protocols that have an order without an energy counter, too: replays, and nothing around them."""


def run(arguments: Namespace) -> RoundRecord:
    """Measure one round; raises ``InvalidMeasurement`` when the output is wrong before the window."""
    _check(arguments)
    telemetry = read_telemetry(arguments.telemetry)
    workload = get_workload(arguments.workload)
    payload = Payload(arguments.payload, workload)
    draw = payload.load(workload.benchmark_draw)
    made_up = simulation(arguments, f"round-{arguments.round}")
    with ExitStack() as stack:

        def opened(kernels: KernelChoice) -> Device:
            device = stack.enter_context(closing(open_device(arguments.device, workload, kernels, simulation=made_up)))
            make_ready(device, draw)
            return device

        device = opened(kernel_choice(arguments))
        instruments = repeated(f"round {arguments.round}", lambda _: device.instruments())
        check_same_device(telemetry, arguments.telemetry, device.fingerprint().uuid)
        if isinstance(instruments, Reason):
            return _without_energy(arguments, workload, device, draw, instruments)
        baseline = None
        if arguments.against is not None:
            baseline = opened(dataclasses.replace(kernel_choice(arguments), variant=arguments.against, ptx=()))
        with Phases(f"round {arguments.round}") as say:
            limits = Limits(arguments.power_limit, arguments.sm_clock_floor)
            bench = Bench(device, baseline, instruments, telemetry, limits, say)
            outputs = [device] if baseline is None else [device, baseline]
            return _with_energy(arguments, workload, bench, lambda: wrong_output_after(outputs, draw))


def _check(arguments: Namespace) -> None:
    check_limits(arguments)
    check_round(arguments.round)
    check_replays(arguments.repeats)
    check_blocks(arguments.blocks)
    if arguments.protocol not in (None, *STORED_PROTOCOLS):
        raise BadInput(
            "unknown_protocol",
            f"--protocol: expected one of {', '.join(STORED_PROTOCOLS)}, found {arguments.protocol!r}",
        )
    if arguments.against is not None and arguments.protocol != "interleaved":
        raise BadInput("against_needs_interleaved", "--against: expected --protocol interleaved with it, found another")


def _with_energy(
    arguments: Namespace, workload: Workload, bench: Bench, after: Callable[[], Reason | None]
) -> RoundRecord:
    def attempt(earlier: list[Reason]) -> RoundRecord:
        return measure_energy(bench, _blank(arguments, workload, bench.device, earlier), arguments.blocks, after)

    return repeated(f"round {arguments.round}", attempt, bench.instruments.clock.sleep)


def _without_energy(
    arguments: Namespace, workload: Workload, device: Device, draw: Draw, reason: Reason
) -> RoundRecord:
    protocol = arguments.protocol or workload.plain_protocol
    if protocol not in WITHOUT_ENERGY:
        message = f"--protocol: {protocol} needs an energy counter, expected classic here: {reason.message}"
        raise BadInput("protocol_needs_energy", message)
    replay_s = seconds_per_replay(device)
    calibration_ms = 1000 * replay_s if protocol == TRIAL and not arguments.repeats else None
    filling = default_repeats(replay_s) if calibration_ms is None else trial_repeats(calibration_ms)
    repeats = arguments.repeats or filling
    check_repeats(repeats, replay_s, LONGEST_S)
    if repeats * replay_s > ANNOUNCED_S:
        progress(f"round {arguments.round}: {repeats} replays, about {repeats * replay_s:.0f} s")
    window = active_window(device, repeats)
    wrong = output_disagreement(device, draw, "after")
    return dataclasses.replace(
        _blank(arguments, workload, device, []),
        outcome=Outcome.INVALID_MEASUREMENT if wrong else Outcome.OK,
        reason=wrong,
        protocol=protocol,
        repeats=repeats,
        calibration_ms=calibration_ms,
        valid=wrong is None,
        cuda_ms=window.device_ms,
        wall_ms=1000 * (window.end.time_s - window.start.time_s) / repeats,
        measurement_start=window.start,
        measurement_end=window.end,
        cuda_ms_reason=window.no_device_ms,
        energy_reason=reason,
    )


def _blank(arguments: Namespace, workload: Workload, device: Device, earlier: list[Reason]) -> RoundRecord:
    protocol = arguments.protocol or workload.protocol
    repeats = arguments.repeats
    if repeats is None and protocol == "classic":  # as its history has it; on other models as many as take its time
        model = device.fingerprint().name
        repeats = next((known for part, known in workload.classic_repeats.items() if part in model), None)
    return blank_round(
        arguments,
        device,
        number=arguments.round,
        arm=arguments.arm,
        protocol=protocol,
        repeats=repeats,
        earlier=earlier,
    )

"""``measure``: one round on the benchmark draw, its output verified before and after."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack, closing

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.registry import KernelChoice, open_device
from gpu_tasks.energy.rounds import Bench, Limits, measure_energy
from gpu_tasks.energy.windows import LONGEST_S, active_window, check_repeats, default_repeats, seconds_per_replay
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.bounds import MOST_ROUND, check_blocks, check_limits
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
from gpu_tasks.records import PROTOCOLS, BadInput, Outcome, Reason, RoundRecord
from gpu_tasks.workloads.registry import get_workload

ANNOUNCED_S = 2.0
"""A window longer than this is announced, so that nobody takes a busy program for a stuck one."""

RECORD_MODEL, RECORD_REPEATS = "A100-SXM4-40GB", 1_000_000
"""On the record's model a classic round has the record's number of replays; elsewhere as many as take its time."""


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
            return _without_energy(arguments, device, draw, instruments)
        baseline = None
        if arguments.against is not None:
            baseline = opened(dataclasses.replace(kernel_choice(arguments), variant=arguments.against, ptx=()))
        with Phases(f"round {arguments.round}") as say:
            limits = Limits(arguments.power_limit, arguments.sm_clock_floor)
            bench = Bench(device, baseline, instruments, telemetry, limits, say)
            outputs = [device] if baseline is None else [device, baseline]
            return _with_energy(arguments, bench, lambda: wrong_output_after(outputs, draw))


def _check(arguments: Namespace) -> None:
    check_limits(arguments)
    if not 0 <= arguments.round <= MOST_ROUND:
        raise BadInput("bad_round", f"--round: expected 0 to {MOST_ROUND}, found {arguments.round}")
    if arguments.repeats is not None and arguments.repeats < 1:
        raise BadInput("bad_repeats", f"--repeats: expected 1 or more, found {arguments.repeats}")
    check_blocks(arguments.blocks)
    if arguments.protocol not in (None, *PROTOCOLS):
        raise BadInput(
            "unknown_protocol", f"--protocol: expected one of {', '.join(PROTOCOLS)}, found {arguments.protocol!r}"
        )
    if arguments.against is not None and arguments.protocol != "interleaved":
        raise BadInput("against_needs_interleaved", "--against: expected --protocol interleaved with it, found another")


def _with_energy(arguments: Namespace, bench: Bench, after: Callable[[], Reason | None]) -> RoundRecord:
    def attempt(earlier: list[Reason]) -> RoundRecord:
        return measure_energy(bench, _blank(arguments, bench.device, earlier), arguments.blocks, after)

    return repeated(f"round {arguments.round}", attempt, bench.instruments.clock.sleep)


def _without_energy(arguments: Namespace, device: Device, draw: Draw, reason: Reason) -> RoundRecord:
    if arguments.protocol not in (None, "classic"):
        message = f"--protocol: {arguments.protocol} needs an energy counter, expected classic here: {reason.message}"
        raise BadInput("protocol_needs_energy", message)
    replay_s = seconds_per_replay(device)
    repeats = arguments.repeats or default_repeats(replay_s)
    check_repeats(repeats, replay_s, LONGEST_S)
    if repeats * replay_s > ANNOUNCED_S:
        progress(f"round {arguments.round}: {repeats} replays, about {repeats * replay_s:.0f} s")
    window = active_window(device, repeats)
    wrong = output_disagreement(device, draw, "after")
    return dataclasses.replace(
        _blank(arguments, device, []),
        outcome=Outcome.INVALID_MEASUREMENT if wrong else Outcome.OK,
        reason=wrong,
        protocol="classic",
        repeats=repeats,
        valid=wrong is None,
        cuda_ms=window.device_ms,
        wall_ms=1000 * (window.end.time_s - window.start.time_s) / repeats,
        measurement_start=window.start,
        measurement_end=window.end,
        cuda_ms_reason=window.no_device_ms,
        energy_reason=reason,
    )


def _blank(arguments: Namespace, device: Device, earlier: list[Reason]) -> RoundRecord:
    protocol = arguments.protocol or "audited"
    repeats = arguments.repeats
    if repeats is None and protocol == "classic" and RECORD_MODEL in device.fingerprint().name:
        repeats = RECORD_REPEATS
    return blank_round(
        arguments,
        device,
        number=arguments.round,
        arm=arguments.arm,
        protocol=protocol,
        repeats=repeats,
        earlier=earlier,
    )

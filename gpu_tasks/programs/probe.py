"""``probe``: what the energy counter of a device can resolve, and so how many rounds of which protocol to measure."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from contextlib import closing
from dataclasses import asdict, dataclass

from gpu_tasks.devices.base import Device
from gpu_tasks.devices.registry import open_device
from gpu_tasks.energy.counter import next_edge
from gpu_tasks.energy.forecast import Conditions, forecast
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.probing import Probe, probe
from gpu_tasks.energy.protocols import PLANS, Plan, warm_up
from gpu_tasks.energy.quantiles import detectable_difference
from gpu_tasks.energy.uncertainty import Surroundings, edge_time_s
from gpu_tasks.payload.draws import Payload
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.bounds import check_blocks, check_limits, shortened
from gpu_tasks.programs.console import Phases
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.plot import check_format, plot_probe
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import MAX_ROUNDS, PROTOCOLS, BadInput, InvalidMeasurement, Reason
from gpu_tasks.workloads.registry import get_workload

SHORTEST_S = 30.0
FEWEST_ROUNDS = 2  # fewer have no spread
WANTED_SHARE = 0.03
"""A change of 3 % of the task's energy is what the advice is for."""

WORK_S = 5.0
WITHOUT_THE_TASK = ("interleaved, control", "interleaved, idle - idle")


@dataclass(frozen=True)
class Resolution:
    """One figure's resolution: sd of a round from reading alone, and what so many rounds can tell apart, mJ."""

    figure: str
    round_sd_mj: float
    detectable_mj: float
    detectable_share: float
    rounds_for_3_percent: int | None


def run(arguments: Namespace) -> None:
    """Print what was found, as a table or as JSON; raises ``InvalidMeasurement`` where there is no counter."""
    _check(arguments)
    workload = get_workload(arguments.workload)
    draw = Payload(arguments.payload, workload).load(workload.benchmark_draw)
    made_up = simulation(arguments, "probe")
    with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
        instruments = repeated("probe", lambda _: device.instruments())
        if isinstance(instruments, Reason):
            raise InvalidMeasurement(instruments.code, f"probe needs an energy counter: {instruments.message}")
        device.load(draw.x, draw.labels, draw.q)
        device.capture()
        name = device.fingerprint().name
        with Phases("probe") as say:
            found = probe(instruments, arguments.seconds, arguments.power_limit, say)
            say("work", WORK_S)
            conditions = _conditions(device, instruments, found)
    plans = [plan for name, plan in PLANS.items() if name in (*PROTOCOLS, workload.protocol)]
    blocks = arguments.blocks if workload.protocol in PROTOCOLS else 0  # a trial's task has no control beside it
    resolutions = _resolutions(conditions, plans, arguments.rounds, blocks)
    if arguments.plot is not None:
        plot_probe(found, [asdict(r) for r in resolutions], arguments.rounds, name, arguments.plot)
    if arguments.json:
        sys.stdout.write(_json(found, conditions, resolutions))
    else:
        sys.stdout.write(_table(name, found, conditions, resolutions, arguments.rounds))


def _check(arguments: Namespace) -> None:
    if not SHORTEST_S <= arguments.seconds <= 86400:
        raise BadInput("bad_seconds", f"--seconds: expected {SHORTEST_S:.0f} to 86400, found {arguments.seconds}")
    if not FEWEST_ROUNDS <= arguments.rounds <= MAX_ROUNDS:
        expected = f"{FEWEST_ROUNDS} to {MAX_ROUNDS}"
        raise BadInput("bad_rounds", f"--rounds: expected {expected}, found {shortened(arguments.rounds)}")
    check_limits(arguments)
    check_blocks(arguments.blocks)
    if arguments.plot is not None:
        check_format(arguments.plot)


def _conditions(device: Device, instruments: Instruments, found: Probe) -> Conditions:
    """Seconds a replay and power of the work, from a few seconds of it between counter steps."""
    clock = instruments.clock
    began = clock.now()
    device.replay(1)
    replay_s = warm_up(device.replay, max(clock.now() - began, 1e-6), instruments)
    start = next_edge(instruments.gpu, clock)
    device.replay(math.ceil(WORK_S / replay_s))
    end = next_edge(instruments.gpu, clock)
    active_w = (end.energy_mj - start.energy_mj) / 1000 / (edge_time_s(end) - edge_time_s(start))
    return Conditions(
        around=Surroundings(found.tick_period_s, found.wander),
        read_latency_s=found.read_latency_s,
        idle_w=found.idle_w,
        active_w=active_w,
        replay_s=replay_s,
    )


def _resolutions(conditions: Conditions, plans: list[Plan], rounds: int, blocks: int) -> list[Resolution]:
    energy_mj = (conditions.active_w - conditions.idle_w) * conditions.replay_s * 1000
    found = []
    for name, figure in forecast(conditions, plans, blocks).items():
        sd = figure.uncertainty.combined_mj
        detectable = detectable_difference(sd, rounds)
        if detectable is None:
            raise ValueError("two rounds or more were checked for")
        enough = (n for n in range(FEWEST_ROUNDS, MAX_ROUNDS + 1) if _finds(sd, n, WANTED_SHARE * energy_mj))
        found.append(Resolution(name, sd, detectable, detectable / energy_mj, next(enough, None)))
    return found


def _finds(sd: float, rounds: int, wanted_mj: float) -> bool:
    detectable = detectable_difference(sd, rounds)
    return detectable is not None and detectable <= wanted_mj


def _table(name: str, found: Probe, conditions: Conditions, resolutions: list[Resolution], rounds: int) -> str:
    energy_mj = (conditions.active_w - conditions.idle_w) * conditions.replay_s * 1000
    lines = [
        name,
        f"  counter: a step every {1000 * found.tick_period_s:.1f} ms "
        f"({1000 * found.tick_low_s:.1f} to {1000 * found.tick_high_s:.1f}), "
        f"a read takes {1000 * found.read_latency_s:.2f} ms",
        f"  idle: {found.idle_w:.2f} W over {found.duration_s:.0f} s, "
        f"slope {60 * found.slope_w_per_s:+.3f} W a minute, walk {found.walk_w_per_sqrt_s:.3f} W in a second",
        f"  task: {1000 * conditions.replay_s:.5f} ms, about {energy_mj:.4g} mJ above idle",
        "",
        f"  {'figure':<36}{'sd of a round':>15}{f'found, {rounds} rounds':>22}{'rounds for 3 %':>16}",
    ]
    for r in resolutions:
        needed = str(r.rounds_for_3_percent) if r.rounds_for_3_percent else f"over {MAX_ROUNDS}"
        share = f"({r.detectable_share:.1%})"
        lines.append(f"  {r.figure:<36}{r.round_sd_mj:>12.5f} mJ{r.detectable_mj:>12.5f} mJ {share:>9}{needed:>14}")
    lines += ["", *_advice(resolutions), ""]
    return "\n".join(lines)


def _advice(resolutions: list[Resolution]) -> list[str]:
    """Which protocol and how many rounds: from reading alone; what the board itself varies by comes on top.

    Only of figures that the task is in: the control's and that of idling against idling tell nothing of a change in it.
    """
    usable = [r for r in resolutions if r.rounds_for_3_percent and r.figure not in WITHOUT_THE_TASK]
    note = (
        "Reading alone: how much the board itself varies from round to round comes on top of it, "
        "and whether the sensor tells the truth is for the reference load of `telemetry` to say."
    )
    if not usable:
        return [f"No protocol finds 3 % here in {MAX_ROUNDS} rounds. {note}"]
    best = min(usable, key=lambda r: (r.rounds_for_3_percent or 0, r.detectable_mj))
    return [f"For a change of 3 %: {best.figure}, {max(3, best.rounds_for_3_percent or 0)} rounds or more. {note}"]


def _json(found: Probe, conditions: Conditions, resolutions: list[Resolution]) -> str:
    value = {"probe": asdict(found), "conditions": asdict(conditions), "figures": [asdict(r) for r in resolutions]}
    return json.dumps(value, indent=2, allow_nan=False) + "\n"

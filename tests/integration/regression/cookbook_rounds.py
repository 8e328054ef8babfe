"""Rounds of the cookbook's history with something about them: readings, invalid ones, meters apart, interleaved."""

from __future__ import annotations

from dataclasses import replace

from gpu_tasks.records import CounterReading, IdleWindow, MeterComparison, Reason, RoundRecord
from tests.integration.regression.example_energy import INVALID, STATE, energy, energy_round, figure

LIMITED = replace(STATE, power_limit_w=350.0)
BUSY = Reason("other_process", "pid 7 used the GPU")
TOO_HOT = Reason("throttled", "too hot")


def around(mj: float) -> tuple[float, ...]:
    """Energies of seven rounds: median ``mj``, from 0.01 mJ below it to 0.01 mJ above."""
    return tuple(mj + offset for offset in (-0.01, -0.005, 0, 0, 0.001, 0.005, 0.01))


def with_readings(mj: float) -> list[RoundRecord]:
    """Seven rounds around ``mj``; the counter rises by 300 J in 20 s of each, and 700 J and 10 s lie between two.

    Idle power is 40.0 W before and 40.1 W after each, but 39.0 W before the first and 43.1 W after the last.
    """
    rounds = []
    for number, adjusted in enumerate(around(mj)):
        start = CounterReading(1_000_000 + number * 1_000_000, 100.0 + number * 30, 0.003)
        end = CounterReading(start.energy_mj + 300_000, start.time_s + 20, 0.003)
        windows = {"idle_before": IdleWindow(start, start, 40.0), "idle_after": IdleWindow(end, end, 40.0)}
        rounds.append(energy_round(number, adjusted, **windows))
    return [replace(rounds[0], idle_before_w=39.0), *rounds[1:6], replace(rounds[6], idle_after_w=43.1)]


def throttled() -> list[RoundRecord]:
    """Around 0.66 mJ under a lower power limit: round 2 is invalid, round 5 was valid at the fourth attempt.

    In round 3 the counter reads 3 per cent less than the sampled power.
    """
    rounds = []
    for number, adjusted in enumerate(around(0.66)):
        figures = {"classic": adjusted + 0.02, "aligned": adjusted - 0.01, "audited": adjusted}
        meters = MeterComparison(1000.0, 1031.0 if number == 3 else 1002.0, -0.03 if number == 3 else 0.002, 0.6)
        measured = energy(figures, state_before=LIMITED, meters=meters)
        rounds.append(replace(energy_round(number, adjusted), energy=measured))
    rounds[2] = replace(rounds[2], **INVALID)
    rounds[5] = replace(rounds[5], earlier_attempts=[BUSY, BUSY, TOO_HOT])
    rounds[6] = replace(rounds[6], earlier_attempts=[BUSY])
    return rounds


def all_invalid() -> list[RoundRecord]:
    """Seven invalid rounds: the clock dropped in six, the last was too hot; the first was tried twice."""
    dropped = INVALID | {"reason": Reason("clock_dropped", "at 900 MHz")}
    rounds = [energy_round(number, 0.7, **(INVALID if number == 6 else dropped)) for number in range(7)]
    return [replace(rounds[0], earlier_attempts=[BUSY]), *rounds[1:]]


def meters_apart() -> list[RoundRecord]:
    """Around 0.90 mJ by a counter that reads 8 per cent more than the sampled power, and 10 in the last round."""
    rounds = [energy_round(number, adjusted) for number, adjusted in enumerate(around(0.90))]
    return [
        replace(r, energy=replace(r.energy, meters=MeterComparison(1000.0, 1000 / (1 + apart), apart, 0.8)))
        for r in rounds
        if r.energy
        for apart in [0.10 if r.round == 6 else 0.08]
    ]


def interleaved() -> list[RoundRecord]:
    """Three interleaved rounds around 0.52 mJ, 0.08 less than the baseline in the same rounds."""
    rounds = []
    for number, offset in enumerate((0.0, 0.01, -0.01)):
        subjects = {"candidate": 0.52 + offset, "baseline": 0.60, "candidate - baseline": offset - 0.08}
        figures = [figure("interleaved", mj, subject) for subject, mj in subjects.items()]
        measured = replace(energy_round(number, 0.52 + offset), energy=energy({}, figures=figures, sham=None))
        rounds.append(replace(measured, protocol="interleaved"))
    return rounds

"""Whether all of a run was measured under the same conditions: figures of one run are compared as if they were."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_tasks.records import GateResult, GpuState, Reason, RoundRecord, TelemetryRecord

COMPARED = {
    "uuid": "GPU",
    "driver": "driver",
    "power_limit_w": "power limit",
    "power_kind": "kind of power",
    "memory_clock_mhz": "memory clock",
}
TICKS_AGREE_WITHIN = 0.2
"""Two measurements of the counter's period may differ by a few per cent; another period is another counter."""


def same_conditions(telemetry: Sequence[TelemetryRecord], rounds: Sequence[RoundRecord]) -> GateResult:
    """The gate of that name, over the states before and after everything that was measured.

    What a GPU does not say is not compared. Rounds of other protocols, kernels or effects than the first do not belong
    to one run either.
    """
    if not rounds:
        nothing = Reason("gate_not_made", "same_conditions: no valid round has an energy")
        return GateResult("same_conditions", "run", None, None, "differences", None, None, nothing)
    states: list[GpuState | None] = [s for t in telemetry for s in (t.state_before, t.state_after)]
    states += [s for r in rounds if r.energy for s in (r.energy.state_before, r.energy.state_after)]
    wrong = []
    for field, name in COMPARED.items():
        found = dict.fromkeys(getattr(state, field) for state in states if state is not None)
        found.pop(None, None)
        if len(found) > 1:
            wrong.append(f"{name}: {', '.join(map(str, found))}")
    for name, values in (
        ("protocol", {r.protocol for r in rounds}),
        ("kernel", {r.kernel_ptx_sha256 for r in rounds}),
        ("effects", {r.inject for r in rounds}),
        ("arm", {r.arm for r in rounds}),
    ):
        if len(values) > 1:
            wrong.append(f"{name}: {', '.join(sorted(map(str, values)))}")
    ticks = [r.energy.tick_period_s for r in rounds if r.energy]
    ticks += [t.tick_period_s for t in telemetry if t.tick_period_s is not None]
    if max(ticks) > (1 + TICKS_AGREE_WITHIN) * min(ticks):
        wrong.append(f"update period of the counter: {min(ticks):.4f} to {max(ticks):.4f} s")
    reason = None
    if wrong:
        message = f"conditions: expected to be the same in all of the run, found several of {'; '.join(wrong)}"
        reason = Reason("conditions_changed", message)
    return GateResult("same_conditions", "run", not wrong, float(len(wrong)), "differences", 0.0, 0.0, reason)

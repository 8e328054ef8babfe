"""Pictures: ``plot`` of a stored round, telemetry or run record, and the one that ``probe`` draws.

The suffix of the file says the format (svg, png, pdf). Drawn without a display.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_tasks.energy.trace import Sample, read_samples
from gpu_tasks.energy.uncertainty import edge_time_s
from gpu_tasks.records import (
    BadInput,
    CounterEdge,
    InfrastructureFailure,
    Reason,
    RoundRecord,
    RunRecord,
    TelemetryRecord,
    read_record,
)

if TYPE_CHECKING:
    from gpu_tasks.energy.probing import Probe

FORMATS = (".svg", ".png", ".pdf")
RECORDS: dict[str, type[Any]] = {"round": RoundRecord, "telemetry": TelemetryRecord, "run": RunRecord}
COLOURS = {"idle": "#4c78a8", "control": "#b279a2", "baseline": "#54a24b", "candidate": "#e45756", "tail": "#f2b134"}


def run(arguments: Namespace) -> None:
    """Draw a record; a run is its energy figures, anything else its samples with the windows in colour."""
    record = _read(arguments.record)
    check_format(arguments.out)
    if isinstance(record, RunRecord):
        _plot_run(record, arguments.out)
    elif isinstance(record, RoundRecord):
        _plot_trace(record.energy and record.energy.trace, _spans(record), _round_title(record), arguments.out)
    else:
        edges = record.idle_edges
        spans = [("idle", edge_time_s(edges[0]), edge_time_s(edges[-1]))] if edges else []
        _plot_trace(record.trace, spans, _titled(f"telemetry {record.when}", record.reason), arguments.out)


def check_format(out: Path) -> None:
    """Refuse a file whose suffix names no format; raises ``BadInput``."""
    if out.suffix not in FORMATS:
        raise BadInput("bad_picture", f"{out}: expected a name ending in {', '.join(FORMATS)}, found {out.suffix!r}")


def plot_probe(found: Probe, resolutions: Sequence[dict[str, Any]], rounds: int, title: str, out: Path) -> None:
    """Idle power over time, the counter's steps, and what ``rounds`` rounds of each figure can tell apart."""
    check_format(out)
    figure, (left, middle, right) = _pyplot().subplots(1, 3, figsize=(15, 4.2), width_ratios=(2, 1, 2))
    left.plot(found.times_s, found.powers_w, ".-", color=COLOURS["idle"])
    left.axhline(found.idle_w, color="0.6", linewidth=0.8)
    left.set(xlabel="time, s", ylabel="idle power, W", title="idle power between counter steps")
    middle.hist([1000 * tick for tick in found.ticks_s], bins=20, color=COLOURS["idle"])
    middle.set(xlabel="time, ms", ylabel="steps of the counter", title="time between steps")
    names = [entry["figure"] for entry in resolutions]
    shares = [100 * entry["detectable_share"] for entry in resolutions]
    right.plot(shares, names, "o", color=COLOURS["candidate"])  # no bars: on this scale they would begin nowhere
    for name, share in zip(names, shares, strict=True):
        right.annotate(f"{share:.2g} %", (share, name), xytext=(6, 0), textcoords="offset points", va="center")
    right.set(xscale="log", xlim=(min(shares) / 2, max(shares) * 4), xlabel="% of the task's energy above idle")
    right.set(title=f"found with {rounds} rounds, by reading alone")
    right.xaxis.set_major_formatter("{x:g}")
    right.xaxis.set_minor_formatter("")
    right.grid(axis="y", color="0.9")
    right.invert_yaxis()
    _save(figure, title, out)


def _read(path: Path) -> Any:
    try:
        kind = json.loads(path.read_text(encoding="utf-8")).get("kind")
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput("record_unreadable", f"{path}: expected a record, found {error}") from None
    if kind not in RECORDS:
        raise BadInput("no_picture", f"{path}: $.kind: expected one of {', '.join(RECORDS)}, found {kind!r}")
    return read_record(path, RECORDS[kind])


def _round_title(record: RoundRecord) -> str:
    """A picture goes where its record does not: so it says whether the round counts, and what was made up in it."""
    made_up = f", injected: {record.inject}" if record.inject else ""
    return _titled(f"round {record.round}, {record.protocol}{made_up}", record.reason)


def _titled(title: str, reason: Reason | None) -> str:
    return f"{title}, not valid: {reason.code}" if reason else title


def _spans(record: RoundRecord) -> list[tuple[str, float, float]]:
    """What was done from when to when, monotonic s."""
    energy = record.energy
    if energy is None:
        return []
    if energy.segments:
        return [(s.arm, edge_time_s(s.start), edge_time_s(s.end)) for s in energy.segments]
    aligned = energy.aligned
    if aligned is None:
        return []

    def between(edges: Sequence[CounterEdge]) -> tuple[float, float]:
        return edge_time_s(edges[0]), edge_time_s(edges[-1])

    return [
        ("idle", *between(aligned.idle_before)),
        ("candidate", *between([aligned.active_start, aligned.tail_start])),
        ("tail", *between([aligned.tail_start, aligned.active_end])),
        ("idle", *between(aligned.idle_after)),
    ]


def _plot_trace(trace: Any, spans: list[tuple[str, float, float]], title: str, out: Path) -> None:
    samples = read_samples(trace) if trace else []
    if not samples:
        raise BadInput("no_trace", f"{title}: expected sampled power in the record, found none")
    zero = samples[0].time_s
    figure, (power, clock) = _pyplot().subplots(2, 1, figsize=(12, 6), sharex=True, height_ratios=(3, 1))
    _draw(power, samples, "power_w", zero, color="0.25")
    for arm in dict.fromkeys(arm for arm, _, _ in spans):
        for number, (_, start, end) in enumerate([span for span in spans if span[0] == arm]):
            power.axvspan(start - zero, end - zero, alpha=0.25, color=COLOURS[arm], label=None if number else arm)
    counter_w = _counter_power(samples)
    power.plot([t - zero for t, _ in counter_w], [w for _, w in counter_w], ".", color="k", label="counter", ms=3)
    power.set(ylabel="power, W", title="line: sampled power; dots: power by the counter over a second each")
    power.legend(loc="upper right")
    _draw(clock, samples, "sm_clock_mhz", zero, color="0.25")
    clock.set(xlabel="time, s", ylabel="SM clock, MHz")
    _save(figure, title, out)


def _draw(axes: Any, samples: list[Sample], column: str, zero: float, color: str) -> None:
    points = [(s.time_s - zero, value) for s in samples if (value := getattr(s, column)) is not None]
    axes.plot([x for x, _ in points], [y for _, y in points], color=color, linewidth=0.8)


def _counter_power(samples: list[Sample]) -> list[tuple[float, float]]:
    """Mean power by the counter over about a second each: over one step it would be mostly the step's own error."""
    found, last = [], None
    for sample in samples:
        if sample.counter_mj is None or sample.counter_time_s is None:
            continue
        if last is None:
            last = (sample.counter_time_s, sample.counter_mj)
        elif sample.counter_time_s - last[0] >= 1.0:
            seconds = sample.counter_time_s - last[0]
            found.append((last[0] + seconds / 2, (sample.counter_mj - last[1]) / 1000 / seconds))
            last = (sample.counter_time_s, sample.counter_mj)
    return found


def _plot_run(record: RunRecord, out: Path) -> None:
    """Each figure of each round with its 95 % interval; rounds that are not valid are hollow."""
    rounds = [r for r in record.rounds if r.energy is not None and r.energy.figures]
    if not rounds:
        expected = "expected rounds with energy figures and their uncertainty, found none"
        raise BadInput("no_energy", f"{record.request.dag_run_id}: {expected}")
    figure, axes = _pyplot().subplots(figsize=(11, 5))
    names = list(dict.fromkeys((f.figure, f.subject) for r in rounds if r.energy for f in r.energy.figures))
    for number, name in enumerate(names):
        for r in rounds:
            for f in r.energy.figures if r.energy else []:
                if (f.figure, f.subject) != name:
                    continue
                x = r.round + (number - (len(names) - 1) / 2) * 0.12
                low, high = f.uncertainty.low_mj, f.uncertainty.high_mj
                axes.plot([x, x], [low, high], color=f"C{number}", linewidth=1)
                face = f"C{number}" if r.valid else "white"
                label = f"{name[0]}, {name[1]}" if r is rounds[0] else None
                axes.plot(x, f.adjusted_mj, "o", color=f"C{number}", markerfacecolor=face, label=label)
    axes.set(xlabel="round", ylabel="energy above idle, mJ a replay")
    axes.set(title="dots: as read (hollow: round not valid); lines: 95 % intervals, the stated bias taken off")
    axes.legend()
    device = record.provision.device.name if record.provision and record.provision.device else "no device"
    made_up = f", injected: {record.request.inject}" if record.request.inject else ""
    _save(figure, f"{record.request.dag_run_id} on {device}{made_up}, energy {record.energy_trust}", out)


def _pyplot() -> Any:
    try:
        import matplotlib  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        message = f"a picture needs matplotlib: expected it in this environment, found {error}"
        raise InfrastructureFailure("matplotlib_missing", message) from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "kernel-nightly"  # the same picture is the same file
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, title: str, out: Path) -> None:
    figure.suptitle(title)
    figure.tight_layout()
    out.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if out.suffix == ".svg" else None
    figure.savefig(out, metadata=metadata)

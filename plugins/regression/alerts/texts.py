"""Every text about alerts. Pure: what is known in, words out; golden files in the tests show each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from regression.alerts.judged import Check, JudgedRun
from regression.alerts.plain import cut, lines, one_line
from regression.alerts.signal import Signal
from regression.detectors.environment import ALSO_CHANGED, KERNEL, Difference, in_words

MAX_SUBJECT = 160
MAX_LINE = 2000
SHOWN_DIFFERENCES = 8
LABEL_WIDTH = 12
ENVIRONMENT, HISTORY = "environment", "_history"
DECIDING = ("agreement", "qualification", "repeatability", "energy", "time", "memory")
UNITS_OF_COUNTS = {"predictions", "checks", "hashes"}
BYTES = "bytes"


@dataclass(frozen=True)
class Message:
    """What is sent: a subject of one line, and the text under it."""

    subject: str
    body: str


def headline(check: Check) -> str:
    """What a red check found, in one line, without workload and device."""
    if check.verdict == "invalid":
        gates = ", ".join(dict.fromkeys(gate["gate"] for gate in check.details.get("failed_gates", ())))
        return f"{_what(check)} cannot be judged: {f'failed gates: {gates}' if gates else check.plain_reason}"
    if check.name.endswith(HISTORY) and "size" in check.details and check.baseline_value:
        return _since(check, check.baseline_value)
    if check.value is None or not check.baseline_value or check.unit in UNITS_OF_COUNTS or check.direction == "changed":
        return f"{_name(check)}: {check.plain_reason}"
    percent = 100 * (check.value - check.baseline_value) / abs(check.baseline_value)
    return (
        f"{_what(check)} {abs(percent):.1f} % {check.direction or 'off'} "
        f"({amount(check.value, check.unit)}, baseline {amount(check.baseline_value, check.unit)})"
    )


def _since(check: Check, usual: float) -> str:
    """A change of several nights: its own size, because tonight alone may even lie on the other side of the usual."""
    percent = 100 * abs(check.details["size"] / usual)
    tonight = "" if check.value is None else f"tonight {amount(check.value, check.unit)}, "
    return (
        f"{_what(check)} {percent:.1f} % {check.direction or 'off'} since {check.details['since'][:10]} "
        f"({tonight}usual {amount(usual, check.unit)})"
    )


def environment_headline(found: Sequence[Difference]) -> str:
    """What changed around the kernel."""
    return f"what the figures are measured with has changed: {in_words(found)}"


def night_headline(run: JudgedRun) -> str:
    """How a night ended that says nothing of the kernel."""
    why = f": {run.reason}" if run.reason else ""
    return f"the night ended as {str(run.verdict).replace('_', ' ')}{why}"


def facts(
    check: Check, run: JudgedRun, others: Sequence[Check], changed: Sequence[Difference]
) -> list[tuple[str, str]]:
    """The lines under a headline: figures, the reason, both looks, what else was red, what else changed, the run.

    What cannot be used for the same reason is only named.
    """
    same = [other for other in others if (other.verdict, other.reason_code) == ("invalid", check.reason_code)]
    lines = []
    if check.value is not None:
        lines.append(("found", amount(check.value, check.unit)))
    if check.baseline_value is not None:
        spread = ""
        if check.baseline_low is not None and check.baseline_high is not None:
            spread = f" ({check.baseline_low:.6g} to {amount(check.baseline_high, check.unit)})"
        label = "usual" if check.name.endswith(HISTORY) else "baseline"
        lines.append((label, amount(check.baseline_value, check.unit) + spread))
    if check.baseline:
        lines.append(("accepted", check.baseline))
    lines.append((check.verdict, f"{check.plain_reason} [{check.reason_code}]"))
    if check.first_look:
        lines.append(("looked twice", check.first_look))
    if check.verdict == "invalid":
        lines.append(("means", "what cannot be judged is compared with nothing, and says nothing of the kernel"))
    if same:
        lines.append(("also", f"for the same reason: {', '.join(_name(other) for other in same)}"))
    lines += [
        ("also", f"{_name(other)} {other.verdict}: {other.plain_reason}") for other in others if other not in same
    ]
    if changed:
        lines.append(("changed too", in_words(changed, SHOWN_DIFFERENCES)))
    return lines + same_kernel(run, changed) + how_it_ended(run) + run_facts(run)


def same_kernel(run: JudgedRun, changed: Sequence[Difference]) -> list[tuple[str, str]]:
    """Whether it was the kernel is the first thing asked; what changed is named, and so is that it did not."""
    compared = any(check.name == ENVIRONMENT and check.baseline_id is not None for check in run.checks)
    if not (compared and run.has_kernel) or any(difference.part == KERNEL for difference in changed):
        return []
    return [("kernel", "the same as the baseline's")]


def how_it_ended(run: JudgedRun) -> list[tuple[str, str]]:
    """What each deciding check found, and what regressed besides: what is fine says as much as what is not."""
    told = [check for name in DECIDING for check in run.checks if check.name == name]
    told += [check for check in run.checks if check.name not in DECIDING and check.verdict == "regressed"]
    return [("checks", ", ".join(f"{_name(check)} {check.verdict}" for check in told))] if told else []


def run_facts(run: JudgedRun) -> list[tuple[str, str]]:
    """Which run it was, and what must be known of it."""
    lines = [("run", f"{run.dag_run_id}, {run.trigger}, of {moment(run.started_at)}")]
    if run.trigger == "manual":
        lines.append(("asked for", "this run was started by hand, not by the schedule" + _labelled(run)))
    if run.inject:
        lines.append(("rehearsal", f"the fault is made up: this run was asked to inject {run.inject}"))
    return lines


def run_link(airflow_url: str | None, dag_id: str, dag_run_id: str) -> list[tuple[str, str]]:
    """Where Airflow shows the run; nothing where its address is not known."""
    if not airflow_url:
        return []
    return [("Airflow", f"{airflow_url.rstrip('/')}/dags/{quote(dag_id, safe='')}/runs/{quote(dag_run_id, safe='')}")]


def subject(signal: Signal, event: str) -> str:
    """One line, as it is stored and sent."""
    again = {"reopened": "again: ", "seen_again": "after its mute, still: "}.get(event, "")
    return cut(one_line(f"{_where(signal)}: {again}{signal.headline}"), MAX_SUBJECT)


def message(signal: Signal, event: str, alert_id: int, opened_at: datetime, occurrences: int) -> Message:
    """What is sent of a signal that became, or again is, an open alert."""
    since = f"open since {moment(opened_at)}, seen in {_nights(occurrences)}"
    lines = [
        *signal.facts,
        ("alert", f"number {alert_id}: {signal.metric} {signal.direction}, {since}"),
        ("look", f"./nightly alerts show {alert_id}"),
        ("answer", f'./nightly alerts ack {alert_id} --reason "..."   (or mute, or resolve)'),
    ]
    heads = {
        "reopened": "This was resolved, and is back.",
        "seen_again": "The mute of this alert is over, and it is still there.",
    }
    body = [f"{one_line(_where(signal))}:", cut(one_line(signal.headline), MAX_LINE), ""]
    if event in heads:
        body = [heads[event], "", *body]
    return Message(f"[nightly] {subject(signal, event)}", "\n".join([*body, *map(_line, lines)]) + "\n")


def database_away(dag_id: str, dag_run_id: str, now: datetime, link: Sequence[tuple[str, str]]) -> Message:
    """What is sent of a night when no alert can be stored."""
    lines = [
        ("night", f"{dag_run_id} of {dag_id}, {moment(now)}"),
        ("means", "its record is kept and loaded later; until then it is not judged, and no alert can be stored"),
        ("look", "./nightly status"),
        ("logs", f"./nightly logs {dag_run_id}"),
        *link,
    ]
    head = f"{dag_id}: the results database is away"
    return Message(f"[nightly] {head}", "\n".join([f"{head}.", "", *map(_line, lines)]) + "\n")


def test_message(now: datetime) -> Message:
    """What ``./nightly alerts test`` sends."""
    body = f"A test of this channel, sent {moment(now)} by ./nightly alerts test. Nothing is wrong.\n"
    return Message("[nightly] test of this channel", body)


def alert_line(alert: Mapping[str, Any]) -> str:
    """One alert in one line."""
    return one_line(f"alert {alert['alert_id']}, {_state(alert)}: {alert['text']}")


def alert_table(alerts: Sequence[Mapping[str, Any]]) -> str:
    """One line an alert."""
    rows: list[tuple[str, ...]] = [("alert", "state", "since", "last seen", "nights", "what")]
    for alert in alerts:
        words = (alert["alert_id"], _state(alert), moment(alert["opened_at"]), moment(alert["last_seen_at"]))
        rows.append((*map(str, words), str(alert["occurrences"]), one_line(alert["text"])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = ["  ".join([*(f"{w:<{n}}" for w, n in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    return "\n".join(lines)


def alert_page(alert: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str:
    """Everything about one alert: where it stands, its message, and what happened."""
    told = [alert_line(alert), ""]
    if alert["acknowledged_by"]:
        told.append(
            f"{alert['acknowledged_by']}, {moment(alert['acknowledged_at'])}: {one_line(alert['acknowledged_reason'])}"
        )
    if alert["value"] is not None and alert["unit"]:
        told.append(f"latest figure {amount(alert['value'], alert['unit'])}, seen {moment(alert['last_seen_at'])}")
    told += ["", (alert["message"] or alert["text"]).rstrip(), ""]
    for event in events:
        of = event["channel"] or event["dag_run_id"] or (moment(event["night"]) if event["night"] else "")
        what = event["event"].replace("_", " ") + (f" ({of})" if of else "")
        told.append(f"{moment(event['at'])}  {what}, {event['author']}: {one_line(event['text'])}")
    return re.sub(r"\n{3,}", "\n\n", lines("\n".join(told)))


def amount(value: float, unit: str) -> str:
    """A figure with its unit."""
    if unit == BYTES:
        return f"{value:,.0f} {unit}"
    return f"{value:.0f} {unit}" if unit in UNITS_OF_COUNTS else f"{value:.6g} {unit}"


def moment(at: datetime) -> str:
    """A time as texts have it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def first_look(first: Check, verdict: str) -> str:
    """What the first rounds alone showed, beside what all of them show."""
    value = "" if first.value is None else f" ({amount(first.value, first.unit)})"
    return f"first rounds alone: {first.verdict}{value}; with the confirmation rounds: {verdict}"


def without_changes(reason: str) -> str:
    """A reason without what else changed, which has a line of its own."""
    return reason.partition(ALSO_CHANGED)[0]


def _state(alert: Mapping[str, Any]) -> str:
    """A mute is never shown without its end."""
    return f"muted until {moment(alert['muted_until'])}" if alert["state"] == "muted" else str(alert["state"])


def _where(signal: Signal) -> str:
    return f"{signal.workload} on {signal.device}" if signal.device else signal.workload


def _name(check: Check) -> str:
    return check.name.replace("_", " ")


def _what(check: Check) -> str:
    """The metric in words: cuda_ms_median says less to a woken reader than its check does."""
    return check.metric.replace("_", " ")


def _labelled(run: JudgedRun) -> str:
    return f" (label {run.label})" if run.label else ""


def _nights(count: int) -> str:
    return f"{count} night{'s' * (count > 1)}"


def _line(fact: tuple[str, str]) -> str:
    label, words = fact
    return f"{one_line(label):<{LABEL_WIDTH}}  {cut(one_line(words), MAX_LINE)}"

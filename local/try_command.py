"""``nightly try``: a changed kernel from its file to a verdict, as far as this machine can say it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from gpu_tasks.records import CandidateRecord, Outcome, ProvisionRecord, RunRecord, read_record
from local import first_look, runs
from local.conclusions import Conclusion, concluded
from local.errors import Usage, told_in_one_line
from local.first_look import Told
from local.paths import Home
from local.people import said
from local.processes import terminable
from local.programs import started
from local.runs import COMPARISON
from local.stack import Stack, hold

ASKED = """\
SELECT coalesce(label, spec) AS tried, predictions_word, time_word, energy_word, dag_run_id FROM candidate_runs \
ORDER BY started_at"""
SHOWS_MORE = """\
no GPU here, so that is all: time and energy are compared where there is one, by the same command.
  --device emulated    stores it as a run;  --device simulated    shows a whole comparison, of made-up figures"""


def command_try(home: Home, arguments: argparse.Namespace) -> int:
    """A first look on the emulator; then, where something can measure it and nothing is worse yet, a comparison."""
    params = _params(home, arguments)
    request = runs.requested(home, params, COMPARISON)
    if arguments.queue:
        _require_running(home, arguments)
    with terminable(), told_in_one_line():
        candidate = first_look.freeze(home, request.candidate or "", variant=request.variant, against=request.against)
        _check_difference(candidate, meant=not request.kernel_changed)
        record = first_look.look(home, candidate, payload=request.payload, draws=request.draws)
        told = first_look.told(record)
        device = None if told.is_worse else _device(home, request.device)
        if device is None or arguments.queue:  # else the comparison says all of it, and more
            said(f"\n{told.table}")
        if device is None:
            if arguments.queue and not told.is_worse:
                raise Usage("try --queue: expected a GPU or --device, found neither; nothing was queued")
            outcome = Outcome.REGRESSION if told.is_worse else Outcome.OK
            said(f"\nverdict: {'worse' if told.is_worse else 'not worse'} on the emulator (exit {outcome.exit_code})")
            said(f"text:    {home.candidates / str(candidate.bundle)}" if told.is_worse else SHOWS_MORE)
            return _answer(arguments, candidate, told, None, outcome.exit_code)
        frozen = params | _frozen(candidate, request.label)
        with hold(home, arguments.dsn, need_airflow=True) as held:
            if arguments.queue:
                print(runs.queue(held, COMPARISON, frozen))
                return Outcome.OK.exit_code
            ended, compared = compare(held, frozen)
    return _finish(arguments, candidate, compared, ended)


def compare(held: Stack, params: dict[str, Any]) -> tuple[Conclusion, Told | None]:
    """One run of the comparison, waited for; what it says is None where it was ended before it could."""
    run_id, state = runs.carry_out(held, COMPARISON, params, said)
    ended = concluded(held, COMPARISON, run_id, state)
    path = held.home.records / f"{ended.result.run_id}.json"
    stored = read_record(path, RunRecord) if path.exists() else None
    if stored is None or stored.comparison is None:
        return ended, None
    return ended, first_look.told(stored.comparison, stored.validations)


def _params(home: Home, arguments: argparse.Namespace) -> dict[str, Any]:
    options = {
        "candidate": first_look.in_repository(arguments.spec),
        "against": arguments.against and first_look.in_repository(arguments.against),
        **{name: getattr(arguments, name) for name in ("variant", "draws", "blocks", "rounds", "label", "note")},
        "kernel_changed": False if arguments.aa else None,
    }
    return runs.accept_params(home, arguments.param, arguments.device, COMPARISON, options)


def _frozen(candidate: CandidateRecord, label: str | None) -> dict[str, Any]:
    """What is compared is what was looked at, whatever becomes of the file until the run has its turn."""
    changed = " (modified)" if candidate.modified else ""
    named = f"{candidate.spec} at {candidate.commit[:12]}{changed}" if candidate.commit else candidate.spec
    return {
        "candidate": candidate.bundle,
        "against": candidate.against_bundle,
        "variant": None,
        "label": label or named[:200],
    }


def _check_difference(candidate: CandidateRecord, *, meant: bool) -> None:
    """An A/A run is asked for by its name: nobody takes chance for an effect by accident."""
    if candidate.equals_pinned and not meant:
        raise Usage(
            f"{candidate.spec}: expected another kernel than the one it is held against, found the same text and "
            "geometry; --aa compares a kernel with itself, to see what is chance"
        )
    if meant and not candidate.equals_pinned:
        raise Usage(
            f"{candidate.spec}: expected the pinned kernel itself for an A/A run, found another; leave out --aa"
        )


def _device(home: Home, asked: str) -> str | None:
    """Where to compare; None where nobody asked for a device and there is no GPU."""
    if asked != "auto":
        return asked
    with started(home, "provision", ["--device=auto"]) as program:
        record = program.record(ProvisionRecord)
    return "cuda" if record.device is not None and record.device.kind == "cuda" else None


def _require_running(home: Home, arguments: argparse.Namespace) -> None:
    state = Stack(home, arguments.dsn).state()
    if state is None or not state.airflow_ready:
        raise Usage("try --queue: expected a running stack, found none; `./nightly up` first, or leave out --queue")


def _finish(arguments: argparse.Namespace, candidate: CandidateRecord, told: Told | None, ended: Conclusion) -> int:
    said(f"\n{told.table if told else 'the run ended before it could compare the two'}\n")
    said("\n".join(ended.lines(told.checks if told else None)))
    status = _answer(arguments, candidate, told, ended, ended.result.exit_code)
    said(f'query:   ./nightly sql "{ASKED}"')
    said(ended.logs())
    if status == Outcome.OK.exit_code and not candidate.equals_pinned:
        promote = f"./nightly pin; ./nightly promote {ended.dag_run_id} --reason TEXT"
        said(f"accept:  {'once it is tried with --rounds 14' if arguments.rounds == 0 else promote}")
    return ended.exit_code()


def _answer(
    arguments: argparse.Namespace, candidate: CandidateRecord, told: Told | None, ended: Conclusion | None, status: int
) -> int:
    if arguments.json:
        print(json.dumps(as_json(candidate, told, ended.result.as_json() if ended else None, status)))
    return status


def as_json(
    candidate: CandidateRecord, told: Told | None, result: Mapping[str, Any] | None, status: int
) -> dict[str, Any]:
    """What ``--json`` prints: that of ``run``, with what was tried and what was found."""
    outcome = next(outcome for outcome in Outcome if outcome.exit_code == status)
    nothing: dict[str, Any] = dict.fromkeys(("run_id", "dag_run_id", "device"))
    nothing |= {"workload": candidate.workload, "verdict": outcome.value, "checks": {}, "exit": status}
    nothing |= {"agreement": {"agreed": None, "total": None}}
    return {
        **(result or nothing),
        "candidate": {
            "spec": candidate.spec,
            "origin": candidate.origin,
            "commit": candidate.commit,
            "modified": candidate.modified,
            "bundle": candidate.bundle,
            "against_bundle": candidate.against_bundle,
        },
        "comparison": told.as_json() if told else {},
    }

"""Repeatability: the same bytes from the same inputs, the same code and the same libraries, on the same device.

A task that trains leaves more behind than its predictions, and what it leaves may change long before a prediction does.
Within a run every replay, and a second process, must leave what the eager run left. Between runs each draw is held
against the latest run that was made alike. Where none was, or nobody can know whether it was, a difference is told and
not red: another version of a library may round otherwise. The reference is held against what it computed when the draw
was frozen, on whatever machine: a difference there is always a finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regression.detectors.findings import Found, names, text_of, worst_of
from regression.detectors.memory import other_settings
from regression.detectors.verdict import CheckVerdict, Problem, Verdict

CHECK = "repeatability"
METRIC = "changed_state_hashes"
UNIT = "hashes"
SHOWN_SHA256 = 12


@dataclass(frozen=True)
class ReferenceEnd:
    """Where the reference ended on a draw: when that was frozen (None: nobody froze it), and now."""

    name: str
    expected_sha256: str | None
    found_sha256: str | None


@dataclass(frozen=True)
class DrawState:
    """One draw of the run: sha256 by name of what the eager run began with and left (None: nothing was hashed).

    ``replays_equal`` says of each replay whether all of them came out again. ``problem`` says why the draw could not
    be run.
    """

    draw: int
    hashes: Mapping[str, str] | None
    replays_equal: tuple[bool, ...] = ()
    reference: ReferenceEnd | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class OtherProcess:
    """The same task in a process of its own: hashes of its first run, and the names of those its last gave again."""

    draw: int | None
    hashes: Mapping[str, str]
    matched: frozenset[str]
    invocations: int | None


@dataclass(frozen=True)
class Circumstances:
    """What must be the same before different bytes are a finding. None: not known, which is the same as nothing.

    ``device`` is the device with its identity; None for one that does not say which machine computes. ``sources`` map
    the files that the workload is made of to their sha256.
    """

    device: str | None
    payload_manifest_sha256: str | None
    environment_class: str | None
    settings: Mapping[str, str | None] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Earlier:
    """A draw of an earlier run: ``name`` is for messages."""

    name: str
    circumstances: Circumstances
    hashes: Mapping[str, str]
    has_reference: bool = False


@dataclass(frozen=True)
class RepeatabilityRun:
    """The run under judgement: draws asked for, draws found, a second process if there was one."""

    circumstances: Circumstances
    draws_expected: tuple[int, ...]
    states: tuple[DrawState, ...]
    process: OtherProcess | None = None
    problem: Problem | None = None


def made_otherwise(mine: Circumstances, other: Circumstances) -> list[str]:
    """In what two runs were not made alike, in words; empty where they were."""
    told = []
    if mine.device is None or mine.device != other.device:
        same = mine.device is None and other.device is None
        told.append("which machine computed is not known" if same else f"device {other.device} -> {mine.device}")
    if mine.payload_manifest_sha256 is None or mine.payload_manifest_sha256 != other.payload_manifest_sha256:
        told.append("another payload")
    if mine.environment_class is None:
        told.append("environment not known")
    elif mine.environment_class != other.environment_class:
        told.append(f"environment {other.environment_class or 'not known'} -> {mine.environment_class}")
    told += other_settings(mine.settings, other.settings)
    said = mine.settings.keys() ^ other.settings.keys()
    if said:
        told.append(f"settings that one of the two does not say: {names(sorted(said))}")
    changed = sorted(
        path for path in mine.sources.keys() | other.sources.keys() if mine.sources.get(path) != other.sources.get(path)
    )
    if changed:
        told.append(f"source {names(changed)}")
    elif not mine.sources:
        told.append("sources not known")
    return told


def judge_repeatability(run: RepeatabilityRun, earlier: Mapping[int, Earlier]) -> CheckVerdict:
    """Judge the states of ``run``; ``earlier`` has for each draw the latest run made alike, else the latest there is.

    ``regressed`` where bytes differ that must not, or the reference ended elsewhere; ``invalid`` where a draw that was
    asked for has nothing to be compared; ``inconclusive`` where only runs that were made otherwise differ, or there is
    no earlier run; ``unavailable`` for a workload that leaves nothing but its predictions.
    """
    by_draw = {state.draw: state for state in run.states}
    if _leaves_nothing(run, earlier):
        text = "this workload leaves nothing but its predictions, which the check of agreement is for"
        return _verdict(run, [Found(Verdict.UNAVAILABLE, "no_state", text)], earlier)
    if not run.draws_expected:
        return _verdict(run, [_without(None, run.problem)], earlier)
    findings = []
    for draw in run.draws_expected:
        state = by_draw.get(draw)
        findings += _judge_draw(state, earlier.get(draw), run) if state else [_without(draw, run.problem)]
    findings += _judge_process(run.process, by_draw)
    return _verdict(run, findings, earlier)


def _leaves_nothing(run: RepeatabilityRun, earlier: Mapping[int, Earlier]) -> bool:
    """Every draw was run, none has a hash, and none ever had one."""
    complete = {state.draw for state in run.states if state.problem is None} >= set(run.draws_expected)
    hashed = any(state.hashes is not None or state.replays_equal for state in run.states) or run.process is not None
    return bool(run.draws_expected) and complete and not hashed and not earlier


def _without(draw: int | None, problem: Problem | None) -> Found:
    which = "no draw" if draw is None else f"draw {draw}"
    code, why = (problem.code, problem.message) if problem else ("draw_missing", "no record says why")
    text = f"{which} was run: {why}" if draw is None else f"{which} was not run: {why}"
    return Found(Verdict.INVALID, code, text, details={"draw": draw})


def _judge_draw(state: DrawState, earlier: Earlier | None, run: RepeatabilityRun) -> list[Found]:
    found = _reference(state, earlier)
    if not all(state.replays_equal):
        differing = [number for number, equal in enumerate(state.replays_equal) if not equal]
        text = f"draw {state.draw}: replay {', '.join(map(str, differing))} left other bytes than the eager run"
        details = {"draw": state.draw, "replays": differing}
        found.append(Found(Verdict.REGRESSED, "replay_state_differs", text, "changed", details))
    if state.problem:
        text = f"draw {state.draw} could not be run: {state.problem.message}"
        return [*found, Found(Verdict.INVALID, state.problem.code, text, details={"draw": state.draw})]
    if not state.hashes:
        text = f"draw {state.draw}: what the run left was not hashed, and no record says why"
        return [*found, Found(Verdict.INVALID, "no_hashes", text, details={"draw": state.draw})]
    if not state.replays_equal:
        text = f"draw {state.draw}: no replay was compared with the eager run"
        return [*found, Found(Verdict.INVALID, "no_replays", text, details={"draw": state.draw})]
    return [*found, _against(state.draw, state.hashes, earlier, run.circumstances)]


def _reference(state: DrawState, earlier: Earlier | None) -> list[Found]:
    """The reference is told of wherever it ran, whatever became of the device."""
    reference, details = state.reference, dict[str, Any](draw=state.draw)
    if reference is None or reference.found_sha256 is None:
        if earlier is None or not earlier.has_reference or state.problem:
            return []
        text = f"draw {state.draw}: where the reference ended is not known, as it is in run {earlier.name}"
        return [Found(Verdict.INVALID, "reference_state_missing", text, details=details)]
    if reference.expected_sha256 in (None, reference.found_sha256):
        return []
    expected, found = str(reference.expected_sha256), reference.found_sha256
    text = (
        f"draw {state.draw}: the reference ends elsewhere than when the draw was frozen: {reference.name} expected "
        f"{expected[:SHOWN_SHA256]}, found {found[:SHOWN_SHA256]}"
    )
    details = {**details, "name": reference.name, "expected": expected, "found": found}
    return [Found(Verdict.REGRESSED, "reference_state_changed", text, "changed", details)]


def _against(draw: int, hashes: Mapping[str, str], earlier: Earlier | None, mine: Circumstances) -> Found:
    """A draw against its earlier run."""
    if earlier is None:
        text = "no earlier good run of this device to compare with; within this run everything came out again"
        return Found(Verdict.INCONCLUSIVE, "no_earlier_run", text, details={"draw": draw})
    otherwise = made_otherwise(mine, earlier.circumstances)
    missing = sorted(earlier.hashes.keys() - hashes.keys())
    changed = sorted(name for name, sha256 in hashes.items() if earlier.hashes.get(name, sha256) != sha256)
    details = {"draw": draw, "changed": changed, "missing": missing, "run": earlier.name, "otherwise": otherwise}
    if not hashes.keys() & earlier.hashes.keys():
        text = f"draw {draw}: nothing that was hashed in run {earlier.name} is hashed here"
        return Found(
            Verdict.INCONCLUSIVE if otherwise else Verdict.REGRESSED, "hashes_renamed", text, "changed", details
        )
    if not changed and not (missing and not otherwise):
        return Found(Verdict.OK, "same_state", f"draw {draw} as in run {earlier.name}", details=details)
    text = f"draw {draw}: {_differing(changed, missing, hashes)} than in run {earlier.name}"
    if otherwise:
        text += f", which was made otherwise: {names(otherwise)}"
        return Found(Verdict.INCONCLUSIVE, "state_changed_elsewhere", text, "changed", details)
    code = "state_changed" if changed else "hash_missing"
    return Found(Verdict.REGRESSED, code, text, "changed", details)


def _differing(changed: Sequence[str], missing: Sequence[str], hashes: Mapping[str, str]) -> str:
    told = []
    if changed:
        told.append(f"{len(changed)} of {len(hashes)} hashes are others ({names(changed)})")
    if missing:
        told.append(f"{len(missing)} hashes fewer ({names(missing)})")
    return " and ".join(told)


def _judge_process(process: OtherProcess | None, by_draw: Mapping[int, DrawState]) -> list[Found]:
    """The second process against itself, and against the validation of the same draw."""
    if process is None:
        return []
    found, details = [], {"draw": process.draw, "process": "memory"}
    lost = sorted(process.hashes.keys() - process.matched)
    if lost:
        text = f"{len(lost)} of {len(process.hashes)} hashes are others after {process.invocations} runs: {names(lost)}"
        found.append(Found(Verdict.REGRESSED, "state_not_repeated", text, "changed", {**details, "changed": lost}))
    validated = next((state.hashes for state in by_draw.values() if state.draw == process.draw), None)
    differ = sorted(name for name, sha256 in (validated or {}).items() if process.hashes.get(name, sha256) != sha256)
    if differ:
        text = f"draw {process.draw}: {len(differ)} hashes are others in a second process: {names(differ)}"
        found.append(Found(Verdict.REGRESSED, "processes_differ", text, "changed", {**details, "changed": differ}))
    return found


def _verdict(run: RepeatabilityRun, findings: list[Found], earlier: Mapping[int, Earlier]) -> CheckVerdict:
    deciding = worst_of(findings)
    changed = {(found.details.get("draw"), name) for found in findings for name in found.details.get("changed", ())}
    compared = [found for found in findings if "run" in found.details]
    return CheckVerdict(
        check=CHECK,
        verdict=deciding.verdict,
        metric=METRIC,
        unit=UNIT,
        reason_code=deciding.code,
        reason=_same_text(compared, earlier) if deciding.verdict is Verdict.OK else text_of(findings),
        value=len(changed) if compared else None,
        direction=deciding.direction,
        details={
            "draws": [state.draw for state in run.states],
            "compared": len(compared),
            "findings": [found.as_json() for found in findings],
        },
    )


def _same_text(compared: Sequence[Found], earlier: Mapping[int, Earlier]) -> str:
    runs = sorted({found.details["run"] for found in compared})
    draws = "1 draw" if len(compared) == 1 else f"{len(compared)} draws"
    hashes = sum(len(earlier[found.details["draw"]].hashes) for found in compared)
    otherwise = [word for found in compared for word in found.details["otherwise"]]
    beside = f", though made otherwise: {names(list(dict.fromkeys(otherwise)))}" if otherwise else ""
    return f"the same {hashes} hashes on {draws} as in run {names(runs)}{beside}"

"""Run records of a kernel that is tried, made up for tests: its own rounds as a night's, and those with the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpu_tasks.records import (
    BlockFigures,
    CandidateRecord,
    ComparisonRecord,
    DifferingPrediction,
    Outcome,
    PredictionMismatch,
    Reason,
    RoundRecord,
    RunRecord,
    StaticFigures,
    TimedTurn,
    run_id_for,
)
from tests.integration.regression.example_energy import energy, energy_round, energy_run, figure
from tests.integration.regression.example_records import KERNEL, NOW, digest, summary_of, validation

DAG = "compare_kernels"
TRIED = replace(KERNEL, ptx_sha256=digest("tried ptx"))
BUNDLE, OTHER_BUNDLE = f"candidate-{'a' * 16}", f"candidate-{'b' * 16}"
COMMIT = "c0ffee" * 6 + "c0ff"
NO_ENERGY = Reason("no_energy_counter", "this device has no energy counter")
DISAGREES = Reason("predictions_disagree", "draw 3 disagrees")
WRONG = (PredictionMismatch(17, 2, 5),)
DIFFERING = (DifferingPrediction(3, 17, 5, 2, 2, -10.5, -10.25, 0.25),)
DRAWS = range(11)


def candidate(**changes: Any) -> CandidateRecord:
    """A kernel source of a working tree that differs from its commit."""
    record = CandidateRecord(
        kind="candidate",
        created_at=NOW,
        outcome=Outcome.OK,
        reason=None,
        workload="qda",
        spec="kernels/original.py",
        origin="source",
        commit=COMMIT,
        modified=True,
        bundle=BUNDLE,
        kernel=TRIED,
        against=KERNEL,
        against_bundle=OTHER_BUNDLE,
        equals_pinned=False,
        notes=["fused changed, too"],
    )
    return replace(record, **changes)


def blocks(mj: float = -0.06, ms: float = 0.0, per_round: int = 4, rounds: int = 2) -> list[BlockFigures]:
    """Blocks in which the pinned kernel takes 0.6 mJ and 0.0164 ms, and the candidate so much more, within 0.003 mJ."""
    found = []
    for number in range(rounds):
        for block in range(per_round):
            off = 0.001 * (block - (per_round - 1) / 2)
            own, other = 0.0164 + ms + off / 1000, 0.0164
            energies = (0.6 + mj + off, 0.6, 0.3)
            found.append(BlockFigures(number, block, True, *energies, own, other, own + 0.0001, other + 0.0001))
    return found


def turns(found: Sequence[BlockFigures]) -> list[RoundRecord]:
    """The rounds of these blocks."""
    return [_turn(number, [b for b in found if b.round == number]) for number in sorted({b.round for b in found})]


def _turn(number: int, found: Sequence[BlockFigures]) -> RoundRecord:
    own, other = (sum(getattr(b, name) or 0 for b in found) / len(found) for name in ("candidate_mj", "pinned_mj"))
    subjects = {"candidate": own, "baseline": other, "control": 0.3, "candidate - baseline": own - other}
    figures = [figure("interleaved", mj, subject) for subject, mj in subjects.items()]
    measured = energy_round(number, own, arm="comparison", protocol="interleaved")
    return replace(measured, energy=energy({}, figures=figures, sham=None), kernel_ptx_sha256=TRIED.ptx_sha256)


def timed(ms: float = 0.0) -> ComparisonRecord:
    """The same on a board without an energy counter, where the two took turns for their times alone."""
    nothing = dict.fromkeys(("candidate_mj", "pinned_mj", "control_mj"))
    found = [replace(block, **nothing) for block in blocks(ms=ms)]
    no_energy = {"energy": None, "adjusted_mj": None, "gross_mj": None, "wall_ms": None, "energy_reason": NO_ENERGY}
    rounds = [replace(record, **no_energy) for record in turns(found)]
    arms = {"candidate": "candidate_cuda_ms", "baseline": "pinned_cuda_ms"}
    taken = [
        TimedTurn(block.round, block.block, arm, 122_000, 2.0, getattr(block, arms[arm]))
        for block in found
        for arm in ("candidate", "baseline", "baseline", "candidate")
    ]
    energy_is = {"energy_trust": "unavailable", "energy_trust_reason": NO_ENERGY}
    return comparison(found, rounds=rounds, turns=taken, **energy_is)


def comparison(found: Sequence[BlockFigures] | None = None, **changes: Any) -> ComparisonRecord:
    """Two interleaved rounds of four blocks on which the candidate takes a tenth less, and every prediction agrees."""
    found = blocks() if found is None else list(found)
    record = ComparisonRecord(
        kind="comparison",
        created_at=NOW,
        outcome=Outcome.OK,
        reason=None,
        workload="qda",
        payload="original",
        device_uuid="GPU-1",
        candidate=TRIED,
        pinned=KERNEL,
        candidate_static=StaticFigures(3700, 3200, 4096, 41_000),
        pinned_static=StaticFigures(3738, 3211, 4096, 42_000),
        emulated=[validation(draw, duration_s=0.2) for draw in DRAWS],
        validations=[],
        pinned_validations=[validation(draw, duration_s=0.3) for draw in DRAWS],
        differing=[],
        differing_total=0,
        rounds=turns(found),
        blocks=list(found),
        not_measured=None,
        energy_trust="verified",
        energy_trust_reason=None,
    )
    return replace(record, **changes)


def candidate_run(name: str = "tried__1", compared: ComparisonRecord | None = None, **changes: Any) -> RunRecord:
    """A run by hand that tried a kernel: its own seven audited rounds around 0.54 mJ, and the comparison.

    ``spec`` changes its request and origin, ``of`` its CandidateRecord; the rest changes the record.
    """
    tried = candidate(**changes.pop("of", {}))
    energies = changes.pop("energies", (0.53, 0.535, 0.54, 0.54, 0.541, 0.545, 0.55))
    request = changes.pop("request", {})
    record = energy_run(name, energies, **changes)
    assert record.provision
    run_id = run_id_for(DAG, name)
    asked = {"dag_id": DAG, "run_id": run_id, "candidate": tried.spec, "blocks": 8, "kernel_changed": True} | request
    kernel = tried.kernel or TRIED
    return replace(
        record,
        request=replace(record.request, **asked),
        kernel=kernel,
        provision=replace(record.provision, kernel=kernel),
        candidate=tried,
        comparison=comparison() if compared is None else compared,
    )


def wrong_run(name: str = "wrong__1") -> RunRecord:
    """A candidate that gets one query of draw 3 wrong: nothing is measured."""
    draws = [validation(draw, WRONG if draw == 3 else ()) for draw in DRAWS]
    reason = Reason("candidate_wrong", "the candidate's predictions are wrong, which comes first")
    compared = comparison(
        [],
        outcome=Outcome.REGRESSION,
        reason=DISAGREES,
        emulated=draws,
        differing=list(DIFFERING),
        differing_total=1,
        not_measured=reason,
        energy_trust="unverified",
        energy_trust_reason=Reason("not_measured", "nothing was measured"),
    )
    record = candidate_run(name, compared, rounds=[], validations=[], outcome=Outcome.REGRESSION, reason=DISAGREES)
    return replace(record, summary=summary_of([], []))

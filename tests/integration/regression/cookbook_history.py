"""A small history with known answers: three boards and a CPU over five weeks, with everything that goes wrong in them.

GPU-1 measures around 0.60 mJ under driver 570.1 and around 0.66 mJ under 580.2; its nights of March 4 and 5 and of
March 9 to 31 are missing. Two draws disagree on March 3 and 8. Between the nights a second kernel is run by hand, and
two candidates are tried, one of which is promoted: neither is a night, or in any figure of one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpu_tasks.records import Outcome, PredictionMismatch, Reason, RunRecord
from tests.integration.regression.cookbook_learner import learners, moved
from tests.integration.regression.cookbook_rounds import (
    LIMITED,
    all_invalid,
    around,
    interleaved,
    meters_apart,
    throttled,
    with_readings,
)
from tests.integration.regression.example_comparisons import blocks, candidate_run, comparison, turns, wrong_run
from tests.integration.regression.example_energy import INVALID, SIMULATED_GPU, WANDER, energy_run
from tests.integration.regression.example_records import (
    CPU,
    ENVIRONMENT,
    KERNEL,
    OTHER_GPU,
    digest,
    lost_validation,
    run_record,
    validation,
)

CLASS_BLOCKS = replace(KERNEL, variant="class_blocks", ptx_sha256="ab" * 32)
FUSED = replace(KERNEL, variant="fused", ptx_sha256="cd" * 32)
TILE = replace(KERNEL, variant="class_blocks", ptx_sha256="ef" * 32)
OLD_DRIVER = replace(ENVIRONMENT, driver="560.1")
NEW_DRIVER = replace(ENVIRONMENT, driver="580.2")

IDS = {
    **{day: f"scheduled__2026-{day}" for day in ("03-01", "03-02", "03-03", "03-06", "03-07", "03-08", "04-01")},
    **{
        name: f"manual__{name}"
        for name in ("fused-1", "fused-2a", "fused-2b", "fused-2c", "fused-5", "fused-7", "fused-8")
    },
    **{name: f"manual__{name}" for name in ("cpu", "energy+10%", "faulty_sensor", "learner")},
    **{name: f"scheduled__{name}" for name in ("other-1", "other-3")},
    **{year: f"import__{year}" for year in ("2019", "2020")},
    **{name: f"try__{name}" for name in ("tile", "centring")},
    **{name: f"scheduled__{name}" for name in ("learner-1", "learner-2", "learner-3")},
}


def on(record: RunRecord, *, kernel: Any = CLASS_BLOCKS, environment: Any = ENVIRONMENT, **summary: Any) -> RunRecord:
    """The record with another kernel, environment, and parts of its summary."""
    assert record.provision
    return replace(
        record,
        kernel=kernel,
        provision=replace(record.provision, kernel=kernel, environment=environment),
        summary=replace(record.summary, **{"device_correct": 7480, "reference_correct": 7480, **summary}),
    )


def records() -> list[tuple[RunRecord, str]]:
    """Every run with its verdict."""
    return [*_old_driver(), *_new_driver(), *_candidates(), *_other_devices(), *learners()]


def _old_driver() -> list[tuple[RunRecord, str]]:
    first = energy_run(IDS["03-01"], around(0.60), rounds=with_readings(0.60))
    second = _warmer(energy_run(IDS["03-02"], around(0.61), joules=8.6))
    wrong = [PredictionMismatch(17, 2, 5), PredictionMismatch(40, 1, 0)]
    third = _validated(energy_run(IDS["03-03"], around(0.60)), {3: wrong})
    fused = {
        name: energy_run(IDS[f"fused-{name}"], around(mj)) for name, mj in (("1", 0.50), ("2a", 0.99), ("2b", 0.63))
    }
    stopped = energy_run(IDS["fused-2c"], rounds=all_invalid())
    return [
        (moved(on(first, cuda_ms_median=0.0164), "03-01", trigger="scheduled"), "ok"),
        (moved(on(second, cuda_ms_median=0.0168), "03-02", trigger="scheduled"), "ok"),
        (moved(on(third, cuda_ms_median=0.0164), "03-03", trigger="scheduled"), "regression"),
        (moved(on(fused["1"], kernel=FUSED, cuda_ms_median=0.0123), "03-01", 9), "ok"),
        (moved(on(fused["2a"], kernel=FUSED, cuda_ms_median=0.0500), "03-02", 6), "ok"),
        (moved(on(fused["2b"], kernel=FUSED, cuda_ms_median=0.0210), "03-02", 9), "ok"),
        (moved(on(stopped, kernel=FUSED), "03-02", 11), "invalid_measurement"),
        (moved(on(_interleaved(), kernel=FUSED, cuda_ms_median=0.0123), "03-05", 9), "ok"),
    ]


def _new_driver() -> list[tuple[RunRecord, str]]:
    sixth = energy_run(IDS["03-06"], rounds=throttled())
    sixth = replace(
        sixth,
        validations=[validation(draw, duration_s=60.0 if draw == 4 else 0.5) for draw in range(11)],
        outcome=Outcome.OK,
        reason=None,
    )
    assert sixth.verify_sources
    sources = replace(sixth.verify_sources, sources={"a.py": digest("changed"), "b.py": digest("b")})
    limited = [replace(part, state_before=LIMITED) for part in sixth.telemetry]
    sixth = replace(sixth, verify_sources=sources, telemetry=limited)
    seventh = energy_run(IDS["03-07"], failed=("reference_load", "meters_agree"), rounds=meters_apart())
    eighth = _validated(
        energy_run(IDS["03-08"], around(0.66)), {3: [PredictionMismatch(17, 2, 5)], 0: [PredictionMismatch(5, 7, 1)]}
    )
    fused = {name: energy_run(IDS[f"fused-{name}"], around(mj)) for name, mj in (("7", 0.55), ("8", 0.01))}
    april = energy_run(IDS["04-01"], around(0.66), unchecked=("sampling",))
    new = {"environment": NEW_DRIVER, "cuda_ms_median": 0.0172}
    return [
        (moved(on(sixth, **new), "03-06", minutes=10, trigger="scheduled"), "ok"),
        (moved(on(seventh, **new), "03-07", trigger="scheduled"), "invalid_measurement"),
        (moved(on(fused["7"], kernel=FUSED, **new), "03-07", 9), "ok"),
        (moved(on(eighth, **new), "03-08", trigger="scheduled"), "regression"),
        (moved(on(fused["8"], kernel=FUSED, **new), "03-08", 9), "ok"),
        (moved(on(april, **new), "04-01", trigger="scheduled"), "inconclusive"),
    ]


def _candidates() -> list[tuple[RunRecord, str]]:
    """A tile of another size, which takes a tenth less, and a kernel without centring, which gets a query wrong.

    The last block of the former is of a round that was too hot.
    """
    found = [*blocks(per_round=2), replace(blocks()[0], round=2, valid=False, candidate_mj=0.9)]
    rounds = [replace(r, **INVALID) if r.round == 2 else r for r in turns(found)]
    compared = comparison(found, rounds=rounds, candidate=TILE, pinned=CLASS_BLOCKS)
    kernels = {"kernel": TILE, "against": CLASS_BLOCKS}
    tile = candidate_run(
        IDS["tile"], compared, energies=around(0.60), of={**kernels, "spec": "tile-64", "origin": "ref"}
    )
    wrong = wrong_run(IDS["centring"])
    assert wrong.comparison
    wrong = replace(wrong, comparison=replace(wrong.comparison, pinned=CLASS_BLOCKS))
    nothing = {"device_correct": None, "reference_correct": None}
    return [
        (moved(on(tile, kernel=TILE, environment=NEW_DRIVER, cuda_ms_median=0.0163), "03-06", 12), "ok"),
        (moved(on(wrong, kernel=FUSED, environment=NEW_DRIVER, **nothing), "03-07", 12), "regression"),
    ]


def _other_devices() -> list[tuple[RunRecord, str]]:
    other = energy_run(IDS["other-1"], around(0.63), joules=9.0, device=OTHER_GPU)
    lost = energy_run(IDS["other-3"], (), device=OTHER_GPU)
    lost = replace(
        on(lost, draws_validated=10, total=10_000, agreed=10_000, device_correct=None),
        validations=[*lost.validations[:10], lost_validation(10)],
        outcome=Outcome.INFRASTRUCTURE_FAILURE,
        reason=Reason("device_lost", "the GPU fell off the bus"),
    )
    simulated = [
        energy_run(IDS[inject], around(mj), device=SIMULATED_GPU, inject=inject, seed=seed)
        for inject, mj, seed in (("energy+10%", 0.66, 7), ("faulty_sensor", 0.60, 8))
    ]
    cpu = run_record(IDS["cpu"], device=CPU, energies=[None] * 7)
    imported = _validated(energy_run(IDS["2020"], around(0.47)), {7: [PredictionMismatch(99, 3, 4)]})
    return [
        (moved(on(other), "03-01", trigger="scheduled"), "ok"),
        (moved(lost, "03-03", trigger="scheduled"), "infrastructure_failure"),
        (moved(on(simulated[0]), "03-02", 12), "regression"),
        (moved(on(simulated[1]), "03-03", 12), "ok"),
        (moved(on(cpu, cuda_ms_median=None), "03-04", 15), "ok"),
        (moved(on(energy_run(IDS["learner"], around(50.0))), "03-01", 20, workload="learner"), "ok"),
        (moved(on(energy_run(IDS["2019"])), "01-15", trigger="import"), "ok"),
        (moved(on(imported, environment=OLD_DRIVER), "02-01", trigger="import"), "regression"),
    ]


def _validated(record: RunRecord, wrong: dict[int, list[PredictionMismatch]]) -> RunRecord:
    """The record with mismatches in some of its draws, whose predictions then have another hash."""
    validations = [
        validation(draw, tuple(wrong.get(draw, ())), device_correct=679 if draw in wrong else 680) for draw in range(11)
    ]
    disagreeing = sum(map(len, wrong.values()))
    return replace(
        record,
        validations=validations,
        outcome=Outcome.REGRESSION,
        reason=next(v.reason for v in validations if v.reason),
        summary=replace(record.summary, agreed=11_000 - disagreeing),
    )


def _warmer(record: RunRecord) -> RunRecord:
    """The record with 1.5 W more of idle power before the rounds, a slower load after, longer gaps between samples."""
    before, after = record.telemetry
    assert after.reference_load
    before = replace(before, wander=replace(WANDER, power_w=41.5))
    after = replace(after, reference_load=replace(after.reference_load, tera_operations_per_s=17.0))
    gates = [replace(gate, value=0.04) if gate.gate == "sampling" else gate for gate in record.gates]
    return replace(record, telemetry=[before, after], gates=gates)


def _interleaved() -> RunRecord:
    record = energy_run(IDS["fused-5"], rounds=interleaved())
    assert record.provision
    return replace(record, provision=replace(record.provision, protocol="interleaved"))

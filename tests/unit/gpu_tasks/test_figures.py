"""Derived figures: by hand, and every stored figure of the first baseline to the last bit."""

from __future__ import annotations

import dataclasses

import pytest

from gpu_tasks.energy.figures import idle_power_w, round_figures, summarise
from gpu_tasks.records import (
    CounterReading,
    IdleWindow,
    RoundRecord,
    RunRecord,
    WindowEdge,
    read_record,
    run_id_for,
)
from gpu_tasks.sources import ROOT

BASELINE = ROOT / "gpu_tasks/baselines/qda-original-a100.json"


@pytest.fixture(scope="module")
def baseline() -> RunRecord:
    return read_record(BASELINE, RunRecord)


def window(start_mj: int, end_mj: int, seconds: float) -> IdleWindow:
    start, end = CounterReading(start_mj, 0.0, 0.0), CounterReading(end_mj, seconds, 0.0)
    return IdleWindow(start, end, idle_power_w(start, end))


def test_by_hand() -> None:
    """10 s at 50 W, of which 40 W would have been drawn anyway: 100 J over 1000 replays is 100 mJ each."""
    figures = round_figures(
        1000, WindowEdge(0, 5.0, 0.0), WindowEdge(500_000, 15.0, 0.0), window(0, 195_000, 5.0), window(0, 205_000, 5.0)
    )
    assert figures.wall_ms == 10.0
    assert figures.gross_mj == 500.0
    assert figures.idle_before_w == 39.0
    assert figures.idle_after_w == 41.0
    assert figures.adjusted_mj == 100.0
    assert figures.average_power_w == 50.0


def test_negative_energy_is_kept() -> None:
    figures = round_figures(
        10, WindowEdge(0, 0.0, 0.0), WindowEdge(300, 10.0, 0.0), window(0, 400, 10.0), window(0, 400, 10.0)
    )
    assert figures.adjusted_mj == -10.0


@pytest.mark.parametrize("lacking", ["start", "end", "before", "after"])
def test_no_counter_means_no_energy(lacking: str) -> None:
    start, end, idle = WindowEdge(0, 0.0, 0.0), WindowEdge(300, 10.0, 0.0), window(0, 400, 10.0)
    figures = round_figures(
        10,
        WindowEdge(None, 0.0, 0.0) if lacking == "start" else start,
        WindowEdge(None, 10.0, 0.0) if lacking == "end" else end,
        None if lacking == "before" else idle,
        None if lacking == "after" else idle,
    )
    assert figures.wall_ms == 1000.0
    assert [value for value in dataclasses.astuple(figures) if value is not None] == [1000.0]


def test_all_rounds_of_the_baseline_recompute_exactly(baseline: RunRecord) -> None:
    assert len(baseline.rounds) == 7
    for record in baseline.rounds:
        assert record.repeats == 1_000_000
        assert record.measurement_start is not None
        assert record.measurement_end is not None
        assert record.idle_before is not None
        assert record.idle_after is not None
        figures = round_figures(
            record.repeats, record.measurement_start, record.measurement_end, record.idle_before, record.idle_after
        )
        for name, value in dataclasses.asdict(figures).items():
            assert value == getattr(record, name), (record.round, name)
        assert record.idle_before.power_w == figures.idle_before_w
        assert record.idle_after.power_w == figures.idle_after_w


def test_the_summary_of_the_baseline_recomputes_exactly(baseline: RunRecord) -> None:
    assert summarise(11, baseline.validations, 7, baseline.rounds) == baseline.summary
    summary = baseline.summary
    assert (summary.agreed, summary.total, summary.device_correct, summary.reference_correct) == (
        11000,
        11000,
        7465,
        7465,
    )
    assert summary.cuda_ms_median == 0.01638980078125
    assert summary.wall_ms_median == 0.016393350230529905
    assert summary.gross_mj_median == 0.669114
    assert summary.adjusted_mj_median == 0.010378672372650355
    assert summary.adjusted_mj_min == 0.001357443620762555
    assert summary.adjusted_mj_max == 0.019697504400051663
    assert summary.adjusted_mj_sample_sd == 0.005985793726324726
    assert summary.negative_adjusted_rounds == 0


def test_what_the_baseline_says_of_itself(baseline: RunRecord) -> None:
    assert baseline.request.trigger == "import"
    assert baseline.request.run_id == run_id_for("import", "qda-eleven-draws") == "9fb0d280-736c-5a92-a150-6736bcd08ffd"
    assert baseline.energy_trust == "unverified"
    assert baseline.energy_trust_reason is not None
    assert "withdrawn" in baseline.energy_trust_reason.message
    assert baseline.provision is not None
    assert baseline.provision.device is not None
    assert baseline.provision.device.name == "NVIDIA A100-SXM4-40GB"
    assert baseline.kernel == baseline.provision.kernel
    assert baseline.verify_payload is not None
    assert baseline.verify_payload.payload is not None
    assert baseline.verify_payload.payload.manifest_sha256.startswith("d16f219fcbbe")


def changed(record: RoundRecord, **fields: object) -> RoundRecord:
    return dataclasses.replace(record, **fields)  # type: ignore[arg-type]


def test_invalid_rounds_stay_out(baseline: RunRecord) -> None:
    rounds = [
        changed(r, valid=r.round != 3, adjusted_mj=-1.0 if r.round == 0 else r.adjusted_mj) for r in baseline.rounds
    ]
    summary = summarise(11, baseline.validations, 7, rounds)
    assert summary.rounds_valid == 6
    assert summary.adjusted_mj_min == -1.0
    assert summary.negative_adjusted_rounds == 1


def test_a_missing_figure_is_not_averaged_over(baseline: RunRecord) -> None:
    rounds = [changed(r, cuda_ms=None if r.round == 2 else r.cuda_ms) for r in baseline.rounds]
    summary = summarise(11, baseline.validations, 7, rounds)
    assert summary.cuda_ms_median is None
    assert summary.wall_ms_median == baseline.summary.wall_ms_median


def test_few_rounds(baseline: RunRecord) -> None:
    one = summarise(11, baseline.validations, 7, baseline.rounds[:1])
    assert one.adjusted_mj_sample_sd is None
    assert one.adjusted_mj_median == baseline.rounds[0].adjusted_mj
    none = summarise(11, [], 7, [])
    assert (none.total, none.agreed, none.all_replays_equal_eager, none.adjusted_mj_median) == (None,) * 4
    assert (none.draws_validated, none.rounds_valid, none.negative_adjusted_rounds) == (0, 0, None)

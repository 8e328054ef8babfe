"""Which signals a judged run gives: one for each cause, and none for what is no cause."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from regression.alerts.judged import Check
from regression.alerts.of_run import GROUPS, is_fine, signals_of
from regression.alerts.signal import METRICS, Signal
from regression.detectors.environment import Difference
from tests.unit.regression.alert_examples import (
    AGREEMENT,
    BEGAN,
    DRIVER,
    ENERGY,
    ENERGY_HISTORY,
    FAULTY_ENERGY,
    FAULTY_HISTORIES,
    GATE,
    KERNEL,
    MEMORY,
    NEW_CLASS,
    QUALIFICATION,
    REPEATABILITY,
    RUN_ID,
    TIME,
    check,
    environment,
    run,
)

QUIET = [check(name) for names in GROUPS.values() for name in names]


def keys(*checks: Any, **changes: Any) -> list[str]:
    return [f"{s.metric} {s.direction} {s.outcome}" for s in signals_of(run(*checks, **changes))]


@pytest.mark.parametrize("word", ["ok", "improved", "inconclusive", "unavailable"])
def test_nothing_is_told_of_what_is_not_red(word: str) -> None:
    """dotnet/performance 4312: a report of no regressions is sent to nobody."""
    assert keys(*(replace(c, verdict=word) for c in QUIET), environment(KERNEL), verdict=word) == []


def test_each_metric_that_is_red_is_told_with_its_figures() -> None:
    assert keys(AGREEMENT, ENERGY, TIME) == [
        "agreement lower regression",
        "energy higher regression",
        "time higher regression",
    ]
    (signal,) = signals_of(run(ENERGY))
    assert (signal.value, signal.baseline_value, signal.unit, signal.baseline_id) == (0.63, 0.6, "mJ", 1)
    assert (signal.run_id, signal.device_id, signal.workload) == (RUN_ID, 1, "qda")


def test_what_a_task_takes_and_leaves_is_told_apart() -> None:
    """More memory, other bytes and a check that fails have three causes until somebody knows better."""
    assert keys(MEMORY, REPEATABILITY, QUALIFICATION) == [
        "qualification lower regression",
        "repeatability changed regression",
        "memory higher regression",
    ]
    (signal,) = signals_of(run(MEMORY))
    assert (signal.value, signal.unit) == (17_212_416, "bytes")
    assert signal.headline.endswith("9.9 % higher (17,212,416 bytes, baseline 15,663,104 bytes)")


def test_a_workload_without_kernels_is_not_said_to_have_kept_its_own() -> None:
    (with_one,), (without,) = (signals_of(run(MEMORY, environment(), has_kernel=has)) for has in (True, False))
    assert "kernel" in dict(with_one.facts)
    assert "kernel" not in dict(without.facts)


@pytest.mark.parametrize("names", GROUPS.values())
def test_every_check_of_a_group_can_speak_and_all_of_them_are_one_signal(names: tuple[str, ...]) -> None:
    red = [check(name, "regressed", direction="higher", value=2.0, baseline_value=1.0) for name in names]
    for one in red:
        assert len(signals_of(run(one))) == 1
    (signal,) = signals_of(run(*red[::-1]))
    also = [words for label, words in signal.facts if label == "also"]
    assert [words.split(" regressed")[0] for words in also] == [name.replace("_", " ") for name in names[1:]]


def test_a_regression_speaks_before_what_cannot_be_used() -> None:
    assert keys(FAULTY_ENERGY, ENERGY_HISTORY) == ["energy higher regression"]


def test_a_faulty_sensor_is_one_signal() -> None:
    invalid = [check(name, "invalid", **GATE) for name in GROUPS["energy"]]
    assert keys(*invalid, TIME) == ["energy missing invalid_measurement", "time higher regression"]
    (signal, _) = signals_of(run(*invalid, TIME))
    assert (signal.value, signal.unit) == (None, None)


def test_parts_that_cannot_be_used_for_the_same_reason_are_one_signal() -> None:
    lost = {"reason_code": "no_valid_round", "plain_reason": "no valid round"}
    assert keys(check("energy", "invalid", **lost), check("time", "invalid", **lost)) == [
        "energy missing invalid_measurement"
    ]
    other = lost | {"reason_code": "another"}
    assert len(keys(check("energy", "invalid", **lost), check("time", "invalid", **other))) == 2


@pytest.mark.parametrize(
    ("verdict", "direction"),
    [("infrastructure_failure", "missing"), ("verification_mismatch", "changed"), ("bad_input", "changed")],
)
def test_a_night_that_says_nothing_is_one_signal_and_its_checks_are_none(verdict: str, direction: str) -> None:
    invalid = [check(names[0], "invalid") for names in GROUPS.values()]
    ended = {"verdict": verdict, "reason_code": "device_lost", "reason": "the GPU fell off the bus"}
    assert keys(*invalid, **ended) == [f"night {direction} {verdict}"]
    (signal,) = signals_of(run(*invalid, **ended))
    assert (signal.device_id, signal.run_id) == (None, RUN_ID)
    assert keys(*invalid, **ended, trigger="manual") == []
    assert keys(AGREEMENT, *invalid[1:], **ended, trigger="manual") == ["agreement lower regression"]


def test_a_run_that_was_never_settled_is_judged_by_its_checks() -> None:
    assert keys(ENERGY, verdict=None) == ["energy higher regression"]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([DRIVER], True),
        ([NEW_CLASS, KERNEL], True),
        ([Difference("power limit", "power limit", "400 W", "300 W", True)], True),
        ([KERNEL], False),
        ([Difference("source", "a.py", "1", "2", False), Difference("package", "numpy", "1", "2", False)], False),
        ([Difference("payload", "payload", "1", "2", True)], True),
        ([Difference("device", "device", "GPU-1", "GPU-2", True), DRIVER], False),
    ],
)
def test_what_changed_around_the_kernel_is_told_where_figures_may_have_moved_with_it(
    found: list[Difference], told: bool
) -> None:
    assert keys(environment(*found)) == (["environment changed environment_change"] if told else [])


def test_what_else_changed_stands_beside_a_drift() -> None:
    energy, _ = signals_of(run(ENERGY, environment(DRIVER, KERNEL)))
    assert ("changed too", "driver 570.86.15 -> 575.57.08, kernel aaaaaaaaaaaa -> bbbbbbbbbbbb") in energy.facts


def test_manual_and_injected_runs_say_so() -> None:
    (signal,) = signals_of(run(ENERGY, trigger="manual", label="mine", inject="energy+5%"))
    told = dict(signal.facts)
    assert told["asked for"] == "this run was started by hand, not by the schedule (label mine)"
    assert told["rehearsal"] == "the fault is made up: this run was asked to inject energy+5%"
    assert signal.headline.startswith("rehearsal: adjusted energy per replay 5.0 % higher")
    (signal,) = signals_of(run(ENERGY))
    assert not {"asked for", "rehearsal"} & dict(signal.facts).keys()


def test_the_link_to_airflow_is_there_where_its_address_is_known() -> None:
    (signal,) = signals_of(run(ENERGY), "http://127.0.0.1:8080/")
    address = "http://127.0.0.1:8080/dags/nightly_qda/runs/scheduled__2026-11-30T02%3A00%3A00%2B00%3A00"
    assert dict(signal.facts)["Airflow"] == address
    assert "Airflow" not in dict(signals_of(run(ENERGY))[0].facts)


@pytest.mark.parametrize("metric", GROUPS)
def test_a_metric_is_fine_when_one_of_its_checks_is_and_none_is_red(metric: str) -> None:
    first, *others = GROUPS[metric]
    assert is_fine(run(check(first)), metric)
    assert is_fine(run(check(first, "improved")), metric)
    for word in ("inconclusive", "unavailable", "regressed", "invalid"):
        assert not is_fine(run(check(first, word)), metric)
    for other in others:
        assert is_fine(run(check(first, "inconclusive"), check(other)), metric)
        assert not is_fine(run(check(first), check(other, "invalid")), metric)
    assert not is_fine(run(), metric)


def test_surroundings_are_fine_when_they_are_those_of_the_baseline() -> None:
    assert is_fine(run(environment()), "environment")
    assert is_fine(run(environment(KERNEL)), "environment")
    assert not is_fine(run(environment(DRIVER)), "environment")
    assert not is_fine(run(check("environment", "inconclusive")), "environment")


def test_a_night_is_complete_when_it_was_scheduled_and_says_something() -> None:
    for verdict in ("ok", "regression", "inconclusive", "invalid_measurement"):
        assert is_fine(run(verdict=verdict), "night")
    for changes in ({"verdict": None}, {"verdict": "infrastructure_failure"}, {"trigger": "manual", "verdict": "ok"}):
        assert not is_fine(run(**changes), "night")


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "adjusted_energy_per_replay"},
        {"direction": "up"},
        {"outcome": "ok"},
        {"run_id": None},
        {"night": BEGAN},
        {"run_id": None, "night": datetime(2026, 11, 30)},  # noqa: DTZ001 - naive on purpose
        {"headline": " "},
        {"headline": "two\nlines"},
    ],
)
def test_what_no_alert_can_be_made_of_is_refused(changes: dict[str, Any]) -> None:
    values = {"metric": "energy", "direction": "higher", "outcome": "regression", "headline": "h", "run_id": RUN_ID}
    Signal("qda", **values)
    with pytest.raises(ValueError, match="expected"):
        Signal("qda", **(values | changes))


@pytest.mark.parametrize(
    ("surroundings", "said"),
    [
        (environment(), "the same as the baseline's"),
        (environment(DRIVER), "the same as the baseline's"),
        (environment(DRIVER, KERNEL), None),
        (environment(baseline_id=None), None),
    ],
)
def test_whether_it_was_the_kernel_is_said_where_it_is_known(surroundings: Check, said: str | None) -> None:
    (signal, *_) = signals_of(run(ENERGY, surroundings))
    assert dict(signal.facts).get("kernel") == said
    assert said or "kernel" in dict(signal.facts).get("changed too", "kernel")


def test_how_each_check_ended_is_said_and_what_has_the_same_cause_only_named() -> None:
    red = check("wall_time_history", "regressed", direction="higher", value=2.0, baseline_value=1.0)
    signal, *_ = signals_of(run(FAULTY_ENERGY, *FAULTY_HISTORIES, check("agreement"), red))
    assert dict(signal.facts)["checks"] == "agreement ok, energy invalid, wall time history regressed"
    assert [words for label, words in signal.facts if label == "also"] == [
        "for the same reason: energy history, idle power history"
    ]


@pytest.mark.parametrize(("tonight", "size", "direction"), [(0.599, 0.012, "higher"), (0.6, -0.012, "lower")])
def test_a_change_of_several_nights_is_told_by_its_own_size(tonight: float, size: float, direction: str) -> None:
    """Tonight alone may lie on the usual level, or on its other side."""
    details = {"size": size, "since": "2026-11-20T02:00:00+00:00"}
    (signal,) = signals_of(run(replace(ENERGY_HISTORY, value=tonight, direction=direction, details=details)))
    said = f"adjusted energy per replay 2.0 % {direction} since 2026-11-20 (tonight {tonight} mJ, usual 0.6 mJ)"
    assert signal.headline == said


def test_every_metric_of_a_signal_can_be_fine() -> None:
    assert {*GROUPS, "environment", "night"} == set(METRICS)

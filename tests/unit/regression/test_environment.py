"""What else changed: every part of the surroundings, and what is said beside a drift."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from regression.detectors.environment import Surroundings, beside, differences, judge_environment
from regression.detectors.verdict import CheckVerdict, Verdict

HERE = Surroundings(
    device="A100 (GPU-1)",
    protocol="classic",
    payload_manifest_sha256="a" * 64,
    environment_class="driver=550 cuda=12.4",
    versions={"driver": "550", "cuda": "12.4", "python": "3.11.7"},
    packages={"numpy": "2.2.0", "torch": "2.6.0"},
    sources={"kernels/qda.ptx": "b" * 64},
    kernel_sha256="c" * 64,
    power_limit_w=250.0,
)
SLOWER = CheckVerdict("history", Verdict.REGRESSED, "wall_time", "ms", "shift_higher", "3 % higher", direction="higher")


def test_the_same_is_ok() -> None:
    found = judge_environment(HERE, HERE)
    assert (found.verdict, found.reason_code, found.value) == (Verdict.OK, "same_surroundings", 0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"device": "H100 (GPU-1)"}, "device A100 (GPU-1) -> H100 (GPU-1)"),
        ({"protocol": "long"}, "protocol classic -> long"),
        ({"payload_manifest_sha256": "d" * 64}, "payload aaaaaaaaaaaa -> dddddddddddd"),
        ({"power_limit_w": 200.0}, "power limit 250 W -> 200 W"),
        ({"environment_class": "driver=560"}, "environment class driver=550 cuda=12.4 -> driver=560"),
    ],
)
def test_what_makes_figures_incomparable_begins_a_new_segment(change: dict[str, object], text: str) -> None:
    found = judge_environment(replace(HERE, **change), HERE)  # type: ignore[arg-type]
    assert (found.verdict, found.reason_code, found.direction) == (Verdict.INCONCLUSIVE, "new_segment", "changed")
    assert found.reason == f"a new segment begins, which needs a baseline of its own: {text}"
    json.dumps(found.details)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"power_limit_w": None}, "power limit 250 W -> unknown"),
        ({"kernel_sha256": "d" * 64}, "kernel cccccccccccc -> dddddddddddd"),
        ({"sources": {"kernels/qda.ptx": "d" * 64}}, "source kernels/qda.ptx bbbbbbbbbbbb -> dddddddddddd"),
        ({"sources": {}}, "source kernels/qda.ptx bbbbbbbbbbbb -> unknown"),
        ({"packages": {"numpy": "2.3.0", "torch": "2.6.0"}}, "package numpy 2.2.0 -> 2.3.0"),
        ({"versions": {**HERE.versions, "python": "3.12.1"}}, "environment python 3.11.7 -> 3.12.1"),
        ({"versions": {**HERE.versions, "driver": "551"}}, "driver 550 -> 551"),
        ({"versions": {**HERE.versions, "driver": "20261130123456"}}, "driver 550 -> 20261130123456"),
    ],
)
def test_everything_else_is_named(change: dict[str, object], text: str) -> None:
    found = judge_environment(replace(HERE, **change), HERE)  # type: ignore[arg-type]
    assert (found.verdict, found.reason_code) == (Verdict.OK, "surroundings_changed")
    assert found.reason == f"changed since the baseline: {text}"


def test_nothing_passes_for_lack_of_data() -> None:
    assert judge_environment(HERE, None).reason_code == "no_baseline"
    found = judge_environment(replace(HERE, environment_class=None, device=None), HERE)
    assert (found.verdict, found.reason_code) == (Verdict.INCONCLUSIVE, "surroundings_unknown")
    assert found.reason == "not known of this run: device, environment class"


def test_what_one_of_the_two_does_not_say_is_not_compared() -> None:
    """An imported baseline has neither sources nor packages nor a power limit, and 60 files are no news."""
    for part in ({"sources": None}, {"packages": None}):
        assert differences(replace(HERE, **part), HERE) == differences(HERE, replace(HERE, **part)) == ()  # type: ignore[arg-type]
    assert differences(HERE, replace(HERE, power_limit_w=None)) == ()
    more = replace(HERE, versions={**HERE.versions, "platform": "Linux"})
    assert differences(more, HERE) == differences(HERE, more) == ()
    other = replace(HERE, versions={**HERE.versions, "platform": "Linux 7"})
    assert [str(found) for found in differences(other, more)] == ["environment platform Linux -> Linux 7"]
    assert [str(found) for found in differences(HERE, replace(HERE, packages={}))] == [
        "package numpy unknown -> 2.2.0",
        "package torch unknown -> 2.6.0",
    ]


def test_a_new_container_that_changes_72_things_is_named_as_environment_first() -> None:
    """Megatron-LM 5059: the figures moved because the container did."""
    packages = {f"package-{number:02}": "1" for number in range(70)}
    new = replace(
        HERE,
        environment_class="driver=560 cuda=13.0",
        versions={**HERE.versions, "driver": "560", "cuda": "13.0"},
        packages=dict.fromkeys(packages, "2"),
        kernel_sha256="d" * 64,
    )
    found = differences(new, replace(HERE, packages=packages))
    assert len(found) == 74
    told = beside(SLOWER, found)
    assert told.reason == (
        "3 % higher; also changed: environment class driver=550 cuda=12.4 -> driver=560 cuda=13.0, "
        "driver 550 -> 560, environment cuda 12.4 -> 13.0, and 71 more"
    )
    assert len(told.details["also_changed"]) == 74
    assert told.verdict is Verdict.REGRESSED


def test_nothing_is_said_beside_a_verdict_that_tells_no_change() -> None:
    found = differences(replace(HERE, protocol="long"), HERE)
    quiet = replace(SLOWER, verdict=Verdict.OK)
    assert beside(quiet, found) is quiet
    assert beside(SLOWER, ()) is SLOWER

"""The words for effects: everything of the grammar is understood, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_tasks.records import DRIFTS, BadInput, Effects, Outcome, parse_effects
from gpu_tasks.records.effects import GRAMMAR, SWITCHES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "energy.md"

percents = st.decimals(0, 99, places=2, allow_nan=False)
Word = tuple[str, str, Any]  # text, field, value


def percent(what: str) -> st.SearchStrategy[Word]:
    return st.tuples(st.sampled_from("+-"), percents).map(
        lambda found: (f"{what}{found[0]}{found[1]}%", f"{what}_factor", 1 + float(f"{found[0]}{found[1]}") / 100)
    )


words = st.one_of(
    percent("energy"),
    percent("time"),
    st.sampled_from(SWITCHES).map(lambda name: (name, name, True)),
    st.sampled_from([("drift", "drift", "linear"), *((f"drift={kind}", "drift", kind) for kind in DRIFTS[1:])]),
    st.decimals("0.001", 10, places=3).map(lambda scale: (f"sensor*{scale}", "sensor_scale", float(scale))),
    st.integers(50, 1000).map(lambda watts: (f"power_limit={watts}", "power_limit_w", float(watts))),
    st.integers(1, 1000).map(lambda watts: (f"sensor_floor={watts}", "sensor_floor_w", float(watts))),
    st.decimals("0.01", 60, places=2).map(lambda lag: (f"slow_tail={lag}", "slow_tail_s", float(lag))),
    st.lists(st.integers(0, 9999), min_size=1, max_size=4).map(
        lambda parts: (f"driver={'.'.join(map(str, parts))}", "driver", ".".join(map(str, parts)))
    ),
)


@settings(deadline=None)
@given(st.lists(words, max_size=8, unique_by=lambda word: word[1]), st.data())
def test_any_list_of_effects_is_understood(found: list[Word], data: st.DataObject) -> None:
    spelled = [data.draw(st.sampled_from([text, text.upper(), f"  {text} ", text.title()])) for text, _, _ in found]
    effects = parse_effects(",".join(spelled))
    assert effects == Effects(**{field: value for _, field, value in found})


@settings(deadline=None)
@given(words)
@example(("drift,drift=curvature", "", None))
@example(("energy+1%,energy-1%", "", None))
@example(("sensor*0.5,sensor*0.6", "", None))
@example(("sensor_floor=50,sensor_floor=60", "", None))
@example(("slow_tail=1,slow_tail=2", "", None))
def test_an_effect_is_named_once(word: Word) -> None:
    named = re.split("[^a-z_]", word[0])[0]
    with pytest.raises(BadInput, match=f"^inject: expected {named} once, found it again") as caught:
        parse_effects(f"{word[0]},{word[0].upper()}")
    assert caught.value.code == "bad_inject"


BAD = """energy+10|energy10%|energy+-1%|energy+1e2%|energy+\u0663%|time-100%|energy+1001%|sensor*0|sensor*11|sensor*-1
drift=none|drift=|driver=|driver=580;x|power_limit=0|power_limit=nan|sensor_floor|sensor_floor=0|sensor_floor=1001
sensor_floor=-5|slow_tail=|slow_tail=0|slow_tail=60.1|slow_tail=inf|xid=79|throttle,|,throttle|,|throttle throttle
throttle\tlost_gpu|faulty-sensor|cloc\u212a_drop|energy + 1%"""


@pytest.mark.parametrize("text", BAD.replace("\n", "|").split("|"))
def test_anything_else_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match=r"^inject: .*expected") as caught:
        parse_effects(text)
    assert caught.value.code == "bad_inject"
    assert caught.value.outcome is Outcome.BAD_INPUT


@settings(deadline=None)
@given(st.text(max_size=30) | st.lists(st.sampled_from([*GRAMMAR]), max_size=20).map("".join))
def test_any_text_is_understood_or_refused_in_one_line(text: str) -> None:
    try:
        effects = parse_effects(text)
    except BadInput as error:
        assert len(error.message.splitlines()) == 1
    else:
        assert parse_effects(f" {text.upper()} ") == effects


def test_nothing_is_nothing() -> None:
    assert parse_effects(None) == parse_effects("") == parse_effects("  ") == Effects()


def test_what_is_expected_is_said() -> None:
    with pytest.raises(BadInput) as caught:
        parse_effects("energy+10%, thrott1e")
    assert caught.value.message == f"inject: expected some of {GRAMMAR}; found 'thrott1e'"
    assert all(switch in GRAMMAR for switch in SWITCHES)


def test_every_switch_is_an_effect() -> None:
    assert {field.name for field in fields(Effects) if field.type == "bool"} == set(SWITCHES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("power_limit=49.9", "power_limit: expected 50 to 1000 W, found 49.9"),
        ("sensor_floor=0.5", "sensor_floor: expected 1 to 1000 W, found 0.5"),
        ("slow_tail=61", "slow_tail: expected 0.01 to 60 s, found 61"),
    ],
)
def test_a_number_out_of_its_bounds_is_named_with_them(text: str, expected: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_effects(text)
    assert caught.value.message == f"inject: {expected}"


def test_every_effect_is_documented_with_what_comes_of_it() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Injecting effects\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows)
    documented = [effect for row in rows for effect in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(documented) == sorted(GRAMMAR.split(", "))

"""Configs and inputs that no learner can use, each refused by name. Nothing here needs torch."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.sources import ROOT
from gpu_tasks.workloads.learner import torch_settings
from gpu_tasks.workloads.learner.config import RECORDED, check_batch, parse_config, read_config
from gpu_tasks.workloads.learner.initial import epoch_orders, parameter_shapes
from gpu_tasks.workloads.learner.inputs import Inputs, check_inputs
from tests.unit.gpu_tasks.learner import small

SETTINGS = dataclasses.asdict(RECORDED)


def test_the_recorded_config_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SETTINGS), encoding="utf-8")
    assert read_config(path) == RECORDED
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput, match="expected UTF-8"):
        read_config(path)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_missing_key_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=rf"mine: \$\.{name}: expected"):
        parse_config(json.dumps({key: value for key, value in SETTINGS.items() if key != name}), "mine")


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(BadInput, match="nesterov"):
        parse_config(json.dumps(SETTINGS | {"nesterov": True}), "mine")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", 0),
        ("depth", -1),
        ("depth", 1001),
        ("alpha", 0.0),
        ("alpha", -1e39),
        ("seed", -1),
        ("seed", 2**63),
        ("epochs", 0),
        ("learning_rate", 0.0),
        ("learning_rate", -0.1),
        ("learning_rate", 1e308),
        ("batch_size", 0),
        ("momentum", 1.0),
        ("momentum", -0.1),
        ("weight_decay", -1e-4),
        ("weight_decay", 1e39),
    ],
)
def test_a_value_that_cannot_be_is_named(name: str, value: float) -> None:
    with pytest.raises(BadInput, match=rf"mine: \$\.{name}: expected .*, found {re.escape(repr(value))}") as caught:
        parse_config(json.dumps(SETTINGS | {name: value}), "mine")
    assert caught.value.code == "bad_config"


@pytest.mark.parametrize("name", SETTINGS)
@given(value=st.one_of(st.none(), st.text(), st.booleans(), st.lists(st.integers()), st.just(float("nan"))))
def test_a_value_of_another_kind_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadInput):
        parse_config(json.dumps(SETTINGS | {name: value}), "mine")


def test_a_batch_larger_than_the_set() -> None:
    check_batch(RECORDED, 128)
    with pytest.raises(BadInput, match=r"batch_size: expected at most the 127 samples, found 128"):
        check_batch(RECORDED, 127)


def changed(field: str, change: Callable[[np.ndarray], object]) -> Inputs:
    good = small.inputs()
    values = getattr(good, field).copy()
    result = change(values)
    return dataclasses.replace(good, **{field: values if result is None else result})


def put(index: object, value: float) -> Callable[[np.ndarray], None]:
    return lambda values: values.__setitem__(index, value)


@pytest.mark.parametrize(
    ("field", "change", "code", "words"),
    [
        ("x", put((3, 4), np.nan), "not_finite", "x: sample 3, pixel 4: expected a finite number, found nan"),
        ("q", put((6, 8), np.inf), "not_finite", "q: sample 6, pixel 8: expected a finite number, found inf"),
        ("q", put((0, 1), 1.5), "bad_pixel", "q: sample 0, pixel 1: expected a grey of 0 to 1, found 1.5"),
        ("x", put((0, 0), -0.25), "bad_pixel", "found -0.25"),
        ("labels", put(5, 10), "bad_label", "labels: sample 5: expected a class 0..9, found 10"),
        ("labels", put(2, -1), "bad_label", "found -1"),
        ("labels", lambda v: v[:-1], "bad_shape", r"expected \(19,\) as x has samples, found \(18,\)"),
        ("labels", lambda v: v.astype(np.int32), "bad_dtype", "expected int64, found int32"),
        ("x", lambda v: v.astype(np.float64), "bad_dtype", "x: dtype: expected float32, found float64"),
        ("x", lambda v: v[0], "bad_shape", "neither of them 0"),
        ("q", lambda v: v[:0], "bad_shape", "neither of them 0"),
        ("q", lambda v: v[:, :7], "bad_shape", "q: features: expected 9 as in x, found 7"),
    ],
)
def test_inputs_that_cannot_be_used(field: str, change: Callable[..., object], code: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        check_inputs(changed(field, change))
    assert caught.value.code == code


def test_features_that_do_not_make_two_halves() -> None:
    check_inputs(small.inputs(features=81))
    with pytest.raises(BadInput, match="two equal halves, found 81") as caught:
        check_inputs(small.inputs(features=80))
    assert caught.value.code == "odd_width"
    with pytest.raises(BadInput, match="two equal halves, found 81"):
        parameter_shapes(2, 81)


def test_parameters_of_the_recorded_learner() -> None:
    shapes = parameter_shapes(RECORDED.depth, 82)
    assert list(shapes) == ["weights.0", "weights.1", "weights.2", "weights.3", "head.weight", "head.bias"]
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 7554


def test_each_epoch_has_an_order_of_its_own() -> None:
    orders = epoch_orders(small.config(epochs=3), 50)
    assert orders.shape == (3, 50)
    assert orders.dtype == np.int64
    assert all(sorted(order) == list(range(50)) for order in orders.tolist())
    assert not np.array_equal(orders[0], orders[1])


@pytest.mark.parametrize(
    "content",
    [
        "raise OSError('libtorch_cpu.so: cannot open\\nshared object file')",
        "raise ImportError('a DSO of another version')",
        "import no_such_dependency",
        "raise AttributeError('half of it')",
        "",
    ],
)
def test_a_torch_that_is_broken_is_said_in_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(content)
    code = (
        "from gpu_tasks.workloads.learner.torch_settings import require_torch\n"
        "try: require_torch()\n"
        "except Exception as error: print(type(error).__name__, error.code, error.message)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("InfrastructureFailure torch_broken torch: expected in an environment that runs")
    assert "found a broken one (" in result.stdout
    assert result.stdout.endswith("make it by `provision --environment learner`\n")
    assert result.stdout.count("\n") == 1


def test_without_torch_it_is_said_and_nothing_else_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InfrastructureFailure, match="make it by `provision --environment learner`") as e:
        torch_settings.require_torch()
    assert e.value.code == "torch_missing"
    names = "gpu_tasks.workloads.registry as registry"
    code = f"import sys, {names}; registry.get_workload('learner'); print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"

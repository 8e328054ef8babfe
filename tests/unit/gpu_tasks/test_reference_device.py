"""The float32 device: right on every draw, and as strict with buffers and graphs as a GPU is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_tasks.devices import host, registry
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.qda import Qda, declaration
from gpu_tasks.workloads.qda.classifier import scores, train
from gpu_tasks.workloads.qda.declaration import DECLARATION
from gpu_tasks.workloads.qda.reference_device import ReferenceQda


@pytest.fixture
def device(qda: Workload) -> Iterator[ReferenceQda]:
    opened = ReferenceQda(qda)
    yield opened
    opened.close()


def load(device: ReferenceQda, draw: Draw) -> None:
    device.load(draw.x, draw.labels, draw.q)


def test_agrees_on_all_eleven_draws(device: ReferenceQda, draws: list[Draw]) -> None:
    agreed = 0
    for draw in draws:
        load(device, draw)
        device.poison_scratch()
        device.eager()
        agreed += int(np.sum(device.predictions() == draw.frozen_predictions))
    assert agreed == 11000


def test_score_differences_are_well_inside_the_margin(device: ReferenceQda, draws: list[Draw]) -> None:
    """Error of a score difference over that difference; 1 would flip a label, raw moments reach 0.4."""
    worst = 0.0
    for draw in draws:
        load(device, draw)
        device.eager()
        exact = scores(train(draw.x, draw.labels), draw.q)
        intermediates = device.intermediates()
        assert intermediates is not None
        error = intermediates["scores"].astype(np.float64) - exact
        best = np.argmax(exact, axis=1)[:, None]
        gap = np.take_along_axis(exact, best, 1) - exact
        change = np.abs(np.take_along_axis(error, best, 1) - error)
        worst = max(worst, float(np.max(change[gap > 0] / gap[gap > 0])))
    assert worst < 0.05


def test_one_graph_follows_changed_inputs(device: ReferenceQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.capture()
    for draw in draws[1:4]:
        load(device, draw)
        device.poison_scratch()
        device.replay()
        np.testing.assert_array_equal(device.predictions(), draw.frozen_predictions)


def test_capture_runs_nothing(device: ReferenceQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.poison_scratch()
    device.capture()
    assert set(device.predictions().tolist()) == {-1}


def test_poison_reaches_every_scratch_array(device: ReferenceQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.eager()
    device.poison_scratch()
    for name, buffer in device._scratch.items():
        assert np.isnan(buffer).all(), name
    assert (device._best == -1).all()
    assert (device.predictions() == -1).all()


def test_a_forgotten_step_is_seen_after_poisoning(device: ReferenceQda, draws: list[Draw]) -> None:
    """Drop each step of the graph in turn: without the poison a stale result of the run before would hide it."""
    load(device, draws[0])
    device.capture()
    steps = device._graph
    assert steps is not None
    for left_out in range(len(steps)):
        device._graph = steps[:left_out] + steps[left_out + 1 :]
        device.poison_scratch()
        try:
            device.replay()
        except BadInput:
            continue
        wrong = np.sum(device.predictions() != draws[0].frozen_predictions)
        assert wrong > 0, left_out


def test_replay_needs_a_graph(device: ReferenceQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    with pytest.raises(InfrastructureFailure):
        device.replay()
    device.capture()
    device.close()
    with pytest.raises(InfrastructureFailure):
        device.replay()


def test_replay_says_that_it_has_no_events(device: ReferenceQda, draws: list[Draw]) -> None:
    load(device, draws[0])
    device.capture()
    timing = device.replay(3)
    assert timing.device_ms_per_replay is None
    assert timing.reason is not None
    assert timing.reason.code == "no_device_events"


def test_refuses_other_sizes(device: ReferenceQda, draws: list[Draw]) -> None:
    draw = draws[0]
    with pytest.raises(BadInput, match=r"x: shape: expected \(1000, 9\), found \(999, 9\)"):
        device.load(draw.x[1:], draw.labels[1:], draw.q)
    with pytest.raises(BadInput, match=r"q: shape: expected \(1000, 9\), found \(10, 9\)"):
        device.load(draw.x, draw.labels, draw.q[:10])
    with pytest.raises(BadInput, match="class 3"):
        device.load(draw.x, np.where(draw.labels == 3, 4, draw.labels), draw.q)


class Small(Qda):
    train_samples = 200
    query_samples = 30


def random_problem(seed: int, scale: float, shift: float) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(200) % 10).astype(np.int64)
    centres = rng.normal(size=(10, 9)) * 2
    x = (centres[labels] + rng.normal(size=(200, 9))) * scale + shift
    q = (centres[rng.integers(0, 10, 30)] + rng.normal(size=(30, 9))) * scale + shift
    return x.astype(np.float32), labels, q.astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 1e4]), st.sampled_from([0.0, -3.0, 50.0]))
def test_agrees_on_random_problems(seed: int, scale: float, shift: float) -> None:
    workload = Small()
    x, labels, q = random_problem(seed, scale, shift * scale)
    device = ReferenceQda(workload)
    device.load(x, labels, q)
    device.eager()
    exact = np.sort(scores(train(x, labels), q), axis=1)
    clear = exact[:, -1] - exact[:, -2] > 0.05
    np.testing.assert_array_equal(device.predictions()[clear], workload.predict(x, labels, q)[clear])


def test_a_class_singular_in_float32_is_an_error_of_ours() -> None:
    x, labels, q = random_problem(0, 1.0, 0.0)
    x[labels == 5, 1] = x[labels == 5, 0] * np.float32(1 + 1e-7) + np.float32(2e-5) * x[labels == 5, 2]
    device = ReferenceQda(Small())
    device.load(x, labels, q)
    with pytest.raises(BadInput, match="class 5"):
        device.eager()


def test_cpu_devices_measure_no_energy_and_say_why(device: ReferenceQda, qda: Workload) -> None:
    for each in (device, EmulatedQda(qda, check_races=False)):
        assert each.instruments() == each.fingerprint().energy_counter_reason == host.NO_COUNTER
        expected = rf"control of 16\.4 us: expected a device with an energy counter, found {each.kind}$"
        with pytest.raises(BadInput, match=expected) as refused:
            each.control(16.39e-6)
        assert refused.value.code == "no_control"


@pytest.mark.parametrize(
    ("requested", "kind"),
    [("auto", "emulated"), ("emulated", "emulated"), ("reference", "reference"), ("simulated", "simulated")],
)
def test_registry_opens(qda: Workload, requested: str, kind: str) -> None:
    assert registry.resolve_kind(requested, "qda") == kind
    assert registry.open_device(requested, qda).kind == kind


def test_auto_is_the_gpu_where_there_is_one(qda: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "auto_means_cuda", lambda: True)
    assert registry.resolve_kind("auto", "qda") == "cuda"


@pytest.mark.parametrize("checked", [True, False])
def test_the_registry_hands_the_kernel_choice_on(qda: Workload, checked: bool) -> None:
    device = registry.open_device("emulated", qda, registry.KernelChoice(variant="record", check_races=checked))
    assert isinstance(device, EmulatedQda)
    assert device.kernel().variant == "record"
    assert [machine._check_races for machine in device.machines] == [checked, checked]


def test_registry_names_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {kind: opener for kind, opener in DECLARATION.devices.items() if kind != "simulated"}
    monkeypatch.setattr(declaration, "DECLARATION", replace(DECLARATION, devices=fewer, ptx_kinds=frozenset()))
    with pytest.raises(BadInput, match=r"not available for workload qda .*available: cuda, emulated, reference$") as e:
        registry.open_device("simulated", Qda())
    assert e.value.code == "device_not_available"


@pytest.mark.parametrize(
    "choice",
    [
        registry.KernelChoice(variant="record"),
        registry.KernelChoice(ptx=(Path("x.ptx"),)),
        registry.KernelChoice(manifest=Path("m.json")),
    ],
)
def test_the_reference_refuses_kernels_that_it_would_ignore(qda: Workload, choice: registry.KernelChoice) -> None:
    with pytest.raises(BadInput, match="expected a device that runs PTX, found reference") as caught:
        registry.open_device("reference", qda, choice)
    assert caught.value.code == "no_ptx_here"


def test_registry_refuses_unknown_kinds(qda: Workload) -> None:
    with pytest.raises(BadInput, match="expected auto or one of cuda, emulated, reference, simulated, found 'tpu'"):
        registry.open_device("tpu", qda)


def test_machine_uuid(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine_id = tmp_path / "machine-id"
    monkeypatch.setattr(host, "MACHINE_ID", machine_id)
    without = host.machine_uuid()
    assert without == host.machine_uuid()
    machine_id.write_text("\n", encoding="ascii")
    assert host.machine_uuid() == without
    machine_id.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
    found = host.machine_uuid()
    assert found == "CPU-2b498da0-d5ec-5e2b-8eb7-e93af28a8f0c"
    assert found != without
    assert "0123456789abcdef" not in found.replace("-", "")


def test_fingerprint_says_why_there_is_no_energy() -> None:
    fingerprint = host.cpu_fingerprint("reference")
    assert fingerprint.energy_counter is False
    assert fingerprint.energy_counter_reason is not None
    assert fingerprint.energy_counter_reason.code == "no_energy_counter"

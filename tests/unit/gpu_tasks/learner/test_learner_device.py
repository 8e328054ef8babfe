"""The learner as a device: as strict with inputs, poison and graphs as the others, and refused where it cannot run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.devices import registry
from gpu_tasks.devices.registry import KernelChoice, Simulation, open_device
from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.records import BadInput, InfrastructureFailure
from gpu_tasks.workloads.base import Workload

torch = pytest.importorskip("torch")

from gpu_tasks.workloads.learner import torch_settings  # noqa: E402
from gpu_tasks.workloads.learner.devices import NO_ALLOCATOR, ReferenceLearner  # noqa: E402 - after the skip

pytestmark = pytest.mark.usefixtures("repeatable")


@pytest.fixture
def draw(one_draw: Path, learner: Workload, monkeypatch: pytest.MonkeyPatch) -> Draw:
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(one_draw.parent))
    return Payload("spring", learner).load(0)


@pytest.fixture
def device(learner: Workload) -> Iterator[ReferenceLearner]:
    opened = ReferenceLearner(learner)
    yield opened
    opened.close()


def test_it_predicts_what_is_frozen_and_repeats_itself(device: ReferenceLearner, draw: Draw) -> None:
    """Captured on other inputs, poisoned before every run: predictions and every byte come out again."""
    device.load(draw.q, draw.test_labels, draw.x)
    device.capture()
    device.load(draw.x, draw.labels, draw.q)
    device.poison_scratch()
    device.eager()
    assert int(np.sum(device.predictions() == draw.frozen_predictions)) >= 9_990  # made in float64
    first = device.state_hashes()
    assert first is not None
    assert len(first) == 26
    device.poison_scratch()
    assert set(device.predictions().tolist()) == {-1}
    poisoned = device.state_hashes()
    assert poisoned is not None
    kept = {name for name in first if poisoned[name] == first[name]}
    assert {name.partition(".")[0] for name in kept} == {
        "input_hashes",
        "epoch_permutation_sha256",
        "initial_parameter_sha256",
    }
    timing = device.replay(2)
    assert device.state_hashes() == first
    assert (timing.device_ms_per_replay, timing.reason and timing.reason.code) == (None, "no_device_events")


def test_an_order_that_was_not_copied_is_seen(device: ReferenceLearner, draw: Draw) -> None:
    """Poison is what shows a task that goes on with what another run has left behind."""
    device.load(draw.x, draw.labels, draw.q)
    device.eager()
    first, task = device.state_hashes(), device._loaded("test")
    device.poison_scratch()
    task.reset()
    for _ in range(2):
        task.epoch()
    task.predict()
    assert device.state_hashes() != first


def test_what_comes_too_early(learner: Workload) -> None:
    device = ReferenceLearner(learner)
    device.poison_scratch()
    for call in (device.eager, device.capture, device.predictions, device.state_hashes, device.inventory):
        with pytest.raises(InfrastructureFailure, match="expected loaded inputs, found none"):
            call()
    with pytest.raises(InfrastructureFailure, match="expected a captured graph, found none"):
        device.replay()


def test_inputs_of_another_size(device: ReferenceLearner, draw: Draw) -> None:
    with pytest.raises(BadInput, match=r"x: shape: expected \(10000, 81\), found \(9999, 81\)"):
        device.load(draw.x[1:], draw.labels[1:], draw.q)
    with pytest.raises(BadInput, match=r"q: shape: expected \(10000, 81\), found \(5, 81\)"):
        device.load(draw.x, draw.labels, draw.q[:5])
    with pytest.raises(BadInput, match=r"expected a class 0..9, found 10"):
        device.load(draw.x, draw.labels + 1, draw.q)
    device.load(draw.x, draw.labels, draw.q)
    with pytest.raises(BadInput, match=r"labels: shape: expected \(10000,\)"):
        device.load(draw.x, draw.labels[1:], draw.q)


def test_where_its_memory_is(device: ReferenceLearner, draw: Draw) -> None:
    assert device.prepare_and_invoke(draw.x, draw.labels, draw.q) == NO_ALLOCATOR
    assert device.inventory().unique_named_storage_bytes == 13_960_864
    cache = device.cache_bytes()
    assert not isinstance(cache, int)
    assert cache.code == "no_cache_size"


@pytest.mark.parametrize(("requested", "kind"), [("auto", "reference"), ("simulated", "simulated")])
def test_the_registry_opens(learner: Workload, requested: str, kind: str) -> None:
    with closing(open_device(requested, learner)) as device:
        assert device.kind == kind
        assert device.kernel().variant == "torch-eager"
        with pytest.raises(BadInput, match=r"control of 38.4 ms: expected .* found the learner") as caught:
            device.control(0.0384)
    assert caught.value.code == "no_control"


@pytest.mark.parametrize("kind", ["reference", "simulated", "cuda"])
@pytest.mark.parametrize(
    "choice",
    [
        KernelChoice(variant="record"),
        KernelChoice(ptx=(Path("x.ptx"),)),
        KernelChoice(manifest=Path("m.json")),
    ],
)
def test_kernels_that_it_has_no_use_for(learner: Workload, kind: str, choice: KernelChoice) -> None:
    with pytest.raises(BadInput, match="expected a workload that runs PTX, found learner") as caught:
        open_device(kind, learner, choice)
    assert caught.value.code == "no_ptx_here"


@pytest.mark.parametrize("kind", ["auto", "reference", "simulated"])
def test_without_torch_the_environment_is_named(learner: Workload, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match = "make it by `provision --environment learner`"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        with pytest.raises(InfrastructureFailure, match=match) as caught:
            open_device(kind, learner)
    assert caught.value.code == "torch_missing"


def test_an_emulator_there_is_none(learner: Workload) -> None:
    with pytest.raises(BadInput, match=r"available: cuda, reference, simulated$"):
        registry.open_device("emulated", learner)


def test_the_simulated_board_costs_what_the_records_say(learner: Workload, draw: Draw) -> None:
    with closing(open_device("simulated", learner, simulation=Simulation(seed=3, workload="learner"))) as device:
        device.load(draw.x, draw.labels, draw.q)
        device.capture()
        timing = device.replay(100)
        assert timing.device_ms_per_replay == pytest.approx(38.4, rel=0.02)
        fingerprint = device.fingerprint()
    assert fingerprint.name == "NVIDIA A100-SXM4-40GB (simulated)"
    assert fingerprint.energy_counter


def test_settings_and_where_they_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_settings, "_chosen_here", [])
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)

    def workspace() -> tuple[str | None, str]:
        first = torch_settings.settings()[0]
        assert first.name == "CUBLAS_WORKSPACE_CONFIG"
        return first.value, first.origin

    assert workspace() == (None, "unset")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch_settings.choose_workspace()
    assert workspace() == (":4096:8", "environment")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    torch_settings.choose_workspace()
    assert workspace() == (":16:8", "program")
    found = {setting.name: setting.value for setting in torch_settings.settings()}
    assert found["torch.are_deterministic_algorithms_enabled"] == "True"
    torch.use_deterministic_algorithms(False)
    found = {setting.name: setting.value for setting in torch_settings.settings()}
    assert found["torch.are_deterministic_algorithms_enabled"] == "False"

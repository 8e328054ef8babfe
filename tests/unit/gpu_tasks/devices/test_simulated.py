"""The simulated device: right results, a simulated GPU's time and energy, effects where they were asked for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from gpu_tasks.devices.cuda.errors import DeviceLost
from gpu_tasks.devices.registry import KernelChoice, Simulation, open_device
from gpu_tasks.devices.simulated import CONTROL_W
from gpu_tasks.energy.figures import idle_power_w
from gpu_tasks.energy.instruments import Instruments
from gpu_tasks.energy.nvml.errors import NvmlGpuIsLost, NvmlNotReady
from gpu_tasks.payload.draws import Draw
from gpu_tasks.records import BadInput, InfrastructureFailure, Reason
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.qda.simulated_device import SimulatedQda

MILLION = 1_000_000
Opened = Callable[..., SimulatedQda]


@pytest.fixture
def opened(qda: Workload, draws: list[Draw]) -> Iterator[Opened]:
    """Opens a device with draw 0 loaded and a graph captured."""
    found: list[SimulatedQda] = []

    def make(inject: str | None = None, simulation: Simulation | None = None, **kernels: str) -> SimulatedQda:
        choice = KernelChoice(**kernels)  # type: ignore[arg-type]
        device = open_device("simulated", qda, choice, simulation or Simulation(inject, seed=3))
        assert isinstance(device, SimulatedQda)
        device.load(draws[0].x, draws[0].labels, draws[0].q)
        device.capture()
        found.append(device)
        return device

    yield make
    for device in found:
        device.close()


def instruments_of(device: SimulatedQda) -> Instruments:
    instruments = device.instruments()
    assert isinstance(instruments, Instruments)
    return instruments


def test_closing_frees_what_computes_and_the_place_on_the_board_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, closed = opened(), list[bool]()
    monkeypatch.setattr(device._computing, "close", lambda: closed.append(True))
    before = device._gpu.open_devices
    device.close()
    device.close()
    assert (closed, device._gpu.open_devices) == ([True], before - 1)


def measured(device: SimulatedQda, replay: Callable[[int], object], repeats: int) -> tuple[float, float]:
    """Energy above idle in mJ, tail included, and seconds of a replay on the device's clock."""
    instruments = instruments_of(device)
    clock, read = instruments.clock, instruments.gpu.read_counter
    clock.sleep(3)
    first = read()
    clock.sleep(20)
    start = read()
    began = clock.now()
    replay(repeats)
    seconds = (clock.now() - began) / repeats
    clock.sleep(3)
    end = read()
    idle_w = idle_power_w(first, start)
    above_mj = end.energy_mj - start.energy_mj - 1000 * idle_w * (end.time_s - start.time_s)
    return above_mj / repeats, seconds


def test_all_draws_agree_after_a_replay_of_one_graph(opened: Opened, draws: list[Draw]) -> None:
    device = opened()
    for draw in draws:
        device.load(draw.x, draw.labels, draw.q)
        device.poison_scratch()
        device.replay(MILLION)
        np.testing.assert_array_equal(device.predictions(), draw.frozen_predictions)


def test_what_did_not_change_is_not_executed_again_and_what_did_is(
    opened: Opened, draws: list[Draw], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = opened()
    runs: list[int] = []
    emulated = device._computing
    plain = emulated.replay
    monkeypatch.setattr(emulated, "replay", lambda: (runs.append(1), plain())[1])
    device.replay()
    device.replay(MILLION)
    assert len(runs) == 1
    device.poison_scratch()
    device.replay(7)
    assert len(runs) == 2
    device.load(draws[1].x, draws[1].labels, draws[1].q)
    device.replay()
    assert len(runs) == 3
    np.testing.assert_array_equal(device.predictions(), draws[1].frozen_predictions)
    device.poison_scratch()
    device.eager()
    device.replay()
    assert len(runs) == 3


def test_a_graph_is_needed(qda: Workload, draws: list[Draw]) -> None:
    device = open_device("simulated", qda)
    device.load(draws[0].x, draws[0].labels, draws[0].q)
    with pytest.raises(InfrastructureFailure, match="expected a captured graph"):
        device.replay()


def test_bad_inputs_are_refused_as_elsewhere(opened: Opened, draws: list[Draw]) -> None:
    device = opened()
    with pytest.raises(BadInput, match="class 3"):
        device.load(draws[0].x, np.where(draws[0].labels == 3, 4, draws[0].labels), draws[0].q)


def test_time_and_energy_of_a_replay(opened: Opened) -> None:
    device = opened()
    energy_mj, seconds = measured(device, device.replay, MILLION)
    assert energy_mj == pytest.approx(0.586, rel=0.03)
    assert 1e6 * seconds == pytest.approx(17.05, rel=0.02)
    timing = device.replay(MILLION)
    assert timing.reason is None
    assert timing.device_ms_per_replay is not None
    assert 1000 * timing.device_ms_per_replay == pytest.approx(17.05, rel=0.02)


def test_the_noise_of_the_device_time_falls_with_the_repeats(opened: Opened) -> None:
    device = opened()

    def spread(repeats: int) -> float:
        found = [device.replay(repeats).device_ms_per_replay or 0.0 for _ in range(200)]
        return statistics.stdev(found) / statistics.mean(found)

    assert spread(1) == pytest.approx(0.02, rel=0.2)
    assert spread(10_000) == pytest.approx(0.00028, rel=0.2)


def test_the_host_sees_the_launch_beside_the_work(opened: Opened) -> None:
    device = opened()
    device.replay()
    clock = instruments_of(device).clock
    start = clock.now()
    device_s = (device.replay(1).device_ms_per_replay or 0.0) / 1000
    assert clock.now() - start - device_s == pytest.approx(30e-6, rel=1e-3)


def test_the_fingerprint_is_of_the_simulated_board(opened: Opened) -> None:
    device = opened()
    found = device.fingerprint()
    assert found.kind == device.kind == "simulated"
    assert found.name == "NVIDIA A100-SXM4-40GB (simulated)"
    assert found.uuid == "GPU-0b7f418f-3dee-5748-98d6-f6ad5d0f4f1f"
    assert found.memory_total_bytes == 42405855232
    assert found.multiprocessors == 108
    assert found.compute_capability == [8, 0]
    assert found.energy_counter is True
    assert found.energy_counter_reason is None
    assert device.driver_release() == "580.105.08"
    assert instruments_of(device).gpu.state().uuid == found.uuid


def test_kernels_are_chosen_as_elsewhere(opened: Opened) -> None:
    assert opened(variant="record").kernel().variant == "record"
    assert opened().intermediates() is None


def test_a_control_draws_little_for_as_long(opened: Opened) -> None:
    device = opened()
    replay = device.control(17e-6)
    energy_mj, seconds = measured(device, replay, MILLION)
    assert energy_mj == pytest.approx(1000 * 17e-6 * CONTROL_W, rel=0.1)
    assert seconds == pytest.approx(17e-6, rel=0.01)


@pytest.mark.parametrize(
    ("inject", "energy", "duration"),
    [("energy+10%", 1.1, 1.0), ("energy-5%", 0.95, 1.0), ("time+3%", 1.0, 1.03), ("ENERGY+10%, time-3%", 1.1, 0.97)],
)
def test_energy_and_time_effects(opened: Opened, inject: str, energy: float, duration: float) -> None:
    plain, changed = opened(), opened(inject)
    plain_mj, plain_s = measured(plain, plain.replay, MILLION)
    changed_mj, changed_s = measured(changed, changed.replay, MILLION)
    assert changed_mj / plain_mj == pytest.approx(energy, abs=0.02)
    assert changed_s / plain_s == pytest.approx(duration, abs=1e-4)


def test_devices_of_one_simulation_share_the_board_and_the_first_has_the_effects(opened: Opened) -> None:
    simulation = Simulation("energy+50%", seed=3)
    candidate, baseline = opened(simulation=simulation), opened(simulation=simulation, variant="record")
    assert instruments_of(candidate).clock is instruments_of(baseline).clock
    high_mj, _ = measured(candidate, candidate.replay, MILLION)
    low_mj, _ = measured(candidate, baseline.replay, MILLION)
    assert high_mj / low_mj == pytest.approx(1.5, abs=0.03)
    candidate.close()
    candidate.close()
    baseline.close()
    again = opened(simulation=simulation)
    assert measured(again, again.replay, MILLION)[0] == pytest.approx(high_mj, rel=0.02)


def test_the_same_seed_gives_the_same_round(opened: Opened) -> None:
    def told(seed: int) -> tuple[float, float]:
        device = opened(simulation=Simulation(seed=seed))
        return measured(device, device.replay, MILLION)

    assert told(11) == told(11)
    assert told(11) != told(12)


def test_the_tick_period_is_the_simulations(opened: Opened) -> None:
    device = opened(simulation=Simulation(tick_period_s=0.02))
    instruments = instruments_of(device)
    instruments.clock.sleep(1)
    values = [(instruments.gpu.read_counter().energy_mj, instruments.clock.sleep(0.001))[0] for _ in range(300)]
    assert len(set(values)) == pytest.approx(300 * 0.0043 / 0.02, abs=4)


def test_a_lost_gpu_fails_the_replay_and_then_everything(opened: Opened) -> None:
    device = opened("lost_gpu")
    instruments = instruments_of(device)
    device.replay(50_000)
    for _ in range(2):
        with pytest.raises(DeviceLost, match="fallen off the bus"):
            device.replay(MILLION)
    with pytest.raises(NvmlGpuIsLost):
        instruments.gpu.read_counter()
    assert device.fingerprint().energy_counter is True


def test_no_counter_is_said_with_its_reason(opened: Opened) -> None:
    device = opened("no_counter")
    found = device.fingerprint()
    assert found.energy_counter is False
    assert isinstance(found.energy_counter_reason, Reason)
    assert found.energy_counter_reason.code == "no_energy_counter"
    assert "NVML_ERROR_NOT_SUPPORTED" in found.energy_counter_reason.message
    assert device.instruments() == found.energy_counter_reason


def test_a_counter_that_is_not_ready_is_raised_as_on_a_gpu_and_found_a_moment_later(opened: Opened) -> None:
    device = opened()
    device._gpu.refused_reads = range(2)
    for question in (device.fingerprint, device.instruments):
        with pytest.raises(NvmlNotReady) as caught:
            question()
        assert caught.value.transient
    assert device.fingerprint().energy_counter is True
    assert isinstance(device.instruments(), Instruments)


def test_the_effect_is_of_the_first_reading_after_the_opening(opened: Opened) -> None:
    device = opened("not_ready")
    assert device.fingerprint().energy_counter is True
    gpu = instruments_of(device).gpu
    with pytest.raises(NvmlNotReady):
        gpu.read_counter()
    assert gpu.read_counter().energy_mj > 0


def test_output_is_wrong_after_the_window_and_not_before(opened: Opened, draws: list[Draw]) -> None:
    device = opened("wrong_output")

    def wrong() -> int:
        return int(np.sum(device.predictions() != draws[0].frozen_predictions))

    device.replay()
    assert wrong() == 0
    device.replay(MILLION)
    assert wrong() == 1
    device.poison_scratch()
    device.replay()
    assert wrong() == 1


def test_another_driver(opened: Opened) -> None:
    device = opened("driver=570.86.15")
    assert device.driver_release() == "570.86.15" == instruments_of(device).gpu.state().driver


@pytest.mark.parametrize("kind", ["reference", "emulated"])
def test_effects_need_the_simulated_device(qda: Workload, kind: str) -> None:
    with pytest.raises(BadInput, match=f"--inject: expected --device simulated with it, found {kind}") as caught:
        open_device(kind, qda, simulation=Simulation("throttle"))
    assert caught.value.code == "inject_needs_simulated"
    assert open_device(kind, qda, simulation=Simulation(None, seed=4)).kind == kind


@pytest.mark.parametrize("kind", ["reference", "emulated"])
def test_a_seed_needs_the_simulated_device(qda: Workload, kind: str) -> None:
    with pytest.raises(BadInput, match=f"^--seed: expected --device simulated with it, found {kind}$") as caught:
        open_device(kind, qda, simulation=Simulation(seed=4, told_seed=0))
    assert caught.value.code == "seed_needs_simulated"
    open_device("simulated", qda, simulation=Simulation(seed=4, told_seed=0)).close()


def test_effects_that_nobody_knows_are_refused(qda: Workload) -> None:
    with pytest.raises(BadInput) as caught:
        open_device("simulated", qda, simulation=Simulation("melt"))
    assert caught.value.code == "bad_inject"

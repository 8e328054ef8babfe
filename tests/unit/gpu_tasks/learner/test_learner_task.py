"""One task: the same bits each time, whatever state it starts in; and the settings without which they would not be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpu_tasks.records import BadInput
from gpu_tasks.workloads.learner import frozen, torch_settings
from gpu_tasks.workloads.learner.config import LearnerConfig
from gpu_tasks.workloads.learner.initial import draw_parameters, epoch_orders
from tests.unit.gpu_tasks.learner import small

torch = pytest.importorskip("torch")

from gpu_tasks.workloads.learner.hashes import grid_sha256, state_hashes  # noqa: E402 - after the skip
from gpu_tasks.workloads.learner.ordinary import OrdinaryLearner, normalise, train  # noqa: E402
from gpu_tasks.workloads.learner.task import LearnerTask  # noqa: E402

pytestmark = pytest.mark.usefixtures("repeatable")


def task(config: LearnerConfig | None = None, **options: object) -> LearnerTask:
    chosen = config or small.config()
    return LearnerTask(chosen, small.inputs(), draw_parameters(chosen, 10), **options)


def test_a_task_is_a_network_trained_as_usual() -> None:
    """Weight decay too, which the recorded config has none of."""
    chosen = small.config(weight_decay=0.01, epochs=3)
    mine = task(chosen, dtype="float64")
    mine.run()
    network = OrdinaryLearner(chosen, 10).double()
    network.start_from(draw_parameters(chosen, 10))
    given = small.inputs()
    states, queries = (normalise(torch.tensor(pixels).double()) for pixels in (given.x, given.q))
    orders = torch.tensor(epoch_orders(chosen, 19))
    *_, last = train(network, chosen, states, torch.tensor(given.labels), orders)
    for found, expected in zip(mine.parameters, last.parameters, strict=True):
        torch.testing.assert_close(found.detach(), expected, rtol=1e-10, atol=1e-12)
    for found, expected in zip(mine.velocities, last.velocities, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    with torch.no_grad():
        scores = network(queries)
    torch.testing.assert_close(mine.scores, scores, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(mine.classes(), scores.argmax(dim=1).numpy())


def test_it_comes_out_the_same_whatever_was_left_behind() -> None:
    once = task()
    once.run()
    expected = state_hashes(once)
    for name, tensor in once.tensors().items():
        if not name.startswith("initial") and name not in ("raw", "raw_query", "labels", "orders"):
            with torch.no_grad():
                tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
    once.run()
    assert state_hashes(once) == expected
    assert once.runs == 2
    other = task()
    other.run()
    assert state_hashes(other) == expected


def test_other_inputs_in_the_same_tensors() -> None:
    """What a captured graph reads: nothing of the first inputs is left, and none of the tensors is another."""
    first, second = small.inputs(), small.inputs()
    second = dataclasses.replace(second, x=1 - second.x, labels=(second.labels + 1) % 10, q=1 - second.q)
    loaded = task()
    loaded.run()
    addresses = [tensor.data_ptr() for tensor in loaded.tensors().values()]
    loaded.load(second)
    loaded.poison()
    loaded.run()
    fresh = LearnerTask(small.config(), second, draw_parameters(small.config(), 10))
    fresh.run()
    assert state_hashes(loaded) == state_hashes(fresh)
    assert [tensor.data_ptr() for tensor in loaded.tensors().values()] == addresses
    loaded.load(first)
    with pytest.raises(BadInput, match=r"q: shape: expected \(7, 9\), found \(6, 9\)"):
        loaded.load(dataclasses.replace(first, q=first.q[1:]))
    with pytest.raises(BadInput, match="a grey of 0 to 1"):
        loaded.load(dataclasses.replace(second, x=second.x + 2))
    loaded.run()
    assert state_hashes(loaded).input_hashes == state_hashes(task()).input_hashes  # nothing of what was refused


def test_poison_is_everywhere_but_in_what_was_given() -> None:
    poisoned = task()
    poisoned.run()
    poisoned.poison()
    given = [name for name in poisoned.tensors() if name.startswith("initial")]
    given += ["raw", "raw_query", "labels", "orders", "order", "predictions"]
    for name, tensor in poisoned.tensors().items():
        assert bool(torch.isnan(tensor).all()) is (name not in given), name
    assert set(poisoned.predictions.tolist()) == {-1}


@pytest.mark.parametrize("change", [{"seed": 12}, {"epochs": 1}, {"momentum": 0.8}, {"alpha": 0.4}, {"batch_size": 7}])
def test_every_setting_counts(change: dict[str, float]) -> None:
    first, second = task(), task(small.config(**change))
    first.run()
    second.run()
    assert state_hashes(first).state_vector_sha256 != state_hashes(second).state_vector_sha256


def test_the_grid_hides_last_bits_and_nothing_more() -> None:
    trained = task(dtype="float64")
    trained.run()
    before = grid_sha256(trained)
    trained.parameters[0].data[0, 0] += 1e-15
    trained.velocities[0][0, 0] -= 1e-15
    assert grid_sha256(trained) == before
    trained.velocities[0][0, 0] += 1e-6
    assert grid_sha256(trained) != before


def test_initial_parameters_of_another_size() -> None:
    with pytest.raises(BadInput, match=r"initial: weights.0: expected float32 \(5, 5\), found float32 \(41, 41\)"):
        LearnerTask(small.config(), small.inputs(), frozen.initial_parameters())
    with pytest.raises(
        BadInput, match=r"initial: names: expected weights\.0, weights\.1, head\.weight, head\.bias, found"
    ):
        LearnerTask(small.config(depth=1), small.inputs(), frozen.initial_parameters())


def test_a_batch_over_the_set_and_a_depth_of_none_are_refused_by_the_task() -> None:
    with pytest.raises(BadInput, match="at most the 19 samples, found 20"):
        task(small.config(batch_size=20))
    with pytest.raises(BadInput, match="depth"):
        LearnerTask(small.config(depth=0), small.inputs(), {})


def test_drawing_parameters_leaves_the_generator_of_others_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    draw_parameters(small.config(), 10)
    assert torch.equal(torch.rand(3), expected)


def test_a_cpu_captures_no_graph() -> None:
    with pytest.raises(BadInput, match=r"expected a GPU.*found cpu") as caught:
        task(captured=True)
    assert caught.value.code == "not_captured"


def test_one_thread_while_it_runs_and_as_before_after() -> None:
    torch.set_num_threads(2)
    with torch_settings.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_a_library_that_is_not_set_to_be_repeatable() -> None:
    torch.use_deterministic_algorithms(False)
    task(repeatable=False)
    with pytest.raises(BadInput, match=r"are_deterministic_algorithms_enabled.*expected True.*found False") as caught:
        task()
    assert caught.value.code == "not_repeatable"
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.raises(BadInput, match="warnings only"):
        task()


def test_a_library_that_is_set_to_shorter_numbers() -> None:
    torch.set_float32_matmul_precision("high")
    with pytest.raises(BadInput, match="expected highest, found high") as caught:
        task(repeatable=False)
    assert caught.value.code == "reduced_precision"


@pytest.mark.parametrize("workspace", [":4096:8", ":16:8"])
def test_settings_of_a_gpu(monkeypatch: pytest.MonkeyPatch, workspace: str) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    torch_settings.check_settings("cuda", repeatable=True)
    torch.backends.cudnn.benchmark = True
    with pytest.raises(BadInput, match=r"cudnn\.benchmark: expected False"):
        torch_settings.check_settings("cuda", repeatable=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = True
    with pytest.raises(BadInput, match=r"torch\.backends\.cudnn\.allow_tf32: expected False, found True"):
        torch_settings.check_settings("cuda", repeatable=False)


@pytest.mark.parametrize("workspace", [None, ":0:0", "4096"])
def test_a_workspace_with_which_bits_may_change(monkeypatch: pytest.MonkeyPatch, workspace: str | None) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if workspace is not None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", workspace)
    torch_settings.check_settings("cuda", repeatable=False)
    with pytest.raises(BadInput, match=f"CUBLAS_WORKSPACE_CONFIG: expected one of .*found {workspace or 'nothing'}"):
        torch_settings.check_settings("cuda", repeatable=True)

"""The emulated device keeps the contract of ``gpu_tasks.devices.base``."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gpu_tasks.devices import registry
from gpu_tasks.devices.emulated.device import EmulatedQda
from gpu_tasks.devices.emulated.findings import KernelFinding, LaunchError
from gpu_tasks.devices.host import machine_uuid
from gpu_tasks.devices.manifest import load_kernels
from gpu_tasks.records import BadInput, InfrastructureFailure, Outcome
from gpu_tasks.workloads.qda.workload import Qda
from tests.unit.gpu_tasks.devices.emulated.launching import (
    Problem,
    predict,
    random_problem,
    shared_device,
    substitute,
    with_texts,
)

QDA = Qda()


def test_eager_and_replays_agree_and_one_graph_serves_changed_inputs():
    device = shared_device("class_blocks")
    device.capture()
    for seed in (1, 2):
        problem = random_problem(seed)
        eager = predict(device, problem)
        assert np.array_equal(eager, QDA.predict(*problem))
        device.poison_scratch()
        timing = device.replay(2)
        assert np.array_equal(device.predictions(), eager)
        assert timing.device_ms_per_replay is None
        assert timing.reason is not None
        assert timing.reason.code == "no_device_events"


def test_a_replay_needs_a_graph_and_a_run_needs_inputs():
    device = EmulatedQda(QDA)
    with pytest.raises(InfrastructureFailure) as refused:
        device.replay()
    assert refused.value.code == "no_graph"
    with pytest.raises(InfrastructureFailure) as refused:
        device.eager()
    assert refused.value.code == "nothing_loaded"


def test_predictions_of_a_poisoned_device_are_no_predictions():
    device = shared_device("class_blocks")
    predict(device, random_problem(1))
    device.poison_scratch()
    with pytest.raises(KernelFinding) as found:
        device.predictions()
    assert found.value.code == "unwritten_output"


def test_the_fingerprint_is_of_this_machine_and_has_no_counter():
    fingerprint = shared_device("class_blocks").fingerprint()
    assert (fingerprint.kind, fingerprint.uuid) == ("emulated", machine_uuid())
    assert not fingerprint.energy_counter
    assert fingerprint.energy_counter_reason is not None
    assert fingerprint.energy_counter_reason.code == "no_energy_counter"


def test_the_kernel_identity_names_what_is_executed():
    kernels = load_kernels(variant="record")
    identity = EmulatedQda(QDA, kernels).kernel()
    assert identity.variant == "record"
    assert identity.ptx_sha256 == hashlib.sha256("".join(kernels.texts).encode()).hexdigest()
    assert identity.ptx_lines == sum(text.count("\n") for text in kernels.texts)
    assert [(launch["entry"], launch["grid"], launch["block"]) for launch in identity.launches] == [
        ("stats", [8, 1, 1], [512, 1, 1]),
        ("score", [32, 1, 1], [320, 1, 1]),
    ]


def broken(problem: Problem, **changes: np.ndarray) -> Problem:
    return problem._replace(**changes)


def refused_inputs() -> dict[str, tuple[Problem, str, str]]:
    """What: the problem, the code of the refusal, and how its message names what is wrong."""
    good = random_problem(4)
    nan, infinite = good.x.copy(), good.q.copy()
    nan[17, 3], infinite[999, 8] = np.nan, np.inf
    outside, negative = good.labels.copy(), good.labels.copy()
    outside[5], negative[6] = 10, -1
    flat = good.x.copy()
    flat[good.labels == 4, 2] = 0.25
    return {
        "dtype of x": (
            broken(good, x=good.x.astype(np.float64)),
            "bad_dtype",
            "x: dtype: expected float32, found float64",
        ),
        "dtype of labels": (
            broken(good, labels=good.labels.astype(np.int32)),
            "bad_dtype",
            "labels: dtype: expected int64, found int32",
        ),
        "features": (broken(good, q=good.q[:, :8]), "bad_shape", "q: shape: expected (n, 9)"),
        "samples": (
            Problem(good.x[:999], good.labels[:999], good.q),
            "bad_shape",
            "x: shape: expected 1000 rows, found 999",
        ),
        "labels": (
            broken(good, labels=good.labels[:999]),
            "bad_shape",
            "labels: shape: expected (1000,) as x has samples, found (999,)",
        ),
        "queries": (broken(good, q=good.q[:999]), "bad_shape", "q: shape: expected 1000 rows, found 999"),
        "nan": (broken(good, x=nan), "not_finite", "x: sample 17, feature 3: expected a finite number, found nan"),
        "infinity": (
            broken(good, q=infinite),
            "not_finite",
            "q: sample 999, feature 8: expected a finite number, found inf",
        ),
        "label 10": (
            broken(good, labels=outside),
            "bad_label",
            "labels: sample 5: expected a class 0..9, found 10",
        ),
        "label -1": (
            broken(good, labels=negative),
            "bad_label",
            "labels: sample 6: expected a class 0..9, found -1",
        ),
        "empty class": (
            broken(good, labels=np.where(good.labels == 7, 8, good.labels)),
            "empty_class",
            "labels: expected samples of every class 0..9, found none of class 7",
        ),
        "singular class": (
            broken(good, x=flat),
            "singular_class",
            "x: class 4: expected a covariance of full rank, found a singular one",
        ),
    }


@pytest.mark.parametrize("what", refused_inputs())
def test_inputs_without_a_correct_answer_are_refused_by_name_on_loading(what):
    problem, code, words = refused_inputs()[what]
    device = registry.open_device("emulated", QDA)
    with pytest.raises(BadInput) as refused:
        device.load(*problem)
    assert refused.value.code == code
    assert words in refused.value.message
    assert refused.value.outcome is Outcome.BAD_INPUT


def test_kernels_that_do_not_fit_their_manifest_are_refused():
    kernels = load_kernels()
    train, score = kernels.texts
    for text, code in (
        (substitute(train, r"\.entry train", ".entry other")[0], "wrong_entry"),
        (
            substitute(train, r",\n\t\.param \.u64 status", "")[0].replace("[status]", "[model]"),
            "wrong_parameter_count",
        ),
        (substitute(train, r"partial\[1980\]", "partial[1984]")[0].replace("[224]", "[240]"), "shared_memory"),
        (substitute(train, r"\.reqntid 512", ".reqntid 256")[0], "bad_geometry"),
    ):
        with pytest.raises(LaunchError) as refused:
            EmulatedQda(QDA, with_texts(kernels, text, score))
        assert refused.value.code == code


def test_kernels_of_another_size_are_refused():
    with pytest.raises(BadInput, match="expected"):
        EmulatedQda(QDA, replace(load_kernels(), n=999))


def test_closing_twice_is_safe():
    device = EmulatedQda(QDA)
    device.close()
    device.close()

"""What no learner can be trained on, on the way that it comes in: a set that is whole, a training that runs away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_tasks.payload.build import build_set
from gpu_tasks.payload.mnist import Images
from gpu_tasks.programs.cli import main
from gpu_tasks.records import BadInput, MemoryRecord, Outcome, RoundRecord, ValidationRecord, read_record
from gpu_tasks.workloads.base import Labels
from gpu_tasks.workloads.learner import Learner, workload
from tests.unit.gpu_tasks.learner import small

pytest.importorskip("torch")

from gpu_tasks.workloads.learner.initial import draw_parameters
from gpu_tasks.workloads.learner.task import LearnerTask

pytestmark = pytest.mark.usefixtures("repeatable")


class Careless(Learner):
    """Builds a set without a look at what is in it."""

    def __init__(self, change: Callable[[np.ndarray], None] = lambda pixels: None) -> None:
        self._change = change

    def features(self, images: Any) -> Any:
        """Pixels, some of them changed in the first array that is made of a draw, which is the training's."""
        found, self._change, change = super().features(images), lambda pixels: None, self._change
        change(found)
        return found

    def predict(self, x: Any, labels: Any, q: Any) -> Labels:
        """Class 0, whatever is asked."""
        return np.zeros(len(q), np.int64)


def put(value: float) -> Callable[[np.ndarray], None]:
    def change(pixels: np.ndarray) -> None:
        pixels[5, 7] = value

    return change


def labelled(greys: Images) -> Images:
    """Every sample of class 9 called 10."""
    return Images(greys.images, np.where(greys.labels == 9, 10, greys.labels).astype(np.uint8))


@pytest.mark.parametrize(
    "defect",
    [
        (put(np.nan), False, "not_finite", "x: sample 5, pixel 7: expected a finite number, found nan"),
        (put(1.25), False, "bad_pixel", "x: sample 5, pixel 7: expected a grey of 0 to 1, found 1.25"),
        (put(0.5), True, "bad_label", "expected a class 0..9, found 10"),
    ],
)
def test_a_whole_set_of_what_cannot_be(
    greys: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: tuple[Any, ...]
) -> None:
    change, relabel, code, words = defect
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path))
    source = labelled(greys) if relabel else greys
    build_set("autumn", tmp_path / "autumn", source, [3], workload=Careless(change), progress=lambda _: None)
    arguments = ("--workload", "learner", "--payload", "autumn", "--out", str(tmp_path / "r.json"))
    for program, cls in (
        (("validate", "--draw", "0"), ValidationRecord),
        (("measure", "--round", "0"), RoundRecord),
        (("memory",), MemoryRecord),
    ):
        assert main([*program, *arguments]) == 2
        record: Any = read_record(tmp_path / "r.json", cls)
        assert (record.outcome, record.reason.code) == (Outcome.BAD_INPUT, code)
        assert words in record.reason.message
    with pytest.raises(BadInput, match="draw 0 .seed 3.*" + words.replace(".", r"\.")) as caught:
        build_set("winter", tmp_path / "winter", source, [3], workload=Reading(change), progress=lambda _: None)
    assert caught.value.code == code
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["autumn"], "nothing half built was kept"


class Reading(Careless):
    """Builds a set as the learner does, of changed pixels."""

    def predict(self, x: Any, labels: Any, q: Any) -> Labels:
        """The reference's."""
        return Learner.predict(self, x, labels, q)


@pytest.mark.parametrize("name", ["learning_rate", "alpha", "weight_decay"])
def test_a_training_that_runs_away_has_no_answer(name: str) -> None:
    config = small.config(**{name: 1e30})
    task = LearnerTask(config, small.inputs(), draw_parameters(config, 10))
    task.run()
    assert set(task.classes().tolist()) == {0}, "which looks like an answer"
    with pytest.raises(
        BadInput, match=r"scores: query 0: expected finite .* found nan of class 0 \(7 such queries\)"
    ) as e:
        task.check_finite()
    assert e.value.code == "diverged"
    fine = LearnerTask(small.config(), small.inputs(), draw_parameters(config, 10))
    fine.run()
    fine.check_finite()
    fine.scores[4, 3] = float("inf")
    with pytest.raises(BadInput, match=r"query 4: .*1 such"):
        fine.check_finite()


def test_the_reference_freezes_no_such_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "RECORDED", small.config(learning_rate=1e20))
    rng = np.random.default_rng(1)
    x, q = rng.random((16, 81), dtype=np.float32), rng.random((4, 81), dtype=np.float32)
    with pytest.raises(BadInput, match=r"4 such queries"):
        Learner().predict(x, rng.integers(0, 10, 16), q)

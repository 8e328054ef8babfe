"""``validate`` seen from the device: the order of the calls, and what a lone draw can prove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_tasks import validation
from gpu_tasks.payload.build import build_set
from gpu_tasks.payload.draws import Draw
from gpu_tasks.payload.mnist import Images
from gpu_tasks.programs.cli import main
from gpu_tasks.records import ValidationRecord, read_record
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.qda.reference_device import ReferenceQda


class Recording(ReferenceQda):
    """A device that notes what is asked of it, and may keep its intermediates to itself."""

    silent = False

    def __init__(self, workload: Workload) -> None:
        self.calls: list[str] = []
        super().__init__(workload)
        self.calls.clear()

    def load(self, x: Any, labels: Any, q: Any) -> None:
        self.calls.append(f"load {x[0, 4]}")
        super().load(x, labels, q)

    def poison_scratch(self) -> None:
        self.calls.append("poison")
        super().poison_scratch()

    def eager(self) -> None:
        self.calls.append("eager")
        super().eager()

    def capture(self) -> None:
        self.calls.append("capture")
        super().capture()

    def replay(self, repeats: int = 1) -> Any:
        self.calls.append("replay")
        return super().replay(repeats)

    def intermediates(self) -> Any:
        return None if self.silent else super().intermediates()


def test_one_graph_captured_elsewhere_and_poison_before_every_run(qda: Workload, draws: list[Draw]) -> None:
    device = Recording(qda)
    execution = validation.execute(device, qda, draws[3], draws[4])
    assert device.calls == [
        f"load {draws[4].x[0, 4]}",
        "capture",
        f"load {draws[3].x[0, 4]}",
        "poison",
        "eager",
        *["poison", "replay"] * 3,
    ]
    assert execution.replays_equal_eager == [True] * 3
    np.testing.assert_array_equal(execution.predictions, draws[3].frozen_predictions)


def test_intermediate_floats(qda: Workload, draws: list[Draw], monkeypatch: pytest.MonkeyPatch) -> None:
    device = Recording(qda)
    assert validation.execute(device, qda, draws[0], draws[1]).floats_equal_reference is False
    device.silent = True
    assert validation.execute(device, qda, draws[0], draws[1]).floats_equal_reference is None
    device.silent = False
    exact = qda.intermediates(draws[0].x, draws[0].labels, draws[0].q)
    monkeypatch.setattr(device, "intermediates", lambda: exact)
    assert validation.execute(device, qda, draws[0], draws[1]).floats_equal_reference is True


def test_a_lone_draw_cannot_show_reuse_of_a_graph(
    tmp_path: Path, blobs: Images, qda: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_set("lone", tmp_path / "lone", blobs, [1], workload=qda, progress=lambda _: None)
    monkeypatch.setenv("NIGHTLY_PAYLOADS", str(tmp_path))
    assert main(["validate", "--payload", "lone", "--draw", "0", "--out", str(tmp_path / "v.json")]) == 0
    record = read_record(tmp_path / "v.json", ValidationRecord)
    assert record.captured_graph_reused_across_changed_inputs is False
    assert (record.agreed, record.payload, record.dataset_seed) == (1000, "lone", 1)

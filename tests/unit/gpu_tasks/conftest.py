"""What the tests of the GPU tasks share: the shipped draws and a copy of them that may be damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.payload.draws import Draw, Payload
from gpu_tasks.payload.mnist import Images
from gpu_tasks.payload.sets import SHIPPED
from gpu_tasks.workloads.base import Workload
from gpu_tasks.workloads.registry import get_workload


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests mean the same on a machine with a GPU: it is hidden from them and from the programs they start."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture(scope="session")
def qda() -> Workload:
    return get_workload("qda")


@pytest.fixture(scope="session")
def draws(qda: Workload) -> list[Draw]:
    payload = Payload("original", qda)
    return [payload.load(number) for number in range(11)]


@pytest.fixture
def payload_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / "original", tmp_path / "payload"))


@pytest.fixture(scope="session")
def blobs() -> Images:
    """2,500 synthetic images: random greys, labels in turn; no class of theirs is singular."""
    rng = np.random.default_rng(5)
    images = rng.integers(0, 256, (2500, 28, 28), dtype=np.uint8)
    return Images(images, (np.arange(2500) % 10).astype(np.uint8))

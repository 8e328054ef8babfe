"""What the tests of the learner share: torch set to be repeatable and put back, a small task, and a set of one draw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_tasks.payload.build import build_set
from gpu_tasks.payload.mnist import Images
from gpu_tasks.workloads.base import DrawnWorkload
from gpu_tasks.workloads.learner.torch_settings import set_repeatable
from gpu_tasks.workloads.registry import get_workload


@pytest.fixture
def repeatable() -> Iterator[None]:
    """torch as ``set_repeatable`` leaves it, for one test."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    set_repeatable()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def learner() -> DrawnWorkload:
    return get_workload("learner")


@pytest.fixture(scope="session")
def greys() -> Images:
    """20,000 synthetic images: noise, and a bright bar that tells the class."""
    rng = np.random.default_rng(6)
    labels = (np.arange(20_000) % 10).astype(np.uint8)
    images = rng.integers(0, 100, (20_000, 28, 28), dtype=np.uint8)
    for label in range(10):
        images[labels == label, 2 * label : 2 * label + 8] += 150
    return Images(images, labels)


@pytest.fixture(scope="session")
def one_draw(tmp_path_factory: pytest.TempPathFactory, learner: DrawnWorkload, greys: Images) -> Path:
    """The folder of a set ``spring`` with one draw of the learner; not to be changed."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("sets") / "spring"
    build_set("spring", folder, greys, [3], workload=learner, progress=lambda _: None)
    torch.use_deterministic_algorithms(False)
    return folder

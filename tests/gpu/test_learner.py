"""The learner on a GPU: it qualifies, repeats itself to the bit, and its memory is where its tensors are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from gpu_tasks.sources import ROOT


@pytest.fixture(scope="module", params=[":4096:8", ":16:8"])
def found(request: pytest.FixtureRequest) -> Any:
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": request.param}
    command = [sys.executable, "-m", "tests.gpu.learner_checks"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    print(result.stdout)
    return json.loads(result.stdout.splitlines()[-1])


def test_it_qualifies(found: Any) -> None:
    qualification = found["qualification"]
    failures = [case["failures"] for case in qualification["cases"]]
    assert qualification["passed"], failures
    assert qualification["captured"]
    assert qualification["checks"] == 212


def test_it_repeats_itself_and_agrees_with_a_cpu(found: Any) -> None:
    assert found["repeated"]
    assert found["captured_equals_eager"]
    assert found["agreeing_with_cpu"] >= 9990


def test_its_memory_is_where_its_tensors_are(found: Any) -> None:
    memory = found["memory"]
    assert found["named_bytes"] == 13_960_864
    assert found["unnamed_bytes"] >= 0
    peak = memory["prepare_and_invoke_peak_allocated_bytes"]
    assert peak >= memory["allocated_after_invoke_bytes"] >= found["named_bytes"]
    assert memory["prepare_and_invoke_peak_reserved_bytes"] >= peak

"""A scripted NVML for the tests of what asks one."""

from __future__ import annotations

import pytest

from tests.unit.gpu_tasks.energy.nvml_scripted import ScriptedNvml


@pytest.fixture
def nvml() -> ScriptedNvml:
    return ScriptedNvml()

"""What provision says of versions that are not the baseline's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_tasks.environments.differences import BASELINES, differences
from gpu_tasks.records import (
    DeviceFingerprint,
    EnvironmentDifference,
    EnvironmentFingerprint,
    RunRecord,
    read_record,
    write_record,
)

NAME = "qda-original-a100"


@pytest.fixture
def baseline() -> RunRecord:
    return read_record(BASELINES / f"{NAME}.json", RunRecord)


def of(baseline: RunRecord) -> tuple[EnvironmentFingerprint, DeviceFingerprint]:
    assert baseline.provision is not None
    assert baseline.provision.environment is not None
    assert baseline.provision.device is not None
    return baseline.provision.environment, baseline.provision.device


def test_the_recorded_environment_differs_in_nothing(baseline: RunRecord) -> None:
    environment, device = of(baseline)
    other_host = replace(environment, platform="another kernel of the host")
    assert differences(other_host, device, "qda") == []


def test_every_version_that_differs_is_named(baseline: RunRecord) -> None:
    environment, device = of(baseline)
    packages = {"torch": "2.5.1+cpu", "numpy": "2.1.2", "nvidia-ml-py": "13.610.43", "scipy": "1.0"}
    found = differences(
        EnvironmentFingerprint("3.12.1", environment.platform, None, environment.cuda, packages), device, "qda"
    )
    assert found == [
        EnvironmentDifference(NAME, "driver", "580.105.08", None),
        EnvironmentDifference(NAME, "packages.pyptx", "0.1.1", None),
        EnvironmentDifference(NAME, "packages.scipy", None, "1.0"),
        EnvironmentDifference(NAME, "packages.torch", "2.5.1+cu124", "2.5.1+cpu"),
        EnvironmentDifference(NAME, "python", "3.11.10", "3.12.1"),
    ]


def test_another_kind_of_device_or_workload_has_no_baseline(baseline: RunRecord) -> None:
    environment, device = of(baseline)
    changed = replace(environment, python="3.12.1")
    assert differences(changed, replace(device, kind="emulated"), "qda") == []
    assert differences(changed, device, "another") == []


def test_of_several_baselines_the_one_of_the_same_model_counts(baseline: RunRecord, tmp_path: Path) -> None:
    environment, device = of(baseline)
    shutil.copy(BASELINES / f"{NAME}.json", tmp_path / "a.json")
    assert baseline.provision is not None
    h200 = replace(device, name="NVIDIA H200")
    on_h200 = replace(baseline.provision, device=h200, environment=replace(environment, driver="1.0"))
    write_record(replace(baseline, provision=on_h200), tmp_path / "b.json")
    assert differences(environment, device, "qda", tmp_path) == []
    assert [d.baseline for d in differences(environment, h200, "qda", tmp_path)] == ["b"]
    assert differences(environment, replace(device, name="another"), "qda", tmp_path) == []  # the first by name

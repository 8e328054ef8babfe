"""``provision``: which environment, which device, which kernel, which versions."""

from __future__ import annotations

import dataclasses
import platform
from argparse import Namespace
from contextlib import closing
from importlib import metadata
from typing import TYPE_CHECKING

from gpu_tasks.devices.registry import open_device
from gpu_tasks.environments.differences import differences
from gpu_tasks.programs.attempts import repeated
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.kernel_choice import kernel_choice
from gpu_tasks.programs.simulation_choice import simulation
from gpu_tasks.records import (
    DeviceFingerprint,
    EnvironmentDifference,
    EnvironmentFingerprint,
    KernelIdentity,
    LibrarySetting,
    Outcome,
    ProvisionRecord,
    Reason,
    utc_now,
)
from gpu_tasks.workloads.registry import get_workload

if TYPE_CHECKING:
    from gpu_tasks.devices.base import Device

PACKAGES = ("numpy", "nvidia-ml-py", "pyptx", "torch")
"""Packages whose version can change a result; those that are not installed are left out."""


def run(arguments: Namespace) -> ProvisionRecord:
    """Open the device as the other programs will, and describe it and the environment."""
    workload = get_workload(arguments.workload)
    made_up = simulation(arguments, "provision")

    def describe(_: list[Reason]) -> tuple[DeviceFingerprint, KernelIdentity, str | None, list[LibrarySetting]]:
        with closing(open_device(arguments.device, workload, kernel_choice(arguments), simulation=made_up)) as device:
            return device.fingerprint(), device.kernel(), _simulated_driver(device), device.settings()

    fingerprint, kernel, simulated_driver, settings = repeated("provision", describe)
    environment = environment_fingerprint(fingerprint.kind)
    if simulated_driver is not None:
        environment = dataclasses.replace(environment, driver=simulated_driver)
    found = differences(environment, fingerprint, workload.name)
    _report(found)
    return ProvisionRecord(
        kind="provision",
        created_at=utc_now(),
        outcome=Outcome.OK,
        reason=None,
        workload=workload.name,
        requested_device=arguments.device,
        device=fingerprint,
        environment=environment,
        kernel=kernel,
        environment_differences=found,
        protocol=workload.protocol if fingerprint.energy_counter else workload.plain_protocol,
        settings=settings,
    )


def environment_fingerprint(device_kind: str) -> EnvironmentFingerprint:
    """Versions of this process; driver and CUDA are null where no GPU is used."""
    packages = {name: version for name in PACKAGES if (version := _version(name)) is not None}
    driver = cuda = None
    if device_kind == "cuda":
        from gpu_tasks.devices.cuda import versions

        packages["torch"] = versions.torch_version()
        driver, cuda = versions.driver_release(), versions.torch_cuda()
    return EnvironmentFingerprint(
        python=platform.python_version(), platform=platform.platform(), driver=driver, cuda=cuda, packages=packages
    )


def _simulated_driver(device: Device) -> str | None:
    """The release of the driver that a simulated device pretends to have."""
    from gpu_tasks.devices.simulated import SimulatedDevice

    return device.driver_release() if isinstance(device, SimulatedDevice) else None


def _report(found: list[EnvironmentDifference]) -> None:
    for difference in found:
        progress(
            f"environment: {difference.name}: {difference.baseline} has {difference.expected or 'none'}, "
            f"here is {difference.found or 'none'}"
        )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

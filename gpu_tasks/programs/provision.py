"""``provision``: which device, which kernel, which versions."""

from __future__ import annotations

import platform
from argparse import Namespace
from contextlib import closing
from importlib import metadata

from gpu_tasks.devices.registry import open_device
from gpu_tasks.records import EnvironmentFingerprint, Outcome, ProvisionRecord, utc_now
from gpu_tasks.workloads.registry import get_workload

PACKAGES = ("numpy", "nvidia-ml-py", "pyptx", "torch")
"""Packages whose version can change a result; those that are not installed are left out."""


def run(arguments: Namespace) -> ProvisionRecord:
    """Open the device as the other programs will, and describe it."""
    workload = get_workload(arguments.workload)
    with closing(open_device(arguments.device, workload)) as device:
        return ProvisionRecord(
            kind="provision",
            created_at=utc_now(),
            outcome=Outcome.OK,
            reason=None,
            workload=workload.name,
            requested_device=arguments.device,
            device=device.fingerprint(),
            environment=environment_fingerprint(),
            kernel=device.kernel(),
        )


def environment_fingerprint() -> EnvironmentFingerprint:
    """Versions of this process; driver and CUDA are null where no GPU is used."""
    return EnvironmentFingerprint(
        python=platform.python_version(),
        platform=platform.platform(),
        driver=None,
        cuda=None,
        packages={name: version for name in PACKAGES if (version := _version(name)) is not None},
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

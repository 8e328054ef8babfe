"""What differs between this environment and the one that a shipped baseline was measured in."""

from __future__ import annotations

from pathlib import Path

from gpu_tasks.records import (
    DeviceFingerprint,
    EnvironmentDifference,
    EnvironmentFingerprint,
    RunRecord,
    read_record,
    record_files,
    record_name,
)

BASELINES = Path(__file__).resolve().parents[1] / "baselines"


def differences(
    environment: EnvironmentFingerprint, device: DeviceFingerprint, workload: str, folder: Path = BASELINES
) -> list[EnvironmentDifference]:
    """Every version that is not the baseline's, the baseline being of ``workload`` and the same kind of device.

    Of several, the first of the same model, else the first by name; none is no difference. The platform's name is
    left out: it names the kernel of the host, which changes weekly and is in the record anyway.
    """
    candidates = []
    for path in record_files(folder):
        provision = read_record(path, RunRecord).provision
        if provision is None or provision.device is None or provision.environment is None:
            continue
        if (provision.workload, provision.device.kind) == (workload, device.kind):
            candidates.append((provision.device.name != device.name, record_name(path), provision.environment))
    if not candidates:
        return []
    _, baseline, expected = min(candidates, key=lambda candidate: candidate[:2])
    wanted, found = _versions(expected), _versions(environment)
    return [
        EnvironmentDifference(baseline, name, wanted.get(name), found.get(name))
        for name in sorted(wanted.keys() | found.keys())
        if wanted.get(name) != found.get(name)
    ]


def _versions(environment: EnvironmentFingerprint) -> dict[str, str | None]:
    packages = {f"packages.{name}": version for name, version in environment.packages.items()}
    return {"python": environment.python, "driver": environment.driver, "cuda": environment.cuda, **packages}

"""``payload verify``: every file and array of a set, all differences listed."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.payload.sets import find_set
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.programs.console import progress
from gpu_tasks.programs.verify import describe
from gpu_tasks.records import VerificationMismatch
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> None:
    """Verify a named set, or the set in a folder."""
    workload = get_workload(arguments.workload)
    name = arguments.set if arguments.folder is None else str(arguments.folder)
    folder = find_set(name) if arguments.folder is None else arguments.folder
    report = verify_payload(name, folder, workload)
    for mismatch in report.mismatches:
        progress(f"{mismatch.file}: {mismatch.field}: expected {mismatch.expected}, found {mismatch.found}")
    if report.mismatches or not report.payload:
        raise VerificationMismatch("payload_mismatch", f"payload {name}: {describe(report.mismatches)}")
    found = report.payload.manifest_sha256
    pinned = [known.name for known in workload.pinned_sets.values() if known.manifest_sha256 == found]
    same = f", the set {pinned[0]}" if pinned else ""
    print(f"{name}: {report.files_checked} files verified, manifest {found}{same}")

"""``verify``: sources or payload against what is pinned, before anything is run."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.payload.on_demand import ensure_set
from gpu_tasks.payload.sets import find_set
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.programs.console import progress
from gpu_tasks.records import FileMismatch, Outcome, Reason, VerifyRecord, utc_now
from gpu_tasks.sources import MISSING, PIN_COMMAND, ROOT, TRY_COMMAND, verify_sources
from gpu_tasks.workloads.registry import get_workload

MOST_NAMED = 10
KERNELS = "kernels/"
ALWAYS_PINNED = ("kernels/ptx/control.ptx", "kernels/ptx/manifest.json")
"""What measures beside every kernel, and what says which control that is."""


def run(arguments: Namespace) -> VerifyRecord:
    """Hash everything of the subject; the record lists every difference."""
    get_workload(arguments.workload)
    return _sources(arguments) if arguments.subject == "sources" else _payload(arguments)


def _sources(arguments: Namespace) -> VerifyRecord:
    report = verify_sources(ROOT)
    mismatches = report.mismatches
    if arguments.allow_kernels:
        mismatches = [mismatch for mismatch in mismatches if not _is_kernel(mismatch.file)]
        allowed = [mismatch.file for mismatch in report.mismatches if mismatch not in mismatches]
        if allowed:
            progress(f"not what is pinned, and allowed to be: {', '.join(allowed)}")
    reason = Reason("sources_mismatch", f"{_every(mismatches)}; {_advice(mismatches)}") if mismatches else None
    return VerifyRecord(
        kind="verify",
        created_at=utc_now(),
        outcome=Outcome.VERIFICATION_MISMATCH if reason else Outcome.OK,
        reason=reason,
        workload=arguments.workload,
        subject="sources",
        files_checked=len(report.found),
        mismatches=mismatches,
        sources_sha256=report.pins_sha256,
        sources=report.found,
        payload=None,
    )


def _payload(arguments: Namespace) -> VerifyRecord:
    workload = get_workload(arguments.workload)
    if arguments.build:
        ensure_set(arguments.payload, workload, progress)
    report = verify_payload(arguments.payload, find_set(arguments.payload), workload)
    reason = None
    if report.mismatches:
        reason = Reason("payload_mismatch", f"payload {arguments.payload}: {describe(report.mismatches)}")
    return VerifyRecord(
        kind="verify",
        created_at=utc_now(),
        outcome=Outcome.VERIFICATION_MISMATCH if reason else Outcome.OK,
        reason=reason,
        workload=workload.name,
        subject="payload",
        files_checked=report.files_checked,
        mismatches=report.mismatches,
        sources_sha256=None,
        sources=None,
        payload=report.payload,
    )


def _is_kernel(file: str) -> bool:
    """Whether a file is of the kernels that a run may try: of those, it runs what it has frozen, and nothing else."""
    return file.startswith(KERNELS) and file not in ALWAYS_PINNED


def _advice(mismatches: list[FileMismatch]) -> str:
    """What to do about it: a changed kernel can be tried before it is pinned."""
    there = [mismatch.file for mismatch in mismatches if mismatch.found != MISSING]
    kernels = [
        file for suffix in (".py", ".ptx") for file in there if file.startswith(KERNELS) and file.endswith(suffix)
    ]
    pin = f"if the change is meant, run {PIN_COMMAND}"
    return f"to see what a changed kernel does, run {TRY_COMMAND} {kernels[0]}; {pin}" if kernels else pin


def _every(mismatches: list[FileMismatch]) -> str:
    """Each file with its pinned and its found hash, the first ten of them, and how many more there are."""
    told = [f"{m.file}: {m.field}: expected {m.expected}, found {m.found}" for m in mismatches[:MOST_NAMED]]
    more = len(mismatches) - len(told)
    return "; ".join(told) + (f"; and {more} more file{'s' * (more != 1)}" if more else "")


def describe(mismatches: list[FileMismatch]) -> str:
    """The first difference in full, and how many files differ."""
    first = mismatches[0]
    files = len({mismatch.file for mismatch in mismatches})
    others = f" (and {files - 1} more files)" if files > 1 else ""
    return f"{first.file}: {first.field}: expected {first.expected}, found {first.found}{others}"

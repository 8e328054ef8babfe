"""``verify``: sources or payload against what is pinned, before anything is run."""

from __future__ import annotations

from argparse import Namespace

from gpu_tasks.payload.sets import find_set
from gpu_tasks.payload.verify import verify_payload
from gpu_tasks.records import FileMismatch, Outcome, Reason, VerifyRecord, utc_now
from gpu_tasks.sources import PIN_COMMAND, ROOT, verify_sources
from gpu_tasks.workloads.registry import get_workload


def run(arguments: Namespace) -> VerifyRecord:
    """Hash everything of the subject; the record lists every difference."""
    get_workload(arguments.workload)
    return _sources(arguments) if arguments.subject == "sources" else _payload(arguments)


def _sources(arguments: Namespace) -> VerifyRecord:
    report = verify_sources(ROOT)
    reason = None
    if report.mismatches:
        text = f"{describe(report.mismatches)}; if the change to the sources is meant, run {PIN_COMMAND}"
        reason = Reason("sources_mismatch", text)
    return VerifyRecord(
        kind="verify",
        created_at=utc_now(),
        outcome=Outcome.VERIFICATION_MISMATCH if reason else Outcome.OK,
        reason=reason,
        workload=arguments.workload,
        subject="sources",
        files_checked=len(report.found),
        mismatches=report.mismatches,
        sources_sha256=report.pins_sha256,
        sources=report.found,
        payload=None,
    )


def _payload(arguments: Namespace) -> VerifyRecord:
    workload = get_workload(arguments.workload)
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


def describe(mismatches: list[FileMismatch]) -> str:
    """The first difference in full, and how many files differ."""
    first = mismatches[0]
    files = len({mismatch.file for mismatch in mismatches})
    others = f" (and {files - 1} more files)" if files > 1 else ""
    return f"{first.file}: {first.field}: expected {first.expected}, found {first.found}{others}"

"""The folder of one run: what was asked for, and the records of its tasks, under names all of them know."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gpu_tasks.records import (
    CandidateRecord,
    ComparisonRecord,
    DeviceFingerprint,
    ProvisionRecord,
    RunRequest,
    read_record,
)
from regression import settings

MAX_NAME = 120


@dataclass(frozen=True)
class Night:
    """One DAG run and its folder."""

    dag_id: str
    dag_run_id: str

    @cached_property
    def folder(self) -> Path:
        """``NIGHTLY_RUNS/<dag_id>/<dag_run_id made safe>``."""
        return settings.runs() / safe_name(self.dag_id) / safe_name(self.dag_run_id)

    @property
    def request_file(self) -> Path:
        """The accepted request."""
        return self.folder / "request.json"

    @property
    def refusal_file(self) -> Path:
        """The record of a run whose request was refused."""
        return self.folder / "refused.json"

    @property
    def confirmation_file(self) -> Path:
        """The plan of the confirmation rounds."""
        return self.folder / "confirmation.json"

    @property
    def comparison_file(self) -> Path:
        """How a candidate did."""
        return self.folder / "comparison.json"

    @property
    def run_file(self) -> Path:
        """The record of the whole run."""
        return self.folder / "run.json"

    @property
    def verdict_file(self) -> Path:
        """The verdict, as ``./nightly run --json`` prints it."""
        return self.folder / "verdict.json"

    def put_aside_earlier_try(self) -> None:
        """Move the files of an earlier try of this run into a folder ``earlier-N`` of their own."""
        files = list(self.folder.glob("*.json"))
        if files:
            numbers = (int(path.name.rpartition("-")[2]) for path in self.folder.glob("earlier-*"))
            aside = self.folder / f"earlier-{max(numbers, default=0) + 1}"
            aside.mkdir()
            for path in files:
                path.rename(aside / path.name)

    @cached_property
    def request(self) -> RunRequest:
        """What was asked for; raises ``BadInput`` when the first task has not accepted it."""
        return read_record(self.request_file, RunRequest)

    @cached_property
    def provision(self) -> ProvisionRecord:
        """What the task provision found."""
        return read_record(self.folder / "provision.json", ProvisionRecord)

    @cached_property
    def candidate(self) -> CandidateRecord:
        """The two kernels that are compared."""
        return read_record(self.folder / "candidate.json", CandidateRecord)

    @property
    def candidates(self) -> Path:
        """Folder of the kernels that were tried."""
        return settings.candidates()

    @property
    def manifest(self) -> Path:
        """Kernel manifest of the candidate."""
        return _bundle(self.candidate.bundle)

    @property
    def against_manifest(self) -> Path:
        """Kernel manifest of what the candidate is held against."""
        return _bundle(self.candidate.against_bundle)

    @cached_property
    def comparison(self) -> ComparisonRecord:
        """How the candidate did; without figures where it could not be told."""
        return read_record(self.comparison_file, ComparisonRecord)

    @property
    def protocol(self) -> str:
        """The protocol of the rounds, as ``RunRecord.protocol`` will tell it: the request's, else the device's own."""
        return self.request.protocol or self.provision.protocol or "classic"

    @property
    def device(self) -> DeviceFingerprint:
        """The device that was provisioned. Later tasks ask for this one, so that "auto" cannot change its mind."""
        device = self.provision.device
        if device is None:
            raise RuntimeError(f"{self.folder}: no device was provisioned")
        return device


def _bundle(name: str | None) -> Path:
    if name is None:
        raise RuntimeError("candidate.json: expected a bundle, found none")
    return settings.candidates() / name / "manifest.json"


def safe_name(name: str) -> str:
    """``name`` as a file name: itself where that is safe, else cleaned, shortened and made unique by a hash."""
    clean = re.sub(r"[^A-Za-z0-9._+:-]", "_", name)[:MAX_NAME]
    if clean == name and not name.startswith("."):
        return name
    return f"{clean.lstrip('.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"

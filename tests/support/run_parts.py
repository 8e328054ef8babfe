"""The parts of a run in a folder, as its tasks would have left them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpu_tasks.records import RunRecord, write_record


def write_parts(run: RunRecord, folder: Path) -> Path:
    """Write provision, verification, validations and rounds of a run with a payload; returns ``folder``."""
    assert run.verify_payload is not None
    sources = dataclasses.replace(run.verify_payload, subject="sources", payload=None)
    parts = {"provision": run.provision, "verify-sources": sources, "verify-payload": run.verify_payload}
    parts |= {f"validation-{v.draw:02d}": v for v in run.validations}
    parts |= {f"round-{r.round:02d}": r for r in run.rounds}
    for name, record in parts.items():
        write_record(record, folder / f"{name}.json")
    return folder

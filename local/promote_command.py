"""``nightly promote``: a candidate that has been pinned becomes what nights are compared with."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from gpu_tasks.records import KernelIdentity, Outcome, RunRecord, read_record
from local.baseline_commands import results_engine, told_accepted
from local.errors import LauncherError, Usage, told_in_one_line
from local.paths import ROOT, Home
from local.people import author
from regression.results.baseline_reports import BaselineRow, baseline_by_id, replaced_by
from regression.results.exporting import find_run
from regression.results.promotion import Promotable, promotable, promote_run

PINNED = ROOT / "kernels" / "ptx" / "manifest.json"
COMPARED = {"predictions": "compare_predictions", "time": "compare_time", "energy": "compare_energy"}
LAUNCHED = ("entry", "grid", "block", "shared_static_bytes", "shared_dynamic_bytes")
"""What of a launch the manifest says and a record keeps, beside the text."""


def command_promote(home: Home, arguments: argparse.Namespace) -> int:
    """Accept the run, once nights run its kernel; print which kernel took the place of which."""
    with told_in_one_line(), results_engine(home, arguments, "writer") as engine:
        with engine.connect() as connection:
            run_id = find_run(connection, arguments.run).run_id
            found = promotable(connection, run_id, although_worse=arguments.although_worse)
        _check_pinned(found, home.records / f"{run_id}.json")
        baseline_id = promote_run(
            engine,
            run_id,
            promoted_by=author(arguments.by),
            reason=arguments.reason,
            although_worse=arguments.although_worse,
            records=home.records,
        )
        lines = [*told_accepted(engine, run_id, baseline_id), *_lineage(engine, baseline_id, found)]
    print("\n".join(lines))
    return Outcome.OK.exit_code


def _check_pinned(found: Promotable, record: Path) -> None:
    """Refuse it while nights run another kernel: the next one would be compared with what it does not run."""
    variant, pinned = _default_of_nights(PINNED)
    same = found.ptx_sha256 == pinned["ptx_sha256"]
    kernel = read_record(record, RunRecord).kernel if record.exists() else None
    if same and (
        kernel is None or _launched(kernel) == [{key: x[key] for key in LAUNCHED} for x in pinned["launches"]]
    ):
        return
    other = "the same text, launched otherwise" if same else f"{variant} {pinned['ptx_sha256'][:12]}"
    raise Usage(
        f"run {found.run_id}: expected the kernel that nights run, found {found.variant} "
        f"{str(found.ptx_sha256)[:12]}, and nights run {other}; bring the change into kernels/, then `./nightly pin`"
    )


def _default_of_nights(path: Path) -> tuple[str, dict[str, Any]]:
    """The variant that nights run, as it is pinned here: its name, and what the manifest says of it."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        name = manifest["default"]
        variant: dict[str, Any] = manifest["variants"][name]
        [launch[key] for launch in variant["launches"] for key in LAUNCHED]
        return str(name), {"ptx_sha256": str(variant["ptx_sha256"]), "launches": variant["launches"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LauncherError(
            f"{path}: expected the manifest of the pinned kernels, found {error!r}", Outcome.VERIFICATION_MISMATCH
        ) from None


def _launched(kernel: KernelIdentity) -> list[dict[str, Any]]:
    return [{key: launch.get(key) for key in LAUNCHED} for launch in kernel.launches]


def _lineage(engine: Engine, baseline_id: int, found: Promotable) -> list[str]:
    """Which kernel replaced which, and how the two did side by side."""
    with engine.connect() as connection:
        now, before = baseline_by_id(connection, baseline_id), replaced_by(connection, baseline_id)
    words = ", ".join(f"{name} {found.words[check]}" for name, check in COMPARED.items() if check in found.words)
    changed = ", modified" if found.modified else ""  # an edit on top of the commit is not what the commit has
    came = f" (commit {found.commit[:12]}{changed})" if found.commit else ""
    lines = [f"kernel:    {_kernel(before) if before else 'none'} -> {_kernel(now)}{came}"]
    if words:
        against = f"{found.pinned_variant} {str(found.pinned_ptx_sha256)[:12]}"
        lines.append(f"           side by side with {against}: {words}")
    return [*lines, "lineage:   ./nightly sql --name kernel_lineage"]


def _kernel(row: BaselineRow) -> str:
    return f"{row.kernel_variant or 'unnamed'} {(row.kernel_ptx_sha256 or 'unknown')[:12]}"

"""The first look at a candidate kernel: on the emulator with every check, in seconds, with neither GPU nor stack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_tasks.records import CandidateRecord, ComparisonRecord, Outcome, ValidationRecord
from local.errors import LauncherError
from local.paths import ROOT, Home
from local.programs import started
from regression.nights.comparing import comparison_table, verdicts_of
from regression.results.outcome import CheckLine

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Told:
    """What a comparison says: a line and the figures of each check, and a table of it all for people."""

    checks: dict[str, CheckLine]
    figures: dict[str, dict[str, Any]]
    table: str

    @property
    def is_worse(self) -> bool:
        """Whether one metric is worse: a prediction, time or energy."""
        return any(line.verdict == "regressed" for line in self.checks.values())

    def as_json(self) -> dict[str, Any]:
        """Every check with its verdict, reason and figures."""
        return {name: line.as_json() | self.figures[name] for name, line in self.checks.items()}


def told(record: ComparisonRecord, validations: Sequence[ValidationRecord] = ()) -> Told:
    """The verdicts of a comparison; ``validations`` are the run's own where the record is part of one."""
    verdicts = verdicts_of(record, validations)
    return Told(
        checks={found.check: CheckLine(found.verdict.value, found.reason) for found in verdicts},
        figures={found.check: found.details for found in verdicts},
        table=comparison_table(record, verdicts),
    )


def freeze(home: Home, spec: str, *, variant: str | None, against: str | None, quiet: bool = False) -> CandidateRecord:
    """Both kernels as bundles, which nothing changes any more.

    Raises ``LauncherError`` of the class and with the reason that the program gives: there is no such kernel, it does
    not build, it can run nowhere.
    """
    home.create()
    options = {"--variant": variant, "--against": against and in_repository(against)}
    arguments = [f"--spec={in_repository(spec)}", f"--candidates={home.candidates}"]
    arguments += [f"{name}={value}" for name, value in options.items() if value is not None]
    with started(home, "candidate", arguments, quiet=quiet) as program:
        record = program.record(CandidateRecord)
    if record.outcome is not Outcome.OK:
        raise _refused(spec, record.outcome, record.reason.message if record.reason else record.outcome.value)
    return record


def look(
    home: Home, candidate: CandidateRecord, *, payload: str, draws: Sequence[int], quiet: bool = False
) -> ComparisonRecord:
    """The candidate beside the pinned kernel on the emulator: all checks, all of ``draws``.

    What is found is in the record, and its outcome is then a regression. Raises ``LauncherError`` where the comparison
    could not be made.
    """
    arguments = [
        f"--manifest={home.candidates / str(candidate.bundle) / MANIFEST}",
        f"--against-manifest={home.candidates / str(candidate.against_bundle) / MANIFEST}",
        "--device=emulated",
        f"--payload={payload}",
        f"--draws={','.join(map(str, draws))}",
    ]
    with started(home, "compare", arguments, quiet=quiet) as program:
        record = program.record(ComparisonRecord)
    if record.outcome not in (Outcome.OK, Outcome.REGRESSION):
        raise _refused(candidate.spec, record.outcome, record.reason.message if record.reason else record.outcome.value)
    return record


def in_repository(spec: str) -> str:
    """A path that was meant from the folder we stand in, from the repository's root; any other spec as it is."""
    here = Path(os.path.abspath(spec))  # noqa: PTH100 - links are for the program to follow, which refuses some
    if Path.cwd() == ROOT or not here.is_file() or not here.is_relative_to(ROOT):
        return spec
    return str(here.relative_to(ROOT))


def _refused(spec: str, outcome: Outcome, message: str) -> LauncherError:
    return LauncherError(message if message.startswith(f"{spec}:") else f"{spec}: {message}", outcome)

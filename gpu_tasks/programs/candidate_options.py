"""Command lines of what a changed kernel goes through: verify, candidate, compare, pin."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gpu_tasks.programs.options import Programs, add_common, add_environment, record_program, tool


def add_verify(programs: Programs[argparse.ArgumentParser]) -> None:
    """``verify``."""
    parser = record_program(programs, "verify", "Hash the sources or a payload against what is pinned.")
    parser.add_argument("--subject", required=True, choices=("sources", "payload"), help="what to verify")
    parser.add_argument(
        "--allow-kernels",
        action="store_true",
        help="sources only: a changed kernel is none, as in a run that tries one; its control and manifest still are",
    )
    parser.add_argument(
        "--build",
        action="store_true",
        help="payload only: where a pinned set is not there, build it first from the MNIST of the environment",
    )
    add_common(parser, payload=True)


def add_candidate(programs: Programs[argparse.ArgumentParser]) -> None:
    """``candidate``."""
    parser = record_program(programs, "candidate", "Freeze a kernel that is to be tried, and what to hold it against.")
    forms = "kernels/*.py, a .ptx, a kernel manifest, a variant, a git ref or a bundle"
    parser.add_argument("--spec", required=True, metavar="SPEC", help=f"the candidate: {forms}")
    parser.add_argument("--variant", metavar="NAME", help="which of its variants (default: the one that was changed)")
    parser.add_argument("--against", metavar="SPEC", help="what to hold it against (default: the pinned kernel)")
    parser.add_argument(
        "--candidates", type=Path, metavar="DIR", help="folder of the bundles (default: NIGHTLY_CANDIDATES)"
    )
    parser.add_argument(
        "--expect",
        choices=("another", "same"),
        help="refuse a candidate that is the same kernel, whose differences are all chance, or one that is another",
    )
    add_environment(parser)
    add_common(parser)


def add_compare(programs: Programs[argparse.ArgumentParser]) -> None:
    """``compare``."""
    parser = record_program(programs, "compare", "Hold a candidate kernel against another, in one process.")
    for option, text in (("--manifest", "the candidate's"), ("--against-manifest", "that of the kernel it is held to")):
        parser.add_argument(option, required=True, type=Path, metavar="FILE", help=f"kernel manifest: {text}")
    parser.add_argument("--draws", metavar="N,N", help="numbers of the draws, with commas (default: all of the set)")
    parser.add_argument(
        "--blocks", type=int, default=8, metavar="B", help="interleaved blocks; 0: measure nothing (default: 8)"
    )
    parser.add_argument(
        "--telemetry", type=Path, metavar="FILE", help="record of `telemetry --when before`: the counter's tick, drift"
    )
    parser.add_argument(
        "--sm-clock-floor",
        type=float,
        default=os.environ.get("NIGHTLY_SM_CLOCK_FLOOR_MHZ") or None,
        metavar="MHZ",
        help="a round that works at a lower SM clock is invalid (default: NIGHTLY_SM_CLOCK_FLOOR_MHZ, else any)",
    )
    add_common(parser, payload=True, device=True)


def add_pin(programs: Programs[argparse.ArgumentParser]) -> None:
    """``pin``."""
    text = "Write gpu_tasks/SOURCES.sha256 anew: what is there now becomes what is expected."
    parser = tool(programs, "pin", "pin", text)
    parser.add_argument(
        "--build",
        action="store_true",
        help="build the kernels from their sources first, and write nothing unless the emulator finds them right",
    )

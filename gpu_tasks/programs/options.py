"""What the command lines of several programs share: options, help, and how a program is started."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.environments.build import NAMES
from gpu_tasks.programs.runner import run_record_program, run_tool
from gpu_tasks.records import AVAILABLE_DEVICES, DEFAULT_WORKLOAD

EXIT_CODES = """\
exit status: 0 ok, 1 regression, 2 bad input, 3 invalid measurement, 4 verification mismatch, 5 infrastructure failure.
A program that writes a record writes one on failure too (outcome and reason), and one line on standard error.
"""

Programs = argparse._SubParsersAction  # the type that argparse hands out has no public name


def check_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse ``--option=--``: argparse takes that for the end of the options, and hands on an empty list."""
    options = words[: words.index("--")] if "--" in words else words
    for word in options:
        if word.startswith("-") and word.endswith("=--"):
            parser.error(f"argument {word[:-3]}: expected a value, found '--'")


def record_program(programs: Programs[argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
    """A program that writes one record."""
    parser = programs.add_parser(
        name,
        help=text,
        description=text,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the record (default: standard output)")
    parser.set_defaults(start=run_record_program)
    return parser


def tool(programs: Programs[argparse.ArgumentParser], name: str, module: str, text: str) -> argparse.ArgumentParser:
    """A program that writes no record; ``module`` is its name under ``gpu_tasks.programs``."""
    parser = programs.add_parser(
        name,
        help=text,
        description=text,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(start=run_tool, module=module)
    return parser


def add_common(parser: argparse.ArgumentParser, *, payload: bool = False, device: bool = False) -> None:
    """Workload, and where asked for the set of draws and the device with its limits and its simulation."""
    parser.add_argument("--workload", default=DEFAULT_WORKLOAD, metavar="NAME", help="workload (default: %(default)s)")
    if payload:
        parser.add_argument("--payload", metavar="NAME", help="named set of draws (default: the workload's own)")
    if device:
        parser.add_argument(
            "--device",
            default="auto",
            metavar="KIND",
            help=f"auto, {either(AVAILABLE_DEVICES)} (default: auto, the GPU where there is one, else what "
            "stands in for it with this workload)",
        )
        parser.add_argument(
            "--inject",
            metavar="EFFECTS",
            help="simulated device only: what is wrong with it, such as energy+10%% or throttle,time+3%%",
        )
        parser.add_argument(
            "--power-limit",
            type=float,
            default=os.environ.get("NIGHTLY_POWER_LIMIT_W") or None,
            metavar="W",
            help="refuse to measure energy under another power limit (default: NIGHTLY_POWER_LIMIT_W, else any)",
        )
        parser.add_argument(
            "--seed",
            type=int,
            metavar="S",
            help="simulated device only: seed of its noise, 0 to 4294967295 (default: 0)",
        )


def either(names: Sequence[str]) -> str:
    """``a, b or c``."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def add_kernels(parser: argparse.ArgumentParser) -> None:
    """Which kernels to run."""
    parser.add_argument("--variant", metavar="NAME", help="variant of the kernels (default: the manifest's)")
    parser.add_argument(
        "--ptx",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a changed kernel, not pinned: replaces the PTX of the launch whose entry it defines; may be repeated",
    )
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="kernel manifest (default: the committed one)")


def add_environment(parser: argparse.ArgumentParser) -> None:
    """In which environment to run."""
    parser.add_argument(
        "--environment",
        metavar="NAME",
        help=f"make or repair this environment first and continue in it: {either(NAMES)}",
    )
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", help="folder of the environments (default: NIGHTLY_ENVIRONMENTS)"
    )

"""The command line. Imports nothing heavy: a program's module is imported when it runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.programs.runner import run_record_program, run_tool
from gpu_tasks.records import AVAILABLE_DEVICES, PROTOCOLS, TELEMETRY_MOMENTS

EXIT_CODES = """\
exit status: 0 ok, 1 regression, 2 bad input, 3 invalid measurement, 4 verification mismatch, 5 infrastructure failure.
A program that writes a record writes one on failure too (outcome and reason), and one line on standard error.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run one program and return its exit status."""
    arguments = _parser().parse_args(argv)
    status: int = arguments.start(arguments)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=os.environ.get("GPU_TASKS_PROGRAM") or "python -m gpu_tasks",  # what was typed
        description="Programs that run beside the GPU: files and arguments in, one JSON record out.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    programs = parser.add_subparsers(title="programs", metavar="PROGRAM", dest="program", required=True)
    _add_provision(programs)
    _add_verify(programs)
    _add_validate(programs)
    _add_telemetry(programs)
    _add_measure(programs)
    _add_summarise(programs)
    _add_payload(programs)
    _add_probe(programs)
    _add_plot(programs)
    _add_baseline(programs)
    _add_convert(programs)
    _add_check(programs)
    _add_pin(programs)
    return parser


Programs = argparse._SubParsersAction  # the type that argparse hands out has no public name


def _record_program(programs: Programs[argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
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


def _tool(programs: Programs[argparse.ArgumentParser], name: str, module: str, text: str) -> argparse.ArgumentParser:
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


def _add_common(parser: argparse.ArgumentParser, *, payload: bool = False, device: bool = False) -> None:
    parser.add_argument("--workload", default="qda", metavar="NAME", help="workload (default: qda)")
    if payload:
        parser.add_argument(
            "--payload", default="original", metavar="NAME", help="named set of draws (default: original)"
        )
    if device:
        parser.add_argument(
            "--device",
            default="auto",
            metavar="KIND",
            help=f"auto, {_either(AVAILABLE_DEVICES)} (default: auto, the GPU where there is one, else emulated)",
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
            "--seed", type=int, metavar="S", help="simulated device only: seed of its noise (default: 0)"
        )


def _either(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _add_kernels(parser: argparse.ArgumentParser) -> None:
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


def _add_provision(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(programs, "provision", "Choose the device and fingerprint it and the environment.")
    _add_common(parser, device=True)
    _add_kernels(parser)
    parser.add_argument(
        "--environment", metavar="NAME", help="make or repair this environment first and continue in it: a100 or cpu"
    )
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", help="folder of the environments (default: NIGHTLY_ENVIRONMENTS)"
    )


def _add_verify(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(programs, "verify", "Hash the sources or a payload against what is pinned.")
    parser.add_argument("--subject", required=True, choices=("sources", "payload"), help="what to verify")
    _add_common(parser, payload=True)


def _add_validate(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(programs, "validate", "Run one draw and compare its predictions with the frozen ones.")
    parser.add_argument("--draw", required=True, type=int, metavar="N", help="number of the draw, from 0")
    parser.add_argument(
        "--check", choices=("races",), help="also look for races between threads (emulated device; slower)"
    )
    _add_common(parser, payload=True, device=True)
    _add_kernels(parser)


def _add_measure(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(programs, "measure", "Measure one round of back-to-back replays on the benchmark draw.")
    parser.add_argument("--round", required=True, type=int, metavar="N", help="number of the round, from 0")
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="R",
        help="replays in the round (default: what fills the protocol's time; 0.5 s and at least 10 without a counter)",
    )
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        help=f"measurement protocol: {_either(PROTOCOLS)} (default: audited with an energy counter, else classic)",
    )
    parser.add_argument(
        "--sm-clock-floor",
        type=float,
        default=os.environ.get("NIGHTLY_SM_CLOCK_FLOOR_MHZ") or None,
        metavar="MHZ",
        help="a round that works at a lower SM clock is invalid (default: NIGHTLY_SM_CLOCK_FLOOR_MHZ, else any)",
    )
    parser.add_argument(
        "--telemetry", type=Path, metavar="FILE", help="record of `telemetry --when before`: the counter's tick, drift"
    )
    parser.add_argument(
        "--against", metavar="VARIANT", help="interleaved only: variant of the kernels to compare with, as baseline"
    )
    parser.add_argument(
        "--blocks", type=int, default=4, metavar="B", help="interleaved only: blocks in the round (default: 4)"
    )
    parser.add_argument(
        "--arm", default="candidate", metavar="NAME", help="which of several kernels this is (default: candidate)"
    )
    _add_common(parser, payload=True, device=True)
    _add_kernels(parser)


def _add_telemetry(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(
        programs, "telemetry", "Look at the energy counter before or after the rounds: tick, idle power, known load."
    )
    parser.add_argument("--when", required=True, choices=TELEMETRY_MOMENTS, help="before or after the rounds")
    parser.add_argument(
        "--request", type=Path, metavar="FILE", help="the run's request.json: bands that accepted runs have taught"
    )
    _add_common(parser, device=True)
    _add_kernels(parser)


def _add_summarise(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(programs, "summarise", "Put the records of a run together; a part may be missing.")
    parser.add_argument("--request", required=True, type=Path, metavar="FILE", help="the run's request.json")
    parser.add_argument("--folder", required=True, type=Path, metavar="RUN_FOLDER", help="folder of the part records")


def _add_payload(programs: Programs[argparse.ArgumentParser]) -> None:
    text = "Build or verify a named set of frozen draws."
    actions = programs.add_parser("payload", help=text, description=text).add_subparsers(
        title="actions", metavar="ACTION", dest="action", required=True
    )
    build = _tool(actions, "build", "payload_build", "Build a set of draws from MNIST in a new folder.")
    build.add_argument(
        "--source", required=True, type=Path, metavar="FILE_OR_FOLDER", help="mnist.pkl.gz or a folder of IDX files"
    )
    build.add_argument("--set", default="original", metavar="NAME", help="name of the set (default: original)")
    build.add_argument("--seeds", type=int, nargs="+", metavar="S", help="one draw for each (fixed for original)")
    build.add_argument("--folder", type=Path, metavar="DIR", help="new folder of the set (default: by its name)")
    _add_common(build)
    verify = _tool(actions, "verify", "payload_verify", "Hash every file and array of a set against its manifest.")
    which = verify.add_mutually_exclusive_group()
    which.add_argument("--set", default="original", metavar="NAME", help="name of the set (default: original)")
    which.add_argument("--folder", type=Path, metavar="DIR", help="folder of a set")
    _add_common(verify)


def _add_pin(programs: Programs[argparse.ArgumentParser]) -> None:
    _tool(programs, "pin", "pin", "Write gpu_tasks/SOURCES.sha256 anew: what is there now becomes what is expected.")


def _add_probe(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _tool(
        programs, "probe", "probe", "What the energy counter can resolve here: tick, idle power, drift, rounds needed."
    )
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="idle time to look at (default: 60)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of a run (default: 7)")
    parser.add_argument(
        "--blocks", type=int, default=4, metavar="B", help="blocks of an interleaved round (default: 4)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it: a .svg, .png or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    _add_common(parser, payload=True, device=True)
    _add_kernels(parser)


def _add_plot(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _tool(programs, "plot", "plot", "Draw a stored round, telemetry or run record.")
    parser.add_argument("record", type=Path, metavar="RECORD", help="round-NN.json, telemetry-*.json or run.json")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .svg, .png or .pdf file")


def _add_baseline(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _tool(programs, "baseline", "baseline", "Write the run record that ships for the simulated device anew.")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the record")
    _add_common(parser)


def _add_convert(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _record_program(
        programs, "convert", "Check a record of the systems that this project re-creates and write it as a run record."
    )
    parser.epilog = (
        f"{EXIT_CODES.splitlines()[0]}\nA record that is refused leaves nothing but one line on standard error."
    )
    parser.add_argument("record", type=Path, metavar="FILE", help="the original record, as it is")


def _add_check(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = _tool(programs, "check", "check", "Compute everything in a run record again and compare.")
    parser.add_argument("record", type=Path, metavar="RECORD", help="a run record (run.json)")

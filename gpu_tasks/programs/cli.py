"""The command line. Imports nothing heavy: a program's module is imported when it runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_tasks.programs.candidate_options import add_candidate, add_compare, add_pin, add_verify
from gpu_tasks.programs.options import (
    EXIT_CODES,
    Programs,
    add_common,
    add_environment,
    add_kernels,
    check_words,
    either,
    record_program,
    tool,
)
from gpu_tasks.records import STORED_PROTOCOLS, TELEMETRY_MOMENTS, BadInput


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments, run one program and return its exit status."""
    words, parser = sys.argv[1:] if argv is None else list(argv), _parser()
    check_words(parser, words)
    arguments = parser.parse_args(words)
    if getattr(arguments, "payload", "") is None:
        arguments.payload = _default_payload(arguments.workload)
    status: int = arguments.start(arguments)
    return status


def _default_payload(workload: str) -> str:
    """The set that the workload means; its own name where that cannot be told: the program is there to say why."""
    try:
        from gpu_tasks.workloads.registry import default_payload

        return default_payload(workload)
    except (BadInput, ImportError):  # a Python without numpy
        return workload


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=os.environ.get("GPU_TASKS_PROGRAM") or "python -m gpu_tasks",  # what was typed
        description="Programs that run beside the GPU: files and arguments in, one JSON record out.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    programs = parser.add_subparsers(title="programs", metavar="PROGRAM", dest="program", required=True)
    _add_provision(programs)
    add_verify(programs)
    _add_qualify(programs)
    _add_validate(programs)
    _add_telemetry(programs)
    _add_measure(programs)
    _add_memory(programs)
    add_candidate(programs)
    add_compare(programs)
    _add_summarise(programs)
    _add_payload(programs)
    _add_probe(programs)
    _add_plot(programs)
    _add_baseline(programs)
    _add_convert(programs)
    _add_check(programs)
    add_pin(programs)
    return parser


def _add_provision(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(programs, "provision", "Choose the device and fingerprint it and the environment.")
    add_common(parser, device=True)
    add_kernels(parser)
    add_environment(parser)


def _add_qualify(programs: Programs[argparse.ArgumentParser]) -> None:
    text = "Check that a device computes what an independent implementation does, where the workload has one."
    parser = record_program(programs, "qualify", text)
    add_common(parser, device=True)
    add_kernels(parser)


def _add_memory(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(
        programs, "memory", "Say where the memory of one task is: allocator, tensors, where devices can say it."
    )
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="number of the draw, from 0 (default: 0)")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="write the predictions there, as .npy")
    parser.add_argument("--profile", action="store_true", help="with Nsight Compute, too, where it is installed (cuda)")
    add_common(parser, payload=True, device=True)
    add_kernels(parser)


def _add_validate(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(programs, "validate", "Run one draw and compare its predictions with the frozen ones.")
    parser.add_argument("--draw", required=True, type=int, metavar="N", help="number of the draw, from 0")
    parser.add_argument(
        "--check", choices=("races",), help="also look for races between threads (emulated device; slower)"
    )
    add_common(parser, payload=True, device=True)
    add_kernels(parser)


def _add_measure(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(programs, "measure", "Measure one round of back-to-back replays on the benchmark draw.")
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
        help=f"measurement protocol: {either(STORED_PROTOCOLS)} (default: the workload's own, with an energy "
        "counter and without)",
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
    add_common(parser, payload=True, device=True)
    add_kernels(parser)


def _add_telemetry(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(
        programs, "telemetry", "Look at the energy counter before or after the rounds: tick, idle power, known load."
    )
    parser.add_argument("--when", required=True, choices=TELEMETRY_MOMENTS, help="before or after the rounds")
    parser.add_argument(
        "--request", type=Path, metavar="FILE", help="the run's request.json: bands that accepted runs have taught"
    )
    add_common(parser, device=True)
    add_kernels(parser)


def _add_summarise(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(programs, "summarise", "Put the records of a run together; a part may be missing.")
    parser.add_argument("--request", required=True, type=Path, metavar="FILE", help="the run's request.json")
    parser.add_argument("--folder", required=True, type=Path, metavar="RUN_FOLDER", help="folder of the part records")


def _add_payload(programs: Programs[argparse.ArgumentParser]) -> None:
    text = "Build or verify a named set of frozen draws."
    actions = programs.add_parser("payload", help=text, description=text).add_subparsers(
        title="actions", metavar="ACTION", dest="action", required=True
    )
    build = tool(actions, "build", "payload_build", "Build a set of draws from MNIST in a new folder.")
    build.add_argument(
        "--source", required=True, type=Path, metavar="FILE_OR_FOLDER", help="mnist.pkl.gz or a folder of IDX files"
    )
    build.add_argument("--set", default="original", metavar="NAME", help="name of the set (default: original)")
    build.add_argument("--seeds", type=int, nargs="+", metavar="S", help="one draw for each (fixed for original)")
    build.add_argument("--folder", type=Path, metavar="DIR", help="new folder of the set (default: by its name)")
    add_common(build)
    verify = tool(actions, "verify", "payload_verify", "Hash every file and array of a set against its manifest.")
    which = verify.add_mutually_exclusive_group()
    which.add_argument("--set", default="original", metavar="NAME", help="name of the set (default: original)")
    which.add_argument("--folder", type=Path, metavar="DIR", help="folder of a set")
    add_common(verify)


def _add_probe(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = tool(
        programs, "probe", "probe", "What the energy counter can resolve here: tick, idle power, drift, rounds needed."
    )
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="idle time to look at (default: 60)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds of a run (default: 7)")
    parser.add_argument(
        "--blocks", type=int, default=4, metavar="B", help="blocks of an interleaved round (default: 4)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw it: a .svg, .png or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_common(parser, payload=True, device=True)
    add_kernels(parser)


def _add_plot(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = tool(programs, "plot", "plot", "Draw a stored round, telemetry or run record.")
    parser.add_argument("record", type=Path, metavar="RECORD", help="round-NN.json, telemetry-*.json or run.json")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .svg, .png or .pdf file")


def _add_baseline(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = tool(programs, "baseline", "baseline", "Write the run record that ships for a device without a GPU anew.")
    parser.add_argument(
        "--device", choices=("simulated", "reference"), default="simulated", help="which one (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write it, compressed if it ends in .gz"
    )
    add_common(parser)


def _add_convert(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = record_program(
        programs, "convert", "Check a record of the systems that this project re-creates and write it as a run record."
    )
    parser.epilog = (
        f"{EXIT_CODES.splitlines()[0]}\nA record that is refused leaves nothing but one line on standard error."
    )
    parser.add_argument("record", type=Path, metavar="FILE", help="the original record, as it is")


def _add_check(programs: Programs[argparse.ArgumentParser]) -> None:
    parser = tool(programs, "check", "check", "Compute everything in a run record again and compare.")
    parser.add_argument("record", type=Path, metavar="RECORD", help="a run record (run.json)")

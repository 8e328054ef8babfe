"""Arguments of the commands for a kernel that changes; standard library only, so that help needs no environment."""

from __future__ import annotations

import argparse

from local.judging_arguments import Commands, words

KERNEL_DEVICES = ("auto", "cuda", "emulated", "simulated")
"""What a kernel can be compared on; the reference runs none."""
METRICS = ("agreement", "modelled_cycles", "cuda_ms", "adjusted_mj")
SPEC_HELP = "a path in the repository (kernels/*.py, .ptx, kernel manifest), a variant, a git ref, or a kept bundle"
_TRY = """\
Look at a changed kernel: first on the emulator with every check, in seconds, with neither GPU nor server. Where its
predictions are worse or a race is found, that is the answer, with exit status 1. Otherwise, where there is a GPU or
--device says so, the DAG compare_kernels measures it and the pinned kernel in turns, in one process on one device.
"""
_BISECT = """\
Which commit was it? Searches the history of kernels/ between two commits; each step is a `try` of a commit against the
good one, and neither working tree nor index is touched. Commits that do not build are left out and named. Each step is
written down: after Ctrl-C, a kill or a crash, --continue goes on with the next one.
"""
_PROMOTE = """\
Accept the run of a candidate as the baseline of the new kernel, and say which kernel it took the place of. The kernel
must be pinned by then (`./nightly pin`), so that the next night runs it and is compared with this run.
"""
_CHANGED = """\
Tell the running stack that kernels changed: the Airflow asset kernel_changed is updated, and each update starts one
comparison of that commit with the pinned kernels, or with another commit's. For git hooks and CI (docs/hooks).
"""


def add_comparing_commands(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    """try, promote, bisect and changed."""
    _add_try(commands, server)
    _add_promote(commands, server)
    _add_bisect(commands, server)
    _add_changed(commands, server)


def _add_try(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    tried = commands.add_parser(
        "try", parents=[server], help="a changed kernel: is it right, faster, cheaper?", description=_TRY
    )
    tried.add_argument("spec", type=words, metavar="SPEC", help=SPEC_HELP)
    tried.add_argument("--variant", type=words, metavar="NAME", help="which of its variants (default: the changed one)")
    tried.add_argument(
        "--against", type=words, metavar="SPEC", help="hold it against this kernel (default: the pinned one)"
    )
    tried.add_argument(
        "--device", choices=KERNEL_DEVICES, help="where to compare (default: a GPU where there is one, else nowhere)"
    )
    tried.add_argument("--draws", type=draws, metavar="N,N,...", help="numbers of the draws (default: all of the set)")
    tried.add_argument(
        "--blocks", type=count, metavar="N", help="blocks in which both kernels are measured in turns; 0 for none"
    )
    tried.add_argument(
        "--rounds",
        type=count,
        metavar="N",
        help="rounds of the candidate as nights have them, so that it can be promoted (default: 7; 14 make a better "
        "baseline, 0 none)",
    )
    tried.add_argument(
        "--aa", action="store_true", help="the candidate is the pinned kernel: what differs then is chance"
    )
    _add_param(tried)
    _add_words(tried)
    answer = tried.add_mutually_exclusive_group()
    answer.add_argument(
        "--queue", action="store_true", help="after the first look, queue the run on the running stack and print its id"
    )
    answer.add_argument("--json", action="store_true", help="print what was found as one JSON object in the last line")


def _add_promote(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    promote = commands.add_parser(
        "promote", parents=[server], help="make a candidate's run the baseline of the new kernel", description=_PROMOTE
    )
    promote.add_argument("run", type=words, metavar="RUN", help="run_id or dag_run_id, or the unique beginning of one")
    promote.add_argument("--reason", required=True, type=words, metavar="TEXT", help="why, for whoever asks later")
    promote.add_argument("--by", type=words, metavar="NAME", help="who decides it (default: your login name)")
    promote.add_argument(
        "--although-worse", action="store_true", help="also where its comparison says that a metric is worse"
    )


def _add_bisect(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    bisect = commands.add_parser(
        "bisect", parents=[server], help="which commit changed the kernels for the worse", description=_BISECT
    )
    bisect.add_argument("--good", type=words, metavar="REF", help="a commit whose kernels are as they should be")
    bisect.add_argument("--bad", type=words, metavar="REF", help="a later one whose kernels are not")
    bisect.add_argument(
        "--metric",
        choices=METRICS,
        help="what is worse: predictions and races (agreement, the default), the modelled critical path "
        "(modelled_cycles), both on the emulator; time (cuda_ms) or energy (adjusted_mj), measured",
    )
    bisect.add_argument(
        "--variant", type=words, metavar="NAME", help="which variant (default: the one in which the two differ)"
    )
    bisect.add_argument(
        "--device", choices=("auto", "cuda", "simulated"), help="where cuda_ms and adjusted_mj are measured"
    )
    bisect.add_argument("--blocks", type=count, metavar="N", help="blocks of each measured comparison")
    _add_param(bisect)
    how = bisect.add_mutually_exclusive_group()
    how.add_argument("--continue", dest="resume", action="store_true", help="go on where it was interrupted")
    how.add_argument("--reset", action="store_true", help="forget the search that is in progress")


def _add_changed(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    changed = commands.add_parser(
        "changed", parents=[server], help="tell the running stack that kernels changed", description=_CHANGED
    )
    changed.add_argument("ref", nargs="?", default="HEAD", type=words, metavar="REF", help="a git ref (default: HEAD)")
    changed.add_argument(
        "--against",
        type=words,
        metavar="REF",
        help="hold it against the kernels of this commit (default: the pinned ones)",
    )
    changed.add_argument("--device", choices=KERNEL_DEVICES, help="where to compare (default: auto)")
    changed.add_argument("--note", type=words, metavar="TEXT", help="kept with the run")


def _add_param(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another param of the DAG compare_kernels; may be repeated (e.g. payload=mine, protocol=classic; with "
        "--device simulated also inject=time+2%%)",
    )


def _add_words(command: argparse.ArgumentParser) -> None:
    command.add_argument("--label", type=words, metavar="NAME", help="short name of the run, to find it again")
    command.add_argument("--note", type=words, metavar="TEXT", help="kept with the run")


def draws(text: str) -> list[int]:
    """Numbers of draws, ``0,3`` or ``[0,3]``; refused by argparse otherwise."""
    inside = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    numbers = [number.strip() for number in inside.split(",")]
    if not all(number.isascii() and number.isdigit() and len(number) < 4 for number in numbers):
        raise argparse.ArgumentTypeError(f"expected numbers such as 0,3, found {text!r:.80}")
    return [int(number) for number in numbers]


def count(text: str) -> int:
    """How many; refused by argparse where it is no number."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a number from 0, found {text!r:.80}")
    return int(text)

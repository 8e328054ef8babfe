"""The command line of ``nightly``: what a user types, and which environment carries it out.

Parsing and help need the standard library only. Commands that need more make the environments from their locks
first and carry on in the scheduler's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from gpu_tasks.records import DEVICE_KINDS, Outcome
from local import environments, locks, processes, programs
from local.alert_arguments import add_alert_commands
from local.comparing_arguments import add_comparing_commands
from local.errors import LauncherError
from local.judging_arguments import add_judging_commands
from local.paths import ROOT, Home, default_home
from local.record_arguments import add_record_commands, add_upkeep_commands
from local.testing import SUITES
from local.workloads import needed_by, of_program
from regression.nights.workloads import DEFAULT, WORKLOADS

DEVICES = ("auto", *DEVICE_KINDS)
OF_THEIR_OWN = {name: f"{name}_command" for name in ("try", "promote", "bisect", "changed")}
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
PIPE_CLOSED = 141  # 128 + SIGPIPE
_EPILOG = """\
exit codes: 0 ok, improved, inconclusive or unavailable (each said)   1 regression   2 bad input
            3 invalid measurement   4 verification mismatch   5 infrastructure failure

environment: NIGHTLY_HOME (where everything lives; outside the repository), NIGHTLY_DSN (as --dsn),
             NIGHTLY_SCHEDULE (cron line of the night, default "0 2 * * *"), NIGHTLY_TIMEZONE (default UTC),
             NIGHTLY_DEADLINE_MINUTES (from the start of a night to its result, for the watchdog, default 180),
             NIGHTLY_WORKLOADS (whose nights `up` schedules, with commas, default qda),
             NIGHTLY_GPU_ENVIRONMENT (cpu; a100 and learner have torch; default: the workload's own), NIGHTLY_PAYLOADS
             (folder of further sets of draws), NIGHTLY_ENVIRONMENTS (share the virtual environments between homes),
             NIGHTLY_POWER_LIMIT_W (measure energy under this power limit only), NIGHTLY_SM_CLOCK_FLOOR_MHZ (rounds
             that work at a lower SM clock are invalid), NIGHTLY_ALERT_SMTP, NIGHTLY_ALERT_SLACK,
             NIGHTLY_ALERT_WEBHOOK (where alerts are sent; addresses, see docs/alerts.md)
"""


def build_parser() -> argparse.ArgumentParser:
    """Parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="nightly",
        description="Did last night's kernel still do the same thing, as fast, for the same energy?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    server = argparse.ArgumentParser(add_help=False)
    server.add_argument(
        "--dsn",
        default=os.environ.get("NIGHTLY_DSN") or None,
        metavar="URI",
        help="use this PostgreSQL server (14 or newer) instead of the embedded one; its role must be allowed to "
        "create roles and databases (better given as NIGHTLY_DSN: arguments can be seen by others)",
    )
    what = argparse.ArgumentParser(add_help=False)
    what.add_argument(
        "--workload",
        default=DEFAULT.name,
        metavar="NAME",
        help=f"whose night: {' or '.join(WORKLOADS)} (default: %(default)s)",
    )
    what.add_argument("--device", choices=DEVICES, help="what it runs on (default: auto)")
    what.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a param of the DAG, as in Airflow's form; may be repeated (e.g. rounds=3, draws=[0,1], note=text; with "
        "--device simulated also inject=energy+10%% or inject=faulty_sensor, to see an alert happen)",
    )

    run = commands.add_parser("run", parents=[server, what], help="run one night now and print its verdict")
    run.add_argument("--json", action="store_true", help="print the verdict as one JSON object in the last line")
    up = commands.add_parser("up", parents=[server], help="start PostgreSQL and Airflow and leave them running")
    up.add_argument("--schedule", metavar="CRON", help='when the night runs (default: NIGHTLY_SCHEDULE or "0 2 * * *")')
    down = commands.add_parser("down", help="stop what `up` started")
    down.add_argument("--force", action="store_true", help="also when a run is in progress")
    commands.add_parser("status", parents=[server], help="what is running, and the latest runs")
    logs = commands.add_parser("logs", help="where the logs are; with a run or a component: print it")
    logs.add_argument(
        "name", nargs="?", help="dag_run_id, or supervisor, scheduler, api-server, dag-processor, postgres"
    )
    logs.add_argument("task", nargs="?", help="one task of the run")
    commands.add_parser("trigger", parents=[server, what], help="queue a run on the running stack and return")
    sql = commands.add_parser("sql", parents=[server], help="query the results as the read-only role; alone: psql")
    sql.add_argument("query", nargs="?", help="one SQL statement")
    sql.add_argument("--name", metavar="NAME", help="a question of the cookbook, sql/queries")
    sql.add_argument(
        "--param", action="append", default=[], metavar="KEY=VALUE", help="a value for the question; may be repeated"
    )
    sql.add_argument("--list", action="store_true", help="names, titles and params of all questions")
    sql.add_argument("--show", action="store_true", help="print the SQL of the question instead of asking it")
    form = sql.add_mutually_exclusive_group()
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="rows as CSV with a header")
    form.add_argument("--json", dest="form", action="store_const", const="json", help="rows as a JSON array of objects")
    sql.set_defaults(form="table")
    add_comparing_commands(commands, server)
    add_judging_commands(commands, server)
    add_alert_commands(commands, server)
    add_record_commands(commands, server)
    add_upkeep_commands(commands, server)
    test = commands.add_parser("test", help="check the project itself")
    test.add_argument("suites", nargs="*", metavar="SUITE", help=f"{', '.join(SUITES)}; default: all")
    test.add_argument("-k", dest="keyword", metavar="EXPRESSION", help="only tests that match (as pytest's -k)")
    commands.add_parser("doctor", help="what this machine has and lacks")
    commands.add_parser("task", help="run one GPU program by hand: `nightly task --help` lists them")
    commands.add_parser("schema", help="write sql/schema.sql, what the migrations and views make, for reading")
    pin = commands.add_parser(
        "pin", help="build the kernels and, where the emulator finds them right, write the hashes that nights verify"
    )
    pin.add_argument(
        "--explain",
        action="store_true",
        help="change nothing: print each kernel's instruction mix, registers, shared memory and modelled critical path",
    )
    return parser


def parsed(words: list[str]) -> argparse.Namespace:
    """The command line; of ``--option=--`` argparse makes an empty list, and so it is refused."""
    parser = build_parser()
    for word in words[: words.index("--")] if "--" in words else words:
        if word.startswith("-") and word.endswith("=--"):
            parser.error(f"argument {word[:-3]}: expected a value, found '--'")
    return parser.parse_args(words)


def main(argv: list[str] | None = None) -> int:
    """Carry out one command; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with the descriptor closed
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open as long as the program runs
    if os.geteuid() == 0:
        os.umask(0o022)  # what root makes, PostgreSQL's user must pass through; what is secret is closed by itself
    as_json = words[0] if words[:1] in (["run"], ["try"]) and "--json" in words else None
    try:
        home = Home(default_home())
        if words[:1] == ["task"]:  # everything behind it, --help too, is the program's
            return _gpu_program(home, words[1:])
        return _dispatch(parsed(words), home, words)
    except LauncherError as error:
        return _failed(str(error), error.outcome.exit_code, error.outcome.value, as_json=as_json)
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED, "interrupted", as_json=as_json)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        text = f"{error.filename or 'input or output'}: {error.strerror or error}"
    except Exception as error:
        traceback.print_exc()
        text = f"unexpected {type(error).__name__}: {error}"
    # Never 1, Python's own status for an exception: that would mean a regression.
    failure = Outcome.INFRASTRUCTURE_FAILURE
    return _failed(text, failure.exit_code, failure.value, as_json=as_json)


def _failed(text: str, status: int, verdict: str, *, as_json: str | None) -> int:
    """Say why there is no verdict: for people, and for scripts as the JSON object that ``as_json`` promised them."""
    print(f"nightly: {text}", file=sys.stderr)
    if as_json:
        nothing: dict[str, object] = dict.fromkeys(("run_id", "dag_run_id", "workload", "device"))
        nothing |= {"verdict": verdict, "checks": {}, "agreement": {"agreed": None, "total": None}, "exit": status}
        print(json.dumps(nothing | ({"candidate": None, "comparison": {}} if as_json == "try" else {})))
    return status


def _dispatch(arguments: argparse.Namespace, home: Home, argv: list[str]) -> int:
    if arguments.command == "doctor":
        from local.doctor import examine

        return examine(home)
    if arguments.command == "test":
        from local.testing import run_suites

        environments.ensure(home, "scheduler", "cpu", "test")
        return run_suites(home, arguments.suites, arguments.keyword)
    if arguments.command == "pin":
        return _pin(home, explain=arguments.explain)
    if arguments.command == "sql":
        from local.questions import asked, print_questions

        if arguments.list or arguments.show:
            return print_questions(arguments)
        asked(arguments)  # refused before anything is made or started
    if not _inside_scheduler(home):
        environments.ensure(home, "scheduler", *needed_by(arguments))
        _continue_in_scheduler(home, argv)
    return action_of(arguments.command)(home, arguments)


def action_of(command: str) -> Callable[[Home, argparse.Namespace], int]:
    """What carries out a command that needs the scheduler's environment.

    Some are in modules of their own: what the others import takes as long as a first look at a kernel.
    """
    module = import_module(f"local.{OF_THEIR_OWN.get(command, 'commands')}")
    action: Callable[[Home, argparse.Namespace], int] = getattr(module, f"command_{command}")
    return action


def _pin(home: Home, *, explain: bool) -> int:
    """Only the environment without torch has what builds kernels on every machine."""
    environments.ensure(home, "cpu")
    program = ["kernels", "explain"] if explain else ["gpu_tasks", "pin", "--build"]
    command = [str(environments.python(home, "cpu")), "-m", *program]
    with processes.terminable(), locks.exclusive(home.locks / "pin", "another `nightly pin`"):
        return programs.carry_out(command)


def _gpu_program(home: Home, arguments: list[str]) -> int:
    name = environments.of_gpu_tasks(of_program(arguments))
    environments.ensure(home, name)
    interpreter = environments.python(home, name)
    os.environ["GPU_TASKS_PROGRAM"] = "nightly task"  # what usage calls it
    os.environ.update(programs.environment(home))
    os.execv(interpreter, [str(interpreter), "-m", "gpu_tasks", *arguments])  # noqa: S606 - no shell is wanted


def _inside_scheduler(home: Home) -> bool:
    return Path(sys.prefix).resolve() == environments.folder(home, "scheduler").resolve()


def _continue_in_scheduler(home: Home, argv: list[str]) -> None:
    interpreter = environments.python(home, "scheduler")
    environment = dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    os.execve(interpreter, [str(interpreter), str(ROOT / "nightly"), *argv], environment)  # noqa: S606 - no shell

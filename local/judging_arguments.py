"""Arguments of the commands that judge; standard library only, so that help needs no environment."""

from __future__ import annotations

import argparse

Commands = argparse._SubParsersAction  # the type that argparse hands out has no public name
RUN_HELP = "run_id or dag_run_id, or the unique beginning of one"
SCOPES = ("energy", "all")
HISTORY_CHECKS = ("energy_history", "gross_energy_history", "idle_power_history", "time_history", "wall_time_history")


def add_judging_commands(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    """baseline, withdraw, watchdog and backtest."""
    _add_baseline(commands, server)
    _add_watchdog(commands, server)
    _add_backtest(commands, server)
    withdraw = commands.add_parser(
        "withdraw",
        parents=[server],
        help="say that a run, or its energy, must not be used any more",
        description="Withdraw a run's energy, or all of it: no night is compared with it any more, no history counts "
        "it, and it stays readable with the reason. A baseline that it was for that ends with it.",
    )
    withdraw.add_argument("run", type=words, metavar="RUN", help=RUN_HELP)
    withdraw.add_argument("--scope", required=True, choices=SCOPES, help="what of it must not be used any more")
    _add_why(withdraw)
    withdraw.add_argument("--successor", type=words, metavar="RUN", help="the run to be used instead")
    withdraw.add_argument(
        "--figures", type=words, metavar="TEXT", help="the figures that were published and what holds instead, in words"
    )


def _add_baseline(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    baseline = commands.add_parser(
        "baseline",
        help="what nights are compared with: list, show, accept or retire",
        description="Baselines are runs that somebody accepted: nothing becomes usual by itself. At most one is "
        "current for each workload, payload, device, protocol and class of environment.",
    )
    actions = baseline.add_subparsers(dest="action", required=True, metavar="ACTION")

    shown = actions.add_parser("list", parents=[server], help="the current baselines, or all that ever were")
    shown.add_argument("--all", action="store_true", help="also those that ended")
    shown.add_argument("--workload", type=words, metavar="NAME", help="of this workload only")
    shown.add_argument("--json", action="store_true", help="a JSON array with every field")

    show = actions.add_parser(
        "show", parents=[server], help="draws, rounds, spread and agreement of one, and what came before it"
    )
    show.add_argument("run", type=words, metavar="RUN", help=RUN_HELP)

    accept = actions.add_parser(
        "accept",
        parents=[server],
        help="make a run the baseline of its key",
        description="Make a stored run what later ones are compared with, in the place of the one before. Its energy "
        "counts only where it is verified; unverified energy must be asked for by name, and energy whose telemetry "
        "gates failed is never accepted.",
    )
    accept.add_argument("run", type=words, metavar="RUN", help=RUN_HELP)
    _add_why(accept)
    energy = accept.add_mutually_exclusive_group()
    energy.add_argument("--for-energy", action="store_true", help="refuse it unless its energy can be compared with")
    energy.add_argument("--no-energy", action="store_true", help="not for energy, though that may be verified")
    energy.add_argument("--energy-unverified", action="store_true", help="for energy, though nothing vouches for it")
    accept.add_argument("--no-time", action="store_true", help="not for times")
    accept.add_argument("--no-agreement", action="store_true", help="not for predictions")

    retire = actions.add_parser(
        "retire",
        parents=[server],
        help="end a baseline, with nothing in its place",
        description="End a baseline: what was compared with it is compared with the next closest one, or with none.",
    )
    retire.add_argument("run", type=words, metavar="RUN", help=RUN_HELP)
    _add_why(retire)


def _add_watchdog(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    watchdog = commands.add_parser(
        "watchdog",
        parents=[server],
        help="did the night come? For a system cron, where Airflow itself may be dead",
        description="Say what became of the nights of the last days by database and run folders, without Airflow. When "
        "the latest one that is due is missing, stuck or incomplete, raise its alert, say so on standard error, and "
        "end with 5. `./nightly up` watches by itself, as long as it runs.",
    )
    watchdog.add_argument(
        "--workload", metavar="NAME", help="whose nights (default: as `up` was told; with --schedule NIGHTLY_WORKLOADS)"
    )
    watchdog.add_argument("--schedule", metavar="CRON", help="when nights are planned (default: as `up` was told)")
    watchdog.add_argument("--timezone", metavar="ZONE", help="of --schedule (default: NIGHTLY_TIMEZONE or UTC)")
    watchdog.add_argument(
        "--deadline", type=int, metavar="MINUTES", help="from its start to its result (default: as `up` was told, 180)"
    )
    watchdog.add_argument(
        "--since", metavar="TIME", help="with --schedule: nights before are not expected (default: a week ago)"
    )
    watchdog.add_argument(
        "--by-hand", action="store_true", help="a run that was asked for counts, as where a cron calls `./nightly run`"
    )
    watchdog.add_argument("--json", action="store_true", help="one JSON object")


def _add_backtest(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    backtest = commands.add_parser(
        "backtest",
        parents=[server],
        help="what the history checks would have alerted, when, and how much of it was right",
        description="Replay the history checks night by night over what is stored, each with what was known then, and "
        "hold the alerts against what people said: reasons of acknowledged alerts (unless they begin with "
        "'false'), and baselines that took the place of others. Changes nothing.",
    )
    backtest.add_argument("--since", metavar="TIME", help="nights of this date (UTC) or time and later; default: all")
    backtest.add_argument("--device", type=words, metavar="NAME", help="of this device: uuid or model name")
    backtest.add_argument(
        "--metric", action="append", default=[], choices=HISTORY_CHECKS, help="of this check; may be repeated"
    )
    backtest.add_argument(
        "--threshold",
        type=threshold,
        nargs="+",
        metavar="X",
        help="thresholds to compare, as normal scores of a shift (a drift's is 0.24 higher); default: the one in force",
    )
    backtest.add_argument("--json", action="store_true", help="a JSON array with one object a threshold")


def threshold(text: str) -> float:
    """A threshold as a number; refused by argparse otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 1 <= value <= 20:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 20, found {text!r}")
    return value


def _add_why(command: argparse.ArgumentParser) -> None:
    command.add_argument("--reason", required=True, type=words, metavar="TEXT", help="why, for whoever asks later")
    command.add_argument("--by", type=words, metavar="NAME", help="who decides it (default: your login name)")


def words(text: str) -> str:
    """Text that says something and that PostgreSQL can hold; refused by argparse otherwise."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected text, found bytes that are none") from None
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected some words, found {text!r}")
    return text.strip()

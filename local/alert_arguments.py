"""Arguments of `nightly alerts`; standard library only, so that help needs no environment."""

from __future__ import annotations

import argparse

from local.judging_arguments import words

Commands = argparse._SubParsersAction  # the type that argparse hands out has no public name
STATES = ("open", "acknowledged", "muted", "resolved")


def add_alert_commands(commands: Commands[argparse.ArgumentParser], server: argparse.ArgumentParser) -> None:
    """alerts list, show, ack, mute, resolve and test."""
    alerts = commands.add_parser(
        "alerts",
        help="what somebody has to look at: list, show, ack, mute, resolve; test the channels",
        description="One alert is open at most for each workload, device, metric and direction. It is told once on "
        "every channel; repeats only count. What is acknowledged or muted is not told again.",
    )
    actions = alerts.add_subparsers(dest="action", required=True, metavar="ACTION")

    listed = actions.add_parser("list", parents=[server], help="alerts that are not resolved, or all")
    listed.add_argument("--all", action="store_true", help="resolved ones, too")
    listed.add_argument("--state", choices=STATES, help="in this state only")
    listed.add_argument("--json", action="store_true", help="a JSON array with every field")

    show = actions.add_parser(
        "show", parents=[server], help="the whole text of one, and everything that happened to it"
    )
    _number(show)
    show.add_argument("--json", action="store_true", help="a JSON object with every field and event")

    ack = actions.add_parser(
        "ack", parents=[server], help="it was seen, and its cause is known: it is not told again while it lasts"
    )
    _answer(ack, "what is known of its cause")

    mute = actions.add_parser("mute", parents=[server], help="not to be told of it until then; every mute has an end")
    _answer(mute, "why not to be told")
    end = mute.add_mutually_exclusive_group(required=True)
    end.add_argument("--until", metavar="TIME", help="a date (its first moment in UTC) or a time with its UTC offset")
    end.add_argument("--for", dest="span", metavar="SPAN", help="as 12h, 7d or 2w")

    resolve = actions.add_parser(
        "resolve", parents=[server], help="it is over; seen again within two weeks it is opened again"
    )
    _answer(resolve, "what was done")

    actions.add_parser(
        "test",
        help="send a test message on every channel and say what each answered",
        description="Send a test message on every channel of NIGHTLY_ALERT_SMTP, NIGHTLY_ALERT_SLACK and "
        "NIGHTLY_ALERT_WEBHOOK (see docs/alerts.md) and say what each answered. Exit status 5 when one did not take "
        "it, 2 when there is none.",
    )


def _number(command: argparse.ArgumentParser) -> None:
    command.add_argument("number", type=int, metavar="N", help="number of the alert, as in its message")


def _answer(command: argparse.ArgumentParser, why: str) -> None:
    _number(command)
    command.add_argument("--reason", required=True, type=words, metavar="TEXT", help=f"{why}, for whoever asks later")
    command.add_argument("--by", type=words, metavar="NAME", help="who says it (default: your login name)")

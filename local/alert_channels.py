"""Channels of alerts from NIGHTLY_ALERT_SMTP, NIGHTLY_ALERT_SLACK and NIGHTLY_ALERT_WEBHOOK as Airflow connections.

Their addresses hold passwords, so no error repeats one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from local.errors import Usage

PREFIX = "NIGHTLY_ALERT_"
SMTP_FORM = "smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS,ADDRESS (smtps:// for TLS from the start)"
TIMEOUT_S = 10
NAMES = ("smtp", "slack", "webhook")
TLS = ("starttls", "none")


def connections(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables ``AIRFLOW_CONN_...`` for the channels that are set; raises ``Usage`` for an address that is none."""
    makers = {"SMTP": _smtp, "SLACK": _slack, "WEBHOOK": _webhook}
    found = {name: environment.get(PREFIX + name, "").strip() for name in makers}
    return {
        f"AIRFLOW_CONN_KERNEL_NIGHTLY_{name}": json.dumps(makers[name](address))
        for name, address in found.items()
        if address
    }


def in_words(environment: Mapping[str, str] = os.environ) -> str:
    """Which channels the environment sets, for whoever starts the nights; channels set in Airflow are not seen here."""
    names = [name for name in NAMES if environment.get(PREFIX + name.upper(), "").strip()]
    if names:
        return f"told by {' and '.join(names)} (./nightly alerts test)"
    variables = ", ".join(PREFIX + name.upper() for name in NAMES)
    return f"in the database and nowhere else; {variables} set a channel (docs/alerts.md)"


def _smtp(address: str) -> dict[str, Any]:
    parts = _split("SMTP", address, ("smtp", "smtps"), SMTP_FORM)
    given = parse_qs(parts.query, keep_blank_values=True)
    unknown = given.keys() - {"from", "to", "tls"}
    sender, to, tls = (given.get(name, [""])[-1].strip() for name in ("from", "to", "tls"))
    if unknown or not sender or not to or (tls or TLS[0]) not in TLS:
        raise Usage(f"{PREFIX}SMTP: expected {SMTP_FORM}, and tls=none where there is none; found another address")
    from_the_start = parts.scheme == "smtps"
    return {
        "conn_type": "smtp",
        "host": parts.hostname,
        "port": parts.port or (465 if from_the_start else 587),
        "login": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "extra": {
            "from_email": sender,
            "to": to,
            "disable_ssl": not from_the_start,
            "disable_tls": from_the_start or tls == "none",
            "timeout": TIMEOUT_S,
            "retry_limit": 0,  # attempts are counted, and told, by those who deliver
        },
    }


def _slack(address: str) -> dict[str, Any]:
    _split("SLACK", address, ("https", "http"), "the address of an incoming webhook, https://...")
    return {"conn_type": "slackwebhook", "password": address}


def _webhook(address: str) -> dict[str, Any]:
    _split("WEBHOOK", address, ("https", "http"), "an address such as https://HOST/PATH")
    return {"conn_type": "http", "host": address}


def _split(name: str, address: str, schemes: tuple[str, ...], form: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(letter.isspace() for letter in address):
        raise Usage(f"{PREFIX}{name}: expected {form}, found another address")
    return parts

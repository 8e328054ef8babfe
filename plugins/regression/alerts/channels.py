"""Where alerts are sent to: mail, Slack and a plain webhook, by Airflow's hooks and the connections they know.

A channel is there when its connection is: ``kernel_nightly_smtp``, ``kernel_nightly_slack``,
``kernel_nightly_webhook``. The hooks connect, with whatever such a connection may say; what they would log is not left
to them, because the address of a webhook is its password.
"""

from __future__ import annotations

import html
import json
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpu_tasks.records import InfrastructureFailure
from regression.alerts.redaction import no_requests_logged, secrets_of, silent_logger, without_secrets
from regression.alerts.texts import Message

if TYPE_CHECKING:
    from airflow.sdk import Connection
    from requests import Response, Session

TIMEOUT_S = 10
LONGEST_S = 25.0
"""For all of one message: one that sends a letter every few seconds never runs into the time-out of a socket."""
SHOWN_ANSWER = 100
READ_ANSWER = 400
SLACK_TAKES = 30_000
"""Letters, with something to spare for the quoting."""
log = logging.getLogger(__name__)
CONNECTIONS = {name: f"kernel_nightly_{name}" for name in ("smtp", "slack", "webhook")}


class DeliveryFailed(InfrastructureFailure):
    """A message was not taken; the text is one line without secrets."""


class Channel(ABC):
    """One way to tell people. ``connection`` is what Airflow knows of it."""

    name: str

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def send(self, message: Message, document: Mapping[str, Any]) -> str:
        """Send the message, for programs the document; returns what the other side said of it.

        Raises ``DeliveryFailed``, after ``LONGEST_S`` at the latest; no text of it, and nothing that is logged
        meanwhile, holds a secret.
        """
        answers: list[str | DeliveryFailed] = []
        sending = threading.Thread(target=lambda: answers.append(self._answer(message, document)), daemon=True)
        sending.start()
        sending.join(LONGEST_S)
        answer = answers[0] if answers else DeliveryFailed("too_slow", f"no answer within {LONGEST_S:g} s")
        if isinstance(answer, DeliveryFailed):
            raise answer
        return answer

    def _answer(self, message: Message, document: Mapping[str, Any]) -> str | DeliveryFailed:
        try:
            with no_requests_logged():
                return self._without_secrets(self._send(message, document))
        except DeliveryFailed as error:
            code, words = error.code, error.message
        except Exception as error:  # of the hook, or of any of the libraries below it
            code, words = "channel_failed", f"{type(error).__name__}: {error}"
        # Out of the handler: the error of a library, which names the address, must not be chained to this one.
        return DeliveryFailed(code, self._without_secrets(words))

    @abstractmethod
    def _send(self, message: Message, document: Mapping[str, Any]) -> str:
        """Send, and return what the other side said."""

    def _without_secrets(self, words: str) -> str:
        known, extra = self.connection, self.connection.extra_dejson
        secrets = {known.password or "", known.login or "", *_words_in(extra.get(n) for n in extra if n not in PUBLIC)}
        for address in (known.host, known.password):
            if address and "://" in address:
                secrets |= secrets_of(address)
        return without_secrets(words, secrets)


PUBLIC = ("to", "from_email", "disable_ssl", "disable_tls", "retry_limit", "timeout")
"""Fields of a connection's extra that may be told; all others may be tokens."""


def _words_in(values: Any) -> set[str]:
    return {value for value in values if isinstance(value, str)}


class Mail(Channel):
    """SMTP. The extra fields ``to`` (addresses, separated by commas) and ``from_email`` are needed."""

    name = "smtp"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:  # noqa: ARG002 - for programs
        from airflow.providers.smtp.hooks.smtp import SmtpHook

        extra = self.connection.extra_dejson
        recipients = [word.strip() for word in str(extra.get("to") or "").split(",") if word.strip()]
        if not (recipients and extra.get("from_email")):
            fields = "to and from_email in the connection's extra"
            raise DeliveryFailed("no_addresses", f"{self.connection.conn_id}: expected {fields}, found none")
        # Lines as they are, but broken where a telephone is narrower than they are long.
        body = f'<pre style="white-space: pre-wrap">{html.escape(message.body)}</pre>'
        refused = []
        with SmtpHook(smtp_conn_id=self.connection.conn_id) as hook:
            for address in recipients:  # one by one: of a mail to several, a single refused address would not be said
                try:
                    hook.send_email_smtp(to=[address], subject=message.subject, html_content=body)
                except OSError as error:
                    refused.append(f"{address}: {type(error).__name__}: {error}")
        if len(refused) == len(recipients):
            raise DeliveryFailed("mail_refused", " | ".join(refused))
        taken = f"taken for {len(recipients) - len(refused)} of {len(recipients)} addresses"
        return " | ".join([taken, *refused])


class Slack(Channel):
    """An incoming webhook of Slack, or of anything that takes the same.

    The hook knows the address; its client would follow a redirection without the message and call that delivered.
    """

    name = "slack"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:  # noqa: ARG002 - for programs
        import requests
        from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

        hook = SlackWebhookHook(
            slack_webhook_conn_id=self.connection.conn_id, timeout=TIMEOUT_S, logger=silent_logger()
        )
        client, body = hook.client, message.body.replace("```", "'''")
        words = f"*{html.escape(message.subject, quote=False)}*\n```{html.escape(body[:SLACK_TAKES], quote=False)}```"
        with requests.Session() as session:
            session.proxies = {"http": client.proxy, "https": client.proxy} if client.proxy else {}
            return _post(session, client.url, {"text": words})


class Webhook(Channel):
    """A plain webhook: the document as JSON in a POST request. Fields of the connection's extra are sent as headers."""

    name = "webhook"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:
        from airflow.providers.http.hooks.http import HttpHook

        hook = HttpHook(http_conn_id=self.connection.conn_id)
        with hook.get_conn() as session:
            return _post(session, hook.base_url, {**document, "subject": message.subject, "text": message.body})


def _post(session: Session, url: str, body: Mapping[str, Any]) -> str:
    with session.post(url, json=body, timeout=TIMEOUT_S, allow_redirects=False, stream=True) as answer:
        said = f"answered {answer.status_code} {' '.join(_beginning(answer).split())[:SHOWN_ANSWER]}".rstrip()
        if not 200 <= answer.status_code < 300:
            raise DeliveryFailed("not_accepted", said)
    return said


def _beginning(answer: Response) -> str:
    """The beginning of what was said, and no more of it than comes soon: the status has said the rest."""
    from requests import RequestException

    found, until = b"", time.monotonic() + TIMEOUT_S
    with suppress(RequestException):
        for piece in answer.iter_content(1):
            found += piece
            if len(found) >= READ_ANSWER or time.monotonic() >= until:
                break
    return found.decode("utf-8", "replace")


KINDS: dict[str, type[Channel]] = {kind.name: kind for kind in (Mail, Slack, Webhook)}


def configured(*, environment_only: bool = False) -> list[Channel]:
    """The channels whose connection Airflow knows.

    ``environment_only``: those in variables ``AIRFLOW_CONN_...`` of this process, where there is no Airflow to ask.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    if environment_only:
        _silence_hooks()
    found = []
    for name, connection_id in CONNECTIONS.items():
        variable = os.environ.get(f"AIRFLOW_CONN_{connection_id.upper()}")
        if environment_only and variable is None:
            continue
        if not _has_a_form(variable):
            log.error("connection %s: expected JSON or a URI, found neither; nobody is told on it", connection_id)
            continue
        try:
            found.append(KINDS[name](Connection.get(connection_id)))
        except AirflowNotFoundException:
            continue
        except Exception as error:  # one connection that cannot be read keeps nothing from the others
            log.error("connection %s cannot be read: %s", connection_id, type(error).__name__)
    return found


def _has_a_form(variable: str | None) -> bool:
    """Whether Airflow can read the variable; what it cannot it writes to the log, secrets and all."""
    try:
        return variable is None or isinstance(json.loads(variable), dict)
    except ValueError:
        with suppress(ValueError):
            return not variable or ("://" in variable and bool(urlsplit(variable).scheme))
    return False


def _silence_hooks() -> None:
    """Without Airflow around them its hooks would write every debugging line to the output of a command."""
    import structlog

    if not structlog.is_configured():
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

"""Where alerts are sent to: mail, Slack and a plain webhook, by Airflow's hooks and the connections they know.

A channel is there when its connection is: ``kernel_nightly_smtp``, ``kernel_nightly_slack``,
``kernel_nightly_webhook``. The hooks connect, with whatever such a connection may say; what they would log is not left
to them, because the address of a webhook is its password.
"""

from __future__ import annotations

import html
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpu_tasks.records import InfrastructureFailure
from regression.alerts.redaction import no_requests_logged, secrets_of, silent_logger, without_secrets
from regression.alerts.texts import Message

if TYPE_CHECKING:
    from airflow.sdk import Connection

TIMEOUT_S = 10
SHOWN_ANSWER = 100
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

        Raises ``DeliveryFailed``; no text of it, and nothing that is logged meanwhile, holds a secret.
        """
        try:
            with no_requests_logged():
                return self._without_secrets(self._send(message, document))
        except DeliveryFailed as error:
            code, words = error.code, error.message
        except Exception as error:  # of the hook, or of any of the libraries below it
            code, words = "channel_failed", f"{type(error).__name__}: {error}"
        # Out of the handler: the error of a library, which names the address, must not be chained to this one.
        raise DeliveryFailed(code, self._without_secrets(words))

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
        body = f"<pre>{html.escape(message.body)}</pre>"
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
    """An incoming webhook of Slack, or of anything that takes the same."""

    name = "slack"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:  # noqa: ARG002 - for programs
        from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook

        hook = SlackWebhookHook(
            slack_webhook_conn_id=self.connection.conn_id, timeout=TIMEOUT_S, logger=silent_logger()
        )
        words = f"*{html.escape(message.subject, quote=False)}*\n```{html.escape(message.body, quote=False)}```"
        answer = hook.client.send(text=words)
        return _accepted(answer.status_code, answer.body)


class Webhook(Channel):
    """A plain webhook: the document as JSON in a POST request. Fields of the connection's extra are sent as headers."""

    name = "webhook"

    def _send(self, message: Message, document: Mapping[str, Any]) -> str:
        from airflow.providers.http.hooks.http import HttpHook

        hook = HttpHook(http_conn_id=self.connection.conn_id)
        with hook.get_conn() as session:
            body = {**document, "subject": message.subject, "text": message.body}
            answer = session.post(hook.base_url, json=body, timeout=TIMEOUT_S, allow_redirects=False)
            return _accepted(answer.status_code, answer.text)


def _accepted(status: int, body: str) -> str:
    said = f"answered {status} {' '.join(body.split())[:SHOWN_ANSWER]}".rstrip()
    if not 200 <= status < 300:
        raise DeliveryFailed("not_accepted", said)
    return said


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
        if environment_only and f"AIRFLOW_CONN_{connection_id.upper()}" not in os.environ:
            continue
        try:
            found.append(KINDS[name](Connection.get(connection_id)))
        except AirflowNotFoundException:
            continue
    return found


def _silence_hooks() -> None:
    """Without Airflow around them its hooks would write every debugging line to the output of a command."""
    import structlog

    if not structlog.is_configured():
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

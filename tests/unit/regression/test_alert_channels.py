"""Channels against real receivers on this machine: what arrives, what is said of a failure, and that no secret is."""

from __future__ import annotations

import html
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from airflow.sdk import Connection
from hypothesis import given
from hypothesis import strategies as st

from local.alert_channels import connections
from local.errors import Usage
from regression.alerts.channels import CONNECTIONS, Channel, DeliveryFailed, configured
from regression.alerts.redaction import SHORTEST_SECRET, secrets_of, without_secrets
from regression.alerts.texts import Message
from tests.support.receivers import Inbox, Post, free_port, http_receiver, mail_receiver, one_letter_at_a_time

MESSAGE = Message("[nightly] qda: 5 % higher <now>", "qda:\n\nfound      0.63 mJ & more <b>\nlook       here\n")
DOCUMENT = {"kind": "kernel-nightly-alert", "alert_id": 12, "value": 0.63}
PASSWORD, USER, TOKEN, QUERY = "pa$$ w/rd+of:mail", "night@example.org", "T0secret/B0secret/x9Y8z7W6", "key=q-u-e-r-y"
Receivers = tuple[Inbox, Post]
SECRETS = (PASSWORD, USER, TOKEN, "T0secret", "B0secret", "x9Y8z7W6", "q-u-e-r-y", "pa%24%24", "webpass")


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with http_receiver() as found:
        yield found


@pytest.fixture
def post() -> Iterator[Post]:
    with mail_receiver(login=(USER, PASSWORD)) as found:
        yield found


@pytest.fixture
def receivers(inbox: Inbox, post: Post) -> Receivers:
    return inbox, post


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Everything that was logged, at any level, and written to both outputs."""
    caplog.set_level(logging.DEBUG)

    def read() -> str:
        both = capfd.readouterr()
        return f"{caplog.text} {both.out} {both.err}"

    return read


def channel(monkeypatch: pytest.MonkeyPatch, name: str, address: str) -> Channel:
    """The channel as the launcher sets it up."""
    for variable, value in connections({f"NIGHTLY_ALERT_{name.upper()}": address}).items():
        monkeypatch.setenv(variable, value)
    (found,) = configured(environment_only=True)
    assert found.name == name
    return found


def smtp_address(port: int, *, password: str = PASSWORD, to: str = "ann@example.org,bob@example.org") -> str:
    sender = "nightly@example.org"
    return f"smtp://{quote(USER)}:{quote(password, safe='')}@127.0.0.1:{port}/?from={sender}&to={to}&tls=none"


def webhook_address(port: int) -> str:
    return f"http://{USER.replace('@', '%40')}:webpass@127.0.0.1:{port}/hooks/{TOKEN}?{QUERY}"


def slack_address(port: int) -> str:
    return f"http://127.0.0.1:{port}/services/{TOKEN}"


def test_mail_arrives_at_everybody(monkeypatch: pytest.MonkeyPatch, post: Post) -> None:
    assert channel(monkeypatch, "smtp", smtp_address(post.port)).send(MESSAGE, DOCUMENT) == "taken for 2 of 2 addresses"
    assert [address for address, _ in post.mails] == ["ann@example.org", "bob@example.org"]
    _, mail = post.mails[0]
    assert (mail["Subject"], mail["From"], mail["To"]) == (MESSAGE.subject, "nightly@example.org", "ann@example.org")
    assert post.text_of().strip() == f'<pre style="white-space: pre-wrap">{html.escape(MESSAGE.body)}</pre>'
    assert set(post.logins) == {(USER, PASSWORD)}


def test_one_address_that_is_refused_does_not_keep_the_mail_from_the_others(
    monkeypatch: pytest.MonkeyPatch, post: Post
) -> None:
    mail = channel(monkeypatch, "smtp", smtp_address(post.port))
    post.refused = {"ann@example.org"}
    said = mail.send(MESSAGE, DOCUMENT)
    assert said.startswith("taken for 1 of 2 addresses | ann@example.org: SMTPRecipientsRefused:")
    assert [address for address, _ in post.mails] == ["bob@example.org"]
    post.refused |= {"bob@example.org"}
    with pytest.raises(DeliveryFailed, match="no such mailbox") as caught:
        mail.send(MESSAGE, DOCUMENT)
    assert caught.value.code == "mail_refused"


def test_slack_gets_subject_and_text_with_its_own_quoting(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    assert channel(monkeypatch, "slack", slack_address(inbox.port)).send(MESSAGE, DOCUMENT) == "answered 200 ok"
    ((path, _, body),) = inbox.requests
    assert path == f"/services/{TOKEN}"
    assert body == {
        "text": "*[nightly] qda: 5 % higher &lt;now&gt;*\n"
        "```qda:\n\nfound      0.63 mJ &amp; more &lt;b&gt;\nlook       here\n```"
    }


def test_a_webhook_gets_the_document_with_subject_and_text(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    inbox.status, inbox.said = 204, ""
    assert channel(monkeypatch, "webhook", webhook_address(inbox.port)).send(MESSAGE, DOCUMENT) == "answered 204"
    ((path, headers, body),) = inbox.requests
    assert path == f"/hooks/{TOKEN}?{QUERY}"
    assert headers["Authorization"].startswith("Basic ")
    assert body == DOCUMENT | {"subject": MESSAGE.subject, "text": MESSAGE.body}


def test_fields_of_the_connection_are_headers_of_a_webhook(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    url = f"http://127.0.0.1:{inbox.port}/x"
    value = json.dumps({"conn_type": "http", "host": url, "extra": {"Authorization": "Bearer s3cr3tbearer"}})
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_WEBHOOK", value)
    (webhook,) = configured(environment_only=True)
    inbox.status, inbox.said = 403, "who is s3cr3tbearer?"
    with pytest.raises(DeliveryFailed) as caught:
        webhook.send(MESSAGE, DOCUMENT)
    assert inbox.requests[0][1]["Authorization"] == "Bearer s3cr3tbearer"
    assert caught.value.message == "answered 403 who is ***?"


def wrong(monkeypatch: pytest.MonkeyPatch, name: str, fault: str, receivers: Receivers) -> Channel:
    """A channel whose other side is not there, refuses what it is sent, or repeats the secret that it was called by."""
    inbox, post = receivers
    inbox.status = {"refuses": 404, "moved": 302}.get(fault, 500)
    inbox.said = "no_service at {path}" + (f" for {USER} with webpass" if name == "webhook" else "")
    port = free_port()
    if name == "smtp":
        password = f"{PASSWORD}-wrong" if fault == "refuses" else PASSWORD
        return channel(monkeypatch, name, smtp_address(post.port if fault != "away" else port, password=password))
    address = slack_address if name == "slack" else webhook_address
    return channel(monkeypatch, name, address(inbox.port if fault != "away" else port))


@pytest.mark.parametrize(
    "case",
    [
        ("smtp", "away", "Connection refused"),
        ("smtp", "refuses", "SMTPAuthenticationError"),
        ("slack", "away", "Connection refused"),
        ("slack", "refuses", "answered 404 no_service"),
        ("slack", "moved", "answered 302"),
        ("slack", "broken", "answered 500"),
        ("webhook", "away", "Connection refused"),
        ("webhook", "refuses", "answered 404 no_service"),
        ("webhook", "moved", "answered 302"),
        ("webhook", "broken", "answered 500"),
    ],
)
def test_a_failure_is_told_and_no_secret_with_it(
    monkeypatch: pytest.MonkeyPatch, receivers: Receivers, written: Callable[[], str], case: tuple[str, str, str]
) -> None:
    """Neither in the error, nor in what it was made of, nor in anything that a library logs at any level."""
    name, fault, told = case
    failing = wrong(monkeypatch, name, fault, receivers)
    with pytest.raises(DeliveryFailed) as caught:
        failing.send(MESSAGE, DOCUMENT)
    assert told in caught.value.message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    everything = caught.value.message + written()
    assert [secret for secret in SECRETS if secret in everything] == []


HTTP = pytest.mark.parametrize(("name", "address"), [("slack", slack_address), ("webhook", webhook_address)])


@HTTP
def test_nobody_is_followed_to_where_nothing_was_delivered(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox, name: str, address: Callable[[int], str]
) -> None:
    inbox.status = 302
    with pytest.raises(DeliveryFailed, match="answered 302"):
        channel(monkeypatch, name, address(inbox.port)).send(MESSAGE, DOCUMENT)
    assert len(inbox.requests) == 1


@HTTP
def test_of_an_endless_answer_the_beginning_is_read(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox, name: str, address: Callable[[int], str]
) -> None:
    inbox.endless = True
    said = channel(monkeypatch, name, address(inbox.port)).send(MESSAGE, DOCUMENT)
    assert said == f"answered 200 {'x' * 100}"
    assert inbox.taken < inbox.pieces


@HTTP
def test_answers_are_words_whatever_they_hold(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox, name: str, address: Callable[[int], str]
) -> None:
    inbox.said = "fine\0\r\nBcc: x\x1b[31m \u202e\U0001f600"
    said = channel(monkeypatch, name, address(inbox.port)).send(MESSAGE, DOCUMENT)
    assert said == "answered 200 fine Bcc: x[31m \U0001f600"


@pytest.mark.parametrize(("name", "letter"), [("smtp", b"220-x\r\n"), ("slack", b"H"), ("webhook", b"H")])
def test_who_talks_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch, name: str, letter: bytes) -> None:
    monkeypatch.setattr("regression.alerts.channels.LONGEST_S", 0.5)
    with one_letter_at_a_time(letter) as port:
        address = {"smtp": smtp_address, "slack": slack_address, "webhook": webhook_address}[name](port)
        slow = channel(monkeypatch, name, address)
        with pytest.raises(DeliveryFailed, match=r"no answer within 0\.5 s") as caught:
            slow.send(MESSAGE, DOCUMENT)
    assert caught.value.code == "too_slow"


def test_words_of_others_stay_within_slacks_quoting(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    body = "label  ```<!channel> & <https://x.example|click>\n"
    channel(monkeypatch, "slack", slack_address(inbox.port)).send(Message("<!here>", body), DOCUMENT)
    assert inbox.bodies == [
        {"text": "*&lt;!here&gt;*\n```label  '''&lt;!channel&gt; &amp; &lt;https://x.example|click&gt;\n```"}
    ]


def test_what_slack_would_not_take_is_cut(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> None:
    channel(monkeypatch, "slack", slack_address(inbox.port)).send(Message("s", "x" * 100_000), DOCUMENT)
    (body,) = inbox.bodies
    assert len(body["text"]) < 40_000 and body["text"].endswith("x```")


@pytest.mark.parametrize("name", ["smtp", "slack", "webhook"])
def test_a_success_logs_no_secret_either(
    monkeypatch: pytest.MonkeyPatch, receivers: Receivers, written: Callable[[], str], name: str
) -> None:
    inbox, post = receivers
    inbox.said = "thank you for {path}"
    address = {"smtp": smtp_address(post.port), "slack": slack_address(inbox.port)}
    said = channel(monkeypatch, name, address.get(name) or webhook_address(inbox.port)).send(MESSAGE, DOCUMENT)
    everything = said + written()
    assert [secret for secret in SECRETS if secret in everything] == []


def test_a_mail_without_addresses_is_a_failure_that_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_SMTP", json.dumps({"conn_type": "smtp", "host": "127.0.0.1"}))
    (mail,) = configured(environment_only=True)
    with pytest.raises(DeliveryFailed, match="expected to and from_email in the connection's extra") as caught:
        mail.send(MESSAGE, DOCUMENT)
    assert caught.value.code == "no_addresses"


def test_only_channels_that_are_set_up_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for connection in CONNECTIONS.values():
        monkeypatch.delenv(f"AIRFLOW_CONN_{connection.upper()}", raising=False)
    assert configured(environment_only=True) == []
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_SLACK", json.dumps({"conn_type": "slackwebhook", "password": "x"}))
    assert [found.name for found in configured()] == ["slack"]


@pytest.mark.parametrize(
    "broken",
    ["s3cr3tword", '{"conn_type": "slackwebhook", "password": "https://x/s3cr3t', "http://[::1/s3cr3t", '["s3cr3t"]'],
)
def test_a_connection_that_is_none_is_named_and_keeps_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch, written: Callable[[], str], broken: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_SLACK", broken)
    monkeypatch.setenv("AIRFLOW_CONN_KERNEL_NIGHTLY_WEBHOOK", '{"conn_type": "http", "host": "https://x.org/s3cr3t"}')
    assert [found.name for found in configured(environment_only=True)] == ["webhook"]
    said = written()
    assert "connection kernel_nightly_slack: expected JSON or a URI, found neither" in said
    assert "s3cr3t" not in said


def test_a_connection_that_airflow_cannot_read_is_named(
    monkeypatch: pytest.MonkeyPatch, written: Callable[[], str]
) -> None:
    def read(connection_id: str) -> Connection:
        if connection_id == CONNECTIONS["smtp"]:
            raise RuntimeError("s3cr3t")
        return Connection(conn_id=connection_id, conn_type="http", host="https://x.org")

    monkeypatch.setattr(Connection, "get", read)
    assert [found.name for found in configured()] == ["slack", "webhook"]
    said = written()
    assert "connection kernel_nightly_smtp cannot be read: RuntimeError" in said
    assert "s3cr3t" not in said


@given(st.text(min_size=SHORTEST_SECRET), st.text(), st.text())
def test_no_secret_of_any_form_is_left(secret: str, before: str, behind: str) -> None:
    said = without_secrets(f"{before}{secret}{behind}", [secret])
    assert secret not in said or secret in "***"


@given(st.from_regex(r"[a-z0-9/+._-]{4,30}", fullmatch=True))
def test_paths_and_queries_of_addresses_are_secrets(path: str) -> None:
    address = f"https://user:passw0rd@host.example/{path}?token={path}"
    said = without_secrets(f"POST /{path}?token={path} at https://user:passw0rd@host.example", secrets_of(address))
    assert path not in said
    assert "passw0rd" not in said


def test_what_is_said_is_one_line_of_limited_length() -> None:
    said = without_secrets("a\n" * 1000, [])
    assert len(said.splitlines()) == 1
    assert len(said) == 300
    assert without_secrets("ordinary words", ["", "or", "a"]) == "ordinary words"


def words(**variables: str) -> dict[str, Any]:
    return {name.rpartition("_")[2].lower(): json.loads(value) for name, value in connections(variables).items()}


def test_addresses_become_connections() -> None:
    given = {
        "NIGHTLY_ALERT_SMTP": "smtp://night%40x.org:p%2Fw@mail.x.org/?from=n@x.org&to=a@x.org,b@x.org",
        "NIGHTLY_ALERT_SLACK": "https://hooks.slack.com/services/T/B/x",
        "NIGHTLY_ALERT_WEBHOOK": " https://x.org/hook?key=1 ",
    }
    found = words(**given)
    assert found["smtp"] == {
        "conn_type": "smtp",
        "host": "mail.x.org",
        "port": 587,
        "login": "night@x.org",
        "password": "p/w",
        "extra": {
            "from_email": "n@x.org",
            "to": "a@x.org,b@x.org",
            "disable_ssl": True,
            "disable_tls": False,
            "timeout": 10,
            "retry_limit": 0,
        },
    }
    assert found["slack"] == {"conn_type": "slackwebhook", "password": given["NIGHTLY_ALERT_SLACK"]}
    assert found["webhook"] == {"conn_type": "http", "host": "https://x.org/hook?key=1"}
    tls = words(NIGHTLY_ALERT_SMTP="smtps://mail.x.org/?from=n@x.org&to=a@x.org")["smtp"]
    assert (tls["port"], tls["extra"]["disable_ssl"], tls["extra"]["disable_tls"]) == (465, False, True)
    assert connections({"NIGHTLY_ALERT_SMTP": "", "OTHER": "x"}) == {}


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("SMTP", "mail.s3cret.org"),
        ("SMTP", "smtp://u:s3cret@/?from=a&to=b"),
        ("SMTP", "smtp://u:s3cret@host/?from=a"),
        ("SMTP", "smtp://u:s3cret@host/?from=a&to=b&cc=c"),
        ("SMTP", "smtp://u:s3cret@host/?from=a&to=b&tls=maybe"),
        ("SMTP", "smtp://u:s3cret@host:port/?from=a&to=b"),
        ("SLACK", "hooks.slack.com/services/s3cret"),
        ("SLACK", "https://hooks.slack.com/services/s3 cret"),
        ("WEBHOOK", "ftp://host/s3cret"),
        ("WEBHOOK", "http://[::1/s3cret"),
        ("WEBHOOK", "http:///s3cret"),
    ],
)
def test_addresses_that_are_none_are_refused_and_not_repeated(name: str, address: str) -> None:
    with pytest.raises(Usage, match=f"NIGHTLY_ALERT_{name}: expected ") as caught:
        connections({f"NIGHTLY_ALERT_{name}": address})
    assert "s3" not in str(caught.value)
    assert caught.value.__cause__ is None

"""Real receivers of alerts on this machine: an HTTP server that keeps what it was sent, and a mail server."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

_HELD: list[socket.socket] = []


def free_port() -> int:
    """A port on which nobody listens, nor will: it stays taken, or a test beside this one might be given it."""
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    _HELD.append(found)
    return int(found.getsockname()[1])


@dataclass
class Inbox:
    """What an HTTP server was sent: path, headers and JSON body of each request; ``status`` and ``said`` it answers.

    ``endless``: it goes on answering for ``pieces`` MiB, and says in ``taken`` how many were taken from it.
    """

    port: int = 0
    status: int = 200
    said: str = "ok"
    endless: bool = False
    pieces: int = 100
    taken: int = 0
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.requests]


@contextmanager
def http_receiver() -> Iterator[Inbox]:
    """A server on a free port."""
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.requests.append((self.path, dict(self.headers), json.loads(content)))
            answer = inbox.said.format(path=self.path).encode()
            self.send_response(inbox.status)
            if inbox.endless:
                self.end_headers()
                self.go_on()
                return
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Location", f"{self.path}/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def do_GET(self) -> None:
            """Where a redirection leads to: everything is fine there, and nothing was delivered."""
            inbox.requests.append((self.path, dict(self.headers), None))
            self.send_response(200)
            self.end_headers()

        def go_on(self) -> None:
            with suppress(OSError):
                for _ in range(inbox.pieces):
                    self.wfile.write(b"x" * (1 << 20))
                    inbox.taken += 1

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    inbox.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield inbox
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def one_letter_at_a_time(letter: bytes, pause_s: float = 0.05, letters: int = 200) -> Iterator[int]:
    """A server that never ends its first line, so that no time-out of a socket ever comes; gives its port."""
    ended = threading.Event()

    def talk(listening: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with closing(connection):
                for _ in range(letters):
                    connection.sendall(letter)
                    if ended.wait(pause_s):
                        return

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=talk, args=(server,), daemon=True)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            ended.set()
            server.close()
            thread.join(10)


@dataclass
class Post:
    """What a mail server was sent: the addressee of each mail and the mail; it refuses ``refused`` addresses."""

    port: int = 0
    login: tuple[str, str] | None = None
    refused: set[str] = field(default_factory=set)
    mails: list[tuple[str, EmailMessage]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such mailbox here"
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        mail = message_from_bytes(content, policy=policy.default)
        self.mails += [(address, mail) for address in envelope.rcpt_tos]
        return "250 kept"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        given = (data.login.decode(), data.password.decode())
        self.logins.append(given)
        return AuthResult(success=given == self.login, handled=given == self.login)

    def text_of(self, number: int = 0) -> str:
        """The text of a mail, as a reader sees it."""
        part = self.mails[number][1].get_body(("html",))
        assert part is not None
        return str(part.get_content())


class _OnAnyPort(Controller):
    """Listens on a port that is found by listening there: one that was only looked for could be another's by then."""

    def _create_server(self) -> Awaitable[asyncio.AbstractServer]:
        listening = socket.create_server((self.hostname, 0))
        self.port = listening.getsockname()[1]
        return self.loop.create_server(self._factory_invoker, sock=listening)


@contextmanager
def mail_receiver(login: tuple[str, str] | None = None) -> Iterator[Post]:
    """A server on a free port, without TLS; with ``login`` it takes mail after that only."""
    post = Post(login=login)
    words: dict[str, Any] = {"auth_require_tls": False}
    if login:
        words |= {"authenticator": post.authenticate, "auth_required": True}
    controller = _OnAnyPort(post, hostname="127.0.0.1", ready_timeout=120.0, **words)
    controller.start()
    post.port = controller.port
    try:
        yield post
    finally:
        controller.stop()

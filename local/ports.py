"""TCP ports for servers that have to be told one: kept for them until they listen."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"


@contextmanager
def reserved(preferred: int | None = None) -> Iterator[int]:
    """A free port of this machine, ``preferred`` if that is free, which nobody is given by chance within this block.

    It is bound here and not listened on: the kernel then gives it to no program that asks for any port, and a server
    can listen on it all the same, as both set SO_REUSEADDR. A port that was only looked for could be another's by the
    time that a server has started, which takes Airflow's many seconds.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((HOST, preferred or 0))
        except OSError:  # in use by now
            held.bind((HOST, 0))
        yield int(held.getsockname()[1])

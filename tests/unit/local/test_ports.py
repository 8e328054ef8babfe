"""Ports are kept for the servers that are told them."""

from __future__ import annotations

import socket

import pytest

from local.ports import HOST, reserved


def test_nobody_else_has_it_and_a_server_can_listen_on_it() -> None:
    with reserved() as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
        with socket.create_server((HOST, port)), socket.create_connection((HOST, port)):
            pass


def test_it_is_free_afterwards() -> None:
    with reserved() as port:
        pass
    with socket.socket() as other:
        other.bind((HOST, port))


def test_the_one_that_is_preferred_is_taken_where_it_is_free() -> None:
    with socket.create_server((HOST, 0)) as server:
        taken = server.getsockname()[1]
        with reserved(taken) as port:
            assert port not in (0, taken)
    with reserved(taken) as port:
        assert port == taken

"""Tests the error messages that explain why a NATS server, or another program, cannot be used
(WIRE-NETWORKS.md 17.1, 17.3).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from typing import Any

import pytest

from weft import net
from weft._net import server_faults as _net_faults
from weft._net import tls as _net_tls
from weft.errors import BadUse


class _ServerThatSends:
    """A server that sends some bytes first, and then nothing."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.port = self._listens.getsockname()[1]
        self.url = f"tls://127.0.0.1:{self.port}"
        self._open: list[socket.socket] = []
        self._serves = threading.Thread(target=self._serve, daemon=True)
        self._serves.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                came, _ = self._listens.accept()
                came.sendall(self._first)
                self._open.append(came)

    def heard(self) -> bytes:
        """Returns the bytes that the first client has sent, once that client has disconnected."""
        heard = b""
        while data := self._open[0].recv(4096):
            heard += data
        return heard

    def close(self) -> None:
        self._listens.shutdown(socket.SHUT_RDWR)
        self._listens.close()
        self._serves.join()
        for one in self._open:
            one.close()


INFO = b'INFO {"server_id": "x", "version": "2.14.9", "max_payload": 9, %s}\r\n'
OTHERS = {
    "another server": (b"220 mail\r\n", r"is no NATS server: it begins with b'220 mail"),
    "one that says nothing": (b"", "is no NATS server: it says nothing. Is the port right"),
    "no TLS": (INFO % b'"jetstream": true', "has no TLS by the authority of these keys"),
    "no JetStream": (INFO % b'"tls_required": true', "has no JetStream"),
    "no fields": (b"INFO rubbish\r\n", "has no TLS by the authority"),
    "another": (INFO % b'"tls_required": true, "jetstream": true', "the client failed .why"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_why_a_server_cannot_be_used(kind, monkeypatch):
    """The error names what listens at the server's address."""
    monkeypatch.setattr(_net_faults, "SPEAKS", 0.2)
    first, says = OTHERS[kind]
    other = _ServerThatSends(first)
    try:
        assert re.search(says, asyncio.run(_net_faults.sentence(other.url, OSError(), "why")))
    finally:
        other.close()


def test_nothing_is_said_in_the_clear(keys, monkeypatch):  # wire 17.1
    """An attacker between client and server removes the request for TLS from the server's first
    line; the client then sends nothing."""
    monkeypatch.setattr(_net_faults, "SPEAKS", 0.2)
    other = _ServerThatSends(INFO % b'"tls_required": false, "jetstream": true')
    try:
        with pytest.raises(
            BadUse, match=r"no TLS by the authority of these keys: it speaks in the"
        ):
            net.join(other.url, keys=keys, relay="only")
        assert other.heard() == b""
    finally:
        other.close()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (socket.gaierror(-2, "Name or service not known"), "no machine has the name"),
        (ConnectionRefusedError(), "nothing listens at"),
        (asyncio.TimeoutError(), "a firewall lets nothing through to that port"),
        (OSError(113, "No route to host"), r"no way leads to .*No route to host.*a firewall"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_why_nothing_is_reached(error, says, keys, monkeypatch):
    """The error of a failed connection explains the failure, with a server and with another
    program."""

    async def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(asyncio, "open_connection", fails)
    found = asyncio.run(_net_faults.sentence("tls://lab1:4222", OSError(), ""))
    assert re.search(says, found)
    monkeypatch.setattr(_net_tls, "connect", fails)
    with pytest.raises(OSError, match=says.replace("is up", "")):
        net.connect("lab1:4222", keys=keys)


def test_a_port_of_another_server(keys, monkeypatch):
    """If a program connects to a server that is not a Weft program, the error says so."""
    other = _ServerThatSends(b"SSH-2.0-OpenSSH_9.2\r\n")
    try:
        with pytest.raises(BadUse, match="speaks no TLS, so it is no Weft program"):
            net.connect(f"127.0.0.1:{other.port}", keys=keys)
    finally:
        other.close()

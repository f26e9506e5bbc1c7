"""Tests connections without a first message (WIRE-NETWORKS.md 17.2): a listener keeps few of them,
and continues to serve others.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from weft._net import first_messages as _first
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import tls as _net_tls


async def refuse(_: Any) -> Any:
    raise _net_link.Refused("of the test")


_there: set[Any] = set()  # the connections of the listener
_kept: list[asyncio.StreamWriter] = []  # the test's ends of the connections


@pytest.fixture(autouse=True)
def all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    way = _net_tls._OverTcp
    made, lost = way.connection_made, way.connection_lost

    def counted(self: Any, transport: Any) -> None:
        if self._coming is not None:
            _there.add(self)
        made(self, transport)

    def gone(self: Any, error: Any) -> None:
        _there.discard(self)
        lost(self, error)

    monkeypatch.setattr(way, "connection_made", counted)
    monkeypatch.setattr(way, "connection_lost", gone)


@contextlib.asynccontextmanager
async def listener(keys: Path) -> AsyncIterator[tuple[str, int]]:
    received = _net_link.receiver(refuse)
    server = await _net_link.serve(_net_keys.context(keys, server=True), "127.0.0.1:0", received)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for writer in _kept:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        _kept.clear()
        while _there or asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0.01)


def limits(monkeypatch: pytest.MonkeyPatch, enough: int, most: int, soon: float) -> None:
    monkeypatch.setattr(_net_link, "GREETING", 10_000.0)  # no limit ends a connection
    for name, value in {"MANY": enough, "TOO_MANY": most, "FRESH": soon}.items():
        monkeypatch.setattr(_net_tls.Coming, name, value)


async def connected(keys: Path, where: tuple[str, int], how: str) -> asyncio.StreamReader:
    """Connects, and stops at the step that `how` names."""
    if how == "silent":
        reader, writer = await asyncio.open_connection(*where)
    else:
        tls = _net_keys.context(keys, server=False)
        reader, writer = await asyncio.open_connection(*where, ssl=tls)
        if how == "begun":
            writer.write(_first.MAGIC)
    _kept.append(writer)
    return reader


async def answered(keys: Path, where: tuple[str, int]) -> bool:
    """Returns whether the listener answers a connection with a first message."""
    tls = _net_keys.context(keys, server=False)
    reader, writer = await asyncio.open_connection(*where, ssl=tls)
    writer.write(_first.packed({"host": "client"}))
    data = await reader.read()
    _kept.append(writer)
    return b"of the test" in data


@pytest.mark.parametrize("how", ["silent", "shaken", "begun"])
def test_the_oldest_of_many_who_say_nothing_goes(keys, monkeypatch, how):  # wire 17.2
    limits(monkeypatch, 3, 100, 0.0)

    async def main() -> None:
        async with listener(keys) as where:
            received = [await connected(keys, where, how) for _ in range(7)]
            # These connections are closed too, but not because they are slow.
            for reader in received[:4]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            assert await answered(keys, where)
            assert not any(reader.at_eof() for reader in received[-2:])

    asyncio.run(main())


def test_many_who_come_at_once_are_all_heard(keys, monkeypatch):  # wire 17.2
    limits(monkeypatch, 2, 100, 280.0)

    async def main() -> None:
        async with listener(keys) as where:
            assert all(await asyncio.gather(*(answered(keys, where) for _ in range(20))))

    asyncio.run(main())


def test_there_are_never_more_than_most(keys, monkeypatch):  # wire 17.2
    limits(monkeypatch, 2, 5, 280.0)

    async def main() -> None:
        async with listener(keys) as where:
            received = [await connected(keys, where, "silent") for _ in range(9)]
            for reader in received[:4]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            assert not any(reader.at_eof() for reader in received[4:])

    asyncio.run(main())


def test_a_session_is_none_of_those_who_come(keys, monkeypatch):  # wire 17.2
    """A connection whose first message has arrived is not closed because of later connections."""
    coming = _net_tls.Coming()
    limits(monkeypatch, 1, 1, 0.0)

    class Way:
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    async def main() -> None:
        first, *others = ways = [Way() for _ in range(4)]
        coming.add(first)
        coming.has_come(first)
        for way in others:
            coming.add(way)
        assert [way.aborted for way in ways] == [False, True, True, False]

    asyncio.run(main())


@pytest.mark.soak
def test_900_who_say_nothing_leave_no_memory_behind(keys):  # wire 17.2
    def resident() -> int:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096 >> 20

    async def main() -> None:
        tls = _net_keys.context(keys, server=False)
        async with listener(keys) as where:
            assert await answered(keys, where)
            before = resident()
            ways = []
            for _ in range(900):
                there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
                with contextlib.suppress(ssl.SSLWantReadError):
                    tls.wrap_bio(back, there).do_handshake()
                way = socket.create_connection(where)
                way.sendall(there.read())
                ways.append(way)
                await asyncio.sleep(0)
            for way in ways:
                way.close()
            while len(_there) > 1:
                await asyncio.sleep(0.1)
            await asyncio.sleep(2 * _net_tls.Coming.FRESH)  # by then the memory has been released
            assert resident() - before < 20

    asyncio.run(main())

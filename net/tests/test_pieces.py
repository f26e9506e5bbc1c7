"""Tests how a session's bytes are carried, and how they end (WIRE-NETWORKS.md 17.13): with two
carriers over TCP, with and without TLS, and with links that are only sockets, like the links to the
OS processes of an agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from weft import threads as th
from weft._extension import native as _native
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import tls as _net_tls
from weft._net.incoming import LARGEST, PIECE, Incoming
from weft._net.link import couple

HEARD = 300.0  # seconds after which a test that hangs fails


@pytest.fixture(params=["tls", "tcp"], autouse=True)
def ways(request, monkeypatch, keys):
    """Chooses whether the carriers' connection has TLS."""
    monkeypatch.setattr(sys.modules[__name__], "KEYS", keys if request.param == "tls" else None)
    return request.param


KEYS: Any = None  # the keys of the connection; None if it has no TLS


async def over_tcp() -> tuple[Any, Any]:
    """Opens a connection. Returns the two ends, each with its reader and writer."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[Any] = loop.create_future()

    async def comes(*both: Any) -> None:
        arrived.set_result(both)

    if KEYS is not None:
        server = await _net_tls.listen(
            _net_keys.context(KEYS, server=True), comes, "127.0.0.1", 0, LARGEST, HEARD
        )
        where = server.sockets[0].getsockname()
        tls = _net_keys.context(KEYS, server=False)
        there = await _net_tls.connect(tls, *where[:2], LARGEST, HEARD)
    else:

        def protocol(*signal: Any) -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(Incoming(loop=loop), *signal, loop=loop)

        server = await loop.create_server(lambda: protocol(comes), "127.0.0.1", 0)
        reader = Incoming(loop=loop)
        transport, mine = await loop.create_connection(
            lambda: asyncio.StreamReaderProtocol(reader, loop=loop),
            *server.sockets[0].getsockname()[:2],
        )
        there = reader, asyncio.StreamWriter(transport, mine, reader, loop)
    server.close()
    return there, await arrived


def says_no_more(writer: asyncio.StreamWriter) -> None:
    """Announces that no more bytes will be sent. With TLS this ends both directions."""
    if writer.can_write_eof():
        writer.write_eof()
    else:
        writer.close()


async def with_a_link(
    end: Any, takes: int | None = None
) -> tuple[asyncio.Task[None], socket.socket]:
    """Returns a carrier for the end (`reader`, `writer`) of a connection, and the link's side of
    the carrier's socket pair. `takes` is how many bytes the pair holds.
    """
    ours, link = socket.socketpair()
    if takes is not None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, takes)
    link.setblocking(False)
    return asyncio.ensure_future(couple(ours, end)), link


async def both(takes: int | None = None) -> tuple[Any, Any]:
    """Returns two carriers over a connection. `takes` is how many bytes the links hold; the system
    has a lower bound for this.
    """
    one, other = await over_tcp()
    return await with_a_link(one, takes), await with_a_link(other, takes)


async def sends(link: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(link, data)


async def pours(link: socket.socket) -> None:
    """Sends bytes endlessly."""
    with contextlib.suppress(OSError):
        while True:
            await sends(link, b"y" * (1 << 18))
            await asyncio.sleep(0)


async def received(link: socket.socket, most: int = 1 << 30) -> bytes:
    """Returns the bytes that arrive until the end, or until `most` bytes have arrived."""
    data = b""
    with contextlib.suppress(ConnectionResetError):  # a reset, after unread bytes, is an end too
        while len(data) < most and (more := await recv(link)):
            data += more
    return data


async def recv(link: socket.socket) -> bytes:
    return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(link, 1 << 16), HEARD)


def test_what_was_said_before_the_end_arrives_whatever_comes_against_it():  # wire 17.13
    async def once(last: bytes) -> None:
        (leaves, a), (stays, b) = await both()
        against = asyncio.ensure_future(pours(b))
        await sends(a, last)
        a.close()
        assert await received(b) == last
        b.close()
        await asyncio.wait_for(asyncio.gather(leaves, stays), HEARD)
        await against

    async def often() -> None:
        for i in range(60):
            await once(bytes(i % 7) + b"x" * (i * i))

    asyncio.run(often())


def test_a_link_that_closes_with_something_unread_has_said_what_it_said():  # wire 17.13
    async def network() -> None:
        (leaves, a), (stays, b) = await both()
        await sends(b, b"never read")
        await asyncio.get_running_loop().sock_recv(a, 1)  # by now the other bytes have arrived too
        await sends(a, b"last")
        a.close()
        assert await received(b) == b"last"
        b.close()
        await asyncio.wait_for(asyncio.gather(leaves, stays), HEARD)

    asyncio.run(network())


def test_more_than_one_piece_and_both_directions():  # wire 17.13
    async def network() -> None:
        (first, a), (second, b) = await both()
        data = bytes(range(256)) * 4096
        sent = asyncio.gather(sends(a, data), sends(b, data))
        assert await received(b, len(data)) == data
        assert await received(a, len(data)) == data
        await sent
        a.close()
        assert await received(b) == b""
        b.close()
        await asyncio.wait_for(asyncio.gather(first, second), HEARD)

    asyncio.run(network())


def test_without_a_descriptor_for_a_thread_the_loop_passes_on(ways, monkeypatch):  # wire 17.13
    async def network() -> None:
        one, other = await over_tcp()

        def none() -> None:
            raise OSError(errno.EMFILE, "of the test")

        # A thread of a test before this one may still be ending.
        before = set(threading.enumerate())
        monkeypatch.setattr(_net_link.os, "pipe", none)
        (first, a), (second, b) = await with_a_link(one), await with_a_link(other)
        await asyncio.sleep(0)  # both carriers have begun
        monkeypatch.undo()
        for n in (1, 100_000):
            sent = asyncio.ensure_future(sends(a, b"x" * n))
            assert await received(b, n) == b"x" * n
            await sent
        more = set(threading.enumerate()) - before
        assert not [t for t in more if t.name == "weft: passes on"]
        a.close()
        assert await received(b) == b""
        b.close()
        await asyncio.wait_for(asyncio.gather(first, second), HEARD)

    asyncio.run(network())


def test_an_os_process_that_takes_little_at_a_time():  # wire 17.13
    """Bytes that TLS still holds when no more bytes arrive are forwarded too."""

    async def network() -> None:
        (first, a), (second, b) = await both(takes=1)
        for n in (1 << 15, 1 << 16, 100_000):
            sent = asyncio.ensure_future(sends(a, b"x" * n))
            assert await received(b, n) == b"x" * n
            await sent
        a.close()
        b.close()
        await asyncio.wait_for(asyncio.gather(first, second), HEARD)

    asyncio.run(network())


def test_both_leave_at_once():  # wire 17.13
    async def network() -> None:
        (first, a), (second, b) = await both()
        a.close()
        b.close()
        await asyncio.wait_for(asyncio.gather(first, second), HEARD)

    asyncio.run(network())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack("<I", _net_link.LARGEST + 1) + b"z" * 100, id="too long a piece"),
        pytest.param(struct.pack("<I", 2**32 - 1), id="the longest that can be said"),
        pytest.param(b"\1\0", id="half a length"),
        pytest.param(struct.pack("<I", 9) + b"four", id="half a piece"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_piece_ends_the_connection_and_reaches_nobody(data):  # wire 17.13
    async def network() -> None:
        one, (reader, writer) = await over_tcp()
        carrier, link = await with_a_link(one)
        writer.write(struct.pack("<I", 5) + b"whole" + data)
        says_no_more(writer)
        assert await received(link) == b"whole"
        await asyncio.wait_for(carrier, HEARD)
        if writer.can_write_eof():
            assert await asyncio.wait_for(reader.read(), HEARD) == struct.pack("<I", 0)
        writer.close()
        link.close()

    asyncio.run(network())


def test_a_side_that_has_sent_all_stays_until_the_other_has():  # wire 17.13
    async def network() -> None:
        one, (reader, writer) = await over_tcp()
        carrier, link = await with_a_link(one)
        await sends(link, b"last")
        link.close()
        last = struct.pack("<I", 4) + b"last" + struct.pack("<I", 0)
        assert await asyncio.wait_for(reader.readexactly(len(last)), HEARD) == last
        for _ in range(40):  # more than the system buffers for a reader that does not read
            writer.write(struct.pack("<I", 200_000) + bytes(200_000))
            await asyncio.wait_for(writer.drain(), HEARD)
        assert not carrier.done()
        writer.write(struct.pack("<I", 0))
        assert await asyncio.wait_for(reader.read(), HEARD) == b""  # an end, and no reset
        await asyncio.wait_for(carrier, HEARD)
        writer.close()

    asyncio.run(network())


def test_a_peer_that_never_says_all_is_left_in_time(monkeypatch):  # wire 17.13
    monkeypatch.setattr(_net_link, "GREETING", 0.2)

    async def network() -> None:
        one, (reader, writer) = await over_tcp()
        carrier, link = await with_a_link(one)
        await sends(link, b"last")
        link.close()
        assert await asyncio.wait_for(reader.read(-1), HEARD) == (
            struct.pack("<I", 4) + b"last" + struct.pack("<I", 0)
        )
        await asyncio.wait_for(carrier, HEARD)
        writer.close()

    asyncio.run(network())


def test_a_link_that_is_slow_gets_all_that_was_said_before_the_end():  # wire 17.13
    async def network() -> None:
        one, (_, writer) = await over_tcp()
        carrier, link = await with_a_link(one)
        pieces = [bytes([i]) * (1 + 10_007 * i) for i in range(25)]
        for piece in pieces:
            writer.write(struct.pack("<I", len(piece)) + piece)
        writer.write(struct.pack("<I", 0))
        for _ in range(100):  # data that arrives while nothing is read from the link
            await asyncio.sleep(0)
        assert not carrier.done()
        got = b""
        while len(got) < sum(map(len, pieces)):
            got += await asyncio.wait_for(asyncio.get_running_loop().sock_recv(link, 3000), HEARD)
        assert got == b"".join(pieces)
        link.close()
        await asyncio.wait_for(carrier, HEARD)
        writer.close()

    asyncio.run(network())


def test_pieces_may_come_in_any_parts():  # wire 17.13
    async def network() -> None:
        one, (_, writer) = await over_tcp()
        carrier, link = await with_a_link(one)
        pieces = b"".join(struct.pack("<I", n) + bytes([n]) * n for n in range(1, 30))
        for at in range(0, len(pieces), 3):
            writer.write(pieces[at : at + 3])
            await writer.drain()
            await asyncio.sleep(0)
        says_no_more(writer)
        assert await received(link) == b"".join(bytes([n]) * n for n in range(1, 30))
        link.close()
        await asyncio.wait_for(carrier, HEARD)
        writer.close()

    asyncio.run(network())


@pytest.mark.parametrize("most", [10, 300, (1 << 16) - PIECE.size])
def test_a_session_says_whole_frames(most):  # wire 17.13
    """Whole frames let the reader of a large value use each frame in the buffer in which it
    arrived."""
    link = _native._Link(-1, "whole", False, False, 0, 0, 0, 1)
    feed = link.feed()
    kept = [th.Channel(f"c{i}") for i in range(2000)]
    for i, c in enumerate(kept):
        link.give(c.reader(), f"end {i}".replace(" ", "-") + "x" * (i % 40))
    frames = 0
    while piece := feed.output(most):
        (size,) = PIECE.unpack_from(piece)
        assert size == len(piece) - PIECE.size
        at, within = PIECE.size, 0
        while at < len(piece):
            at += struct.unpack_from("<H", piece, at)[0]
            within += 1
        assert at == len(piece) and (size <= most or within == 1)
        frames += within
    assert frames == 1 + len(kept)  # HELLO, and a GIVE for each end
    link.close("the test is over")


def descriptors() -> set[str]:
    return {p.name for p in Path("/proc/self/fd").iterdir()}


def test_one_that_is_cancelled_lets_go_of_all(ways):  # wire 17.13
    """The carrier is cancelled while bytes go both ways: each side reads the end of the bytes, and
    no thread or descriptor remains.
    """

    async def network() -> None:
        (leaves, a), (stays, b) = await both()
        await sends(a, b"first")
        assert await received(b, 5) == b"first"
        pouring = [asyncio.ensure_future(pours(link)) for link in (a, b)]
        await received(b, 1 << 20)
        leaves.cancel()
        await asyncio.gather(leaves, received(a), received(b), return_exceptions=True)
        a.close()
        b.close()
        await asyncio.wait_for(asyncio.gather(stays, *pouring), HEARD)

    def once() -> None:
        asyncio.run(network())
        for thread in [t for t in threading.enumerate() if t.name == "weft: passes on"]:
            thread.join(HEARD)  # the thread has nothing left to wait for
            assert not thread.is_alive()

    once()
    before = len(descriptors())
    once()
    # Descriptors of an earlier test may have been released since.
    assert len(descriptors()) <= before


def test_between_machines_no_loop_passes_on(ways, monkeypatch):  # wire 17.10
    """Over TCP with TLS a thread forwards the bytes, because a loop in Python would take longer
    than everything else.
    """

    async def never(*_: Any) -> None:
        raise AssertionError("it came to the loop")

    if ways == "tls":
        monkeypatch.setattr(_net_link, "_carry_out", never)
        monkeypatch.setattr(Incoming, "onward", never)

    async def network() -> None:
        (leaves, a), (stays, b) = await both()
        for n in (1, 1000, 1 << 20):
            sent = asyncio.ensure_future(sends(a, b"x" * n))
            got = b""
            while len(got) < n:
                got += await recv(b)
            assert got == b"x" * n
            await sent
        a.close()
        assert await received(b) == b""
        b.close()
        await asyncio.wait_for(asyncio.gather(leaves, stays), HEARD)

    asyncio.run(network())

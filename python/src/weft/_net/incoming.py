"""Passes on the bytes from another machine within the loop's callbacks. Waking a task for each
piece would take longer than all other work that a small piece needs (WIRE-NETWORKS.md 17.13).

    Incoming: a StreamReader, until onward() is called
        ──onward(feed)──► all bytes go into the session as they come
        ──onward(socket)──► each piece goes to the socket once it is whole
              the socket takes no more: the connection is not read ──it does again──► the rest goes
        ──the peer has finished, or its connection has ended──► over

Invariants
- All of this runs on the loop's thread.
- This module keeps only part of a piece, and the bytes of one call of feed_data() that the socket
  did not take. While such bytes are kept, the connection is not read.
- Bytes for a socket that has closed are still read: closing a connection with unread bytes resets
  it, and a reset may destroy the bytes that were sent last.
"""

from __future__ import annotations

import abc
import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["LARGEST", "PIECE", "Incoming", "read_pieces", "write_pieces"]

LARGEST = 1 << 18  # the largest number of bytes of a piece
PIECE = struct.Struct("<I")  # the length before each piece of a session's bytes


class _Onward(abc.ABC):
    """Splits the incoming bytes into pieces, and passes each to _part()."""

    def __init__(self) -> None:
        self._head = b""  # the bytes of a piece's length that have arrived so far
        self._left = 0  # how many bytes of the piece are still to arrive
        self._peer_finished = False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        if not self._left and not self._head and not self._peer_finished and len(rest) > PIECE.size:
            (size,) = PIECE.unpack_from(rest)
            if size + PIECE.size == len(rest) and size <= LARGEST:  # the usual case
                self._part(rest[PIECE.size :])
                return
        while rest and not self._peer_finished:
            if not self._left:
                lacks = PIECE.size - len(self._head)
                self._head += rest[:lacks]
                rest = rest[lacks:]
                if len(self._head) < PIECE.size:
                    return
                (self._left,) = PIECE.unpack(self._head)
                self._head = b""
                if not 0 < self._left <= LARGEST:
                    self.end()
                continue
            now, rest = rest[: self._left], rest[self._left :]
            self._left -= len(now)
            self._part(now)

    @abc.abstractmethod
    def _part(self, now: memoryview) -> None:
        """Receives a part of a piece, which is the last part if self._left is 0."""

    def end(self) -> None:
        """Records that no more bytes will arrive."""
        self._peer_finished = True
        if not self.over.done():
            self.over.set_result(None)

    @abc.abstractmethod
    def close(self) -> None:
        """Drops the reference to the receiver, which no longer waits for the bytes."""


class _ToSession(_Onward):
    """Passes pieces into a session, which accepts all of them."""

    def __init__(self, take: Callable[[memoryview], object]) -> None:
        super().__init__()
        self._take = take

    def _part(self, now: memoryview) -> None:
        self._take(now)

    def close(self) -> None:
        self._take = lambda _: None  # the connection must not keep the session alive


class _ToSocket(_Onward):
    """Passes pieces to a socket that does not block."""

    def __init__(self, link: socket.socket, transport: asyncio.Transport) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._link: socket.socket | None = link  # None if the socket has closed
        self._transport = transport
        self._piece = bytearray()  # the part of a piece that has arrived
        self._kept = bytearray()  # the bytes that the socket has not accepted

    def _part(self, now: memoryview) -> None:
        if self._left or self._piece:
            self._piece += now
        if not self._left:
            self._send(memoryview(self._piece) if self._piece else now)
            self._piece = bytearray()

    def end(self) -> None:
        self._peer_finished = True
        if not self._kept:
            super().end()

    def close(self) -> None:
        if self._kept and self._link is not None:
            self._loop.remove_writer(self._link)
        self._link = None
        self._kept.clear()

    def _taken(self, data: bytearray | memoryview) -> int:
        """Sends as many bytes as the socket accepts now. Returns their number."""
        if self._link is None:
            return len(data)
        try:
            return self._link.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close()
            return len(data)

    def _send(self, data: memoryview) -> None:
        if not self._kept:
            data = data[self._taken(data) :]
            if not data:
                return
            assert self._link is not None
            self._loop.add_writer(self._link, self._more)
            self._transport.pause_reading()
        self._kept += data

    def _more(self) -> None:
        link = self._link
        n = self._taken(self._kept)
        del self._kept[:n]
        if self._kept:
            return
        if link is not None:
            self._loop.remove_writer(link)
        self._transport.resume_reading()
        if self._peer_finished:
            self.end()


class Incoming(asyncio.StreamReader):
    _to: _Onward | None = None
    _from: asyncio.Transport

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        super().set_transport(transport)
        assert isinstance(transport, asyncio.Transport)
        self._from = transport

    def feed_data(self, data: Any) -> None:
        if self._to is None:
            super().feed_data(data)
        else:
            self._to.feed(data)

    def feed_eof(self) -> None:
        super().feed_eof()
        if self._to is not None:
            self._to.end()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        if self._to is not None:
            self._to.end()

    def is_between(self) -> bool:
        """Returns whether the bytes that have arrived were whole pieces and have all been passed to
        a session.
        """
        to = self._to
        return isinstance(to, _ToSession) and not (to._left or to._head or to._peer_finished)

    def held(self) -> bytes:
        """Removes and returns the bytes that have arrived but have not been read. This reader must
        not be read afterwards.
        """
        buffer: bytearray = self._buffer  # type: ignore[attr-defined]
        held = bytes(buffer)
        buffer.clear()
        return held

    async def onward(self, to: socket.socket | Callable[[memoryview], object]) -> None:
        """Passes on all further bytes: to a socket, or to a function, which must not use the bytes
        after it has returned. Returns when the peer has finished or the connection has ended. This
        reader must not be read any more.
        """
        held = bytearray()
        while self.exception() is None and self._buffer:  # type: ignore[attr-defined]
            held += await self.read(LARGEST)  # this does not wait, since there are bytes
        way = _ToSocket(to, self._from) if isinstance(to, socket.socket) else _ToSession(to)
        self._to = way
        way.feed(held)
        if self.exception() is not None or self.at_eof():
            way.end()
        try:
            await way.over
        finally:
            way.close()


# --- many bytes before a session ------------------------------------------------------------------


async def read_pieces(reader: asyncio.StreamReader, most: int, each: float) -> bytearray:
    """Returns the bytes that arrive in pieces, up to the empty piece (17.13). `each` is the time
    for a piece, in seconds.

    Raises:
        ValueError: more than `most` bytes arrive, or no pieces.
        EOFError, OSError, asyncio.TimeoutError: the peer has disconnected, or sends nothing.
    """
    data = bytearray()
    while True:
        (size,) = PIECE.unpack(await asyncio.wait_for(reader.readexactly(PIECE.size), each))
        if size > LARGEST or len(data) + size > most:
            raise ValueError(f"more than {most} bytes have come")
        if not size:
            return data
        data += await asyncio.wait_for(reader.readexactly(size), each)


async def write_pieces(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Sends bytes in pieces, followed by the empty piece.

    Raises:
        OSError: the peer has disconnected.
    """
    view = memoryview(data)
    for at in range(0, len(view), LARGEST):
        piece = view[at : at + LARGEST]
        writer.write(PIECE.pack(len(piece)) + bytes(piece))
        await writer.drain()
    writer.write(PIECE.pack(0))
    await writer.drain()

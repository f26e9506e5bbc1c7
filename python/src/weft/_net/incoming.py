"""What comes from another machine goes on within the loop's callbacks: a task that is woken for each
piece takes longer than all the rest of a small one's way (WIRE.md 17.13).

    Incoming: as any StreamReader ──onward(feed)──► all of it goes into the session as it comes ──┐
        └──onward(socket)──► each piece goes to the socket once it is whole                       │
                                        │    ▲                                                    │
          the socket takes no more: the connection is not read ──it does──► the rest goes         │
                                        └──the other side has said all, or its connection has ended──► over

Invariants
- All of it is on the loop's thread.
- What is kept here is part of a piece, and what the socket did not take of one call of feed_data():
  meanwhile the connection is not read.
- What comes for one that has closed is still taken: to close with bytes unread resets the
  connection, and that may take with it what we have sent last.
"""

from __future__ import annotations

import abc
import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["LARGEST", "PIECE", "Incoming"]

LARGEST = 1 << 18  # bytes of a piece
PIECE = struct.Struct("<I")  # before each piece of a session's bytes: its length


class _Onward(abc.ABC):
    """Takes the pieces apart."""

    def __init__(self) -> None:
        self._head = b""  # what has come of a piece's length
        self._left = 0  # bytes of it that are to come
        self._all_said = False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        come = memoryview(data)
        if not self._left and not self._head and not self._all_said and len(come) > PIECE.size:
            (size,) = PIECE.unpack_from(come)
            if size + PIECE.size == len(come) and size <= LARGEST:  # as most come
                self._part(come[PIECE.size :])
                return
        while come and not self._all_said:
            if not self._left:
                lacks = PIECE.size - len(self._head)
                self._head += come[:lacks]
                come = come[lacks:]
                if len(self._head) < PIECE.size:
                    return
                (self._left,) = PIECE.unpack(self._head)
                self._head = b""
                if not 0 < self._left <= LARGEST:
                    self.end()
                continue
            now, come = come[: self._left], come[self._left :]
            self._left -= len(now)
            self._part(now)

    @abc.abstractmethod
    def _part(self, now: memoryview) -> None:
        """Of a piece; the last, if nothing is left of it."""

    def end(self) -> None:
        """Nothing more will come."""
        self._all_said = True
        if not self.over.done():
            self.over.set_result(None)

    @abc.abstractmethod
    def close(self) -> None:
        """Nobody waits for it any more."""


class _ToSession(_Onward):
    """The way into a session, which takes all that comes."""

    def __init__(self, take: Callable[[memoryview], object]) -> None:
        super().__init__()
        self._take = take

    def _part(self, now: memoryview) -> None:
        self._take(now)

    def close(self) -> None:
        self._take = lambda _: None  # the session is not kept by its connection


class _ToSocket(_Onward):
    """The way to a socket, which does not block."""

    def __init__(self, link: socket.socket, transport: asyncio.Transport) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._link: socket.socket | None = link  # None: it has closed
        self._transport = transport
        self._piece = bytearray()  # what has come of one
        self._kept = bytearray()  # that the socket did not take

    def _part(self, now: memoryview) -> None:
        if self._left or self._piece:
            self._piece += now
        if not self._left:
            self._send(memoryview(self._piece) if self._piece else now)
            self._piece = bytearray()

    def end(self) -> None:
        self._all_said = True
        if not self._kept:
            super().end()

    def close(self) -> None:
        if self._kept and self._link is not None:
            self._loop.remove_writer(self._link)
        self._link = None
        self._kept.clear()

    def _taken(self, data: bytearray | memoryview) -> int:
        """How many of these bytes the socket takes now."""
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
        if self._all_said:
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
        """All that has come is with a session, and was whole pieces."""
        to = self._to
        return isinstance(to, _ToSession) and not (to._left or to._head or to._all_said)

    def held(self) -> bytes:
        """What has come, and nobody has read: takes it out. Nobody reads here any more."""
        buffer: bytearray = self._buffer  # type: ignore[attr-defined]
        held = bytes(buffer)
        buffer.clear()
        return held

    async def onward(self, to: socket.socket | Callable[[memoryview], object]) -> None:
        """From now on what comes goes to that socket, or is given to that function, which has done
        with it when it returns; until all has been said, or the connection has ended. Nobody reads
        here any more.
        """
        held = bytearray()
        while self.exception() is None and self._buffer:  # type: ignore[attr-defined]
            held += await self.read(LARGEST)  # does not wait: there is something
        way = _ToSocket(to, self._from) if isinstance(to, socket.socket) else _ToSession(to)
        self._to = way
        way.feed(held)
        if self.exception() is not None or self.at_eof():
            way.end()
        try:
            await way.over
        finally:
            way.close()

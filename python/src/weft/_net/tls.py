"""TLS 1.3 between two programs, in transports like those of asyncio (WIRE-NETWORKS.md 17.1, 17.21).

    a connection's bytes ──_receive()──► TLS ──► the reader: a StreamReader (_net/incoming.py)
                         ──_turn(): before the loop's steps──► the session
                         ◄──_send()─── TLS ◄──write()──

    begun ──_shake(): both have shown their certificates──► shaken
      │                 shaken ──close()──► what was written is sent ──► over
      │                 shaken ──abort() │ the connection ends──► over
      └── _fail(): TLS tells the other side why ──► over

asyncio's own TLS copies each byte more often, and needs more calls for each message.

Invariants
- Only the loop's thread uses this module, with one exception: a thread that waits for an answer may
  send its own data (direct()). So code that uses TLS or the socket holds `lock`, one lock for all
  connections. Code that has received a connection by hand_over() is its only user until it gives
  the connection back, and needs no lock.
- Bytes that TLS has decrypted are in one buffer of the thread (rooms). When the reader returns, it
  no longer needs these bytes.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import os
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from weft._net import loop as _net_loop
from weft._net.incoming import Incoming
from weft._net.name_rules import Member, member_of

__all__ = [
    "Coming",
    "OnConnection",
    "Parts",
    "Streams",
    "Tls",
    "connect",
    "listen",
    "lock",
    "rooms",
]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OnConnection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

ROOM = 1 << 18  # bytes that are read, or decrypted, in one step
SMALL = 1 << 14  # bytes; pieces of up to this size are those of small values
LINGER = 5.0  # seconds for the other side to close its end too


class _Rooms(threading.local):
    def __init__(self) -> None:
        self.raw = memoryview(bytearray(ROOM))
        self.plain = memoryview(bytearray(ROOM))


rooms = _Rooms()
lock = threading.Lock()  # never held while a thread waits


def _forget() -> None:
    """Makes a new lock in the child of a fork: another thread might have held the old one."""
    global lock
    lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


class Parts(NamedTuple):
    """The parts of a connection: a descriptor of its socket, which belongs to the code that
    receives the Parts, and TLS.
    """

    descriptor: int
    came_in: ssl.MemoryBIO
    tls: Any
    goes_out: ssl.MemoryBIO


class Tls(asyncio.Transport, abc.ABC):
    """A connection with TLS. The classes that carry its bytes derive from this class.

    Args:
        tls: the context, with the certificates.
        server: whether the other side has connected to this one.
        on_connection: called with the streams after the hand-shake; None if a task waits in
            streams().
        limit: how many bytes may wait in the StreamReader.
    """

    def __init__(
        self,
        tls: ssl.SSLContext,
        server: bool,
        on_connection: OnConnection | None,
        limit: int,
        extra: Any = None,
    ) -> None:
        self._came_in, self._goes_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._came_in, self._goes_out, server_side=server)
        super().__init__(extra)
        self.shown: bytes | None = None  # the other side's certificate
        self._loop = asyncio.get_running_loop()
        self._shakes = True
        # The event is also set if the connection ends during the hand-shake.
        self._shaken = asyncio.Event()
        self._holds = self._closing = self._over = False
        self._peer_finished = False  # whether the other side has closed TLS
        self._ended = False  # whether the reader knows that the connection has ended
        self._error: OSError | None = None
        self.full = False  # whether writers must wait
        self.room_again: Callable[[], object] | None = None  # called when writers can go on
        self._reader = Incoming(limit=limit, loop=self._loop)
        self._protocol = asyncio.StreamReaderProtocol(self._reader, on_connection, loop=self._loop)
        self._protocol_knows = on_connection is None  # whether the protocol knows of this transport
        if self._protocol_knows:
            self._protocol.connection_made(self)

    @abc.abstractmethod
    def _send(self) -> None:
        """Sends the bytes that TLS has produced for the other side. The caller holds the lock."""

    def has_come(self) -> None:
        """Records that the connecting side has sent its first message."""

    def direct(self, feed: Any) -> None:
        """Lets threads send for the session of `feed` from now on. If `feed` is None, threads may
        no longer send.
        """

    def hand_over(self) -> Parts | None:
        """Returns the parts with which other code can carry the bytes; until take_back(), this
        object neither reads nor writes. Returns None if this connection cannot be handed over, or
        not now.
        """
        return None

    def take_back(self, rest: bytes) -> None:
        """Takes the connection back. `rest` is sent first."""

    def member(self) -> Member:
        """Returns the owner of the certificate that the other side has presented."""
        try:
            return member_of(self._tls.getpeercert() or {})
        except ValueError:  # a field is not text
            return Member("?", ())

    async def streams(self, patience: float) -> Streams:
        """Returns the streams, once both sides have shown their certificates.

        Raises:
            OSError: the hand-shake failed (ssl.SSLError) or took longer than `patience` seconds; or
                the connection was lost.
        """
        try:
            await asyncio.wait_for(self._shaken.wait(), patience)
        except asyncio.TimeoutError:
            raise TimeoutError("there was no hand-shake") from None
        if self._shakes or self._error is not None:
            raise self._error or ConnectionResetError("it was ended here")
        return self._reader, asyncio.StreamWriter(self, self._protocol, self._reader, self._loop)

    # --- incoming bytes ---------------------------------------------------------------------------

    def _receive(self, data: Any) -> None:
        self._came_in.write(data)
        self._read()

    def _read(self) -> None:
        """Passes on the bytes that TLS has decrypted, as long as the reader accepts more."""
        if self._closing or (self._shakes and not self._shake()):
            return
        more = True
        while more and not self._holds and not self._closing and not self._ended:
            with lock:
                n, more, error = self._decrypted()
            if n:
                self._reader.feed_data(rooms.plain[:n])
            if error is not None:
                self._fail(error)
            elif not more and self._peer_finished:
                self._end_of_file()
        if self._goes_out.pending:
            with lock:
                self._send()

    def _decrypted(self) -> tuple[int, bool, ssl.SSLError | None]:
        """Returns how many bytes rooms.plain now contains, whether more can follow, and the error
        or None.
        """
        room, tls = rooms.plain, self._tls
        n = 0
        try:
            while n < ROOM:
                # read() returns an int, though typeshed says bytes.
                got: Any = tls.read(ROOM - n, room[n:] if n else room)
                if not got:
                    self._peer_finished = True
                    return n, False, None
                n += got
                if not self._came_in.pending and not tls.pending():
                    return n, False, None
        except ssl.SSLWantReadError:
            return n, False, None
        except ssl.SSLError as error:  # a certificate is refused, or the bytes are forged
            return n, False, error
        return n, True, None

    def _end_of_file(self) -> None:
        if not self._ended and self._protocol_knows:
            self._ended = True
            self._protocol.eof_received()

    def _shake(self) -> bool:
        """Continues the hand-shake. Returns whether the hand-shake has ended."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            self._fail(error)
            return False
        finally:
            with lock:
                self._send()
        self._shakes = False
        self.shown = self._tls.getpeercert(binary_form=True)
        self._shaken.set()
        if not self._protocol_knows:
            self._protocol_knows = True
            self._protocol.connection_made(self)
        return True

    def _fail(self, error: OSError) -> None:
        """Ends a connection that has failed, once TLS has reported the reason to the other side."""
        self._error = error
        if self._protocol_knows:
            self._reader.set_exception(error)
        self.direct(None)
        with lock:
            self._send()
        self._shaken.set()
        self._closing = True

    def pause_reading(self) -> None:
        self._holds = True

    def resume_reading(self) -> None:
        self._holds = False
        # _go_on() is called later, because the reader does not expect data before it waits.
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if not self._over and not self._holds:
            self._read()

    def is_reading(self) -> bool:
        return not self._holds

    # --- outgoing bytes ---------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        with lock:
            self.put(data)

    def put(self, data: Any) -> None:
        """Writes data. The caller holds the lock."""
        if self._over or self._closing or not data:
            return
        self._tls.write(data)
        self._send()

    def put_rest(self) -> None:
        """Sends the bytes that a thread could not send. The caller holds the lock."""

    def was_put(self) -> None:
        """Must be called after put(), when the lock has been released."""

    def _is_full(self, full: bool) -> None:
        self.full = full
        if not self._protocol_knows:
            return
        if full:
            self._protocol.pause_writing()
            return
        self._protocol.resume_writing()
        if self.room_again is not None:
            self.room_again()

    def is_closing(self) -> bool:
        return self._closing

    def can_write_eof(self) -> bool:
        return False


class Coming:
    """The connections of a listener over which no first message has arrived yet (WIRE-NETWORKS.md
    17.2). Each costs a descriptor and some 50 to 150 KB. If there are more than MANY, those that
    are at least FRESH seconds old are closed, the oldest first. If there are more than TOO_MANY,
    the oldest are closed at once.
    """

    MANY, TOO_MANY = 256, 1024
    FRESH = 2.0  # seconds; a hand-shake takes some milliseconds

    def __init__(self) -> None:
        # connection → the time at which it was made, oldest first
        self._since: dict[Tls, float] = {}
        self._many = False

    def add(self, way: Tls) -> None:
        now = asyncio.get_running_loop().time()
        self._since[way] = now
        self._many = self._many or len(self._since) > self.MANY
        for oldest, since in list(self._since.items()):
            waiting = len(self._since)
            if waiting <= self.MANY or (waiting <= self.TOO_MANY and now - since < self.FRESH):
                return
            del self._since[oldest]
            oldest.abort()

    def has_come(self, way: Tls) -> None:
        self._since.pop(way, None)
        if self._many and not self._since:
            self._many = False
            asyncio.get_running_loop().call_later(self.FRESH, _give_back)


def _give_back() -> None:
    """Returns to the system the memory of many closed connections, which the C library (glibc)
    would keep.
    """
    import ctypes  # imported late: few programs ever need it

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


class _OverTcp(Tls, asyncio.BufferedProtocol):
    """A connection over a socket, which is a transport of asyncio. This class is the transport's
    protocol.
    """

    def __init__(
        self,
        tls: ssl.SSLContext,
        on_connection: OnConnection | None,
        limit: int,
        patience: float,
        coming: Coming | None = None,
    ) -> None:
        self._coming = coming
        self._raw: asyncio.Transport | None = None
        self._feed: Any = None  # the feed of the session for which other threads send
        self._number = -1  # the socket's descriptor, while other threads may send
        self._large = False  # whether the incoming bytes are best read in large parts
        super().__init__(tls, on_connection is not None, on_connection, limit)
        self._gives_up = self._loop.call_later(patience, self._end_slow_hand_shake)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._raw = transport
        transport.set_write_buffer_limits(high=0)  # at most one piece waits in the transport
        if self._coming is not None:
            self._coming.add(self)
        self._shake()

    def has_come(self) -> None:
        if self._coming is not None:
            self._coming.has_come(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        found = super().get_extra_info(name)
        if found is None and self._raw is not None:
            found = self._raw.get_extra_info(name)
        return default if found is None else found

    def _end_slow_hand_shake(self) -> None:
        if self._shakes:
            self._error = self._error or TimeoutError("there was no hand-shake")
            self.abort()

    def get_buffer(self, _: int) -> memoryview:
        return rooms.raw

    def buffer_updated(self, n: int) -> None:
        self._large = n > SMALL
        if not self._closing:
            self._receive(rooms.raw[:n])

    def _turn(self) -> bool:
        """Processes the bytes that have arrived. Returns false if the loop must do the remaining
        steps."""
        feed = self._feed
        if feed is None or self._large or self._holds or self._closing:
            return False
        if not self._reader.is_between():
            return False
        try:
            data = feed.turn()
            if isinstance(data, bool):
                return data
            self._large = True
            if data:
                self._reader.feed_data(data)
            self._read()
        except Exception as error:  # asyncio does the same if buffer_updated() raises
            self._error = self._error or ConnectionError(f"{type(error).__name__}: {error}")
            self.abort()
        return False

    def eof_received(self) -> bool:
        self._end_of_file()
        return False  # the connection closes once the written bytes are sent

    def connection_lost(self, error: Exception | None) -> None:
        self.direct(None)  # the socket is closed next
        self.has_come()
        self._over = self._closing = True
        self._gives_up.cancel()
        self._raw = None
        if self._error is None and self._shakes:
            self._error = ConnectionResetError("the connection was lost during its hand-shake")
        elif self._error is None and isinstance(error, OSError):
            self._error = error
        self._shaken.set()
        if self._protocol_knows:
            self._protocol.connection_lost(self._error)

    def _shake(self) -> bool:
        done = super()._shake()
        if done:
            self._gives_up.cancel()
        return done

    def _fail(self, error: OSError) -> None:
        super()._fail(error)
        self._hang_up()

    def _hang_up(self) -> None:
        """Sends the bytes that were written, and accepts no more. Then the connection stays open
        until the other side has closed its end too: closing it with unread bytes would reset the
        connection, and the data that was sent last could be lost.
        """
        raw = self._raw
        if raw is None:
            return
        self._gives_up.cancel()
        self._gives_up = self._loop.call_later(LINGER, self.abort)
        try:
            raw.write_eof()
        except OSError:  # the connection is lost
            raw.abort()
        raw.resume_reading()

    def _send(self) -> None:
        self.put_rest()
        data = self._goes_out.read()
        if data and self._raw is not None:
            self._raw.write(data)

    def put_rest(self) -> None:
        feed, raw = self._feed, self._raw
        if feed is not None and (rest := feed.rest()) is not None and raw is not None:
            raw.write(rest)
            feed.may(not self.full)

    def direct(self, feed: Any) -> None:
        with lock:
            if feed is None:
                if self._feed is not None:
                    self._send()
                    self._feed.direct()
                    self._feed = None
                    _net_loop.quickly.pop(self._number, None)
                return
            own = self.get_extra_info("socket")
            # The methods of TLS's inner object are written in C.
            within = getattr(self._tls, "_sslobj", None)
            if own is None or within is None or self._closing:
                return
            take, give = lock.acquire, lock.release
            tls = self._came_in, within, ssl.SSLWantReadError
            feed.direct(own.fileno(), take, give, within.write, self._goes_out.read, *tls)
            feed.may(not self.full)
            self._feed = feed
            self._number = own.fileno()
            _net_loop.quickly[self._number] = self._turn

    def hand_over(self) -> Parts | None:
        own, raw = self.get_extra_info("socket"), self._raw
        within = getattr(self._tls, "_sslobj", None)
        if own is None or raw is None or within is None or self._shakes or self._closing:
            return None
        if raw.get_write_buffer_size():
            return None
        try:
            descriptor = os.dup(own.fileno())
        except OSError:  # no descriptor is left
            return None
        self.pause_reading()
        return Parts(descriptor, self._came_in, within, self._goes_out)

    def take_back(self, rest: bytes) -> None:
        if rest and self._raw is not None:
            self._raw.write(rest)

    # called by the transport's write(), whose caller holds the lock
    def pause_writing(self) -> None:
        if self._feed is not None:
            self._feed.may(False)
        self._is_full(True)

    def resume_writing(self) -> None:
        if self._feed is not None:
            self._feed.may(True)
        self._is_full(False)

    def pause_reading(self) -> None:
        super().pause_reading()
        if self._raw is not None:
            self._raw.pause_reading()

    def _go_on(self) -> None:
        super()._go_on()
        if self._raw is not None and not self._holds and not self._closing:
            self._raw.resume_reading()

    def close(self) -> None:
        if self._closing or self._raw is None:
            return
        self._closing = True
        if self._shakes:
            self.abort()
            return
        self.direct(None)
        with lock:
            # unwrap() raises if the other side has not closed TLS yet.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._send()
        self._hang_up()

    def abort(self) -> None:
        self.direct(None)
        self._closing = True
        if self._raw is not None:
            self._raw.abort()

    def get_write_buffer_size(self) -> int:
        return 0 if self._raw is None else self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing: a connection has no such limits."""


async def listen(
    tls: ssl.SSLContext,
    on_connection: OnConnection,
    host: str,
    port: int,
    limit: int,
    patience: float,
) -> asyncio.Server:
    """Listens at an address, like asyncio.start_server. `patience` is the time for a hand-shake, in
    seconds.
    """
    loop = asyncio.get_running_loop()
    coming = Coming()
    return await loop.create_server(
        lambda: _OverTcp(tls, on_connection, limit, patience, coming), host, port
    )


async def connect(
    tls: ssl.SSLContext, host: str, port: int, limit: int, patience: float
) -> Streams:
    """Makes a connection, like asyncio.open_connection. `patience` is the time for a hand-shake, in
    seconds.
    """
    loop = asyncio.get_running_loop()
    _, way = await loop.create_connection(lambda: _OverTcp(tls, None, limit, patience), host, port)
    try:
        return await way.streams(patience)
    except BaseException:
        way.abort()
        raise

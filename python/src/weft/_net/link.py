"""Sessions between machines: TLS 1.3 over TCP, or over the relay (_net/relay.py), and the messages
before a session begins (WIRE-NETWORKS.md 17.1, 17.2).

    the native link ──its bell──► _Out.pump() ──► TLS (_net/tls.py) ──► the other machine
                    ──a thread that waits sends (native/wire/feed.hpp)──► TLS ───────►
                    ◄─────────────carry() ◄────── TLS ◄─────────────────

    connection ──first message──► refused │ Session ──either side closes, dies or falls silent──► over

Invariants
- A connection belongs to the loop's thread (_net/loop.py), or, while it passes to an OS process of
  an agent over TCP, to a thread of its own. A link belongs to its user. The feed between the two
  belongs to the loop's thread.
- No bytes wait here except those that the connection's transport holds: a peer that does not read
  stops the writer. If bytes pass to an OS process of an agent (couple()), at most LARGEST more wait
  in each direction.
- `_asking` belongs to the loop's thread, and is empty in the child of a fork.
- A peer's message here is JSON (_net/first_messages.py); no part of it is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from weft import _helper_threads
from weft._extension import native as _native
from weft._net import first_messages as _first
from weft._net import foreign_json as _foreign_json
from weft._net import keys as _net_keys
from weft._net import kill_points as _net_steps
from weft._net import loop as _net_loop
from weft._net import parcels as _net_parcels
from weft._net import tls as _net_tls
from weft._net.first_messages import Fields, Refused
from weft._net.incoming import LARGEST, PIECE, Incoming, write_pieces
from weft._net.reasons import unreachable, why
from weft._net.tls import OnConnection, Streams
from weft.errors import BadUse, PeerDied

__all__ = [
    "Closed",
    "NameNotGranted",
    "OnConnection",
    "OtherVersion",
    "Refused",
    "Session",
    "StaleTicket",
    "Streams",
    "Welcome",
    "asked",
    "begun",
    "close_writer",
    "couple",
    "direct",
    "follow",
    "joined",
    "parted",
    "reach",
    "receiver",
    "serve",
]

GREETING = 10.0  # seconds for the hand-shake, and for the first message
# Seconds for an agent to begin a call. It is more than START (_net/agent.py), the time in which an
# OS process must have started.
BEGINS = 70.0
# Keep-alive: seconds until the first question and between questions, and the number of questions.
SILENT, ASKS = 5, 3
SAID_LAST = 10.0  # seconds for sending the bytes that a session had queued before its end
# The largest number of bytes of a piece that is written. Together with the length in front, such a
# piece fills four records of TLS.
AT_ONCE = (1 << 16) - PIECE.size
UNHEARD = 20_000  # milliseconds for which sent bytes may stay unacknowledged
# What the reason for a session's end has in it if the programs speak no common version of the wire
# (WIRE.md 2.3; cpp/src/wire/session.cpp).
NO_COMMON_VERSION = "no common version"

# Connections of this program whose other end has not answered yet, given by the addresses of both
# ends.
_asking: set[Any] = set()
os.register_at_fork(after_in_child=_asking.clear)


class StaleTicket(BadUse):
    """The other side has refused a request, but would accept it with another ticket."""


class NameNotGranted(BadUse):
    """The other side's certificate does not grant the name under which it has written its entry."""


class Closed(BadUse):
    """The other side has closed the connection without giving a reason: it was killed, or it
    refuses this program.
    """


class OtherVersion(BadUse):
    """The two programs speak no common version of the wire (WIRE.md 2.3)."""


class Session:
    """A session with a program on another machine. `connect` and a `Door` return one. The session
    ends with its block, and then the ends that the other program has received through it die.

    Attributes:
        host: the name that the other program gives itself.
        trusted: whether both programs trust each other; if so, values are pickled.
        relayed: whether the session goes through the NATS server.
    """

    def __init__(self, link: Any, host: str, trusted: bool, carried: asyncio.Task[None]) -> None:
        self._link = link
        self._carried = carried
        self._loop = carried.get_loop()
        self.host = host
        self.trusted = trusted
        self.relayed = False
        self._answer_fields: Fields = {}  # the fields of the other side's answer
        self._given_up = False
        self._ended_by: str | None = None  # set before close() if the session had ended by itself

    def give(self, name: str, end: Any) -> None:
        """Gives an end of a channel to the other program, which takes it under this name. In this
        program the end is closed.

        Raises:
            BadUse: `end` is not an end, is closed, or belongs to a channel whose home is elsewhere;
                a value that waits in the channel cannot be sent; the name contains a space or is
                too long; the session was closed.
        """
        if not isinstance(name, str) or not name or " " in name or len(name.encode()) > 60:
            raise BadUse(f"give: a name must have 1 to 60 bytes and no space, not {name!r}")
        self._link.give(end, name)

    def take(self, name: str) -> Any:
        """Returns the end that the other program has given under this name, a Reader or a Writer.
        Blocks the thread until the end has been given.

        In a coroutine: `await io(session.take)(name)`.

        Raises:
            PeerDied: the session ended first.
            BadUse: the session was closed, the other program has another version of Weft, or the
                channel of the end carries another kind of values.
        """
        try:
            end = self._link.take(name)
        except BadUse:
            if self._ended_by is None or not self._is_closed():
                raise
            end = None
        if end is not None:
            return end
        if (other := self._other_version()) is not None:
            raise other
        why = self._ended_by or self._link.wait()
        raise PeerDied(f"the session with {self.host} ended before it had given {name!r} ({why})")

    def _other_version(self) -> OtherVersion | None:
        """Returns the error of a session that has ended because the two programs speak no common
        version, or None. Each of the two sides ends such a session itself, when it has received the
        other side's HELLO.
        """
        try:
            why = self._link.refused()
        except BadUse:  # the link is closed
            why = self._ended_by
        if why is None or NO_COMMON_VERSION not in why:
            return None
        return OtherVersion(
            f"{self.host} has another version of Weft ({why}): install the same version on both machines"
        )

    def _is_closed(self) -> bool:
        try:
            self._link.refused()
        except BadUse:
            return True
        return False

    def wait(self) -> str:
        """Blocks the thread until the session has ended. Returns the reason for its end. In a
        coroutine: `await io(session.wait)()`.

        Raises:
            BadUse: the session was closed.
        """
        return str(self._link.wait())

    def close(self) -> None:
        """Ends the session, and waits some seconds at most until all queued bytes have been sent to
        the other side. A second call does nothing.
        """
        self._link.close("the other program has closed the session")
        if not self._carried.done():
            with contextlib.suppress(BadUse):  # the loop has ended
                _net_loop.call(self._loop, self._until_carried())

    def _give_up(self, why: str = "the other program has given the session up") -> None:
        """Ends the session without waiting for answers to its requests."""
        self._given_up = True
        self._link.close(why)

    async def _until_carried(self) -> None:
        await asyncio.wait([self._carried], timeout=GREETING)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<session with {self.host}{' by the relay' if self.relayed else ''}>"


# --- bytes ----------------------------------------------------------------------------------------


def _watch_over(writer: asyncio.StreamWriter) -> None:
    """Makes the system notice when the other machine has become silent. (Sessions through the relay
    have a lease instead.)
    """
    own: socket.socket | None = writer.get_extra_info("socket")
    if own is None:
        return
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENT),
        ("TCP_KEEPINTVL", SILENT),
        ("TCP_KEEPCNT", ASKS),
        ("TCP_USER_TIMEOUT", UNHEARD),
    ):
        if hasattr(socket, name):
            own.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _carry_out(link: socket.socket, there: asyncio.StreamWriter) -> None:
    """Carries bytes from a link to the other side until the link has closed, and then reports to
    the other side that no more bytes will follow. The bytes are carried in the loop's callback:
    waking a task as well would take a tenth of a round trip.
    """
    loop = asyncio.get_running_loop()
    room = _net_tls.rooms.raw  # no other code uses this buffer within the callback

    def pass_on() -> None:
        if stops.done():
            return
        try:
            n = link.recv_into(room[PIECE.size :])
        except BlockingIOError:
            return
        except OSError:  # the link was closed with unread bytes
            n = 0
        if n:
            PIECE.pack_into(room, 0, n)
            there.write(bytes(room[: PIECE.size + n]))
        if not n or there.transport.get_write_buffer_size():
            stops.set_result(n > 0)

    with contextlib.suppress(OSError):
        try:
            more = True
            while more:
                stops: asyncio.Future[bool] = loop.create_future()
                loop.add_reader(link, pass_on)
                try:
                    more = await stops
                finally:
                    loop.remove_reader(link)
                await there.drain()
        finally:
            there.write(PIECE.pack(0))
        await there.drain()


class _Out:
    """Carries a session's outgoing bytes, in the loop's callbacks: waking a task would take longer
    than all other work that a small message needs.
    """

    def __init__(self, feed: Any, there: Any) -> None:
        self._feed, self._connection = feed, there
        self._loop = asyncio.get_running_loop()
        self._giving_up: asyncio.TimerHandle | None = None
        self.all_sent: asyncio.Future[None] = self._loop.create_future()
        there.room_again = self.pump
        self._loop.add_reader(feed.fileno(), self.pump)
        there.direct(feed)

    def pump(self) -> None:
        """Sends as much as the connection accepts."""
        feed, there = self._feed, self._connection
        piece, some = b"not asked", False
        with _net_tls.lock:  # the lock must be acquired before the bell is silenced
            there.put_rest()
            while not there.full and (piece := feed.output(AT_ONCE)):
                there.put(piece)
                some = True
            if piece:
                feed.hush()
        if some:
            there.was_put()
        if piece is None:
            self.give_up()
        if not piece:
            return
        if self._giving_up is None and feed.over:
            self._giving_up = self._loop.call_later(SAID_LAST, self.give_up)

    def receive(self, data: memoryview) -> None:
        if self._feed.input(data):
            self.pump()

    def give_up(self) -> None:
        """Reports to the other side that no more bytes will follow."""
        if self.all_sent.done():
            return
        self.all_sent.set_result(None)
        self._connection.direct(None)
        self._loop.remove_reader(self._feed.fileno())
        self._connection.room_again = None
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._connection.write(PIECE.pack(0))


async def carry(feed: Any, there: Streams) -> None:
    """Does what couple() does, for a session of this OS process: the incoming bytes go into the
    session immediately.
    """
    assert isinstance(there[0], Incoming)
    out = _Out(feed, there[1].transport)
    back = asyncio.ensure_future(there[0].onward(out.receive))
    out.pump()
    try:
        await asyncio.wait({out.all_sent, back}, return_when=asyncio.FIRST_COMPLETED)
        if not back.done():
            await asyncio.wait({back}, timeout=GREETING / 2)
    finally:
        back.cancel()
        await asyncio.gather(back, return_exceptions=True)
        feed.lost("its connection was closed")
        out.give_up()
        await close_writer(there[1])


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Closes a connection. Queued bytes are sent first, if the other side accepts them."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), GREETING / 2)
    except (OSError, asyncio.TimeoutError):
        writer.transport.abort()


async def couple(link: socket.socket, there: Streams) -> None:
    """Carries bytes between a connection and a socket that leads to a session of another OS
    process, until both sides have finished, or the connection has ended. The side that closes first
    stays until the other has received everything, and has confirmed it (17.13). Over TCP a thread
    does this without running Python code.
    """
    link.setblocking(False)
    way = there[1].transport
    if isinstance(way, _net_tls.Tls) and (parts := way.hand_over()) is not None:
        try:
            bell = os.pipe()
        except OSError:  # no descriptor is left
            os.close(parts.descriptor)
            way.resume_reading()
        else:
            await _passed(link, there, way, parts, bell)
            return
    out = asyncio.ensure_future(_carry_out(link, there[1]))
    assert isinstance(there[0], Incoming)
    back = asyncio.ensure_future(there[0].onward(link))
    try:
        await asyncio.wait({out, back}, return_when=asyncio.FIRST_COMPLETED)
        if not back.done():
            await asyncio.wait({back}, timeout=GREETING / 2)
    finally:
        out.cancel()
        back.cancel()
        await asyncio.gather(out, back, return_exceptions=True)
        link.close()
        await close_writer(there[1])


async def _passed(
    link: socket.socket,
    there: Streams,
    way: _net_tls.Tls,
    parts: _net_tls.Parts,
    pipe: tuple[int, int],
) -> None:
    """Couples a connection with a socket, as couple() does, on a separate thread."""
    assert isinstance(there[0], Incoming)
    loop = asyncio.get_running_loop()
    over: asyncio.Future[bytes] = loop.create_future()
    bell_reader, bell = pipe
    held = there[0].held()

    def passes() -> None:
        _helper_threads.add_until_end()
        _native._be_prompt()
        rest = b""
        try:
            tls = parts.came_in, parts.tls, parts.tls.write, parts.goes_out.read
            waits, ms = ssl.SSLWantReadError, int(GREETING * 500)
            rest = _native._pass(
                parts.descriptor, link.fileno(), bell_reader, *tls, waits, ms, held
            )
        finally:
            loop.call_soon_threadsafe(over.set_result, rest)

    try:
        try:
            threading.Thread(target=passes, name="weft: passes on", daemon=True).start()
        except BaseException:  # no further thread could be started
            over.set_result(b"")
            raise
        await asyncio.shield(over)
    finally:
        os.close(bell)  # if the thread is still running, it ends when it reads this end of file
        while not over.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((over,))
        for descriptor in (bell_reader, parts.descriptor):
            os.close(descriptor)
        link.close()
        way.take_back(over.result())
        await close_writer(there[1])


async def _session(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, trusted: bool
) -> Session:
    link = _native._Link(-1, f"python {os.getpid()}", False, False, 0, 0, 0, 2 if trusted else 1)
    feed = link.feed()
    carried = asyncio.ensure_future(carry(feed, (reader, writer)))
    loop = _net_loop.use()  # the session is a user of the loop as long as it lasts

    def over(_: object) -> None:
        feed.lost("its connection was closed")  # this call is made even if carry() never began
        _net_loop.done(loop)

    carried.add_done_callback(over)
    session = Session(link, host, trusted, carried)
    session.relayed = writer.get_extra_info("relayed") is True
    return session


# --- incoming connections, and connections that this program makes


class Welcome(NamedTuple):
    """The answer to a program that connects."""

    host: str
    trust: bool
    begun: Callable[[Session], None]  #: called when there is a session with the program
    lost: Callable[[], None]  #: called instead if the connection is lost before a session begins
    more: Fields | None = None  #: further fields of the answer
    #: Carries out what follows the answer; None if a session follows.
    then: Callable[[Streams], Awaitable[None]] | None = None


def receiver(answer: Callable[[Fields], Awaitable[Welcome]]) -> OnConnection:
    """Returns the function that handles the connection of a program that connects. `answer` can
    raise Refused.
    """

    async def first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await asyncio.wait_for(_first.read(reader), GREETING)
        assert isinstance(writer.transport, _net_tls.Tls)
        writer.transport.has_come()
        ends = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        if ends in _asking:
            raise Refused("this is the program itself, and a session joins two programs")
        welcome = await answer(request)
        trusted = welcome.trust and request.get("trust") is True
        if welcome.then is not None:
            await follow((reader, writer), welcome, trusted)
            return
        try:
            await _say(writer, welcome, trusted)
            session = await _session(reader, writer, request["host"], trusted)
        except BaseException:
            welcome.lost()
            raise
        welcome.begun(session)

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            _watch_over(writer)
            try:
                await first(reader, writer)
            except Refused as error:
                writer.write(_first.refusal(error))
                await close_writer(writer)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # the other side has left, or this program is leaving
        except BaseException:
            writer.transport.abort()
            raise

    return on_connection


async def _say(writer: asyncio.StreamWriter, welcome: Welcome, trusted: bool) -> None:
    writer.write(_first.packed({"host": welcome.host, "trust": trusted, **(welcome.more or {})}))
    await writer.drain()


async def follow(streams: Streams, welcome: Welcome, trusted: bool) -> None:
    """Sends the answer of a Welcome with `then`, and calls `then`: no session begins here."""
    assert welcome.then is not None
    try:
        await _say(streams[1], welcome, trusted)
        await welcome.then(streams)
    except BaseException:
        welcome.lost()
        raise


async def serve(tls: ssl.SSLContext, address: str, on_connection: OnConnection) -> asyncio.Server:
    """Listens at an address. Each connection has its own task, so that a silent program delays no
    other.
    """
    host, port = parted(address)
    return await _net_tls.listen(tls, on_connection, host, port, LARGEST, GREETING)


async def direct(tls: ssl.SSLContext, address: str, patience: float = 2 * GREETING) -> Streams:
    """Returns a connection with the program at an address.

    Raises:
        BadUse: the program's certificate is not valid here, or the program refuses this program's
            certificate.
        OSError: no program listens at the address, or it does not answer within `patience` seconds.
    """
    host, port = parted(address)
    connects = _net_tls.connect(tls, host, port, LARGEST, GREETING)
    try:
        streams = await _net_loop.within(patience, connects, lambda s: s[1].transport.abort())
    except (ConnectionResetError, asyncio.IncompleteReadError, ssl.SSLEOFError) as error:
        raise Closed(why(error, address)) from None
    except ssl.SSLError as error:
        raise BadUse(why(error, address)) from None
    except (OSError, asyncio.TimeoutError) as error:
        late = TimeoutError() if isinstance(error, asyncio.TimeoutError) else error
        raise type(late)(unreachable(late, address, patience)) from None
    except ValueError as error:  # another program has written this address, so it can be any text
        raise ConnectionError(f"{host!r} is not the name of a machine: {error}") from None
    _watch_over(streams[1])
    return streams


async def _greeted(
    streams: Streams,
    where: str,
    request: Fields,
    fingerprint: str | None,
    parcel: _net_parcels.Parcel | None = None,
) -> Fields:
    """Sends `request`, and `parcel` if the other end asks for it. Returns the answer of the program
    at the other end.

    Raises:
        BadUse: the program refuses the request, or its certificate is not right; NameNotGranted, if the
            certificate does not grant the name that is looked for.
    """
    reader, writer = streams
    ends = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
    try:
        if None not in ends:  # the relay has no addresses
            _asking.add(ends)
        way: Any = writer.transport
        if fingerprint is not None and _net_keys.fingerprint_of(way.shown) != fingerprint:
            raise BadUse(
                f"{where} is not the program that was announced: its certificate has another fingerprint. "
                "If the program there was restarted with other keys, its name is free in 15 seconds; else somebody stands in for it"
            )
        # The name must be checked before anything is sent: any member might have written the entry
        # (17.3), so a program that is not allowed to hold the name might have taken it over.
        name = request.get("name")
        if name is not None and not (member := way.member()).may_hold(name):
            raise NameNotGranted(
                f"{where} may not offer {name!r}: {member}. Somebody has taken the name who may not hold it (`weft net ls` says where); "
                f"or it needs other keys: {member.with_name(name)}"
            )
        _net_steps.at("comer.reached")
        writer.write(_first.packed(request))
        _net_steps.at("comer.said")
        patience = BEGINS if "run" in request else GREETING
        try:
            answer = await asyncio.wait_for(_first.read(reader), patience)
            if parcel is not None and answer.get("send") is True:
                reads = asyncio.get_running_loop().run_in_executor
                await write_pieces(writer, await reads(None, _net_parcels.packed, parcel))
                answer = await asyncio.wait_for(_first.read(reader), patience)
        except asyncio.TimeoutError:
            does = f"has not begun {request['run']}" if "run" in request else "says nothing"
            raise BadUse(
                f"{where} {does} within {patience:g} seconds: it is stopped, its machine is too busy, "
                "or it is no Weft program"
            ) from None
        except Refused as error:
            raise BadUse(f"{where}: {error}") from None
        except (OSError, EOFError) as error:
            # With TLS 1.3 the other side can refuse a certificate only at this point.
            kind = BadUse if isinstance(error, ssl.SSLError) else Closed
            raise kind(why(error, where)) from None
        if "refused" in answer:
            again = answer.get("again") is True
            because = _foreign_json.shown(str(answer["refused"]), _first.TOLD)
            raise (StaleTicket if again else BadUse)(f"{where} refuses: {because}")
        return answer
    except BaseException:
        writer.transport.abort()
        raise
    finally:
        _asking.discard(ends)


async def begun(
    streams: Streams,
    where: str,
    request: Fields,
    fingerprint: str | None = None,
    parcel: _net_parcels.Parcel | None = None,
) -> Session:
    """Returns a session over an open connection. `where` is the name of its other end in messages.
    `parcel` is sent if the other end asks for it.

    Raises:
        BadUse: the other end refuses, or its certificate is not right.
    """
    answer = await _greeted(streams, where, request, fingerprint, parcel)
    try:
        trusted = request["trust"] is True and answer.get("trust") is True
        session = await _session(*streams, answer["host"], trusted)
    except BaseException:
        streams[1].transport.abort()
        raise
    session._answer_fields = answer
    _net_steps.at("comer.begun")
    return session


async def reach(
    tls: ssl.SSLContext, address: str, request: Fields, fingerprint: str | None = None
) -> Session:
    """Returns a session with the program at an address. Raises what direct() and begun() raise."""
    return await begun(await direct(tls, address), address, request, fingerprint)


async def asked(streams: Streams, where: str, request: Fields, fingerprint: str) -> Fields:
    """Returns the answer of the program at the other end, after which no session follows. Raises
    what begun() raises.
    """
    answer = await _greeted(streams, where, request, fingerprint)
    await close_writer(streams[1])
    return answer


def parted(address: str) -> tuple[str, int]:
    """Splits "host:port" into host and port.

    Raises:
        BadUse: `address` is not of that form.
    """
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    number = port.isascii() and port.isdigit() and len(port) <= 5
    if not colon or not host or not number or int(port) > 65535:
        raise BadUse(
            f"an address must be 'HOST:PORT', with a port from 0 to 65535, not {address!r:.100}"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def joined(server: asyncio.Server) -> str:
    """Returns the address at which the server listens. A link-local IPv6 address lacks its zone,
    which other machines on that network have to add.
    """
    host, port, *more = server.sockets[0].getsockname()
    if ":" not in host:
        return f"{host}:{port}"
    zone = more[1] if len(more) > 1 and "%" not in host else 0
    return f"[{host}%{socket.if_indextoname(zone)}]:{port}" if zone else f"[{host}]:{port}"

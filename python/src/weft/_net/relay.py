"""The relay: connections of two programs that cannot reach each other, through the NATS server
(WIRE-NETWORKS.md 17.17 to 17.21).

    write() ──► Way: TLS, _Line ──packets──► Relay ──messages──► the server
    reader ◄── Way: TLS, _Line ◄──receive()── Relay ◄──messages── the server

    asked for ──START, both ways──► linked ──close(), all acknowledged──────────────────────► over
                  └── abort() │ the other's last message │ no sign of life for LEASE ──────────┘

A server that restarts, or that cuts off a slow client, loses messages silently. So the messages
through the relay are packets as on a serial link, which are sent again until they are acknowledged.

Invariants
- All of this belongs to the loop's thread.
- At most a window of packets each way, and HIGH written bytes, wait here for each session; if there
  are more, the writer waits.
- The TLS session is with the other program, so the server sees only encrypted bytes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import re
import secrets
import ssl
import types
from collections.abc import Coroutine, Generator
from typing import Any

import nats.errors

from weft._extension import native as _native
from weft._net import foreign_json as _foreign_json
from weft._net.tls import OnConnection, Streams, Tls

__all__ = ["RELAY", "Relay", "Way"]

RELAY = "weft.relay"  # all subjects begin with this
# PACKET: the largest number of bytes of a session in a packet. WINDOW: the largest number of
# packets under way.
PACKET, WINDOW = 16_384, 32
RESEND, MAX_RESEND = 200, 2_000  # ms until packets are sent again: the first value, and the largest
LEASE = 20_000  # ms without a sign of life after which the connection ends
TELL = 0.005  # seconds for which an acknowledgement waits, so that it can travel with data
# Bytes that wait to be queued: above HIGH, the writer waits until there are fewer than LOW.
HIGH, LOW = 1 << 18, 1 << 16
# Seconds for a program to answer a request for a session, and for the hand-shake of TLS.
MEET = 10.0
# Seconds within which a program that has lost the server connects again, counted from when this
# program has connected again.
BACK = 3.0
LAST = 3.0  # seconds for the last messages to be sent
# If more bytes than this wait in the client, the client can make the sender wait.
MUCH = 1 << 20
# How many hand-shakes that other programs have asked for may be under way at one time.
MAX_HANDSHAKES = 256

# The exceptions that the client raises if the server fails or is absent. (The client can write to a
# connection that it has lost.)
_LOST = (nats.errors.Error, asyncio.TimeoutError, OSError, AttributeError)
_PLACE = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{16}")  # F.H: fingerprint and home
_SESSION = re.compile(r"[0-9a-f]{32}")


class Relay:
    """Carries what this program sends and receives through the relay.

    Args:
        client: the client of the server; it is connected, and reconnects automatically.
        place: this program's F.H.
        tls: the context for connections that other programs open.
        on_connection: called with the streams of each connection that another program opens.
    """

    def __init__(
        self, client: Any, place: str, tls: ssl.SSLContext, on_connection: OnConnection
    ) -> None:
        self._client, self._place = client, place
        self._tls, self._on_connection = tls, on_connection
        self._ways: dict[str, Way] = {}
        self._out: collections.deque[tuple[Way, bytes]] = collections.deque()
        self._at_it = False  # whether a task is emptying `_out`
        self._tasks: set[asyncio.Task[Any]] = set()
        self._shaking = 0
        self._since = asyncio.get_running_loop().time()  # when this program was last connected

    async def begin(self) -> None:
        await self._client.subscribe(f"{RELAY}.{self._place}.*", cb=self._on_message)

    def _start(self, what: Any) -> None:
        task = asyncio.ensure_future(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def sessions(self) -> int:
        """How many sessions go through the relay."""
        return sum(1 for way in self._ways.values() if way.linked)

    def hurry(self) -> None:
        """Makes all connections send immediately, because the server is back."""
        self._since = asyncio.get_running_loop().time()
        for way in list(self._ways.values()):
            way.hurry()

    async def end(self) -> None:
        """Reports to the other side of each connection that this program leaves the network."""
        for way in list(self._ways.values()):
            way.abort()
        loop = asyncio.get_running_loop()
        until = loop.time() + LAST
        while self._at_it and loop.time() < until:
            await asyncio.sleep(0.01)
        for task in list(self._tasks):
            task.cancel()

    # --- messages -------------------------------------------------------------------------------

    def send(self, way: Way, data: bytes) -> None:
        """Sends immediately, unless the client has to wait for the connection to the server:
        starting a task for each message would take a tenth of a round trip.
        """
        self._out.append((way, data))
        if self._at_it:
            return
        self._at_it = True
        if self._client.pending_data_size > MUCH:
            self._start(self._send_all())
            return
        sending = self._send_all()
        try:
            waits_for = sending.send(None)
        except StopIteration:
            return
        self._start(_rest(sending, waits_for))

    async def _send_all(self) -> None:
        try:
            while self._out:
                way, data = self._out.popleft()
                most = max(self._client.max_payload, 1)
                with contextlib.suppress(*_LOST):  # a packet that is lost is sent again
                    for at in range(0, max(len(data), 1), most):
                        if not self._client.is_connected:
                            break
                        await self._client.publish(way.there, data[at : at + most])
                way.sent(len(data))
        finally:
            self._at_it = False

    async def _on_message(self, message: Any) -> None:
        last = message.subject.rpartition(".")[2]
        if last == "meet":
            await self._asked(message)
        elif (way := self._ways.get(last)) is not None:
            way.receive(message.data)

    # --- incoming connections -------------------------------------------------------------------

    async def _asked(self, message: Any) -> None:
        answer: dict[str, str] = {}
        try:
            request = _foreign_json.parsed(message.data)
            session, place = request["session"], request["from"]
            if not _SESSION.fullmatch(session) or not _PLACE.fullmatch(place):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            answer = {"refused": "the request does not say its session and where it comes from"}
        else:
            if session not in self._ways and self._shaking >= MAX_HANDSHAKES:
                answer = {"refused": "too many ask at once: try again"}
            elif session not in self._ways:
                way = self._ways[session] = Way(self, session, place, self._tls, server=True)
                self._shaking += 1
                self._start(self._let_in(way))
        with contextlib.suppress(*_LOST):  # the other program will ask again
            await message.respond(json.dumps(answer).encode())

    async def _let_in(self, way: Way) -> None:
        try:
            streams = await way.streams(MEET)
        except OSError:  # the other program has no certificate of this network, or has ended
            way.abort()
            return
        finally:
            self._shaking -= 1
        await self._on_connection(*streams)

    # --- connections that this program asks for -------------------------------------------------

    async def leads_nowhere(self, place: str) -> bool:
        """Returns whether the server knows that no program listens at F.H (`place`). Returns False
        if the server does not answer. If the server has just restarted, the other program may not
        be connected yet; so the answer counts only once this program has been connected for BACK
        seconds.
        """
        loop = asyncio.get_running_loop()
        if not _PLACE.fullmatch(place):
            return False
        while True:
            try:  # a program that listens at `place` ignores this message
                await self._client.request(f"{RELAY}.{place}.gone", b"", timeout=1.0)
            except nats.errors.NoRespondersError:
                if loop.time() - self._since > BACK:
                    return True
            except _LOST:
                return False
            await asyncio.sleep(0.1)

    async def open(self, place: str, tls: ssl.SSLContext) -> Streams:
        """Returns a connection with the program at F.H.

        Raises:
            OSError: the program has ended, or does not answer; or TLS fails (an SSLError).
        """
        if not _PLACE.fullmatch(place):
            raise ConnectionError("its entry does not say where it can be reached")
        session = secrets.token_hex(16)
        way = self._ways[session] = Way(self, session, place, tls, server=False)
        try:
            await self._ask(session, place)
            return await way.streams(MEET)
        except BaseException:
            way.abort()
            raise

    async def _ask(self, session: str, place: str) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + MEET
        asks = json.dumps({"session": session, "from": self._place}).encode()
        why = "nobody answers"
        while loop.time() < until:
            try:
                subject = f"{RELAY}.{place}.meet"
                answer = await self._client.request(subject, asks, timeout=1.0)
                reply = _foreign_json.parsed(answer.data)
                if reply == {}:
                    return
                because = _foreign_json.shown(str(reply["refused"]), 200)
                raise ConnectionRefusedError(f"it refuses: {because}")
            except nats.errors.NoRespondersError:
                why = "nobody listens there"
                # For BACK seconds after this program has reconnected, the other program might still
                # be unconnected.
                if loop.time() - self._since > BACK:
                    break
            except (ValueError, TypeError, KeyError):
                raise ConnectionRefusedError(
                    "the program that answers through the NATS server is not a Weft program"
                ) from None
            except ConnectionRefusedError:
                raise
            except _LOST as error:
                why = str(error) or why
            await asyncio.sleep(0.05)
        raise TimeoutError(
            f"{why}. Either the program has gone, or the NATS server does not let this program publish "
            f"to {RELAY}.>, or does not let that one subscribe to it"
        )

    def forget(self, session: str) -> None:
        self._ways.pop(session, None)


@types.coroutine
def _rest(begun: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Lets a task run the rest of a coroutine that has begun."""
    yield waits_for
    yield from begun


class Way(Tls):
    """A connection through the relay."""

    def __init__(
        self, relay: Relay, session: str, place: str, tls: ssl.SSLContext, server: bool
    ) -> None:
        super().__init__(tls, server, None, HIGH, {"relayed": True})
        self.there = f"{RELAY}.{place}.{session}"
        self._relay, self._session = relay, session
        token = secrets.randbits(32) or 1
        self._line = _native._Line(token, WINDOW, PACKET, RESEND, LEASE, MAX_RESEND)
        self._out = bytearray()  # bytes that are not queued yet
        self._sending = 0  # bytes that the relay still has to send
        self._waits = False  # whether the connection waits until these bytes are sent
        self._timer: asyncio.TimerHandle | None = None
        self._begun = self._loop.time()
        self._shake()
        self._tick()

    @property
    def linked(self) -> bool:
        return self._line.linked

    def _send(self) -> None:
        self._out += self._goes_out.read()

    # --- incoming packets -------------------------------------------------------------------------

    def _now(self) -> int:
        return int(self._loop.time() * 1000)

    def receive(self, data: bytes) -> None:
        if self._over:
            return
        if not data:
            self._end(ConnectionResetError("the peer has gone"))
            return
        if got := self._line.input(self._now(), data):
            self._receive(got)
        self._pump(patient=True)

    def pause_reading(self) -> None:
        super().pause_reading()
        self._line.hold(True)

    def _go_on(self) -> None:
        super()._go_on()
        if not self._holds and not self._over:
            self._line.hold(False)
            self._pump()

    # --- outgoing packets -------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._over or self._closing:
            return
        super().write(data)
        self._pump()

    def put(self, data: Any) -> None:
        super().put(data)
        if not self.full and len(self._out) > HIGH:
            self._is_full(True)

    def was_put(self) -> None:
        self._pump()

    def sent(self, size: int) -> None:
        """Records that the relay has sent this many bytes."""
        self._sending -= size
        if self._waits and self._sending == 0:
            self._pump(patient=True)

    def _pump(self, patient: bool = False) -> None:
        """Sends as many bytes as there is room for, and the packets that are due."""
        if self._over:
            return
        if self._out and (took := self._line.queue(self._out)):
            del self._out[:took]
        # Bytes that the server's connection has not taken yet must not be queued there a second
        # time.
        self._waits = self._sending >= PACKET * WINDOW
        if not self._waits and (data := self._line.output(self._now(), patient)):
            self._sending += len(data)
            self._relay.send(self, data)
        if self._line.lost is not None:
            self._end_and_report(ConnectionResetError(self._line.lost))
            return
        if self.full and len(self._out) < LOW:
            self._is_full(False)
            if self._over:
                return
        if self._closing and not self._out and self._line.settled:
            self.abort()
            return
        self._next_tick()

    def _next_tick(self) -> None:
        now = self._loop.time()
        if self._timer is not None and self._timer.when() <= now + TELL:
            return  # the timer is already set early enough for everything that might be due
        at = self._begun + MEET if not self._line.linked else float("inf")
        if (due := self._line.due()) is not None:
            at = min(at, (due + 1) / 1000)
        if self._line.owes:
            at = min(at, now + TELL)
        if self._waits:  # sent() will continue with the packets, so only the lease is checked here
            at = max(at, now + RESEND / 1000)
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._tick) if at != float("inf") else None

    def _tick(self) -> None:
        self._timer = None
        if not self._line.linked and self._loop.time() > self._begun + MEET:
            self._end_and_report(TimeoutError("the peer says nothing"))
            return
        self._line.passed(self._now())
        self._pump()

    def hurry(self) -> None:
        """Sends immediately, because the server is back."""
        if not self._over:
            self._line.hurry(self._now())
            if self._timer is not None:
                self._timer.cancel()
            self._tick()

    # --- its end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the connection, after the written bytes have been sent and acknowledged."""
        if self._over or self._closing:
            return
        self._closing = True
        if not self._line.linked:
            self.abort()
        else:
            self._line.hold(False)
            self._pump()

    def abort(self) -> None:
        self._end_and_report(None)

    def _end_and_report(self, error: OSError | None) -> None:
        """Ends the connection, and reports that to the other side if possible."""
        if not self._over:
            self._relay.send(self, b"")
            self._end(error)

    def _end(self, error: OSError | None) -> None:
        """Ends the connection. The reader sees an end of file instead of a reset: bytes that have
        arrived are read first (WIRE.md 2.4), and show the reader whether the peer had finished
        (17.13).
        """
        self._over = self._closing = True
        self._error = self._error or error
        self._relay.forget(self._session)
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._shaken.set()
        self._loop.call_soon(self._protocol.connection_lost, None)

    # --- as a transport -------------------------------------------------------------------------

    def get_write_buffer_size(self) -> int:
        return len(self._out)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing: the limits are HIGH and LOW."""

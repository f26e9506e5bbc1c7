"""Names of channels in a key-value bucket of JetStream: which program holds a name, and how two
programs meet by such a name (WIRE-NETWORKS.md 17.3, 17.4, 17.8).

    offer() ──create──► the entry has a ticket
        ──a program takes it out (compare-and-set)──► the entry has none, and the home is notified
        ──a new ticket: one was taken, or RENEW has gone by──► the entry has a ticket

Invariants
- All fields of a Network belong to the loop's thread, except the length of `_sessions`.
- A ticket is added to `Offer.tickets` before it is written to the entry, and stays there until it
  is shown, or until MEETING after it was replaced. Only the latest MAX_OUT are kept.
- A program that took a ticket may never show it. So the next ticket is written when one is taken
  (`_wrote`). The home learns this from a consumer of the bucket's stream, which reports the entries
  that were written, and not each attempt to write. So nothing is written for programs that arrive
  too late, however many arrive at once.
- No session waits for the server. If the server is down, the next renewal writes the entries that
  could not be written.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import os
import secrets
import ssl
from collections.abc import Callable
from typing import Any

from weft._net import entries as _net_entries
from weft._net import foreign_json as _foreign_json
from weft._net import keys as _net_keys
from weft._net import kill_points as _net_steps
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._net import parcels as _net_parcels
from weft._net import reasons as _net_reasons
from weft._net import relay as _net_relay
from weft._net import server_faults as _net_faults
from weft._net import takeover as _net_takeover
from weft._net.entries import BUCKET
from weft._net.name_rules import HOST, Host, Named, NotYet, checked
from weft._net.offer import MEETING, SIDES, Offer
from weft.errors import BadUse, ChannelEnd

try:
    import nats.errors
    from nats.js import errors as js_errors
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, KeyValueConfig
    from nats.js.kv import KeyValue

    from weft._net import nats_client as _nats_client
except ImportError as error:
    raise ImportError("names need nats-py: pip install 'weft-csp[net]'") from error

__all__ = ["Meeting"]

# In seconds: an entry is kept for LIVES after it was written; its home writes it every RENEW.
LIVES, RENEW = 15.0, 5.0
WRONG_LAST = 10071, 10164  # the server's codes for "another revision is the last"
SERVER = 10.0  # seconds for the server to answer
REACH = 3.0  # seconds for an address to answer, if the relay may be used
BEYOND = 300.0  # seconds before an address that did not answer is tried again
BACK = 1.0  # seconds to wait until the server is back, before a list is read or a name is offered

# asyncio logs this harmless message when one of the client's connections, which begin without TLS, ends.
_NO_MATTER = "returning true from eof_received() has no effect when using ssl"
logging.getLogger("asyncio").addFilter(
    lambda r: r.msg != _NO_MATTER or r.threadName != _net_loop.THREAD
)

_logger = logging.getLogger("weft")

# The homes of this program, which might have joined twice. No session is made between two of them.
_own_homes: set[str] = set()
os.register_at_fork(after_in_child=_own_homes.clear)

# The exceptions that the client raises if the server fails or is absent.
_LOST = (nats.errors.Error, asyncio.TimeoutError, OSError)


class Meeting:
    """The part of a Network that deals with names. It belongs to the loop's thread."""

    def __init__(
        self,
        url: str,
        keys: Any,
        host: str,
        trust: bool,
        relay: str,
        kept: Callable[[Any], None],
    ) -> None:
        self.url, self.host, self.trust = url, host, trust
        self._relay_use = relay  # "auto", "only" or "never"
        self._relay: _net_relay.Relay | None = None
        # Home whose address did not answer → the time until which it is not tried again.
        self._beyond: dict[str, float] = {}
        self.home = secrets.token_hex(8)
        _own_homes.add(self.home)
        self.kept = kept  # called with each session that has begun
        self.address = ""
        own = _net_keys.Keys(keys)
        self._client_tls, self._server_tls = own.client, own.server
        self._fingerprint, self.member = own.fingerprint, own.member
        self._offers: dict[str, Offer] = {}
        # Name of a host → its entry and its pass.
        self._passes: dict[str, tuple[dict[str, Any], str]] = {}
        self._why = ""  # the client's last error
        self._tasks: set[asyncio.Task[Any]] = set()
        self._nats: Any = None
        self._bucket: KeyValue | None = None
        self._server: asyncio.Server | None = None

    # --- the server -------------------------------------------------------------------------------

    async def begin(self, address: str) -> None:
        """Listens, and connects with the server.

        Raises:
            BadUse: the server does not answer, refuses this program, or has no JetStream.
            OSError: no program can listen at the address.
        """
        on_connection = _net_link.receiver(self._answer)
        if self._relay_use != "only":
            self._server = await _net_link.serve(self._server_tls, address, on_connection)
            self.address = _net_link.joined(self._server)
        try:
            await self._connect()
            if self._relay_use != "never":
                place = f"{self._fingerprint}.{self.home}"
                self._relay = _net_relay.Relay(self._nats, place, self._server_tls, on_connection)
                await self._relay.begin()
        except BaseException:
            await self.leave()
            await self.end()
            raise
        self._start(self._renew_for_ever())

    def _start(self, what: Any) -> None:
        task = asyncio.ensure_future(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        async def back() -> None:
            if self._relay is not None:
                self._relay.hurry()
            for offer in list(self._offers.values()):
                self._start(self._hear(offer))  # a server that was started again has no consumers

        async def trouble(error: Exception) -> None:
            self._why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if self._nats is None:  # otherwise the client would try forever
                raise error

        try:
            self._nats = await _net_loop.within(
                SERVER,
                _nats_client.connect(
                    self.url,
                    name=self.host,
                    tls=self._client_tls,
                    error_cb=trouble,
                    reconnected_cb=back,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.25,
                    connect_timeout=int(SERVER),
                ),
                lambda client: self._start(client.close()),
            )
            await self._names()
        except _LOST as error:  # SSLError is one of these exceptions
            why = await _net_faults.sentence(self.url, error, self._why or str(error))
            raise BadUse(f"the NATS server at {self.url} cannot be used: {why}") from None

    async def _connected(self, patience: float) -> None:
        """Waits at most `patience` seconds for the connection with the server.

        Raises:
            ConnectionError: the server cannot be reached.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while not self._nats.is_connected:
            if loop.time() > until:
                raise ConnectionError("the connection is lost")
            await asyncio.sleep(0.02)

    async def _names(self) -> KeyValue:
        """Returns the bucket, which is made if it does not exist."""
        if self._bucket is None:
            js = self._nats.jetstream(timeout=SERVER / 2)
            try:
                self._bucket = await js.key_value(BUCKET)
            except js_errors.NotFoundError:
                self._bucket = await js.create_key_value(
                    KeyValueConfig(bucket=BUCKET, ttl=LIVES, history=1)
                )
        return self._bucket

    async def leave(self) -> None:
        """Releases all names, so that no further programs connect. The sessions go on."""
        for task in list(self._tasks):
            task.cancel()
        offers = list(self._offers.values())
        for offer in offers:
            self._end_offer(offer)
        if self._server is not None:
            self._server.close()
        if self._nats is not None and self._nats.is_connected:
            with contextlib.suppress(*_LOST):
                await asyncio.wait_for(
                    asyncio.gather(*map(self._let_go, offers), return_exceptions=True), SERVER / 2
                )

    async def end(self) -> None:
        """Closes the connection with the server, and the sessions through the relay."""
        _own_homes.discard(self.home)
        if self._relay is not None:
            await self._relay.end()
        if self._nats is None:
            return
        # The client can write to a connection that it has lost.
        with contextlib.suppress(*_LOST, AttributeError):
            await asyncio.wait_for(self._nats.close(), SERVER / 2)

    # --- the home's side --------------------------------------------------------------------------

    def _begin_offer(self, offer: Offer) -> None:
        """Records that a program can now connect for the offer, which can wake a run here
        (17.16)."""
        self._offers[offer.name] = offer
        _net_loop.outside(True)

    def _end_offer(self, offer: Offer) -> None:
        """Records that no program will connect for the offer any more. A second call does
        nothing."""
        if self._offers.get(offer.name) is offer:
            del self._offers[offer.name]
            _net_loop.outside(False)
            if offer.hears is not None:
                self._start(self._unsubscribe(offer.hears))

    async def _hear(self, offer: Offer) -> None:
        """Makes the server report this entry and later ones to _wrote(), unless it already does."""
        with contextlib.suppress(*_LOST):
            if offer.hears is None:
                inbox = self._nats.new_inbox()
                callback = functools.partial(self._wrote, offer)
                offer.hears = await self._nats.subscribe(inbox, cb=callback)
            if self._offers.get(offer.name) is not offer:
                await offer.hears.unsubscribe()
                return
            consumer = ConsumerConfig(
                name=offer.consumer,
                deliver_subject=offer.hears.subject,
                deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
                ack_policy=AckPolicy.NONE,
                filter_subject=f"$KV.{BUCKET}.{offer.name}",
                # If this program has ended, the server drops the consumer after this many seconds.
                inactive_threshold=LIVES,
            )
            js = self._nats.jetstream(timeout=SERVER / 2)
            offer.is_heard = False
            await js.add_consumer(f"KV_{BUCKET}", consumer)
            offer.is_heard = True

    async def _unsubscribe(self, subscription: Any) -> None:
        with contextlib.suppress(*_LOST):
            await subscription.unsubscribe()

    def check(self, name: str) -> None:
        """Checks that the certificate grants a name.

        Raises:
            BadUse: this program may not hold the name.
        """
        if not self.member.may_hold(name):
            raise BadUse(
                f"this program may not offer {name!r}: {self.member}. Keys that may are made where the authority's key is: "
                f"{self.member.with_name(name)}"
            )

    async def offer(
        self, name: str, channel: Any, readers: bool, writers: bool, agent: Any = None
    ) -> None:
        self.check(name)
        if name in self._offers:
            raise BadUse(f"{name!r} is offered by this program already: withdraw it first")
        offer = Offer(name, channel, readers, writers)
        offer.agent = agent
        self._begin_offer(offer)
        try:
            await self._connected(BACK)
            _net_steps.at("home.offer")
            await self._write(offer)
            _net_steps.at("home.offered")
            self._start(self._hear(offer))
        except js_errors.KeyWrongLastSequenceError:
            self._end_offer(offer)
            raise BadUse(f"the name {name!r} is taken{await self._taken_by(name)}") from None
        except _LOST as error:
            self._end_offer(offer)
            raise BadUse(
                f"the name {name!r} could not be written at {self.url} ({error or type(error).__name__}): is the server up?"
            ) from None

    async def _wrote(self, offer: Offer, message: Any) -> None:
        """Handles a message which says that some program has written the entry."""
        # A message that is not from the bucket is ignored.
        with contextlib.suppress(ValueError, nats.errors.Error):
            fields = _foreign_json.parsed(message.data, _net_entries.MAX_BYTES)
            if (
                isinstance(fields, dict)
                and fields.get("home") == self.home
                and fields.get("ticket", "") is None
                and message.metadata.sequence.stream > offer.revision
                and self._offers.get(offer.name) is offer
            ):
                self._renew_soon(offer)

    async def _taken_by(self, name: str) -> str:
        with contextlib.suppress(*_LOST, BadUse):
            entry = _net_entries.of((await (await self._names()).get(name)).value or b"", name)
            return (
                f" by {entry['host']} {_net_entries.where(entry)}: take another name, or end that program. "
                f"A name whose home was killed is free after {LIVES:.0f} seconds"
            )
        return ": try again, or take another name"

    async def _write(self, offer: Offer) -> None:
        """Writes the entry, with a new ticket. Does nothing if the name has been released
        meanwhile.

        Raises:
            KeyWrongLastSequenceError: the entry belongs to another home.
        """
        names = await self._names()
        async with offer.writing:
            offer.due = False
            if self._offers.get(offer.name) is not offer:
                return  # this is a renewal that has waited for _let_go()
            now = asyncio.get_running_loop().time()
            entry = {
                "address": self.address,
                "fingerprint": self._fingerprint,
                "home": self.home,
                "host": self.host,
                "relay": self._relay is not None,
                "relayed": 0 if self._relay is None else self._relay.sessions,
                "ticket": offer.new_ticket(now),
                **offer.entry(),
            }
            packed = json.dumps(entry).encode()
            last = offer.revision
            while True:
                try:
                    offer.revision = (
                        await names.update(offer.name, packed, last=last)
                        if last
                        else await names.create(offer.name, packed)
                    )
                    return
                except js_errors.KeyWrongLastSequenceError:
                    current = await self._entry_of(names, offer.name)
                    last, entry_there = current or (0, {"home": self.home})
                    # An entry of this home that was overwritten with rubbish may be written again.
                    foreign = entry_there.get("home") != self.home
                    taken = foreign and (entry_there or not offer.revision)
                    whose = entry_there, self._fingerprint, self._relay
                    if taken and (offer.revision or not await _net_takeover.is_gone(*whose)):
                        raise
                except js_errors.KeyNotFoundError:
                    # The entry expired while create() was checking it.
                    last = 0

    async def _entry_of(self, names: KeyValue, name: str) -> tuple[int, dict[str, Any]] | None:
        """Returns an entry's revision and its content; the content is {} if Weft has not written
        the entry. Returns None if there is no entry."""
        fields: dict[str, Any] = {}
        try:
            entry = await names.get(name)
            with contextlib.suppress(BadUse):
                fields = _net_entries.of(entry.value or b"", name)
        except js_errors.NotFoundError:
            return None
        return (entry.revision or 0), fields

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(RENEW)
            await asyncio.gather(*map(self._renew, list(self._offers.values())))

    def _renew_soon(self, offer: Offer) -> None:
        if not offer.due:
            offer.due = True
            self._start(self._renew(offer))

    async def _renew(self, offer: Offer) -> None:
        _net_steps.at("home.renew")
        try:
            await self._write(offer)
            if not offer.is_heard:  # the server has restarted without the bucket
                self._start(self._hear(offer))
        except js_errors.KeyWrongLastSequenceError:  # the name was taken over by another home
            self._end_offer(offer)
            taken = f"is taken{await self._taken_by(offer.name)}"
            _logger.warning("%r, which this program has offered, %s", offer.name, taken)
        except js_errors.NotFoundError:  # the server has lost the bucket
            self._bucket = None
        except _LOST:
            pass  # the next renewal tries again

    async def withdraw(self, name: str) -> None:
        offer = self._offers.get(name)
        if offer is None:
            raise BadUse(f"{name!r} is not offered by this program (any more)")
        self._end_offer(offer)
        with contextlib.suppress(*_LOST):
            await self._let_go(offer)

    async def _let_go(self, offer: Offer) -> None:
        names = await self._names()
        async with offer.writing:
            while current := await self._entry_of(names, offer.name):
                if current[1].get("home") != self.home:
                    return
                _net_steps.at("home.leave")
                try:
                    await names.delete(offer.name, last=current[0])
                    _net_steps.at("home.left")
                    return
                except js_errors.BadRequestError as error:
                    # A renewal that was cancelled after it was sent might have written the entry.
                    if error.err_code not in WRONG_LAST:
                        raise

    async def _answer(self, request: dict[str, Any]) -> _net_link.Welcome:
        _net_steps.at("home.heard")
        name, side = request.get("name"), request.get("side")
        offer = self._offers.get(name) if isinstance(name, str) else None
        if offer is None:
            raise _net_link.Refused(
                f"no channel {name!r} is offered here (any more): `weft net ls` shows the names"
            )
        if offer.agent is not None and "pass" in request:
            if not offer.agent.knows(request["pass"]):
                raise _net_link.Refused("this pass belongs to another agent", again=True)
            return await self._welcome_of(offer, request)
        if not offer.takes(request.get("ticket"), asyncio.get_running_loop().time()):
            raise _net_link.Refused(
                f"the ticket for {name!r} is not valid: each is valid once, for {MEETING:.0f} seconds. Ask for the name again"
            )
        if offer.lacks():
            self._renew_soon(offer)
        if offer.agent is not None:
            return await self._welcome_of(offer, request)
        if side not in SIDES or not (offer.readers if side == "reader" else offer.writers):
            gives = " and ".join(
                s for s, on in zip(SIDES, (offer.readers, offer.writers), strict=True) if on
            )
            raise _net_link.Refused(f"{name!r} gives {gives} ends only")
        try:
            end = offer.end(side)
        except ChannelEnd as error:
            raise _net_link.Refused(f"the channel {name!r} has ended ({error})") from None

        def begun(session: _net_link.Session) -> None:
            self.kept(session)
            _net_steps.at("home.give")
            try:
                session.give("end", end)
                _net_steps.at("home.given")
            except BadUse as error:  # values that cannot be sent wait in the channel
                end.retire()
                session._link.close(str(error))

        _net_steps.at("home.answer")
        return _net_link.Welcome(self.host, self.trust, begun, end.retire)

    async def _welcome_of(self, offer: Offer, request: dict[str, Any]) -> _net_link.Welcome:
        welcome: _net_link.Welcome = await offer.agent.welcome(request)
        return welcome

    # --- the side that connects -------------------------------------------------------------------

    async def come(self, name: str, side: str, patience: float) -> _net_link.Session:
        """Returns a session with the home of the name, which gives the end under the name "end"."""
        entry = await self._ticket_for(name, side, patience)
        request = {
            "host": self.host,
            "trust": self.trust,
            "name": name,
            "side": side,
            "ticket": entry["ticket"],
        }
        try:
            streams, where = await self._way_to(entry)
        except OSError as error:
            who = f"{entry['host']}, the home of {name!r}, does not answer {error}"
            raise ConnectionError(_net_reasons.no_answer(who, LIVES)) from None
        session = await _net_link.begun(streams, where, request, entry["fingerprint"])
        self.kept(session)
        return session

    async def begin_call(
        self,
        name: str,
        request: dict[str, Any],
        patience: float,
        soon: float | None = None,
        parcel: _net_parcels.Parcel | None = None,
    ) -> _net_link.Session:
        """Returns a session with an OS process of the host of that name, for a call
        (WIRE-NETWORKS.md 17.9).

        Args:
            patience: seconds within which the server and the host must be reachable.
            soon: how many of these seconds to wait for the host. None means all of them.
            parcel: the source that the host gets if it asks for it.

        Raises:
            NotYet: no program is that host, or it has no ticket.
            BadUse: the host's agent refuses.
            ConnectionError: the host's agent does not answer.
        """
        request = {**request, "host": self.host, "trust": self.trust, "name": HOST + name}
        if name in self._passes:
            entry, known = self._passes[name]
            with contextlib.suppress(OSError, _net_link.StaleTicket):
                return await self._reach_host(name, entry, {**request, "pass": known}, parcel)
            self._passes.pop(name, None)  # another agent might hold the name now
        entry = await self._ticket_for(HOST + name, "host", patience, soon)
        try:
            shown = {**request, "ticket": entry["ticket"]}
            return await self._reach_host(name, entry, shown, parcel)
        except OSError as error:
            who = f"the agent of host {name!r} does not answer {error}"
            raise ConnectionError(_net_reasons.no_answer(who, LIVES, " (--address)")) from None

    async def _reach_host(
        self,
        name: str,
        entry: dict[str, Any],
        request: dict[str, Any],
        parcel: _net_parcels.Parcel | None,
    ) -> _net_link.Session:
        streams, where = await self._way_to(entry)
        session = await _net_link.begun(streams, where, request, entry["fingerprint"], parcel)
        answer = session._answer_fields
        self._passes[name] = entry, str(answer.get("pass"))
        pid = answer.get("pid")
        known = isinstance(pid, int) and 0 < pid < 1 << 31
        session._answer_fields = {
            "home": entry["home"],
            "call": str(answer.get("call")),
            "pid": pid if known else 0,
        }
        self.kept(session)
        return session

    async def fate(self, name: str, call: str) -> dict[str, Any] | None:
        """Returns how that call's OS process died; None if it still runs, or if that is not
        known."""
        found = await self._asked_of(name, "fate", call)
        return found if isinstance(found, dict) else None

    async def where(self, name: str, call: str) -> list[str] | None:
        """Returns where the processes of that call are, or None if the agent does not answer."""
        found = await self._asked_of(name, "where", call)
        if not isinstance(found, list):
            return None
        return [_foreign_json.shown(str(line), _foreign_json.MAX_BYTES) for line in found]

    async def _asked_of(self, name: str, what: str, call: str) -> Any:
        """Returns the answer of that host's agent to a question about a call, or None."""
        if name not in self._passes:
            return None
        entry, known = self._passes[name]
        request = {"host": self.host, "trust": self.trust, "name": HOST + name, "pass": known}
        with contextlib.suppress(OSError, BadUse):
            streams, where = await self._way_to(entry)
            answer = await _net_link.asked(
                streams, where, {**request, what: call}, entry["fingerprint"]
            )
            return answer.get(what)
        return None

    async def _way_to(self, entry: dict[str, Any]) -> tuple[_net_link.Streams, str]:
        """Returns a connection with the home of an entry, and its name in messages. It goes to the
        home's address, or through the relay if the address does not answer (17.17).

        Raises:
            BadUse: the home's certificate is not valid here, or the home refuses this program's
                certificate.
            OSError: the home does not answer; the text contains "at …", "by the relay …" or both,
                with the reasons.
        """
        now = asyncio.get_running_loop().time()
        address, home = entry["address"], entry["home"]
        both = self._relay is not None and entry.get("relay") is True
        why = []
        if address and self._relay_use != "only" and not (both and self._beyond.get(home, 0) > now):
            try:
                patience = REACH if both else 2 * _net_link.GREETING
                return await _net_link.direct(self._client_tls, address, patience), address
            except OSError as error:
                why.append(f"at {address} ({error})")
        if self._relay is None or not both:
            if not why or self._relay_use == "only":
                side = "it" if self._relay is not None else "this program"
                why.append(f"by the relay (which {side} does not use)")
            raise ConnectionError(", nor ".join(why))
        where = f"{entry['host']}, by the relay,"
        try:
            streams = await self._relay.open(f"{entry['fingerprint']}.{home}", self._client_tls)
        except ssl.SSLError as error:
            raise BadUse(_net_reasons.why(error, where)) from None
        except OSError as error:
            self._beyond.pop(home, None)
            raise ConnectionError(", nor ".join([*why, f"by the relay ({error})"])) from None
        if why:
            self._beyond = {h: until for h, until in self._beyond.items() if until > now}
            self._beyond[home] = now + BEYOND
        return streams, where

    async def _ticket_for(
        self, name: str, side: str, patience: float, soon: float | None = None
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        seen = ""
        try:
            await self._connected(patience)
            if soon is not None:
                until = min(until, loop.time() + soon)
            names = await self._names()
            _net_steps.at("comer.look")
            watcher = await names.watch(name)
            try:
                while True:
                    left = until - loop.time()
                    update = await watcher.updates(timeout=max(left, 0.001))  # type: ignore[no-untyped-call]
                    # No value: a deletion, or the end of the entries that existed before.
                    if update is None or not update.value:
                        continue
                    entry = _net_entries.of(update.value, name)
                    if entry["home"] in _own_homes:
                        raise BadUse(
                            f"{name!r} is a channel of this program: use {side}() of the channel itself"
                        )
                    seen = entry["host"]
                    if entry["ticket"] is None:
                        continue
                    without = json.dumps(entry | {"ticket": None}).encode()
                    _net_steps.at("comer.take")
                    with contextlib.suppress(js_errors.KeyWrongLastSequenceError):
                        await names.update(name, without, last=update.revision)
                        _net_steps.at("comer.taken")
                        return entry
            finally:
                with contextlib.suppress(*_LOST):
                    await watcher.stop()  # type: ignore[no-untyped-call]
        except js_errors.NotFoundError:
            self._bucket = None
        except _LOST as error:
            if not self._nats.is_connected:
                raise NotYet(
                    f"the server at {self.url} does not answer ({error or type(error).__name__}), "
                    f"and that server alone knows the home of {name!r}. Channels that are joined go on"
                ) from None
        raise NotYet(_net_reasons.no_ticket(name, seen, patience))

    async def names(self) -> list[Named]:
        entries = await self._entries(lambda name: not name.startswith(HOST))
        return sorted(_net_entries.named_of(*each) for each in entries.items())

    async def hosts(self) -> list[Host]:
        entries = await self._entries(lambda name: name.startswith(HOST))
        return sorted(filter(None, (_net_entries.host_of(*each) for each in entries.items())))

    async def _entries(self, wanted: Callable[[str], bool]) -> dict[str, dict[str, Any]]:
        found = {}
        try:
            await self._connected(BACK)
            names = await self._names()
            # The watcher of nats-py 2.16 can report the end of the list before its first item.
            info = await self._nats.jetstream().stream_info(f"KV_{BUCKET}", subjects_filter=">")
            for subject in info.state.subjects or ():
                name = subject.removeprefix(f"$KV.{BUCKET}.")
                if not wanted(name):
                    continue
                with contextlib.suppress(BadUse, js_errors.NotFoundError):
                    checked(name.removeprefix(HOST))
                    found[name] = _net_entries.of((await names.get(name)).value or b"", name)
        except _LOST as error:
            raise BadUse(
                f"the server at {self.url} does not answer ({error or type(error).__name__}): is it up?"
            ) from None
        return found

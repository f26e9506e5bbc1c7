"""Channels between programs on several machines (WIRE-NETWORKS.md 17): a channel by name, or a
session with a program at an address.

    with net.join() as network:                          with net.join() as network:
        network.offer("lab/results", c, writers=True)        results = network.writer("lab/results")

The ends are ordinary ends, in every backend. Programs find each other at a NATS server (`weft net
up` starts one for a developer) and then talk directly, by TLS 1.3 with certificates on both sides.
Values are None, bool, int, float, str, bytes, arrays of numpy, dataclasses that the reader
`accepts`, lists and dicts. If both programs pass `trust=True`, values are pickled instead: then
each program can make the other run any code. `pip install 'weft-csp[net]'`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import queue
import socket
import weakref
from typing import Any

from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native as _native
from weft._hosts import hosts as _hosts
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._net.keys import make_keys
from weft._net.link import Session
from weft._net.name_rules import Named, checked
from weft._net.remote_hosts import FarHost, FarHosts, OwnHosts
from weft._net.values import accepts
from weft.errors import BadUse, PeerDied

__all__ = [
    "Door",
    "Named",
    "Network",
    "Session",
    "accepts",
    "connect",
    "join",
    "listen",
    "make_keys",
]

Path = str | os.PathLike[str]
_LEFT = "this program has left the network: join again"

_open: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for one in list(_open):
        with contextlib.suppress(BadUse):
            one.close()


def _forget() -> None:
    """Empties the table in the child of a fork: sessions and doors belong to the parent."""
    _open.clear()


os.register_at_fork(after_in_child=_forget)


def _called(name: str | None) -> str:
    if name is None:
        return f"{socket.gethostname()}:{os.getpid()}"
    if not isinstance(name, str) or not 1 <= len(name) <= 60 or not name.isprintable():
        raise BadUse(f"the name of a program must have 1 to 60 characters, not {name!r}")
    return name


class Door:
    """The place at which programs of the same network open sessions with this program. `listen`
    returns one. At the end of its `with` block the door is closed.

    Attributes:
        address: "HOST:PORT".
    """

    def __init__(self, address: str, folder: Any, trust: bool, name: str) -> None:
        self._name, self._trust = name, trust
        self._came: queue.Queue[Session | None] = queue.Queue()
        tls = _net_keys.Keys(folder).server
        _net_link.parted(address)
        self._loop = _net_loop.use()
        try:
            on_connection = _net_link.receiver(self._answer)
            self._server = _net_loop.call(self._loop, _net_link.serve(tls, address, on_connection))
        except BaseException:
            _net_loop.done(self._loop)
            raise
        self._closed = False
        _net_loop.outside(True)
        try:
            self.address = _net_link.joined(self._server)
            _open.add(self)
        except BaseException:  # a signal handler has raised
            self.close()
            raise

    async def _answer(self, request: dict[str, Any]) -> _net_link.Welcome:
        if request.get("name") is not None:
            raise _net_link.Refused(
                f"no channel {request['name']!r} is offered here: this program only takes sessions"
            )
        return _net_link.Welcome(self._name, self._trust, self._came.put, lambda: None)

    def next(self) -> Session:
        """Returns a session with the next program that connects. Blocks the thread; in a coroutine:
        `await io(door.next)()`.

        Raises:
            BadUse: the door is closed.
        """
        session = self._came.get() if not self._closed or not self._came.empty() else None
        if session is None:
            self._came.put(None)  # this wakes the other waiting threads
            raise BadUse("this door is closed: open another, with listen()")
        _open.add(session)
        return session

    def close(self) -> None:
        """Lets no more programs in; sessions remain open. A second call does nothing."""
        _open.discard(self)
        if self._closed:
            return
        self._closed = True

        async def shut() -> None:
            self._server.close()

        with contextlib.suppress(BadUse):
            _net_loop.call(self._loop, shut())
            _net_loop.outside(False)
        left = [self._came.get() for _ in range(self._came.qsize())]
        self._came.put(None)
        for session in left:
            if session is not None:
                session.close()
        _net_loop.done(self._loop)

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<door at {self.address}>"


def listen(
    address: str = "127.0.0.1:0",
    *,
    keys: Path | None = None,
    trust: bool = False,
    name: str | None = None,
    rounds: bool = True,
) -> Door:
    """Lets in programs that have keys of the same network: `door.next()` returns a session with
    each.

    Args:
        address: "HOST:PORT" to listen at; port 0: a free one. For other machines to reach this
            program, listen at "0.0.0.0:PORT".
        keys: the folder with the certificate (`make_keys`); None: $WEFT_NET, or ~/.config/weft/net.
        trust: whether values are pickled, with each program that trusts too: such a program can
            make this program run any code.
        name: the name that this program gives itself; None: the name of the machine, and the pid.
        rounds: whether programs that share channels ask each other whether all of them wait, so
            that a deadlock is reported in all. Through these questions the other programs learn
            where the processes of this program wait, and a program that lies can end a run that
            waits for others. With False this program neither asks nor answers, unless it has made
            another call with True.

    Raises:
        BadUse: there are no keys, or `address` is not an address.
        OSError: it is not possible to listen at the address.
    """
    if rounds:
        _rounds.answer_programs()
    return Door(address, _net_keys.folder_of(keys), trust, _called(name))


def connect(
    address: str,
    *,
    keys: Path | None = None,
    trust: bool = False,
    name: str | None = None,
    fingerprint: str | None = None,
    rounds: bool = True,
) -> Session:
    """Opens a session with the program that listens at "HOST:PORT". Blocks the thread; in a
    coroutine: `await io(net.connect)(address)`.

    Args:
        address: "HOST:PORT" of the other program.
        keys, trust, name, rounds: as for `listen`.
        fingerprint: SHA-256 of the other program's certificate, in hexadecimal; None: any
            certificate of the same network is accepted.

    Raises:
        BadUse: there are no keys; the other program's certificate is not right, or that program
            refuses this program's certificate.
        OSError: no program listens at the address.
    """
    if rounds:
        _rounds.answer_programs()
    tls = _net_keys.Keys(_net_keys.folder_of(keys)).client
    request = {"host": _called(name), "trust": trust}
    loop = _net_loop.use()
    try:
        session = _net_loop.call(loop, _net_link.reach(tls, address, request, fingerprint))
    finally:
        _net_loop.done(loop)
    _open.add(session)
    return session


def _seconds(patience: Any) -> None:
    number = isinstance(patience, (int, float)) and not isinstance(patience, bool)
    if not number or not 0 < patience <= 1e6:
        raise BadUse(f"patience must be a number of seconds above 0, not {patience!r}")


def _host_named(name: str) -> FarHost | None:
    """Returns the host of this name, for `on("gpu1")`; None if no network has been joined."""
    joined = [n for n in list(_open) if isinstance(n, Network)]
    if len(joined) > 1:
        raise BadUse(
            f"on({name!r}): this program has joined {len(joined)} networks; say of which it is a host: network.host({name!r})"
        )
    return joined[0].host(name) if joined else None


_hosts.named = _host_named


class Network:
    """This program as a member of a network. `join` returns one. At the end of its `with` block
    this program leaves the network: sessions end, and ends in other programs die.

    A coroutine makes calls that block the thread in the form `await io(network.writer)(name)`.

    Attributes:
        address: the address at which other programs reach this one, "HOST:PORT"; "" if only the
            relay reaches it.
        name: the name that this program gives itself.
    """

    def __init__(
        self, url: str, folder: Any, address: str, trust: bool, name: str, relay: str
    ) -> None:
        # This import needs the client of the server. A program that only has sessions at addresses
        # does not need that client.
        from weft._net.names import Meeting

        self.name = name
        self._sessions: set[Session] = set()
        self._closed = False
        _net_link.parted(address)
        self._meeting = Meeting(url, folder, name, trust, relay, self._keep)
        self._loop = _net_loop.use()
        try:
            _net_loop.call(self._loop, self._meeting.begin(address))
        except BaseException:
            _net_loop.done(self._loop)
            raise
        try:
            self.address = self._meeting.address
            _open.add(self)
        except BaseException:  # a signal handler has raised
            self.close()
            raise

    def _keep(self, session: Session) -> None:
        """Keeps a session until it has ended, and until the link, on its own thread, has read all
        bytes that were sent, since unread bytes would be lost. Runs on the loop's thread.
        """
        self._sessions.add(session)

        def let_go() -> None:
            with contextlib.suppress(BadUse):  # the session was closed in the meantime
                session._ended_by = session.wait()
            session.close()

        def over(_: object) -> None:
            self._sessions.discard(session)
            with contextlib.suppress(RuntimeError):  # the loop is ending
                self._loop.run_in_executor(None, let_go)

        session._carried.add_done_callback(over)
        if self._closed:  # the session began while close() was ending the others
            session._give_up("this program has left the network")

    def offer(
        self, name: str, channel: Any, *, readers: bool = False, writers: bool = False
    ) -> None:
        """Gives the channel a name, under which other programs obtain ends of the channel; this
        program is its home. Blocks the thread.

        Each program that asks gets an end of its own. The channel ends like any other: when the
        last end of a side is gone. To keep it open while no other program is there, keep an end of
        that side.

        Args:
            name: letters, digits, - and _, in parts separated by / or "." characters.
            channel: a channel that this program has made.
            readers, writers: whether other programs obtain readers, and whether they obtain
                writers; at least one must be true.

        Raises:
            BadUse: the name is taken or not valid, or this program's keys do not grant it
                (`make_keys`); neither side is given; `channel` is not a channel of this program;
                the server does not answer.
        """
        if not isinstance(channel, _native.Channel):
            raise BadUse(
                f"offer: expected a channel, got {channel!r}: give the channel itself, not an end"
            )
        try:
            channel.stats()
        except BadUse:  # only the channel's home knows its statistics (rule 14.8)
            raise BadUse(
                f"offer: {channel!r} was made by another program, which alone can offer it"
            ) from None
        if not (readers or writers):
            raise BadUse("offer: say which ends others get: readers=True, writers=True, or both")
        self._call(self._meeting.offer(checked(name), channel, bool(readers), bool(writers)))

    def withdraw(self, name: str) -> None:
        """Frees the name: other programs obtain no more ends under it. Ends that were given stay
        open. Blocks the thread.

        Raises:
            BadUse: this program does not offer the name.
        """
        self._call(self._meeting.withdraw(checked(name)))

    def reader(self, name: str, *, patience: float = 10.0) -> Any:
        """Returns a Reader of the channel with this name, whose home is another program. Blocks the
        thread until a program offers the name.

        Args:
            patience: seconds to wait for the name.

        Raises:
            BadUse: no program offers the name, or none offers readers; it is a name of this
                program; the home refuses, is not the home that was announced, may not hold the
                name, or has another version of Weft; the server does not answer.
            ConnectionError: the home does not answer.
            PeerDied: the home has died meanwhile.
        """
        return self._end(name, "reader", patience)

    def writer(self, name: str, *, patience: float = 10.0) -> Any:
        """Returns a Writer of the channel with this name: see reader()."""
        return self._end(name, "writer", patience)

    def _end(self, name: str, side: str, patience: float) -> Any:
        _seconds(patience)
        session = self._call(self._meeting.come(checked(name), side, patience))
        try:
            return session.take("end")
        except BadUse as error:
            # The session stays open after a wrong type: with the session the end would die that the
            # home has given, and the home's processes would meet that death.
            if isinstance(error, _net_link.OtherVersion) or not session._is_closed():
                raise
            raise PeerDied(f"the session with the home of {name!r} ended: {error}") from None

    def names(self) -> list[Named]:
        """Returns all names that are offered, sorted. Blocks the thread.

        Raises:
            BadUse: the server does not answer.
        """
        found: list[Named] = self._call(self._meeting.names())
        return found

    def host(
        self, name: str, *, patience: float = 10.0, working_dir: str | Path | None = None
    ) -> FarHost:
        """Returns a host on another machine, whose agent (`weft host`) has joined, or will join,
        under that name: `worker(…).on(network.host("gpu1"))`. In a program that has joined only one
        network, `on("gpu1")` is enough.

        The host finds the function by the name of its module, whose source must be the same. If the
        agent was started with `--allow source`, the module goes along, with the modules that it
        imports from its folder. The arguments may be ends of channels that this program has made,
        and plain values; if both programs trust, any values that can be pickled.

        Args:
            patience: for how many seconds a call waits until the host is there.
            working_dir: a folder that contains the function's module. All its files go along, and
                the call runs in a copy of the folder. The agent must have `--allow source`.

        Raises:
            BadUse: the name is not valid.
        """
        _seconds(patience)
        return FarHost(self, name, float(patience), working_dir)

    def hosts(
        self, n: int = 1, *, patience: float = 10.0, working_dir: str | Path | None = None
    ) -> FarHosts:
        """Returns all hosts of the network. Each call goes to one of them:
        `worker(…).on(network.hosts())`. Hosts that join later are used too. Blocks the thread until
        there are `n` hosts. The first call of a function waits until `n` hosts may run it.

        Args:
            n: the least number of hosts.
            patience: the seconds to wait for these hosts, and for which a call waits for a host.
            working_dir: as for host().

        Raises:
            BadUse: there are fewer hosts; the server does not answer.
        """
        _seconds(patience)
        return FarHosts(self, n, float(patience), working_dir)

    def _call(self, what: Any) -> Any:
        if self._closed:
            what.close()
            raise BadUse(_LEFT)
        return _net_loop.call(self._loop, what)

    def close(self) -> None:
        """Leaves the network: releases its names, and ends its sessions. A second call does
        nothing.
        """
        _open.discard(self)
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(BadUse):  # in the child of a fork the loop does not exist
            _net_loop.call(self._loop, self._meeting.leave())
            sessions = list(self._sessions)
            for session in sessions:
                session._link.close("the other program has left the network")
            _net_loop.call(self._loop, _all_carried(sessions))
            _net_loop.call(self._loop, self._meeting.end())
            _net_loop.done(self._loop)

    def __enter__(self) -> Network:
        if self._closed:
            raise BadUse(_LEFT)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self.name} in the network of {self._meeting.url}>"


async def _all_carried(sessions: list[Session]) -> None:
    if sessions:
        await asyncio.wait([s._carried for s in sessions], timeout=_net_link.GREETING)


def join(
    server: str | None = None,
    *,
    keys: Path | None = None,
    address: str = "127.0.0.1:0",
    trust: bool = False,
    name: str | None = None,
    relay: str = "auto",
    rounds: bool = True,
) -> Network:
    """Makes this program a member of the network whose programs meet at a NATS server. Blocks the
    thread; in a coroutine: `await io(net.join)()`.

    Args:
        server: the server's URL, "nats://HOST:PORT"; None: $WEFT_SERVER, or the URL that `weft net
            up` has written beside the keys.
        keys, trust, name, rounds: as for `listen`.
        address: "HOST:PORT" where other programs reach this one; port 0: a free one. The default is
            for programs on one machine.
        relay: "auto": sessions go directly, and through the server if the other program's address
            cannot be reached. "only": always through the server; this program listens at no
            address. "never": no session goes through the server.

    Raises:
        BadUse: there are no keys; the server does not answer, or refuses the keys; `address` is not
            an address, or `relay` is not one of these.
        OSError: it is not possible to listen at the address.
    """
    if relay not in ("auto", "only", "never"):
        raise BadUse(f"relay must be 'auto', 'only' or 'never', not {relay!r}")
    folder = _net_keys.folder_of(keys)
    url = server or _net_keys.server_of(folder)
    if not isinstance(url, str):
        raise BadUse(f"a server must be nats://HOST:PORT, not {url!r}")
    scheme, colons, rest = url.partition("://")
    if not colons or scheme not in ("nats", "tls") or not rest:
        raise BadUse(f"a server must be nats://HOST:PORT, not {url!r}")
    if rounds:
        _rounds.answer_programs()
    return Network(f"tls://{rest}", folder, address, trust, _called(name), relay)


def _hosts_at(server: str) -> OwnHosts:
    """Joins a network for its hosts alone: for Hosts("nats://HOST:PORT").

    Raises:
        BadUse, OSError: as join() and Network.hosts() do.
    """
    return OwnHosts(join(server))

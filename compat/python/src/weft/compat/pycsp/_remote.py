"""Channels that are found by their address in another program of the same user: pycsp's `connect=`.

    there: here(), or a process with pycsp_port ── its port is taken on loopback ──► Unix sockets of
           that number listen: one for programs of names of this machine, one for those that come by
           `ssh`
    here:  Channel(name, connect=(host, port)) ── the same user? ──► a link ──"asked", "answers"──►
           ends of the channel of that name ──its program ends: "last"──► how the channel had ended

No bytes go over the port itself: it only makes an address that no other program on this machine
has. Values are pickled, so only programs of one user may connect: the sockets are in a folder of
the user's own, and each side checks the user of the other (WIRE-LINKS.md 12.3). `ssh` connects to
another machine (_ssh.py), as a user that its `sshd` knows.

Invariants
- A pycsp end of a far channel is counted in the channel's home (_channels.py), and is retired and
  poisoned in that program.
- A far channel has a native end of a side as long as pycsp ends of that side are open in this
  program.
- Before a program ends, it reports how its channels have ended, so a later reader of a channel
  learns that the channel has retired, and not that its program is lost. Before that, values in the
  buffers of such channels are read, for LAST seconds at most.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from weft import threads as _weft
from weft._extension import native as _native
from weft.compat.pycsp import _asking, _channels, configuration
from weft.compat.pycsp._errors import (
    ChannelBindException,
    ChannelConnectException,
    ChannelLostException,
    ChannelPoisonException,
    ChannelRetireException,
)
from weft.errors import BadUse, ChannelEnd, PeerDied, Poisoned, Retired

__all__ = ["Address", "FarChannel", "bound", "here", "listen", "shut"]

Address = tuple[str, int]

HOSTS = ("localhost", "127.0.0.1", "")  # this machine
LAST = 10.0  # seconds for other programs to read the contents of buffers, once this program ends


def _folder() -> Path:
    """Returns the folder of this user's meeting points, which no other user can enter."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(given, "weft") if given else Path(tempfile.gettempdir(), f"weft-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OSError(f"{folder} is not this user's alone: remove it, or set XDG_RUNTIME_DIR")
    return folder


def meeting_point(port: int, far: bool) -> Path:
    """Returns the path of the socket of a program's channels. `far` selects the socket for programs
    on other machines.
    """
    return _folder() / f"pycsp-{port}{'.far' if far else ''}"


def linked(connection: socket.socket, name: str, far: bool) -> Any:
    """Makes a link over a socket. Descriptors do not pass to another machine
    (WIRE-NETWORKS.md 17.5)."""
    return _native._Link(connection.detach(), name, False, False, 0, 0, 0, 2 if far else 0)


def _is_ours(connection: socket.socket) -> bool:
    _, uid, _ = struct.unpack(
        "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return bool(uid == os.getuid())


def bound(host: str, port: int) -> socket.socket:
    """Binds a port of this machine, or any free port for 0; closing the socket releases the port.
    `host` is the name of this machine for other machines.

    Raises:
        ChannelBindException: the port is in use.
    """
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", port))
    except OSError as error:
        taken.close()
        raise ChannelBindException(
            (host, port), f"no channel can be bound there ({error}):"
        ) from None
    return taken


# --- where a channel lives ------------------------------------------------------------------------


class _Home:
    """Serves the channels of this program to others."""

    def __init__(self, address: Address, taken: socket.socket | None) -> None:
        self.address, self._taken = address, taken
        self._peers: list[_Peer] = []
        self._doors = [self._door(far) for far in (False, True)]

    def _door(self, far: bool) -> tuple[socket.socket, Path, threading.Thread]:
        path = meeting_point(self.address[1], far)
        # If the file exists, it belongs to a killed program, whose port this program now has.
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(
            target=self._accept, args=(listener, far), name="pycsp: listens", daemon=True
        )
        thread.start()
        return listener, path, thread

    def _accept(self, listener: socket.socket, far: bool) -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:  # the socket was closed
                return
            if not _is_ours(connection):
                connection.close()
                continue
            link = linked(connection, f"pycsp {self.address[1]}", far)
            self._peers.append(_Peer(link))

    def close(self) -> None:
        for listener, path, thread in self._doors:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()
            path.unlink(missing_ok=True)
        until = time.monotonic() + LAST
        for peer in self._peers:
            peer.say_last(until)
        for peer in self._peers:
            peer.close()
        if self._taken is not None:
            self._taken.close()


class _Peer:
    """Another program, served by a thread of its own."""

    def __init__(self, link: Any) -> None:
        self._link = link
        self._found: list[_channels.Channel] = []
        self._reads: dict[int, int] = {}  # channel's number -> number of that program's reader ends
        last: Any = _weft.Channel("last", capacity=1)
        self._last, self._heard = last.writer(), last.reader()
        self._serving = threading.Thread(target=self._serve, name="pycsp: a peer", daemon=True)
        self._serving.start()

    def _serve(self) -> None:
        """Carries out the requests of the other program."""
        asked, answers = _asking.channels()
        requests, replies = asked.reader(), answers.writer()
        link, found = self._link, self._found
        with contextlib.suppress(ChannelEnd, BadUse):
            link.give(self._heard, "last")
            link.give(asked.writer(), "asked")
            link.give(answers.reader(), "answers")
            given = 0
            while True:
                ticket, what, number, side = requests.read()
                answer: Any = None
                if what == "find":
                    channel = _channels._by_name.get(number)
                    if channel is not None and type(channel) is _channels.Channel:
                        answer = len(found), channel.buffer
                        found.append(channel)
                elif what in ("join", "join first"):
                    if found[number]._join(side):
                        self._count(number, side, 1)
                        answer = f"end{given}"
                        if what == "join first":
                            native = found[number]._native
                            end = native.reader() if side == _channels.READ else native.writer()
                            link.give(end, answer)
                            del end
                            given += 1
                elif what == "leave":
                    self._count(number, side, -1)
                    found[number]._leave(side)
                elif what == "poison":
                    found[number]._poison(side)
                else:  # "draining"
                    answer = found[number]._draining
                replies.write((ticket, answer))

    def _count(self, number: int, side: int, more: int) -> None:
        if side == _channels.READ:
            self._reads[number] = self._reads.get(number, 0) + more

    def say_last(self, until: float) -> None:
        """Reports to the other program how the channels that it found have ended, once it has read
        the values in them."""
        for number, channel in enumerate(self._found):
            while (
                self._serving.is_alive()
                and self._reads.get(number, 0) > 0
                and (channel._over[_channels.WRITE] or channel._draining)
                and channel._native.stats().buffered
                and time.monotonic() < until
            ):
                time.sleep(0.005)  # the other program reads, and no event reports when it is done
        with contextlib.suppress(ChannelEnd, BadUse):
            self._last.write([_how_ended(channel) for channel in self._found])

    def close(self) -> None:
        self._link.close("the program of the channel has ended")
        self._serving.join()


def _how_ended(channel: _channels.Channel) -> tuple[str, str]:
    """Returns, for a reader and for a writer, "retired", "poisoned", or "" if the channel had
    not ended."""
    read, write = ("retired" if channel._over[1 - side] else "" for side in (0, 1))
    if not channel._over[_channels.READ]:
        try:  # this select can remove a value that no reader will read
            _weft.select(
                _weft.Input(channel._ends[_channels.READ], ended="raise"),
                _weft.skip(),
                mode="priority",
            )
        except Poisoned:
            return "poisoned", "poisoned"
        except Retired:
            read = "poisoned" if channel._draining else "retired"
    return read, write


_home: _Home | None = None
_making = threading.Lock()


def listen(address: Address, taken: socket.socket | None = None) -> None:
    """Serves this program's channels at an address whose port is already bound."""
    global _home
    with _making:
        _home = _Home(address, taken)


def here() -> Address:
    """Returns this program's address; from the first call on the program listens at this address.

    Raises:
        ChannelBindException: the port in Configuration is in use.
    """
    global _home
    with _making:
        if _home is None:
            settings = configuration.Configuration()
            host = settings.get(configuration.PYCSP_HOST) or "localhost"
            taken = bound(host, settings.get(configuration.PYCSP_PORT) or 0)
            _home = _Home((host, taken.getsockname()[1]), taken)
        return _home.address


def at() -> Address | None:
    """Returns the address of here(), or None if the program does not listen."""
    return _home.address if _home is not None else None


# --- the program that connects --------------------------------------------------------------------


class _Line:
    """A connection to one address."""

    def __init__(self, address: Address, link: Any) -> None:
        self.address, self._link = address, link
        # Protects the counts of this connection's far channels. It is a Turn, so a process that
        # waits lets the other greenlets of its thread run.
        self.joining = _asking.Turn()
        last, asked, answers = (link.take(name) for name in ("last", "asked", "answers"))
        # If an end is missing, the other program was killed after its socket had accepted the
        # connection.
        if None in (last, asked, answers):
            raise PeerDied("it ended before it had said anything")
        self._asking = _asking.Asking(asked, answers)
        self._ended: list[tuple[str, str]] = []  # number of a channel -> how it had ended
        self._watching = threading.Thread(
            target=self._watch, args=(last,), name="pycsp: a line", daemon=True
        )
        self._watching.start()

    def _watch(self, last: Any) -> None:
        """Runs on a thread that is not a process: while the thread waits, no network is in a
        deadlock, because the other program can still act (rule 10.3).
        """
        with contextlib.suppress(ChannelEnd, BadUse):
            self._ended = last.read()
        with contextlib.suppress(BadUse):  # this program has closed the link
            self._link.wait()
        with _connecting:
            if _lines.get(self.address) is self:
                del _lines[self.address]

    def ask(self, what: str, number: Any, side: int = 0) -> Any:
        try:
            return self._asking.ask(what, number, side)
        except PeerDied:
            raise ChannelLostException(
                self.address, "the program of the channel has ended:"
            ) from None

    def ended(self, number: int, side: int) -> str:
        """Returns how a channel had ended for that side when its program ended; "" if the channel
        had not ended, or its program still runs."""
        with contextlib.suppress(ChannelLostException):
            self.ask("draining", number)
            return ""
        self._watching.join()
        return self._ended[number][side] if number < len(self._ended) else ""

    def take(self, name: str) -> Any:
        end = self._link.take(name)
        if end is None:
            raise ChannelLostException(self.address, "the program of the channel has ended:")
        return end

    def close(self) -> None:
        self._link.close("the program has ended")
        self._watching.join()


_lines: dict[Address, _Line] = {}
_connecting = threading.Lock()


def _by_socket(address: Address) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(meeting_point(address[1], False)))
        if not _is_ours(connection):
            raise OSError("it is another user's")
    except BaseException:
        connection.close()
        raise
    return connection


def _by_ssh(address: Address) -> socket.socket:
    from weft.compat.pycsp import _ssh

    return _ssh.joined(*address)


def _line(address: Address) -> _Line:
    """Returns the connection to this address; opens it if there is none.

    Raises:
        OSError: no program listens there, or the program belongs to another user.
    """
    with _connecting:
        if address not in _lines:
            far = address[0] not in HOSTS
            connection = _by_ssh(address) if far else _by_socket(address)
            link = linked(connection, f"pycsp of {os.getpid()}", far)
            try:
                _lines[address] = _Line(address, link)
            except PeerDied as error:
                link.close("it did not answer")
                raise OSError("it has ended") from error
        return _lines[address]


def _found(name: str, address: Address) -> tuple[_Line, int, int]:
    """Returns the connection, the number and the buffer of a channel; retries for the time given in
    Configuration.

    Raises:
        ChannelConnectException: no program listens there, or it has no such channel.
    """
    settings = configuration.Configuration()
    until = time.monotonic() + settings.get(configuration.SOCKETS_CONNECT_TIMEOUT)
    while True:
        try:
            line = _line(address)
            answer = line.ask("find", name)
            if answer is not None:
                return line, *answer
            why = "its program has none of that name"
        except (OSError, ChannelLostException) as error:
            why = str(error)
        if time.monotonic() >= until:
            raise ChannelConnectException(
                address, f"no channel {name!r} is found ({why}); wanted at"
            )
        # As in PyCSP, the program that has the channel might not have started yet, and no event
        # reports its start.
        time.sleep(settings.get(configuration.SOCKETS_CONNECT_RETRY_DELAY))


class FarChannel(_channels.Channel):
    """A channel whose home is another program."""

    __slots__ = ("_line", "_number")

    _line: _Line
    _number: int

    def __new__(cls, name: str, address: Address) -> FarChannel:
        self = object.__new__(cls)
        self._line, self._number, self.buffer = _found(name, address)
        self.name = name
        self._native = None
        self._ends = (None, None)
        self._open, self._over = [0, 0], [False, False]
        return self

    _far = True

    @property
    def address(self) -> Address:
        return self._line.address

    @property
    def _draining(self) -> bool:  # type: ignore[override]
        try:
            return self.buffer > 0 and bool(self._line.ask("draining", self._number))
        except ChannelLostException:
            if how := self._line.ended(self._number, _channels.READ):
                return how == "poisoned"
            raise

    def _join(self, side: int) -> bool:
        with self._line.joining:
            first = self._open[side] == 0
            name = self._line.ask("join first" if first else "join", self._number, side)
            if name is None:
                return False
            if first:
                ends = list(self._ends)
                ends[side] = self._line.take(name)
                self._ends = (ends[0], ends[1])
            self._open[side] += 1
            return True

    def _leave(self, side: int) -> None:
        with self._line.joining:
            self._open[side] -= 1
            if self._open[side] == 0:
                with contextlib.suppress(BadUse):
                    self._ends[side].retire()
            try:
                self._line.ask("leave", self._number, side)
            except ChannelLostException:
                if not self._line.ended(self._number, side):
                    raise

    def _poison(self, side: int) -> None:
        self._line.ask("poison", self._number, side)

    def _lost(self, error: PeerDied, side: int) -> Exception:
        how = self._line.ended(self._number, side)
        if how:
            kind = ChannelPoisonException if how == "poisoned" else ChannelRetireException
            return kind(f"channel {self.name!r}: it was {how} before its program ended")
        return ChannelLostException(self.address, "the program of the channel has ended:")


def shut() -> None:
    """Ends all service and all connections to other programs: far channels are lost. Later calls
    start again, at another address.
    """
    global _home
    for line in list(_lines.values()):
        line.close()
    with _making:
        home, _home = _home, None
    if home is not None:
        home.close()


threading._register_atexit(shut)  # type: ignore[attr-defined]  # so that this runs before the interpreter waits for threads

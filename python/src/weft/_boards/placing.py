"""Runs processes of a program on one board, over a session of weft.serial (rule 21).

    function.on(board) ──► Placed ──(args)──► a thread process here, which stands for the process
                                              on the board
        ──run()──► the source goes to the board, unless the board has kept it
        ──"start"──► the call's channel brings what the process on the board prints, and how it ends

Invariants
- A call has a number. `_ordering` is held while a source is sent and the start of the call that
  needs the source is ordered. So only one of two calls with the same new source sends it. `kept`
  changes only while `_ordering` is held.
- `_lock` protects `_calls`, `_own`, `_number`, `_owns` and the fields of Call and Own. No operation
  that waits is made while `_lock` is held. (`begun` is also read without the lock, when the call's
  channel `alive` has retired: `begun` does not change any more then.)
- A channel is the board's own if all its open ends are held by calls of this board when the first
  of these calls begins. At that time its ends in this program are retired, and the channel is made
  on the board. The channel is in `_own` until each of its ends was given to a process of the board
  or was dropped.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

from weft import serial, threads
from weft._backends import arrays as _arrays
from weft._backends.shared import process_of
from weft._boards import arguments as _arguments
from weft._boards import sources as _sources
from weft._extension import native as _native
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import hosts as _hosts
from weft._hosts import pickling as _pickling
from weft.errors import BadUse, Cancelled, Deadlock, PeerDied, Poisoned, Retired

__all__ = ["BoardTraceback", "Placed", "Placing"]

PIECE = 2048  # bytes of a source in one order; for each order a board erases a block of its flash
# A board needs at least this many bytes of free heap for each byte of source. (For two sources an
# RP2040 needed 3.7 and 4.3 bytes, most of them while it compiled; comments need less.)
TIMES = 2


class BoardTraceback(_pickling.RemoteTraceback):
    """The traceback of an exception that was raised on a board. In this program it is the cause of
    that exception.
    """

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self._where = where

    def __str__(self) -> str:
        return f"on the board at {self._where}:\n{self.text}"


class Call:
    """A call of a Placed: one process that was made for the board, from the call until the process
    has ended on the board.
    """

    def __init__(self, source: Any, name: str, ends: list[Any]) -> None:
        self.source: Any = source  #: a Source of sources.py or of bare.py
        self.name, self.ends = name, ends
        # The channel's writer is an argument of the process in this program. So the channel retires
        # when that process ends, or when it is dropped and will never start.
        self.alive = threads.Channel(f"{name} is there")
        self.begun = False
        self.dropped = False


class Own:
    """A channel that is the board's own. `ends` are its ends, each with the call that holds it."""

    def __init__(self, number: int, channel: Any, ends: list[tuple[Any, Call]]) -> None:
        self.number, self.channel, self.ends = number, channel, ends
        self.made = False  # whether the board has made it

    def described(self) -> list[Any]:
        """Returns what the board needs to make the channel."""
        writers = sum(isinstance(end, _native.Writer) for end, _ in self.ends)
        shape = _arrays.shape_of(self.channel)
        name = str(self.channel.name)
        return [self.number, name, *shape, len(self.ends) - writers, writers]


class Placed:
    """A process function for one board. A call of it makes a process that will run there; a network
    starts the process.
    """

    def __init__(
        self, placing: Placing, function: Any, source: Any, signature: inspect.Signature
    ) -> None:
        self._placing = placing
        self._source = source
        self._signature = signature
        self._function = function

        def stand_in(call: Call, alive: Any, args: Any, keywords: Any) -> Any:
            return placing.run(call, args, keywords)

        stand_in.__name__ = function.__name__
        self._process: Any = process_of(stand_in, "threads")
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        name = self._function.__name__
        bound = self._signature.bind(*args, **keywords)  # raises TypeError, as a plain call does
        args, keywords = self._placing.given(bound)
        _arguments.take(f"{name}.on(board)", args, keywords)
        call = Call(self._source, name, _arguments.ends_in([*args, *keywords.values()]))
        alive = call.alive.writer()
        process = self._process(call, alive, args, keywords)
        self._placing.made(call)
        return process

    def on(self, where: Any) -> Any:
        """Returns the process function for another place: a backend, hosts or a board."""
        return process_of(self._function, "threads").on(where)

    def __repr__(self) -> str:
        return f"<process function {self._function.__name__} on {self._placing}>"


class Placing(_hosts.Elsewhere):
    """A place for processes: a board at the other end of a session.

    Args:
        where: the board's name for messages.
        free: the number of bytes of free heap that the board had before the session.
        kept: the digests of the sources that the board keeps.
    """

    _way = "board"

    def __init__(
        self, session: serial.Board | None, where: str, free: int, kept: list[str]
    ) -> None:
        self._where = where
        self.free, self.kept = free, set(kept)
        self._lock, self._ordering = threading.Lock(), threading.Lock()
        self._calls: list[Call] = []
        self._own: dict[int, Own] = {}
        self._number = self._owns = 0  # the numbers of the latest call and channel of the board
        self._running: dict[int, _Running] = {}  # the calls under way; changed under _lock
        if session is not None:
            self._open(session)

    def _open(self, session: serial.Board) -> None:
        """Begins a session with the board."""
        self._session = session
        session._looked_at.parts = self._who_holds
        orders = threads.Channel("do")
        session.give("do", orders.reader())
        self._orders = orders.writer()

    def placed(self, function: Any) -> Placed:
        """Returns the process function of `function` for this board.

        Raises:
            BadUse: the function, or something that it uses, cannot go to a board.
        """
        return Placed(self, function, _sources.taken(function), inspect.signature(function))

    def given(self, bound: inspect.BoundArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments that go to the board for these arguments of a call."""
        return bound.args, bound.kwargs

    def made(self, call: Call) -> None:
        """Notes the call of a process that was made, if the process holds ends."""
        if call.ends:
            with self._lock:
                self._calls = [c for c in self._calls if any(not e.closed for e in c.ends)]
                self._calls.append(call)

    # One call.

    def run(self, call: Call, args: Any, keywords: Any) -> Any:
        """Runs a call on the board, and returns its result. The caller of this method is the thread
        process that stands for the process on the board.

        Raises:
            BadUse: an argument cannot go to the board; the board lacks a module that the function
                imports; or the board clearly has too little memory for the source, which is then
                not sent.
            MemoryError: the board has run out of memory.
            PeerDied: the board was unplugged, was reset, hangs, or its session was closed.
            Exception: an exception that the function has raised on the board; its cause is the
                board's traceback.
        """
        with self._lock:
            if call.begun:
                raise BadUse(
                    f"{call.name} * n: a process for a board cannot be copied: write "
                    f"[{call.name}.on(board)(…) for _ in range(n)]"
                )
            call.begun = True
            self._number += 1
            number = self._number
            known = [self._of_board(end) for end in call.ends]
        events = threads.Channel(f"{call.name} on {self._where}")
        running = self._run_of(call, number, events)
        with self._lock:
            self._running[number] = running
        try:
            return running.result(args, keywords, known)
        except PeerDied as error:
            if running.told:  # then the process on the board has raised this PeerDied
                raise
            raise self._dead(call.name) from error
        finally:
            running.events.retire()
            with self._lock:
                del self._running[number]
                if call in self._calls:
                    self._calls.remove(call)

    def _run_of(self, call: Call, number: int, events: Any) -> _Running:
        """Returns the object of one run of a call."""
        return _Running(self, call, number, events)

    def _who_holds(self, given: dict[int, str]) -> tuple[list[_Running], dict[int, Any]]:
        """Returns the processes on the board, and who holds which end, by the numbers in `given`,
        for looks (rule 14.20).
        """
        with self._lock:
            running = list(self._running.values())
        by_name = {name: one for one in running for name in list(one.given)}
        return running, {n: by_name[name] for n, name in given.items() if name in by_name}

    def _dead(self, name: str) -> PeerDied:
        try:
            why = self._session.wait()
        except BadUse:  # this program has closed the session
            why = "this program has closed its session"
        return PeerDied(f"the board at {self._where} was lost while {name} ran there: {why}")

    # Channels that stay on the board.

    def _of_board(self, end: Any) -> Own | None:
        """Returns the channel of `end` if that channel is the board's own, else None. Called while
        `_lock` is held."""
        channel = end.channel
        own = self._own.get(id(channel))
        if own is not None:
            return own
        members = [
            (e, c) for c in self._calls for e in c.ends if e.channel is channel and not e.closed
        ]
        try:
            has = channel.stats()
        except BadUse:  # another program has made the channel
            return None
        waits = has.waiting_readers + has.waiting_writers + has.buffered
        if not has.readers or not has.writers or waits:
            return None
        if has.readers + has.writers != len(members):
            return None
        self._owns += 1
        own = Own(self._owns, channel, members)
        self._own[id(channel)] = own
        for member, _ in members:
            member.retire()
        return own

    def peers(self, call: Call) -> list[Call]:
        """Returns the calls that share a channel of the board with `call` and have not begun."""
        with self._lock:
            owns = [o for o in self._own.values() if any(c is call for _, c in o.ends)]
            found = [c for o in owns for _, c in o.ends if c is not call and not c.begun]
        return list(dict.fromkeys(found))

    def drop(self, call: Call, order: Callable[..., None]) -> None:
        """Retires on the board the ends of a call that will never begin there. `order` sends an
        order to the board.
        """
        ends: list[Any] = []
        with self._lock:
            if call.dropped:
                return
            call.dropped = True
            for own in self._own.values():
                for end, its in own.ends:
                    if its is call:
                        ends.append([[], True, own.number, isinstance(end, _native.Writer)])
        if ends:
            order("drop", ends)

    def make(self, owns: list[Own]) -> list[Any]:
        """Returns what the board needs to make those channels of `owns` that it has not made yet."""
        with self._lock:
            new = [own for own in owns if not own.made]
            for own in new:
                own.made = True
            return [own.described() for own in new]

    def forget(self, call: Call) -> None:
        """Forgets the channels of the board whose calls have all begun or been dropped."""
        with self._lock:
            for key, own in list(self._own.items()):
                if all(c.begun or c.dropped for _, c in own.ends) and own.made:
                    del self._own[key]


class _Running:
    """One call that runs, as seen by the thread process that stands for it in this program."""

    def __init__(self, placing: Placing, call: Call, number: int, events: Any) -> None:
        self._placing, self._call, self._number = placing, call, number
        self.events = events.reader()
        self._writer = events.writer()
        self._asked: Cancelled | None = None
        self._started = False
        self._begin: list[Any] = []  # the order that starts the process on the board
        self._resent = 0
        self.told = False  # whether the board has reported how the process ended
        self._line = ""  # what the process has printed since its last newline
        process = _native.current_process()
        self.path = process.path if process is not None else call.name
        self.stands_in = process.id if process is not None else None
        self._watched: list[tuple[Any, Call]] = []
        self.given: list[str] = []  # the names in the session of the ends among the arguments

    def result(self, args: Any, keywords: Any, known: list[Own | None]) -> Any:
        placing, call = self._placing, self._call
        self._give_writer(self._writer)
        taken = _arguments.take(call.name, args, keywords)
        ends: list[Any] = []
        try:
            for (end, paths), own in zip(taken.ends, known, strict=True):
                writes = isinstance(end, _native.Writer)
                key = self._give(end, len(ends)) if own is None else None
                ends.append([paths, own is not None, own.number if own else key, writes])
        except BaseException:
            self._drop_ends(ends)
            raise
        self._start(taken, ends, [own for own in known if own is not None])
        placing.forget(call)
        self._watch()
        return self._await_end()

    def _give_writer(self, events: Any) -> None:
        """Gives the board the writer of the call's channel."""
        self._placing._session.give(f"e{self._number}", events)

    def _give(self, end: Any, i: int) -> Any:
        """Gives the board an end among the arguments. Returns what stands for the end in orders."""
        key = f"{self._number}.{i}"
        self._give_as(key, end)
        return key

    def _give_as(self, name: str, end: Any) -> None:
        self._placing._session.give(name, end)
        self.given.append(name)

    # The start.

    def _order(self, *what: Any) -> None:
        """Gives the board an order. Waits until the board has the order, even if this process is
        asked to end meanwhile: without the order the board would not receive the ends that the
        order names.
        """
        while True:
            try:
                return self._placing._orders.write(list(what))
            except Cancelled as error:
                self._asked = self._asked or error

    def _start(self, taken: _arguments.Taken, ends: list[Any], owns: list[Own]) -> None:
        """Sends the source, if the board does not keep it, and then orders the start."""
        placing, source = self._placing, self._call.source
        what = ["start", self._number, source.digest, source.module, source.function]
        with placing._ordering:
            try:
                self._send_source(source)
            except BadUse:
                self._drop_ends(ends)
                raise
            own = placing.make(owns)
            self._begin = [*what, taken.args, taken.keywords, ends, own, self.path]
            self._order(*self._begin)
        self._started = True
        if self._asked is not None:
            self._order("cancel", self._number)

    def _drop_ends(self, ends: list[Any]) -> None:
        """Makes the board take the ends of this call and retire them, since the call will not
        begin. If the board is lost, the ends have died with it.
        """
        with contextlib.suppress(PeerDied):
            far = [[[], False, key, writes] for _, own, key, writes in ends if not own]
            if far:
                self._order("drop", far)
            self._placing.drop(self._call, self._order)

    def _start_again(self) -> None:
        """Sends the source again, because the board lacks it or has it damaged, and orders the
        start again.
        """
        placing, source = self._placing, self._call.source
        with placing._ordering:
            self._resent += 1
            if self._resent > 2:
                raise BadUse(
                    f"{self._call.name}: its source is not on the board at {placing._where} as it "
                    "was sent: is the board's file system full, or its flash worn out?"
                )
            placing.kept.discard(source.digest)
            self._send_source(source)
            self._order(*self._begin)
        if self._asked is not None:
            self._order("cancel", self._number)

    def _send_source(self, source: _sources.Source) -> None:
        placing = self._placing
        if source.digest in placing.kept:
            return
        if source.size * TIMES > placing.free:
            raise BadUse(
                f"{self._call.name}: the board at {placing._where} has no memory for it: its source "
                f"has {source.size} bytes, for which a board needs {TIMES} times as many or more, and "
                f"{placing.free} bytes of its heap were free when it was connected"
            )
        first = 2
        for file, text in source.files.items():
            for i in range(0, max(len(text), 1), PIECE):
                self._order("put", source.digest, file, text[i : i + PIECE], first)
                first = 0
            first = 1
        placing.kept.add(source.digest)

    # The board's messages.

    def _next(self) -> Any:
        """Returns the next message of the board. If this process is asked to end, asks the process
        on the board to end.
        """
        while True:
            try:
                if not self._watched:
                    return self.events.read()
                guards = [threads.Input(reader, ended="raise") for reader, _ in self._watched]
                return threads.select(self.events, *guards, mode="priority")[1]
            except Cancelled as error:
                if self._asked is not None and self._started:
                    raise
                self._asked = self._asked or error
                if self._started:
                    self._order("cancel", self._number)
            except Retired as error:
                if not error.guard:
                    raise
                _, peer = self._watched.pop(error.guard - 1)
                if not peer.begun:
                    self._placing.drop(peer, self._order)

    def _watch(self) -> None:
        """Watches the calls that share a channel of the board with this one. If such a call is
        dropped and never starts, _next() drops its ends on the board."""
        for peer in self._placing.peers(self._call):
            try:
                self._watched.append((peer.alive.reader(), peer))
            except Retired:
                if not peer.begun:
                    self._placing.drop(peer, self._order)

    def _await_end(self) -> Any:
        while True:
            what, *rest = self._next()
            if what == "print":
                self._print(rest[0])
                continue
            if what == "lacks":
                self._start_again()
                continue
            self.told = True
            if self._line:
                self._print("\n")
            if what == "ended":
                return rest[0]
            raise self._error(what, rest)

    def _print(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            sys.stdout.write(f"{self.path} on {self._placing._where}: {line}\n")

    def _error(self, what: str, rest: list[Any]) -> BaseException:
        """Returns the exception that this process raises for the one that the process on the board
        has raised."""
        if what == "cancelled":
            return self._asked or Cancelled()
        kind, text = rest[0], rest[1]
        trace = self._call_places(rest[-1])
        at = re.findall(r'File "([^"]*)", line (\d+)', trace)
        if what == "end":
            ends: dict[str, Any] = {"Retired": Retired, "Poisoned": Poisoned}
            error: BaseException = ends.get(kind, PeerDied)(text, None, None, None, *rest[2:4])
            if at:
                error.__dict__["_at"] = f"{at[-1][0]}:{at[-1][1]}"
        else:
            error = self._failure(kind, text, at)
        if trace:
            _foreign_exceptions.cause_set(error, BoardTraceback(trace, self._placing._where))
        return error

    def _failure(self, kind: str, text: str, at: list[tuple[str, str]]) -> BaseException:
        name, where = self._call.name, self._placing._where
        place = f" ({at[-1][0]}:{at[-1][1]})" if at else ""
        if kind == "ImportError":
            return BadUse(
                f"{name}: the board at {where} cannot import what it needs{place}: {text}"
            )
        if kind in ("MemoryError", "NoRoom"):
            return MemoryError(
                f"{name}: the board at {where} has no memory for it{place}: its source has "
                f"{self._call.source.size} bytes, and {self._placing.free} bytes of the heap were "
                f"free when it was connected: {text}"
            )
        if kind == "BadUse":
            return BadUse(f"{name} on the board at {where}{place}: {text}")
        if kind == "Deadlock":
            return Deadlock(f"on the board at {where}: {text}")
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, Exception):
            with contextlib.suppress(Exception):
                return found(text)
        return RuntimeError(f"{kind}: {text}")

    def _call_places(self, trace: str) -> str:
        """Returns a traceback of the board, with the paths of the files of this program."""
        places = self._call.source.places

        def here(found: re.Match[str]) -> str:
            return f'File "{places.get(found[1].rpartition("/")[2], found[1])}"'

        return re.sub(r'File "([^"]*)"', here, trace).strip()

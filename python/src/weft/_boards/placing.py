"""Runs processes of a program on one board, over a session of weft.serial (rule 21).

    function.on(board) ──► Placed ──(args)──► a thread process here, which stands for the one there
        ──run()──► its source goes to the board, if the board has not kept it
        ──"start"──► its own channel brings what the process there prints, and how it ends

Invariants
- A call has a number. `_ordering` is held while a source is sent and the call that needs it is
  ordered, so that of two calls with the same new source one sends it. `kept` changes only then.
- `_lock` protects `_calls`, `_own` and the fields of Call and Own. No operation that waits is made
  while it is held.
- A channel whose open ends are all held by calls of this board, when the first of these begins, is
  the board's own: its ends here are retired then, and it is made there. `_own` has it until each
  of its ends was given there or was dropped.
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

PIECE = 2048  # bytes of a source in one order: each costs a board the erasure of a block
# A board needs at least this many bytes of free heap for each byte of source. (An RP2040 needed 3.7
# and 4.3 for two sources, most of it while it compiled; comments need less.)
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
    """A process that was made for a board: from its making to the end of what it is there."""

    def __init__(self, source: _sources.Source, name: str, ends: list[Any]) -> None:
        self.source, self.name, self.ends = source, name, ends
        # Its writer is an argument of the process, so the channel retires when the process ends, or
        # is dropped and will never start.
        self.alive = threads.Channel(f"{name} is there")
        self.begun = False
        self.dropped = False


class Own:
    """A channel that is the board's own."""

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
    """A process function for one board: a call of it makes a process, not started, that runs
    there.
    """

    def __init__(self, placing: Placing, function: Any) -> None:
        self._placing = placing
        self._source = _sources.taken(function)
        self._signature = inspect.signature(function)
        self._function = function

        def stand_in(call: Call, alive: Any, args: Any, keywords: Any) -> Any:
            return placing.run(call, args, keywords)

        stand_in.__name__ = function.__name__
        self._process: Any = process_of(stand_in, "threads")
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        name = self._function.__name__
        self._signature.bind(*args, **keywords)  # a TypeError, as any call of the function
        _arguments.take(f"{name}.on(board)", args, keywords)
        call = Call(self._source, name, _arguments.ends_in([*args, *keywords.values()]))
        alive = call.alive.writer()
        process = self._process(call, alive, args, keywords)
        self._placing.made(call)
        return process

    def on(self, where: Any) -> Any:
        """Returns the function for another place."""
        return process_of(self._function, "threads").on(where)

    def __repr__(self) -> str:
        return f"<process function {self._function.__name__} on {self._placing}>"


class Placing(_hosts.Elsewhere):
    """A place for processes: a board at the other end of a session.

    Args:
        where: its name.
        free: the bytes of free heap that it had before the session.
        kept: the digests of the sources that it has.
    """

    _way = "board"

    def __init__(self, session: serial.Board, where: str, free: int, kept: list[str]) -> None:
        self._session, self._where = session, where
        self.free, self.kept = free, set(kept)
        self._lock, self._ordering = threading.Lock(), threading.Lock()
        self._calls: list[Call] = []
        self._own: dict[int, Own] = {}
        self._number = 0
        orders = threads.Channel("do")
        session.give("do", orders.reader())
        self._orders = orders.writer()

    def placed(self, function: Any) -> Placed:
        """Returns the process function for this board.

        Raises:
            BadUse: the function, or something that it uses, cannot travel.
        """
        return Placed(self, function)

    def made(self, call: Call) -> None:
        """Notes a process that was made, with the ends that it has got."""
        if call.ends:
            with self._lock:
                self._calls = [c for c in self._calls if any(not e.closed for e in c.ends)]
                self._calls.append(call)

    # One call.

    def run(self, call: Call, args: Any, keywords: Any) -> Any:
        """Runs a call on the board, and returns its result. The caller is the thread process that
        stands for it.

        Raises:
            BadUse: an argument cannot go there, or the board has no module or no memory for it.
            PeerDied: the board was unplugged, was reset, hangs, or its session was closed.
            Exception: what the function raises there, with the traceback of the board as cause.
        """
        with self._lock:
            if call.begun:
                raise BadUse(
                    f"{call.name} * n: a process for a board is not copied: write "
                    f"[{call.name}.on(board)(…) for _ in range(n)]"
                )
            call.begun = True
            self._number += 1
            number = self._number
            known = [self._of_board(end) for end in call.ends]
        events = threads.Channel(f"{call.name} on {self._where}")
        running = _Running(self, call, number, events)
        try:
            return running.result(args, keywords, known)
        except PeerDied as error:
            if running.told:  # the process there has met it
                raise
            raise self._dead(call.name) from error
        finally:
            running.events.retire()
            with self._lock:
                if call in self._calls:
                    self._calls.remove(call)

    def _dead(self, name: str) -> PeerDied:
        try:
            why = self._session.wait()
        except BadUse:  # this program has closed it
            why = "this program has closed its session"
        return PeerDied(f"the board at {self._where} is gone while {name} ran there: {why}")

    # Channels that stay on the board.

    def _of_board(self, end: Any) -> Own | None:
        """Returns the channel of an end if it is the board's own. `_lock` is held."""
        channel = end.channel
        own = self._own.get(id(channel))
        if own is not None:
            return own
        members = [
            (e, c) for c in self._calls for e in c.ends if e.channel is channel and not e.closed
        ]
        try:
            has = channel.stats()
        except BadUse:  # another program has made it
            return None
        waits = has.waiting_readers + has.waiting_writers + has.buffered
        if not has.readers or not has.writers or waits:
            return None
        if has.readers + has.writers != len(members):
            return None
        own = Own(id(channel), channel, members)
        self._own[id(channel)] = own
        for member, _ in members:
            member.retire()
        return own

    def peers(self, call: Call) -> list[Call]:
        """Returns the calls that share a channel of the board with this one and have not begun."""
        with self._lock:
            owns = [o for o in self._own.values() if any(c is call for _, c in o.ends)]
            found = [c for o in owns for _, c in o.ends if c is not call and not c.begun]
        return list(dict.fromkeys(found))

    def drop(self, call: Call, order: Callable[..., None]) -> None:
        """Retires on the board, by `order`, the ends of a call that will never begin there."""
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
        """Returns what the board needs to make those of these channels that it has not."""
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
    """One call, as the thread process that stands for it sees it."""

    def __init__(self, placing: Placing, call: Call, number: int, events: Any) -> None:
        self._placing, self._call, self._number = placing, call, number
        self.events = events.reader()
        self._writer = events.writer()
        self._asked: Cancelled | None = None
        self._started = False
        self._begin: list[Any] = []  # the order that starts it
        self._resent = 0
        self.told = False  # whether the process there has told how it ended
        self._line = ""  # what it has printed since the end of the last line
        process = _native.current_process()
        self._path = process.path if process is not None else call.name
        self._watched: list[tuple[Any, Call]] = []

    def result(self, args: Any, keywords: Any, known: list[Own | None]) -> Any:
        placing, call = self._placing, self._call
        placing._session.give(f"e{self._number}", self._writer)
        taken = _arguments.take(call.name, args, keywords)
        ends: list[Any] = []
        try:
            for (end, paths), own in zip(taken.ends, known, strict=True):
                writes = isinstance(end, _native.Writer)
                key: Any = f"{self._number}.{len(ends)}"
                if own is None:
                    placing._session.give(key, end)
                ends.append([paths, own is not None, own.number if own else key, writes])
        except BaseException:
            self._drop_ends(ends)
            raise
        self._start(taken, ends, [own for own in known if own is not None])
        placing.forget(call)
        self._watch()
        return self._await_end()

    # The start.

    def _order(self, *what: Any) -> None:
        """Gives the board an order. Waits until the board has it, also if this process is asked to
        end meanwhile: otherwise nobody would have the ends that the order names.
        """
        while True:
            try:
                return self._placing._orders.write(list(what))
            except Cancelled as error:
                self._asked = self._asked or error

    def _start(self, taken: _arguments.Taken, ends: list[Any], owns: list[Own]) -> None:
        """Orders the start. The first start after a new source is sent, so the board has it."""
        placing, source = self._placing, self._call.source
        what = ["start", self._number, source.digest, source.module, source.function]
        with placing._ordering:
            try:
                self._send_source(source)
            except BadUse:
                self._drop_ends(ends)
                raise
            own = placing.make(owns)
            self._begin = [*what, taken.args, taken.keywords, ends, own, self._path]
            self._order(*self._begin)
        self._started = True
        if self._asked is not None:
            self._order("cancel", self._number)

    def _drop_ends(self, ends: list[Any]) -> None:
        """Makes the board take the ends of this call and let go of them, since it will not begin. If
        the board is gone, they have died.
        """
        with contextlib.suppress(PeerDied):
            far = [[[], False, key, writes] for _, own, key, writes in ends if not own]
            if far:
                self._order("drop", far)
            self._placing.drop(self._call, self._order)

    def _start_again(self) -> None:
        """Sends the source that the board had not kept as it should, and orders the start again."""
        placing, source = self._placing, self._call.source
        with placing._ordering:
            self._resent = self._resent + 1
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

    # What comes back.

    def _next(self) -> Any:
        """Returns the next message of the board. A request to end is passed on to the board."""
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
        """Watches for processes that share a channel of the board with this one, and never start."""
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
            sys.stdout.write(f"{self._path} on {self._placing._where}: {line}\n")

    def _error(self, what: str, rest: list[Any]) -> BaseException:
        """Returns the exception to raise here for what the process there has raised."""
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
        """Returns a traceback of the board with the paths of the files here."""
        places = self._call.source.places

        def here(found: re.Match[str]) -> str:
            return f'File "{places.get(found[1].rpartition("/")[2], found[1])}"'

        return re.sub(r'File "([^"]*)"', here, trace).strip()

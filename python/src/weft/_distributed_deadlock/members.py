"""The hosts of a space, each by its socket beside the wire: what they are asked, and their answers
(_distributed_deadlock/rounds.py).

    Member.ask(what) ──question, its number──► _rounds.answer() in the host ──the same, length, pickle──► Member.take()
                     ◄──────────"!": a run of its stands still────────────
"""

from __future__ import annotations

import contextlib
import pickle
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "ASKED",
    "CALL",
    "FOLLOW",
    "MOMENT",
    "STATE",
    "STUCK",
    "TELL",
    "WHERE",
    "WITH_MORE",
    "Asking",
    "Member",
    "Space",
]

#: what is asked, or told
STATE, WHERE, STUCK, MOMENT = b"=", b"w", b"s", b"m"
FOLLOW, TELL, CALL = WITH_MORE = b"f", b"t", b"c"  #: behind these a pickle
QUESTIONS = STATE, WHERE, STUCK, MOMENT, *WITH_MORE
MOST = 1 << 28  #: bytes of an answer
ASKED = 5  #: bytes of a question: what, and its number


class Space(NamedTuple):
    """What a space says of its state at one moment."""

    pid: int
    incarnation: int
    waits: bool  #: all its runs wait for others, and nothing else of it does anything
    sessions: list[tuple[int, int, int]]  #: the peer's incarnation, frames sent, received
    #: Ends that peers hold: the peer's incarnation, name (WIRE.md 10.7), place, does it write, open
    #: ends of that channel.
    lent: list[tuple[int, int, int, bool, int]]
    far: list[tuple[int, int, int, int]]  #: place, the home's incarnation, name, open ends here
    held: list[tuple[int, int, bool, int]]  #: process, place, does it write, the end
    facts: list[tuple[Any, Any]]  #: of each run: see _watching/deadlocks.py
    strangers: bool  #: are there threads that may hold ends without Weft's knowledge?
    calls: dict[int, str]  #: in a host: process → the call that it runs
    away: dict[tuple[int, str], int]  #: (pid of a host, call) → the process here that waits for it
    others: tuple[str, ...] = ()  #: what else may act: handlers of signals, tokens `Outside`


class Asking:
    """The right to read the members' sockets, which one thread has at a time: `with asking,
    asking.lock:`. Who has it and waits for a member that may never answer sees whether others want
    it.

    What a signal's handler raises may come between any two steps of Python code, and none within
    those of the lock's own `with`.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # only who has it can give it up
        self._want: set[int] = set()  # threads

    def __enter__(self) -> None:
        self._want.add(threading.get_ident())

    def __exit__(self, *how: object) -> None:
        self._want.discard(threading.get_ident())

    def is_wanted(self) -> bool:
        """By others than this thread."""
        return bool(self._want - {threading.get_ident()})

    def give_way(self) -> None:
        """Lets those have it who want it; without it meanwhile."""
        self.lock.release()
        time.sleep(0.001)  # else this thread might have it back before they have woken
        self.lock.acquire()


class Member:
    """A host of this space, which can be asked. Each answer names its question; an answer to an
    earlier question is ignored. One that says what is no answer is as good as gone.
    """

    def __init__(self, by: socket.socket) -> None:
        self.pid = 0
        self.away: dict[str, Any] = {}  # the call → the process here that waits for it
        self.heard: Any = None  # what it says: see _hosts/child_output.py
        self.follows: set[Any] = set()  # the observations that it has been told of
        self.closing = False  # it has been let go of
        # of one that this program has started: ends it; and takes its status, once it has ended
        self.kill: Callable[[], object] | None = None
        self.reap: Callable[[], object] | None = None
        self.orphaned: Callable[[], object] | None = None  # called when its network is gone
        self._by = by
        self._got = b""
        self._question = b""
        self._number = 0
        self.gone = False
        self.stands = False  # it has said that a run of its stands still

    def fileno(self) -> int:
        return self._by.fileno()

    def ask(self, what: bytes = STATE, more: Any = None) -> None:
        self._number = (self._number + 1) % (1 << 32)
        self._question = what + struct.pack("!I", self._number)
        with contextlib.suppress(OSError):  # it has gone, as its socket will say
            # One that is stopped and was asked often hears no more, and holds up nobody.
            if what in WITH_MORE:
                packed, at_once = pickle.dumps(more), select.poll()
                at_once.register(self._by, select.POLLOUT)
                if not at_once.poll(0):
                    return
                self._by.sendall(self._question + struct.pack("!I", len(packed)) + packed)
            else:
                self._by.send(self._question, socket.MSG_DONTWAIT)

    def take(self) -> Any:
        """Reads what has come. Gives its answer once that is complete, else None."""
        try:
            more = self._by.recv(1 << 20)
        except OSError:
            more = b""
        if not more:
            self.gone = True
            return None
        self._got += more
        answer = None
        while self._got:
            if self._got[:1] == b"!":
                self.stands = True
                self._got = self._got[1:]
                continue
            known, head = self._got[:1] in QUESTIONS, ASKED + 4
            if known and len(self._got) < head:
                break
            size = struct.unpack("!I", self._got[ASKED:head])[0] if known else 0
            if not known or size > MOST:
                self.gone = True
                return None
            if len(self._got) < head + size:
                break
            if self._got[:ASKED] == self._question:
                try:
                    answer = pickle.loads(self._got[head : head + size])
                except Exception:  # a broken pickle may raise anything
                    self.gone = True
                    return None
            self._got = self._got[head + size :]
        return answer

    def end(self) -> None:
        """It has gone, and perhaps nobody closes it, for its Hosts were dropped."""
        if self.reap is not None:
            self.reap()
        if self.heard is not None:
            self.heard.end()

    def hang_up(self) -> None:
        """From now on it reads as one that has gone."""
        with contextlib.suppress(OSError):  # it is closed, or the other side is
            self._by.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._by.close()

    def __del__(self) -> None:
        if (by := self.__dict__.get("_by")) is not None:  # else a handler raised as it was made
            by.close()

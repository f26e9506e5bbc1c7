"""The hosts of a space, each of which is asked over a socket beside its link
(_distributed_deadlock/rounds.py).

    Member.ask(what) ──question, its number──► _rounds.answer() in the host
    Member.take()    ◄──question, its number, length, pickle── the answer
                     ◄──"!"── a run of the host stands still
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

#: the questions and orders
STATE, WHERE, STUCK, MOMENT = b"=", b"w", b"s", b"m"
FOLLOW, TELL, CALL = WITH_MORE = b"f", b"t", b"c"  #: the letters after which a pickle follows
QUESTIONS = STATE, WHERE, STUCK, MOMENT, *WITH_MORE
MAX_ANSWER_BYTES = 1 << 28  #: the largest number of bytes of an answer
ASKED = 5  #: the bytes of a question: a letter and its number


class Space(NamedTuple):
    """The state of a space at one moment, as the space reports it."""

    pid: int
    incarnation: int
    #: whether all its runs wait for other spaces, and nothing else of the space is at work
    waits: bool
    #: for each session: incarnation of the peer, frames sent, frames received
    sessions: list[tuple[int, int, int]]
    #: Ends that peers hold: the peer's incarnation, name (WIRE.md 10.7), place, whether it is a
    #: writer, the number of open ends of that channel.
    lent: list[tuple[int, int, int, bool, int]]
    #: for each far channel: place, incarnation of the home, name, open ends here
    far: list[tuple[int, int, int, int]]
    #: for each end held: process, place, whether it is a writer, the end
    held: list[tuple[int, int, bool, int]]
    facts: list[tuple[Any, Any]]  #: the facts of each run, as _watching/deadlocks.py describes them
    foreign_threads: bool  #: whether foreign threads might hold ends without Weft's knowledge
    calls: dict[int, str]  #: process → the call that it runs, if this OS process is a host
    away: dict[tuple[int, str], int]  #: (pid of a host, call) → process that waits
    #: anything else that can act: signal handlers, open `Outside` tokens
    outside: tuple[str, ...] = ()


class Asking:
    """The right to read the members' sockets, which one thread has at a time: `with asking,
    asking.lock:`. A thread that has the right, and waits for a member that may never answer, can
    see whether other threads want the right.

    An exception of a signal handler may be raised between any two steps of Python code, but not
    within the steps of the lock's own `with`.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # only the thread that holds it can release it
        self._want: set[int] = set()  # identifiers of the threads that want the right

    def __enter__(self) -> None:
        self._want.add(threading.get_ident())

    def __exit__(self, *how: object) -> None:
        self._want.discard(threading.get_ident())

    def is_wanted(self) -> bool:
        """Returns whether other threads than this one want the right."""
        return bool(self._want - {threading.get_ident()})

    def give_way(self) -> None:
        """Releases the lock for a moment, so that other threads can acquire it, and acquires it
        again."""
        self.lock.release()
        # Without this pause, this thread might acquire the lock again before the others have woken.
        time.sleep(0.001)
        self.lock.acquire()


class Member:
    """A host of this space, which can be asked. Each answer contains the number of its question; an
    answer to an earlier question is ignored. A host that sends anything else counts as ended.
    """

    def __init__(self, by: socket.socket) -> None:
        self.pid = 0
        self.away: dict[str, Any] = {}  # call → the process here that waits for it
        self.output: Any = None  # reads the reports of the host: see _hosts/child_output.py
        self.follows: set[Any] = set()  # the observations of which the host knows
        self.closing = False  # whether the Hosts of this host has released it
        # Set if this program has started the host: `kill` kills the host, `reap` collects the
        # host's exit status once it has ended.
        self.kill: Callable[[], object] | None = None
        self.reap: Callable[[], object] | None = None
        # called when the network of the host has ended
        self.orphaned: Callable[[], object] | None = None
        self._by = by
        self._got = b""
        self._question = b""
        self._number = 0
        self.gone = False
        self.stands = False  # whether the host has reported that a run of it stands still

    def fileno(self) -> int:
        return self._by.fileno()

    def ask(self, what: bytes = STATE, more: Any = None) -> None:
        self._number = (self._number + 1) % (1 << 32)
        self._question = what + struct.pack("!I", self._number)
        with contextlib.suppress(OSError):  # the host has ended; the socket will report that
            # A stopped host that has already been asked often is asked no more, so that it delays
            # no thread.
            if what in WITH_MORE:
                packed, at_once = pickle.dumps(more), select.poll()
                at_once.register(self._by, select.POLLOUT)
                if not at_once.poll(0):
                    return
                self._by.sendall(self._question + struct.pack("!I", len(packed)) + packed)
            else:
                self._by.send(self._question, socket.MSG_DONTWAIT)

    def take(self) -> Any:
        """Reads the bytes that have arrived from the host. Returns the answer to the last question
        once the answer is complete, otherwise None.
        """
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
            if not known or size > MAX_ANSWER_BYTES:
                self.gone = True
                return None
            if len(self._got) < head + size:
                break
            if self._got[:ASKED] == self._question:
                try:
                    answer = pickle.loads(self._got[head : head + size])
                except Exception:  # unpickling broken data can raise any exception
                    self.gone = True
                    return None
            self._got = self._got[head + size :]
        return answer

    def end(self) -> None:
        """Cleans up after a host that has ended. The Hosts to which it belongs might have been
        dropped, and then no other code closes the socket.
        """
        if self.reap is not None:
            self.reap()
        if self.output is not None:
            self.output.end()

    def hang_up(self) -> None:
        """Makes the socket behave like that of a host that has ended."""
        # OSError is raised if this socket, or the socket of the host, is already closed.
        with contextlib.suppress(OSError):
            self._by.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._by.close()

    def __del__(self) -> None:
        # The attribute is absent if a signal handler raised in __init__.
        if (by := self.__dict__.get("_by")) is not None:
            by.close()

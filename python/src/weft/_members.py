"""The hosts of a space, each by its socket beside the wire: what they are asked, and their answers
(_rounds.py).

    Member.ask(what) ──question, its number──► _rounds.answer() in the host ──the same, length, pickle──► Member.take()
                     ◄──────────"!": a run of its stands still────────────
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["FOLLOW", "MOMENT", "STATE", "STUCK", "TELL", "WHERE", "WITH_MORE", "Member"]

#: what is asked, or told
STATE, WHERE, STUCK, FOLLOW, MOMENT, TELL = QUESTIONS = b"=", b"w", b"s", b"f", b"m", b"t"
WITH_MORE = FOLLOW, TELL  #: behind these a pickle
MOST = 1 << 28  #: bytes of an answer


class Member:
    """A host of this space, which can be asked. Each answer names its question; an answer to an
    earlier question is ignored. One that says what is no answer is as good as gone.
    """

    def __init__(self, by: socket.socket) -> None:
        self.pid = 0
        self.away: dict[str, Any] = {}  # the call → the process here that waits for it
        self.heard: Any = None  # what it says: see _said.py
        self.follows: set[Any] = set()  # the observations that it has been told of
        self.closing = False  # it has been let go of
        # of one that this program has started: ends it; and takes its status, once it has ended
        self.kill: Callable[[], object] | None = None
        self.reap: Callable[[], object] | None = None
        self._by = by
        self._got = b""
        self._question = b""
        self.gone = False
        self.stands = False  # it has said that a run of its stands still

    def fileno(self) -> int:
        return self._by.fileno()

    def ask(self, what: bytes = STATE, more: Any = None) -> None:
        self._question = what + bytes([(self._question[1] + 1) % 256 if self._question else 0])
        packed = pickle.dumps(more) if what in WITH_MORE else b""
        size = struct.pack("!I", len(packed)) if what in WITH_MORE else b""
        with contextlib.suppress(OSError):  # it has gone, as its socket will say
            self._by.sendall(self._question + size + packed)

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
            if len(self._got) < 6:
                break
            (size,) = struct.unpack("!I", self._got[2:6])
            if self._got[:1] not in QUESTIONS or size > MOST:
                self.gone = True
                return None
            if len(self._got) < 6 + size:
                break
            if self._got[:2] == self._question:
                try:
                    answer = pickle.loads(self._got[6 : 6 + size])
                except Exception:  # a broken pickle may raise anything
                    self.gone = True
                    return None
            self._got = self._got[6 + size :]
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

"""Fetches the events of a board's flight recorder over the link to the board
(weft_mcu/flight_link.h; mcu/FLIGHT.md), and brings their times to this machine's clock.

    EVENTS is asked ──► the board's bytes
    TIME is asked several times ──► Moment: the board's time between two times of this machine
        ──flight_board.file_of()──► the file

Invariant: the board's clock is read between two readings of this machine's clock, so half of the
time between these two bounds the error, whatever the serial line did.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from weft import __version__
from weft._watching import flight_board as _board
from weft.errors import BadUse, PeerDied, Poisoned, Retired

TIME, EVENTS = 0, 1
ASKED = 8  #: how often the board is asked for its time; the quickest answer counts
APART = 1_000_000_000  #: ns between two moments from which the board's clock is measured


class Moment(NamedTuple):
    us: int  #: the board's time
    ns: int  #: this machine's steady clock
    within: int  #: the largest error, in ns


class Recorder:
    """Asks a board.

    Args:
        threads: weft.threads, which this module, being below it, cannot import.
        give: gives an end to the board under a name.
    """

    def __init__(self, threads: Any, give: Callable[[str, Any], None]) -> None:
        self._threads = threads
        ask = threads.Channel("weft.flight.ask")
        answer = threads.Channel("weft.flight")
        give("weft.flight.ask", ask.reader())
        give("weft.flight", answer.writer())
        self._ask, self._answer = ask.writer(), answer.reader()
        self._first: Moment | None = None
        self._waits: dict[int, Any] = {}  # the waits under way at the last reading
        self._patience = 0.0
        self._lock = threading.Lock()  # one thread asks at a time
        # The question whose answer has not arrived completely, because an earlier call has given
        # up.
        self._open: int | None = None

    def _choose(self, guard: Any) -> Any:
        which, value = self._threads.select(guard, self._threads.after(self._patience))
        if which:
            raise BadUse(
                f"the board has not answered for {self._patience:g} s: does its program serve the "
                "flight recorder (mcu/FLIGHT.md)?"
            )
        return value

    def _asked(self, what: int) -> bytes:
        self._choose(self._threads.Output(self._ask, what))
        self._open = what
        return self._next()

    def _rest(self, answer: bytes) -> bytes:
        """Returns the whole answer to the open question, which begins with `answer`."""
        data = bytearray(answer)
        while self._open == EVENTS and answer:
            answer = self._next()
            data += answer
        self._open = None
        return bytes(data)

    def _next(self) -> bytes:
        answer = self._choose(self._answer)
        if not isinstance(answer, bytes):
            raise BadUse("the answer of the board is not that of a flight recorder (mcu/FLIGHT.md)")
        return answer

    def moment(self) -> Moment:
        """Compares the clocks."""
        best: Moment | None = None
        for _ in range(ASKED):
            before = time.monotonic_ns()
            answer = self._rest(self._asked(TIME))
            after = time.monotonic_ns()
            if len(answer) != 8:
                raise BadUse(
                    f"the board answered {len(answer)} bytes, not 8, to the question for its time: "
                    "does its firmware have the flight recorder (mcu/FLIGHT.md)?"
                )
            us = int.from_bytes(answer, "little")
            # The board's time is rounded down to a microsecond.
            moment = Moment(us, (before + after) // 2, (after - before) // 2 + 1000)
            if best is None or moment.within < best.within:
                best = moment
        assert best is not None
        return best

    def write(self, path: str | os.PathLike[str], patience: float) -> None:
        with self._lock:
            self._patience = patience
            self._write(path)

    def _write(self, path: str | os.PathLike[str]) -> None:
        try:
            if self._open is not None:
                self._rest(self._next())
            data = self._rest(self._asked(EVENTS))
            # The board's clock is asked only after the events, because the questions are events
            # too.
            now = self.moment()
        except (PeerDied, Poisoned, Retired):
            raise BadUse(
                "the session with the board has ended, so its events could not be fetched"
            ) from None
        taken = _board.read(data)
        if not taken.room:
            raise BadUse(
                f"board {taken.board} records nothing: build its program with WEFT_FLIGHT "
                "(mcu/FLIGHT.md)"
            )
        taken.waits = self._waits
        first, self._first = self._first or now, self._first or now
        target = os.fspath(path)
        beside = f"{target}.{os.getpid()}.part"
        try:
            Path(beside).write_bytes(_board.file_of(taken, _clock(first, now), __version__))
            Path(beside).replace(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                Path(beside).unlink()
            raise BadUse(f"cannot write {target}: {error.strerror}") from None


def _clock(first: Moment, now: Moment) -> _board.Clock:
    """Returns the line through two moments. If the moments are close together, a microsecond of the
    board is assumed to be as long as one of this machine, within the error of a crystal
    (flight_board.DRIFT).
    """
    if now.ns - first.ns < APART or now.us <= first.us:
        us = max(now.us - 1_000_000, 0)
        return _board.Clock((us, now.us), (now.ns - (now.us - us) * 1000, now.ns), now.within)
    within = max(first.within, now.within)
    return _board.Clock((first.us, now.us), (first.ns, now.ns), within)

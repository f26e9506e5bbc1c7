"""Looks at the hosts of a network, and fetches their flight recorders' files, from another machine
(WIRE-NETWORKS.md 17.9; rule 14.17).

    Observer(network, "gpu1") ──questions──► weft._commands.host_observed:tells_observer, on the host

Invariant: the host's clock is read between two readings of this machine's clock, so half of the time
between these two bounds the error, however long a message took.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from weft import threads
from weft._commands import host_observed as _observed
from weft._net import link as _net_link
from weft._watching import flight_board as _board
from weft.errors import BadUse, PeerDied, Poisoned, Retired

PATIENCE = 10.0  # how many seconds to wait for an answer, beyond the time that the answer takes
# The limit for the answer to the first question, for which the host might have to start an OS
# process (_net/link.py).
BEGINS = _net_link.BEGINS
ASKED = 8  # how often a host is asked for its time; the quickest answer is used


class Observer:
    """Asks one host.

    Raises:
        BadUse: the host does not answer, or has another version of Weft.
    """

    def __init__(self, network: Any, name: str) -> None:
        self.name = name
        asks: Any = threads.Channel("asks")
        tells: Any = threads.Channel("tells")
        self._asks, self._tells = asks.writer(), tells.reader()
        self._wrong: BaseException | None = None  # why the host does not answer
        ends = asks.reader(), tells.writer()
        self._runs = threading.Thread(
            target=self._run, args=(network, ends), name="weft: looks at a host", daemon=True
        )
        self._runs.start()

    def _run(self, network: Any, ends: tuple[Any, Any]) -> None:
        try:
            network.host(self.name).call(_observed.tells_observer, ends, {})
        except BaseException as error:
            self._wrong = error
            for end in ends:
                with contextlib.suppress(BadUse):
                    end.retire()

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._asks, self._tells):
            with contextlib.suppress(BadUse):
                end.retire()
        self._runs.join(PATIENCE)

    def _choose(self, guard: Any, seconds: float) -> Any:
        try:
            which, value = threads.select(guard, threads.after(seconds))
        except (PeerDied, Poisoned, Retired):
            self._runs.join(PATIENCE)
            raise BadUse(f"host {self.name} cannot be looked at: {self._wrong}") from None
        if which:
            raise BadUse(f"host {self.name} has not answered for {seconds:g} s")
        return value

    def _ask(self, *question: Any, takes: float = 0.0) -> Any:
        self._choose(threads.Output(self._asks, list(question)), BEGINS)
        return self._choose(self._tells, PATIENCE + takes)

    def clock(self) -> tuple[int, int]:
        """Compares the host's steady clock with that of this machine. Returns two figures in ns:
        the difference to add to the host's times, and the largest error of this difference.
        """
        best: tuple[int, int] | None = None
        for _ in range(ASKED):
            before = time.monotonic_ns()
            there = self._ask("time")
            after = time.monotonic_ns()
            within = (after - before) // 2 + 1
            if best is None or within < best[1]:
                best = (before + after) // 2 - int(there), within
        assert best is not None
        return best

    def look(self, interval: float, most: int) -> dict[str, Any]:
        """Returns what tells_observer() answers to a look."""
        answer = self._ask("look", interval, most, takes=interval + 3)
        if not isinstance(answer, dict):
            raise BadUse(f"host {self.name} answers in a form that this weft does not know")
        return answer

    def files(self) -> Iterator[tuple[int, bytes | str]]:
        """Yields for each OS process of the host its pid and the file of its flight recorder, with
        times of this machine's clock; or, in place of the file, a sentence that says why there is
        none.
        """
        difference, within = self.clock()
        found: dict[int, bytearray | str] = {}
        part = self._ask("flight", takes=60)
        while part is not None:
            pid, data = part
            if isinstance(data, str):
                found[pid] = data
            else:
                of = found.setdefault(pid, bytearray())
                assert isinstance(of, bytearray)
                of += data
            part = self._choose(self._tells, PATIENCE + 60)
        clock = _board.clock_piece(within, difference, socket.gethostname()[:64])
        for pid, whole in found.items():
            yield pid, whole if isinstance(whole, str) else _with_clock(bytes(whole), clock)


def _with_clock(data: bytes, clock: bytes) -> bytes:
    """Returns the file with a piece that gives the accuracy of its times, inserted after the
    head."""
    at = 8
    behind = at + 5 + int.from_bytes(data[at + 1 : at + 5], "little")
    return data[:behind] + clock + data[behind:] if len(data) >= behind else data

"""The answers of an OS process and its hosts to other programs, including C++ programs, in the form
of WIRE.md 10.7. C++ draws the conclusions (wire/everywhere.hpp).

Invariant: the answer of a space describes one moment, as _distributed_deadlock/rounds.py has found
it; this module asks no host.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from weft._extension import native as _native
from weft._watching.deadlocks import Place, Waiter

if TYPE_CHECKING:
    from weft._distributed_deadlock.members import Space

__all__ = ["moved", "packed_spaces", "still"]

_READ, _WRITE, _SYNC = range(3)


def _text(text: str) -> bytes:
    raw = text.encode(errors="replace")
    return struct.pack("<I", len(raw)) + raw


def _all(items: Iterable[bytes]) -> bytes:
    packed = list(items)
    return struct.pack("<I", len(packed)) + b"".join(packed)


def packed_spaces(spaces: Iterable[Space]) -> bytes:
    return b"".join(_one(s) for s in spaces)


def still(answers: bytes, whole: bool = True) -> bool:
    """Returns whether all spaces wait, and every frame that was sent has been received (WIRE.md
    10.3).
    """
    return _native._rounds_still(answers, whole)


def moved(first: bytes, second: bytes) -> bool:
    """Returns whether anything has happened between these two rounds."""
    return _native._rounds_moved(first, second)


def _one(s: Space) -> bytes:
    # Only one of several processes that hold an end is named. (A C++ program names the one that
    # last used the end.)
    holder = {(place, writes): process for process, place, writes, _ in reversed(s.held)}
    far = {place: (home, name) for place, home, name, _ in s.far}
    return b"".join(
        (
            struct.pack("<Q", s.incarnation),
            _text("python"),
            struct.pack("<IB", s.pid, s.waits),
            _all([]),  # all runs are examined at one moment, so there is no count of runs
            _all(struct.pack("<QII", *session) for session in s.sessions),
            _all(
                struct.pack(
                    "<QQQBII",
                    peer,
                    name,
                    place,
                    writes,
                    holder.get((place, False), 0),
                    holder.get((place, True), 0),
                )
                for peer, name, place, writes, _ in s.lent
            ),
            _all(
                struct.pack("<QQI", *at, holder.get((place, False), holder.get((place, True), 0)))
                for place, at in far.items()
            ),
            _all(
                _process(run, Waiter(*raw), places, holder, far, s)
                for run, (raws, places) in enumerate(s.facts, 1)
                for raw in raws
            ),
        )
    )


def _process(
    run: int,
    w: Waiter,
    places: dict[int, tuple[object, ...]],
    holder: dict[tuple[int, bool], int],
    far: dict[int, tuple[int, int]],
    s: Space,
) -> bytes:
    # A process that waits for a call in a host has no line; the processes of the call have lines.
    hidden = w.state != "places" or w.id in s.away.values()

    def at(key: int, writes: bool) -> bytes:
        place = Place(*places[key])  # type: ignore[arg-type]
        how = _SYNC if not place.is_channel else _WRITE if writes else _READ
        home, name = far.get(key, (0, key))
        last = 0 if home else holder.get((key, not writes), 0)
        return struct.pack("<BQQI", how, home, name, last) + _text(place.name)

    return (
        struct.pack("<IIIB", run, w.id, w.parent, hidden)
        + _text(w.path)
        + _text(w.operation)
        + _text(w.at)
        + _all(at(key, writes) for key, writes in w.places)
    )

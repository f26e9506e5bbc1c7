"""Makes a file of the flight recorder (docs/flight.md) from the events that a board has recorded,
bare or with MicroPython (rules M24, 14.19; mcu/FLIGHT.md).

    the board's bytes ──read()──► Taken: names, processes, events ──file_of()──► the file

Invariants
- Nothing in the board's bytes is trusted: a piece that is cut off ends the reading, and the pieces
  before it are used; a piece of another form is skipped.
- Events are sorted by time. The time of an event has 32 bits, so an event is taken to be at most 71
  minutes older than the next one of its core.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.errors import BadUse

MAGIC = b"\x89WEFT\n\x1ab"
DRIFT = 1e-4  #: how far a board's clock can gain or lose, as a share of the time that has passed
_BLOCK = 20_000  # events in a block, since a piece must not be larger than 1 MB
_FILE = b"\x89WEFT\n\x1a\x01"
# the events of weft_mcu/flight.h
_START, _END, _WAITS, _OVER, _GOES_ON, _BEGINS, _RETURNS = range(1, 8)
_BUFFERED, _DROPPING = 1 << 24, 1 << 25
_SELECTS, _READS, _WRITES = (3, 4, 5), (0, 2, 3), (1, 4)
_OTHER = 11
# the outcomes of the format, and the reasons, by the numbers of weft::Status
_OK, _RETIRED, _POISONED, _DIED, _CANCELLED, _TIMED_OUT, _IN_DOUBT = 0, 2, 3, 4, 5, 6, 7
_WHY = {_RETIRED: 0, _POISONED: 1, _DIED: 2, _IN_DOUBT: 2}
_WAITED, _DROPS = 0x40, 1


@dataclass(frozen=True)
class Clock:
    """Two moments of a board's clock: at `us[i]` microseconds of the board, this machine's steady
    clock was at `ns[i]`, and both are known to be right within `within` ns.
    """

    us: tuple[int, int]
    ns: tuple[int, int]
    within: int


@dataclass
class Taken:
    board: str = "board"
    now: int = 0  #: the board's time when its ring was read, in us
    lost: int = 0
    room: int = 0  #: how many events a ring has; 0: the program was built without a recorder
    before: int = 0  #: how many events earlier readings have fetched
    whole: bool = False
    names: dict[int, str] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    #: (time in us, who, place, what), the oldest first
    events: list[tuple[int, int, int, int]] = field(default_factory=list)
    #: for each party that waits: since when, the operation, the place, a name of the operation.
    #: file_of() begins with the waits that an earlier reading has left here, and leaves here the
    #: waits that have not ended.
    waits: dict[int, tuple[int, int, int, str]] = field(default_factory=dict)


def is_of_a_board(data: bytes) -> bool:
    return data.startswith(MAGIC)


def read(data: bytes) -> Taken:
    """Reads the bytes of weft_flight_take().

    Raises:
        BadUse: the bytes are not those of a board.
    """
    if not is_of_a_board(data):
        raise BadUse("these bytes are not what a board has recorded (mcu/FLIGHT.md)")
    taken, at = Taken(), len(MAGIC)
    lanes: dict[int, list[tuple[int, int, int, int]]] = {}
    while at + 5 <= len(data):
        letter, size = data[at : at + 1], int.from_bytes(data[at + 1 : at + 5], "little")
        content, at = data[at + 5 : at + 5 + size], at + 5 + size
        if len(content) < size:
            break
        if letter == b"T" and size >= 20:
            taken.now, taken.lost, taken.room, taken.before = struct.unpack_from("<QIII", content)
            taken.board = content[20:].decode(errors="replace") or taken.board
        elif letter in (b"N", b"P") and size >= 4:
            names = taken.names if letter == b"N" else taken.processes
            thing = int.from_bytes(content[:4], "little")
            names[thing] = content[4:].decode(errors="replace")
        elif letter == b"R" and size >= 4:
            lane = lanes.setdefault(int.from_bytes(content[:4], "little"), [])
            lane.extend(struct.iter_unpack("<IIII", content[4 : size - size % 16 + 4]))
        elif letter == b"Z":
            taken.whole = True
            break
    for lane in lanes.values():
        later = taken.now
        for i in range(len(lane) - 1, -1, -1):
            when, *rest = lane[i]
            later -= (later - when) & 0xFFFFFFFF
            lane[i] = (later, *rest)  # type: ignore[assignment]
    taken.events = sorted((e for lane in lanes.values() for e in lane), key=lambda e: e[0])
    # An event before the board's start means that the bytes are damaged.
    if taken.events and taken.events[0][0] < 0:
        taken.events = [e for e in taken.events if e[0] >= 0]
    return taken


# --- the file -------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value: str) -> bytes:
    data = value.encode()[:400].decode(errors="ignore").encode()
    return varint(len(data)) + data


def piece(letter: bytes, content: bytes = b"") -> bytes:
    return letter + len(content).to_bytes(4, "little") + content


def clock_piece(within: int, difference: int = 0, reference: str = "") -> bytes:
    """Makes the piece that says how exact the times of a file are (docs/flight.md)."""
    return piece(b"C", varint(within) + zigzag(difference) + text(reference))


@dataclass
class _Place:
    number: int
    name: str
    buffered: bool = False
    drops: bool = False
    read: int = 0
    written: int = 0
    sides: int = 0  #: 1: values were read there; 2: values were written; 3: both


class _Writer:
    def __init__(self, taken: Taken) -> None:
        self._taken = taken
        self._who: dict[int, tuple[int, str]] = {}
        self._places: dict[int, _Place] = {}
        self._waits = taken.waits
        self._first = taken.events[0][0] if taken.events else 0
        # Whether a ring has lost events. If so, it is not known how many values passed before the
        # first event.
        self._cut = taken.lost > 0 or taken.before > 0 or len(taken.events) >= taken.room - 1
        self._name_all()
        self._count_before()

    # --- names ------------------------------------------------------------------------------------

    def _name_all(self) -> None:
        taken = self._taken
        seen: dict[str, list[int]] = {}
        unnamed: list[int] = []
        used = dict.fromkeys([*self._waits, *(who for _, who, _, _ in taken.events)])
        for who in used:
            own = taken.processes.get(who, taken.names.get(who, ""))
            if not own and who in taken.processes:
                own = "process"
            if own:
                seen.setdefault(own, []).append(who)
            else:
                unnamed.append(who)
        for name, all_of_it in seen.items():
            for i, who in enumerate(all_of_it):
                index = f"[{i}]" if len(all_of_it) > 1 else ""
                self._who[who] = (len(self._who) + 1, f"{taken.board}/{name}{index}")
        for i, who in enumerate(unnamed):
            self._who[who] = (-1 - i, f"{taken.board}/0x{who:08x}")

    def _place(self, thing: int) -> _Place:
        place = self._places.get(thing)
        if place is None:
            name = self._taken.names.get(thing) or f"0x{thing:08x}"
            place = self._places[thing] = _Place(len(self._places) + 1, name)
        return place

    def _count_before(self) -> None:
        """Finds how many values had passed at each place before the first event, so that the n-th
        write can be matched with the n-th read. At a channel without a buffer each value makes two
        events: an OVER of the party that arrived second, and then a GOES_ON of the party that had
        waited. If a GOES_ON has no OVER, the ring has lost that OVER.
        """
        met: dict[tuple[int, bool], int] = {}
        for _, _, thing, what in self._taken.events:
            kind, op, status = what & 255, what >> 8 & 255, what >> 16 & 255
            if not thing or kind not in (_WAITS, _OVER, _GOES_ON):
                continue
            place = self._place(thing)
            place.buffered |= bool(what & _BUFFERED)
            place.drops |= bool(what & _DROPPING)
            if status or op not in _READS + _WRITES:
                continue
            writes = op in _WRITES
            if kind != _WAITS:
                place.sides |= 2 if writes else 1
            if kind == _OVER:
                met[thing, writes] = met.get((thing, writes), 0) + 1
            elif kind == _GOES_ON:
                if met.get((thing, not writes), 0):
                    met[thing, not writes] -= 1
                elif writes:
                    place.read += 1
                else:
                    place.written += 1

    # --- records ----------------------------------------------------------------------------------

    def blocks(self) -> Iterator[bytes]:
        events = self._taken.events
        for at in range(0, max(len(events), 1), _BLOCK):
            yield self._block(events[at : at + _BLOCK], at + _BLOCK >= len(events))

    def _block(self, events: list[tuple[int, int, int, int]], last: bool) -> bytes:
        begin = events[0][0] if events else self._taken.now
        out = bytearray(varint(0) + varint(begin))
        processes: dict[int, int] = {}
        places: dict[int, int] = {}
        now = begin

        def stamp(t: int, who: int) -> bytes:
            nonlocal now
            if who not in processes:
                processes[who] = len(processes)
                number, path = self._who[who]
                out.extend(b"\x80" + zigzag(number) + text(path))
            passed, now = max(t - now, 0), max(t, now)
            return varint(passed) + varint(processes[who])

        def at(thing: int) -> bytes:
            if not thing:
                return varint(0)
            place = self._place(thing)
            if thing not in places:
                places[thing] = len(places)
                # How many values have passed is not known at a buffer, nor at an end of a link.
                unknown = self._cut and (place.buffered or place.sides != 3)
                flags = _DROPS if place.drops or unknown else 0
                numbers = (place.number, flags, place.read, place.written)
                out.extend(b"\x81" + b"".join(map(varint, numbers)) + text(place.name))
            return varint(places[thing] + 1)

        for t, who, thing, what in events:
            kind, op, status = what & 255, what >> 8 & 255, what >> 16 & 255
            if kind == _START:
                out.extend(_parts(b"\x82", stamp(t, who)))
            elif kind == _END:
                self._waits.pop(who, None)
                out.extend(_parts(b"\x83", stamp(t, who), bytes([op if op <= 5 else 0, 0])))
            elif kind == _WAITS:
                self._waits[who] = (t, op, thing, "")
            elif kind == _RETURNS:
                self._waits[who] = (t, _OTHER, 0, "its next event")
            elif kind == _BEGINS:
                since = self._waits.pop(who, (self._first, 0, 0, ""))[0]
                name = self._taken.names.get(thing, "")
                where = stamp(t, who)
                out.extend(b"\x86" + text(f"event {name}" if name else "its next event"))
                out.append(_OTHER | _WAITED)
                out.extend(_parts(where, varint(0), varint(t - since)))
            elif kind in (_OVER, _GOES_ON) and op < _OTHER:
                waited = None
                if kind == _GOES_ON:
                    waited = t - self._waits.pop(who, (self._first, 0, 0, ""))[0]
                out.extend(self._over(stamp(t, who), at(thing), op, status, waited))
                if thing and not status:
                    place = self._place(thing)
                    place.written += op in _WRITES
                    place.read += op in _READS
        if last:
            for who, (since, op, thing, name) in self._waits.items():
                where, place_ = stamp(self._taken.now, who), at(thing)
                if name:
                    out.extend(b"\x86" + text(name))
                span = varint(max(self._taken.now - since, 0))
                out.extend(_parts(b"\x85", where, bytes([op]), place_, span))
        return piece(b"B", bytes(out))

    def _over(self, where: bytes, place: bytes, op: int, status: int, waited: int | None) -> bytes:
        outcome = 2 if status in _WHY else 0
        if status == _CANCELLED or (status == _TIMED_OUT and op not in _SELECTS):
            outcome = 1
        tag = op | outcome << 4 | (0 if waited is None else _WAITED)
        more = b""
        if outcome == 2:
            more = varint(_WHY[status])
        elif op in _SELECTS:
            more = varint(0)
        return _parts(
            bytes([tag]), where, place, more, b"" if waited is None else varint(max(waited, 0))
        )


def _parts(*parts: bytes) -> bytes:
    return b"".join(parts)


def file_of(taken: Taken, clock: Clock | None, version: str) -> bytes:
    """Makes a file of the flight recorder. Without a `clock` the file's times are those of the
    board alone, and cannot be compared with those of other files.
    """
    if clock is None:
        clock_ = Clock((0, max(taken.now, 1)), (0, max(taken.now, 1) * 1000), -1)
        system = 0
    else:
        clock_ = clock
        system = time.time_ns() - time.monotonic_ns() + clock.ns[1]
    numbers = (clock_.us[0], clock_.ns[0], clock_.us[1], clock_.ns[1], system, 0, taken.lost)
    host = os.uname().nodename if clock is not None else f"board {taken.board}"
    head = b"".join(map(varint, numbers))
    head += text(host[:64]) + text(f"board {taken.board}") + text(version)
    within = clock_.within
    if within >= 0 and taken.events:
        # The board's clock might have gained or lost time before the first moment at which it was
        # compared.
        before = max(clock_.us[0] - taken.events[0][0], 0) * 1000
        within += round(before * DRIFT)
    out = [_FILE, piece(b"H", head)]
    out.append(clock_piece(within) if within >= 0 else piece(b"C"))
    out += _Writer(taken).blocks()
    if taken.whole:
        out.append(piece(b"Z"))
    return b"".join(out)

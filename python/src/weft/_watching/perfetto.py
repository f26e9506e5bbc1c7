"""A file of the flight recorder in Perfetto's own format (`weft trace --perfetto`): a track for
each process of Weft, below the track of its OS process, and an arrow for each hand-over.

The bytes are messages of protobuf, made by hand: the numbers are those of the fields in Perfetto's
public schema (protos/perfetto/trace: trace.proto, trace_packet.proto, track_event.proto,
track_descriptor.proto, process_descriptor.proto, interned_data.proto). The tests read the messages
with the classes of the package `perfetto`.

Invariants
- Each slice that begins ends, and slices of a track are nested. The slice of a process that had not
  ended ends with the last event.
- The two ends of an arrow have one flow id. The arrow begins at a write and ends, later, at the
  read that has received its value. For a place that drops values there are no arrows, nor for one
  of which the files have only one side.
- A channel that leads from one program to another is two places of one name: one file has all its
  writes, and another all its reads. Between two machines an arrow may end before it begins, by the
  error of their clocks.
- Names are interned, so a packet takes only a few bytes. The events are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft._watching import flight_read as _read

# The fields of the messages, by their numbers.
_PACKET = 1  # Trace
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_NAME_IID, _TYPE, _TRACK, _FLOWS, _ENDING_FLOWS = 10, 9, 11, 47, 48
_EVENT_NAMES = 2  # InternedData
_BEGIN, _END, _INSTANT = 1, 2, 3
_INCREMENTAL, _NEEDS = 1, 2  # values of TracePacket.sequence_flags
# the number of the packet sequence, from which the numbers of the tracks are made
_OURS = 0x77656674


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + value.to_bytes(8, "little")


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))


class _Writer:
    def __init__(self, recorded: _read.Recorded, flows: dict[int, int]) -> None:
        self._recorded = recorded
        self._names: dict[str, int] = {}
        self._tracks: set[int] = set()
        self._open: dict[
            int, list[int]
        ] = {}  # process → [when its slice began, when its last slice ended]
        self._fresh = True
        self._flows = flows

    def _packet(self, content: bytes) -> bytes:
        flags = _NEEDS | (_INCREMENTAL if self._fresh else 0)
        self._fresh = False
        return _bytes(
            _PACKET, content + _number(_SEQUENCE, _OURS & 0xFFFF) + _number(_FLAGS, flags)
        )

    def head(self) -> Iterator[bytes]:
        numbers: set[int] = set()
        for file, (pid, host, program, *_) in enumerate(self._recorded.heads):
            name = f"{program or 'weft'} on {host}"
            if exact := self._recorded.exactness(file):
                name += f" (its clock: {exact})"
            # A board has no pid, and programs on two hosts can have the same pid, which Perfetto
            # would consider one program. Such a program gets another number.
            number = pid & 0x7FFFFFFF
            if not pid or number in numbers:
                number = 0x40000000 + file
            numbers.add(number)
            process = _number(1, number) + _text(6, name)
            track = _number(1, self._file_track(file)) + _bytes(3, process)
            yield self._packet(_bytes(_DESCRIPTOR, track))

    def _file_track(self, file: int) -> int:
        return _OURS << 24 | file

    def _track(self, process: int) -> int:
        return _OURS << 32 | process + 1

    def _described(self, process: int) -> Iterator[bytes]:
        if process in self._tracks:
            return
        self._tracks.add(process)
        path, _, file = self._recorded.processes[process]
        track = _number(1, self._track(process)) + _text(2, path)
        track += _number(5, self._file_track(file))
        yield self._packet(_bytes(_DESCRIPTOR, track))

    def _event(self, t: int, kind: int, process: int, name: str | None, more: bytes = b"") -> bytes:
        content = _number(_TIMESTAMP, max(t, 0))
        event = _number(_TYPE, kind) + _number(_TRACK, self._track(process))
        if name is not None:
            number = self._names.get(name)
            if number is None:
                number = self._names[name] = len(self._names) + 1
                interned = _bytes(_EVENT_NAMES, _number(1, number) + _text(2, name))
                content += _bytes(_INTERNED, interned)
            event += _number(_NAME_IID, number)
        return self._packet(content + _bytes(_TRACK_EVENT, event + more))

    def event(self, e: _read.Event) -> Iterator[bytes]:
        yield from self._described(e.process)
        path = self._recorded.processes[e.process][0]
        if e.tag == _read.START:
            self._open[e.process] = [e.t, e.t]
            yield self._event(e.t, _BEGIN, e.process, path)
        elif e.tag == _read.END:
            if self._open.pop(e.process, None) is not None:
                yield self._event(e.t, _END, e.process, None)
        elif e.tag in (_read.OVER, _read.WAITS):
            yield from self._slice(e)

    def _slice(self, e: _read.Event) -> Iterator[bytes]:
        begin = e.t - max(e.waited, 0)
        within = self._open.get(e.process)
        if within is not None:  # clocks are rounded, but a slice must not overlap the previous one
            begin = min(max(begin, within[1]), e.t)
            within[1] = e.t
        name = _read.OPS[e.op] or e.text or "?"
        flow = None
        if e.place >= 0:
            name += f" {self._recorded.places[e.place][0]}"
            if e.tag == _read.OVER and e.outcome == 0:
                flow = self._flows.get(e.place)
                flow = flow and flow << 40 | e.number + 1
        if e.tag == _read.WAITS:
            name += " (waits still)"
        elif e.outcome:
            name += f": {'Cancelled' if e.outcome == 1 else _read.WHYS[e.why]}"
        gives = flow is not None and e.op in _read.WRITES
        yield self._event(
            begin, _BEGIN, e.process, name, _fixed(_FLOWS, flow) if gives and flow else b""
        )
        if flow is not None and not gives:
            yield self._event(e.t, _INSTANT, e.process, "takes", _fixed(_ENDING_FLOWS, flow))
        yield self._event(e.t, _END, e.process, None)

    def end(self, last: int) -> Iterator[bytes]:
        for process in list(self._open):
            yield self._event(last, _END, process, None)


def _flows(recorded: _read.Recorded) -> dict[int, int]:
    """Returns a number for each place of which the files have both sides. The two places of a
    channel between two programs have the same number.
    """
    sides: dict[int, set[bool]] = {}
    files: dict[int, int] = {}
    for e in recorded.events():
        if e.tag != _read.OVER or e.place < 0 or e.outcome:
            continue
        if not recorded.places[e.place][1] & (_read.DROPS | _read.BARRIER):
            sides.setdefault(e.place, set()).add(e.op in _read.WRITES)
            files[e.place] = recorded.processes[e.process][2]
    flows = {place: place + 1 for place, seen in sides.items() if len(seen) == 2}
    named: dict[str, list[int]] = {}
    for place in sides:
        named.setdefault(recorded.places[place][0], []).append(place)
    for places in named.values():
        if len(places) == 2:
            one, other = places
            if files[one] != files[other] and sides[one] ^ sides[other] == {False, True}:
                flows |= dict.fromkeys(places, one + 1)
    return flows


def packets(recorded: _read.Recorded) -> Iterator[bytes]:
    """Yields the file, in pieces."""
    writer = _Writer(recorded, _flows(recorded))
    yield from writer.head()
    last = 0
    for event in recorded.events():
        last = max(last, event.t)
        yield from writer.event(event)
    yield from writer.end(last)

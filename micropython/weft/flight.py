"""The flight recorder of a MicroPython board (rule 14.19; FLIGHT.md). A ring keeps the last events
of the coroutine processes, for `weft trace` on a PC.

    from weft import flight

    flight.record(256)           # first of all: processes and channels are made afterwards
    …
    flight.save("board.flight")  # or, on a PC at the other end of a Link: board.flight(path)

Invariants
- The events from `_from` on have not been taken. While they are taken, nothing is noted.
- The bytes are those of mcu/FLIGHT.md.
"""

from . import _flight as _f
from . import _proc
from .errors import BadUse, PeerDied, Poisoned, Retired

_PIECE = 320  # the bytes of events in a piece, at most
_offset = 0  # how much later the board's time is than ticks_us(), in microseconds
_from = _taken = 0


def record(events=256, names=64):
    """Records from now on. Called once, before processes and channels are made.

    Args:
        events: how many events the ring keeps: a power of two, from 8 to 65,536. An event takes 16
            bytes.
        names: how many processes and how many channels have names of their own. Later processes
            share the last name, and later channels have numbers.

    Raises:
        BadUse: an argument is out of range, it already records, or a run is under way.
    """
    global _offset
    if not isinstance(events, int) or not 8 <= events <= 65536 or events & (events - 1):
        raise BadUse("flight.record: events is a power of two, from 8 to 65536, not %r" % (events,))
    if not isinstance(names, int) or names < 1:
        raise BadUse("flight.record: names is 1 or more, not %r" % (names,))
    if _f.ring is not None:
        raise BadUse("flight.record: it records already")
    if _proc._run is not None:
        raise BadUse("flight.record: call it before the run begins")
    from ._time import steady

    _offset = steady() * 1000 - (_f.ticks_us() & _f.TICKS)
    _f.hidden = _serve
    _f.begin(events, names)


def save(path, board="board"):
    """Writes what was recorded, and was not taken before, to a file for `weft trace`. `board` is
    the name before the paths of the processes. Raises OSError if the file cannot be written, and
    BadUse if nothing is recorded."""
    pieces = _pieces(board)
    try:
        with open(path, "wb") as file:
            for piece in pieces:
                file.write(piece)
    finally:
        pieces.close()  # MicroPython closes no generator by itself


def now():
    """Returns the board's time, in microseconds."""
    from ._time import steady

    t = (_f.ticks_us() & _f.TICKS) + _offset
    # `steady` knows the time within some milliseconds, and so how often ticks_us() has begun anew.
    return t + ((steady() * 1000 - t + (_f.TICKS >> 1)) >> 30 << 30)


def _put(letter, *parts):
    content = b"".join(parts)
    return letter + len(content).to_bytes(4, "little") + content


def _pieces(board):
    """Returns an iterator over the bytes of all that was recorded, piece by piece. Nothing is
    recorded until it has come to its end."""
    if _f.ring is None:
        raise BadUse("flight: nothing is recorded: call flight.record() first")
    if not _f.on:
        raise BadUse("flight: the events are being taken")
    return _all_pieces(board)


def _all_pieces(board):
    global _from, _taken
    _f.on = False
    try:
        if _f.noted - _from > _f.mask + 1:
            _f.lost += _f.noted - _f.mask - 1 - _from
            _from = _f.noted - _f.mask - 1
        numbers = [x.to_bytes(4, "little") for x in (_f.lost, _f.mask + 1, _taken)]
        last = now()
        yield b"\x89WEFT\n\x1ab" + _put(
            b"T", last.to_bytes(8, "little"), *numbers, board.encode()[:60]
        )
        for letter, names in ((b"N", _f.places), (b"P", _f.people)):
            for i in range(len(names)):
                name = names[i] if letter == b"N" else names[i][5:]  # without "main/"
                yield _put(letter, (i + 1).to_bytes(4, "little"), name.encode()[:60])
        # The times of the ring begin anew every 18 minutes; the first event is found from the last.
        t, before = last, (last - _offset) & _f.TICKS
        i = _f.noted
        while i > _from:
            i -= 1
            at = _f.ring[(i & _f.mask) << 2]
            t -= (before - at) & _f.TICKS
            before = at
        while _from < _f.noted:
            out = bytearray(4)
            while _from < _f.noted and len(out) < _PIECE:
                i = (_from & _f.mask) << 2
                t += (_f.ring[i] - before) & _f.TICKS
                before = _f.ring[i]
                for x in (t & 0xFFFFFFFF, _f.ring[i + 1], _f.ring[i + 2], _f.ring[i + 3]):
                    out.extend(x.to_bytes(4, "little"))
                _from += 1
                _taken += 1
            yield _put(b"R", out)
        yield _put(b"Z")
    finally:
        _f.lost += _f.noted - _from  # adds 0, unless the session ended meanwhile
        _from = _f.noted
        _f.on = True


async def _serve(link):
    """Answers `board.flight()` of the PC until the session is over."""
    try:
        asked = await link.reader("weft.flight.ask")
        answer = await link.writer("weft.flight")
        while True:
            what = await asked.read()
            if what == 1:
                pieces = _pieces(link.name)
                try:
                    for piece in pieces:
                        await answer.write(piece)
                finally:
                    pieces.close()
                await answer.write(b"")
            else:
                await answer.write(now().to_bytes(8, "little") if what == 0 else b"")
    except (PeerDied, Poisoned, Retired):
        pass

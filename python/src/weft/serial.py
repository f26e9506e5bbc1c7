"""Channels that lead to a program on a board, over a serial line: USB, a UART, a pseudo-terminal,
TCP (WIRE-LINKS.md 12.6).

    with serial.connect("/dev/ttyACM0", baud=115200) as board:
        board.give("leds", leds.reader())

The channel is an ordinary channel, in every backend. Its values are packed as CBOR: `pip install
'weft-csp[serial]'`. The board runs micropython/weft/link.py, or another program that obeys WIRE.md.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import weakref
from typing import Any

from weft._extension import native as _native
from weft._watching import look_boards as _look_boards
from weft.errors import BadUse

try:
    from weft import _cbor  # noqa: F401  # packs the values
except ImportError as error:
    raise ImportError("weft.serial needs cbor2: pip install 'weft-csp[serial]'") from error

__all__ = ["Board", "connect"]

_open: weakref.WeakSet[Board] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for board in list(_open):
        board.close()


class Board:
    """A session with a board. `connect` returns one. At the end of its `with` block the session
    ends, and the ends on the board die.
    """

    def __init__(self, descriptor: int, where: str, baud: int, lease: float) -> None:
        self._where = where
        self._recorder: Any = None
        self._making = threading.Lock()  # protects _recorder
        self._link = _native._Link(
            descriptor,
            f"python {os.getpid()}",
            False,
            True,
            baud,
            round(lease * 1000),
            _again(baud),
        )
        self._looked_at = _look_boards.Board(where, self._link)
        _open.add(self)

    def give(self, name: str, end: Any) -> None:
        """Gives an end of a channel to the board, which asks for the end under this name. In this
        program the end is then closed. give() may be called before the board has connected, or
        later.

        Raises:
            BadUse: `end` is not an end, is closed, or belongs to a channel that leads to other OS
                processes; a value that waits in the channel cannot be sent to a board; the name
                contains a space or is too long; the link is closed.
        """
        if not name or " " in name or len(name.encode()) > 60:
            raise BadUse(f"give: a name must have 1 to 60 bytes and no space, not {name!r}")
        number = self._link.give(end, name)
        if number is not None:
            self._looked_at.given[number] = name

    def flight(self, path: str | os.PathLike[str], *, patience: float = 10.0) -> None:
        """Fetches the last events that the board has recorded, and writes them to the file `path`
        for `weft trace` (mcu/FLIGHT.md). The board's program must have a flight recorder
        (WEFT_FLIGHT) and serve it. A call removes the events from the board, so a second call
        fetches only newer ones.

        The times are brought to this machine's clock. The file says how exact they are; this
        follows from the time that questions and answers took.

        Args:
            path: the path of the file.
            patience: how many seconds to wait for an answer of the board.

        Raises:
            BadUse: the board does not answer, has no recorder, or has ended the session; the file
                cannot be written; the link is closed.
        """
        from weft import threads
        from weft._watching import flight_fetched as _fetched

        with self._making:
            if self._recorder is None:
                self._recorder = _fetched.Recorder(threads, self.give)
        self._recorder.write(path, patience)

    def wait(self) -> str:
        """Blocks the thread until the session has ended. Returns the reason for its end. In a
        coroutine: `await io(board.wait)()`.

        Raises:
            BadUse: the link is closed.
        """
        return self._link.wait()

    def close(self) -> None:
        """Ends the session, and waits until the board has been notified, for 0.6 seconds at most. A
        second call does nothing.
        """
        _open.discard(self)
        self._looked_at.close()
        self._link.close("the program on the PC has closed the link")

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<board at {self._where}>"


def _again(baud: int) -> int:
    """Returns the time in ms after which a packet that was not acknowledged is sent again. It is at
    least the time in which a window of packets is sent and acknowledged.
    """
    return max(200, 2_000_000 * 10 // max(baud, 1) if baud else 200)


def connect(
    line: str | os.PathLike[str] | int | socket.socket,
    *,
    baud: int = 115200,
    lease: float = 3.0,
) -> Board:
    """Opens a session with the board at the other end of a serial line. Returns at once, even if
    the board has not connected yet.

    Args:
        line: the path of a serial device; or a connected socket, or the descriptor of an open line:
            a socket or a descriptor is duplicated.
        baud: the speed in bits a second, for a device that has one; 0 leaves it as it is.
        lease: the seconds without a sign of life after which the board counts as dead; 0: it counts
            as dead only when the line ends.

    Raises:
        OSError: there is no such device, or it is in use.
        BadUse: no line has this speed; the lease is less than 0 or more than an hour.
    """
    if not 0 <= lease <= 3600:
        raise BadUse(f"connect: a lease must be between 0 and 3600 seconds, not {lease!r}")
    if isinstance(line, socket.socket):
        return Board(os.dup(line.fileno()), repr(line), 0, lease)
    if isinstance(line, int):
        return Board(os.dup(line), f"descriptor {line}", baud, lease)
    descriptor = os.open(line, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    return Board(descriptor, os.fspath(line), baud, lease)

"""Processes of this program on boards that run MicroPython: `sensor.on(board)(…)` (rule 21).

    board = boards.connect("/dev/ttyACM0")
    run(sensor.on(board)(a.writer()), show(a.reader()))

The source of the process and of what it uses goes to the board. `pip install 'weft-csp[serial]'`.
The page is python/docs/boards.md.
"""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

from weft import serial
from weft._boards import emulators as _emulators
from weft._boards import install as _install
from weft._boards import lines as _lines
from weft._boards import placing as _placing
from weft._boards import prompt as _prompt
from weft.errors import BadUse

__all__ = ["Board", "connect", "emulated"]


class Board(_placing.Placing):
    """A board on which processes of this program run: `function.on(board)`. `connect` and
    `emulated` return one. At the end of its `with` block the session ends, and the processes that
    still run there are cancelled.

    Attributes:
        free: the number of bytes of free heap that the board had before the session.
    """

    def __init__(
        self, session: serial.Board, where: str, about: _install.About, closing: Any
    ) -> None:
        super().__init__(session, where, about.free, about.kept)
        self._closing = closing
        self._closed = False

    def close(self) -> None:
        """Ends the session. The board goes back to its prompt. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._session.close()
            self._closing()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<board at {self._where}>"


def connect(
    port: str | os.PathLike[str] | socket.socket,
    *,
    baud: int = 115200,
    lease: float = 3.0,
    patience: float = 10.0,
) -> Board:
    """Connects to a board that runs MicroPython, and stops the program that it runs. If Weft is
    missing on the board, `connect` puts it there. Blocks the thread until the board is ready.

    Args:
        port: the path of a serial port or a pseudo-terminal; "socket://HOST:PORT"; or a connected
            socket, which is duplicated.
        baud: the speed in bits a second, for a port that has one.
        lease: the seconds without a sign of life after which the board counts as dead; 0: it counts
            as dead only when the line ends.
        patience: the seconds that the board may take for each of its answers.

    Raises:
        BadUse: there is no such port, or another program has locked it; the device at the port is
            no MicroPython board, hangs, has another version of Weft, or has no room for Weft; an
            argument is out of range.
    """
    _checked("lease", lease)
    _checked("patience", patience)
    line, where = _lines.opened(port, baud)
    return _ready(line, where, line, "sys.stdin.buffer,sys.stdout.buffer", baud, lease, patience)


def emulated(
    chip: str = "rp2040",
    *,
    firmware: str | os.PathLike[str] | None = None,
    lease: float = 20.0,
    patience: float = 60.0,
) -> Board:
    """Starts an emulator of a board that runs MicroPython, and connects to the emulated board. The
    emulator ends when the board is closed. Blocks the thread until the board is ready.

    Args:
        chip: "rp2040".
        firmware: the path of MicroPython's firmware for the emulator. None: the firmware that
            `./run setup micropython` has built in the checkout of Weft in which this program runs,
            or in the checkout that $WEFT_CHECKOUT names.
        lease, patience: in seconds, as for `connect`. The defaults are larger, because an emulator
            on a busy machine is slower than a board.

    Raises:
        BadUse: there is no such chip, no emulator, no firmware or no node; the firmware does not
            come to its prompt; an argument is out of range.
    """
    _checked("lease", lease)
    _checked("patience", patience)
    machine = _emulators.start(chip, firmware)
    try:
        line, link = machine.lines(patience)
        stream = "machine.UART(1,115200,rxbuf=1024)"
        return _ready(line, f"the emulated {chip}", link, stream, 19200, lease, patience, machine)
    except BaseException as error:
        printed = machine.printed()
        machine.close()
        if isinstance(error, BadUse) and printed:
            raise BadUse(f"{error}; the emulator said: {printed}") from error
        raise


def _checked(what: str, seconds: float) -> None:
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 <= seconds <= 3600
    ):
        raise BadUse(f"{what} must be between 0 and 3600 seconds, not {seconds!r}")


def _ready(
    line: int,
    where: str,
    link: int,
    stream: str,
    baud: int,
    lease: float,
    patience: float,
    machine: _emulators.Machine | None = None,
) -> Board:
    """Returns the board at two descriptors: `line`, at which the board has its prompt, and `link`,
    which carries the session. They may be the same descriptor. The board closes them when it is
    closed; if this function raises, it has closed them.
    """
    prompt = _prompt.Prompt(line, where)
    open_lines = {line, link}

    def close() -> None:
        with contextlib.suppress(BadUse):
            prompt.leave(1.0 if machine is None else 0.0)
        for one in open_lines:
            os.close(one)
        if machine is not None:
            machine.close()

    try:
        prompt.enter(patience)
        about = _install.look(prompt, where, patience)
        if about.weft is None:
            _install.put(prompt, where, about, patience)
            about = _install.look(prompt, where, patience)
        name = f"board at {where}" if machine is None else where
        call = f"_placed.main({stream},name={name[:60]!r},lease={round(lease * 1000)})"
        imports = "import sys,machine" if "machine" in stream else "import sys"
        prompt.begin(f"{imports}\nfrom weft import _placed\n{call}", patience)
        session = serial.Board(os.dup(link), where, baud if os.isatty(link) else 0, lease)
    except BaseException:
        for one in open_lines:
            os.close(one)
        raise
    return Board(session, where, about, close)

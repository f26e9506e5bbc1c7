"""Processes of this program on boards: `sensor.on(board)(…)` (rule 21). The board runs MicroPython,
or no operating system at all (`bare`).

    board = boards.connect("/dev/ttyACM0")
    run(sensor.on(board)(a.writer()), show(a.reader()))

The source of the process, and of the functions that it uses, goes to the board. `pip install
'weft-csp[serial]'`. The page is python/docs/boards.md.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft import serial
from weft._boards import bare as _bare
from weft._boards import emulators as _emulators
from weft._boards import flashing as _flashing
from weft._boards import install as _install
from weft._boards import lines as _lines
from weft._boards import placing as _placing
from weft._boards import prompt as _prompt
from weft.errors import BadUse

__all__ = ["BareBoard", "Board", "bare", "connect", "emulated"]


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
            reach its prompt; an argument is out of range.
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


class BareBoard(_bare.Placing):
    """A board without MicroPython, on which processes in C++ run: `component.process.on(board)`.
    `bare` returns one. At the end of its `with` block the board is stopped.

    Attributes:
        free: the number of bytes that the board has for the frames of processes.
    """

    def __enter__(self) -> BareBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<bare board at {self._where}>"


def bare(
    port: str | os.PathLike[str] = "emulated",
    *,
    baud: int = 115200,
    lease: float | None = None,
    patience: float = 60.0,
) -> BareBoard:
    """Returns a board for processes of placeable sources in C++ (weft.native.load). When the first
    process begins, the firmware of all sources whose processes were placed is built, or taken from
    the cache, and started.

    Args:
        port: "emulated": an emulator of the RP2040. Otherwise the path of a serial port that leads
            to UART 0 of a board with an RP2040 in BOOTSEL mode, which is programmed by picotool
            over USB. (This was not tried with a board.)
        baud: the speed in bits a second, for a port that has one. The firmware uses 115200.
        lease: the seconds without a sign of life after which the board counts as dead; None: 3, for
            the emulator 20.
        patience: the seconds that the emulator may take to start.

    Raises:
        BadUse: there is no such port or no picotool; an argument is out of range.
    """
    where = os.fspath(port)
    emulated = where == "emulated"
    lease = (20.0 if emulated else 3.0) if lease is None else lease
    _checked("lease", lease)
    _checked("patience", patience)
    if not emulated:
        _flashing.picotool()

    def start(image: Path) -> tuple[tuple[serial.Board, Any], Callable[[], str]]:
        if not emulated:
            _flashing.flash(image, where)
            line, _ = _lines.opened(where, baud)
            return _session(line, where, baud, lease, lambda: None), str
        machine = _emulators.start_bare(image)
        try:
            line = machine.link(patience)
        except BaseException as error:
            printed = machine.printed()
            machine.close()
            if isinstance(error, BadUse) and printed:
                raise BadUse(f"{error}; the emulator said: {printed}") from error
            raise
        return _session(line, name, 19200, lease, machine.close), machine.ended

    name = "the emulated rp2040" if emulated else where
    return BareBoard(name, start, not emulated)


def _session(
    line: int, where: str, baud: int, lease: float, stop: Callable[[], None]
) -> tuple[serial.Board, Any]:
    """Begins a session over a line. Returns the session, and a function that ends the session and
    calls `stop`.
    """
    try:
        session = serial.Board(os.dup(line), where, baud, lease)
    except BaseException:
        os.close(line)
        stop()
        raise

    def end() -> None:
        session.close()
        os.close(line)
        stop()

    return session, end


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

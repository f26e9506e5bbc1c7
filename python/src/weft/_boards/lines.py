"""Opens the line to a board: a serial port, a pseudo-terminal, or a socket.

Invariant: a port that was opened here is locked, until this program closes it or dies. The lock is
an advisory one (flock): it keeps away only programs that ask for it too, as those do that open a
port with pyserial and `exclusive=True`.
"""

from __future__ import annotations

import fcntl
import glob
import os
import socket
import termios
import tty

from weft.errors import BadUse

__all__ = ["opened"]


def opened(port: str | os.PathLike[str] | socket.socket, baud: int) -> tuple[int, str]:
    """Opens a line that carries each byte unchanged. Returns a descriptor that does not block, and
    the line's name for messages.

    Raises:
        BadUse: there is no such port, another program has locked it, or it cannot be opened.
    """
    if isinstance(port, socket.socket):
        line = os.dup(port.fileno())
        os.set_blocking(line, False)
        return line, "a socket"
    where = os.fspath(port)
    if where.startswith("socket://"):
        return _connected(where), where
    try:
        line = os.open(where, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise BadUse(f"connect: there is no port {where}: {_ports()}") from error
    except OSError as error:
        raise BadUse(f"connect: {where} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(line)
        raise BadUse(
            f"connect: another program, or a Board of this program, uses {where}: "
            "close it there first"
        ) from error
    try:
        _raw(line, where, baud)
    except BaseException:
        os.close(line)
        raise
    return line, where


def _ports() -> str:
    there = sorted(glob.glob("/dev/serial/by-id/*") or glob.glob("/dev/tty[AU][CS][MB]*"))  # noqa: PTH207
    if not there:
        return "this computer has no serial port now; plug the board in"
    return "there are " + ", ".join(there)


def _raw(line: int, where: str, baud: int) -> None:
    if not os.isatty(line):
        raise BadUse(f"connect: expected a serial port or socket://HOST:PORT, got {where}")
    speed = getattr(termios, f"B{baud}", None)
    if speed is None:
        raise BadUse(
            f"connect: expected a speed that serial ports support, such as 115200, got {baud!r}"
        )
    tty.setraw(line)
    now = termios.tcgetattr(line)
    now[4] = now[5] = speed
    termios.tcsetattr(line, termios.TCSANOW, now)


def _connected(where: str) -> int:
    host, colon, port = where.removeprefix("socket://").rpartition(":")
    if not colon or not port.isdecimal():
        raise BadUse(f"connect: expected socket://HOST:PORT with a port number, got {where}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 10) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.setblocking(False)
            return line.detach()
    except (OSError, OverflowError) as error:
        raise BadUse(f"connect: nothing answers at {where}: {error}") from error

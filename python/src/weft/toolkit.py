"""Files and commands as processes (docs/toolkit.md).

All of them are thread processes: a call that blocks in the operating system blocks only its own
thread. So they may be part of a network of coroutines, on the same channels, and no scheduler waits
for such a call.

Invariants of :func:`command`
- The child is reaped before the process ends, however the process ends: it is terminated, and
  killed if it has not ended after `grace` seconds.
- Every wait in the system is a poll() that includes the pipe of `_Wake`, so that it is woken when
  the process must end.

    command ─┬─ _guard      waits at a channel of its own, where a cancellation of the network finds
             │              it; then it wakes the rest
             ├─ _feed       values ──► the child's stdin
             ├─ _drain      the child's stdout, stderr ──► channels, line by line
             └─ _await_end  waits for the child's end, by a pidfd; then _guard and _feed end too
"""

from __future__ import annotations

import contextlib
import os
import select as system_select
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from weft._readable import readable
from weft.errors import BadUse, Cancelled, Poisoned, Retired
from weft.threads import Channel, Parallel, Reader, Writer, process, select

__all__ = ["command", "read_file", "write_file"]

Mode = Literal["text", "bytes"]


# --- files ----------------------------------------------------------------------------------------


@process
def read_file(
    path: str | os.PathLike[str],
    out: Writer[str],
    *,
    encoding: str = "utf-8",
    newlines: bool = False,
) -> int:
    """Writes a file line by line to a channel, then retires. The result of the process is the
    number of lines.

    Args:
        newlines: whether to keep the newline at the end of each line.
    Raises:
        OSError, UnicodeError: the file cannot be read.
    """
    n = 0
    with Path(path).open(encoding=encoding) as file:
        for line in file:
            out.write(line if newlines else line.removesuffix("\n"))
            n += 1
    return n


@process
def write_file(
    source: Reader[Any],
    path: str | os.PathLike[str],
    *,
    append: bool = False,
    encoding: str = "utf-8",
    newlines: bool = True,
) -> int:
    """Writes the values of a channel to a file, each as a line, until the channel retires. The
    result of the process is their number.

    Values that were read before a poison or a cancellation are in the file.

    Args:
        append: whether to keep the contents of the file and write after them. Otherwise the file is
            overwritten.
        newlines: whether to add a newline to each value.
    Raises:
        OSError, UnicodeError: the file cannot be written.
    """
    n = 0
    with Path(path).open("a" if append else "w", encoding=encoding) as file:
        for value in source:
            file.write(f"{value}\n" if newlines else str(value))
            n += 1
    return n


# --- commands -------------------------------------------------------------------------------------


class _Wake:
    """A pipe that becomes readable when all parts of a command must stop."""

    def __init__(self) -> None:
        self.read, self._write = os.pipe()
        self.poison: Poisoned | None = None  # the poison that stopped the parts, if one did

    def all(self) -> None:
        os.write(self._write, b"x")

    def close(self) -> None:
        os.close(self.read)
        os.close(self._write)


def _wait(fd: int, for_what: int, wake: _Wake) -> bool:
    """Waits for the file descriptor. Returns false if the process must stop."""
    poll = system_select.poll()
    poll.register(fd, for_what)
    poll.register(wake.read, system_select.POLLIN)
    return all(ready != wake.read for ready, _ in poll.poll())


@process
def _guard(gate: Reader[Any], wake: _Wake) -> None:
    try:
        gate.read()
    except Retired:
        return  # the child has already ended
    except Cancelled:
        wake.all()
        raise


def _encoded(value: Any, mode: Mode) -> bytes:
    if mode == "text":
        return f"{value}\n".encode()
    if not isinstance(value, bytes | bytearray | memoryview):
        raise BadUse(
            f"command(mode='bytes') was sent a {type(value).__name__} for its stdin: send bytes, or use mode='text'"
        )
    return bytes(value)


def _values(source: Reader[Any], gone: Reader[Any]) -> Iterator[Any]:
    """Yields the values of the source, until it retires or the child has ended."""
    while True:
        try:
            yield select(source, gone, mode="priority", ended="raise")[1]
        except Retired:
            return


def _read_no_more(source: Reader[Any], wake: _Wake) -> None:
    """Retires the source, because the child has stopped reading. If a poison has ended the source,
    the source is not retired, so that the poison spreads to the writers.
    """
    if wake.poison is None:
        source.retire()


@process
def _feed(source: Reader[Any], gone: Reader[Any], pipe: Any, mode: Mode, wake: _Wake) -> None:
    fd = pipe.fileno()
    os.set_blocking(fd, False)
    try:
        for value in _values(source, gone):
            data = memoryview(_encoded(value, mode))
            while data:
                if not _wait(fd, system_select.POLLOUT, wake):
                    return
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(fd, data) :]
        _read_no_more(source, wake)
    except BrokenPipeError:
        _read_no_more(source, wake)
    except Poisoned as poison:
        wake.poison = poison
        wake.all()
    finally:
        pipe.close()


@process
def _drain(pipe: Any, out: Writer[Any], mode: Mode, wake: _Wake) -> None:
    fd = pipe.fileno()
    rest = b""
    try:
        while _wait(fd, system_select.POLLIN, wake):
            data = os.read(fd, 65536)
            if mode == "text":
                *lines, rest = (rest + data).split(b"\n")
                for line in [*lines, rest] if not data and rest else lines:
                    out.write(line.decode(errors="replace"))
            elif data:
                out.write(data)
            if not data:
                out.retire()
                break
    except Retired:
        pass  # there is no reader, so the child gets SIGPIPE if it writes more
    except Poisoned as poison:
        wake.poison = poison
        wake.all()
    finally:
        pipe.close()


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    """Terminates the child, kills it if it does not end, and reaps it."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


@process
def command(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    stdin: Reader[Any] | None = None,
    stdout: Writer[Any] | None = None,
    stderr: Writer[Any] | None = None,
    mode: Mode = "text",
    cwd: str | os.PathLike[str] | None = None,
    env: dict[str, str] | None = None,
    grace: float = 2.0,
) -> int:
    """Runs a command with channels for its streams. The result of the process is the exit status;
    if a signal ended the command, the negative number of the signal.

    Each value from `stdin` is a line for the command; each line that it prints is a value for
    `stdout` or `stderr`. With mode="bytes" values are bytes, in pieces of any size. When `stdin`
    retires, the command reads the end of its input. Without a channel for `stdin` the command has
    no input; without a channel for `stdout` or `stderr` the command writes to that stream of this
    program.

    When this process is cancelled, or one of its channels is poisoned, the command is terminated,
    killed if it has not ended after `grace` seconds, and reaped.

    Raises:
        OSError: there is no such command.
        BadUse: the mode is not known; or, with mode="bytes", a value is not bytes.
    """
    if mode not in ("text", "bytes"):
        raise BadUse(f"command: mode must be 'text' or 'bytes', not {mode!r}")
    pipe = subprocess.PIPE
    wake = _Wake()
    try:
        child = subprocess.Popen(
            list(arguments),
            stdin=pipe if stdin is not None else subprocess.DEVNULL,
            stdout=pipe if stdout is not None else None,
            stderr=pipe if stderr is not None else None,
            cwd=cwd,
            env=env,
        )
        try:
            _serve(child, stdin, stdout, stderr, mode, wake)
        finally:
            _end(child, grace)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    stream.close()
    finally:
        wake.close()
    return child.returncode


def _wait_for(child: subprocess.Popen[bytes], wake: _Wake) -> None:
    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        # There is no pidfd on systems other than Linux, before Linux 5.3, where a container's
        # profile refuses pidfds, or without a free descriptor. Then polling is the only way to wait
        # for both.
        while child.poll() is None and not readable([wake.read], 0.05):
            pass
        return
    try:
        _wait(fd, system_select.POLLIN, wake)
    finally:
        os.close(fd)


@process
def _await_end(child: subprocess.Popen[bytes], gate: Writer[Any], wake: _Wake) -> None:
    _wait_for(child, wake)  # once the child has ended, this process ends too, and `gate` retires


def _serve(
    child: subprocess.Popen[bytes],
    stdin: Reader[Any] | None,
    stdout: Writer[Any] | None,
    stderr: Writer[Any] | None,
    mode: Mode,
    wake: _Wake,
) -> None:
    gate: Channel[None] = Channel("command")
    parts = [_guard(gate.reader(), wake), _await_end(child, gate.writer(), wake)]
    if stdin is not None:
        parts.append(_feed(stdin, gate.reader(), child.stdin, mode, wake))
    if stdout is not None:
        parts.append(_drain(child.stdout, stdout, mode, wake))
    if stderr is not None:
        parts.append(_drain(child.stderr, stderr, mode, wake))
    Parallel(parts)
    if wake.poison is not None:
        raise wake.poison

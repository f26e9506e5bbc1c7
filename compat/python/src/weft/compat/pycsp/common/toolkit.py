"""`pycsp.common.toolkit`: files and subprocesses as processes."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

from weft.compat.pycsp import current as _pycsp
from weft.compat.pycsp._errors import ChannelPoisonException, ChannelRetireException

__all__ = ["execute", "file_r", "file_w", "runner", "which"]


def which(cmd: str) -> str | None:
    """Returns the path of a command, or None if there is no such command."""
    return shutil.which(cmd)


@_pycsp.io
def _pieces(file: Any, sep: Any) -> list[Any]:
    """Returns the lines up to one that contains `sep`; at the end of the file, the remaining
    lines."""
    lines: list[Any] = []
    while line := file.readline():
        lines.append(line)
        if (sep.encode() if isinstance(line, bytes) else sep) in line:
            break
    return lines


@_pycsp.process
def file_r(cout: Any, file: Any, retire_on_eof: bool = True, sep: str = "\n") -> None:
    """Writes lists of lines of a file (a name, or an open file, which is closed), each up to a line
    with `sep` in it; at its end retires `cout`."""
    with Path(file).open() if isinstance(file, str) else file as source:
        while lines := _pieces(source, sep):
            cout(lines)
    if retire_on_eof:
        _pycsp.retire(cout)


@_pycsp.process
def file_w(cin: Any, file: Any) -> None:
    """Reads strings and lists of strings, and appends them to a file (a name, or an open file,
    which is closed)."""
    with Path(file).open("w") if isinstance(file, str) else file as target:
        while True:
            data = cin()
            target.write("".join(data) if isinstance(data, list) else data)
            target.flush()


@_pycsp.process
def execute(
    command: Any,
    stdinChEnd: Any = None,
    stdoutChEnd: Any = None,
    stderrChEnd: Any = None,
    retire_on_eof: bool = True,
) -> int:
    """Runs a command (a list of its words), with its streams connected to the given channel ends;
    returns its status.

    Raises:
        OSError: the command cannot be started.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if stdinChEnd else None,
        stdout=subprocess.PIPE if stdoutChEnd else None,
        stderr=subprocess.PIPE if stderrChEnd else None,
    )
    copiers = []
    if stdinChEnd:
        copiers.append(_feed(stdinChEnd, child.stdin))
    for end, stream in ((stdoutChEnd, child.stdout), (stderrChEnd, child.stderr)):
        if end:
            copiers.append(file_r(end, stream, retire_on_eof))
    try:
        _pycsp.Parallel(copiers)
    finally:
        status = int(_wait(child))
    return status


@_pycsp.io
def _wait(child: Any) -> int:
    return int(child.wait())


@_pycsp.process
def _feed(cin: Any, stream: Any) -> None:
    """Passes bytes from a channel to a child's input, which is closed when the channel ends or the
    child stops reading."""
    try:
        while True:
            stream.write(cin())
            stream.flush()
    except (ChannelRetireException, ChannelPoisonException, BrokenPipeError):
        pass
    finally:
        with contextlib.suppress(BrokenPipeError):
            stream.close()


@_pycsp.process
def runner(cin: Any) -> None:
    """Runs one command after another: reads (command, stdin, stdout, stderr) as `execute` takes
    them."""
    while True:
        command, stdin, stdout, stderr = cin()
        _pycsp.Sequence(execute(command, stdin, stdout, stderr))

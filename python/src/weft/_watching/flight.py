"""The flight recorder of this program: the last events, in a ring of bytes, written to a file when
something goes wrong (rule 14.14). docs/flight.md describes the file.

    WEFT_FLIGHT=16M │ weft run --flight OUT │ with flight(OUT): ──► the ring (python/native/watching/flight.cpp)
    a run that raises │ SIGUSR2 │ weft dump PID │ the end of the block ──► write(), a file

Invariants
- A file is written completely under another name in the same folder, and then renamed, so that no
  program sees half a file.
- There is one ring. Code that begins to record while there is a ring uses that ring, with its size
  unchanged.
- A child of a fork has its own ring if WEFT_FLIGHT asks for one, otherwise none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft.errors import BadUse

USUAL = 16 << 20  #: bytes of a ring, if no size is given
MIN_BYTES, MAX_BYTES = 1 << 18, 1 << 36
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_lock = threading.RLock()
_users = 0  # how many users need the ring
# the folder for files of failures, or None if no such files are to be written
_folder: Path | None = None
_failure_reported = False  # whether stderr has named the file of a failure


def size_of(text: str) -> int:
    """Returns the number of bytes that a text such as 16M, 512K, 1G or a plain number means.

    Raises:
        BadUse: the text is not of this form, or means too few or too many bytes.
    """
    word = text.strip().upper()
    unit = word[-1:] if word[-1:].isalpha() else ""
    number = word[: len(word) - len(unit)]
    if unit not in _UNITS or not number.isdecimal():
        raise BadUse(f"a flight recorder of {text!r} bytes: write 16M, 512K or 1G")
    size = int(number) * _UNITS[unit]
    if not MIN_BYTES <= size <= MAX_BYTES:
        raise BadUse(f"a flight recorder of {text!r} bytes: it has from 256K to 64G")
    return size


def is_on() -> bool:
    return _users > 0


def begin(size: int) -> None:
    """Begins to record, unless the recorder is already running."""
    global _users
    if not hasattr(_native, "_flight_on"):
        raise BadUse(
            "the flight recorder needs Weft's extension module, which pure Python does not have"
        )
    with _lock:
        if _users == 0:
            _native._flight_on(size)
        _users += 1


def end() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _native._flight_off()


def write(path: str | os.PathLike[str]) -> None:
    """Writes the contents of the ring.

    Raises:
        BadUse: nothing is recorded, or the file cannot be written.
    """
    if not is_on():
        raise BadUse("nothing is recorded: start the program with WEFT_FLIGHT=16M")
    target = os.fspath(path)
    beside = f"{target}.{os.getpid()}.part"
    program = " ".join(getattr(sys, "argv", []))[:200].encode(errors="replace").decode()
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            _native._flight_write(file, program.replace("\0", " "))
        finally:
            os.close(file)
        Path(beside).replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            Path(beside).unlink()
        raise BadUse(f"cannot write {target}: {error.strerror}") from None


def own_file() -> Path:
    """Returns the path of this program's file, which is used if no other path is given."""
    return (_folder or Path.cwd()) / f"weft-{os.getpid()}.flight"


def _written() -> str:
    """Writes this program's file. Returns one line that names the file, or says why there is
    none."""
    at = own_file()
    try:
        write(at)
    except BadUse as error:
        return f"weft: the flight recorder: {error}"
    return f"weft: the last events are in {at}: weft trace {at}"


def _failed() -> None:
    """Writes the file when an outermost run raises. The extension calls this function."""
    global _failure_reported
    if _folder is None:
        return
    line = _written()
    if not _failure_reported and sys.stderr is not None:
        _failure_reported = True
        sys.stderr.write(line + "\n")


def say() -> None:
    """Writes the file when a signal asks for it. The function runs on a helper thread."""
    line = _written()
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def flight(path: str | os.PathLike[str], size: int = 16 << 20) -> Iterator[None]:
    """Records the last events in the block, and writes them to the file `path` when the block is
    left, in whatever way (rule 14.14; docs/flight.md).

    Args:
        path: the file, for `weft trace`.
        size: how many bytes are kept; 16 MB by default, which are some 3 million events. If the
            program records already (WEFT_FLIGHT), the size stays as it is.
    Raises:
        BadUse: the file cannot be written, or the size is out of range.
    """
    if not MIN_BYTES <= size <= MAX_BYTES:
        raise BadUse(f"flight: size={size} is not from {MIN_BYTES} to {MAX_BYTES} bytes")
    if not os.access(Path(path).absolute().parent, os.W_OK):
        raise BadUse(
            f"flight: cannot write {os.fspath(path)}: its directory does not exist, or may not be written to"
        )
    begin(size)
    try:
        yield
    finally:
        try:
            write(path)
        finally:
            end()


def _from_environment() -> None:
    """Begins to record at the start of the program, if WEFT_FLIGHT asks for it
    (_backends/shared.py).
    """
    global _folder
    size, _, folder = os.environ["WEFT_FLIGHT"].partition(":")
    try:
        if folder and not Path(folder).is_dir():
            raise BadUse(f"{folder} is no directory: WEFT_FLIGHT=16M:DIRECTORY")
        begin(size_of(size))
    except BadUse as error:
        sys.stderr.write(f"weft: WEFT_FLIGHT: {error}\n")
        return
    _folder = Path(folder) if folder else Path.cwd()
    _native._flight_on_failure(_failed)
    if hasattr(signal, "SIGUSR2") and signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
        _native._on_signal(int(signal.SIGUSR2), True)


def _after_fork() -> None:
    global _users, _lock, _failure_reported
    _lock = threading.RLock()
    wanted, _users, _failure_reported = _folder is not None, 0, False
    if wanted:
        begin(size_of(os.environ["WEFT_FLIGHT"].partition(":")[0]))


_observers.in_child_of_fork(_after_fork)

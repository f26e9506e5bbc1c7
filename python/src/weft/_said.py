"""What an OS process says beside its channels: its standard error, its logging and its warnings. All of it goes on to its parent.

    child:  standard error ──a pipe──► parent: its own standard error; the last of it is kept, for ProcessDied
            a record, a warning ──a socket, one a datagram──► parent: the logger of that name; its filters and showwarning

Invariants
- Heard.take() empties both without waiting, on whichever thread; what it finds is passed on in order. So all that was said before
  something arrived by a channel has been passed on once take() has returned.
- A pipe is read until nobody has it: also a program that the child started, and that lives longer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import socket
import threading
import warnings
from typing import Any

from weft import _rounds
from weft._extension import native as _native

__all__ = ["Heard", "levels", "say_to"]

KEPT = 4096  #: bytes of the last that was said on the standard error
LINES = 12  #: of these
LONG = 30_000  #: characters of a record that is too long for a datagram


# --- in the parent --------------------------------------------------------------------------------------------------


class Heard:
    """What one child says. Hand `handed` to it, then call close_childs() and begin()."""

    def __init__(self) -> None:
        self._pipe, self._pipe_of_child = os.pipe()
        os.set_blocking(self._pipe, False)
        self._records, self._records_of_child = socket.socketpair(type=socket.SOCK_DGRAM)
        self._records.setblocking(False)
        self._lock = (
            threading.RLock()
        )  # of all that follows; a handler of a record may start a process
        self._last = b""
        self._open = True  # the records
        self._flows = True  # the pipe

    @property
    def handed(self) -> tuple[int, int]:
        """The child's standard error, and its socket."""
        return self._pipe_of_child, self._records_of_child.fileno()

    def close_childs(self) -> None:
        """The child has been started, or could not be."""
        os.close(self._pipe_of_child)
        self._records_of_child.close()

    def begin(self) -> None:
        """From now on a thread listens."""
        _add(self)

    def descriptors(self) -> list[int]:
        with self._lock:
            return [self._pipe] * self._flows + [self._records.fileno()] * self._open

    def take(self) -> None:
        """Passes on what has been said."""
        with self._lock:
            while self._flows:
                try:
                    said = os.read(self._pipe, 65536)
                except BlockingIOError:
                    break
                if not said:
                    self._flows = False
                    os.close(self._pipe)
                self._last = (self._last + said)[-KEPT:]
                _write(said)
            while self._open:
                try:
                    said = self._records.recv(1 << 20)
                except OSError:  # there is none
                    break
                with contextlib.suppress(Exception):  # one that cannot be rebuilt here
                    _pass_on(*pickle.loads(said))

    def last(self) -> str:
        """The last lines of the standard error."""
        self.take()
        with self._lock:
            lines = self._last.decode(errors="replace").splitlines()
            return "\n".join(lines[1 if len(self._last) == KEPT else 0 :][-LINES:])

    def close(self) -> None:
        """The child has ended."""
        self.take()
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._records.close()
        _ring()


def _write(said: bytes) -> None:
    with contextlib.suppress(OSError):  # there is no standard error
        while said:
            said = said[os.write(2, said) :]


def _pass_on(kind: str, what: Any, text: str) -> None:
    if kind == "record":
        record = logging.makeLogRecord(what)
        logger = logging.getLogger(record.name)
        if logger.isEnabledFor(record.levelno):
            logger.handle(record)
        return
    try:
        message, filename, lineno = pickle.loads(what)
    except Exception:  # of a class that only the child has
        _write(text.encode(errors="replace"))
        return
    try:
        warnings.warn_explicit(message, type(message), filename, lineno, registry={})
    except Warning:  # an error here; there it was none, and has happened
        warnings.showwarning(message, type(message), filename, lineno)


_all: set[Heard] = set()
_known = threading.Lock()  # of _all and _bell
_bell: socket.socket | None = None


def _add(heard: Heard) -> None:
    global _bell
    with _known:
        _all.add(heard)
        if _bell is None:
            _bell, ring = socket.socketpair()
            _bell.setblocking(False)
            threading.Thread(target=_hear, args=(ring,), name="weft: hears", daemon=True).start()
    _ring()


def _ring() -> None:
    if _bell is not None:
        with contextlib.suppress(OSError):  # it is full: it rings
            _bell.send(b".")


def _hear(ring: socket.socket) -> None:
    _native._helper_thread(
        True
    )  # it outlives the hosts, and is nobody who may wake a run (rule 10.3)
    _rounds.ours()
    while True:
        with _known:
            _all.difference_update([heard for heard in _all if not heard.descriptors()])
            of = {fd: heard for heard in _all for fd in heard.descriptors()}
        poll = select.poll()  # select() knows no descriptor above 1,023
        for fd in (ring.fileno(), *of):
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll():  # one that was closed meanwhile is in no list the next time
            if fd == ring.fileno():
                ring.recv(4096)
            else:
                of[fd].take()


def _forget() -> None:
    """In the child of a fork: all this is the parent's."""
    global _known, _bell
    _known, _bell = threading.Lock(), None
    _all.clear()


os.register_at_fork(after_in_child=_forget)


def levels() -> dict[str, Any]:
    """How logging is set here, for a child: what nobody wants need not be sent."""
    named = {
        name: logger.level
        for name, logger in list(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET
    }
    return {"root": logging.root.level, "disable": logging.root.manager.disable, "named": named}


# --- in the child ---------------------------------------------------------------------------------------------------


class _ToParent(logging.Handler):
    """Each record goes to the parent's logger of that name."""

    def __init__(self, by: socket.socket) -> None:
        super().__init__()
        self._by = by

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = dict(record.__dict__, msg=record.getMessage(), args=None, exc_info=None)
            if record.exc_info and not record.exc_text:
                said["exc_text"] = logging.Formatter().formatException(record.exc_info)
            _send(self._by, "record", said, "")
        except Exception:
            self.handleError(record)


def _send(by: socket.socket, kind: str, what: Any, text: str) -> None:
    try:
        packed = pickle.dumps((kind, what, text))
    except Exception:  # what the user has added cannot be pickled: its text goes
        what = {
            k: v if isinstance(v, (int, float, str, type(None))) else str(v)
            for k, v in what.items()
        }
        packed = pickle.dumps((kind, what, text))
    try:
        by.send(packed)
    except OSError:
        if kind != "record" or len(packed) < LONG:  # the parent is gone
            return
        said = {k: v[:LONG] if isinstance(v, str) else v for k, v in what.items()}
        by.send(pickle.dumps((kind, said, text)))


def say_to(descriptor: int, as_there: dict[str, Any]) -> None:
    """From now on logging and warnings go to the parent, by this socket."""
    by = socket.socket(fileno=descriptor)
    logging.root.addHandler(_ToParent(by))
    logging.root.setLevel(as_there["root"])
    logging.disable(as_there["disable"])
    for name, level in as_there["named"].items():
        logging.getLogger(name).setLevel(level)
    shown = warnings.showwarning

    def show(
        message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if file is not None:
            shown(message, category, filename, lineno, file, line)
            return
        text = warnings.formatwarning(message, category, filename, lineno, line)
        try:
            packed = pickle.dumps((message, filename, lineno))
        except Exception:
            packed = b""
        _send(by, "warning", packed, text)

    warnings.showwarning = show

"""Passes on to the parent the reports of a child outside its channels: its standard error, its log
records, its warnings, and the observations made in it.

    child:  standard error ──a pipe──► parent: its own standard error (the last lines are kept)
            a record ──a socket, a datagram each──► parent: the logger of that name
            a warning ──the same socket──► parent: its filters and showwarning
            what was observed ──the same socket──► parent: _hosts/remote_observers.py

Invariants
- ChildOutput.take() may be called on any thread. It empties the pipe and the socket, and passes on
  their contents, in order. So if a value has arrived by a channel, take() passes on all that the
  child reported before it wrote that value.
- Handlers, filters and showwarning are the user's code: they run under no lock (rule 12.1), on one
  thread at a time. A take() on a second thread waits for the first thread, but at most for
  PATIENCE, since the code on the first thread may wait for something that the second thread holds,
  for example a handler's own lock.
- A pipe is read until no process has it open: a program that the child started may outlive the
  child.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import select
import socket
import threading
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

from weft import _helper_threads
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import log_records as _log_records

__all__ = ["ChildOutput", "observed", "say_to"]

KEPT = 4096  #: how many of the last bytes of the standard error are kept
LINES = 12  #: how many of the last lines are shown
PATIENCE = 1.0  #: seconds to wait for a handler that runs on another thread


# --- in the parent --------------------------------------------------------------------------------


def _nothing(piece: Any) -> None:
    pass


class ChildOutput:
    """Receives the reports of one child. Pass the descriptors that open() returns to the child,
    then call close_childs() and begin().
    """

    def __init__(self) -> None:
        self._pipe = self._pipe_of_child = -1  # -1 means closed
        self._records: Any = None
        self._records_of_child: Any = None
        self._lock = threading.Condition()  # protects all fields below
        self._found: deque[tuple[str, bytes]] = deque()  # the pieces that are still to be passed on
        # The numbers of pieces passed on and of pieces received, since the beginning.
        self._passed = self._taken = 0
        self._passer: int | None = None  # the thread that passes pieces on
        self._last = b""
        self._open = False  # whether the socket of the records is open
        self._over = False  # whether the listening thread must close the socket
        # Called with each observation made in the child.
        self.seen: Callable[[Any], None] = _nothing

    def open(self) -> tuple[int, int]:
        """Opens the pipe and the socket. Returns the child's descriptors: of its standard error,
        and of its socket.
        """
        self._records, self._records_of_child = socket.socketpair(type=socket.SOCK_DGRAM)
        self._records.setblocking(False)
        self._open = True
        self._pipe, self._pipe_of_child = os.pipe()
        os.set_blocking(self._pipe, False)
        return self._pipe_of_child, self._records_of_child.fileno()

    def close_childs(self) -> None:
        """Closes the child's descriptors in this OS process. Call it once the child has started, or
        has failed to start.
        """
        pipe, self._pipe_of_child = self._pipe_of_child, -1
        if pipe >= 0:
            os.close(pipe)
        if self._records_of_child is not None:
            self._records_of_child.close()

    def begin(self) -> None:
        """Makes the listening thread listen to this child too."""
        _add(self)

    def descriptors(self) -> list[int]:
        with self._lock:
            pipe = [self._pipe] if self._pipe >= 0 else []
            return pipe + [self._records.fileno()] * self._open

    def take(self) -> None:
        """Passes on what the child has reported. A call by a log handler that take() runs does
        nothing, since that take() passes on the rest.
        """
        me = threading.get_ident()
        with self._lock:
            self._read()
            mine = self._taken
            if self._passer == me:
                return
            self._lock.wait_for(lambda: self._passer is None or self._passed >= mine, PATIENCE)
            # the thread that is passing pieces on passes on all of them
            if self._passer is not None:
                return
            self._passer = me
        try:
            while (one := self._next()) is not None:
                kind, data = one
                if kind == "error":
                    _write(data)
                    continue
                # A piece that cannot be rebuilt here is dropped.
                with contextlib.suppress(Exception):
                    what = pickle.loads(data)
                    (self._see if what[0] == "seen" else _pass_on)(*what)
        finally:
            with self._lock:
                # The user's code, which this passer has run, raised an exception.
                if self._passer == me:
                    self._passer = None
                    self._lock.notify_all()

    def _see(self, _kind: str, piece: Any, _text: str) -> None:
        self.seen(piece)

    def _read(self) -> None:
        """Reads all that the child has sent so far. The caller holds the lock."""
        while self._pipe >= 0:
            try:
                data = os.read(self._pipe, 65536)
            except BlockingIOError:
                break
            if not data:
                self._close_pipe()
                break
            self._last = (self._last + data)[-KEPT:]
            self._found.append(("error", data))
            self._taken += 1
        while self._open:
            try:
                data = self._records.recv(1 << 20)
            except OSError:  # there is nothing more to read
                break
            self._found.append(("record", data))
            self._taken += 1

    def _next(self) -> tuple[str, bytes] | None:
        """Returns the next piece that this thread must pass on. Returns None if there are no more
        pieces; then this thread no longer passes pieces on.
        """
        with self._lock:
            self._passed = self._taken - len(self._found)
            self._lock.notify_all()
            if self._found:
                return self._found.popleft()
            self._passer = None
            return None

    def last(self) -> str:
        """Returns the last lines of the child's standard error."""
        self.take()
        with self._lock:
            lines = self._last.decode(errors="replace").splitlines()
            return "\n".join(lines[1 if len(self._last) == KEPT else 0 :][-LINES:])

    def close(self) -> None:
        """Stops listening: the child has ended."""
        self.take()
        self._close_records()

    def end(self) -> None:
        """Makes the listening thread do what close() does."""
        self._over = True
        _ring()

    def end_here(self) -> None:
        """Closes the records on the listening thread, if end() has been called."""
        if self._over:
            _take_here(self)
            self._close_records()

    def _close_records(self) -> None:
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._records.close()
        self.seen = _nothing  # the function can refer to the owner of this object
        _ring()

    def drop(self) -> None:
        """Closes everything that open() opened, because there is no child, or the child was killed
        while it started.
        """
        self.close_childs()
        self.close()
        with self._lock:
            self._close_pipe()
        _ring()

    def _close_pipe(self) -> None:
        """Closes the pipe. The caller holds the lock."""
        pipe, self._pipe = self._pipe, -1
        if pipe >= 0:
            os.close(pipe)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):  # this program has no standard error
        while data:
            data = data[os.write(2, data) :]


def _pass_on(kind: str, what: Any, text: str) -> None:
    if kind == "record":
        _log_records.pass_on(what)
        return
    try:
        message, filename, lineno = pickle.loads(what)
    except Exception:  # the warning's class exists only in the child
        _write(text.encode(errors="replace"))
        return
    try:
        warnings.warn_explicit(message, type(message), filename, lineno, registry={})
    except Warning:
        # The filters of this program would turn the warning into an error, but the child has only
        # issued a warning.
        warnings.showwarning(message, type(message), filename, lineno)


_all: set[ChildOutput] = set()
_known = threading.Lock()  # protects _all and _bell
# A descriptor that wakes the listening thread. It stays open as long as the program runs.
_bell: int | None = None


def _add(output: ChildOutput) -> None:
    global _bell
    with _known:
        _all.add(output)
        if _bell is None:
            bell, ring = socket.socketpair()
            bell.setblocking(False)
            listener = threading.Thread(target=_hear, args=(ring,), name="weft: hears", daemon=True)
            try:
                listener.start()
            except BaseException:  # a later call tries to start a thread again
                _all.discard(output)
                # closing the bell ends the thread, if the thread has begun in spite of the error
                bell.close()
                if listener.ident is None:
                    ring.close()
                raise
            _bell = bell.detach()
    _ring()


def _ring() -> None:
    if _bell is not None:
        # the socket is full, so the thread has already been woken
        with contextlib.suppress(OSError):
            os.write(_bell, b".")


def _hear(ring: socket.socket) -> None:
    _helper_threads.add_until_end()  # this thread outlives the hosts
    while True:
        of = _open_outputs()
        poll = select.poll()  # select() accepts no descriptor above 1,023
        for fd in (ring.fileno(), *of):
            poll.register(fd, select.POLLIN)
        changed = False
        while not changed:  # a child that was closed meanwhile is noticed at its next event
            for fd, _ in poll.poll():
                if fd == ring.fileno():
                    # The bell is closed if the thread that started this one was interrupted.
                    if not ring.recv(4096):
                        ring.close()
                        return
                    changed = True
                elif _take_of(*of[fd]):
                    changed = True


def _open_outputs() -> dict[int, tuple[ChildOutput, list[int]]]:
    """Returns the outputs of the children that can still report something, by their descriptors."""
    with _known:
        those = list(_all)
    for output in those:
        output.end_here()
    with _known:
        _all.difference_update([output for output in _all if not output.descriptors()])
        each = [(output, output.descriptors()) for output in _all]
    return {fd: (output, descriptors) for output, descriptors in each for fd in descriptors}


def _take_of(output: ChildOutput, descriptors: list[int]) -> bool:
    """Passes on the output that one child has sent. Returns whether the descriptors to listen to
    have changed.
    """
    _take_here(output)
    return output.descriptors() != descriptors


def _take_here(output: ChildOutput) -> None:
    """Passes on the output that the child has sent. An exception in the user's code is reported,
    because it must not end this thread, which listens to all children.
    """
    while True:
        try:
            output.take()
            return
        except BaseException as error:  # more pieces can follow, and they must still be passed on
            _foreign_exceptions.report(error)


def _forget() -> None:
    """Resets the module in the child of a fork: the children belong to the parent."""
    global _known, _bell
    if _bell is not None:
        os.close(_bell)
    _known, _bell = threading.Lock(), None
    _all.clear()


os.register_at_fork(after_in_child=_forget)


# --- in the child ---------------------------------------------------------------------------------


def _send(by: socket.socket, kind: str, what: Any, text: str) -> bool:
    """Sends a record or a warning to the parent. Returns false if the record or warning is too
    long.
    """
    try:
        packed = pickle.dumps((kind, what, text))
    except Exception:
        # an object that the user has added cannot be pickled, so its text is sent instead
        what = {
            k: v if isinstance(v, (int, float, str, type(None))) else str(v)
            for k, v in what.items()
        }
        packed = pickle.dumps((kind, what, text))
    try:
        by.send(packed)
    except OSError as error:
        # Any other error means that the parent has ended.
        return error.errno not in (errno.EMSGSIZE, errno.ENOBUFS)
    return True


_up: socket.socket | None = None  # the socket to the parent


def observed(piece: Any) -> bool:
    """Sends to the parent a piece of the observations, which consists of plain values. Returns
    false if the piece is too long.
    """
    return _up is None or _send(_up, "seen", piece, "")


def _packed(message: Any, filename: str, lineno: int) -> bytes:
    try:
        return pickle.dumps((message, filename, lineno)) if message is not None else b""
    except Exception:
        return b""


def say_to(descriptor: int, as_there: dict[str, Any]) -> None:
    """Sends log records and warnings to the parent from now on, over the socket `descriptor`.
    `as_there` contains the logging levels of the parent.
    """
    global _up
    by = _up = socket.socket(fileno=descriptor)
    _log_records.begin(lambda record: _send(by, "record", record, ""), as_there)
    shown = warnings.showwarning

    def show(
        message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if file is not None:
            shown(message, category, filename, lineno, file, line)
            return
        text = warnings.formatwarning(message, category, filename, lineno, line)
        if _send(by, "warning", _packed(message, filename, lineno), text):
            return
        try:
            short = category(str(message)[: _log_records.LONG])
        except Exception:
            # The warning's class takes other arguments, so only the text is sent.
            short = None
        if not _send(by, "warning", _packed(short, filename, lineno), text[: _log_records.LONG]):
            _send(by, "warning", b"", text[: _log_records.LONG])

    warnings.showwarning = show

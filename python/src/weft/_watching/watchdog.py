"""The watchdog names a process that hogs its scheduler (rules 7.7, 14.1).

A helper thread checks, twice within the limit, the step that every scheduler runs. A step lasts
from one operation at which a process parks to the next. If the present step has lasted longer than
`limit`, the process has kept all other processes of its scheduler waiting; it is reported once for
that step. Each other OS process of the program has a watchdog of its own (rule 14.7), whose hogs
are reported here, on the thread of this watchdog.
"""

from __future__ import annotations

import sys
import threading
import types
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from weft._extension import native as _native
from weft._watching import observers as _observers
from weft.errors import BadUse, WeftWarning

_active = 0  # how many watchdogs watch this OS process
_lock = threading.Lock()


class Hog(NamedTuple):
    """A process that has not returned to its scheduler."""

    path: str  #: the path of the process
    seconds: float  #: the time since it was resumed
    file: str  #: the file where it was, as Python names it
    line: int  #: the line where it was; for a component's process, the line of its last operation
    stack: str  #: the stack as in a traceback, innermost last; "" for a component's process
    pid: int | None = None  #: the pid of its OS process; None: this one

    def __str__(self) -> str:
        where = "" if self.pid is None else f" in OS process {self.pid}"
        who = f"process {self.path}{where} has kept its"
        at = f"{self.seconds:.3f} s at {self.file}:{self.line}"
        if not self.stack:
            return (
                f"{who} thread of the pool for {at}, where its last operation stands: "
                "put it on a thread of its own, on='thread'"
            )
        return (
            f"{who} scheduler for {at}: let others run by yield_(), or make it a thread process "
            f"(def)\n{self.stack}"
        )


def _warn(hog: Hog) -> None:
    warnings.warn_explicit(str(hog), WeftWarning, hog.file, hog.line)


class Watchdog:
    """The context manager that :func:`watchdog` returns."""

    kind = "watchdog"

    def __init__(self, limit: float, report: Callable[[Hog], object] | None = None) -> None:
        if not isinstance(limit, int | float) or not limit > 0:
            raise BadUse(f"watchdog: the limit must be longer than 0 s, not {limit!r}")
        self.limit = limit
        self._report = report or _warn
        self._reported: set[int] = set()  # the steps that were reported
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._counts = False  # whether this watchdog is counted in _active
        # Hogs of other OS processes that are still to be reported.
        self._elsewhere: deque[Hog] = deque()

    def __enter__(self) -> Watchdog:
        if self._thread is not None:
            raise BadUse("a watchdog can be entered only once: make another")
        try:
            self._begin()
            _observers.begin_everywhere(self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _observers.end_everywhere(self)
        finally:
            try:
                self._end()
            except BaseException:  # raised by a signal handler
                self._end()
                raise

    def _begin(self) -> None:
        """Begins to watch this OS process."""
        global _active
        with _lock:
            self._counts = True
            _active += 1
            _native._watch_steps(True)
        self._thread = threading.Thread(target=self._watch, name="weft watchdog", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        global _active
        self._stop.set()
        thread = self._thread
        if thread not in (None, threading.current_thread()) and thread.ident is not None:
            thread.join()  # the thread was started
        with _lock:
            if self._counts:
                self._counts = False
                _active -= 1
            if _active == 0:
                _native._watch_steps(False)

    def _watch(self) -> None:
        _native._helper_thread(True)
        try:
            while not self._stop.wait(self.limit / 2):
                self.look()
                self._tell_elsewhere()
            self._tell_elsewhere()
        finally:
            _native._helper_thread(False)

    def look(self, now_ns: int | None = None) -> None:
        """Checks once. `now_ns` is the time of the steady clock; None: the clock is read."""
        now = _native._steady_ns() if now_ns is None else now_ns
        running = _native._running_steps()
        self._reported &= {step for _, _, step, _ in running}
        for process, since, step, thread in running:
            if step in self._reported or (now - since) * 1e-9 <= self.limit:
                continue
            self._reported.add(step)
            self._found(process, _hog(process, (now - since) * 1e-9, thread))

    def _found(self, process: Any, hog: Hog) -> None:
        self._report(hog)

    def _tell_elsewhere(self) -> None:
        while self._elsewhere:
            self._report(self._elsewhere.popleft())

    # --- in other OS processes ------------------------------------------------------------------

    def _for_others(self) -> float:
        return self.limit

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        for r in records:
            self._elsewhere.append(
                Hog(r["p"], r["seconds"], r["file"], r["line"], r["stack"], source[0])
            )

    def _host_ended(self, pid: int) -> None:
        """Does nothing, since no process of that OS process hogs its scheduler any longer."""


def _hog(process: Any, seconds: float, thread: int) -> Hog:
    import traceback

    place = _native._component_place(process)
    if place is not None:
        return Hog(process.path, seconds, *place, "")
    frame = sys._current_frames().get(thread)
    frames: list[tuple[types.FrameType, int]] = []
    while frame is not None:
        if _observers.is_ours(frame):
            if frames:
                break  # the outer frames run the network
        else:
            frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    file, line = (frames[0][0].f_code.co_filename, frames[0][1]) if frames else ("?", 0)
    stack = "".join(traceback.StackSummary.extract(reversed(frames)).format())
    return Hog(process.path, seconds, file, line, stack)


def watchdog(limit: float = 0.1, report: Callable[[Hog], object] | None = None) -> Watchdog:
    """Names, while its block runs, every coroutine process that keeps its scheduler longer than
    `limit` seconds.

    Args:
        limit: the longest allowed time, in seconds, from one return to the scheduler to the next.
        report: called on the watchdog's thread with a :class:`Hog`, once for each incident; None: a
            WeftWarning.
    Raises:
        BadUse: the limit is not more than 0.
    """
    return Watchdog(limit, report)

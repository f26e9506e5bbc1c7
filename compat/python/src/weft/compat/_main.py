"""The main program as a process.

In PyCSP the main program spawns, reads and writes as if it were a process. In these layers the main
program becomes a process at its first Spawn: the block of an outermost group (rule 7.5), which ends
by `leave` or by the end of the program.

    ordinary code ──enter()──► block ──leave(), left_by(), end of the program──► ordinary code

Invariants
- At most one session is open at a time. `group` is entered and left by the thread that called
  `enter`.
- Thread processes run beside the main program's thread. On that thread, processes that need a
  scheduler would run only while the program waits for Weft. So a thread process, the host, runs
  them, and `arrivals` carries them there.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import sys
import threading
from typing import Any

from weft import threads
from weft._backends.shared import stop_at_run
from weft.errors import BadUse, Cancelled, Deadlock

__all__ = ["current", "enter", "leave", "left_by", "spawn"]

# The compatibility layer's running process; None in ordinary code.
current: contextvars.ContextVar[Any] = contextvars.ContextVar("current", default=None)


class _Session:
    def __init__(self, group: Any) -> None:
        self.group = group
        self.owner = threading.get_ident()
        self.arrivals: dict[Any, Any] = {}  # backend -> the writer end that leads to its _host


_session: _Session | None = None
_opening = threading.Lock()


def enter(backend: Any) -> None:
    """Opens a group for ordinary code. For a backend other than threads, also starts a thread
    process in it that runs the processes spawned on that backend. A second call does nothing.

    Raises:
        BadUse: another thread that is not a process is in a session.
    """
    global _session
    stop_at_run()
    with _opening:
        if _session is None:
            group = threads.Group()
            group.__enter__()
            _session = _Session(group)
            atexit.register(_at_exit)
        elif _session.owner != threading.get_ident():
            raise BadUse(
                "Spawn in a second thread that is no process: spawn in the main program, or make this thread a process"
            )
    if backend is not threads and backend not in _session.arrivals:
        arrivals: Any = threads.Channel("spawned", capacity=16, overflow="unbounded")
        _session.arrivals[backend] = arrivals.writer()
        _session.group.start(_host(backend, backend.process(_keep)(backend, arrivals.reader())))


@threads.process
def _host(backend: Any, keeper: Any) -> None:
    backend.Parallel(keeper)


def _keep(backend: Any, arrivals: Any) -> None:
    with backend.Group() as group:
        for process in arrivals:
            group.start(process)


def spawn(backend: Any, natives: list[Any]) -> None:
    """Starts native processes that may outlive the caller: in the session if one is open, otherwise
    in the outermost run."""
    if current.get() is None:
        enter(backend)
    session = _session
    arrivals = session.arrivals.get(backend) if session else None
    if arrivals is None:
        backend.Spawn(natives)
    else:
        for process in natives:
            try:
                arrivals.write(process)
            # leave() has retired this end, and the main program waits for the processes.
            except BadUse:
                backend.Spawn(process)


def leave(error: BaseException | None = None) -> None:
    """Waits for the spawned processes. `error` is the exception that ends the block, unless the
    block ends quietly.

    Raises:
        the failure of a spawned process; Deadlock.
    """
    global _session
    session = _session
    if session is None or session.owner != threading.get_ident():
        return
    atexit.unregister(_at_exit)
    for writer in session.arrivals.values():
        writer.retire()
    _session = None
    session.group.__exit__(
        type(error) if error else None, error, error.__traceback__ if error else None
    )


def _at_exit() -> None:
    """Waits for the processes, or cancels them if an uncaught exception ends the program."""
    error = getattr(sys, "last_value", None)
    if error is None:
        leave()
    else:
        with contextlib.suppress(Deadlock):  # the program's own error has been reported
            leave(error)


def left_by(error: Cancelled) -> None:
    """Called when an operation was cancelled. In the main program the cancellation stands for a
    failure or a deadlock, which is raised."""
    if current.get() is None:
        leave(error)

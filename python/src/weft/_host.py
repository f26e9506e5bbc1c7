"""One OS process that runs a process of this program: how it is started, told what to do, and missed when it dies.

    parent: Host() ──"jobs", "results" handed over──► child: weft._child.main()
            call() ──the call, its ends──► runs it ──what it returned, or a failure──► call() returns or raises
            a cancellation: "cancel" ──► the process there is cancelled ──its end──► call() raises Cancelled
            the child dies: the session ends ──► ProcessDied

Everything goes through channels of the wire. The child ends when its parent does, or lets go of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from multiprocessing import util as _mp_util
from pathlib import Path
from typing import Any

from weft import _pickling, _shared
from weft._extension import native as _native
from weft.errors import BadUse, Cancelled, PeerDied, ProcessDied

__all__ = ["Host", "run_away"]


def _preparation() -> dict[str, Any]:
    """What the child is to have as this process has it."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    return {
        "path": list(sys.path),
        "argv": list(sys.argv),
        "directory": str(Path.cwd()),
        "main_name": spec.name if spec is not None else None,
        "main_path": str(Path(path).resolve())
        if path is not None and Path(path).exists()
        else None,
    }


class Host:
    """An OS process of its own, started from a fresh interpreter; closed, it ends.

    Raises:
        OSError: the system starts no process.
    """

    def __init__(self) -> None:
        if _shared.at_run is not None:
            raise BadUse(
                "an OS process imports the main module of its program, and that starts a network there: "
                'put what starts it below `if __name__ == "__main__":`'
            )
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, *_mp_util._args_from_interpreter_flags()]  # type: ignore[attr-defined]
            command += ["-c", f"from weft._child import main; main({theirs.fileno()})"]
            environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
            try:
                self._child = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment
                )
            except BaseException:
                ours.close()
                raise
        self.pid = self._child.pid
        self._link = _native._Link(ours.detach(), f"python {os.getpid()}")
        jobs, results = _native.Channel("jobs"), _native.Channel("results")
        self._jobs, self._results = jobs.writer(), results.reader()
        self._link.give(jobs.reader(), "jobs")
        self._link.give(results.writer(), "results")
        self._calls = 0
        self._prepared = False

    def _lend(self, end: Any) -> str:
        self._calls += 1
        name = f"end{self._calls}"
        self._link.give(end, name)
        return name

    def call(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Runs function(*args, **keywords) there, as a process; the ends in its arguments go with it.

        Raises:
            what it raised, its traceback as the cause; Cancelled once it has ended; ProcessDied; BadUse, if something
            in the call cannot go there.
        """
        try:
            if not self._prepared:
                self._jobs.write(_preparation())
                self._prepared = True
            # It has started up once it asks for its first job: before that the ends would be nobody's if it were cancelled.
            self._jobs.write(_pickling.dump_call(function, args, keywords, self._lend))
            del args, keywords
            try:
                value, failure = self._results.read()
            except Cancelled:
                self._jobs.write(None)
                self._results.read()
                raise
        except PeerDied:
            raise self._died(function) from None
        if failure is not None:
            raise failure.exception()
        return value

    def _died(self, function: Any) -> ProcessDied:
        self._link.close("it has died")
        status = self._child.wait()
        name = getattr(function, "__qualname__", str(function))
        return ProcessDied(name, self.pid, status)

    def kill(self) -> None:
        """Ends it at once (SIGKILL)."""
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Lets go of it, and waits until it has ended."""
        self._jobs.retire()
        self._results.retire()
        self._child.wait()
        self._link.close("the host was closed")


def run_away(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Runs a function as a process in an OS process of its own."""
    host = Host()
    try:
        return host.call(function, args, keywords)
    finally:
        host.close()

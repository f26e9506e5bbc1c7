"""The child's side of a host: what runs in an OS process that weft.processes has started. See _host.py.

    main(): "jobs" and "results" are taken ──preparation──► the main module is imported ──a call──► it runs as a process
            ──► its result or failure is written ──► the next call … until "jobs" retires or the parent dies

The main module is imported under the name `__mp_main__`, up to its first top-level run(…): what stands below is the parent's business.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import sys
import threading
import types
from pathlib import Path
from typing import Any

from weft import _pickling, _shared
from weft._extension import native as _native
from weft.errors import BadUse, Cancelled, ChannelEnd

__all__ = ["main"]

AFTERLIFE = 2.0  # seconds that a process has to end once its parent is gone


class _Enough(BaseException):
    """The main module has come to its first run(…)."""


def _stop() -> None:
    raise _Enough


def _import_main(name: str | None, path: str | None) -> None:
    """The parent's main module, as far as its first top-level run(…)."""
    if name is None and path is None:  # an interactive interpreter, `python -c`
        return
    module = types.ModuleType("__mp_main__")
    if name is not None and name != "__main__":
        import importlib.util

        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        code = spec.loader.get_code(name)  # type: ignore[attr-defined]
        module.__file__ = spec.origin
        module.__package__ = spec.parent
    else:
        assert path is not None
        code = compile(Path(path).read_bytes(), path, "exec")
        module.__file__ = path
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    _shared.at_run = _stop
    try:
        exec(code, module.__dict__)
    except _Enough:
        pass
    finally:
        _shared.at_run = None


def _obey(jobs: Any, process: Any) -> None:
    """While a call runs: the next job is its cancellation, or the parent has let go of it."""
    with contextlib.suppress(ChannelEnd, Cancelled):
        jobs.read()
    process.cancel()


def _obedient(function: Any, jobs: Any) -> Any:
    """The function as a process that is cancelled when the parent says so."""

    def begin() -> None:
        me = _native.current_process()
        threading.Thread(target=_obey, args=(jobs, me), name="weft: obeys", daemon=True).start()

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def body(*args: Any, **keywords: Any) -> Any:
            begin()
            return await function(*args, **keywords)

    else:

        @functools.wraps(function)
        def body(*args: Any, **keywords: Any) -> Any:
            begin()
            return function(*args, **keywords)

    return _shared.process(body)


def _run(link: Any, jobs: Any, packed: bytes) -> tuple[Any, _pickling.Failure | None]:
    """Runs a call: what it returned, or its failure."""
    try:
        function, args, keywords = _pickling.load_call(packed, link.take)
        process = _obedient(function, jobs)(*args, **keywords)
        del args, keywords
        return _shared.run(process), None
    except BaseException as error:
        return None, _pickling.Failure(error)


def _end_with_parent(link: Any) -> None:
    """On a thread: once the parent is gone, so is this process, a little later."""
    link.wait()
    timer = threading.Timer(AFTERLIFE, os._exit, (1,))
    timer.daemon = True
    timer.start()


def main(descriptor: int) -> None:
    """Serves the parent at the other end of this socket, until it lets go."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal's Ctrl-C is the parent's, which cancels us
    link = _native._Link(descriptor, f"python {os.getpid()}")
    threading.Thread(
        target=_end_with_parent, args=(link,), name="weft: ends with its parent", daemon=True
    ).start()
    jobs, results = link.take("jobs"), link.take("results")
    try:
        prepared = jobs.read()
        sys.path[:] = prepared["path"]
        sys.argv[:] = prepared["argv"]
        with contextlib.suppress(OSError):
            os.chdir(prepared["directory"])
        packed = jobs.read()
        try:
            _import_main(prepared["main_name"], prepared["main_path"])
        except BaseException as error:
            results.write((None, _pickling.Failure(error)))
        else:
            value, failure = _run(link, jobs, packed)
            try:
                results.write((value, failure))
            except BadUse as error:  # what it returned cannot be pickled
                results.write(
                    (None, _pickling.Failure(_pickling.why_not("its result", value) or error))
                )
    except ChannelEnd:  # the parent has let go, or is gone
        pass
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    results.retire()
    link.close("it has ended")

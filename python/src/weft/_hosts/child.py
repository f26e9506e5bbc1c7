"""The child's side of a host: the code that runs in an OS process that weft.processes has started
(see _hosts/host.py for the parent's side).

    main() takes "jobs" ──preparation──► it imports the main module, and calls the initializer
        ──a call──► a process runs it ──► its result or failure is written
        ──► the next call … until "jobs" retires or the parent dies

A host that stays warm runs each call on a thread of its own; any other host runs its one call on
the main thread.

The main module is imported under the name `__mp_main__`, up to its first top-level run(…): the code
that follows that run is for the parent alone, and so is the end of each block around the run: a
`finally` or the exit of a `with`. Therefore the child never leaves that call of run(): it does its
work within the call, and its program ends there.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import io
import os
import pickle
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any, NoReturn

from weft import _helper_threads
from weft._backends import shared as _shared
from weft._backends.functions import is_coroutine
from weft._distributed_deadlock import at_work as _at_work
from weft._distributed_deadlock import call_names as _call_names
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native as _native
from weft._hosts import child_output as _child_output
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import forked_child as _forked_child
from weft._hosts import host as _host
from weft._hosts import loops as _loops
from weft._hosts import pickling as _pickling
from weft._hosts import remote_observers as _remote_observers
from weft._hosts import user_values as _user_values
from weft._watching import observers as _observers
from weft.errors import BadUse, Cancelled, ChannelEnd

__all__ = ["main", "run_call", "taken"]

_parent_gone = False  # whether the parent has released this OS process
_LONGEST_TEXT = 1000  # the longest part of a text that is sent, in characters
AFTERLIFE = 2.0  # seconds that this OS process has to end once its parent has ended


class _ReachedRun(BaseException):
    """Raised when a module that the main module imports has reached a run(…)."""


def _imports() -> bool:
    """Returns whether this code was called during an import. The caller then holds the lock of that
    import.
    """
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


# The function that continues in place of the run. Its argument is the reason why nothing can run in
# this OS process, or None.
GoesOn = Callable[[BaseException | None], NoReturn]


def _in_place_of_run(goes_on: GoesOn) -> Callable[[BaseException | None], None]:
    """Returns the function that is called when the main module, while it is imported here, reaches
    a run(…), or an operation that is refused in an import. The first such call on this thread does
    not return.
    """
    importing, here = threading.get_ident(), os.getpid()

    def at_run(why: BaseException | None) -> None:
        if os.getpid() != here:  # the child of a fork is allowed to run networks (rule 11.4)
            _shared.at_run = None
        elif threading.get_ident() == importing:
            _shared.at_run = None
            # code that imports the same module later would wait for the lock of this import
            if _imports():
                raise _ReachedRun
            _native._close_limits()  # a timeout around the run is meant for the parent only
            goes_on(why)
        elif why is None:
            _host.refuse_imports()

    return at_run


def _compiled(path: str, backend: str | None) -> types.CodeType:
    with io.open_code(path) as file:
        source = file.read()
    if backend is None:
        return compile(source, path, "exec")
    from pathlib import Path

    # `weft run` has compiled the main module, and the modules in its folder, for a backend.
    from weft import styles

    styles.Beside(Path(path).parent, backend).__enter__()
    return styles.compile_for(backend, source, path)


def _import_main(name: str | None, path: str | None, backend: str | None, goes_on: GoesOn) -> None:
    """Imports the parent's main module. At its first top-level run(…) it calls `goes_on`."""
    if name is None and path is None:  # an interactive interpreter, `python -c`
        _pickling.send_main_by_value()
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
        archive = os.path.dirname(path)  # noqa: PTH120  # the import of pathlib would cost each start milliseconds
        if os.path.isfile(archive):  # noqa: PTH113
            import zipimport

            code = zipimport.zipimporter(archive).get_code("__main__")
        else:
            code = _compiled(path, backend)
        module.__file__ = path
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    _shared.at_run = _in_place_of_run(goes_on)
    try:
        exec(code, module.__dict__)
    except _ReachedRun:
        pass
    finally:
        _shared.at_run = None


def _obey(orders: Any, process: Any) -> None:
    """Waits on a separate thread, while a call runs, until the call is cancelled or the parent has
    released this OS process. In both cases, cancels the call's process.
    """
    _helper_threads.add()
    show = _observers.hide()
    try:
        with contextlib.suppress(ChannelEnd, Cancelled):
            orders.read()
        process.cancel()
    finally:
        _at_work.attends_no_more(orders)
    show()
    _helper_threads.remove()  # another thread can have the same identifier later


def _obedient(function: Any, orders: Any, call: str, limit: int | None) -> Any:
    """Makes a process of `function` that is cancelled when the parent asks for it. While this
    process runs, its call does not count as work outside any run (_at_work.at_work), but the thread
    of _obey() does. With a limit of memory, a MemoryError ends this OS process.
    """
    here = os.getpid()

    def begin() -> None:
        me = _native.current_process()
        assert me is not None
        _rounds.called(me.id, call)
        _loops.began(me.id)
        obeys = threading.Thread(target=_obey, args=(orders, me), name="weft: obeys", daemon=True)
        _at_work.attends(orders)
        try:
            obeys.start()
        except BaseException:
            _at_work.attends_no_more(orders)
            _at_work.at_work(1)
            raise

    def end() -> None:
        if os.getpid() != here:  # this is the child of a fork
            return
        _at_work.at_work(1)
        me = _native.current_process()
        assert me is not None
        _rounds.called(me.id, None)

    if is_coroutine(function):

        @functools.wraps(function)
        async def body(*args: Any, **keywords: Any) -> Any:
            begin()
            try:
                return await function(*args, **keywords)
            except BaseException as error:
                _loops.die_if_of_memory(limit, error)
                raise
            finally:
                end()

    else:

        @functools.wraps(function)
        def body(*args: Any, **keywords: Any) -> Any:
            begin()
            try:
                return function(*args, **keywords)
            except BaseException as error:
                _loops.die_if_of_memory(limit, error)
                raise
            finally:
                end()

    return _shared.process(body)


def taken(link: Any, name: str, loops: int = 0) -> Any:
    return link.take(name, name.startswith(_host.KEPT), loops)


_shown = ""  # the name of this OS process, as the system shows it


def _show_name(name: str) -> None:
    """Makes `top` and `ps` show the name of the process that runs in this OS process, as they do
    for threads (rule 14.13).
    """
    global _shown
    if name != _shown:
        _shown = name
        # importing pathlib would add milliseconds to each start
        with contextlib.suppress(OSError), open("/proc/self/comm", "wb", buffering=0) as file:  # noqa: PTH123
            file.write(f"main/{name}".encode()[-15:])


def run_call(
    load: Callable[[], _pickling.Call], orders: Any, call: str, limit: int | None = None
) -> tuple[Any, _pickling.Failure | None]:
    """Runs a call. Returns the call's result, or its failure. With a limit of memory, a MemoryError
    ends this OS process.
    """
    before = os.getpid()
    try:
        function, args, keywords = load()
    except BaseException as error:
        _forked_child.end_if_forked(before, error)
        return None, _pickling.Failure(_user_values.not_rebuilt("a call and its arguments", error))
    _forked_child.end_if_forked(before, None)
    try:
        process = _obedient(function, orders, call, limit)(*args, **keywords)
        if (named := getattr(function, "_weft_name", None)) is not None:
            process = process.named(named(*args, **keywords))
        del args, keywords
        _show_name(process.name)
        with _call_names.running(process, call):
            return _shared.run(process), None
    except BaseException as error:
        _loops.die_if_of_memory(limit, error)
        return None, _pickling.Failure(error)


def answer(
    write: Callable[[Any, _pickling.Failure | None], None],
    value: Any,
    failure: _pickling.Failure | None,
) -> None:
    """Writes the result of a call. If the result cannot be sent, writes the reason instead; if the
    reason cannot be sent either, writes a short text about it. So the caller never takes this OS
    process for a dead one.

    Raises:
        ChannelEnd: the caller has ended, or no longer waits.
    """
    try:
        return write(value, failure)
    except ChannelEnd:
        raise
    except BaseException as error:
        if failure is None:
            lacks_memory = issubclass(type(error), MemoryError)
            wrong = error if lacks_memory else _pickling.why_not("its result", value) or error
            failure = _pickling.Failure(wrong)
            brief = failure.brief
        else:
            brief = failure.brief
            failure = _unsendable(brief, error)
    value = None
    try:
        write(None, failure)
    except ChannelEnd:
        raise
    except BaseException as error:
        write(None, _unsendable(brief, error))


def _unsendable(brief: str, error: BaseException) -> _pickling.Failure:
    """Returns a failure that can always be sent, in place of a failure that could not be sent
    because of `error`.
    """
    what, why = (
        text[:_LONGEST_TEXT].encode("ascii", "backslashreplace").decode()
        for text in (brief, _foreign_exceptions.text_of(error))
    )
    return _pickling.Failure(
        RuntimeError(f"{what} (the exception itself could not be sent: {why})")
    )


def _serve(
    link: Any,
    ours: tuple[Any, ...],
    packed: bytes,
    wrong: BaseException | None,
    prepared: dict[str, Any],
) -> None:
    """Carries out all steps of a call, from taking its ends to writing its result. `ours` names the
    two channels of the call itself, followed by its terms if it is supervised. `wrong` is the
    reason why nothing can run here, or None.
    """
    orders, result = link.take(ours[0]), link.take(ours[1])
    terms = ours[2] if len(ours) > 2 else None
    loops = (
        0 if terms is None else terms.loops | (_loops.LIMITED if prepared["memory_limit"] else 0)
    )
    if terms is not None and not prepared["warm"]:
        _loops.follow(terms)
    try:
        value, failure = (
            (None, _pickling.Failure(wrong))
            if wrong is not None
            else run_call(
                lambda: _pickling.load_call(packed, lambda name: taken(link, name, loops)),
                orders,
                ours[1],
                None if terms is None else prepared["memory_limit"],
            )
        )
        _remote_observers.tell()
        with contextlib.suppress(ChannelEnd):
            answer(
                lambda v, f: result.write((_user_values.apart("its result", v), f)), value, failure
            )
    finally:  # whatever has happened here, the caller must not wait any longer
        _let_go(result)


def _let_go(end: Any) -> None:
    with contextlib.suppress(BadUse):  # the session has ended
        end.retire()


def _limit_memory(most: int) -> None:
    """Limits the address space of this OS process to `most` bytes.

    Raises:
        BadUse: the interpreter already uses more, so nothing could run within the limit.
    """
    import resource
    from pathlib import Path  # imported late: it would cost milliseconds at each start

    now = 0
    with contextlib.suppress(OSError), Path("/proc/self/statm").open(encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    if most <= now:
        raise BadUse(
            f"memory_limit={most}: an OS process has {now >> 20} MB of address space before any code of "
            "the program runs in it, and the limit counts all of that: give it more"
        )
    most = min(most, sys.maxsize)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _set_up(prepared: dict[str, Any]) -> None:
    """Applies the host's settings, before any code of the program runs in this OS process."""
    if prepared["nice"]:
        os.nice(prepared["nice"])
    if prepared["affinity"] is not None:
        try:
            os.sched_setaffinity(0, prepared["affinity"])
        except OSError as error:
            raise OSError(
                error.errno,
                f"affinity: the system lets no program choose its CPUs here ({error.strerror}): leave it out",
            ) from None
    if prepared["memory_limit"] is not None:
        _limit_memory(prepared["memory_limit"])
    if prepared["backend"] is not None:
        import weft

        weft.use(prepared["backend"])
    for module in prepared["preload"]:
        importlib.import_module(module)


def _breakpoint(*args: Any, **keywords: Any) -> Any:
    """Starts the debugger for breakpoint(). The debugger uses the terminal, since the standard
    input of this OS process is empty. Obeys PYTHONBREAKPOINT.

    Raises:
        BadUse: there is no terminal.
    """
    if os.environ.get("PYTHONBREAKPOINT", "") not in ("", "pdb.set_trace"):
        return sys.__breakpointhook__(*args, **keywords)
    import pdb
    from pathlib import Path

    terminal = Path("/dev/tty")
    try:
        typed, output = terminal.open(encoding="utf-8"), terminal.open("w", encoding="utf-8")
    except OSError:
        raise BadUse(
            "breakpoint() in an OS process needs a terminal, and this program has none"
        ) from None
    pdb.Pdb(stdin=typed, stdout=output).set_trace(sys._getframe(1))
    return None


def _initialized(prepared: dict[str, Any]) -> BaseException | None:
    """Calls the initializer, if there is one. Returns the exception that the initializer raised, or
    None.
    """
    if prepared["initializer"] is not None:
        before = os.getpid()
        try:
            function, args, keywords = _pickling.load_call(prepared["initializer"], str)
            function(*args, **keywords)
        except BaseException as error:
            _forked_child.end_if_forked(before, error)
            return error
        _forked_child.end_if_forked(before, None)
    return None


def _begin(prepared: dict[str, Any], goes_on: GoesOn) -> BaseException | None:
    """Prepares this OS process for calls. Returns None, or the exception that prevented the
    preparation. `goes_on` is passed to _import_main().
    """
    before = os.getpid()
    try:
        _set_up(prepared)
        # A forked OS process, and one of a frozen program, has loaded the main module already.
        if prepared["start"] == "fork" or getattr(sys, "frozen", False):
            sys.modules["__mp_main__"] = sys.modules["__main__"]
        else:
            _import_main(
                prepared["main_name"], prepared["main_path"], prepared["compiled_for"], goes_on
            )
    except BaseException as error:
        _forked_child.end_if_forked(before, error)
        return error
    _forked_child.end_if_forked(before, None)
    return _initialized(prepared)


_refusal = threading.Lock()  # the thread that reports a refusal never releases this lock


def _refused(link: Any) -> bool:
    """Returns whether this OS process has ended the session because of a bad message. If so, the
    parent's ProcessDied gives the reason, and so does the standard error.
    """
    why = _host.why_refused(link)
    if why and _refusal.acquire(blocking=False):
        with contextlib.suppress(Exception):
            sys.stderr.write(
                f"weft: this OS process ends, because it could not read what it was sent: {why}\n"
            )
            sys.stderr.flush()
    return why != ""


def _end_with_parent(link: Any) -> None:
    """Ends this OS process a little after its parent has ended. This function runs on a thread of
    its own."""
    _helper_threads.add()
    # Without this call, an OS process that is stopped (SIGSTOP) would never end.
    _native._continue_with_parent()
    link.wait()
    _refused(link)
    if not _parent_gone:  # the OS processes that this one has started end with the parent too
        for member in _rounds.members():
            if member.orphaned is not None:
                with contextlib.suppress(Exception):  # that OS process has already ended
                    member.orphaned()
    time.sleep(AFTERLIFE)  # this thread waits: there might be no memory for another thread
    os._exit(1)


def _serve_beside(
    link: Any,
    ours: tuple[Any, ...],
    packed: bytes,
    wrong: BaseException | None,
    prepared: dict[str, Any],
) -> None:
    """Runs one call of a warm host, on a thread of its own."""
    show = _observers.hide()
    try:
        _serve(link, ours, packed, wrong, prepared)
    finally:
        show()
        _at_work.at_work(-1)
        # Reports that this program waits, since perhaps no run is left that would report it.
        _rounds.standing()


def _await_moved_ends() -> None:
    """Waits until two kinds of ends are settled. An end that was sent on would die with this OS
    process before its home has confirmed the move. The sender of an end that has arrived here must
    learn what was done to the end (WIRE.md 7.4).
    """
    until = time.monotonic() + AFTERLIFE
    while _native._ends_under_way() > 0 and time.monotonic() < until:
        # Nothing reports the confirmation, but it takes one round trip, and this loop is rarely
        # reached.
        time.sleep(0.001)


def _leave(prepared: dict[str, Any], error: BaseException | None) -> NoReturn:
    """Ends this program, without returning to its main module."""
    if prepared["start"] == "spawn":
        _native._end_program(error)
    if error is not None and not isinstance(error, SystemExit):
        import traceback  # imported late: it would cost milliseconds at each start

        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    # The child of a fork server ends without atexit, like every such child.
    os._exit(0 if error is None else 1)


def _work(link: Any, jobs: Any, prepared: dict[str, Any], wrong: BaseException | None) -> None:
    """Serves the parent until the parent releases this OS process, or ends. `wrong` is the
    reason why nothing can run here, or None.

    Raises:
        SystemExit: this side has ended the session because of a bad message.
    """
    calls: list[threading.Thread] = []
    try:
        while True:
            _helper_threads.add()
            _at_work.attends(jobs)
            ours, packed = jobs.read()
            if ours is None:  # this call was cancelled before it was sent to this OS process
                for name in packed:
                    end = link.take(name)
                    # A Barrier is released when it is freed, so it needs no call here.
                    if not isinstance(end, _native.Barrier):
                        end.retire()
                    del end
                continue
            if not prepared["warm"]:
                _helper_threads.remove()
                _serve(link, ours, packed, wrong, prepared)
                break
            _at_work.at_work(1)
            calls = [c for c in calls if c.is_alive()]
            calls.append(
                threading.Thread(
                    target=_serve_beside,
                    args=(link, ours, packed, wrong, prepared),
                    name="weft: a call",
                )
            )
            calls[-1].start()
    # the parent has released this OS process, has ended, or has sent unusable data
    except ChannelEnd:
        pass
    refused = _refused(link)
    for call in calls:
        call.join()
    _await_moved_ends()
    _remote_observers.tell()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    global _parent_gone
    _parent_gone = True
    link.close("it has ended")
    if refused:
        sys.exit(1)


def main(descriptor: int, preparation: int, asked: int, records: int, shared: bool | None) -> None:
    """Serves the parent at the other end of the link, until the parent releases this OS process.

    Args:
        descriptor: the socket of the link.
        preparation: a file with the settings for the start. If this program crashes, it writes the
            reason at the end of the file, for the parent.
        asked: a socket over which the parent asks whether everything here stands still.
        records: a socket for log records and warnings from here.
        shared: whether the link is in shared memory. If this is None, the parent sends the answer
            over `asked`, as 0 or 1.
    """
    questions = socket.socket(fileno=asked)
    if shared is None:
        shared = questions.recv(1) == b"1"
    _at_work.at_work(1)
    _observers.hide()
    with open(preparation, "rb", closefd=False) as file:
        prepared = pickle.load(file)
    os.lseek(preparation, 0, os.SEEK_END)
    _child_output.say_to(records, prepared["logging"])
    _remote_observers.follow(prepared["observed"])
    threading.Thread(
        target=_rounds.answer,
        args=(questions,),
        name="weft: answers",
        daemon=True,
    ).start()
    faulthandler.enable(preparation)
    sys.breakpointhook = _breakpoint
    # Ctrl-C at the terminal is for the parent, which cancels the calls that run here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = _native._Link(descriptor, f"python {os.getpid()}", shared)
    threading.Thread(
        target=_end_with_parent, args=(link,), name="weft: ends with its parent", daemon=True
    ).start()
    jobs = link.take("jobs")
    sys.path[:] = prepared["path"]
    sys.argv[:] = prepared["argv"]
    with contextlib.suppress(OSError):
        os.chdir(prepared["directory"])

    def goes_on(why: BaseException | None) -> NoReturn:
        try:
            _work(link, jobs, prepared, why or _initialized(prepared))
        except BaseException as error:
            _leave(prepared, error)
        _leave(prepared, None)

    _work(link, jobs, prepared, _begin(prepared, goes_on))

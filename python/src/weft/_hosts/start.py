"""How an OS process begins: "spawn", a fresh interpreter; "forkserver", a copy of a server that has
imported the preloaded modules; "fork", a copy of this program. A frozen program starts its own
executable, which runs up to freeze_support().

Invariants
- In each way the child runs weft._hosts.child.main() with the same descriptors, an empty standard
  input, `errors` as its standard error, and this program's environment with the changes of its
  settings.
- A fork happens while this program has one thread, so nothing in the copy waits for a thread that
  does not exist there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker, spawn
from multiprocessing import util as _mp_util
from pathlib import Path
from typing import Any, NamedTuple

from weft import _forks, _helper_threads, _name_clash
from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["Child", "Handed", "begin", "freeze_support", "refuse_fork"]

_ALONE = "--multiprocessing-fork"  # the argument by which a frozen program knows that it is a child


class Handed(NamedTuple):
    """The descriptors that are passed to a child. `main()` of _hosts/child.py describes their
    purpose.
    """

    link: int
    preparation: int
    asked: int
    records: int


class Child:
    """A child that was started. Any thread can use this object to wait for it or to kill it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self._lock = threading.Lock()  # held only while the status is read, which never blocks

    def poll(self) -> int | None:
        """Returns the child's status, in the form of subprocess; None if the child still runs."""
        with self._lock:
            status = self._look()
        if status is not None:
            _ending.discard(self)
        return status

    def wait(self) -> int:
        while (status := self.poll()) is None:
            self._until_it_ends()
        return status

    def _until_it_ends(self) -> None:
        """Waits until the child ends. The system keeps the status, which _look() reads."""
        if hasattr(os, "waitid"):
            # another thread has already taken the status
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            time.sleep(0.005)

    def _look(self) -> int | None:
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the program itself has waited for the child
                self.status = 255
            else:
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def kill(self) -> None:
        # while the lock is held, the system cannot give the pid to another OS process
        with self._lock:
            if self._look() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)


_numbers = itertools.count(1)  # no two children of this program have the same command
_ending: set[Child] = set()  # children that no thread waits for and that have not ended


def reap(child: Child) -> None:
    """Collects the exit status of a child that is ending, and whose Hosts might have been dropped.
    If the child has not ended yet, the status is collected by close(), the next call of reap() or
    the start of another child.
    """
    _ending.add(child)
    for one in list(_ending):
        one.poll()


@contextlib.contextmanager
def _whole(is_it: Callable[[bytes], bool]) -> Iterator[None]:
    """Guards a block that starts one child; `is_it` recognises the child's command.

    A signal handler may raise just after the system has started the child, before its pid is known
    here. No code would ever use such a child, so it is killed, and its status is taken. The command
    of a child that has already ended, or has not quite begun, cannot be read. So a child without a
    command that this thread has started in the block also counts as the block's child.
    """
    before = set(_of_this_thread())
    try:
        yield
    except BaseException:
        new = set(_of_this_thread()) - before
        known = {server._forkserver_pid for server in _servers.values()}
        known.add(getattr(resource_tracker._resource_tracker, "_pid", None))
        for pid in {*_running(is_it), *(pid for pid in new if _shown(pid) == b"")} - known:
            _end(pid)
        raise


def _end(pid: int) -> None:
    """Kills a child that no other code knows about, and collects its status once it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    lost = Child(pid)
    _ending.add(lost)
    threading.Thread(
        target=_wait_for, args=(lost,), name="weft: waits for one", daemon=True
    ).start()


def _wait_for(child: Child) -> None:
    _helper_threads.add_until_end()
    child.wait()


def _as_shown(command: list[str]) -> bytes:
    return b"".join(os.fsencode(part) + b"\0" for part in command)


def _running(is_it: Callable[[bytes], bool]) -> list[int]:
    """Returns the children of this program whose command, as the system shows it, satisfies
    `is_it`. A child whose command is not shown is left out.
    """
    return [pid for pid in _all_children() if (shown := _shown(pid)) is not None and is_it(shown)]


def _all_children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [pid for task in tasks for pid in _children(task)]


def _of_this_thread() -> list[int]:
    return _children(Path(f"/proc/self/task/{threading.get_native_id()}/children"))


def _children(file: Path) -> list[int]:
    try:
        return [int(pid) for pid in file.read_text(encoding="ascii").split()]
    except OSError:
        return []


def _shown(pid: int) -> bytes | None:
    """Returns the command of an OS process as the system shows it, or None if the system does not
    show it.
    """
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None


class _Spawned(Child):
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process.pid)
        self._process = process

    def _look(self) -> int | None:
        return self._process.poll()


class _OfServer(Child):
    """A child of the server, which reports over a pipe how the child ended. It is usable after
    began().
    """

    _pid_pipe = _order_pipe = -1

    def __init__(self, pid_pipe: int, order_pipe: int = -1) -> None:
        """`pid_pipe` is the pipe over which the server reports. `order_pipe` is a pipe from which
        the child reads the orders that say() writes.
        """
        self._pid_pipe, self._order_pipe = pid_pipe, order_pipe

    def __del__(self) -> None:
        for fd in (self._pid_pipe, self._order_pipe):
            if fd >= 0:
                os.close(fd)

    def say(self, *what: Any) -> None:
        """Sends an order to the child.

        Raises:
            EOFError, BrokenPipeError: the server has ended.
        """
        tell, self._order_pipe = self._order_pipe, -1
        with os.fdopen(tell, "wb") as file:
            for one in what:
                pickle.dump(one, file)

    def began(self) -> None:
        """Waits for the child's pid.

        Raises:
            EOFError: the server has ended.
        """
        super().__init__(forkserver.read_signed(self._pid_pipe))

    def _until_it_ends(self) -> None:
        self._has_reported(None)

    def _has_reported(self, milliseconds: int | None) -> bool:
        poll = select.poll()  # select() accepts no descriptor above 1,023
        poll.register(self._pid_pipe, select.POLLIN)
        return bool(poll.poll(milliseconds))

    def _look(self) -> int | None:
        if self.status is None and self._has_reported(0):
            try:
                self.status = forkserver.read_signed(self._pid_pipe)
            except EOFError:  # the server was killed
                self.status = 255
        return self.status


class Begin:
    """The object that multiprocessing runs in the child, if a fork server or a frozen program
    starts the child.
    """

    def __init__(
        self, handed: Handed | None, errors: int, shared: bool, environment: dict[str, str]
    ) -> None:
        self._all = handed, errors, shared, environment

    def _bootstrap(self, parent: int) -> int:
        from weft._hosts import child as _child

        handed, errors, shared, environment = self._all
        os.close(parent)  # only the link reports the end of the parent
        if handed is None:
            *those, errors, output = forkserver.get_inherited_fds() or []
            handed = Handed(*those)
            os.dup2(output, 1)
            os.close(output)
        _redirect_streams(errors)
        os.environ.clear()
        os.environ.update(environment)
        _other_numbers()
        _child.main(*handed, shared)
        return 0


def _redirect_streams(errors: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if errors != 2:
        os.dup2(errors, 2)
        os.close(errors)


def _other_numbers() -> None:
    """Seeds numpy's random numbers anew, because a copy of a process would draw the same numbers as
    its original. Python reseeds its own generator at a fork.
    """
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


# --- by a server ----------------------------------------------------------------------------------

# Modules that each OS process would import at once, or that most OS processes would import later.
_PRELOADED = (
    "weft._hosts.child",
    "weft._hosts.start",
    "weft._hosts.host_recorders",
    "weft._watching.measure",
    "inspect",
    "logging",
    "traceback",
)

_servers: dict[Any, Any] = {}
_serving = threading.Lock()


def _put_back(was: dict[str, str | None]) -> None:
    for k, v in was.items():
        if v is None:
            os.environ.pop(k, None)
        else:
            os.environ[k] = v


def _begin_by_server(
    handed: Handed, errors: int, shared: bool, preload: tuple[str, ...], environment: dict[str, str]
) -> Child:
    what = Begin(None, -1, shared, environment)
    different = {k: v for k, v in environment.items() if os.environ.get(k) != v}
    with _serving:
        key = preload, tuple(sorted(different.items()))
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = forkserver.ForkServer()
            server.set_forkserver_preload([*_PRELOADED, *preload])
        was = {k: os.environ.get(k) for k in different}
        try:
            # Preloaded modules read the number of their threads from the environment.
            os.environ.update(different)
            with _whole(_is_server):
                server.ensure_running()
        finally:
            try:
                _put_back(was)
            except BaseException:  # a signal handler raised before the server was complete
                _put_back(was)
                raise
        child = _OfServer(*server.connect_to_new_process([*handed, errors, 1]))
    try:
        child.say({}, what)
        child.began()
    except (EOFError, BrokenPipeError):
        raise OSError(
            "the fork server has gone while it started an OS process: try again, which starts another"
        ) from None
    return child


def _is_server(shown: bytes) -> bool:
    return repr(list(_PRELOADED))[:-1].encode() in shown


def stop_servers() -> None:
    """Ends all servers. The next process that needs a server starts a new one."""
    with _serving:
        while _servers:
            server = _servers.popitem()[1]
            pid = server._forkserver_pid
            try:
                server._stop()
            except BaseException:  # a server whose shutdown is interrupted is no longer used
                if pid in _all_children():  # the status of the server has not been taken yet
                    _end(pid)
                raise


def _forget() -> None:
    """Resets the module in the child of a fork: the servers, and all children, belong to the
    parent.
    """
    global _serving
    _serving = threading.Lock()
    _servers.clear()
    _ending.clear()


os.register_at_fork(after_in_child=_forget)


# --- by a fork ------------------------------------------------------------------------------------


def refuse_fork() -> None:
    """Checks that this program can fork.

    Raises:
        BadUse: other threads run, or this is a process of a network.
    """
    others = [t.name for t in threading.enumerate() if t is not threading.current_thread()]
    with contextlib.suppress(OSError):
        n = len(list(Path("/proc/self/task").iterdir())) - 1 - len(others)
        if n > 0:
            others.append(f"{n} that are not Python's")
    if others or _native.current_process() is not None:
        why = f"other threads live ({', '.join(others)})" if others else "a network runs"
        raise BadUse(
            f"start='fork': {why}, and a forked copy would have the locks that these hold, but no thread to release them. "
            "Make the Hosts before anything else, or use start='forkserver', which forks a program that has one thread"
        )


def _forked(handed: Handed, errors: int, unwanted: set[int], environment: dict[str, str]) -> Child:
    for stream in (sys.stdout, sys.stderr):
        # Otherwise the copy would write the buffered output again.
        with contextlib.suppress(Exception):
            stream.flush()
    made: list[Child] = []
    try:
        pid = _forks.fork(lambda pid: made.append(Child(pid)))
    except BaseException:  # raised by the handler of a signal that arrived at the fork
        for child in made:
            _ending.add(child)
            child.kill()
            child.wait()
        raise
    if pid:
        return made[0]
    status = 1
    try:
        for fd in unwanted:
            os.close(fd)
        _redirect_streams(errors)
        os.environ.update(environment)
        _other_numbers()
        from weft._hosts import child as _child

        _child.main(*handed, None)
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        status = 0
    except BaseException:
        with contextlib.suppress(Exception):
            traceback.print_exc()
    finally:  # functions registered with atexit, and the like, belong to the original
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


# --- of a frozen program --------------------------------------------------------------------------


def freeze_support() -> None:
    """Does the work of an OS process that a frozen program has started. A program that is to be
    frozen, for example by PyInstaller, must call this function first below
    `if __name__ == "__main__":`.

    In such an OS process the function does that work, and ends the OS process; elsewhere it does
    nothing. Where multiprocessing.freeze_support() works, it can be called instead; Python's own
    does nothing except on Windows.
    """
    if getattr(sys, "frozen", False):
        spawn.freeze_support()


# --- however the child starts ---------------------------------------------------------------------

# The objects that exist after the import of Weft remain as long as the child. So the garbage
# collector need not visit them, neither during the import nor at the end.
_FRESH = "import gc; gc.disable(); from weft._hosts.child import main; gc.freeze(); gc.enable(); "


def _options() -> list[str]:
    """Returns the options of this interpreter."""
    known: list[str] = _mp_util._args_from_interpreter_flags()  # type: ignore[attr-defined]
    given = {o.partition("=")[0] for o in known}
    # Multiprocessing passes on only the options that it knows.
    for name, value in sys._xoptions.items():
        if name not in given and f"-X{name}" not in given:
            known += ["-X", name if value is True else f"{name}={value}"]
    return known


def _frozen(handed: Handed, errors: int, shared: bool, environment: dict[str, str]) -> Child:
    if len(sys.argv) > 1 and sys.argv[1] == _ALONE:
        raise BadUse(
            "a frozen program that was started to be an OS process of Weft starts OS processes itself: "
            "call weft.processes.freeze_support() first thing below `if __name__ == '__main__':`"
        )
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, _ALONE, "tracker_fd=None", f"pipe_handle={reader}"],
            pass_fds=(*handed, reader),
            stdin=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        )
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "wb") as file:
        pickle.dump({}, file)
        pickle.dump(Begin(handed, 2, shared, environment), file)
    return _Spawned(process)


def begin(
    way: str,
    handed: Handed,
    errors: int,
    shared: bool,
    preload: tuple[str, ...],
    environment: dict[str, str],
    unwanted: set[int],
) -> Child:
    """Starts a child.

    Args:
        way: one of _host.WAYS.
        handed: the descriptors that are passed to the child.
        errors: the descriptor of its standard error.
        shared: whether the link is in shared memory. A forked child learns that later, over
            `asked`.
        preload: modules that a server imports before it forks.
        environment: the variables that differ from this program's.
        unwanted: descriptors that only the parent may have.
    Raises:
        BadUse: this program cannot fork now, or is frozen and would start itself without end.
        OSError: the system starts no process.
    """
    for child in list(_ending):
        child.poll()
    environment = dict(os.environ, **environment)
    if _name_clash.told:
        environment[_name_clash.TOLD] = _name_clash.told
    if way == "fork":
        return _forked(handed, errors, unwanted, environment)
    if getattr(sys, "frozen", False):
        return _frozen(handed, errors, shared, environment)
    if way == "forkserver":
        return _begin_by_server(handed, errors, shared, preload, environment)
    path = list(filter(None, sys.path))
    # With -I or -E Python ignores PYTHONPATH.
    finds = f"import sys; sys.path[:0] = {path!r}; " if sys.flags.ignore_environment else ""
    does = finds + _FRESH + f"main{(*handed, shared)}  # {next(_numbers)}"
    command = [sys.executable, *_options(), "-c", does]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    with _whole(lambda shown: shown == _as_shown(command)):  # no other child has this command
        process = subprocess.Popen(
            command, pass_fds=handed, stdin=subprocess.DEVNULL, stderr=errors, env=environment
        )
        return _Spawned(process)

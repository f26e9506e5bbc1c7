"""A host: an OS process that runs processes of this program. This module starts it, gives it work,
and notices its death.

    parent: Host() ──"jobs" handed over──► child: weft._hosts.child.main()
        call() ──the call, its ends, "orders", "result"──► the child runs it
            ──what it returned, or a failure──► call() returns or raises
        a cancellation: "orders" retires ──► the child cancels the process
            ──the process ends──► call() raises Cancelled
        the child dies: the session ends ──► ProcessDied

Everything goes through channels of the wire. The child ends when its parent ends or releases it.

Invariant: the ends of a call are handed over before the call is sent. If the call is then not sent,
the child is ordered to release those ends.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import operator
import os
import pickle
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from weft import _patched
from weft._backends import shared as _shared
from weft._distributed_deadlock import members as _members
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native as _native
from weft._hosts import child_output as _child_output
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import log_records as _log_records
from weft._hosts import pickling as _pickling
from weft._hosts import remote_observers as _remote_observers
from weft._hosts import user_values as _user_values
from weft._hosts.attempt import Attempt as Attempt
from weft._watching import deaths as _deaths
from weft._watching import observers as _observers
from weft.errors import BadUse, Cancelled, ChannelEnd, PeerDied, ProcessDied, Retired

__all__ = ["WAYS", "Attempt", "Host", "Setting", "run_away"]

# In a program that gevent or eventlet has patched (_patched.py), no part of this module works.
if _why := _patched.why_not("weft.processes"):
    raise ImportError(_why)

WAYS = ("spawn", "forkserver", "fork")  # how an OS process can begin: see _hosts/start.py

_COUNTERS = "/proc/vmstat"  # the file in which Linux counts the OS processes that it has killed

# The environment variables that set the number of threads of numerical libraries.
_THREADS = [f"{of}_NUM_THREADS" for of in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")]
_THREADS.append("VECLIB_MAXIMUM_THREADS")

# An end whose name begins with this word keeps the values of its extended reads when the child dies
# (WIRE.md 4.7).
KEPT = "kept"

compiled_for: str | None = None  # the backend for which `weft run` has compiled the main module


class Setting(NamedTuple):
    """The settings in which a host differs from its parent."""

    preload: tuple[str, ...] = ()  #: modules that the host imports first
    initializer: Any = None  #: called in the host before any other user code
    initargs: tuple[Any, ...] = ()
    affinity: frozenset[int] | None = None  #: the CPUs on which the host is allowed to run
    memory_limit: int | None = None  #: bytes of address space
    nice: int = 0
    threads: int | None = None  #: the number of threads of BLAS and OpenMP
    start: str = "spawn"  #: how the OS process starts: one of WAYS
    #: Whether the host runs many calls, each on a thread. If not, it runs one call, on its main
    #: thread.
    warm: bool = False


def _preparation(setting: Setting) -> dict[str, Any]:
    """Returns the settings that make the child like this process."""
    from pathlib import Path

    import weft

    initializer = None
    if setting.initializer is not None:
        initializer = _pickling.dump_call(setting.initializer, setting.initargs, {}, _refuse_end)
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    return {
        "path": list(sys.path),
        "argv": list(sys.argv),
        "directory": str(Path.cwd()),
        "main_name": spec.name if spec is not None else None,
        # A main module in an archive (a zipapp) has no file of its own, so the archive's path is
        # sent.
        "main_path": str(Path(path).resolve())
        if path is not None and (Path(path).exists() or Path(path).parent.is_file())
        else None,
        "backend": weft._chosen,
        "logging": _log_records.as_here(),
        "compiled_for": compiled_for,
        **setting._replace(initializer=initializer, initargs=())._asdict(),
    }


def _killed_for_memory() -> int:
    """Returns how many OS processes the system has killed since it was booted because memory ran
    out; 0 if the system does not report that.
    """
    from pathlib import Path

    with contextlib.suppress(OSError):
        for line in Path(_COUNTERS).read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _refuse_end(end: Any) -> str:
    raise BadUse(
        f"{end!r} can be passed to a host as an argument of a process, not of the initializer"
    )


def _name() -> str:
    return f"python {os.getpid()}"


def _file() -> Any:
    """Returns a file without a name, open for reading and writing. The file is in memory if the
    system supports that, since there might be no folder to write to.
    """
    try:
        return os.fdopen(os.memfd_create("weft", os.MFD_CLOEXEC), "w+b")
    except AttributeError:
        pass
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
    import tempfile

    return tempfile.TemporaryFile()


def _over_memory(ours: socket.socket) -> Any:
    """Returns a link in shared memory that is set up over this socket. Returns None if the system
    has no shared memory, or there are too many such links; then the socket itself is used.
    """
    name = _name()
    try:
        return _native._Link(os.dup(ours.fileno()), name, True)
    except BadUse:
        return None


@contextlib.contextmanager
def told_what_to_do() -> Iterator[None]:
    """Adds advice to an error that is raised because no descriptor, or no OS process, is left."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise OSError(
                errno.EAGAIN,
                "the system has no room for another OS process: raise the limit (`ulimit -u`, a container's "
                "pids.max), or put many processes on a few hosts (`.on(Hosts(n))`)",
            ) from error
        if error.errno != errno.EMFILE:
            raise
        most = _most_descriptors()
        may = f"may have {most:,}" if most is not None else "has as many as it may have"
        raise OSError(
            errno.EMFILE,
            f"no descriptor is left: this program {may}, and each OS process that it starts takes {_LIMIT}",
        ) from error


_LIMIT = (
    "up to ten. Raise the limit (`ulimit -n`, resource.setrlimit), or put many processes on a few hosts "
    "(`.on(Hosts(n))`)"
)


def _most_descriptors() -> int | None:
    """Returns how many descriptors this program is allowed to have, or None if there is no limit,
    or the limit is not known.
    """
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except ImportError:  # the system lacks the module, or there is no descriptor left to read it
        return None
    return None if most == resource.RLIM_INFINITY else most


# The number of descriptors that this program needs for each OS process, however the OS process is
# started.
_LEAST = 4


def why_refused(link: Any) -> str:
    """Returns why this program ended the session, if the peer sent something unacceptable;
    otherwise "".
    """
    why = None
    with contextlib.suppress(BadUse):  # the link is already closed
        why = link.refused()
    if not why:
        return ""
    try:
        os.close(os.dup(0))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            most = _most_descriptors()
            may = f" (it may have {most:,})" if most is not None else ""
            return f"{why}. No descriptor is left in it{may}: raise the limit (`ulimit -n`, resource.setrlimit), or close what is no longer used"
    return str(why)


def check_room(hosts: int) -> None:
    """Checks, before the first is started, that `hosts` OS processes can exist at one time.

    Raises:
        OSError: this program may not have enough descriptors for them.
    """
    most = _most_descriptors()
    if most is not None and hosts > most // _LEAST:
        raise OSError(
            errno.EMFILE,
            f"{hosts:,} OS processes at one time: this program may have {most:,} descriptors, and each takes {_LIMIT}",
        )


def refuse_imports() -> None:
    # the program was patched after the import of weft.processes
    if patched := _patched.why_not("an OS process"):
        raise BadUse(patched)
    if _shared.at_run is not None:
        why = BadUse(
            "an OS process imports the main module of its program, and that starts a network there: "
            'put what starts it below `if __name__ == "__main__":`'
        )
        if _native.where() == 0:
            _shared.at_run(why)
        if _shared.at_run is not None:
            raise why
    module = _shared.imported_for_call.get()
    # Otherwise each OS process would import the module again, and would start OS processes without
    # end.
    if module is not None:
        raise BadUse(
            f"an OS process imports the module {module!r} for a function of it, and that starts OS processes when it is imported: "
            'put what starts them below `if __name__ == "__main__":`'
        )


# The descriptors of hosts that are forked one after another, and joined after the last fork.
_forked_before: set[int] = set()


class Host:
    """One OS process (see _hosts/start.py), started by begin(). It ends when the Host is closed."""

    _preparation: Any = None

    def __init__(self, setting: Setting | None = None) -> None:
        self.setting = setting or Setting()
        self._maker = os.getpid()
        self._lock = threading.Lock()
        self._lent = 0
        self._up = False
        self._mine: set[int] = set()
        # _start() and join() set these fields.
        self._ours: Any = None
        self._asks: Any = None
        self._output: Any = None
        self._link: Any = None
        self._child: Any = None
        self._member: Any = None
        self._jobs: Any = None
        self.pid = 0
        # The Edits of the files that the host might have imported (_hosts/edits.py), or None.
        self.edits: Any = None
        # The number of calls that run, and the number that have begun. The code that gives calls to
        # the host counts them.
        self.running = self.begun = 0

    def __del__(self) -> None:
        if self._preparation is not None:
            self._preparation.close()

    def begin(self, later: bool = False) -> None:
        """Starts the OS process. With `later` the caller calls join() afterwards, since a fork must
        precede the making of any link.

        Raises:
            BadUse: the initializer cannot be sent; the main module, or a module with a function to
                be called, is being imported by another OS process; start="fork", but other threads
                run.
            OSError: the system cannot start a process.
            BaseException: a signal handler has raised it.

        After any of these errors nothing remains of the OS process.
        """
        try:
            with told_what_to_do():
                self._start(later)
            if not later:
                self.join()
        except BaseException:
            self.kill()
            self.close()
            if self._output is not None:
                self._output.drop()
            raise

    def _start(self, later: bool) -> None:
        """Starts the child. Each object that is made here becomes a field immediately, so that no
        object is lost if a signal handler raises.
        """
        # A program that starts OS processes needs this module; the OS processes do not.
        from weft._hosts import start as _start

        refuse_imports()
        if _pickling.main_is_typed():
            _pickling.send_main_by_value()
        setting = self.setting
        forks = setting.start == "fork"
        if forks:
            _start.refuse_fork()
        self._observed = _remote_observers.settings()
        beginning = pickle.dumps({**_preparation(setting), "observed": self._observed})
        self._beginning = len(beginning)
        self._killed_before = _killed_for_memory()
        threads = dict.fromkeys(_THREADS, str(setting.threads)) if setting.threads else {}
        self._ours, theirs = socket.socketpair()
        self._asks, asked = socket.socketpair()
        # This file holds the settings for the child's start. A child that crashes writes the line
        # at which it crashed at the end of the file.
        self._preparation = preparation = _file()
        self._output = output = _child_output.ChildOutput()
        with theirs, asked:
            preparation.write(beginning)
            preparation.seek(0)
            errors, records = output.open()
            handed = _start.Handed(theirs.fileno(), preparation.fileno(), asked.fileno(), records)
            if not forks:
                self._link = _over_memory(self._ours)
            shared = self._link is not None
            self._mine = {self._ours.fileno(), self._asks.fileno(), *output.descriptors()}
            _forked_before.update(self._mine)
            self._child = _start.begin(
                setting.start, handed, errors, shared, setting.preload, threads, _forked_before
            )
            if not forks or not later:
                _forked_before.difference_update(self._mine)
        output.close_childs()
        self.pid = self._child.pid

    def join(self) -> None:
        """Links the child with this program."""
        from weft._hosts import start as _start

        _forked_before.clear()
        if self.setting.start == "fork":
            self._link = _over_memory(self._ours)
            with contextlib.suppress(OSError):  # the child has died
                self._asks.send(b"1" if self._link is not None else b"0")
        if self._link is None:
            self._link = _native._Link(self._ours.detach(), _name())
        self._ours.close()
        self._member = _members.Member(self._asks)
        _rounds.join(self._member)
        self._member.pid, self._member.output = self.pid, self._output
        self._member.kill = self._child.kill
        self._member.reap = functools.partial(_start.reap, self._child)
        self._output.seen = functools.partial(_remote_observers.receive, self._member)
        self._output.begin()
        _remote_observers.join(self._member, self._observed)
        jobs = _native.Channel("jobs")
        _observers.own(jobs)
        self._jobs = jobs.writer()
        self._link.give(jobs.reader(), "jobs")
        self._member.orphaned = functools.partial(_orphaned, weakref.ref(self))

    def _next_name(self, kind: str = "end") -> str:
        with self._lock:
            self._lent += 1
            return f"{kind}{self._lent}"

    def _let_go(self, names: list[str]) -> None:
        """Makes the child retire the ends of a call that will not be sent, and waits until that is
        done.
        """
        # The child takes the second job only once it has finished the first, so the second write
        # waits for the first job.
        for job in ((None, names), (None, ())):
            while True:
                with contextlib.suppress(Cancelled):  # a cancellation must wait until this is done
                    self._jobs.write(job)
                    break

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        attempt: Attempt | None = None,
    ) -> Any:
        """Runs function(*args, **keywords) in the host, as a process. The ends in the arguments go
        to the host too.

        Raises:
            What the function raised, with its traceback as the cause; Cancelled, once the
            cancellation has ended the process; ProcessDied; BadUse, if something in the call cannot
            be sent.
        """
        if os.getpid() != self._maker:
            raise BadUse(
                f"the OS process {self.pid} was started before a fork, and this is the child: it belongs to the parent. "
                "Make Hosts or an Executor in the child; a process of weft.processes needs neither"
            )
        called = getattr(function, "_weft_called", None)  # the name for the report of a death
        name_of_call = (
            _foreign_exceptions.name_of(function) if called is None else called(*args, **keywords)
        )
        given: dict[str, Any] = {}  # the ends, by their names in the child
        barriers: list[Any] = [] if attempt is None else attempt.barriers
        if attempt is not None and not self.setting.warm:
            attempt.runs(self.pid, self.kill)

        def lend(end: Any) -> str:
            given[name := self._next_name()] = end
            return name

        def lend_of_call(end: Any) -> str:
            if isinstance(end, _native.Barrier):
                barriers.append(end)
            given[name := self._next_name(KEPT if attempt else "end")] = end
            return name

        cancelled: Cancelled | None = None
        ours: tuple[str, ...] = ()
        orders, result = _native.Channel("orders"), _native.Channel("result")
        orders_out, answer = orders.writer(), result.reader()
        show = _observers.elsewhere(self.pid, orders, result)
        try:
            packed = _pickling.dump_call(function, args, keywords, lend_of_call)
            del args, keywords
            # The child has started once it asks for a job. Before that, no other program could be
            # introduced to the child; and if the call were cancelled, no program would hold the
            # ends.
            if not self._up:
                self._jobs.write((None, ()))
                self._up = True
            ours = lend(orders.reader()), lend(result.writer())
            me = _native.current_process()
            if me is not None:  # a deadlock report shows that this process waits for the call
                self._member.away[ours[1]] = me
            sent: list[str] = []
            try:
                while given:
                    name = next(iter(given))
                    end = given.pop(name)
                    if attempt is not None and name.startswith(KEPT):
                        attempt.give(self._link, end, name)
                    else:
                        self._link.give(end, name)
                    del end
                    sent.append(name)
                self._jobs.write((ours if attempt is None else (*ours, attempt.terms), packed))
            except (PeerDied, Retired):
                raise
            except BaseException:  # the child has not received the call, or an end cannot be sent
                self._let_go(sent)
                raise
            while True:
                try:
                    value, failure = answer.read()
                    break
                except Cancelled as error:
                    cancelled = error
                    orders_out.retire()
            # The result has arrived, and is kept even if a handler of the user is cancelled here.
            while True:
                try:
                    self._output.take()  # passes on what the process reported before it ended
                    break
                except Cancelled as error:
                    cancelled = error
        except (PeerDied, Retired) as error:
            if isinstance(error, Retired) and self.alive():
                raise BadUse(
                    f"the OS process {self.pid} has dropped its call of {name_of_call!r}, and no "
                    "result comes: its standard error says why"
                ) from None
            if attempt is not None:
                attempt.died, attempt.cancelled = True, cancelled
            if attempt is None or attempt.last or cancelled is not None:
                # The barriers die even if the child had not received them yet (rule 8.7).
                for barrier in barriers:
                    _native._barrier_dies(barrier)
            raise self._died(name_of_call) from None
        finally:
            self._member.away.pop(ours[1] if ours else "", None)
            show()
            for end in (answer, orders_out):
                with contextlib.suppress(BadUse):  # the end is already retired
                    end.retire()
        # The outcome of the process counts, even if the process was asked to end meanwhile (rules
        # 6.1, 7.2).
        if failure is not None:
            raise _pickling.of_call(failure.exception(), cancelled)
        return _user_values.opened(value)

    def _died(self, name: str) -> ProcessDied:
        refused = why_refused(self._link)
        _deaths.note("deaths")
        self._link.close("it has died")
        _rounds.leave(self._member)
        status = self._child.wait()
        output = self._output.last()
        _remote_observers.has_gone(self._member)
        self._output.close()
        wanted = status == -signal.SIGKILL and _killed_for_memory() > self._killed_before
        return ProcessDied(name, self.pid, status, self._crash(), wanted, output, refused=refused)

    def _crash(self) -> str:
        """Returns what faulthandler has written in the child; "" if it has written nothing."""
        with self._lock:
            if self._preparation.closed:
                return ""
            return os.pread(self._preparation.fileno(), 1 << 16, self._beginning).decode(
                errors="replace"
            )

    def alive(self) -> bool:
        """Returns whether the OS process is still running."""
        return self._child.poll() is None

    def kill(self) -> None:
        """Kills the OS process (SIGKILL)."""
        if self._child is not None and os.getpid() == self._maker:
            self._child.kill()

    def let_go(self) -> None:
        """Makes the OS process end once its calls have ended; close() waits for that. In the child
        of a fork this does nothing, since the OS process belongs to the parent.
        """
        if os.getpid() != self._maker:
            return
        if self._member is not None:
            self._member.closing = True
        if self._member is None:  # join() did not finish: the child ends when its sockets close
            # From now on the system can give the numbers of these descriptors to other files.
            _forked_before.difference_update(self._mine)
            for by in (self._ours, self._asks):
                if by is not None:
                    by.close()
        if self._jobs is not None:
            _observers.own_no_more(self._jobs.channel)
            with contextlib.suppress(BadUse, ChannelEnd):
                self._jobs.retire()
        elif self._link is not None:
            self._link.close("the host could not be joined")

    def close(self) -> None:
        """Releases the OS process, and waits until it has ended. Does nothing in the child of a
        fork.
        """
        if os.getpid() != self._maker:
            return
        self.let_go()
        if self._child is not None:
            self._child.wait()
        with self._lock:
            if self._preparation is not None:
                self._preparation.close()
        if self._output is not None:
            self._output.close()
        if self._link is not None:
            self._link.close("the host was closed")
        if self._member is not None:
            _rounds.leave(self._member)


def _orphaned(host: weakref.ref[Host]) -> None:
    """Called when the program that began the network has ended. Ends the session with a host, if
    the Host still exists.
    """
    if (one := host()) is not None:
        one._link.close("the program that began the network has ended")


def run_away(
    function: Any,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    attempt: Attempt | None = None,
    setting: Setting | None = None,
) -> Any:
    """Runs a function as a process in its own OS process. Raises what Host.call() raises."""
    host = Host(setting)
    try:
        host.begin()
        return host.call(function, args, keywords, attempt)
    finally:
        host.close()


def cpus_of_this_process() -> set[int]:
    """Returns the CPUs on which this process is allowed to run; all CPUs of the machine if the
    system does not report them.
    """
    with contextlib.suppress(AttributeError, OSError):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def cpus(given: Iterable[int] | None) -> frozenset[int] | None:
    """Returns the given CPUs as a set; None if none are given.

    Raises:
        BadUse: `given` is not a set of numbers, or this process may not use one of them.
    """
    if given is None:
        return None
    try:
        wanted = frozenset(operator.index(cpu) for cpu in given)
    except TypeError:
        raise BadUse(
            f"affinity: a set of CPUs for each host, as [{{0}}, {{1}}], or 'spread'; not {given!r} for one"
        ) from None
    mine = cpus_of_this_process()
    if not wanted or not wanted <= mine:
        raise BadUse(
            f"affinity: {sorted(wanted)} are not CPUs of this process, which has {sorted(mine)}"
        )
    return wanted

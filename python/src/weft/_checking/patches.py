"""The world of a checked function. Everything that would differ from run to run is virtual or
seeded. Calls that would stop all processes, or have an effect outside the program, are refused
where they happen (rules 17.3, 17.9).

Invariants
- A World is entered once for a whole check, and restores all that it has replaced. Between two
  runs, on other threads and in Weft's own code, a replaced function does what the real one does.
- Each refusal is recorded in `refused`, even if the program catches the error, and ends the check.
- The check measures with `real`, which is never replaced.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import inspect
import os
import random
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from weft._checking.options import stubbed
from weft.errors import BadUse

# After this many seconds without an operation of Weft, the function counts as hanging.
NOTHING_FOR = 10.0
EPOCH = 1_000_000_000  # what time.time() returns when a run begins
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120
_PYTHONS = sysconfig.get_path("stdlib") + os.sep
LIBRARY = tuple(
    {sysconfig.get_path(which) + os.sep for which in ("stdlib", "platstdlib", "purelib", "platlib")}
)


class _Real(NamedTuple):
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    urandom: Callable[[int], bytes]
    lock: Callable[[], Any]
    rlock: Callable[[], Any]


real = _Real(time.perf_counter, time.sleep, os.urandom, threading.Lock, threading.RLock)


class Place(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""  # noqa: PTH119


def place(frame: FrameType | None = None) -> Place:
    """Returns the innermost line that is neither Weft's nor Python's; an empty Place if there is
    none.
    """
    at = frame or sys._getframe(1)
    while at is not None:
        file = at.f_code.co_filename
        if not (file.startswith((PACKAGE, *LIBRARY, "<frozen"))):
            return Place(file, at.f_lineno)
        at = at.f_back  # type: ignore[assignment]
    return Place("", 0)


class Refused(BadUse):
    """The program does something that a checked program cannot do. The text says what to do
    instead."""


def by_weft() -> bool:
    """Returns whether Weft's own code calls the replaced function."""
    at = sys._getframe(2)
    while (
        at is not None
        and at.f_code.co_filename.startswith(_PYTHONS)
        and "weft" not in at.f_code.co_filename
    ):
        at = at.f_back  # type: ignore[assignment]
    return at is not None and at.f_code.co_filename.startswith(PACKAGE)


class World:
    """`with World(now, seed, stub): …` for a check; `with world.run():` for each run of the
    function.

    Args:
        now: returns the time of the run, in seconds.
        seed: the seed of all random numbers.
        stub: names of functions that are not called.
        sleep: lets a thread process or a greenlet sleep; it returns False if the caller is neither.
    """

    def __init__(
        self,
        now: Callable[[], float],
        seed: int = 1,
        stub: tuple[str, ...] = (),
        sleep: Callable[[float], bool] = lambda seconds: False,
    ) -> None:
        self.now = now
        self.refused: list[Refused] = []
        self.notes: dict[str, None] = {}  #: sentences for the report, each once
        self.outputs = 0  #: how often something was written outside in the runs so far
        self._seed = seed
        self._stub = stub
        self._sleep = sleep
        self._active = False
        self.driven = False  #: whether the coroutine of an asyncio.run() is under way (loops.py)
        self._thread = threading.get_ident()
        self._skipped = 0.0
        # The generator is seeded again when a run first uses it; most runs never do.
        self._bytes = random.Random(seed)
        self._drawn = False
        self._late: set[str] = set()  # modules in which _patch_late() has replaced functions
        self._saved: list[tuple[Any, str, Any]] = []
        self._before: Any = None

    # --- entering and leaving ---

    def __enter__(self) -> World:
        self._seeds = random.getstate()
        try:
            self._enter()
        except BaseException:  # a stub is not possible, so everything that was replaced is restored
            self.__exit__()
            raise
        return self

    def _enter(self) -> None:
        replaced = dict(self._replacements())
        for (holder, name), new in replaced.items():
            self._set(holder, name, new)
        by_old = {
            id(old): new for (_, _, old), new in zip(self._saved, replaced.values(), strict=True)
        }
        self._replace_copies(by_old)
        for name in self._stub:
            holder, last = stubbed(name)
            self._set(holder, last, self._stubbing(getattr(holder, last)))
        _watch(self)

    def __exit__(self, *_: object) -> None:
        _watch(None)
        for holder, name, old in reversed(self._saved):
            setattr(holder, name, old)
        self._saved.clear()
        self._late.clear()
        random.setstate(self._seeds)

    def _set(self, holder: Any, name: str, new: Any) -> None:
        self._saved.append((holder, name, holder.__dict__[name]))
        setattr(holder, name, new)

    def _replace_copies(self, by_old: dict[int, Any]) -> None:
        """Replaces the copies in the program's modules, as made by `from time import monotonic`."""
        for module in tuple(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if (
                not isinstance(module, ModuleType)
                or not file
                or file.startswith((PACKAGE, *LIBRARY))
            ):
                continue
            for name, value in tuple(vars(module).items()):
                new = by_old.get(id(value))
                if new is not None and callable(value):
                    self._set(module, name, new)

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Resets all that is virtual or seeded, for the run that the block contains."""
        self._skipped = 0.0
        self._drawn = False
        random.seed(self._seed)
        if "numpy" in sys.modules:
            import numpy

            numpy.random.seed(self._seed % 2**32)
        self._patch_late()
        if "uuid" in sys.modules:
            sys.modules["uuid"]._last_timestamp = None  # type: ignore[attr-defined]
        self._active = True
        try:
            yield
        finally:
            self._active = False

    @property
    def here(self) -> bool:
        return self._active and threading.get_ident() == self._thread

    def passes(self, seconds: float) -> None:
        """Advances the time while no process goes on."""
        self._skipped += seconds

    def refuse(self, what: str, instead: str, frame: FrameType | None = None) -> Refused:
        """Records that the program does `what`, at the line of `frame` or, without a frame, of the
        caller. `instead` says what to do instead. Returns the error to raise.
        """
        error = Refused(f"{place(frame or sys._getframe(1))}: {what}: {instead}")
        if len(self.refused) < 10:
            self.refused.append(error)
        return error

    def tell(self, sentence: str) -> None:
        if len(self.notes) < 20:
            self.notes[sentence] = None

    # --- what is replaced ---

    def _replacements(self) -> Iterator[tuple[tuple[Any, str], Any]]:
        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
            start = EPOCH if name == "time" else 0
            yield (time, name), self._clock(getattr(time, name), start, 1)
            yield (
                (time, f"{name}_ns"),
                self._clock(getattr(time, f"{name}_ns"), start, 1_000_000_000),
            )
        yield (time, "sleep"), self._sleeping(time.sleep)
        urandom = self._urandom(os.urandom)
        yield (os, "urandom"), urandom
        yield (random, "_urandom"), urandom
        yield (random.Random, "seed"), self._seeding(random.Random.seed)

        def lock() -> Any:
            return real.lock() if by_weft() else _Lock(self)

        def rlock() -> Any:
            return real.rlock() if by_weft() else _RLock(self)

        yield (threading, "Lock"), lock
        yield (threading, "_allocate_lock"), lock
        yield (threading, "RLock"), rlock
        yield (
            (threading.Thread, "start"),
            self._refusing(
                threading.Thread.start,
                "starts a thread that is no process of Weft",
                "make it a process (weft.threads.process), which is checked with the others",
            ),
        )
        from weft._checking import loops

        yield from loops.of_weft(self)
        for name in ("_exit", "abort"):
            yield (os, name), self._refusing(getattr(os, name), f"calls os.{name}", _LEAVE_OUT)

    def _stream(self) -> random.Random:
        """Returns the stream of random bytes, which begins anew in each run."""
        if not self._drawn:
            self._drawn = True
            self._bytes.seed(self._seed)
        return self._bytes

    def _patch_late(self) -> None:
        """Replaces functions of modules that most programs do not import, once a program has
        imported them.
        """
        for module, replacements in _LATE.items():
            if module in sys.modules and module not in self._late:
                self._late.add(module)
                for (holder, name), new in replacements(self, sys.modules[module]):
                    self._set(holder, name, new)

    def _of_multiprocessing(self, module: Any) -> Iterator[tuple[tuple[Any, str], Any]]:
        yield (
            (module.BaseProcess, "start"),
            self._refusing(
                module.BaseProcess.start,
                "starts an OS process by multiprocessing",
                "make it a process of Weft (weft.processes), which is simulated while it is checked",
            ),
        )

    def _of_asyncio(self, module: Any) -> Iterator[tuple[tuple[Any, str], Any]]:
        base = module.BaseEventLoop
        yield (base, "run_forever"), self._refusing(base.run_forever, *_NO_LOOP)

    def _of_runners(self, module: Any) -> Iterator[tuple[tuple[Any, str], Any]]:
        del module
        return importlib.import_module("weft._checking.loops").replacements(self)  # type: ignore[no-any-return]

    def _of_native(self, module: Any) -> Iterator[tuple[tuple[Any, str], Any]]:
        old = module._made

        def made(name: str, on: Any, *args: Any) -> Any:
            if self.here and on != "pool":
                where = "on a thread of its own" if on == "thread" else "in another OS process"
                raise self.refuse(
                    f"makes {name}, a process of a native component {where}, which a check cannot stop",
                    "write it as a coroutine (weft/component_tasks.hpp), which runs on the pool unless told otherwise, "
                    "or put a process in Python in its place",
                )
            return old(name, on, *args)

        yield (module, "_made"), made

    def _of_uuid(self, module: Any) -> Iterator[tuple[tuple[Any, str], Any]]:
        for name in ("_generate_time_safe", "_UuidCreate"):
            if hasattr(module, name):
                yield (module, name), None

    def _clock(self, old: Callable[[], Any], start: int, unit: int) -> Callable[[], Any]:
        def clock() -> Any:
            if not self.here or by_weft():
                return old()
            seconds = self.now() + self._skipped
            return start + seconds if unit == 1 else start * unit + round(seconds * unit)

        return functools.wraps(old)(clock)

    def _sleeping(self, old: Callable[[float], None]) -> Callable[[float], None]:
        def sleep(seconds: float) -> None:
            if not self.here or by_weft():
                return old(seconds)
            if seconds < 0:
                raise ValueError("sleep length must be non-negative")
            # A caller without its own stack cannot sleep, so the time is advanced and no process
            # goes on meanwhile.
            if not self._sleep(seconds):
                self.passes(seconds)
            return None

        return functools.wraps(old)(sleep)

    def _urandom(self, old: Callable[[int], bytes]) -> Callable[[int], bytes]:
        def urandom(size: int, /) -> bytes:
            return self._stream().randbytes(size) if self.here and not by_weft() else old(size)

        return functools.wraps(old)(urandom)

    def _seeding(self, old: Callable[..., None]) -> Callable[..., None]:
        def seed(it: random.Random, a: Any = None, version: int = 2) -> None:
            if a is None and self.here and it is not self._bytes:
                a = self._stream().getrandbits(64)
            old(it, a, version)

        return functools.wraps(old)(seed)

    def _refusing(self, old: Callable[..., Any], what: str, instead: str) -> Callable[..., Any]:
        def refusing(*args: Any, **named: Any) -> Any:
            if self.here and not by_weft():
                for coroutine in filter(inspect.iscoroutine, args):
                    coroutine.close()  # no code will await this coroutine
                raise self.refuse(what, instead)
            return old(*args, **named)

        return functools.wraps(old)(refusing)

    def _stubbing(self, old: Callable[..., Any]) -> Callable[..., Any]:
        def stub(*args: Any, **named: Any) -> Any:
            return None if self._active else old(*args, **named)

        return functools.wraps(old)(stub)


_NO_LOOP = (
    "runs an event loop",
    "check the network without the loop: the function may call weft's run(), or asyncio.run() of a coroutine that "
    "awaits only networks (run_async) and asyncio.sleep",
)
_LATE: dict[str, Callable[[World, Any], Iterator[tuple[tuple[Any, str], Any]]]] = {
    "multiprocessing.process": World._of_multiprocessing,
    "asyncio.base_events": World._of_asyncio,
    "asyncio.runners": World._of_runners,
    "uuid": World._of_uuid,
    "weft.native": World._of_native,
}
_LEAVE_OUT = "leave it out, or --stub the function of yours that calls it"
_INSTEAD = (
    "nobody could let go of it, since one process runs at a time; use a channel (a lock is a process that serves, "
    "or a channel with capacity=1), or let go of it before the next operation"
)


class _Lock:
    """A lock that refuses to wait. All processes run on one thread, so all would wait together with
    the one that waits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = real.lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._world.here:
            return bool(self._lock.acquire(blocking, timeout))
        if self._lock.acquire(False):
            return True
        if not blocking:
            return False
        raise self._world.refuse("waits for a lock (threading) that is not free", _INSTEAD)

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()


class _RLock(_Lock):
    """A _Lock that its owner can acquire again. All processes run on one thread, so the owner is a
    process, not a thread.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._owner: Any = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        me = _who()
        if self._owner == me:
            self._count += 1
            return True
        if not super().acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        if self._owner != _who():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._owner = None
            super().release()

    # threading.Condition calls this method.
    def _is_owned(self) -> bool:
        return bool(self._owner == _who())

    def _release_save(self) -> Any:
        state = self._count, self._owner
        self._count, self._owner = 0, None
        super().release()
        return state

    def _acquire_restore(self, state: Any) -> None:
        super().acquire()
        self._count, self._owner = state


def _who() -> Any:
    from weft._extension import native

    process = native.current_process()
    return (threading.get_ident(), None if process is None else id(process))


# --- calls that write outside, or end the program

_OUTSIDE = {
    "socket.connect": "connects a socket",
    "socket.bind": "binds a socket",
    "socket.sendto": "sends to a socket",
    "subprocess.Popen": "starts a program",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "shutil.rmtree": "removes a folder",
    "sqlite3.connect": "opens a database",
}
_LEAVING = ("os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system")
_watched: World | None = None
_hooked = False


# Module → the function that is called once the module is imported.
_awaited: dict[str, Callable[[], object]] = {}


@contextlib.contextmanager
def when_imported(module: str, then: Callable[[], object]) -> Iterator[None]:
    """Calls `then` as soon as the module is imported by a checked function, or between two of its
    runs.
    """
    _awaited[module] = then
    try:
        yield
    finally:
        _awaited.pop(module, None)


def _imports(module: str) -> None:
    then = _awaited.pop(module, None)
    if then is not None:
        importlib.import_module(module)
        then()


def _watch(world: World | None) -> None:
    """From now on records the effects that runs of this World have outside the program; None ends
    the recording. The audit hook remains until the interpreter ends; without a World it only
    tests two variables.
    """
    global _watched, _hooked
    _watched = world
    if world is not None and not _hooked:
        _hooked = True
        sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "import" and _awaited:
        return _imports(args[0])
    world = _watched
    if world is None or not world.here:
        return None
    if event == "open":
        path, mode, flags = args
        writes = any(c in mode for c in "wax+") if isinstance(mode, str) else False
        if not writes and not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
            return None
        what = "writes to a file" if not isinstance(path, int) else "writes to a descriptor"
        if isinstance(path, str) and path.startswith(("/dev/null", "/dev/shm", "/proc/")):
            return None
    elif event in _LEAVING:
        if not by_weft():
            raise world.refuse(f"calls {event}", _LEAVE_OUT)
        return None
    else:
        found = _OUTSIDE.get(event)
        if found is None:
            return None
        what = found
    if not by_weft():
        world.outputs += 1
        world.tell(
            f"{place(sys._getframe(1))} {what}, once in each schedule; leave it out of the check by --stub FUNCTION"
        )
    return None


# --- functions that never return ------------------------------------------------------------------


class NeverBack(BaseException):
    """Raised if the function has not returned to Weft for a long time. The text says where the
    function is."""


@contextlib.contextmanager
def alarm(seconds: float, progress: Callable[[], Any]) -> Iterator[None]:
    """Raises NeverBack in the main thread if progress() does not change for `seconds`. Nothing is
    raised if the program uses SIGALRM itself, or if the check runs on another thread.
    """
    usable = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    )
    if not usable:
        yield
        return
    last = [progress(), 0]

    def look(_: int, frame: FrameType | None) -> None:
        now = progress()
        if now != last[0]:
            last[0] = now
            return
        at = place(frame)
        raise NeverBack(
            f"{at}: the function has not come to an operation of Weft for {seconds:g} s, so nothing can be decided: "
            "it computes without end, or waits for something that is not Weft's (a lock, a socket)"
        )

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def silenced() -> Iterator[Callable[[], str]]:
    """Captures what the function prints. The output is shown for the reported schedule only;
    otherwise it would be printed a thousand times.
    """
    import io

    kept = io.StringIO()
    saved = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = kept
    try:
        yield kept.getvalue
    finally:
        sys.stdout, sys.stderr = saved


def outside_names(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yields, with their names, the objects that a function uses but does not make: those in its
    closure, its defaults, its partial arguments, and the globals that it names.
    """
    while isinstance(function, functools.partial):
        yield from ((f"argument {n}", value) for n, value in enumerate(function.args))
        yield from function.keywords.items()
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(
        code.co_freevars, getattr(function, "__closure__", None) or (), strict=False
    ):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents
    namespace = getattr(function, "__globals__", {})
    for name in code.co_names:
        if name in namespace and not hasattr(builtins, name):
            yield name, namespace[name]
    yield from (("a default", value) for value in getattr(function, "__defaults__", None) or ())

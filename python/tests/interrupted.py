"""A signal whose handler raises arrives at every place of Weft's Python code where Python runs
handlers (rule 6.7).

    .venv/bin/python python/tests/interrupted.py [EVERY [PROGRAM…]]   last line: N passed, N failed

EVERY: only every EVERY-th of these places is used. For each of them the program is run in the main
thread, and Ctrl-C arrives at that place. Then the run must leave nothing behind: no descriptor, no
OS process, no thread, no handler of a signal; and the program runs again. A program that hangs is
ended from outside; the last line names its place.

Python runs handlers where a function begins, and after a call (CPython 3.11). A descriptor that a
call has just returned, as a number, has no owner yet at that point, and where `__exit__` begins the
block has not been left. The few places of these two kinds are left out (BARE). So are finalisers,
which let no exception out.
"""

from __future__ import annotations

import asyncio
import contextlib
import dis
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from parts import hows

import weft
import weft.coroutines as co
import weft.threads as th
from weft import observe
from weft._hosts import child_output
from weft.processes import Channel, Executor, Hosts, Supervisor, process

OURS = str(Path(weft.__file__).parent)
BARE = {  # function → the name that was loaded last before the call
    "ChildOutput.open": "pipe",
    "_file": "MFD_CLOEXEC",
    "_over_memory": "fileno",
    "_begin_by_server": "connect_to_new_process",
    "_OfServer.__init__": "RESUME",
    "Host.join": "detach",
    "Hosts.__exit__": "RESUME",
    "Timeout.__exit__": "RESUME",
    "Trace.__init__": "O_TRUNC",
    "Watchdog.__exit__": "RESUME",
}


@process
def doubles(inp: Any, out: Any) -> None:
    for n in inp:
        out.write(2 * n)


@co.process
async def counts(out: Any) -> None:
    for n in range(3):
        await out.write(n)


@co.process
async def adds(inp: Any) -> int:
    return sum([n async for n in inp])


def square(n: int) -> int:
    return n * n


def hosts() -> Any:
    with Hosts(2, start="forkserver") as both:
        a, b = Channel("a"), Channel("b")
        return th.Parallel(
            counts(a.writer()), doubles.on(both)(a.reader(), b.writer()), adds(b.reader())
        )


def executor() -> Any:
    with Executor(2, multiprocessing.get_context("forkserver")) as pool:
        return list(pool.map(square, range(20)))


def guest() -> Any:
    async def main() -> Any:
        a = Channel("a")
        return await co.run_async(counts(a.writer()), adds(a.reader()))

    return asyncio.run(main())


def limits() -> Any:
    c = Channel("c", capacity=1)
    r, w = c.reader(), c.writer()
    with th.timeout(1000):
        w.write(1)
        r.read()
        with th.move_on_after(0):
            r.read()
    return True


@process
def mortal(inp: Any, out: Any, mark: str) -> None:
    while True:
        with inp.extended() as n:
            if n == 1 and not Path(mark).exists():
                Path(mark).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            out.write(2 * n)


def supervised() -> Any:
    a, b = Channel("a"), Channel("b")
    with tempfile.TemporaryDirectory() as folder, Hosts(1, start="forkserver") as one:
        again = mortal.on(Supervisor(one, restarts=3, backoff=0))
        died = f"{folder}/died"
        return hows(
            th.Parallel(counts(a.writer()), again(a.reader(), b.writer(), died), adds(b.reader()))
        )


def network() -> Any:
    a = Channel("a")
    return co.run(counts(a.writer()), adds(a.reader()))


def observed() -> Any:
    with observe.measuring(), observe.watchdog(100), observe.watching_deadlocks():
        return network()


def traced_too() -> Any:
    with tempfile.TemporaryDirectory() as folder, observe.tracing(f"{folder}/trace"):
        return network()


def observed_there() -> Any:
    with (
        Hosts(1, start="forkserver") as one,
        observe.watching_deadlocks(),
        observe.watchdog(100),
    ):
        a, b = Channel("a"), Channel("b")
        return th.Parallel(
            counts(a.writer()), doubles.on(one)(a.reader(), b.writer()), adds(b.reader())
        )


PROGRAMS: dict[str, Callable[[], Any]] = {
    f.__name__: f
    for f in (hosts, executor, guest, limits, supervised, observed, traced_too, observed_there)
}


# --- where handlers run ---------------------------------------------------------------------------

_places: dict[CodeType, set[int]] = {}


def places(code: CodeType) -> set[int]:
    """Returns the instructions before which a handler may run. Python treats an exception of the
    handler like one of the call. So an instruction with which a block of `try` or `with` ends after
    the call is left out: there the tracer's exception would be raised too late.
    """
    found = _places.get(code)
    if found is None:
        found = _places[code] = set()
        blocks = dis._parse_exception_table(code)  # type: ignore[attr-defined]

        def around(offset: int) -> set[int]:
            return {b.target for b in blocks if b.start <= offset < b.end}

        before, at, name = "", 0, ""
        bare = BARE.get(code.co_qualname)  # type: ignore[attr-defined]  # not in 3.10
        for i in dis.get_instructions(code):
            if (
                before in ("CALL", "CALL_FUNCTION_EX", "RESUME")
                and bare not in (name, before)
                and around(at) == around(i.offset)
            ):
                found.add(i.offset)
            if i.opname in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME"):
                name = str(i.argval)
            before, at = i.opname, i.offset
    return found


def in_finaliser(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename.endswith("weakref.py"):
            return True
        frame = frame.f_back
    return False


Place = tuple[str, int, str, int]


class Tracer:
    """Records the places that a program passes, in order, or makes Ctrl-C arrive at one of them."""

    def __init__(self, at: int | None = None, number: int = signal.SIGINT) -> None:
        self._number = number
        self.passed: list[Place] = []
        self.where = ""
        self._at = at
        self._n = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event == "call":
            if not code.co_filename.startswith(OURS) or in_finaliser(frame):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode" and frame.f_lasti in places(code):
            if self._at is None:
                back = frame.f_back
                outer = (back.f_code.co_filename, back.f_lasti) if back is not None else ("", 0)
                self.passed.append((code.co_filename, frame.f_lasti, *outer))
            elif self._n == self._at:
                sys.settrace(None)
                file = Path(code.co_filename).name
                self.where = f"{file}:{frame.f_lineno} ({frame.f_lasti})"
                print("at", self.where, end=" ", flush=True)
                signal.raise_signal(self._number)
            self._n += 1
        return self


def traced(f: Callable[[], Any], tracer: Tracer) -> Any:
    sys.settrace(tracer)
    try:
        return f()
    finally:
        sys.settrace(None)


# --- what a program leaves behind -----------------------------------------------------------------


def there_is() -> tuple[int, int, int, Any]:
    """Returns the numbers of descriptors, of OS processes (the server and the tracker remain) and
    of threads, and the handler of Ctrl-C.
    """
    children = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has just ended
            children += len((task / "children").read_text().split())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return descriptors, children, threading.active_count(), signal.getsignal(signal.SIGINT)


def settled(before: tuple[int, int, int, Any]) -> None:
    """Waits until no number of there_is() is larger than in `before`, and the handler of Ctrl-C is
    the one in `before`."""
    now = there_is()
    shown = None
    while any(n > b for n, b in zip(now[:3], before[:3], strict=True)) or now[3] != before[3]:
        gc.collect()
        if now != shown:
            print("left:", now, "before:", before, end=" ", flush=True)
            shown = now
        for _ in range(1000):
            os.sched_yield()
        now = there_is()


def main(every: int, names: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # prints where the program hangs
    wrong = tried = 0
    for name in names:
        f = PROGRAMS[name]
        f()
        good = f()
        all_places = Tracer()
        traced(f, all_places)
        gc.collect()
        while child_output._all:  # the standard error of a child is read until it ends
            os.sched_yield()
        before = there_is()
        first: dict[Place, int] = {}
        for n, place in enumerate(all_places.passed):
            first.setdefault(place, n)
        for n in sorted(first.values())[::every]:
            tracer = Tracer(n)
            print(f"{name} {n}", end=" ", flush=True)
            got = "it went on"
            try:
                traced(f, tracer)
            except KeyboardInterrupt:
                got = ""
            except BaseException as error:
                got = f"it raised {error!r}"
            settled(before)
            if not got or not tracer.where:
                got = "" if f() == good else "it does not run again"
                settled(before)
            print(got or "", flush=True)
            tried += 1
            wrong += bool(got)
    print(f"{tried - wrong} passed, {wrong} failed")
    return wrong


if __name__ == "__main__":
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    sys.exit(main(step, sys.argv[2:] or list(PROGRAMS)) != 0)

"""Processes of the operating system that test_processes.py starts; they have a separate module, so
that an OS process imports nothing else.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import weft.coroutines as co
import weft.threads as th
from weft.processes import (
    BadUse,
    Barrier,
    Cancelled,
    Channel,
    Input,
    Output,
    Parallel,
    PeerDied,
    Retired,
    poison,
    process,
    select,
)


class Unsendable:
    def __reduce__(self) -> Any:
        raise TypeError("not me")


class Picky(Exception):
    """An exception that can be pickled, but cannot be rebuilt."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"picky {a} {b}")


@process
def source(out: Any, n: int, first: int = 0) -> int:
    for i in range(first, first + n):
        out.write(i)
    return os.getpid()


@process
def total(inp: Any) -> int:
    return sum(inp)


@process
def double(inp: Any, out: Any) -> None:
    for v in inp:
        out.write(2 * v)


@process
async def double_async(inp: Any, out: Any) -> None:
    async for v in inp:
        await out.write(2 * v)


@process
def write_all(out: Any, values: list[Any]) -> None:
    for v in values:
        out.write(v)


@process
def fail(error: BaseException) -> None:
    raise error


@process
def ends_with_another(meeting: str, writes: bool, path: str) -> None:
    """Ends only when another OS process is also about to end."""

    class Meets:
        def flush(self) -> None:
            # The stream must be flushed only once, and the interpreter flushes it too.
            sys.stdout = sys.__stdout__
            # open() of a FIFO waits until the other process opens it too.
            with Path(meeting).open("wb" if writes else "rb"):
                Path(path).write_text("met", encoding="utf-8")

    sys.stdout = Meets()  # type: ignore[assignment]  # the interpreter flushes this stream at the end


@process
# Returns whether the garbage collector is on, and whether it has frozen objects.
def collector() -> tuple[bool, bool]:
    return gc.isenabled(), gc.get_freeze_count() > 0


@process
def takes_memory(n: int) -> int:
    return len(bytearray(n))


@process
def fail_pickily() -> None:
    raise Picky(1, 2)


@process
def poison_it(out: Any, strength: int) -> None:
    poison(out, strength=strength)


@process
def die(how: str, inp: Any = ()) -> None:
    """Ends this OS process, once `inp` has ended, in the way that `how` names."""
    for _ in inp:
        pass
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "segv":
        import ctypes

        ctypes.string_at(0)
    elif how == "exit":
        os._exit(3)
    sys.exit(4)


@process
def write_then_die(out: Any, n: int) -> None:
    for i in range(n):
        out.write(i)
    os.kill(os.getpid(), signal.SIGKILL)


@process
def wait_to_be_cancelled(ready: Any, inp: Any, path: str) -> None:
    ready.write(os.getpid())
    try:
        inp.read()
    except Cancelled:
        Path(path).write_text("cancelled", encoding="utf-8")
        raise


@process
def value_of_cancelled(ready: Any, out: Any, path: str) -> None:
    ready.write(None)
    try:
        out.write("mine yet")
    except Cancelled as error:
        Path(path).write_text(str(error.value), encoding="utf-8")
        raise


def inner_end() -> Any:
    """Returns an end that is closed."""
    end = Channel("c").reader()
    end.retire()
    return end


@process
def bad_writes(out: Any) -> list[str]:
    """Writes values that are refused, each at its write; the channel remains usable."""
    messages = []
    for value in (Unsendable(), [lambda: 0], [inner_end()], Channel("d")):
        try:
            out.write(value)
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    out.write("good")
    return messages


@process
def bad_uses(inp: Any, out: Any) -> list[str]:
    messages = []
    for use in (
        lambda: select(inp, Barrier(1)),
        lambda: inp.channel.reader(),
        lambda: inp.channel.writer(),
    ):
        try:
            use()
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    return messages


@process
def nested(out: Any, n: int) -> int:
    """Passes its own end on to a process that it starts."""
    (pid,) = Parallel(source(out, n))
    return int(pid)


@process
def closes_early(out: Any) -> str:
    out.write(1)
    out.retire()
    time.sleep(0)
    try:
        out.write(2)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "wrote"


@process
def ends_quietly(inp: Any) -> None:
    while True:
        inp.read()


@process
def inner_network(n: int) -> int:
    """Runs a network of coroutines within an OS process."""

    @co.process
    async def numbers(out: Any) -> None:
        for i in range(n):
            await out.write(i)

    @co.process
    async def add(inp: Any) -> int:
        return sum([v async for v in inp])

    c = Channel("inner")
    return int(Parallel(numbers(c.writer()), add(c.reader()))[1])


@process
def loses_its_peer() -> None:
    """Runs a network and fails, because a process of that network fails when its writer dies."""

    @th.process
    def reads(inp: Any) -> None:
        inp.read()

    c = Channel("c")
    writer = c.writer()
    reader = reads(c.reader())
    writer.die()
    Parallel(reader)


@process
def lost_writer(inp: Any) -> tuple[list[int], str]:
    """Returns the values that it has read, and how the channel ended."""
    got = []
    try:
        while True:
            got.append(inp.read())
    except PeerDied as error:
        return got, str(error.in_doubt)


@process
def fails_when_cancelled(ready: Any, inp: Any) -> None:
    ready.write(None)
    try:
        inp.read()
    except Cancelled:
        raise ValueError("second") from None


@process
def reads_past_a_death(ready: Any, inp: Any, again: bool) -> Any:
    """Reads a value that cannot be rebuilt; then reads again (`again`), or ends."""
    ready.write(None)
    try:
        inp.read()
    except PeerDied:
        return inp.read() if again else None
    return "nothing died"


@process
def environment() -> tuple[int, list[str], str, str]:
    return os.getpid(), sys.argv, str(Path.cwd()), sys.stdin.read()


@process
def unpicklable_result() -> Any:
    return Unsendable()


@process
def total_of_text(inp: Any) -> str:
    return "".join(inp.read() for _ in range(3))


@process
def first_of(inp: Any) -> Any:
    return inp.read()


@process
def ready_then_total(ready: Any, inp: Any) -> Any:
    ready.write(None)
    return inp.read()


@process
def echo(inp: Any, out: Any) -> None:
    for v in inp:
        out.write(v)


@process
def sums_and_scribbles(inp: Any, out: Any) -> None:
    """Writes the sum of each array; then changes the array, which belongs to the reader."""
    for a in inp:
        out.write(a.sum())
        a[:] = -1


@process
def arrays(out: Any, n: int, size: int, then: str = "") -> None:
    import numpy

    for i in range(n):
        out.write(numpy.full(size, i))
    if then == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@process
def keeps(inp: Any, n: int) -> list[int]:
    """Reads n arrays, keeps them all, and checks them afterwards."""
    kept = [inp.read() for _ in range(n)]
    return [int(a[0]) if (a == a[0]).all() else -1 for a in kept]


@process
def takes_one_and_dies(inp: Any) -> None:
    inp.read()
    os.kill(os.getpid(), signal.SIGKILL)


@process
def length_of(text: str) -> tuple[int, str]:
    return len(text), text


@process
def keeps_last(inp: Any) -> list[int]:
    return [int(a[0]) for a in inp]


# --- for hosts ------------------------------------------------------------------------------------

memory: list[Any] = []


def remember(what: Any) -> None:
    memory.append(what)


def fails_at_once() -> None:
    raise ZeroDivisionError("at once")


@process
def remembered() -> Any:
    return memory[-1]


@process
def segments() -> int:
    """Returns how many of Weft's segments are mapped in this OS process."""
    return Path("/proc/self/maps").read_text().count("memfd:weft")


@process
def who() -> int:
    return os.getpid()


@process
async def who_async() -> int:
    return os.getpid()


@th.process
def thread_who() -> int:
    return os.getpid()


@co.process
async def who_async_here() -> int:
    return os.getpid()


@process
def settings() -> dict[str, Any]:
    import resource

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "cpus": os.sched_getaffinity(0),
        "nice": os.nice(0),
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        "threads": [os.environ[n] for n in names],
        "preloaded": "colorsys" in sys.modules,
    }


@process
def reads_when_ready(ready: Any, inp: Any) -> Any:
    ready.write(os.getpid())
    return inp.read()


# --- for executors --------------------------------------------------------------------------------


def power(a: Any, b: int = 2) -> Any:
    return a**b


def inverse(a: int) -> float:
    return 1 / a


def wait_for_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def unsendable() -> Any:
    return Unsendable()


def exits() -> None:
    sys.exit(3)


def exits_at_once() -> None:
    os._exit(3)


def memory_and_module() -> tuple[Any, bool, str]:
    return memory[-1], "colorsys" in sys.modules, os.environ["OMP_NUM_THREADS"]


def meet(mine: str, other: str) -> int:
    """Opens two FIFOs, one to write and one to read. Two calls of this function meet there."""
    first, second = sorted((mine, other))
    for path in (first, second):
        with Path(path).open("w" if path == mine else "r", encoding="utf-8") as file:
            if path == mine:
                file.write("here")
            else:
                assert file.read() == "here"
    return os.getpid()


def its_pid(_: int) -> int:
    return os.getpid()


def doubled(a: Any) -> Any:
    return 2 * a


@process
def virtual_run() -> None:
    """Checks that a run in virtual time is refused in this OS process, even on a thread of ordinary
    code."""
    met: list[BaseException] = []

    def ordinary() -> None:
        process = thread_who()
        try:
            th.run(process, clock="virtual")
        except BadUse as error:
            met.append(error)
            th.run(process)

    thread = threading.Thread(target=ordinary)
    thread.start()
    thread.join()
    raise met[0]


# --- for children ---------------------------------------------------------------------------------


@process
def says() -> None:
    import logging
    import warnings

    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\n")
    print("complained", file=sys.stderr)
    warnings.warn("warned", stacklevel=1)
    logging.getLogger("its own").warning("logged")


@process
def forks(out: Any, kill: bool = False) -> tuple[int, int]:
    out.write(1)
    pid = os.fork()
    if pid == 0:
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(7)
    status = os.waitpid(pid, 0)[1]
    out.write(2)
    return status, os.getpid()


@process
def leaves(code: Any) -> None:
    sys.exit(code)


@process
def waits_for_ever(begun: Any) -> None:
    begun.write(None)
    signal.pause()


@process
def in_block(inp: Any, inside: Any, go: Any, redeliver: bool = False, then: str = "") -> Any:
    with inp.extended(redeliver=redeliver) as v:
        inside.write(v)
        go.read()
        if then == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if then == "raise":
            raise ZeroDivisionError
    return v


@process
async def in_async_blocks(inp: Any, out: Any) -> None:
    while True:
        async with inp.extended() as v:
            await out.write(2 * v)


@process
def waits_for_a_block(inp: Any, inside: Any) -> str:
    inside.write("begun")
    try:
        with inp.extended():
            return "got one"
    except Cancelled:
        return "cancelled"


@process
def held_open(inp: Any, on: Any, off: Any, ended: Any) -> str:
    """Keeps the end `inp` open. The channel of `ended` retires when this process ends."""
    try:
        i, v = select(Input(inp), Output(on, 1), Output(off, 2).when(False))
    except Retired as error:
        return f"retired at {error.guard}"
    return f"{v} at {i}"


@process
def makes(out: Any, other: Any, n: int, spans: bool) -> list[int]:
    """Writes squares, each of which is computed after the commit. The second guard of the choice is
    an input without a writer, or a channel of this process.
    """
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return len(made) ** 2

    own = Channel("own")
    kept, mine = own.writer(), own.reader()
    for _ in range(n):
        select(Output(out, make=make), mine if spans else other)
    kept.retire()
    return made


@process
def makes_badly(out: Any, other: Any, how: str) -> str:
    def make() -> Any:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "unpicklable":
            return Unsendable()
        raise ZeroDivisionError

    try:
        select(Output(out, make=make), other)
    except Exception as error:
        return type(error).__name__
    return "nothing"


@process
async def makes_async(out: Any, other: Any, n: int) -> int:
    made = 0

    def make() -> bytes:
        nonlocal made
        made += 1
        return bytes([made]) * 200_000

    for _ in range(n):
        await co.select(Output(out, make=make), other)
    return made


class Wrong(UserWarning):
    pass


@process
def warns_at_length() -> None:
    warnings.warn("x" * 1_000_000, Wrong, stacklevel=1)


@process
def tells(name: str, *texts: str) -> str:
    for text in texts:
        logging.getLogger(name).error(text)
    return name


@process
def logs_and_warns(out: Any) -> None:
    """Logs and warns, then writes a value. Each record must arrive before the value."""
    log = logging.getLogger("of.the.child")
    logging.basicConfig(level=logging.DEBUG)  # the parent's level decides which records are shown
    log.debug("nobody wants this")
    log.info("count %d of %s", 3, "five", extra={"lock": threading.Lock()})
    try:
        raise ValueError("on purpose")
    except ValueError:
        log.exception("caught")
    log.warning("x" * 1_000_000)
    warnings.warn("of its own class", Wrong, stacklevel=1)
    out.write(None)


@process
def complains_then_dies(how: str) -> None:
    for i in range(30):
        print(f"complaint {i}", file=sys.stderr)
    os.write(2, b"from C: not a text: \xff\n")
    if how == "abort":
        os.abort()
    os.kill(os.getpid(), signal.SIGKILL)


@process
def leaves_a_program(path: str) -> None:
    """Starts a program that writes to the standard error after this process has ended."""
    text = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({path!r}).exists(): time.sleep(0.01)\n"
        "print('still here', file=sys.stderr)"
    )
    subprocess.Popen([sys.executable, "-c", text])


@process
def as_it_began() -> dict[str, Any]:
    return {
        "decimal": "decimal" in sys.modules,
        "stdin": sys.stdin.read(),
        "argv": sys.argv,
        "path": sys.path,
        "directory": str(Path.cwd()),
        **{name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "WEFT_TEST")},
    }


@process
def draws() -> tuple[float, float]:
    import random

    import numpy

    return random.random(), float(numpy.random.random())


@process
def sum_of_the_end(inp: Any) -> int:
    """Reads an end from `inp`, and returns the sum of the values that are read from that end."""
    return sum(inp.read())

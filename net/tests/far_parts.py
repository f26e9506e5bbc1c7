"""The functions that the hosts of the tests run: caller and host both import this module."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from points import Late, Place, Point, Unknown

from weft import net
from weft import processes as ps
from weft import threads as th
from weft.coroutines import process as awaited
from weft.errors import Cancelled, Retired


class Odd(Exception):
    """An exception class of this module."""


@ps.process
def add(a: Any, b: Any, *, more: Any = 0) -> Any:
    return a + b + more


@ps.process
def pid() -> int:
    return os.getpid()


@ps.process
def doubles(values: Any, out: Any) -> str:
    for value in values:
        out.write(2 * value)
    return "done"


@awaited
async def doubles_awaited(values: Any, out: Any) -> str:
    async for value in values:
        await out.write(2 * value)
    return "done"


@ps.process
def sums(ends: dict[str, list[Any]]) -> int:
    return sum(v for reader in ends["readers"] for v in reader)


@ps.process
def fails(how: str) -> None:
    if how == "odd":
        raise Odd("odd", 3)
    if how == "system":
        raise UnicodeDecodeError("utf-8", b"x", 0, 1, "no")
    raise {"value": ValueError, "key": KeyError, "timeout": TimeoutError}[how]("told so")


@ps.process
def gives_an_object() -> Any:
    return Point(1, 2)


@ps.process
def moved(place: Any, by: int) -> Any:
    return Place(place.name, (place.at[0] + by, place.at[1]))


@ps.process
def gives(what: str) -> Any:
    return {"late": Late, "unknown": Unknown}[what](3)


@ps.process
def x_of(point: Any) -> int:
    return int(point.x)


@ps.process
def dies(numbers: Any) -> None:
    """Writes one number, and then kills its OS process."""
    numbers.write(os.getpid())
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


@ps.process
def writes_for_ever(numbers: Any, reports: Any) -> None:
    """Writes numbers until the process ends, and reports in its `finally` how it ended, so a
    cancellation is reported too."""
    try:
        while True:
            numbers.write(os.getpid())
    finally:
        try:
            reports.write("ended")
        except Cancelled:  # the end of `numbers` was noticed before the cancellation
            reports.write("ended")


@ps.process
def squares(jobs: Any, results: Any) -> None:
    """Squares jobs. A job is not lost if the process that holds it dies."""
    while True:
        with jobs.extended() as n:
            results.write([n, n * n, os.getpid()])


@ps.process
def waits_with(jobs: Any, pids: Any) -> None:
    """Holds each job until its pid has been reported. Holds the first job forever."""
    while True:
        with jobs.extended() as job:
            pids.write([os.getpid(), job])
            while job != "second":
                signal.pause()


@ps.process
def waits_for(jobs: Any, pids: Any) -> None:
    pids.write(os.getpid())
    jobs.read()


@ps.process
def poisons(values: Any) -> None:
    values.read()
    values.poison()
    values.read()


class RetiredSubclass(ps.Retired):
    pass


@ps.process
def left_by(how: str, *ends: Any) -> None:
    """Raises the ChannelEnd of an end that no operation met. In the last case an operation met the
    end: the process reads a channel that has ended."""
    c = ps.Channel("there")
    r = c.reader()
    if how == "asks":
        r.retire()
        c.writer()
    kinds = {
        "made": ps.Retired("mine"),
        "own": RetiredSubclass("mine"),
        "poison": ps.Poisoned("mine"),
    }
    if how in kinds:
        raise kinds[how]
    if how == "cancelled":
        raise ps.Cancelled
    c.writer().retire() if how == "retired" else c.poison(3)
    r.read()


@ps.process
def one_without_a_result() -> Any:
    """Returns a NoResult in a list."""
    return ps.Parallel(left_by_here("retired"))


@th.process
def left_by_here(how: str) -> None:
    left_by.__wrapped__._weft_body(how)


def not_decorated() -> int:
    return 3


# --- odd objects ----------------------------------------------------------------------------------

ODD: dict[str, Any] = {
    kind.__name__: kind
    for kind in (StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit, Retired, Cancelled)
}


def does(name: str) -> Any:
    raise ODD[name]


class Loads:
    """An object that cannot be rebuilt: unpickling it raises an exception."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Any:
        return does, (self._name,)


class Untold(Exception):
    """An exception whose text and pickle cannot be made: to make either raises another
    exception."""

    def __str__(self) -> str:
        raise ODD[self.args[0]]

    def __reduce__(self) -> Any:
        raise ODD[self.args[0]]


def given(value: Any) -> Any:
    return value


def loads(name: str) -> Any:
    return Loads(name)


def untold(name: str) -> Any:
    raise Untold(name)


gives_back = ps.process(given)
gives_odd = ps.process(loads)
fails_oddly = ps.process(untold)


# --- plain functions, for an Executor -------------------------------------------------------------


def plus(a: Any, b: Any) -> Any:
    return a + b


def minus(a: Any, b: Any) -> Any:
    return a - b


def where(_: Any) -> int:
    return os.getpid()


def point_if(really: Any) -> Any:
    return Point(1, 2) if really else 0


def unknown_if(really: Any) -> Any:
    return Unknown(1) if really else 0


def dies_if(really: bool) -> None:
    if really:
        os.kill(os.getpid(), signal.SIGKILL)


def waits_if(really: bool) -> None:
    while really:
        signal.pause()


def waits_for_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def waits_at_a_channel() -> None:
    never = th.Channel("never")
    held = never.writer()
    never.reader().read()
    held.retire()


begun: list[int] = []


def begins(number: int) -> None:
    begun.append(number)
    waits_at_a_channel()


def reads_and_says(server: str, keys: str, name: str) -> None:
    """Reads values, and reports when it is cancelled."""
    with net.join(server, keys=keys) as network:
        values, reports = network.reader(name), network.writer(f"{name}/said")
        try:
            values.read()
        except Cancelled:
            reports.write("cancelled")


def waits_for_its_own(path: str) -> list[Any]:
    """Runs two processes: one waits at a channel, the other for a file."""
    c = th.Channel("inner")
    return th.run(awaits(c.reader()), finds(c.writer(), path))


@th.process
def awaits(values: Any) -> Any:
    return values.read()


@th.process
def finds(values: Any, path: str) -> None:
    values.write(waits_for_file(path))


def writes_later(writer: Any, path: str) -> None:
    """Starts a thread that outlives the call, and that writes the contents of the file at
    `path`."""
    threading.Thread(target=lambda: writer.write(waits_for_file(path))).start()


def meets(server: str, keys: str, name: str) -> int:
    """Reports the pid of its OS process, and returns once it has read a value."""
    with net.join(server, keys=keys) as network:
        network.writer(f"{name}/a").write(os.getpid())
        network.reader(f"{name}/b").read()
    return os.getpid()


@ps.process
def not_allowed() -> None:
    """A function that no agent of the tests allows."""

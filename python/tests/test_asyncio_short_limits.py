"""Tasks with the shortest possible time limits still pass values on (rule 6.6).

If two tasks wait for one value, each is cancelled in the turn in which it is notified of the value.
They must not pass the value round forever. A test fails once far more limits have expired than
there are values.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from loops import Runner, new_in_3_11

from weft import threads
from weft.coroutines import Channel, Output, Parallel, Retired, after, process, select, timeout

N = 20  # values
PATIENCE = 1000 * N  # the number of limits that may expire before all values have passed


class Impatience:
    """A time limit around an operation, and the number of times that the limit was too short."""

    def __init__(self, limit: Callable[[], Any], patience: int = PATIENCE) -> None:
        self.limit = limit
        self.given_up = 0
        self.patience = patience

    @contextlib.asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        try:
            async with self.limit():
                yield
        except TimeoutError:
            self.given_up += 1
            assert self.given_up < self.patience, "the value is passed round"


LIMITS: dict[str, Callable[[], Any]] = {
    "weft": lambda: timeout(0),
    "asyncio 0": lambda: asyncio.timeout(0),
    "asyncio": lambda: asyncio.timeout(0.0002),
}


@pytest.fixture(
    params=[pytest.param(k, marks=new_in_3_11) if "asyncio" in k else k for k in LIMITS]
)
def hasty(request: Any) -> Callable[..., Impatience]:
    return lambda **how: Impatience(LIMITS[request.param], **how)


async def consume(
    got: list[Any], read: Callable[[], Any], hasty: Impatience, values: int = N
) -> None:
    with contextlib.suppress(Retired):
        while len(got) < values:
            async with hasty():
                got.append(await read())


async def read_extended(r: Any) -> Any:
    async with r.extended() as v:
        return v


async def selected(r: Any, other: Any) -> Any:
    _, v = await select(r, other)
    return v


HOW: dict[str, Callable[[Any, Any], Any]] = {
    "read": lambda r, other: r.read(),
    "extended": lambda r, other: read_extended(r),
    "select": lambda r, other: selected(r, other),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("capacity", [0, 5])
def test_readers_in_haste_get_every_value(
    play: Runner, hasty: Callable[..., Impatience], capacity: int, how: str
) -> None:
    """Rule 6.6: each value is read, although the readers' limits are very short."""

    async def main() -> list[Any]:
        c, other = Channel(capacity=capacity), Channel()
        w, r, never, hold = c.writer(), c.reader(), other.reader(), other.writer()
        got: list[Any] = []
        limit = hasty()

        async def produce() -> None:
            for i in range(N):
                await w.write(i)

        await asyncio.gather(
            produce(), *(consume(got, lambda: HOW[how](r, never), limit) for _ in range(3))
        )
        hold.retire()
        return got

    assert sorted(play(main())) == list(range(N))


@pytest.mark.parametrize("capacity", [0, 1])
@pytest.mark.parametrize("fast", ["reads", "selects"])
def test_readers_and_writers_in_haste(
    play: Runner, hasty: Callable[..., Impatience], capacity: int, fast: str
) -> None:
    """Rules 6.2, 6.6: nothing is lost or doubled by the limits of either side."""

    async def main() -> tuple[list[Any], list[Any]]:
        c = Channel(capacity=capacity)
        w, r = c.writer(), c.reader()
        got: list[Any] = []
        sent: list[Any] = []
        limit = hasty()

        async def write(v: int) -> None:
            if fast == "reads":
                await w.write(v)
            else:
                await select(Output(w, v))

        async def produce(first: int) -> None:
            for i in range(first, N, 2):
                while i not in sent:
                    async with limit():
                        await write(i)
                        sent.append(i)

        def read() -> Any:
            return r.read() if fast == "reads" else selected(r, after(60))

        await asyncio.gather(produce(0), produce(1), *(consume(got, read, limit) for _ in range(2)))
        return got, sent

    got, sent = play(main())
    assert sorted(got) == sorted(sent) == list(range(N))


def test_a_select_with_a_short_timer(play: Runner) -> None:
    """Rules 5.7, 6.6: a timer guard of a select takes the place of the limit."""

    async def main() -> list[Any]:
        c = Channel()
        w, r = c.writer(), c.reader()
        got: list[Any] = []
        waits = 0

        async def produce() -> None:
            for i in range(N):
                await w.write(i)

        async def poll() -> None:
            nonlocal waits
            while len(got) < N:
                i, v = await select(r, after(0.00001))
                if i == 0:
                    got.append(v)
                    continue
                waits += 1
                assert waits < PATIENCE, "the value is passed round"

        await asyncio.gather(produce(), poll(), poll(), poll())
        return got

    assert play(main()) == list(range(N))


@process
async def write_all(w: Any) -> None:
    for i in range(N):
        await w.write(i)


@pytest.mark.parametrize("writer", ["process", "thread"])
def test_readers_in_haste_and_a_writer_that_is_no_task(
    play: Runner, hasty: Callable[..., Impatience], writer: str
) -> None:
    """Rule 6.6: each value is read, although the writer is a process in the same loop, or a
    thread."""

    async def main() -> list[Any]:
        c = Channel(capacity=2)
        w, r = c.writer(), c.reader()
        got: list[Any] = []
        limit = hasty(patience=10**9 if writer == "thread" else PATIENCE)
        reading = asyncio.gather(*(consume(got, r.read, limit) for _ in range(2)))
        if writer == "process":
            await Parallel(write_all(w))
        else:
            await asyncio.to_thread(lambda: [w(i) for i in range(N)])
        await reading
        return got

    assert sorted(play(main())) == list(range(N))


def test_a_second_value_goes_to_who_comes(play: Runner) -> None:
    """Rule 6.6: a reader that arrives waits only while there are as many undecided readers as
    values.
    """

    async def main() -> list[Any]:
        c = Channel(capacity=2)
        w, r = c.writer(), c.reader()
        got: list[Any] = []

        async def read(name: str) -> None:
            got.append((name, await r.read()))

        first = asyncio.create_task(read("first"))
        await asyncio.sleep(0)
        await w.write(0)  # this value is for the first reader
        behind = asyncio.create_task(read("behind"))
        await w.write(1)
        with pytest.raises(StopIteration):
            # takes a value immediately, because the first reader has not decided yet
            read("comes").send(None)
        assert got == [("comes", 0)]
        await first
        assert got[1:] == [("first", 1)]
        await w.write(2)
        await behind
        return got

    assert play(main()) == [("comes", 0), ("first", 1), ("behind", 2)]


def test_loops_in_two_threads_in_haste() -> None:
    """Rule 6.6: tasks of two loops, and a thread that reads too, meet at one channel."""
    c = threads.Channel(capacity=1)
    w, r = c.writer(), c.reader()
    got: list[Any] = []

    async def main() -> None:
        limit = Impatience(lambda: timeout(0), patience=10**9)
        await asyncio.gather(*(consume(got, r.read, limit, 3 * N) for _ in range(2)))

    loops = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(2)]
    for loop in loops:
        loop.start()
    for i in range(3 * N):
        w(i)
    for loop in loops:
        loop.join()
    assert sorted(got) == list(range(3 * N))

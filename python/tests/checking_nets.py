"""Networks on which `weft check` is tried: each function builds and runs one."""

from __future__ import annotations

from typing import Any

from weft.coroutines import Channel, process, run, select

Ends = tuple[Any, Any]


@process
async def source(out: Any, n: int) -> None:
    for i in range(n):
        await out.write(i)


@process
async def stage(inp: Any, out: Any) -> None:
    async for x in inp:
        await out.write(x + 1)


@process
async def sink(inp: Any) -> list[int]:
    return [x async for x in inp]


def chain() -> list[int]:
    """Runs five processes with twenty communications."""
    c = [Channel(f"c{i}") for i in range(4)]
    stages = [stage(c[i].reader(), c[i + 1].writer()) for i in range(3)]
    return run(source(c[0].writer(), 5), *stages, sink(c[3].reader()))[-1]


@process
async def merge(a: Any, b: Any, out: Any) -> None:
    while True:
        _, value = await select(a, b)
        await out.write(value)


def merging(n: int) -> tuple[int, ...]:
    """Runs two sources of n values each, a select and a sink."""
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    sources = source(a.writer(), n), source(b.writer(), n)
    return tuple(run(*sources, merge(a.reader(), b.reader(), out.writer()), sink(out.reader()))[-1])


@process
async def writes_one(out: Any, value: int) -> None:
    await out.write(value)


@process
async def reads(inp: Any, n: int) -> list[int]:
    return [await inp.read() for _ in range(n)]


def writers(n: int) -> tuple[int, ...]:
    """Runs n writers of one channel."""
    c = Channel("c")
    return tuple(run(*[writes_one(c.writer(), i) for i in range(n)], reads(c.reader(), n))[-1])


@process
async def philosopher(first: Ends, second: Ends) -> None:
    await first[0].write(None)
    await second[0].write(None)
    await second[1].read()
    await first[1].read()


def philosophers(n: int, ordered: bool) -> None:
    """Runs philosophers. A fork is a buffer of one place. If `ordered`, the last philosopher
    takes the lower fork first."""
    forks = [Channel(f"fork{i}", capacity=1) for i in range(n)]

    def ends(i: int) -> Ends:
        return forks[i % n].writer(), forks[i % n].reader()

    run(
        *[
            philosopher(ends(i + 1), ends(i))
            if ordered and i == n - 1
            else philosopher(ends(i), ends(i + 1))
            for i in range(n)
        ]
    )


@process
async def locker(first: Ends, second: Ends, go: Any = None) -> None:
    if go is not None:
        await go.read()
    for end in (first[0], second[0], first[1], second[1]):
        await end.write(0)


@process
async def mutex(ends: Ends) -> None:
    while True:
        await ends[0].read()
        await ends[1].read()


@process
async def hop(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


@process
async def starter(out: Any) -> None:
    await out.write(1)


def hidden(mended: bool = False) -> None:
    """Runs two users of two locks. The second user begins when a token has reached that user in
    four hops. In plain runs the token never arrives while the first user is between its two locks.
    """
    a, b = [(Channel(name), Channel(f"{name}.free")) for name in "AB"]

    def writers_of(c: Any) -> Ends:
        return c[0].writer(), c[1].writer()

    def readers_of(c: Any) -> Ends:
        return c[0].reader(), c[1].reader()

    hops = [Channel(f"hop{i}") for i in range(5)]
    order = (a, b) if mended else (b, a)
    run(
        locker(writers_of(a), writers_of(b)),
        locker(writers_of(order[0]), writers_of(order[1]), hops[4].reader()),
        mutex(readers_of(a)),
        mutex(readers_of(b)),
        starter(hops[0].writer()),
        *[hop(hops[i].reader(), hops[i + 1].writer()) for i in range(4)],
    )

"""The services of weft.plugnplay in every order, by weft.check, and with OS processes at both sides
(rules 20.1 to 20.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft import processes as ps
from weft import threads as th
from weft.coroutines import Channel, Poisoned, process, run
from weft.plugnplay import threads as plug
from weft.plugnplay.coroutines import (
    batch,
    broadcast,
    collect,
    from_iterable,
    keyed_pool,
    rate_limit,
)

# --- in every order -------------------------------------------------------------------------------


@process
async def puts(out: Any, *values: Any) -> None:
    for value in values:
        await out.write(value)


@process
async def sums(jobs: Any, out: Any) -> None:
    sums: Counter[str] = Counter()
    async for key, amount in jobs:
        sums[key] += amount
        await out.write((key, sums[key]))


@process
async def reads(source: Any, most: int = 9) -> list[Any]:
    got = []
    try:
        async for value in source:
            got.append(value)
            if len(got) == most:
                break
    except Poisoned:
        got.append("cut off")
    return got


def batches() -> None:
    """Batches the values of two writers: each value is in one batch, and each writer's values are
    in order."""
    a, b = Channel("a"), Channel("b")
    writers = puts(a.writer(), 1, 2), puts(a.writer(), 10)
    got = run(batch(a.reader(), b.writer(), 2), collect(b.reader()), *writers)[1]
    flat = [value for some in got for value in some]
    assert list(map(len, got)) == [2, 1] and flat.index(1) < flat.index(2)
    assert sorted(flat) == [1, 2, 10]


def limited() -> None:
    a, b = Channel("a"), Channel("b")
    writers = puts(a.writer(), 1, 2), puts(a.writer(), 10)
    got = run(rate_limit(a.reader(), b.writer(), 1, 1.0, 3), collect(b.reader()), *writers)[1]
    assert sorted(got) == [1, 2, 10] and got.index(1) < got.index(2)


def pooled() -> None:
    """Uses a keyed pool: keys 0 and 1 have a worker each, and the values of a key stay in order."""
    a, b = Channel("a"), Channel("b")
    moves = [(0, 5), (1, 1), (0, -2)]
    pool = keyed_pool(a.reader(), b.writer(), sums, 2, lambda move: move[0])
    got = run(from_iterable(a.writer(), moves), pool, collect(b.reader()))[2]
    assert [value for value in got if value[0] == 0] == [(0, 5), (0, 3)]
    assert sorted(got) == [(0, 3), (0, 5), (1, 1)]


def spread(slow: str = "wait", capacity: int = 0, leaves: int = 9) -> list[Any]:
    news, joins = Channel("news"), Channel("joins")
    one, two = Channel("one", capacity=capacity), Channel("two", capacity=capacity)

    @process
    async def gives(out: Any, joins: Any, first: Any, second: Any) -> None:
        await joins.write(first)
        await out.write(1)
        await joins.write(second)
        await out.write(2)
        await out.write(3)

    return run(
        reads(one.reader()),
        reads(two.reader(), leaves),
        gives(news.writer(), joins.writer(), one.writer(), two.writer()),
        broadcast(news.reader(), joins.reader(), slow),  # type: ignore[arg-type]
    )[:2]


def joined() -> None:
    """Broadcasts: each reader gets all values that are written after it has joined."""
    assert spread() == [[1, 2, 3], [2, 3]]


def left() -> None:
    """Broadcasts: a reader that leaves delays no other reader."""
    assert spread(leaves=1) == [[1, 2, 3], [2]]


def cut_off() -> None:
    """Broadcasts: a reader that is too far behind is cut off, and the other readers get all
    values."""
    for got, wanted in zip(spread("cut_off", 1), ([1, 2, 3], [2, 3]), strict=True):
        values = [value for value in got if value != "cut off"]
        assert values == wanted[: len(values)]
        assert got[len(values) :] == ([] if values == wanted else ["cut off"])


@pytest.mark.parametrize(
    "network", [batches, limited, pooled, joined, left, cut_off], ids=lambda f: f.__name__
)
def test_every_order(network: Callable[[], None]) -> None:
    """Rules 20.1 to 20.4: each network keeps its promise in every order."""
    report = weft.check(network, schedules=400, seconds=600)
    assert not report.failed, report.text
    assert report.complete or network is cut_off  # cut_off has more than 2,000 orders


# --- OS processes ---------------------------------------------------------------------------------


EVEN = [0, 2, 4, 6, 8, 10]


@ps.process
def numbers(out: Any, n: int) -> None:
    for i in range(n):
        out.write(i)


@ps.process
def listed(source: Any) -> list[Any]:
    return list(source)


@ps.process
def doubles(jobs: Any, out: Any) -> None:
    for n in jobs:
        out.write(2 * n)


@th.process
def announces(news: Any, joins: Any, *writers: Any) -> None:
    for writer in writers:
        joins.write(writer)
    for value in (7, 8):
        news.write(value)


def test_os_processes_at_both_sides() -> None:
    """Rules 20.1 to 20.4. The workers of the pool and the readers of the broadcast are OS processes
    too.
    """
    c = [ps.Channel(name) for name in "abcdef"]

    with ps.Hosts(2) as hosts:
        got = th.run(
            numbers.on(hosts)(c[0].writer(), 6),
            plug.rate_limit(c[0].reader(), c[1].writer(), 1000, 0.001),
            plug.keyed_pool(c[1].reader(), c[2].writer(), doubles.on(hosts), 2, lambda n: n),
            plug.batch(c[2].reader(), c[3].writer(), 4),
            listed.on(hosts)(c[3].reader()),
        )[4]
        assert list(map(len, got)) == [4, 2] and sorted(n for some in got for n in some) == EVEN
        news, joins = ps.Channel("news"), ps.Channel("joins")
        got = th.run(
            listed.on(hosts)(c[4].reader()),
            listed.on(hosts)(c[5].reader()),
            announces(news.writer(), joins.writer(), c[4].writer(), c[5].writer()),
            plug.broadcast(news.reader(), joins.reader()),
        )[:2]
        assert got == [[7, 8], [7, 8]]

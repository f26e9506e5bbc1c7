"""Tests batch, rate_limit, keyed_pool and broadcast on every backend, in virtual time
(docs/toolkit.md, rules 20.1 to 20.4).
"""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest


def plug(b: Any) -> Any:
    return importlib.import_module(f"weft.plugnplay.{b.weft.__name__.rpartition('.')[2]}")


async def feeds(b: Any, w: Any, script: list[tuple[float, Any]]) -> None:
    """Writes each value after its pause. The value None is a pause without a value."""
    for pause, value in script:
        if pause:
            await b.op(b.weft.sleep(pause))
        if value is not None:
            await b.op(w.write(value))


async def stamps(b: Any, r: Any, pause: float = 0) -> list[Any]:
    got: list[Any] = []
    try:
        while True:
            value = await b.op(r.read())
            got.append((round(b.weft.now(), 6), value))
            if pause:
                await b.op(b.weft.sleep(pause))
    except b.weft.Retired:
        return got
    except b.weft.Poisoned:
        return [*got, "cut off"]


def piped(b: Any, name: str, script: list[tuple[float, Any]], *a: Any, pause: float = 0) -> Any:
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    return b.weft.run(
        b.process(feeds)(c.writer(), script),
        getattr(plug(b), name)(c.reader(), d.writer(), *a),
        b.process(stamps)(d.reader(), pause),
        clock="virtual",
    )[2]


def test_batches_by_number_time_and_end(b: Any) -> None:
    """Rule 20.1: a batch ends by its number of values, by its time, or with the input."""
    assert piped(b, "batch", [(0, i) for i in range(5)], 2) == [
        (0, [0, 1]),
        (0, [2, 3]),
        (0, [4]),
    ]
    script = [(0, 1), (0.5, 2), (4, 3), (0.5, 4), (0.25, 5), (3, None)]
    assert piped(b, "batch", script, 3, 1.0) == [(1, [1, 2]), (5.25, [3, 4, 5])]
    assert piped(b, "batch", [(3, None)], 3, 1.0) == []


def batches(script: list[tuple[float, int]], n: int, seconds: float) -> list[list[int]]:
    """Returns the batches according to a model of rule 20.1. The model is exact only if no value
    arrives at the moment when the time of a batch ends.
    """
    made: list[list[int]] = []
    at, due = 0.0, 0.0
    for pause, value in script:
        at += pause
        if made and len(made[-1]) < n and at < due:
            made[-1].append(value)
        else:
            made.append([value])
            due = at + seconds
    return made


def test_random_batches_are_those_of_the_model(b: Any) -> None:
    """Rule 20.1: the batches of random inputs are those of the function batches()."""
    for seed in range(15):
        print("seed", seed)
        r = random.Random(seed)
        script = [(r.choice([0, 0.25, 0.75]), i) for i in range(r.randrange(30))]
        n, seconds = r.randrange(1, 6), r.choice([0.625, 1.125])
        got = piped(b, "batch", script, n, seconds)
        assert [values for _, values in got] == batches(script, n, seconds)


def test_a_rate_and_its_burst(b: Any) -> None:
    """Rule 20.2: values pass at the given rate, after a burst of the given size."""
    script = [(0, i) for i in range(4)]
    assert [t for t, _ in piped(b, "rate_limit", script, 2, 1.0)] == [0, 0.5, 1, 1.5]
    script = [(0, i) for i in range(5)] + [(10, 5), (0, 6), (0, 7), (0, 8)]
    got = piped(b, "rate_limit", script, 1, 1.0, 3)
    assert [t for t, _ in got] == [0, 0, 0, 1, 2, 11, 11, 11, 12]
    assert [v for _, v in got] == list(range(9))


def test_random_values_keep_the_rate(b: Any) -> None:
    """Rule 20.2: the rate is kept even if the reader is slow."""
    for seed in range(15):
        print("seed", seed)
        r = random.Random(seed)
        script = [(r.choice([0, 0, 0.25, 3]), i) for i in range(30)]
        n, burst, pause = r.choice([1, 2, 4]), r.randrange(1, 4), r.choice([0, 0.5])
        got = piped(b, "rate_limit", script, n, 1.0, burst, pause=pause)
        assert [v for _, v in got] == list(range(30))
        times = [t for t, _ in got]
        assert all(sum(s <= t < s + 1 for t in times) <= n + burst - 1 for s in times)


def pool_of(b: Any, values: list[Any], worker: Any, n: int) -> Any:
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    return b.weft.run(
        plug(b).from_iterable(c.writer(), values),
        plug(b).keyed_pool(c.reader(), d.writer(), b.process(worker), n, lambda v: v[0]),
        plug(b).collect(d.reader()),
    )


async def marks(b: Any, r: Any, out: Any) -> None:
    me = object()
    try:
        while True:
            await b.op(out.write((me, await b.op(r.read()))))
    except b.weft.Retired:
        pass


def test_one_key_goes_to_one_worker_in_order(b: Any) -> None:
    """Rule 20.3: all values of a key are handled by one worker, in their order."""
    for seed in range(5):
        print("seed", seed)
        r = random.Random(seed)
        values = [(r.randrange(7), i) for i in range(40)]
        got = pool_of(b, values, marks, r.randrange(1, 5))[2]
        assert sorted(v for _, v in got) == sorted(values)
        for key in range(7):
            mine = [(who, v) for who, v in got if v[0] == key]
            assert [v for _, v in mine] == [v for v in values if v[0] == key]
            assert len({id(who) for who, _ in mine}) <= 1


def test_keys_are_served_in_parallel(b: Any) -> None:
    """Rule 20.3: each of the two workers waits for the other worker."""
    meet = b.weft.Barrier(2)

    async def both(b: Any, r: Any, out: Any) -> None:
        await b.op(r.read())
        await b.op(meet.sync())
        await b.op(out.write("met"))

    assert pool_of(b, [(0, 0), (1, 0)], both, 2)[2] == ["met", "met"]


def test_a_failure_of_a_worker_is_the_pools(b: Any) -> None:
    """Rules 7.2, 20.3: the exception of a worker is raised by the pool."""

    async def fails(b: Any, r: Any, out: Any) -> None:
        await b.op(r.read())
        raise ZeroDivisionError("worker")

    with pytest.raises(ZeroDivisionError, match="worker"):
        pool_of(b, [(0, 0)], fails, 2)


def test_readers_join_and_leave(b: Any) -> None:
    """Rule 20.4: a reader gets the values from its joining until it leaves."""
    c, joins = b.weft.Channel("c"), b.weft.Channel("joins")

    async def reads(b: Any, at: float, n: int, joins: Any) -> Any:
        await b.op(b.weft.sleep(at))
        mine = b.weft.Channel("mine")
        reader = mine.reader()
        await b.op(joins.write(mine.writer()))
        joins.retire()
        got = []
        try:
            while len(got) < n:
                got.append(await b.op(reader.read()))
        except b.weft.Retired:
            got.append("end")
        reader.retire()
        return got

    got = b.weft.run(
        b.process(feeds)(c.writer(), [(1, i) for i in range(6)]),
        plug(b).broadcast(c.reader(), joins.reader()),
        b.process(reads)(0, 99, joins.writer()),
        b.process(reads)(2.5, 2, joins.writer()),
        b.process(reads)(4.5, 99, joins.writer()),
        clock="virtual",
    )
    assert got[2:] == [[0, 1, 2, 3, 4, 5, "end"], [2, 3], [4, 5, "end"]]


def slowly(b: Any, slow: str, **kept: Any) -> Any:
    """Broadcasts the values 0 to 5, one each second, to a reader that needs 3.5 seconds for each
    value and to a fast reader. `kept` are the options of the slow reader's channel.
    """
    c, joins = b.weft.Channel("c"), b.weft.Channel("joins")
    one, two = b.weft.Channel("one", **kept), b.weft.Channel("two", capacity=1)

    async def joined(b: Any, w: Any, joins: Any, one: Any, two: Any) -> None:
        await b.op(joins.write(one))
        await b.op(joins.write(two))
        await feeds(b, w, [(1, i) for i in range(6)])

    return b.weft.run(
        b.process(joined)(c.writer(), joins.writer(), one.writer(), two.writer()),
        plug(b).broadcast(c.reader(), joins.reader(), slow),
        b.process(stamps)(one.reader(), 3.5),
        b.process(stamps)(two.reader()),
        clock="virtual",
    )[2:]


def test_slow_readers(b: Any) -> None:
    """Rule 20.4: a slow reader delays the others, loses values or is cut off, as the options
    say."""
    one, two = slowly(b, "wait", capacity=1)
    assert [v for _, v in one] == [v for _, v in two] == list(range(6))
    one, two = slowly(b, "wait", capacity=1, overflow="drop_oldest")
    assert one == [(1, 0), (4.5, 3), (8, 5)]
    assert two == [(i + 1, i) for i in range(6)]
    one, two = slowly(b, "cut_off", capacity=1)
    assert one == [(1, 0), "cut off"]
    assert two == [(i + 1, i) for i in range(6)]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("batch", (0,), "n must be a whole number of at least 1, not 0"),
        ("batch", (2, 0), "seconds must be a time above 0, not 0"),
        ("batch", (2, float("nan")), "seconds must be a time above 0"),
        ("batch", (True,), "not True"),
        ("rate_limit", (1, 1.0, 0), "burst must be a whole number of at least 1"),
        ("rate_limit", (1, float("inf")), "seconds must be a time above 0, not inf"),
        ("rate_limit", (1.5, 1), "n must be"),
    ],
)
def test_bad_arguments(b: Any, name: str, arguments: Any, says: str) -> None:
    """Rule 11.1: wrong arguments are bad use, and the error names them."""
    with pytest.raises(b.weft.BadUse, match=says):
        piped(b, name, [(0, 1)], *arguments)


def test_bad_arguments_of_broadcast_and_pool(b: Any) -> None:
    """Rule 11.1: wrong arguments are bad use, and the error names the accepted values."""
    with pytest.raises(b.weft.BadUse, match='slow must be "wait" or "cut_off", not \'drop\''):
        slowly(b, "drop")
    with pytest.raises(b.weft.BadUse, match="n must be a whole number"):
        pool_of(b, [(0, 0)], marks, 0)


@pytest.mark.parametrize("name", ["batch", "rate_limit"])
def test_poison_goes_through_both_ways(b: Any, name: str) -> None:
    """Rule 4.3: poison of the input reaches the output, and poison of the output reaches the
    input."""
    for end in ("in", "out"):
        c, d = b.weft.Channel("c"), b.weft.Channel("d")

        async def poisons(b: Any, w: Any, r: Any, end: str = end) -> None:
            if end == "in":
                await b.op(w.write(1))
            (w if end == "in" else r).poison()

        async def told(b: Any, w: Any, r: Any, end: str = end) -> Any:
            try:
                while True:
                    await b.op(r.read() if end == "in" else w.write(2))
            except b.weft.Poisoned:
                return "told"

        got = b.weft.run(
            b.process(poisons)(c.writer(), d.reader()),
            b.process(told)(c.writer(), d.reader()),
            getattr(plug(b), name)(c.reader(), d.writer(), 1, 1.0),
            clock="virtual",
        )
        assert got[1] == "told", end

"""Rule 16.9: read_many, blocks and write_many: the values of a block share the cost that Python
adds to a message (rules 1.2, 1.4, 16.1)."""

from __future__ import annotations

import sys
import warnings

import pytest
from components import basics, needs_compiler

from weft import coroutines, threads
from weft.errors import BadUse, Cancelled, Deadlock, Poisoned, Retired


async def write_all(b, w, values):
    await b.op(w.write_many(values))


async def all_of(b, r):
    return [v async for v in b.each(r)]


async def blocks_of(b, r, most):
    return [block async for block in b.each(r.blocks(most))]


@needs_compiler
@pytest.mark.parametrize(
    "channel", [{}, {"capacity": 1}, {"capacity": 64}, {"overflow": "unbounded"}]
)
def test_blocks_from_and_to_a_component(b, channel):  # rules 1.2, 1.4, 16.1
    a, c = b.weft.Channel("a", **channel), b.weft.Channel("c", **channel)
    got = b.run(
        b.process(write_all)(-a, range(1000)),
        basics().ints(+a, -c),
        b.process(blocks_of)(+c, 10),
    )[2]
    assert [x for block in got for x in block] == list(range(1000))
    assert all(1 <= len(block) <= 10 for block in got)


@pytest.mark.parametrize("type_", [None, int])
def test_what_is_in_the_buffer_comes_at_once(b, type_):  # rules 1.4, 3.3, 16.9
    a = b.weft.Channel("a", capacity=100, type=type_)
    reader = +a
    b.run(b.process(write_all)(-a, range(25)))
    assert a.stats().buffered == 25
    assert [len(x) for x in b.run(b.process(blocks_of)(reader, 10))] == [10, 10, 5]


def test_a_block_waits_for_its_first_value_alone(b):  # rules 1.2, 1.4
    a, go = b.weft.Channel("a", capacity=10), b.weft.Channel("go")

    async def reads(b, r, go):
        first = await b.op(r.read_many(most=5))
        await b.op(go.write(None))
        return first, [v async for block in b.each(r.blocks(most=5)) for v in block]

    async def writes(b, w, go):
        await b.op(w.write(1))
        await b.op(go.read())
        await b.op(w.write_many(values=[2, 3]))

    got = b.run(b.process(reads)(+a, -go), b.process(writes)(-a, +go))[0]
    assert got == ([1], [2, 3])


def test_ends_go_through_a_block(b):  # rules 2.3, 2.4
    a, inner = b.weft.Channel("a", capacity=4), b.weft.Channel("inner", capacity=1)

    async def writes(b, w, end):
        await b.op(w.write_many([1, end, 2]))

    async def reads(b, r, w):
        await b.op(w.write("through"))
        w.retire()
        got = [v async for block in b.each(r.blocks(8)) for v in block]
        return [got[0], await b.op(got[1].read()), got[2]]

    got = b.run(b.process(writes)(-a, +inner), b.process(reads)(+a, -inner))[1]
    assert got == [1, "through", 2]


def test_how_a_block_ends(b):  # rules 3.2, 4.1, 4.2
    async def writes(b, w):
        with pytest.raises(Poisoned) as met:
            await b.op(w.write_many(range(5)))
        return met.value.value

    async def poisons(b, r):
        got = await b.op(r.read_many(2))
        got += await b.op(r.read_many(1))
        r.poison()
        return got

    a = b.weft.Channel("a")
    value, got = b.run(b.process(writes)(-a), b.process(poisons)(+a))
    assert (value, got) == (2, [0, 1])

    async def reads(b, r):
        with pytest.raises(Retired):
            await b.op(r.read_many(2))

    b.run(b.process(reads)(a_reader(b)))


def a_reader(b):
    a = b.weft.Channel("a")
    reader, writer = +a, -a
    writer.retire()
    return reader


def test_a_value_of_a_block_that_does_not_convert(b):  # rules 16.2, 16.4
    a = b.weft.Channel("a", capacity=10, type=int)

    async def writes(b, w):
        with pytest.raises(BadUse, match="expected int, but 'x'"):
            await b.op(w.write_many([1, 2, "x", 3]))

    assert b.run(b.process(writes)(-a), b.process(all_of)(+a))[1] == [1, 2]


def test_a_block_is_cancelled():  # rules 6.2, 6.3
    a, c = coroutines.Channel("a"), coroutines.Channel("c", capacity=1)
    seen = []

    @coroutines.process
    async def reads(r):
        try:
            await r.read_many(3)
        except Cancelled:
            seen.append("read")
            raise

    @coroutines.process
    async def writes(w):
        try:
            await w.write_many(range(10))
        except Cancelled as cancelled:
            seen.append(cancelled.value)
            raise

    @coroutines.process
    async def fails():
        await coroutines.sleep(0)
        raise ValueError("now")

    keep = -a, +c
    with pytest.raises(ValueError, match="now"):
        coroutines.run(reads(+a), writes(-c), fails())
    assert sorted(map(str, seen)) == ["1", "read"]
    del keep


def test_a_deadlock_says_where_the_block_is_read():  # rule 10.1
    a = coroutines.Channel("a")

    @coroutines.process
    async def reads(r, w):
        await r.read_many(3)

    with pytest.raises(Deadlock, match=rf"read.*'a'.*{__name__}\.py"):
        coroutines.run(reads(+a, -a))


def test_observers_see_each_value():  # rule 14
    from weft import observe

    a = coroutines.Channel("a", capacity=10)

    @coroutines.process
    async def writes(w):
        await w.write_many(range(3))

    @coroutines.process
    async def reads(r):
        return [block async for block in r.blocks(5)]

    with observe.measuring() as m:
        got = coroutines.run(writes(-a), reads(+a))[1]
    assert got == [[0], [1], [2]]
    assert m is not None


# --- wrong use ------------------------------------------------------------------------------------


def test_wrong_numbers_and_values(b):
    a = b.weft.Channel("a", capacity=5)
    r, w = +a, -a
    for ask in (r.read_many, r.blocks):
        with pytest.raises(BadUse, match="must be at least 1, not 0"):
            ask(0)
        with pytest.raises(TypeError, match="must be an int, not 'x'"):
            ask("x")
        with pytest.raises(TypeError, match="takes one argument: most"):
            ask()
    for values in ("abc", {"a": 1}):
        with pytest.raises(TypeError, match="as a list of them, not a"):
            w.write_many(values)
    with pytest.raises(TypeError, match="not iterable"):
        w.write_many(1)
    r.retire()
    w.retire()
    for use in (lambda: r.read_many(1), lambda: r.blocks(1), lambda: w.write_many([])):
        with pytest.raises(BadUse, match=r"closed|retired"):
            use()


def test_blocks_in_the_wrong_kind_of_loop():
    a = coroutines.Channel("a", capacity=5)

    @coroutines.process
    async def loops(r):
        with pytest.raises(BadUse, match="use `async for`"):
            for _ in r.blocks(2):
                pass

    coroutines.run(loops(+a))
    blocks = coroutines.Channel("a").reader().blocks(2)
    with pytest.raises(BadUse, match="use for"):
        blocks.__anext__()


def test_a_block_that_was_never_awaited_or_twice():
    a = coroutines.Channel("a", capacity=5)

    @coroutines.process
    async def forgets(r, w):
        for make, verb in (
            (lambda: r.read_many(2), "read"),
            (lambda: w.write_many([1]), "write_many"),
        ):
            with pytest.warns(RuntimeWarning, match=f"{verb} on channel 'a' was never awaited"):
                make()
        op = w.write_many([1, 2])
        await op
        with pytest.raises(BadUse, match="write_many was awaited already"):
            await op
        op = r.read_many(5)
        assert await op == [1, 2]
        with pytest.raises(BadUse, match="read_many was awaited already"):
            await op
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            w.write_many([1]).close()

    coroutines.run(forgets(+a, -a))


def test_blocks_in_an_asyncio_task():  # rules 6.6, 13.1
    import asyncio

    async def main():
        a = coroutines.Channel("a", capacity=3)
        r, w = +a, -a

        async def writes():
            await w.write_many(range(10))
            w.retire()

        task = asyncio.create_task(writes())
        got = [x async for block in r.blocks(4) for x in block]
        await task
        return got

    assert asyncio.run(main()) == list(range(10))


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the faults known are 3.11's")
@pytest.mark.parametrize("most", [1, 30])
@pytest.mark.parametrize("backend", [coroutines, threads], ids=["coroutines", "threads"])
def test_without_memory_nothing_is_lost(backend, most):  # rule 16.9
    """Whichever allocation of a read_many fails, later reads return the values that the call has
    not returned.
    """
    memory = pytest.importorskip("_testcapi")
    values = [float(n) for n in range(40)]
    failed: list[int] = []

    async def awaits(r, k):
        got = []
        memory.set_nomemory(k, k + 1)
        try:
            got = await r.read_many(most)
        except MemoryError:
            failed.append(k)
        finally:
            memory.remove_mem_hooks()
        return got + await r.read_many(50)

    def blocks(r, k):
        got = []
        memory.set_nomemory(k, k + 1)
        try:
            got = r.read_many(most)
        except MemoryError:
            failed.append(k)
        finally:
            memory.remove_mem_hooks()
        return got + r.read_many(50)

    reads = backend.process(awaits if backend is coroutines else blocks)
    for k in range(20):  # k is the number of allocations that succeed first
        c = backend.Channel("c", capacity=64)
        reader, writer = +c, -c
        threads.run(threads.process(writer.write_many)(values))
        assert backend.run(reads(reader, k)) == values, k
    assert failed

"""Rules 1.6, 5.8, 8 and 16.1: barriers, extended reads and computed outputs of native
components."""

from __future__ import annotations

import pytest
from components import needs_compiler, parties, tasks

from weft import coroutines, threads
from weft.errors import BadUse, Deadlock, PeerDied, Retired
from weft.native import ComponentError

pytestmark = needs_compiler


async def all_of(b, r):
    return [v async for v in b.each(r)]


# --- barriers -------------------------------------------------------------------------------------


def test_a_barrier_of_python_and_a_component(b):  # rules 8.1, 8.2, 16.1
    barrier, log = b.weft.Barrier(2), b.weft.Channel("log")

    async def meets(b, w):
        for n in range(3):
            await b.op(barrier.sync())
            await b.op(w.write(f"after {n}"))
        barrier.resign()

    got = b.run(
        b.process(meets)(log.writer()),
        parties().phases(barrier, log.writer(), 3),
        b.process(all_of)(log.reader()),
    )[2]
    assert sorted(got) == sorted(f"{w} {n}" for w in ("before", "after") for n in range(3))
    assert all(got.index(f"before {n}") < got.index(f"after {n}") for n in range(3))
    assert barrier.parties == 0
    assert "barrier: 'Barrier'" in str(parties().phases.__signature__)


def test_two_components_at_a_barrier(b):  # rules 8.1, 16.1
    barrier, log = b.weft.Barrier(2), b.weft.Channel("log", capacity=20)
    reader = log.reader()
    b.run(*(parties().phases(barrier, log.writer(), 4) for _ in range(2)))
    got = b.run(b.process(all_of)(reader))
    assert [line for n, line in enumerate(got) if n % 2] == [f"before {n}" for n in range(4)]


def test_a_component_enrols_and_resigns(b):  # rule 8.3
    barrier, c = b.weft.Barrier(1), b.weft.Channel("c")

    async def meets(b, r):
        await b.op(r.read())
        assert barrier.parties == 2
        await b.op(barrier.sync())

    b.run(b.process(meets)(+c), parties().enrols(barrier, -c))
    assert barrier.parties == 1


def test_a_barrier_as_a_guard_of_a_component(b):  # rules 5.1, 8.4
    barrier, a, log = b.weft.Barrier(2), b.weft.Channel("a"), b.weft.Channel("log")

    async def writes_and_meets(b, w):
        await b.op(w.write(1))
        await b.op(w.write(2))
        await b.op(barrier.sync())

    got = b.run(
        b.process(writes_and_meets)(-a),
        parties().syncs_or_reads(barrier, +a, -log),
        b.process(all_of)(+log),
    )[2]
    assert got == ["read 1", "read 2", "sync"]


def test_a_component_that_waits_at_a_barrier_for_ever(b):  # rule 10.1
    log = b.weft.Channel("log", capacity=5)
    reader = +log
    with pytest.raises(Deadlock, match=r"phases.*(sync|barrier)"):
        b.run(parties().phases(b.weft.Barrier(2), -log, 1))
    assert b.run(b.process(all_of)(reader)) == ["before 0"]
    a, log = b.weft.Channel("a"), b.weft.Channel("log")
    keep = -a, +log
    with pytest.raises(Deadlock, match=r"syncs_or_reads"):
        b.run(parties().syncs_or_reads(b.weft.Barrier(2), +a, -log))
    del keep


def test_a_component_is_cancelled_at_a_barrier(b):  # rules 6.2, 8.3
    barrier, log, c = b.weft.Barrier(2), b.weft.Channel("log", capacity=5), b.weft.Channel("c")
    keep = +log

    async def fails(b, r):
        assert await b.op(r.read()) == "before 0"
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        b.run(parties().phases(barrier, -c, 1), b.process(fails)(+c))
    del keep


@pytest.mark.parametrize("where", range(3))
@pytest.mark.parametrize("on", ["thread", "pool"])
def test_a_component_that_was_cancelled_may_go_on(on, where):
    """Rule 6.1: one request raises one `Cancelled`, and the component may continue."""
    a, log = coroutines.Channel("a"), coroutines.Channel("log")
    keep, reports = -a, +log
    made = tasks().goes_on(+a, -log, where, on=on)

    @coroutines.process
    async def cancels():
        got = [await reports.read()]
        made.cancel()
        return got + [line async for line in reports]

    assert coroutines.run(made, cancels())[1] == ["begun", "cancelled", "ends"]
    del keep


def test_wrong_barriers(b):  # rule 11
    log = b.weft.Channel("log")
    with pytest.raises(BadUse, match="argument 'barrier' must be a Barrier, not 2"):
        parties().phases(2, -log, 1)
    with pytest.raises(ComponentError, match="resign on a barrier with nobody enrolled"):
        b.run(parties().resigns(b.weft.Barrier(0)))
    log = b.weft.Channel("log", capacity=1)
    keep = +log
    with pytest.raises(ComponentError, match="sync on a barrier with nobody enrolled"):
        b.run(parties().phases(b.weft.Barrier(0), -log, 1))
    del keep


# --- extended reads -------------------------------------------------------------------------------


def test_a_writer_waits_for_the_block_of_a_component(b):  # rule 1.6
    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    order = []

    async def writes(b, w):
        for n in range(3):
            await b.op(w.write(n))
            order.append(f"wrote {n}")

    async def reads(b, r):
        async for n in b.each(r):
            order.append(f"during {n}")

    b.run(b.process(writes)(-a), parties().extends(+a, -c), b.process(reads)(+c))
    # The reader of `during` has read its value before the block ends. After that, whichever process
    # runs first appends first. So the order is not fixed within one n.
    assert sorted(order) == sorted(f"{w} {n}" for w in ("wrote", "during") for n in range(3))
    assert all(order.index(f"wrote {n}") < order.index(f"during {n + 1}") for n in range(2))


def test_a_component_that_never_leaves_its_block(b):  # rules 1.6, 10.1
    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    never = +c

    async def writes(b, w):
        await b.op(w.write(1))

    with pytest.raises(Deadlock, match="extends"):
        b.run(b.process(writes)(-a), parties().extends(+a, -c))
    del never


def test_a_block_that_is_left_by_an_exception(b):  # rules 1.6, 7.2
    a = b.weft.Channel("a", capacity=1)

    async def writes(b, w):
        await b.op(w.write(1))

    with pytest.raises(ComponentError, match="in the block"):
        b.run(b.process(writes)(-a), parties().throws_in_extended(+a))


# --- computed outputs -----------------------------------------------------------------------------


def test_a_value_is_made_when_it_is_asked_for(b):  # rule 5.8
    a, c = b.weft.Channel("a"), b.weft.Channel("c")

    async def asks(b, w, r):
        got = []
        for n in range(5):
            await b.op(w.write(n))
            got.append(await b.op(r.read()))
        return got

    assert b.run(b.process(asks)(-a, +c), parties().serves(+a, -c))[0] == [0, 1, 3, 6, 10]


def test_an_extended_reader_holds_a_computed_output(b):  # rules 1.6, 5.8
    a, c = b.weft.Channel("a"), b.weft.Channel("c")

    async def asks(b, w, r):
        got = []
        for n in range(3):
            await b.op(w.write(n))
            extended = r.extended()
            if b.blocking:
                with extended as value:
                    got.append(value)
            else:
                async with extended as value:
                    got.append(value)
        return got

    assert b.run(b.process(asks)(-a, +c), parties().serves(+a, -c))[0] == [0, 1, 3]


def test_a_computed_output_into_a_buffer(b):  # rules 1.4, 5.8
    a, c = b.weft.Channel("a"), b.weft.Channel("c", capacity=2)

    async def asks(b, w, r):
        first = [await b.op(r.read()) for _ in range(4)]
        await b.op(w.write(5))
        return first, [await b.op(r.read()) for _ in range(4)][-1]

    first, last = b.run(b.process(asks)(-a, +c), parties().serves(+a, -c))[0]
    assert (first, last) == ([0] * 4, 5)


def test_a_function_that_throws(b):  # rules 5.8, 4.5
    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    seen = []

    async def asks(b, w, r):
        assert await b.op(r.read()) == 0
        try:
            await b.op(r.read())
        except PeerDied:
            seen.append("died")

    with pytest.raises(ComponentError, match="no value"):
        b.run(b.process(asks)(-a, +c), parties().serves(+a, -c, 2))
    assert seen == ["died"]


def test_a_function_that_reads(b):  # rules 5.8, 11
    a, c, log = b.weft.Channel("a"), b.weft.Channel("c"), b.weft.Channel("log", capacity=1)
    keep, message = -a, +log

    async def asks(b, r):
        with pytest.raises((PeerDied, Retired)):
            await b.op(r.read())

    b.run(parties().reads_in_a_function(+a, -c, -log), b.process(asks)(+c))
    (results,) = b.run(b.process(all_of)(message))
    assert "cannot use channels (rule 5.8)" in results
    del keep


def test_a_function_that_sleeps(b):
    """Rules 5.8, 11: afterwards the choice for which the function makes the value is still
    waiting."""
    c, log = b.weft.Channel("c"), b.weft.Channel("log", capacity=1)
    message = +log

    async def asks(b, r):
        with pytest.raises((PeerDied, Retired)):
            await b.op(r.read())

    b.run(parties().sleeps_in_a_function(-c, -log), b.process(asks)(+c))
    (results,) = b.run(b.process(all_of)(message))
    assert "cannot use channels (rule 5.8)" in results


@pytest.mark.parametrize("how", range(4))
def test_a_time_beyond_the_end_of_the_clock_never_comes(how):  # rules 8.5, 10.1
    with pytest.raises(Deadlock, match="waits_for_ever"):
        threads.run(parties().waits_for_ever(how))


def test_an_array_is_made_when_it_is_asked_for(b):  # rules 5.8, 16.6
    c = b.weft.Channel("c")
    got = b.run(parties().makes_arrays(-c), b.process(all_of)(+c))[1]
    assert [v.tolist() for v in got] == [[0.0, 1.0]]


def test_in_an_asyncio_task():  # rules 6.6, 13.1
    import asyncio

    async def main():
        a, c = coroutines.Channel("a"), coroutines.Channel("c")
        w, r = -a, +c
        async with coroutines.Group() as group:
            group.start(parties().serves(+a, -c))
            await w.write(3)
            async with r.extended() as first:
                pass
            index, second = await coroutines.select(r)
            w.retire()
            r.retire()
            return first, index, second

    assert asyncio.run(main()) == (3, 0, 3)

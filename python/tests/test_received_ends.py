"""Rule 2.3: a process that finishes releases the ends that it received, at once. In these tests the
garbage collector is off."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from parts import hows, receive, send

from weft import coroutines as co
from weft.errors import Poisoned, Retired

KEPT: list[Any] = []  # keeps objects alive, like a traceback or a log


@pytest.fixture(autouse=True)
def _no_collector():
    gc.disable()
    yield
    gc.enable()
    KEPT.clear()


async def fetch(b, r, how):
    """Takes an end from `r`, by each operation that can take one."""
    if how == "read":
        return await b.op(r.read())
    if how == "select":
        return (await b.op(b.weft.select(r)))[1]
    if how == "alternative":
        return (await b.op(b.weft.Alternative(r).select()))[1]
    if how == "extended":
        block = r.extended()
        end = await b.enter(block)
        await b.leave(block)
        return end
    async for end in b.each(r):
        return end
    return None


WAYS = pytest.mark.parametrize("how", ["read", "iteration", "select", "alternative", "extended"])
ORDERS = pytest.mark.parametrize("first", ["reader", "writer"])
CAPACITIES = pytest.mark.parametrize("capacity", [0, 2])


async def gives(b, out, c, how="write"):
    if how == "write":
        await b.op(out.write(c.writer()))
    elif how == "output":
        await b.op(b.weft.select(b.weft.Output(out, c.writer())))
    else:
        await b.op(b.weft.select(b.weft.Output(out, make=c.writer)))


async def waits(b, r):
    try:
        return await b.op(r.read())
    except b.weft.ChannelEnd as end:
        return type(end).__name__


def network(b, taker, c, first, capacity, how="write"):
    carrier = b.weft.Channel("carrier", capacity=capacity)
    keeps, sends = taker(carrier.reader()), b.process(gives)(carrier.writer(), c, how)
    two = [keeps, sends] if first == "reader" else [sends, keeps]
    return [b.process(waits)(c.reader()), *two]


@WAYS
@ORDERS
@CAPACITIES
def test_let_go_by_who_returns(b, how, first, capacity):  # rule 2.3
    async def keeps(b, r):
        KEPT.append(await fetch(b, r, how))

    c = b.weft.Channel("c")
    results = b.run(*network(b, b.process(keeps), c, first, capacity))
    assert results == ["Retired", None, None]
    assert KEPT[0].closed


@pytest.mark.parametrize("given", ["output", "make"])
@WAYS
@ORDERS
@CAPACITIES
def test_whichever_way_it_came(b, how, first, capacity, given):  # rules 2.3, 2.4, 5.8
    async def keeps(b, r):
        KEPT.append(await fetch(b, r, how))

    c = b.weft.Channel("c")
    results = b.run(*network(b, b.process(keeps), c, first, capacity, given))
    assert results == ["Retired", None, None]


def test_let_go_by_who_fails_while_its_frame_is_kept(b):  # rule 2.3
    async def fails(b, r):
        end = await b.op(r.read())
        try:
            raise ValueError("mine")
        except ValueError as error:
            KEPT.append((error, end))
            raise

    c, carrier = b.weft.Channel("c"), b.weft.Channel("carrier")
    failing = b.weft.watched(b.process(fails)(carrier.reader()))
    assert failing.ended() is not None  # ordinary code watches it, so no other process is cancelled
    results = b.run(failing, b.process(gives)(carrier.writer(), c), b.process(waits)(c.reader()))
    assert hows(results) == ["<failed>", None, "Retired"]
    with pytest.raises(ValueError, match="mine"):
        _ = failing.result
    assert KEPT[0][0].__traceback__ is not None
    assert KEPT[0][1].closed


def test_what_is_sent_on_is_not_let_go(b):  # rules 2.3, 2.4
    async def relays(b, r, out):
        await b.op(out.write(await b.op(r.read())))

    async def uses(b, r):
        end = await b.op(r.read())
        await b.op(end.write("through two hands"))

    c, x, y = (b.weft.Channel(n) for n in "cxy")
    assert b.run(
        b.process(waits)(c.reader()),
        b.process(relays)(x.reader(), y.writer()),
        b.process(gives)(x.writer(), c),
        b.process(uses)(y.reader()),
    ) == ["through two hands", None, None, None]


def test_what_is_given_to_a_process_is_that_ones(b):  # rule 2.3
    async def passes(b, r):
        end = await b.op(r.read())
        b.weft.Spawn(b.process(late)(end))

    async def late(b, w):
        await b.op(b.weft.sleep(1))
        await b.op(w.write("by the other"))

    c, x = b.weft.Channel("c"), b.weft.Channel("x")
    assert b.run(
        b.process(waits)(c.reader()),
        b.process(passes)(x.reader()),
        b.process(gives)(x.writer(), c),
        clock="virtual",
    ) == ["by the other", None, None]


@pytest.mark.parametrize("within", [lambda e: e, lambda e: [(1, {"e": e})]])
def test_what_is_returned_is_not_let_go(b, within):  # rule 2.3
    async def returns(b, r):
        return within(await b.op(r.read()))

    c, x = b.weft.Channel("c"), b.weft.Channel("x")
    r = c.reader()
    returned, _ = b.run(b.process(returns)(x.reader()), b.process(gives)(x.writer(), c))
    end = returned if not isinstance(returned, list) else returned[0][1]["e"]
    assert not end.closed
    assert b.run(b.process(send)(end, 1), b.process(receive)(r)) == [None, [1]]


def test_poison_spreads_over_what_was_received(b):  # rules 2.3, 4.3
    async def meets(b, r, ended):
        KEPT.append(await b.op(r.read()))
        await b.op(ended.read())

    c, x, poisoned = b.weft.Channel("c"), b.weft.Channel("x"), b.weft.Channel("p")
    ended = poisoned.reader()
    poisoned.poison()
    results = b.run(
        b.process(waits)(c.reader()),
        b.process(meets)(x.reader(), ended),
        b.process(gives)(x.writer(), c),
    )
    assert hows(results) == ["Poisoned", "<poisoned>", None]


def test_what_is_dropped_goes_at_once(b):  # rules 2.2, 2.3
    async def serves(b, r):
        for k in range(3):
            await b.op((await b.op(r.read())).write(k))
        await b.op(b.weft.sleep(1))
        return "served"

    async def asks(b, out):
        c = b.weft.Channel()
        r = c.reader()
        await b.op(out.write(c.writer()))
        return await b.op(r.read()), await waits(b, r), b.weft.now()

    x = b.weft.Channel("x")
    served, *asked = b.run(
        b.process(serves)(x.reader()),
        *(b.process(asks)(x.writer()) for _ in range(3)),
        clock="virtual",
    )
    assert served == "served"
    assert sorted(asked) == [(0, "Retired", 0), (1, "Retired", 0), (2, "Retired", 0)]


def test_one_that_waits_when_the_first_end_comes(b):  # rules 2.3, 2.4
    """A received end is released even if, when the read began, only numbers had passed through the
    channel."""

    async def keeps(b, r):
        number = await b.op(r.read())
        KEPT.append(await b.op(r.read()))
        return number

    async def sends(b, out, c):
        await b.op(out.write(7))
        await b.op(b.weft.sleep(1))
        await b.op(out.write(c.writer()))

    c, x = b.weft.Channel("c"), b.weft.Channel("x")
    assert b.run(
        b.process(waits)(c.reader()),
        b.process(keeps)(x.reader()),
        b.process(sends)(x.writer(), c),
        clock="virtual",
    ) == ["Retired", 7, None]


def test_a_cancelled_process_lets_go_too(b):  # rules 2.3, 6.5
    async def keeps(b, r):
        KEPT.append(await b.op(r.read()))
        b.weft.current_process().cancel()
        await b.op(b.weft.sleep(3600))

    c = b.weft.Channel("c")
    results = b.run(*network(b, b.process(keeps), c, "reader", 0))
    assert hows(results) == ["Retired", "<cancelled>", None]


def test_of_many_each(b):  # rule 2.3
    """Some received ends are dropped, some are kept, some are closed; in the end all are
    released."""

    async def keeps(b, r, n):
        ends = [await b.op(r.read()) for _ in range(n)]
        for k in range(0, n, 3):
            ends[k].retire()
        KEPT.extend(ends[1::3])
        del ends

    async def gives_all(b, out, channels):
        for c in channels:
            await b.op(out.write(c.writer()))

    async def all_end(b, readers):
        return [await waits(b, r) for r in readers]

    channels = [b.weft.Channel() for _ in range(12)]
    readers = [c.reader() for c in channels]
    x = b.weft.Channel("x")
    ended = b.run(
        b.process(keeps)(x.reader(), 12),
        b.process(gives_all)(x.writer(), channels),
        b.process(all_end)(readers),
    )[2]
    assert ended == ["Retired"] * 12


def test_tasks_and_ordinary_code_hold_nothing(play) -> None:
    """Rule 13.7: an end that a task receives belongs to no process."""

    async def main() -> None:
        c, x = co.Channel("c"), co.Channel("x", capacity=1)
        r, out, into = c.reader(), x.writer(), x.reader()
        await out.write(c.writer())
        end = await into.read()
        assert not end.closed
        end.retire()
        with pytest.raises(Retired):
            await r.read()

    play(main())
    c, x = co.Channel("c"), co.Channel("x", capacity=1)
    out, into = x.writer(), x.reader()
    from weft import threads as th

    with th.Group():
        out.write(c.writer())
        kept = into.read()
    assert not kept.closed


def test_a_guest_lets_go_too(play) -> None:
    """Rule 2.3: a process of a guest releases the ends that it received, when it ends."""

    @co.process
    async def keeps(r: Any) -> None:
        KEPT.append(await r.read())
        raise ValueError("mine")

    async def main() -> Any:
        c, x = co.Channel("c"), co.Channel("x")
        r, out = c.reader(), x.writer()
        import asyncio

        network = asyncio.ensure_future(co.run_async(keeps(x.reader())))
        await out.write(c.writer())
        with pytest.raises(Retired):
            await r.read()
        with pytest.raises(ValueError, match="mine"):
            await network

    play(main())


def test_poisoned_is_what_its_peers_get(play) -> None:
    """Rules 2.3, 4.3: poison spreads to the ends that a process of a guest has received."""

    @co.process
    async def meets(r: Any, bad: Any) -> None:
        KEPT.append(await r.read())
        await bad.read()

    async def main() -> Any:
        c, x, p = co.Channel("c"), co.Channel("x"), co.Channel("p")
        r, out, bad = c.reader(), x.writer(), p.reader()
        p.poison()
        import asyncio

        network = asyncio.ensure_future(co.run_async(meets(x.reader(), bad)))
        await out.write(c.writer())
        with pytest.raises(Poisoned):
            await r.read()
        with pytest.raises(Poisoned):
            await network

    play(main())

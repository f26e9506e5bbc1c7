"""Rules 7.5, 15.2: the block of ordinary code waits deeper in the stack than the place from which
its greenlets were started.

A greenlet that continues has its stack where it began, in the part of the stack that the deeper
code uses. That part is restored before the deeper code continues. So memory that other code may
touch must not be in that part: neither the slot for a value, nor the waiting entry of a group.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from weft import coroutines, greenlets, threads
from weft.threads import Channel, Group

TURNS = 30


def deep(n, act):
    """Calls `act` with n frames of the interpreter's C code above it."""
    return act() if n == 0 else partial(deep, n - 1, act)()


@greenlets.process
def gives(values, w):
    """The greenlet starts where the block first waits, and continues where the block waits
    later."""
    for x in values:
        w.write([x])


@greenlets.process
def takes(r, to):
    for x in r:
        to.append(x)


@pytest.mark.parametrize("depth", [0, 3, 40])
@pytest.mark.parametrize("how", ["read", "next", "extended", "select", "alternative"])
def test_what_a_greenlet_gives(how, depth):  # rules 1.1, 7.5
    c = Channel()
    go = Channel()
    with Group() as g:
        g.start(gives(go.reader(), c.writer()))
        w, r = go.writer(), c.reader()
        threads.yield_()
        alternative = threads.Alternative(r)

        def extended():
            with r.extended() as x:
                return x

        act = {
            "read": r.read,
            "next": lambda: next(iter(r)),
            "extended": extended,
            "select": lambda: threads.select(r, threads.after(1000))[1],
            "alternative": lambda: alternative.select()[1],
        }[how]
        for i in range(TURNS):
            g.start(sends(w.channel.writer(), i))
            assert deep(depth, act) == [i]
        alternative.close()
        w.retire()


@coroutines.process
async def sends(w, x):
    await w.write(x)


@pytest.mark.parametrize("depth", [0, 3, 40])
@pytest.mark.parametrize("how", ["write", "select", "computed"])
def test_what_a_greenlet_takes(how, depth):  # rules 1.1, 5.8, 7.5
    c = Channel()
    taken: list = []
    with Group() as g:
        g.start(takes(c.reader(), taken))
        w = c.writer()
        threads.yield_()
        for i in range(TURNS):
            x = [i]
            act = {
                "write": lambda x=x: w.write(x),
                "select": lambda x=x: threads.select(threads.Output(w, x), threads.after(1000)),
                "computed": lambda x=x: threads.select(threads.Output(w, make=lambda: x)),
            }[how]
            deep(depth, act)
        w.retire()
    assert taken == [[i] for i in range(TURNS)]


@pytest.mark.parametrize("depth", [0, 3, 40])
@pytest.mark.parametrize("how", ["run", "Parallel", "Sequence", "Group", "ended"])
def test_a_greenlet_ends_what_is_waited_for(how, depth):  # rules 7.1, 7.5
    c = Channel()
    go = Channel()

    @greenlets.process
    def asks(w, r, i):
        w.write(i)
        return r.read()

    with Group() as g:
        g.start(gives(go.reader(), c.writer()))
        w, r = go.writer(), c.reader()
        threads.yield_()
        for i in range(TURNS):
            p = asks(w.channel.writer(), r.channel.reader(), i)

            def act(p=p):
                if how == "Group":
                    with Group() as inner:
                        inner.start(p)
                elif how == "ended":
                    g.start(p)
                    p.ended().wait()
                else:
                    getattr(threads, how)(p)

            deep(depth, act)
            assert p.result == [i]
        w.retire()


@pytest.mark.parametrize("depth", [0, 40])
def test_a_greenlet_that_began_early_ends_the_group_that_is_waited_for(depth):  # rule 7.5
    """The greenlet belongs to the group that is waited for: the code that notifies the waiter runs
    on the greenlet's stack."""
    c = Channel()
    w, r = c.writer(), c.reader()

    @greenlets.process
    def waits(r):
        return r.read()

    with Group() as outer:
        inner = Group()
        inner.__enter__()
        p = inner.start(waits(r.channel.reader()))
        threads.yield_()
        outer_says = outer.start(sends(w.channel.writer(), 7))
        deep(depth, lambda: inner.__exit__(None, None, None))
        assert p.result == 7
    assert outer_says.done


def test_a_guest_whose_turns_come_from_another_depth():  # rules 13.2, 15.2
    c, d = Channel(), Channel()

    @greenlets.process
    def echo(r, w):
        for x in r:
            w.write([x])

    async def main():
        network = asyncio.ensure_future(coroutines.run_async(echo(c.reader(), d.writer())))
        w, r = c.writer(), d.reader()
        await asyncio.sleep(0)
        for i in range(TURNS):
            await w.write(i)
            assert await r.read() == [i]
        w.retire()
        await network

    asyncio.run(main())

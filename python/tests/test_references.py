"""References that the extension holds and drops, and small checks in it that no other test covers
(mutants.py shows that each test in this file is needed)."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest

from weft import coroutines as co
from weft.errors import BadUse, Poisoned, Retired


class Mark:
    """A value that allows weak references."""


def run(body: Any, *arguments: Any, **how: Any) -> Any:
    return co.run(co.process(body)(*arguments), **how)


def test_wrong_calls_are_refused() -> None:  # rules 2.2, 12.1
    with pytest.raises(BadUse, match="the name is empty"):
        co.Channel("")

    async def closed(w: Any, r: Any) -> None:
        w.retire()
        r.retire()
        with pytest.raises(BadUse, match="it was retired"):
            w.write(1)
        with pytest.raises(BadUse, match="it was retired"):
            r.read()
        with pytest.raises(BadUse, match="nobody enrolled"):
            await co.Barrier(0).sync()
        alternative = co.Alternative(co.skip())
        alternative.close()
        with pytest.raises(BadUse, match="enable on an Alternative that is closed"):
            alternative.enable(0, True)

    with pytest.raises(BadUse, match="give a capacity"):
        co.Channel("c", overflow="drop_oldest")
    c = co.Channel("c")
    run(closed, c.writer(), c.reader())


def test_an_end_that_is_closed_before_its_operation_begins() -> None:  # rule 2.2
    async def body(r: Any) -> None:
        operation = r.read()
        r.retire()
        with pytest.raises(BadUse, match="it was retired"):
            await operation

    c = co.Channel("c", capacity=1)
    writer = c.writer()
    run(body, c.reader())
    del writer


def test_what_could_not_be_written_comes_back() -> None:  # rules 2.4, 3.3
    async def body(w: Any, end: Any) -> None:
        value = Mark()
        with pytest.raises(Retired) as caught:
            await w.write(value)
        assert caught.value.value is value
        with pytest.raises(Retired) as caught:
            await w.write(end)
        assert caught.value.value is end
        assert not end.closed
        assert await end.read() == 1
        end.retire()
        assert end.channel.stats().readers == 0

    c, d = co.Channel("c"), co.Channel("d", capacity=1)
    writer, reader, kept = c.writer(), c.reader(), d.reader()
    run(sends, d.writer())
    reader.retire()
    run(body, writer, kept)


async def sends(w: Any) -> None:
    await w.write(1)


def test_an_operation_that_nobody_awaits_says_so() -> None:  # rule 12.1
    async def body(r: Any) -> None:
        with pytest.warns(RuntimeWarning, match="read on channel 'c' was never awaited"):
            r.read()

    run(body, co.Channel("c").reader())


def test_a_channel_ignores_a_weak_poison() -> None:  # rule 4.4
    c = co.Channel("c", capacity=1, immunity=2)
    run(reads_one, c.reader(), c.writer())


async def reads_one(r: Any, w: Any) -> None:
    w.channel.poison(1)
    await w.write(1)
    assert await r.read() == 1
    w.channel.poison(2)
    with pytest.raises(Poisoned):
        await r.read()


def test_a_value_is_held_while_it_waits() -> None:  # rule 1.1
    async def body(w: Any, r: Any) -> None:
        value = Mark()
        gone = weakref.ref(value)
        await w.write(value)
        del value
        gc.collect()
        assert gone() is not None
        assert await r.read() is gone()

    c = co.Channel("c", capacity=1)
    run(body, c.writer(), c.reader())


def test_an_end_goes_with_its_operation() -> None:
    async def body(w: Any, r: Any) -> None:
        before = sys.getrefcount(w), sys.getrefcount(r)
        for _ in range(3):
            await w.write(1)
            await r.read()
        assert (sys.getrefcount(w), sys.getrefcount(r)) == before

    c = co.Channel("c", capacity=1)
    run(body, c.writer(), c.reader())


def test_an_operation_that_is_dropped_lets_go_of_its_value() -> None:
    async def body(w: Any) -> None:
        value = Mark()
        gone = weakref.ref(value)
        w.write(value).close()
        del value
        gc.collect()
        assert gone() is None

    c = co.Channel("c", capacity=1)
    reader = c.reader()
    run(body, c.writer())
    del reader


def test_a_channel_lets_go_of_its_name() -> None:
    name = "-".join(["a", "name", "of", "its", "own"])
    before = sys.getrefcount(name)
    co.Channel(name)
    assert sys.getrefcount(name) == before


def test_figures_are_of_their_side() -> None:  # rule 14.8
    c = co.Channel("c")
    ends = c.reader(), c.reader(), c.writer()
    assert (c.stats().readers, c.stats().writers) == (2, 1)
    del ends


def test_a_choice_lets_go_of_its_guards() -> None:
    async def body(w: Any) -> None:
        value = Mark()
        gone = weakref.ref(value)
        guard = co.Output(w, value)
        before = sys.getrefcount(guard)
        await co.select(guard)
        assert sys.getrefcount(guard) == before
        before = sys.getrefcount(value)
        await co.select(guard)
        assert sys.getrefcount(value) == before + 1  # the buffer has one reference
        del guard, value
        c.reader().retire()
        gc.collect()
        assert gone() is None

    c = co.Channel("c", capacity=2)
    run(body, c.writer())


def test_ticks_that_were_missed_are_counted() -> None:  # rule 8.5
    async def body() -> int:
        timer = co.Timer(1)
        await co.sleep(3.5)
        return await timer.tick()

    assert run(body, clock="virtual") == 3


def test_no_time_is_rounded_down() -> None:  # rule 8.5
    async def body() -> float:
        began = co.now()
        await co.sleep(1.5e-9)
        return co.now() - began

    assert run(body, clock="virtual") >= 1.5e-9

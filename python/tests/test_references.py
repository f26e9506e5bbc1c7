"""What the extension holds, and lets go of; and small guards of it that no other test looks at
(mutants.py shows that each of these is needed)."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest

from weft import coroutines as co
from weft.errors import BadUse


class Mark:
    """A value that tells when it goes."""


def run(body: Any, *arguments: Any, **how: Any) -> Any:
    return co.run(co.process(body)(*arguments), **how)


def test_wrong_calls_are_refused() -> None:  # rules 2.2, 12.1
    with pytest.raises(BadUse, match="the name is empty"):
        co.Channel("")

    async def closed(w: Any) -> None:
        w.retire()
        with pytest.raises(BadUse, match="it was retired"):
            w.write(1)
        alternative = co.Alternative(co.skip())
        alternative.close()
        with pytest.raises(BadUse, match="enable on an Alternative that is closed"):
            alternative.enable(0, True)

    c = co.Channel("c")
    reader = c.reader()
    run(closed, c.writer())
    del reader


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


def test_a_value_goes_with_its_last_reader() -> None:
    async def body(w: Any, r: Any) -> None:
        value = Mark()
        gone = weakref.ref(value)
        await w.write(value)
        del value
        await r.read()
        gc.collect()
        assert gone() is None

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
        assert sys.getrefcount(value) == before + 1  # the buffer's
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

"""Tests the checks in the extension that no other test covers, or without which every other test
would hang (mutants.py shows that each test in this file is needed).
"""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

from weft import coroutines as co
from weft import threads as th
from weft.errors import BadUse, NoResult, PeerDied, Retired

ambient: contextvars.ContextVar[str] = contextvars.ContextVar("ambient", default="none")


@co.process
async def writes(w: Any, *values: Any) -> None:
    for value in values:
        await w.write(value)


@co.process
async def reads(r: Any) -> Any:
    return await r.read()


@co.process
async def nothing(*_: Any) -> None: ...


def run(body: Any, *arguments: Any, **how: Any) -> Any:
    return co.run(co.process(body)(*arguments), **how)


@pytest.mark.parametrize("strength", [0, 256])
def test_the_strength_of_a_poison_is_looked_at(strength: int) -> None:  # rule 4.1
    with pytest.raises(BadUse, match="from 1 to 255"):
        co.Channel("c").poison(strength)


def test_an_extended_read_that_nobody_enters_says_so() -> None:  # rule 12.1
    async def body(r: Any) -> None:
        with pytest.warns(RuntimeWarning, match="was never entered"):
            r.extended()

    run(body, co.Channel("c").reader())


def test_an_end_stays_open_while_another_process_holds_it() -> None:  # rule 2.3
    async def later(r: Any) -> Any:
        await co.yield_()
        await co.yield_()
        return await r.read()

    c = co.Channel("c", capacity=1)
    r, w = c.reader(), c.writer()
    assert co.run(nothing(r), co.process(later)(r), writes(w, 5))[1] == 5


def test_poison_goes_on_to_what_its_process_holds() -> None:  # rule 4.3
    async def holds(r: Any, w: Any) -> None:
        await r.read()
        await w.write(1)

    c, d = co.Channel("c"), co.Channel("d")
    r, w = c.reader(), c.writer()
    w.poison()
    how = co.run(co.process(holds)(r, d.writer()), reads(d.reader()))
    assert [h.how for h in how if isinstance(h, NoResult)] == ["poisoned", "poisoned"]


def test_read_many_takes_no_more_than_it_may() -> None:  # rule 1.9
    async def body(w: Any, r: Any) -> Any:
        await w.write_many([1, 2, 3])
        return await r.read_many(2), await r.read()

    c = co.Channel("c", capacity=4)
    assert run(body, c.writer(), c.reader()) == ([1, 2], 3)


def test_a_guard_that_is_a_bare_writer() -> None:  # rule 5.5
    async def body(w: Any) -> None:
        with pytest.raises(BadUse, match="bare writer"):
            co.select(w)

    run(body, co.Channel("c").writer())


def test_a_select_may_be_loud_as_a_whole() -> None:  # rule 5.6
    async def body(r: Any, open_yet: Any) -> None:
        with pytest.raises(Retired):
            await co.select(r, open_yet, co.after(9), ended="raise")

    c, d = co.Channel("c"), co.Channel("d")
    r, w, kept = c.reader(), c.writer(), d.writer()
    w.retire()
    run(body, r, d.reader(), clock="virtual")
    del kept


def test_an_alternative_is_one_process_at_a_time() -> None:  # rule 5.9
    async def second(alternative: Any) -> None:
        await co.yield_()
        with pytest.raises(BadUse, match="another process waits"):
            await alternative.select()

    async def first(alternative: Any) -> None:
        await alternative.select()

    alternative = co.Alternative(co.after(1))
    co.run(co.process(first)(alternative), co.process(second)(alternative), clock="virtual")


def test_a_process_inherits_the_context() -> None:  # rule 7.13
    async def body() -> str:
        return ambient.get()

    token = ambient.set("here")
    try:
        assert run(body) == "here"
    finally:
        ambient.reset(token)


def test_a_plain_process_returns_no_coroutine() -> None:  # rule 12.1
    async def inner() -> None: ...

    def body() -> Any:
        return inner()

    with (
        pytest.raises(TypeError, match="declare it `async def`"),
        pytest.warns(RuntimeWarning, match="never awaited"),
    ):
        th.run(th.process(body)())


def test_the_ends_in_a_set_are_held() -> None:  # rule 2.3
    c = co.Channel("c")
    r = c.reader()
    co.run(nothing({r}))
    assert r.closed


def test_the_inner_timeout_is_left_first() -> None:  # rule 7.12
    async def body() -> None:
        outer, inner = co.timeout(5), co.timeout(5)
        await outer.__aenter__()
        await inner.__aenter__()
        with pytest.raises(BadUse, match="inner one first"):
            await outer.__aexit__(None, None, None)
        await inner.__aexit__(None, None, None)
        await outer.__aexit__(None, None, None)

    run(body)


def test_nan_is_no_time() -> None:  # rule 8.5
    async def body() -> None:
        with pytest.raises(BadUse, match="nan is not a time"):
            co.sleep(float("nan"))

    run(body)


@pytest.mark.parametrize("writer", [False, True])
def test_an_end_that_is_dropped_is_retired(writer: bool) -> None:  # rule 2.6
    c = co.Channel("c")
    r, w = c.reader(), c.writer()
    if writer:
        del w
        assert isinstance(co.run(reads(r), nothing())[0], NoResult)
    else:
        del r
        assert isinstance(co.run(writes(w, 1), nothing())[0], NoResult)


def test_a_reader_of_a_value_that_cannot_be_made_is_told() -> None:  # rule 5.8
    def make() -> Any:
        raise ValueError("as asked")

    async def offers(w: Any) -> None:
        with pytest.raises(ValueError, match="as asked"):
            await co.select(co.Output(w, make=make))

    async def waits(r: Any) -> None:
        with pytest.raises(PeerDied):
            await r.read()

    c = co.Channel("c")
    co.run(co.process(offers)(c.writer()), co.process(waits)(c.reader()))


def test_a_timer_goes_with_its_choice() -> None:  # rules 5.1, 8.6
    async def chooses(r: Any) -> float:
        for _ in range(20):  # each choice waits, and is decided before its timer fires
            assert (await co.select(r, co.after(3)))[0] == 0
        began = co.now()
        await co.sleep(9)
        return co.now() - began

    c = co.Channel("c")
    network = co.process(chooses)(c.reader()), writes(c.writer(), *range(20))
    assert co.run(*network, clock="virtual")[0] == pytest.approx(9)

"""Networks of two backends at once: thread processes and coroutine processes meet on one
`Channel()` (rules 1.1, 5.3, 3, 10).

The processes are written out in both styles, because both are in one network.
"""

from __future__ import annotations

from typing import Any

import pytest

from weft import coroutines as co
from weft import threads as th

NUMBER = 300


@co.process
async def co_put(out: Any, values: range) -> None:
    for value in values:
        await out.write(value)


@th.process
def th_put(out: Any, values: range) -> None:
    for value in values:
        out.write(value)


@co.process
async def co_drain(into: Any) -> list[int]:
    return [value async for value in into]


@th.process
def th_drain(into: Any) -> list[int]:
    return list(into)


@co.process
async def co_exchange(into: Any, out: Any, number: int) -> list[int]:
    counts = [0, 0]
    for _ in range(number):
        index, _ = await co.select(into, co.Output(out, 1))
        counts[index] += 1
    return counts


@th.process
def th_exchange(into: Any, out: Any, number: int) -> list[int]:
    counts = [0, 0]
    for _ in range(number):
        index, _ = th.select(into, th.Output(out, 1))
        counts[index] += 1
    return counts


@pytest.mark.parametrize("outer", [co, th], ids=["run_by_coroutines", "run_by_threads"])
@pytest.mark.parametrize(
    ("put", "drain"), [(co_put, th_drain), (th_put, co_drain)], ids=["to_thread", "to_coroutine"]
)
def test_one_side_of_each_kind(outer: Any, put: Any, drain: Any) -> None:
    c = outer.Channel("c")
    _, got = outer.run(put(c.writer(), range(NUMBER)), drain(c.reader()))
    assert got == list(range(NUMBER))


@pytest.mark.parametrize("capacity", [0, 3])
def test_both_kinds_on_both_sides(capacity: int) -> None:
    c = co.Channel("c", capacity=capacity)
    results = co.run(
        co_put(c.writer(), range(100)),
        th_put(c.writer(), range(100, 200)),
        co_drain(c.reader()),
        th_drain(c.reader()),
    )
    assert sorted(results[2] + results[3]) == list(range(200))


def test_choices_of_both_kinds_meet() -> None:
    c, d = co.Channel("c"), co.Channel("d")
    one, two = co.run(
        co_exchange(c.reader(), d.writer(), NUMBER), th_exchange(d.reader(), c.writer(), NUMBER)
    )
    assert one[0] == two[1] and one[1] == two[0] and sum(one) == NUMBER


def test_a_thread_process_is_started_from_a_coroutine_process() -> None:
    @co.process
    async def main() -> Any:
        c = co.Channel("c")
        return (await co.Parallel(th_put(c.writer(), range(10)), co_drain(c.reader())))[1]

    assert co.run(main()) == list(range(10))


def test_poison_spreads_from_kind_to_kind() -> None:
    a, b = co.Channel("a"), co.Channel("b")

    @th.process
    def th_pass(into: Any, out: Any) -> None:
        for value in into:
            out.write(value)

    @co.process
    async def co_poison(out: Any, into: Any) -> Any:
        await out.write(1)
        first = await into.read()
        out.poison(2)
        with pytest.raises(co.Poisoned) as caught:
            await into.read()
        return first, caught.value.strength

    _, got = co.run(th_pass(a.reader(), b.writer()), co_poison(a.writer(), b.reader()))
    assert got == (1, 2)


def test_a_deadlock_between_kinds_names_the_knot() -> None:
    a, b = co.Channel("a"), co.Channel("b")

    @co.process
    async def co_waits(into: Any, out: Any) -> None:
        await out.write(await into.read())

    @th.process
    def th_waits(into: Any, out: Any) -> None:
        out.write(into.read())

    with pytest.raises(co.Deadlock) as caught:
        co.run(co_waits(a.reader(), b.writer()), th_waits(b.reader(), a.writer()))
    assert sorted(path.rpartition("/")[2] for path in caught.value.knot) == ["co_waits", "th_waits"]


def test_a_failure_of_one_kind_cancels_the_other() -> None:
    c, here = co.Channel("c"), co.Channel("here")
    kept = c.writer()
    ended: list[str] = []

    @th.process
    def th_waits(into: Any, out: Any) -> None:
        out.write("it runs")  # a process that is cancelled before it begins runs nothing (rule 6.5)
        try:
            into.read()
        except th.Cancelled:
            ended.append("cancelled")
            raise

    @co.process
    async def co_fails(into: Any) -> None:
        await into.read()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        co.run(th_waits(c.reader(), here.writer()), co_fails(here.reader()))
    assert not kept.closed
    assert ended == ["cancelled"]

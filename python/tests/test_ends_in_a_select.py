"""Rule 5.6 in Python: `ended="raise"`, the descriptions of a silent guard in reports and traces,
and how Weft's own processes end."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest
from parts import receive, send

from weft._watching import trace as _trace
from weft.coroutines import (
    Channel,
    Input,
    Retired,
    process,
    run,
    run_async,
    select,
    yield_,
)
from weft.errors import BadUse, Deadlock
from weft.observe import deadlocks

# --- the argument ---------------------------------------------------------------------------------


def test_ended_is_a_keyword_of_guards_selects_and_alternatives(b: Any) -> None:
    """Rule 5.6: guards, selects and alternatives accept `ended`, and refuse wrong values and
    names."""
    weft = b.weft
    reader, writer = weft.Channel().reader(), weft.Channel().writer()
    for word in ("raise", "silent"):
        weft.Input(reader, ended=word)
        weft.Output(writer, 1, ended=word)
        weft.Output(writer, make=int, ended=word).when(True)
        weft.Alternative(reader, ended=word).close()
        weft.Alternative(reader, mode="priority", ended=word).close()
    for wrong in ("loud", "", None, 1):
        for make in (
            lambda wrong=wrong: weft.Input(reader, ended=wrong),
            lambda wrong=wrong: weft.Output(writer, 1, ended=wrong),
            lambda wrong=wrong: weft.Alternative(reader, ended=wrong),
            lambda wrong=wrong: weft.select(reader, ended=wrong),
        ):
            with pytest.raises(BadUse, match="ended must be 'raise'"):
                make()
    with pytest.raises(TypeError, match="end"):
        weft.Input(reader, end="raise")
    with pytest.raises(TypeError, match="end"):
        weft.select(reader, end="raise")


# --- foreign selects ------------------------------------------------------------------------------


def test_tasks_of_asyncio_merge_and_stop() -> None:
    """Rules 5.6, 6.6: a select in a plain task, once when it must wait and once when it need
    not."""

    @process
    async def count(out: Any, *values: int) -> None:
        for value in values:
            await out.write(value)

    async def merge(a: Any, b: Any) -> list[int]:
        got: list[int] = []
        try:
            while True:
                got.append((await select(a, b))[1])
        except Retired as end:
            assert end.guard in (0, 1)
            return got

    async def main() -> None:
        a, b, stop = Channel("a"), Channel("b"), Channel("stop")
        merging = asyncio.create_task(merge(a.reader(), b.reader()))
        await run_async(count(a.writer(), 1, 2), count(b.writer(), 3, 4, 5, 6))
        assert sorted(await merging) == [1, 2, 3, 4, 5, 6]

        quiet = Channel("quiet")
        kept, stopping = quiet.writer(), stop.writer()

        async def until() -> int | None:
            try:
                await select(quiet.reader(), Input(stop.reader(), ended="raise"))
            except Retired as end:
                return end.guard
            return None

        waiting = asyncio.create_task(until())
        while not stop.stats().waiting_readers:
            await asyncio.sleep(0)
        stopping.retire()
        assert await waiting == 1
        assert not kept.closed

    asyncio.run(main())


# --- reports --------------------------------------------------------------------------------------


@process
async def circle(fed: Any, back: Any, _forth: Any) -> None:
    while True:
        await select(fed, back)


def test_a_deadlock_names_the_guard_that_fell_silent(b: Any) -> None:
    """Rules 5.6, 10.2: the report names the silent guard, and advises ended="raise"."""
    fed, back = b.weft.Channel("fed"), b.weft.Channel("back")

    async def around(b: Any, fed: Any, back: Any, _forth: Any) -> None:
        while True:
            await b.op(b.weft.select(fed, back))

    with pytest.raises(Deadlock) as caught:
        b.run(
            b.process(send)(fed.writer(), 1, 2),
            b.process(around)(fed.reader(), back.reader(), back.writer()),
        )
    text = str(caught.value)
    assert text.endswith(
        "main/around: guard 0 'fed' has ended; if that should end the process: ended=\"raise\""
    ), text
    (stuck,) = caught.value.processes
    assert sorted(stuck.places) == ["'back'", "'fed' (ended)"]


def test_a_deadlock_without_silent_guards_says_nothing_of_them() -> None:
    c, d = Channel("c"), Channel("d")
    with pytest.raises(Deadlock) as caught:
        run(circle(c.reader(), d.reader(), [c.writer(), d.writer()]))
    assert "ended" not in str(caught.value)


def test_a_silent_guard_counts_for_nothing() -> None:
    """Rule 14.3: an end of the silent guard's channel cannot help, even if it is held by a process
    that can continue.
    """
    fed, back, gate = Channel("fed"), Channel("back"), Channel("gate")
    key = gate.writer()
    found: list[Any] = []

    @process
    async def able(gate: Any, _another: Any) -> None:
        await gate.read()

    @process
    async def looks() -> None:
        for _ in range(10):
            await yield_()
        found.append(deadlocks())
        back.poison()
        key.retire()

    @process
    async def feeds(w: Any) -> None:
        await w.write(1)

    run(
        feeds(fed.writer()),
        circle(fed.reader(), back.reader(), back.writer()),
        able(gate.reader(), fed.reader()),
        looks(),
    )
    (stuck,) = found[0].processes
    assert stuck.path == "main/circle" and stuck.places == ("'back'", "'fed' (ended)")
    assert stuck.waits_for == ("main/circle",)
    assert "'fed' (ended)" in str(found[0])


def test_a_trace_names_every_guard_that_fell_silent(b: Any, tmp_path: Path) -> None:
    """Rules 5.6, 14.6: a trace names a silent guard at the outcome at which it fell silent, and
    from then on at the beginning of each select."""
    a, c = b.weft.Channel("a"), b.weft.Channel("c")

    async def merges(b: Any, a: Any, c: Any) -> None:
        while True:
            await b.op(b.weft.select(a, c))

    async def later(b: Any, w: Any) -> None:
        await b.op(b.weft.sleep(1))
        for value in (1, 2):
            await b.op(w.write(value))

    file = tmp_path / "t.jsonl"
    b.run(
        b.process(merges)(a.reader(), c.reader()),
        b.process(send)(a.writer()),
        b.process(later)(c.writer()),
        trace=file,
        clock="virtual",
    )
    events, _ = _trace.read(file)
    mine = [e for e in events if e["p"] == "main/merges" and e.get("op") == "select"]
    assert [e.get("silent") for e in mine if e["e"] == "commit"] == [[0], [0]]
    assert [e["guards"] for e in mine if e["e"] == "begin"][1:] == [
        [["input", "a", "ended"], ["input", "c"]]
    ] * 2
    last = mine[-1]
    assert (last["e"], last["why"], last["silent"]) == ("ended", "Retired", [0, 1])


# --- Weft's own processes: each ends as its documentation says ------------------------------------


def plug(b: Any) -> Any:
    return importlib.import_module(f"weft.plugnplay.{b.name}")


async def endless(b: Any, w: Any) -> None:
    value = 0
    while True:
        await b.op(w.write(value))
        value += 1


NAMES_OF_TWO = ("plus", "minus", "times", "and_", "or_", "xor", "nand", "nor")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", NAMES_OF_TWO)
def test_the_arithmetic_ones_end_with_their_first_source(b: Any, name: str, which: int) -> None:
    two, out = [b.weft.Channel("x"), b.weft.Channel("y")], b.weft.Channel("out")
    *_, got = b.run(
        b.process(send)(two[which].writer(), 1, 2),
        b.process(endless)(two[1 - which].writer()),
        getattr(plug(b), name)(two[0].reader(), two[1].reader(), out.writer()),
        b.process(receive)(out.reader()),
    )
    assert len(got) == 2


def test_combine_ends_with_its_first_source(b: Any) -> None:
    x, y, out = b.weft.Channel("x"), b.weft.Channel("y"), b.weft.Channel("out")
    *_, got = b.run(
        b.process(endless)(x.writer()),
        b.process(send)(y.writer(), "a", "b"),
        plug(b).combine(x.reader(), y.reader(), out.writer(), lambda p, q: (p, q)),
        b.process(receive)(out.reader()),
    )
    assert got == [(0, "a"), (1, "b")]


def test_paraplex_ends_with_its_first_source(b: Any) -> None:
    x, y, z, out = (b.weft.Channel(n) for n in ("x", "y", "z", "out"))
    *_, got = b.run(
        b.process(endless)(x.writer()),
        b.process(send)(y.writer(), "a", "b"),
        b.process(endless)(z.writer()),
        plug(b).paraplex([c.reader() for c in (x, y, z)], out.writer()),
        b.process(receive)(out.reader()),
    )
    assert got == [(0, "a", 0), (1, "b", 1)]


def test_dynamic_delta_ends_with_its_source_though_more_writers_may_come(b: Any) -> None:
    source, outs, out = b.weft.Channel("source"), b.weft.Channel("outs"), b.weft.Channel("out")
    mobile, still_open = out.writer(), outs.writer()

    async def feeds(b: Any, w: Any, outs: Any) -> None:
        await b.op(outs.write(mobile))
        await b.op(w.write(1))

    *_, got = b.run(
        b.process(feeds)(source.writer(), outs.writer()),
        plug(b).dynamic_delta(source.reader(), outs.reader()),
        b.process(receive)(out.reader()),
    )
    assert got == [1] and not still_open.closed


@pytest.mark.parametrize("name", ["merge", "multiplex"])
def test_merges_end_with_their_last_source(b: Any, name: str) -> None:
    x, y, out = b.weft.Channel("x"), b.weft.Channel("y"), b.weft.Channel("out")
    *_, got = b.run(
        b.process(send)(x.writer()),
        b.process(send)(y.writer(), 1, 2, 3),
        getattr(plug(b), name)([x.reader(), y.reader()], out.writer()),
        b.process(receive)(out.reader()),
    )
    assert got == ([1, 2, 3] if name == "merge" else [(1, 1), (1, 2), (1, 3)])


def test_a_merge_of_nothing_has_ended(b: Any) -> None:
    out = b.weft.Channel()
    assert b.run(plug(b).merge([], out.writer()), b.process(receive)(out.reader()))[1] == []


def test_parallel_delta_ends_when_a_reader_has_gone_and_the_others_have_the_value(b: Any) -> None:
    source, x, y = b.weft.Channel("source"), b.weft.Channel("x"), b.weft.Channel("y")

    async def one(b: Any, r: Any) -> Any:
        return await b.op(r.read())

    *_, first, rest = b.run(
        b.process(endless)(source.writer()),
        plug(b).parallel_delta(source.reader(), [x.writer(), y.writer()]),
        b.process(one)(x.reader()),
        b.process(receive)(y.reader()),
    )
    assert first == 0 and rest in ([0], [0, 1])


def test_regulate_ends_with_its_source() -> None:
    from weft.plugnplay.coroutines import regulate

    c, out = Channel("c"), Channel("out")

    @process
    async def twice(w: Any) -> None:
        await w.write("a")
        await w.write("b")

    @process
    async def counts(r: Any) -> int:
        return len([value async for value in r])

    assert (
        run(
            twice(c.writer()),
            regulate(c.reader(), out.writer(), 5),
            counts(out.reader()),
            clock="virtual",
        )[2]
        >= 1
    )


def test_the_value_that_comes_back_is_that_of_the_guard_that_is_named(b: Any) -> None:
    """Rules 3.3, 5.6: the exception of a select carries the value of the guard that it names."""
    channels = [b.weft.Channel("x"), b.weft.Channel("y")]
    readers = [c.reader() for c in channels]

    async def offers(b: Any, *outs: Any) -> Any:
        try:
            await b.op(b.weft.select(*(b.weft.Output(w, f"for {i}") for i, w in enumerate(outs))))
        except Retired as end:
            return end.guard, end.value, end.channel

    offering = b.process(offers)(*(c.writer() for c in channels))
    for reader in readers:
        reader.retire()
    guard, value, channel = b.run(offering)
    assert value == f"for {guard}" and channel is channels[guard]

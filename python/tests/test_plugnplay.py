"""Tests weft.plugnplay by its stream equations, on every backend (docs/toolkit.md)."""

from __future__ import annotations

import importlib
import io
import operator
from collections.abc import Callable
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parts import receive

import weft
import weft.coroutines
import weft.greenlets
import weft.threads
from weft import plugnplay
from weft.plugnplay import coroutines as co

BACKENDS = [
    SimpleNamespace(name=m.__name__.rpartition(".")[2], weft=m, run=m.run)
    for m in (weft.coroutines, weft.threads, weft.greenlets)
]

numbers = st.lists(st.integers(-100, 100), max_size=8)
booleans = st.lists(st.booleans(), max_size=8)


def plug(b: Any) -> Any:
    return importlib.import_module(f"weft.plugnplay.{b.name}")


def stream(
    b: Any, make: Callable[..., Any], *inputs: list[Any], outs: int = 1, grouped: bool = False
) -> Any:
    """Returns the values that `make(readers…, writers…)` writes to its outputs."""
    p = plug(b)
    sources = [b.weft.Channel() for _ in inputs]
    sinks = [b.weft.Channel() for _ in range(outs)]
    readers = [c.reader() for c in sources]
    feeds = [p.from_iterable(c.writer(), values) for c, values in zip(sources, inputs, strict=True)]
    results = b.run(
        make(
            readers if grouped else readers[0] if len(readers) == 1 else readers,
            [c.writer() for c in sinks],
        ),
        *(p.collect(c.reader()) for c in sinks),
        *feeds,
    )
    return results[1 : 1 + outs] if outs > 1 else results[1]


ONE = {
    "identity": ((), lambda s: s),
    "prefix": ((7,), lambda s: [7, *s]),
    "tail": ((), lambda s: s[1:]),
    "successor": ((), lambda s: [v + 1 for v in s]),
    "transform": ((abs,), lambda s: [abs(v) for v in s]),
    "sign": (("n=",), lambda s: [f"n={v}" for v in s]),
    "substitute": (("x",), lambda s: ["x"] * len(s)),
    "not_": ((), lambda s: [~v for v in s]),
    "pairs": ((), lambda s: [x + y for x, y in pairwise(s)]),
    "integrate": ((), lambda s: list(accumulate(s))),
    "select_if": ((lambda v: v > 0,), lambda s: [v for v in s if v > 0]),
    "take": ((3,), lambda s: s[:3]),
    "fixed_delay": ((0.0,), lambda s: s),
}
TWO = {
    "plus": operator.add,
    "minus": operator.sub,
    "times": operator.mul,
    "mult": operator.mul,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "nand": lambda x, y: ~(x & y),
    "nor": lambda x, y: ~(x | y),
}


@settings(max_examples=12, deadline=None)
@pytest.mark.parametrize("name", ONE)
@given(values=numbers)
def test_one_stream(name: str, values: list[int]) -> None:
    arguments, equation = ONE[name]
    for b in BACKENDS:
        made = getattr(plug(b), name)
        got = stream(b, lambda r, w, f=made: f(r, w[0], *arguments), values)
        assert got == equation(values), b


@settings(max_examples=8, deadline=None)
@pytest.mark.parametrize("name", TWO)
@given(xs=numbers, ys=numbers)
def test_two_streams(name: str, xs: list[int], ys: list[int]) -> None:
    for b in BACKENDS:
        made = getattr(plug(b), name)
        got = stream(b, lambda r, w, f=made: f(r[0], r[1], w[0]), xs, ys)
        assert got == [TWO[name](x, y) for x, y in zip(xs, ys, strict=False)], b


@settings(max_examples=10, deadline=None)
@given(xs=booleans, ys=booleans)
def test_logic_of_booleans_stays_boolean(xs: list[bool], ys: list[bool]) -> None:
    for b in BACKENDS:
        p = plug(b)
        assert stream(b, lambda r, w, p=p: p.not_(r, w[0]), xs) == [not x for x in xs]
        nand = stream(b, lambda r, w, p=p: p.nand(r[0], r[1], w[0]), xs, ys)
        assert nand == [not (x and y) for x, y in zip(xs, ys, strict=False)]


@settings(max_examples=10, deadline=None)
@given(values=numbers, n=st.integers(1, 3))
def test_deltas(values: list[int], n: int) -> None:
    for b in BACKENDS:
        p = plug(b)
        for name in ("delta", "parallel_delta"):
            got = stream(b, getattr(p, name), values, outs=n)
            assert got == (values if n == 1 else [values] * n), (b, name)


@settings(max_examples=10, deadline=None)
@given(streams=st.lists(numbers, min_size=2, max_size=3))
def test_multiplex_and_back(streams: list[list[int]]) -> None:
    """Demultiplexing the output of multiplex returns the streams; merge interleaves them."""
    for b in BACKENDS:
        p = plug(b)
        tagged = stream(b, lambda r, w, p=p: p.multiplex(r, w[0]), *streams, grouped=True)
        assert [[v for i, v in tagged if i == k] for k in range(len(streams))] == streams
        back = stream(b, lambda r, w, p=p: p.demultiplex(r, w), tagged, outs=len(streams))
        assert back == streams
        merged = stream(b, lambda r, w, p=p: p.merge(r, w[0]), *streams, grouped=True)
        assert sorted(merged) == sorted(v for s in streams for v in s)


@settings(max_examples=10, deadline=None)
@given(streams=st.lists(numbers, min_size=2, max_size=3))
def test_paraplex_and_back(streams: list[list[int]]) -> None:
    rows = list(zip(*streams, strict=False))
    for b in BACKENDS:
        p = plug(b)
        assert stream(b, lambda r, w, p=p: p.paraplex(r, w[0]), *streams, grouped=True) == rows
        back = stream(b, lambda r, w, p=p: p.deparaplex(r, w), rows, outs=len(streams))
        assert back == [list(s[: len(rows)]) for s in streams]


def test_sources(b: Any) -> None:
    p = plug(b)

    def first(n: int, make: Callable[[Any], Any]) -> Any:
        c, d = b.weft.Channel(), b.weft.Channel()
        return b.run(make(c.writer()), p.take(c.reader(), d.writer(), n), p.collect(d.reader()))[2]

    assert first(4, lambda w: p.numbers(w)) == [0, 1, 2, 3]
    assert first(3, lambda w: p.numbers(w, 5, -2)) == [5, 3, 1]
    assert first(3, lambda w: p.generate(w, "x")) == ["x"] * 3


def test_sinks(b: Any) -> None:
    p = plug(b)
    c, d, out = b.weft.Channel(), b.weft.Channel(), io.StringIO()
    b.run(p.from_iterable(c.writer(), [1, 2]), p.black_hole(c.reader()))
    b.run(p.from_iterable(d.writer(), [1, 2]), p.printer(d.reader(), out))
    assert c.stats().transfers == 2 and out.getvalue() == "1\n2\n"


def test_dynamic_delta(b: Any) -> None:
    p = plug(b)
    c, ends, d = b.weft.Channel(), b.weft.Channel(), b.weft.Channel("d")

    async def grows(b: Any, w: Any, outs: Any, moved: Any) -> None:
        await b.op(w.write(0))  # no reader listens yet
        await b.op(outs.write(moved))
        outs.retire()
        for i in (1, 2):
            await b.op(w.write(i))

    got = b.run(
        b.process(grows)(c.writer(), ends.writer(), d.writer()),
        p.dynamic_delta(c.reader(), ends.reader()),
        b.process(receive)(d.reader()),
    )
    assert got[2] == [1, 2]


def test_regular_and_regulate_by_virtual_time() -> None:
    """Rule 8.6: the test runs on the virtual clock of coroutines."""
    from weft.coroutines import Channel, now, process, run, sleep

    @process
    async def stamps(r: Any, n: int) -> list[Any]:
        return [(await r.read(), round(now(), 6)) for _ in range(n)]

    c = Channel()
    got = run(co.regular(c.writer(), "x", 0.5), stamps(c.reader(), 3), clock="virtual")
    assert got[1] == [("x", 0.0), ("x", 0.5), ("x", 1.0)]

    @process
    async def bursts(w: Any) -> None:
        for i in range(10):  # the sizes are first too many, then too few
            await w.write(i)
        await sleep(2.5)

    d, e = Channel(), Channel()
    got = run(
        bursts(d.writer()),
        co.regulate(d.reader(), e.writer(), 1.0),
        co.collect(e.reader()),
        clock="virtual",
    )
    assert got[2] == [0, 9, 9]


def test_poison_goes_through(b: Any) -> None:
    """Rule 4.3: poison of an input reaches the outputs."""
    p = plug(b)
    c, d = b.weft.Channel(), b.weft.Channel()

    async def poisons(b: Any, w: Any) -> None:
        await b.op(w.write(1))
        w.poison()

    async def told(b: Any, r: Any) -> Any:
        try:
            while True:
                await b.op(r.read())
        except b.weft.Poisoned:
            return "told"

    got = b.run(
        b.process(poisons)(c.writer()),
        p.identity(c.reader(), d.writer()),
        b.process(told)(d.reader()),
    )
    assert got[2] == "told"


def test_every_backend_has_every_name() -> None:
    for b in BACKENDS:
        assert plug(b).__all__ == list(co.__all__)
        for name in co.__all__:
            assert isinstance(getattr(plug(b), name), type(co.identity))
            assert getattr(plug(b), name).__doc__
    assert plugnplay.__all__ == list(co.__all__) and set(dir(plugnplay)) == set(co.__all__)
    with pytest.raises(AttributeError, match="no attribute 'identify'"):
        plugnplay.identify  # noqa: B018


def test_the_chosen_backend() -> None:
    from weft.plugnplay import threads

    weft.use("threads")
    try:
        assert plugnplay.identity is threads.identity
    finally:
        weft.use("coroutines")
    assert plugnplay.identity is co.identity

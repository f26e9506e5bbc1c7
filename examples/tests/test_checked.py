"""Checks Weft's own networks by `weft check`: the examples, and the plug-and-play processes (rule
17.1).

A network that ends soon is checked in every order (`proven`); of other networks a fixed number of
schedules is run (`tried`), so these tests do the same on every machine. The sizes are small,
because a larger network only adds more processes of the same kinds.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft._checking.report import Report
from weft.coroutines import Channel, run
from weft.plugnplay import coroutines as co

EXAMPLES = Path(__file__).resolve().parents[1]
LONGEST = 250.0  # seconds; the searches end earlier, or after their number of schedules


def example(name: str) -> Any:
    folder = str(EXAMPLES / name)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def proven(function: Callable[[], Any], **options: Any) -> Report:
    """Checks that the network is right in every order."""
    report = weft.check(function, seconds=LONGEST, **options)
    assert not report.failed and report.complete, report.text
    assert not report.told, report.text
    return report


def tried(function: Callable[[], Any], schedules: int, **options: Any) -> Report:
    """Checks this number of orders: those of the reduced search, and then some at random."""
    report = weft.check(function, seconds=LONGEST, schedules=schedules, **options)
    assert not report.failed and not report.told, report.text
    return report


# --- the examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["butler", "ordered"])
def test_philosophers_with_security_never_starve(table: str) -> None:
    """Checks every order of three philosophers who eat once: none fails."""
    dinner = example("dining_philosophers").dinner
    report = proven(lambda: run(dinner(table, 3, 1)))
    assert report.schedules > 1


def test_greedy_philosophers_are_found_without_the_unlucky_moment() -> None:
    """Rule 17.5: the check finds the deadlock of philosophers who take the left fork first,
    although no process forces all of them to do so at the same time.
    """
    dining = example("dining_philosophers")
    report = weft.check(lambda: run(dining.dinner("greedy without a barrier", 3, 1)))
    assert report.kind == "deadlock" and report.least, report.text


def test_nobody_waits_for_the_barber_for_ever() -> None:
    barber = example("sleeping_barber")
    proven(barber.small)
    proven(lambda: run(barber.shop(2, 3)))


def test_santa_delivers_the_toys_whoever_comes_first() -> None:
    proven(example("santa_claus").small)


def test_commstime() -> None:
    commstime = example("commstime")

    def network(split: Any) -> Any:
        return run(commstime.commstime(2, split))[1]

    proven(functools.partial(network, commstime.delta), same=True)
    tried(functools.partial(network, commstime.delta_in_parallel), 100, same=True)


def test_sieve() -> None:
    sieve = example("sieve")
    proven(lambda: run(sieve.sieve(4)), same=True)


def test_token_ring() -> None:
    ring = example("token_ring")
    proven(lambda: run(ring.ring(4, 2))[0], same=True)


def test_wordcount(tmp_path: Path) -> None:
    """The job of the demo: all orders of two workers find the same words as a plain counter."""
    wordcount, words = example("wordcount"), importlib.import_module("words")
    files = [tmp_path / name for name in ("a", "b")]
    for file, text in zip(files, ("to be or", "not to be"), strict=True):
        file.write_text(text)
    expected = words.plain(files)

    def network() -> Counter[str]:
        found: Counter[str] = run(wordcount.count_words(files, 2))
        assert found == expected
        return found

    proven(network)


def test_mandelbrot() -> None:
    """The job of the demo: every order of two workers with two bands draws the same picture."""
    mandelbrot, fractal = example("mandelbrot"), importlib.import_module("fractal")
    view = fractal.View(4, 4, 40)
    bands = fractal.bands(4, 2)
    expected = b"".join(fractal.compute(view, *band).tobytes() for band in bands)

    def network() -> None:
        done = Channel("done", capacity=len(bands))
        heights, advanced = run(
            mandelbrot.draw(view, bands, 2, done.writer()), co.collect(done.reader())
        )
        assert heights.tobytes() == expected and len(advanced) == len(bands)

    tried(network, 150)


def test_farm_scale() -> None:
    """Every job is done once. Time advances only when no process can run, because the model is
    about times.
    """
    farm = example("farm_scale")
    costs = farm.Costs(work=0.01, service=0.001, delay=0.0005)

    def network() -> None:
        done, _ = farm.simulate(2, 1, 2, costs)
        assert sorted(done) == [0, 1]

    tried(network, 100)


# --- plug-and-play --------------------------------------------------------------------------------


def stream(
    make: Callable[..., Any], *inputs: list[Any], outs: int = 1, grouped: bool = True
) -> Any:
    """Returns the values that a process writes to its outputs, given these inputs."""
    sources = [Channel(f"in {i}") for i in range(len(inputs))]
    sinks = [Channel(f"out {i}") for i in range(outs)]
    readers: Any = [c.reader() for c in sources]
    if len(readers) == 1 and not grouped:
        readers = readers[0]
    results = run(
        make(readers, [c.writer() for c in sinks]),
        *(co.collect(c.reader()) for c in sinks),
        *(co.from_iterable(c.writer(), v) for c, v in zip(sources, inputs, strict=True)),
    )[1 : 1 + outs]
    return results[0] if outs == 1 else results


ONE: dict[str, tuple[tuple[Any, ...], list[Any], list[Any]]] = {
    "identity": ((), [1, 2], [1, 2]),
    "prefix": ((7,), [1, 2], [7, 1, 2]),
    "tail": ((), [1, 2], [2]),
    "transform": ((lambda x: x * 2,), [1, 2], [2, 4]),
    "successor": ((), [1, 2], [2, 3]),
    "sign": (("x",), [1], ["x1"]),
    "substitute": ((0,), [1, 2], [0, 0]),
    "not_": ((), [True, False], [False, True]),
    "pairs": ((), [1, 2, 3], [3, 5]),
    "integrate": ((), [1, 2, 3], [1, 3, 6]),
    "select_if": ((lambda x: x > 1,), [1, 2], [2]),
    "fixed_delay": ((0.5,), [1, 2], [1, 2]),
}


@pytest.mark.parametrize("name", ONE)
def test_a_stream_is_the_same_in_every_order(name: str) -> None:
    more, given, expected = ONE[name]

    def network() -> None:
        make = getattr(co, name)
        found = stream(lambda r, w: make(r, w[0], *more), given, grouped=False)
        assert found == expected, found

    proven(network)


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "plus": operator.add,
    "minus": operator.sub,
    "times": operator.mul,
    "divide": operator.truediv,
    "and_": operator.and_,
    "or_": operator.or_,
    "xor": operator.xor,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
}


@pytest.mark.parametrize("name", TWO)
def test_a_stream_of_two_is_the_same_in_every_order(name: str) -> None:
    """The result is the same whichever of the two parts runs first."""

    def network() -> None:
        make = getattr(co, name)
        found = stream(lambda r, w: make(r[0], r[1], w[0]), [1, 2], [3, 4])
        assert found == [TWO[name](1, 3), TWO[name](2, 4)], found

    tried(network, 60)


def test_one_to_many_in_every_order() -> None:
    def copies(name: str) -> None:
        make = getattr(co, name)
        assert stream(lambda r, w: make(r, w), [1, 2], outs=2, grouped=False) == [[1, 2], [1, 2]]

    proven(functools.partial(copies, "delta"))
    tried(functools.partial(copies, "parallel_delta"), 100)

    def dealt() -> None:
        given = [(1, "a"), (0, "b"), (1, "c")]
        assert stream(co.demultiplex, given, outs=2, grouped=False) == [["b"], ["a", "c"]]

    def torn() -> None:
        given = [("a", 1), ("b", 2)]
        assert stream(co.deparaplex, given, outs=2, grouped=False) == [["a", "b"], [1, 2]]

    proven(dealt)
    proven(torn)


def test_many_to_one_in_every_order() -> None:
    def merged() -> None:
        found = stream(lambda r, w: co.merge(r, w[0]), [1, 2], [3])
        assert sorted(found) == [1, 2, 3] and found.index(1) < found.index(2), found

    def tagged() -> None:
        found = stream(lambda r, w: co.multiplex(r, w[0]), ["a"], ["b"])
        assert sorted(found) == [(0, "a"), (1, "b")], found

    def joined() -> None:
        found = stream(lambda r, w: co.paraplex(r, w[0]), [1, 2], [3, 4])
        assert found == [(1, 3), (2, 4)], found

    for network in (merged, tagged):
        proven(network)
    tried(joined, 100)


def test_sources_end_with_their_reader_in_every_order() -> None:
    def counting() -> None:
        a, b = Channel("a"), Channel("b")
        network = co.numbers(a.writer(), 1, 2), co.take(a.reader(), b.writer(), 2)
        assert run(*network, co.collect(b.reader()))[2] == [1, 3]

    def ticking() -> None:
        a, b = Channel("a"), Channel("b")
        network = co.regular(a.writer(), "x", 0.1), co.take(a.reader(), b.writer(), 3)
        assert run(*network, co.collect(b.reader()))[2] == ["x"] * 3

    def constant() -> None:
        a, b = Channel("a"), Channel("b")
        network = co.generate(a.writer(), 5), co.take(a.reader(), b.writer(), 2)
        assert run(*network, co.black_hole(b.reader())) is not None

    for network in (counting, ticking, constant):
        proven(network)

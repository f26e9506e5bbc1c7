"""A check of ordinary code that performs operations (rule 17.2). In a block (7.5) ordinary code is
the process `main`; before and after a run no other process exists.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import weft
from weft import threads
from weft._checking.engine import Options, Search, decided, replay
from weft.threads import Channel, Group, Input, Output, process, run, select, sleep, yield_


def outcomes(function: Callable[[], Any], search: str, **options: Any) -> set[Any]:
    """Returns how the schedules of a complete search end, and what the function returns in them."""
    s = Search(function, Options(search, schedules=30_000, **options))
    found = set()
    for outcome in s:
        assert outcome.kind in ("ok", "deadlock"), outcome.error
        found.add((outcome.kind, outcome.value))
    assert s.complete, (search, s.runs, s.cut)
    return found


@process
def writes(out: Any, *values: Any) -> None:
    for value in values:
        out.write(value)


@process
def reads(source: Any) -> list[Any]:
    return list(source)


def selects() -> tuple[int, ...]:
    a, b = Channel("a"), Channel("b")
    with Group() as group:
        group.start(writes(a.writer(), 1, 2))
        group.start(writes(b.writer(), 3))
        x, y = a.reader(), b.reader()
        return tuple(select(x, y)[1] for _ in range(3))


def test_all_orders_of_what_it_selects_are_found() -> None:
    assert outcomes(selects, "reduced") == {("ok", t) for t in ((1, 2, 3), (1, 3, 2), (3, 1, 2))}


def runs_within() -> tuple[Any, ...]:
    """Starts a run within the block. When that run has ended, other processes may run before the
    block's own code continues.
    """
    c, d = Channel("c"), Channel("d", capacity=3)
    with Group() as group:
        group.start(writes(c.writer(), 1, 2))
        group.start(writes(d.writer(), "process"))
        out, source = d.writer(), d.reader()
        got = [run(takes(c.reader()))]
        out.write("main")
        with Group() as inner:
            inner.start(writes(d.writer(), "inner"))
        return tuple(got + [source.read() for _ in range(3)])


@process
def takes(source: Any) -> Any:
    return source.read()


def test_a_run_within_the_block_ends_before_ordinary_code_goes_on() -> None:
    found = outcomes(runs_within, "reduced")
    assert {value[0] for _, value in found if value} == {1}
    orders = {value[1:] for _, value in found if value}
    assert orders == {
        ("process", "main", "inner"),
        ("main", "process", "inner"),
        ("main", "inner", "process"),
    }


def before_and_after() -> list[int]:
    """Communicates without any process. Lost values count like those of a process."""
    c = Channel("c", capacity=3)
    out, source = c.writer(), c.reader()
    out.write(1)
    run(writes(c.writer(), 2), takes(c.reader()))
    out.write(3)
    return [source.read(), source.read()]


def test_operations_before_and_after_a_run_are_part_of_the_proof() -> None:
    report = weft.check(before_and_after, seconds=5, same=True)
    assert report.complete and not report.failed and report.told == [], report.text


def sleeps() -> list[str]:
    c = Channel("c")
    seen = []
    with Group() as group:
        group.start(writes(c.writer(), "value"))
        source = c.reader()
        sleep(1)
        yield_()
        seen.append(source.read())
    return seen


def test_it_sleeps_in_virtual_time_and_yields() -> None:
    report = weft.check(sleeps, seconds=5, same=True)
    assert report.complete and not report.failed, report.text


def test_it_ends_with_the_run_that_has_no_end() -> None:
    """Rule 17.5: a block that runs without an end ends the check."""

    def spins() -> None:
        with Group() as group:
            group.start(forever())
            while True:
                yield_()

    @process
    def forever() -> None:
        while True:
            yield_()

    report = weft.check(spins, seconds=5)
    assert report.kind == "no end", report.text


# --- at random ----------------------------------------------------------------------------------

ACTS = ("read", "write", "read", "write", "select", "mixed", "yield")


def do(script: list[tuple[str, int]], readers: list[Any], writers: list[Any]) -> tuple[Any, ...]:
    """Performs the script, and returns the values and exceptions that it met."""
    seen: list[Any] = []
    try:
        for act, c in script:
            if act == "read":
                seen.append(readers[c].read())
            elif act == "write":
                writers[c].write(len(seen))
            elif act == "select":
                seen.append(select(readers[0], readers[1]))
            elif act == "mixed":
                seen.append(select(Output(writers[c], 9), Input(readers[1 - c])))
            else:
                yield_()
    except (threads.Retired, threads.Poisoned):
        seen.append("ended")
    return tuple(seen)


acts = process(do)


def network(scripts: list[list[tuple[str, int]]], capacity: int, block: bool) -> tuple[Any, ...]:
    channels = [Channel("a", capacity=capacity), Channel("b")]

    def ends() -> tuple[list[Any], list[Any]]:
        return [c.reader() for c in channels], [c.writer() for c in channels]

    started = [acts(script, *ends()) for script in scripts[1:]]
    if not block:
        return tuple(run(acts(scripts[0], *ends()), *started))
    with Group() as group:
        for p in started:
            group.start(p)
        seen = do(scripts[0], *ends())
    return (seen, *(p.result for p in started))


@pytest.mark.parametrize("seed", range(12))
def test_ordinary_code_and_a_process_in_its_place_have_the_same_outcomes(seed: int) -> None:
    """The reduced search also finds the outcomes of all schedules."""
    r = random.Random(seed)
    scripts = [[(r.choice(ACTS), r.randrange(2)) for _ in range(2)] for _ in range(2)]
    capacity = r.randrange(2)
    in_block = partial(network, scripts, capacity, True)
    reduced = outcomes(in_block, "reduced")
    assert reduced == outcomes(in_block, "all"), scripts
    assert reduced == outcomes(partial(network, scripts, capacity, False), "reduced"), scripts


@pytest.mark.parametrize("search", ["reduced", "walk", "pct", "few"])
def test_a_schedule_with_yields_is_replayed(search: str) -> None:
    """Rule 17.8: each search's token replays a schedule that contains yields."""
    scripts = [[("yield", 0), ("write", 0), ("yield", 0)], [("yield", 0), ("mixed", 0)]]
    function = partial(network, scripts, 1, False)
    for outcome in Search(function, Options(search, schedules=40)):
        decided(outcome)
        found = [replay(function, d) for d in (outcome.deviations, outcome.numbers)]
        assert [(x.kind, x.value) for x in found] == [(outcome.kind, outcome.value)] * 2

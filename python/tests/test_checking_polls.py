"""Processes that poll, and processes whose operations never wait, under a check: they let the others
run first, as rule 7.7 says, so a program that a plain run ends does not count as one without an end
(rules 17.2, 17.3).
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import weft
from weft.coroutines import (
    Channel,
    Retired,
    after,
    process,
    run,
    select,
    skip,
    sleep,
    yield_,
)

QUICK: dict[str, Any] = {"seconds": 60}  # an upper limit: each of these searches ends long before


@process
async def polls(source: Any) -> int:
    """Returns how often it has polled in vain."""
    n = 0
    while (await select(source, skip()))[0] == 1:
        n += 1
    return n


@process
async def writes(out: Any, after: int = 0) -> None:
    if after:
        await sleep(after)
    await out.write(1)


def polled() -> int:
    c = Channel("c")
    return int(run(polls(c.reader()), writes(c.writer()))[0])


def two_poll() -> None:
    a, b = Channel("a"), Channel("b")
    run(polls(a.reader()), polls(b.reader()), writes(a.writer()), writes(b.writer()))


def polled_until_a_time() -> int:
    c = Channel("c")
    return int(run(polls(c.reader()), writes(c.writer(), 1))[0])


def two_poll_until_a_time() -> None:
    a, b = Channel("a"), Channel("b")
    run(polls(a.reader()), polls(b.reader()), writes(a.writer(), 1), writes(b.writer(), 2))


@pytest.mark.parametrize("options", [{}, {"time": "any"}, {"grain": "park"}])
def test_others_run_while_a_process_polls(options: dict[str, Any]) -> None:
    """Rule 17.2. Every schedule ends, so the search is complete."""
    report = weft.check(polled, **QUICK, **options)
    assert not report.failed and report.complete, report.text
    assert not report.told


@pytest.mark.parametrize("search", ["auto", "all", "walk", "pct", "few"])
@pytest.mark.parametrize("network", [polled, two_poll, polled_until_a_time, two_poll_until_a_time])
def test_no_search_takes_polling_for_a_run_without_an_end(network: Any, search: str) -> None:
    """Rules 17.2, 17.3, 17.5."""
    report = weft.check(network, schedules=60, search=search, **QUICK)
    assert not report.failed, report.text


@pytest.mark.parametrize("grain", ["operation", "park"])
@pytest.mark.parametrize("time", ["quiet", "any"])
def test_a_time_comes_when_all_that_is_done_is_in_vain(time: str, grain: str) -> None:
    """Rule 17.3. This is no proof: the report does not say *every schedule*."""
    report = weft.check(polled_until_a_time, schedules=200, time=time, grain=grain, **QUICK)
    assert not report.failed and not report.complete, report.text


def test_no_time_comes_while_a_process_does_something() -> None:
    """Rule 17.3."""

    @process
    async def works(out: Any, source: Any, result: Any) -> None:
        for i in range(50):
            await out.write(i)
            await source.read()
            await select(source, skip())
        await result.write(1)

    @process
    async def waits(result: Any) -> None:
        guard, _ = await select(result, after(1))
        assert guard == 0

    def network() -> None:
        own, c = Channel("own", capacity=1), Channel("c")
        run(works(own.writer(), own.reader(), c.writer()), waits(c.reader()))

    report = weft.check(network, schedules=50, **QUICK)
    assert not report.failed, report.text


def test_a_process_that_yields_waits_for_a_time_too() -> None:
    """Rule 17.3."""

    @process
    async def yields(source: Any) -> None:
        while (await select(source, skip()))[0] == 1:
            await yield_()

    def network() -> None:
        c = Channel("c")
        run(yields(c.reader()), writes(c.writer(), 1))

    report = weft.check(network, schedules=200, **QUICK)
    assert not report.failed, report.text


def test_a_process_that_polls_without_a_hope_has_no_end() -> None:
    """Rule 17.5."""

    def network() -> None:
        c = Channel("c")
        held = c.writer()
        run(polls(c.reader()))
        del held

    report = weft.check(network, **QUICK)
    assert report.kind == "no end" and report.found_at == 1


def test_who_gives_up_after_fifteen_polls_is_found() -> None:
    """Rule 17.2. A process may poll up to twenty times before the others must run."""

    @process
    async def gives_up(source: Any) -> None:
        for _ in range(15):
            if (await select(source, skip()))[0] == 0:
                return
        raise AssertionError("nothing came")

    def network() -> None:
        c = Channel("c")
        run(gives_up(c.reader()), writes(c.writer()))

    report = weft.check(network, **QUICK)
    assert report.kind == "exception" and report.deviations == 0, report.text


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
@pytest.mark.parametrize("grain", ["operation", "park"])
def test_after_1000_operations_at_once_the_others_run(backend: str, grain: str) -> None:
    """Rules 7.7, 17.2. The writer never waits, and ends when its reader has retired."""
    m = importlib.import_module(f"weft.{backend}")

    @process
    async def pours(out: Any) -> str:
        try:
            while True:
                await out.write(0)
        except Retired:
            return "nobody reads"

    @process
    async def sips(source: Any) -> None:
        await source.read()

    def pours_plainly(out: Any) -> str:
        try:
            while True:
                out.write(0)
        except m.Retired:
            return "nobody reads"

    def sips_plainly(source: Any) -> None:
        source.read()

    pour, sip = (
        (pours, sips)
        if backend == "coroutines"
        else (m.process(pours_plainly), m.process(sips_plainly))
    )

    def network() -> str:
        c = m.Channel("c", capacity=1, overflow="drop_oldest")
        return str(m.run(pour(c.writer()), sip(c.reader()))[0])

    report = weft.check(network, schedules=3, grain=grain, **QUICK)
    assert not report.failed, report.text
    assert network() == "nobody reads"


def test_the_report_says_that_times_may_come_earlier() -> None:
    """Rule 17.3. The hint is there only if a time was set, and only with quiet times."""

    def naps() -> None:
        c = Channel("c")
        run(writes(c.writer(), 1), takes(c.reader()))

    @process
    async def takes(source: Any) -> None:
        await source.read()

    def does_not_nap() -> None:
        c = Channel("c")
        run(writes(c.writer()), takes(c.reader()))

    hint = "with --time any they may also come earlier"
    assert hint in weft.check(naps, **QUICK).text
    assert hint in weft.check(naps, jobs=2, **QUICK).text
    assert hint not in weft.check(naps, time="any", **QUICK).text
    assert hint not in weft.check(does_not_nap, **QUICK).text

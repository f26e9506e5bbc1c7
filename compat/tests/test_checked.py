"""Old PyCSP programs under `weft check` (rule 17.1): networks like those of pycsp's own tests
(commtest, selecttest and poisontest), at a size of which every order, or a fixed number of orders,
is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft.compat.pycsp import (
    AltSelect,
    Channel,
    ChannelPoisonException,
    ChannelRetireException,
    FairSelect,
    InputGuard,
    Parallel,
    PriSelect,
    poison,
    process,
    retire,
)


@process
def writer(out: Any, number: int, count: int) -> None:
    for i in range(count):
        out((number, i))
    retire(out)


@process
def talker(out: Any, number: int, count: int) -> None:
    """Writes its numbers and does not retire, because in pycsp a select raises when one of its
    channels has retired.
    """
    for i in range(count):
        out((number, i))


@process
def poisoner(out: Any, number: int, count: int) -> None:
    for i in range(count):
        out((number, i))
    poison(out)


@process
def reader(source: Any) -> list[Any]:
    got = []
    try:
        while True:
            got.append(source())
    except (ChannelRetireException, ChannelPoisonException):
        return got


@process
def selects(select: Callable[..., Any], count: int, *sources: Any) -> list[Any]:
    return [select(*(InputGuard(source) for source in sources))[1] for _ in range(count)]


def checked(network: Callable[[], None], schedules: int | None = None) -> None:
    report = weft.check(network, seconds=250, schedules=schedules)
    assert not report.failed and (report.complete or schedules is not None), report.text


def any_to_one() -> None:
    """Runs the network of commtest: several writers of one channel, each of which retires its
    end.
    """
    c = Channel()
    writers = [writer(c.writer(), i, 2) for i in range(2)]
    got = Parallel(reader(c.reader()), *writers)[0]
    assert sorted(got) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def any_to_any() -> None:
    c = Channel()
    two, writers = 2 * reader(c.reader()), [writer(c.writer(), i, 1) for i in range(2)]
    got = Parallel(two, *writers)[:2]
    assert sorted(got[0] + got[1]) == [(0, 0), (1, 0)]


@pytest.mark.parametrize("network", [any_to_one, any_to_any])
def test_no_order_of_commtest_loses_a_value(network: Callable[[], None]) -> None:
    checked(network)


@pytest.mark.parametrize("select", [AltSelect, PriSelect, FairSelect])
def test_no_order_of_selecttest_stops(select: Callable[..., Any]) -> None:
    def network() -> None:
        a, b = Channel(), Channel()
        got = Parallel(
            selects(select, 4, a.reader(), b.reader()),
            talker(a.writer(), 0, 2),
            talker(b.writer(), 1, 2),
        )[0]
        assert sorted(got) == [(0, 0), (0, 1), (1, 0), (1, 1)]

    checked(network)


def test_every_order_of_poisontest_ends_everybody() -> None:
    """One writer poisons the channel. The other writer and the readers end, whichever values were
    read.
    """

    def network() -> None:
        c = Channel()
        got = Parallel(2 * reader(c.reader()), poisoner(c.writer(), 0, 1), writer(c.writer(), 1, 1))
        assert (0, 0) in got[0] + got[1]

    checked(network)

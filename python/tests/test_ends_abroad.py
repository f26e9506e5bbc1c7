"""Ends of channels inside values that are sent to other OS processes, or received from them (rule
2.4, WIRE.md 7.4, 7.5).

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import os_process_targets_ends as targets
import pytest

import weft.threads as th
from weft.processes import (
    BadUse,
    Channel,
    ChannelEnd,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
)


@th.process
def writes_here(inp: Any) -> None:
    end = inp.read()
    for i in range(3):
        end.write(i)


@th.process
def offers_here(out: Any) -> list[int]:
    mine = Channel("mine")
    reader = mine.reader()
    out.write(mine.writer())
    return list(reader)


@pytest.mark.parametrize("offers", [targets.offers, targets.offers_async], ids=lambda f: f.__name__)
@pytest.mark.parametrize("capacity", [0, 1])
def test_an_end_comes_from_another(offers: Any, capacity: int) -> None:
    """The home of the channel is this OS process. The end that is sent is released when its
    receiver ends, and so the channel ends."""
    c = Channel("c", capacity=capacity)
    assert Parallel(offers(c.writer()), writes_here(c.reader()))[0] == [0, 1, 2]


def test_an_end_goes_to_another() -> None:
    c = Channel("c")
    got, pid = Parallel(offers_here(c.writer()), targets.writes_to_what_comes(c.reader(), 4))
    assert got == [0, 1, 2, 3] and pid


@pytest.mark.parametrize("offers", [offers_here, targets.offers], ids=["here", "elsewhere"])
def test_an_end_goes_on_through_others(offers: Any) -> None:
    """The end is sent to a third process through two processes that do not use it. The end's home
    does not know these processes yet (WIRE.md 7.4)."""
    a, b, c = Channel("a"), Channel("b", capacity=2), Channel("c")
    results = Parallel(
        offers(a.writer()),
        targets.passes_on(a.reader(), b.writer()),
        targets.passes_on(b.reader(), c.writer()),
        targets.writes_to_what_comes(c.reader(), 5),
    )
    assert results[0] == [0, 1, 2, 3, 4]


def test_requests_with_the_end_for_the_answer() -> None:
    """Two clients and a server, in three OS processes; the ends are deep in the values, and move
    with the values."""
    c = Channel("requests")
    with Hosts(3) as hosts:
        a, b, served = Parallel(
            targets.asks.on(hosts[0])(c.writer(), [1, 2, 3]),
            targets.asks.on(hosts[1])(c.writer(), [4, 5]),
            targets.serves.on(hosts[2])(c.reader()),
        )
    assert (a, b, served) == ([1, 4, 9], [16, 25], 5)


@pytest.mark.parametrize("capacity", [0, 1])
def test_a_request_that_is_never_answered(capacity: int) -> None:  # rules 3.1, 12.2
    """The end is in a list. The list is freed together with the value that contained it, while the
    process that made the end sleeps; that process must be woken."""
    c = Channel("requests", capacity=capacity)

    @th.process
    def asks(server: Any) -> str:
        reply = Channel("reply")
        reader = reply.reader()
        server.write([reply.writer()])
        return _outcome(reader)

    assert Parallel(asks(c.writer()), targets.takes_and_drops(c.reader())) == ["Retired", None]


def test_a_request_to_another_that_ends_without_an_answer() -> None:  # WIRE.md 7.4, rule 3.1
    """The home of the end is neither the process that takes it nor the one that passes it on, and
    may learn of the taker last. Nevertheless the reader meets a retirement or a poison, and not a
    death."""
    take = [targets.takes_and_drops, targets.takes_and_poisons, targets.takes_and_drops]
    requests = [Channel(f"requests {i}") for i in range(len(take))]
    results = Parallel(
        *(targets.is_not_answered(c.writer()) for c in requests),
        *(takes(c.reader()) for takes, c in zip(take, requests, strict=True)),
    )
    assert results[: len(take)] == ["Retired", "Poisoned", "Retired"]


def _outcome(reader: Any) -> str:
    try:
        return str(reader.read())
    except ChannelEnd as error:
        return type(error).__name__


def test_what_was_sent_is_closed() -> None:  # rules 2.2, 2.4
    c = Channel("c")

    @th.process
    def takes(inp: Any) -> None:
        inp.read().write("through it")

    results = Parallel(targets.uses_what_it_sent(c.writer()), takes(c.reader()))[0]
    assert "BadUse" in results[0] and "sent" in results[0]
    assert "BadUse" in results[1] and results[2] == "through it"


def test_a_write_that_is_given_up_leaves_the_end() -> None:
    c, ready = Channel("c"), Channel("ready")

    @th.process
    def reads_late(inp: Any, ready: Any) -> str:
        ready.read()
        try:
            return str(inp.read())
        except ChannelEnd as error:
            return type(error).__name__

    got = Parallel(
        targets.keeps_what_was_not_taken(c.writer(), ready.writer()),
        reads_late(c.reader(), ready.reader()),
    )
    assert got == [7, "Retired"]


def test_an_exception_comes_without_the_ends_in_it() -> None:
    with pytest.raises(LookupError) as caught:
        Parallel(targets.fails_with(Channel("c").writer()))
    assert caught.value.args == ("with it", [None])


def test_a_process_that_is_cancelled_as_it_sends_an_end_was_cancelled() -> (
    None
):  # rules 6.1, 6.2, 7.2
    """The end that the process did not write is returned in Cancelled, and is still usable. Such a
    Cancelled is no failure of the process.
    """
    c, ready = Channel("c"), Channel("ready")

    @th.process
    def fails(inp: Any, never: Any) -> None:
        inp.read()
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        Parallel(
            targets.sends_an_end_that_nobody_takes(c.writer(), ready.writer()),
            fails(ready.reader(), c.reader()),
        )


def test_a_result_may_have_ends() -> None:
    c, other = Channel("c"), Channel("other")

    @th.process
    def sends(out: Any, end: Any) -> None:
        out.write(end)

    result = Parallel(targets.returns_what_it_got(c.reader()), sends(c.writer(), other.writer()))[0]
    reader = other.reader()
    with th.Group() as g:

        @th.process
        def writes(end: Any) -> None:
            end.write("home again")

        g.start(writes(result["end"]))
        assert reader.read() == "home again"


def test_an_os_process_that_dies_with_an_end_that_it_got() -> None:  # rule 4.5
    c, ready, other = Channel("c"), Channel("ready"), Channel("other")

    @th.process
    def sends(out: Any, end: Any) -> None:
        out.write(end)

    @th.process
    def dies(inp: Any, ready: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.takes_and_dies(inp, ready))

    @th.process
    def waits(inp: Any, ready: Any) -> str:
        assert ready.read() == "Writer"
        with pytest.raises(PeerDied):
            inp.read()
        return "PeerDied"

    assert (
        Parallel(
            sends(c.writer(), other.writer()),
            dies(c.reader(), ready.writer()),
            waits(other.reader(), ready.reader()),
        )[2]
        == "PeerDied"
    )


def test_an_end_that_nobody_takes_is_given_back() -> None:
    """The end is in a buffer of another process when that process ends (rules 2.4, 3.3)."""
    c, other = Channel("c"), Channel("other")

    @th.process
    def sends(inp: Any, end: Any) -> None:
        inp.read().write([end])

    got = Parallel(
        targets.lets_it_lie(c.writer()), sends(c.reader(), other.writer()), _ends(other.reader())
    )
    assert got[2] == "Retired"


@th.process
def _ends(inp: Any) -> str:
    return _outcome(inp)


def test_there_and_back() -> None:
    """An end that returns to its home in a value is an end of the same channel, and counts as one
    end."""
    a, b, other = Channel("a"), Channel("b"), Channel("other")

    @th.process
    def sends(out: Any, end: Any) -> None:
        out.write(end)

    @th.process
    def takes(inp: Any) -> list[Any]:
        (end,) = inp.read()
        assert end.channel is other
        end.write("x")
        return []

    got = Parallel(
        targets.echoes(a.reader(), b.writer()),
        sends(a.writer(), other.writer()),
        takes(b.reader()),
        _all(other.reader()),
    )
    assert got[0] == "Retired" and got[3] == ["x"]


@th.process
def _all(inp: Any) -> list[Any]:
    return list(inp)


def test_an_end_by_itself_is_not_pickled() -> None:
    c = Channel("c")
    r, w = c.reader(), c.writer()
    for what in (lambda: pickle.dumps(r), lambda: copy.copy(w)):
        with pytest.raises(BadUse, match="by itself it can be neither copied nor pickled"):
            what()


def test_an_end_that_is_not_chosen_stays_with_its_sender() -> None:
    """Rules 2.4, 5.10. In an earlier version the packed end was mistaken for an end when the choice
    was destroyed, which showed only if bits 32 to 35 of its address were 0. So programs are started
    until one of them has such an address.
    """
    code = "import os_process_targets_ends as targets; targets.sends_no_end()"
    lies_elsewhere = 77
    first = f"import sys\nif id(object()) >> 32 & 15: sys.exit({lies_elsewhere})\n"
    status, output = lies_elsewhere, ""
    while status == lies_elsewhere:
        done = subprocess.run(
            [sys.executable, "-c", first + code],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
        )
        status, output = done.returncode, done.stderr
    assert status == 0, output

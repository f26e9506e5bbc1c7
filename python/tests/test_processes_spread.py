"""Tests that a knot of processes in several OS processes is found while other processes continue
(rules 10.5, 14.3, 14.7, WIRE.md 10.9); and tests the figures of a channel of another OS process
(rule 14.8).

Each test starts interpreters, except those that judge invented reports of address spaces.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import os_process_targets_spread as there
import pytest
from test_processes import nobody_is_left  # noqa: F401 – a fixture

import weft.threads as th
from weft import Deadlock
from weft._distributed_deadlock import partial as _partial
from weft.observe import deadlocks, watching_deadlocks
from weft.processes import Channel, Hosts, Parallel, run, statistics

BOUND = 280.0  # s: no test waits longer than this

pytestmark = pytest.mark.usefixtures("nobody_observes")


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with Hosts(2) as hosts:
        yield hosts


@pytest.fixture(autouse=True)
def the_hosts_are_up(two: Hosts) -> None:
    """Fixes the order of the fixtures, so that nobody_is_left also counts the hosts that remain."""


passes_on_here = there.passes_on.on("threads")


def found_beside(*network: Any, wanted: int) -> Any:
    """Returns the result of deadlocks() once `wanted` processes are stuck. A process that is not
    part of the network calls deadlocks().
    """
    found: list[Any] = []

    @th.process
    def looks() -> None:
        until = time.monotonic() + BOUND
        while len((now := deadlocks()).processes) < wanted and time.monotonic() < until:
            pass
        found.append(now)
        raise there.Enough

    with pytest.raises(there.Enough):
        Parallel(*network, looks())
    assert not deadlocks()
    return found[0]


def rows(found: Any) -> list[tuple[Any, ...]]:
    return [(p.path, p.operation, p.places, p.waits_for, p.pid) for p in found.processes]


# --- found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [there.passes_on, there.passes_on_async])
def test_a_knot_over_two_hosts(two: Hosts, kind: Any) -> None:
    """Rules 10.5, 14.7: the stuck processes are named by their paths in this network, with their
    OS processes."""
    c, d = Channel("c"), Channel("d")
    found = found_beside(
        kind.on(two[0])(c.reader(), d.writer()).named("first"),
        kind.on(two[1])(d.reader(), c.writer()).named("second"),
        wanted=2,
    )
    assert rows(found) == [
        ("main/first", "read", ("'c'",), ("main/second",), two[0].pid),
        ("main/second", "read", ("'d'",), ("main/first",), two[1].pid),
    ]
    assert "os_process_targets_spread.py:" in found.processes[0].at


def test_a_knot_of_a_host_and_of_processes_here(two: Hosts) -> None:
    """Rules 10.5, 14.7: the processes of this program that wait for the knot are named too."""
    c, d, e = Channel("c"), Channel("d"), Channel("e")
    found = found_beside(
        there.passes_on.on(two[0])(c.reader(), d.writer()).named("there"),
        passes_on_here(d.reader(), c.writer()).named("here"),
        passes_on_here(e.reader(), d.writer()).named("behind"),
        there.passes_on.on(two[1])(c.reader(), e.writer()).named("further"),
        wanted=4,
    )
    assert {(row[0], row[2], row[3], row[4]) for row in rows(found)} == {
        ("main/there", ("'c'",), ("main/here",), two[0].pid),
        ("main/here", ("'d'",), ("main/behind", "main/there"), None),
        ("main/behind", ("'e'",), ("main/further",), None),
        ("main/further", ("'c'",), ("main/here",), two[1].pid),
    }


def test_a_knot_over_a_host_of_a_host(two: Hosts) -> None:
    """Rule 14.7: a knot is found whose channel was made in a host."""
    c, d = Channel("c"), Channel("d")
    found = found_beside(
        there.with_a_host.on(two[0])(c.reader(), d.writer()),
        passes_on_here(d.reader(), c.writer()).named("here"),
        wanted=3,
    )
    assert {(row[0], row[2], row[3]) for row in rows(found)} == {
        ("main/here", ("'d'",), ("main/with_a_host", "main/with_a_host/passes_on[1]")),
        ("main/with_a_host/passes_on[0]", ("'c'",), ("main/here",)),
        ("main/with_a_host/passes_on[1]", ("'between'",), ("main/with_a_host/passes_on[0]",)),
    }
    assert len({row[4] for row in rows(found)}) == 3


def test_a_knot_by_a_full_buffer(two: Hosts) -> None:
    """Rules 1.4, 14.7: a knot is found whose writer waits for a credit (wire 6.2)."""
    c, d = Channel("c", capacity=2), Channel("d")
    found = found_beside(
        there.fills.on(two[0])(c.writer(), 20, d.writer()),
        there.holds.on(two[1])(d.reader(), c.reader()),
        wanted=2,
    )
    assert [row[:4] for row in rows(found)] == [
        ("main/fills", "write", ("'c'",), ("main/holds",)),
        ("main/holds", "read", ("'d'",), ("main/fills",)),
    ]


def test_choices_over_channels_of_one_home_and_of_two(two: Hosts) -> None:
    """Rules 5, 14.3, 14.7: each of the places where the choice waits is named."""
    c, d, e = Channel("c"), Channel("d"), Channel("e")
    found = found_beside(
        there.chooses.on(two[0])(c.reader(), d.reader(), e.writer()),
        there.chooses_beside_its_own.on(two[1])(e.reader(), c.writer()),
        passes_on_here(e.reader(), d.writer()).named("here"),
        wanted=4,
    )
    assert {row[:3] for row in rows(found)} == {
        ("main/chooses", "select", ("'c'", "'d'")),
        ("main/chooses_beside_its_own/_chooses_here", "select", ("'e'", "'mine'")),
        ("main/chooses_beside_its_own/_holds_here", "read", ("'e'",)),
        ("main/here", "read", ("'e'",)),
    }


# --- no process is accused ------------------------------------------------------------------------


def nobody_while(*network: Any, until: Callable[[], Any]) -> list[Any]:
    """Checks ten times that deadlocks() names none of the processes of the network. Then `until`
    lets these processes continue.
    """

    @th.process
    def looks() -> None:
        for _ in range(10):
            assert not deadlocks()
        until()

    return Parallel(*network, looks())


def test_not_if_a_process_that_runs_holds_an_end(two: Hosts, tmp_path: Path) -> None:
    """Rule 14.3: no process is stuck while a process that runs in another OS process holds the
    end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    c, d = Channel("c"), Channel("d")
    word = os.open(fifo, os.O_RDWR)
    results = nobody_while(
        there.passes_on.on(two[0])(c.reader(), d.writer()),
        passes_on_here(d.reader(), c.writer()),
        there.waits_for_word.on(two[1])(str(fifo), c.writer()),
        until=lambda: os.write(word, b"!"),
    )
    os.close(word)
    assert results[0] == "word"


@th.process
def last(inp: Any, out: Any) -> None:
    """The process that the value reaches last in the ring."""
    assert inp.read() == "x"


def test_not_if_an_end_is_held_by_no_process(two: Hosts) -> None:
    """Rule 14.3: no process is stuck while a local variable in this program holds the end."""
    c, d = Channel("c"), Channel("d")
    mine = c.writer()
    nobody_while(
        there.passes_on.on(two[0])(c.reader(), d.writer()),
        last(d.reader(), c.writer()),
        until=lambda: mine.write("x"),
    )
    mine.retire()


def test_not_if_an_end_is_in_a_buffer(two: Hosts) -> None:
    """Rule 14.3: no process is stuck while a value with the end is under way."""
    c, d, carries = Channel("c"), Channel("d"), Channel("carries", capacity=1)
    reader = carries.reader()

    @th.process
    def sends(out: Any, end: Any) -> None:
        out.write(end)

    nobody_while(
        there.passes_on.on(two[0])(c.reader(), d.writer()),
        last(d.reader(), c.writer()),
        sends(carries.writer(), c.writer()),
        until=lambda: reader.read().write("x"),
    )


def test_nobody_in_a_network_that_goes_on(two: Hosts) -> None:
    """Rule 14.3: most of the processes wait at any moment, and none waits forever."""
    n, done = 300, Channel("done")
    ring = [Channel(f"ring {i}", capacity=i % 3) for i in range(4)]

    @th.process
    def starts(inp: Any, out: Any, over: Any) -> int:
        out.write(0)
        for _ in range(n - 1):
            out.write(inp.read() + 1)
        value = int(inp.read())
        over.write(None)
        return value

    @th.process
    def looks(over: Any) -> int:
        from weft.threads import select, skip

        looked = 0
        while select(over, skip())[0] == 1:
            assert not deadlocks()
            looked += 1
        return looked

    results = Parallel(
        starts(ring[3].reader(), ring[0].writer(), done.writer()),
        there.goes_round.on(two[0])(ring[0].reader(), ring[1].writer(), n),
        there.goes_round.on(two[1])(ring[1].reader(), ring[2].writer(), n),
        there.goes_round.on(two[0])(ring[2].reader(), ring[3].writer(), n),
        looks(done.reader()),
    )
    assert results[0] == 4 * n - 1 and results[4] > 0


# --- watching -------------------------------------------------------------------------------------


@th.process
def until_told(signal: Any) -> None:
    """Waits for a signal in a process that may continue unaided, so that the whole run is not
    deadlocked (rule 10.3).
    """
    th.select(signal, th.after(BOUND))
    raise there.Enough


def test_an_observer_is_warned_once(two: Hosts) -> None:
    """Rule 14.7: a knot is found while another process continues; a single warning names both stuck
    processes."""
    c, d, signal = Channel("c"), Channel("d"), Channel("told")
    seen: list[str] = []
    says = signal.writer()

    def shown(message: Any, *_: Any, **__: Any) -> None:
        seen.append(str(message))
        says.write(None)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = shown  # type: ignore[assignment]
        with pytest.raises(there.Enough), watching_deadlocks("warn"):
            Parallel(
                there.passes_on.on(two[0])(c.reader(), d.writer()).named("first"),
                there.passes_on.on(two[1])(d.reader(), c.writer()).named("second"),
                until_told(signal.reader()),
            )
    (message,) = seen
    assert message.startswith("partial deadlock: 2 processes are stuck")
    assert f"in OS process {two[0].pid}; held by main/second" in message


def test_an_observer_that_raises_gets_deadlock(two: Hosts) -> None:
    """Rule 14.7: the run that waits for the stuck processes raises Deadlock."""
    c, d = Channel("c"), Channel("d")
    held = Channel("held")
    kept = held.writer()

    with pytest.raises(Deadlock) as caught, watching_deadlocks("raise"):
        run(
            there.passes_on.on(two[0])(c.reader(), d.writer()).named("first"),
            passes_on_here(d.reader(), c.writer()).named("second"),
            until_told(held.reader()),
        )
    assert {p.path for p in caught.value.processes} == {"main/first", "main/second"}
    kept.retire()
    assert run(there.goes_round.on(two[0])(None, None, 0)) == 0


# --- the reports of spaces, and the conclusions ---------------------------------------------------

ROOT, HOST = 1, 2  # incarnations
C, D, E, FAR_C, FAR_D = 10, 11, 12, 20, 21  # places


def space(number: int, waits: dict[int, tuple[int, bool]], **different: Any) -> _partial.Moment:
    """Returns the report of an address space whose processes wait, each at (place, whether it
    writes), and belong to no group.
    """
    names = {C: "c", D: "d", FAR_C: "c", FAR_D: "d"}
    at = {place for place, _ in waits.values()}
    waiters = [
        (p, f"main/p{p}", "write" if w else "read", "x.py:1", 0, "places", [(place, w)], [], True)
        for p, (place, w) in waits.items()
    ]
    places = {
        key: (names[key], True, (), (), 0, 0, (5, 0, 0) if key in (C, D) else None) for key in at
    }
    usual: dict[str, Any] = {
        "pid": number,
        "incarnation": number,
        "sessions": [],
        "lent": [],
        "far": [],
        "held": [],
        "facts": [(waiters, places)],
        "figures": {},
        "shared": [],
        "calls": {},
        "away": {},
    }
    return _partial.Moment(**{**usual, **different})


def moments_of(
    root: dict[str, Any] | None = None, host: dict[str, Any] | None = None
) -> _partial.Round:
    """Process 7 of the root reads d and holds c's writer; process 8 of the host reads c and holds
    d's writer. Both channels have their home in the root.
    """
    return _partial.Round(
        [
            space(
                ROOT,
                {7: (D, False)},
                **{
                    "sessions": [(HOST, 40, 30)],
                    "lent": [(HOST, 0, C, False, 2), (HOST, 1, D, True, 2)],
                    "held": [(7, D, False, 100), (7, C, True, 101)],
                    "figures": {C: (5, 0, 0), D: (5, 0, 0)},
                    **(root or {}),
                },
            ),
            space(
                HOST,
                {8: (FAR_C, False)},
                **{
                    "sessions": [(ROOT, 30, 40)],
                    "far": [(FAR_C, ROOT, 0, 1), (FAR_D, ROOT, 1, 1)],
                    "held": [(8, FAR_C, False, 200), (8, FAR_D, True, 201)],
                    **(host or {}),
                },
            ),
        ]
    )


def judged(*rounds: _partial.Round) -> set[Any]:
    return _partial.judge(list(rounds))[1]


BOTH = {(ROOT, 7), (HOST, 8)}


def test_what_all_say_three_times_is_so() -> None:
    """Rule 14.3, WIRE.md 10.9: processes are stuck if three rounds of reports agree."""
    assert judged(moments_of(), moments_of(), moments_of()) == BOTH
    more = moments_of({"sessions": [(HOST, 50, 30)]})  # frames of other channels
    then = moments_of(host={"sessions": [(ROOT, 30, 50)]})
    assert judged(moments_of(), more, then) == BOTH


@pytest.mark.parametrize(
    "root, host",
    [
        ({"figures": {C: (6, 0, 0), D: (5, 0, 0)}}, {}),  # a value has passed
        ({"figures": {C: (5, 0, 1), D: (5, 0, 0)}}, {}),  # a value has entered the buffer
        # Another process holds an end.
        ({"lent": [(HOST, 0, C, False, 3), (HOST, 1, D, True, 2)]}, {}),
        ({"lent": [(HOST, 0, C, False, 3), (HOST, 1, D, True, 2), (3, 0, C, True, 3)]}, {}),
        # The host has an end that no process holds.
        ({}, {"far": [(FAR_C, ROOT, 0, 2), (FAR_D, ROOT, 1, 1)]}),
        ({}, {"far": [(FAR_C, ROOT, 0, 1)]}),  # d's end has not arrived yet, or is being returned
        ({}, {"shared": [FAR_D]}),  # d's end has not arrived yet, or is being returned
        ({"sessions": [(HOST, 20, 20), (HOST, 20, 10)]}, {}),  # there are two sessions
        ({"sessions": []}, {}),
        ({"held": [(7, D, False, 100), (7, C, True, 101), (9, C, True, 102)],
          "lent": [(HOST, 0, C, False, 3), (HOST, 1, D, True, 2)],
          "facts": [([(7, "main/p7", "read", "x.py:1", 0, "places", [(D, False)], [], True),
                      (9, "main/p9", "", "x.py:1", 0, "able", [], [], True)],
                     # A process that runs holds an end.
                     {D: ("d", True, (), (), 0, 0, (5, 0, 0))})]}, {}),
        ({}, {"facts": [([(8, "main/p8", "", "x.py:2", 0, "able", [], [], True)], {})]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("when", range(3))
def test_and_nobody_is_accused_if_one_says_anything_else(
    root: dict[str, Any], host: dict[str, Any], when: int
) -> None:
    """Rule 14.3, WIRE.md 10.9: a change in any round matters."""
    rounds = [moments_of(), moments_of(), moments_of()]
    rounds[when] = moments_of(root, host)
    assert judged(*rounds) == set()


def test_nor_if_something_was_under_way() -> None:
    """WIRE.md 10.9: the frames that each side had sent before a round must have arrived at the
    other side before the next round; the counts have 32 bits."""
    late = moments_of({"sessions": [(HOST, 40, 30)]}, {"sessions": [(ROOT, 30, 39)]})
    assert (
        judged(moments_of(), moments_of(), late)
        == set()
        == judged(moments_of(), late, moments_of())
    )
    assert judged(late, moments_of(), moments_of()) == BOTH
    asked = moments_of({"sessions": [(HOST, 40, 29)]}, {"sessions": [(ROOT, 30, 40)]})
    assert judged(moments_of(), moments_of(), asked) == set()
    wraps = moments_of({"sessions": [(HOST, 2**32 - 1, 30)]}, {"sessions": [(ROOT, 30, 2**32 - 1)]})
    over = moments_of({"sessions": [(HOST, 1, 30)]}, {"sessions": [(ROOT, 30, 1)]})
    assert judged(wraps, over, over) == BOTH


def test_a_process_that_waits_for_a_call_goes_on_once_that_does() -> None:
    """Rule 14.3: a process that waits for a call in a host also holds ends, and continues when the
    call does."""
    calls = {"calls": {8: "end1"}}
    caller = {
        "away": {(HOST, "end1"): 7},
        "held": [(7, C, True, 101)],
        "lent": [(HOST, 0, C, False, 2), (HOST, 1, D, True, 1)],
    }
    assert judged(*[moments_of(caller, calls) for _ in range(3)]) == BOTH
    assert moments_of(caller, calls).row((HOST, 8)).path == "main/p7"
    assert judged(*[moments_of(caller, {}) for _ in range(3)]) == set()  # the call has ended
    runs = {"facts": [([(8, "main/p8", "", "x.py:2", 0, "able", [], [], True)], {})]}
    assert judged(*[moments_of(caller, {**calls, **runs}) for _ in range(3)]) == set()


def test_a_process_that_waits_for_its_children_goes_on_if_all_of_them_may() -> None:
    """Rule 14.3: a process with children is stuck only if a child of it is stuck."""

    def found(*states: str) -> set[Any]:
        """Returns the stuck processes, where a process that is in no operation has children that
        are stuck at c or that may continue."""
        mine = [(6, "main", "", "x.py:1", 0, "children", [], [], True)] + [
            (20 + i, f"main/p{i}", "read", "x.py:1", 6, state, at, [], True)
            for i, state in enumerate(states)
            for at in [[(C, False)] if state == "places" else []]
        ]
        facts = [(mine, {C: ("c", True, (), (20,), 0, 0, (5, 0, 0))})]
        return judged(*[_partial.Round([space(ROOT, {})._replace(facts=facts)]) for _ in range(3)])

    assert found("places", "places") == {(ROOT, 6), (ROOT, 20), (ROOT, 21)}
    assert found("places", "able") == {(ROOT, 6), (ROOT, 20)}
    assert found("able", "places") == set()
    assert found("able", "able") == found() == set()


def test_two_sessions_of_two_spaces_say_nothing_of_an_end() -> None:
    """WIRE.md 10.9: if two address spaces have two sessions, it is unknown to which session the
    number of an end belongs, even if no process waits at that end.
    """
    here = {"lent": [(HOST, 1, D, True, 2)], "far": [(C, HOST, 5, 1)]}
    existing = {
        "lent": [(ROOT, 5, E, True, 2)],
        "far": [(FAR_D, ROOT, 1, 1)],
        "held": [(8, E, False, 200), (8, FAR_D, True, 201)],
        "facts": [([(8, "main/p8", "read", "x.py:2", 0, "places", [(E, False)], [], True)],
                   {E: ("e", True, (), (), 0, 0, (5, 0, 0))})],
    }  # fmt: skip
    assert judged(*[moments_of(here, existing) for _ in range(3)]) == BOTH
    two = {**here, "sessions": [(HOST, 40, 30), (HOST, 1, 1)]}
    assert judged(*[moments_of(two, existing) for _ in range(3)]) == set()


def test_a_side_that_never_had_an_end_may_get_one() -> None:
    """Rule 14.3: a channel whose other side never had an end accuses no process."""
    alone = {
        "lent": [(HOST, 0, C, False, 2)],
        "facts": [([(7, "main/p7", "read", "x.py:1", 0, "places", [(D, False)], [], True)],
                   {D: ("d", True, (), (), 0, 0, (5, 0, 0))})],
    }  # fmt: skip
    silent = {"far": [(FAR_C, ROOT, 0, 1)], "held": [(8, FAR_C, False, 200)]}
    assert judged(*[moments_of(alone, silent) for _ in range(3)]) == set()


def test_a_process_that_waits_for_the_end_of_a_stuck_process_is_stuck_too() -> None:
    """Rules 7.11, 14.3: a process that waits for the end of a stuck process is stuck."""
    waits = (9, "main/p9", "wait for", "x.py:3", 0, "places", [(40, False)], [], True)
    facts = [
        (
            [*space(ROOT, {7: (D, False)}).facts[0][0], waits],
            {
                D: ("d", True, (), (), 0, 0, (5, 0, 0)),
                40: ("the end of p7", True, (), (7,), 0, 0, None),
            },
        )
    ]
    assert judged(*[moments_of({"facts": facts}) for _ in range(3)]) == {*BOTH, (ROOT, 9)}


def test_a_process_at_a_barrier_goes_on_if_any_process_may() -> None:
    """Rule 14.3: any party that may continue can still arrive, in whichever OS process it holds an
    end."""
    at_barrier = space(3, {})._replace(
        facts=[([(9, "main/p9", "sync", "x.py:3", 0, "places", [(30, False)], [], True)],
                {30: ("b", False, (), (), 0, 0, None)})]
    )  # fmt: skip
    runs = space(4, {})._replace(
        facts=[([(2, "main/p2", "", "x.py:4", 0, "able", [], [], True)], {})]
    )

    def found(*spaces: Any) -> set[Any]:
        return judged(*[_partial.Round(list(spaces)) for _ in range(3)])

    assert found(at_barrier) == {(3, 9)}
    assert found(at_barrier, runs) == set()


# --- figures --------------------------------------------------------------------------------------


def test_figures_are_asked_where_the_channel_was_made(two: Hosts) -> None:
    """Rule 14.8: in any other OS process the question is bad use, and the error names the OS
    process to ask."""
    c: Channel[int] = Channel("c", capacity=3)
    c.writer().write(1)
    signal = run(there.figures_of.on(two[0])(c.reader()))
    assert signal.startswith("main/figures_of: statistics of channel 'c': it was made by another")
    # An earlier test may have given this program a name, such as "python".
    assert re.search(rf"\((python|[a-z]+( of)? {os.getpid()})\)", signal)
    assert "measuring()" in signal
    assert statistics(c).readers == 0 and statistics(c).transfers == 0

"""The engine of `weft check` on networks of Python's processes (rules 17.2 to 17.9)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from checking_kernels import KERNELS
from checking_nets import chain, hidden, merging, philosophers, reads, writers, writes_one

import weft
from weft import coroutines, greenlets, threads
from weft._checking import _engine
from weft._checking.engine import (
    Options,
    Outcome,
    Search,
    choose,
    decided,
    is_checking,
    replay,
    shrink,
)

MODULES: dict[str, Any] = {"coroutines": coroutines, "greenlets": greenlets, "threads": threads}


def searched(
    function: Callable[[], Any], search: str = "reduced", **options: Any
) -> tuple[Search, list[Outcome]]:
    s = Search(function, Options(search, **options))
    return s, list(s)


def failures(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.failed]


@pytest.mark.parametrize(
    ("function", "runs"),
    [
        (chain, 1),
        (partial(merging, 1), 4),
        (partial(merging, 2), 36),
        (partial(writers, 3), 6),
        (partial(writers, 5), 120),
        (partial(philosophers, 5, True), 30),
        (partial(philosophers, 8, True), 254),
        (partial(hidden, True), 2),
    ],
    ids=[
        "chain",
        "merging 1",
        "merging 2",
        "3 writers",
        "5 writers",
        "philosophers 5",
        "philosophers 8",
        "mended",
    ],
)
def test_so_many_schedules_stand_for_all(function: Callable[[], Any], runs: int) -> None:
    """Rule 17.7: the reduced search is complete after this number of runs."""
    s, outcomes = searched(function)
    assert (s.complete, s.runs, s.blocked, failures(outcomes)) == (True, runs, 0, [])


def test_a_deadlock_that_plain_runs_never_have_is_found_in_the_second_run() -> None:
    """Rules 17.5, 17.7: plain runs do not show the deadlock, and the search finds it in its second
    run."""
    for _ in range(50):
        hidden()
    s, outcomes = searched(hidden)
    assert (s.complete, s.runs) == (True, 3)
    assert [outcome.kind for outcome in outcomes] == ["ok", "deadlock", "ok"]


def test_writers_come_in_every_order() -> None:
    """Rule 17.7: the search finds the outcomes of all schedules."""
    _, outcomes = searched(partial(writers, 4))
    assert len({outcome.value for outcome in outcomes}) == len(outcomes) == 24


@pytest.mark.parametrize("search", ["walk", "pct", "few"])
def test_other_searches_find_it_too(search: str) -> None:
    """Rule 17.5: the incomplete searches find the deadlock of three philosophers too."""
    s, outcomes = searched(partial(philosophers, 3, False), search, schedules=1000)
    found = failures(outcomes)
    assert {outcome.kind for outcome in found} == {"deadlock"}
    assert s.ways == {search: s.runs}


@pytest.mark.parametrize("name", MODULES)
def test_a_schedule_is_the_same_whatever_its_processes_are(name: str) -> None:
    """Rule 17.2: coroutines, greenlets and threads have the same schedules."""
    m = MODULES[name]

    if m is coroutines:

        async def philosopher(first: Any, second: Any) -> None:
            await first[0].write(None)
            await second[0].write(None)
            await second[1].read()
            await first[1].read()
    else:

        def philosopher(first: Any, second: Any) -> None:  # type: ignore[misc]
            first[0].write(None)
            second[0].write(None)
            second[1].read()
            first[1].read()

    body = m.process(philosopher)

    def dinner() -> None:
        forks = [m.Channel(f"fork{i}", capacity=1) for i in range(3)]

        def ends(i: int) -> Any:
            return forks[i % 3].writer(), forks[i % 3].reader()

        m.run(*[body(ends(i), ends(i + 1)) for i in range(3)])

    s, outcomes = searched(dinner)
    assert (s.complete, s.runs, len(failures(outcomes))) == (True, 7, 1)
    few, outcomes = searched(dinner, "few")
    assert (few.complete, len(failures(outcomes))) == (
        True,
        len(failures(searched(partial(philosophers, 3, False), "few")[1])),
    )


@pytest.mark.parametrize("name", MODULES)
def test_selects_barriers_and_times_are_the_same_whatever_processes_are(name: str) -> None:
    """Rule 17.2: coroutines, greenlets and threads give the same outcomes with selects, barriers
    and times."""
    m = MODULES[name]
    awaits = m is coroutines

    def body(f: Callable[..., Iterator[Any]]) -> Any:
        """Returns a process function that performs the operations that the generator `f` yields."""
        if awaits:

            async def run_all(*args: Any) -> Any:
                steps, value = f(*args), None
                try:
                    while True:
                        value = await steps.send(value)()  # type: ignore[attr-defined]
                except StopIteration as stop:
                    return stop.value

            return m.process(run_all)

        def run_all_here(*args: Any) -> Any:
            steps, value = f(*args), None
            try:
                while True:
                    value = steps.send(value)()  # type: ignore[attr-defined]
            except StopIteration as stop:
                return stop.value

        return m.process(run_all_here)

    def meets(barrier: Any, out: Any, value: int) -> Iterator[Any]:
        yield barrier.sync
        yield partial(out.write, value)

    def merges(a: Any, b: Any) -> Iterator[Any]:
        got = []
        for _ in range(2):
            _, value = yield partial(m.select, a, b)
            got.append(value)
        yield partial(m.sleep, 1)
        return tuple(got)

    meets, merges = body(meets), body(merges)

    def network() -> Any:
        barrier, a, b = m.Barrier(2), m.Channel("a"), m.Channel("b")
        return m.run(
            meets(barrier, a.writer(), 1),
            meets(barrier, b.writer(), 2),
            merges(a.reader(), b.reader()),
        )[-1]

    s, outcomes = searched(network)
    assert s.complete
    assert {outcome.value for outcome in outcomes} == {(1, 2), (2, 1)}
    assert s.runs == 6


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernels_bug_is_found_and_what_mends_it_is_not_blamed(name: str) -> None:
    """Rule 17.5: the bug of each Go program of GoBench is found, and the mended program is not
    blamed."""
    kernel, time = KERNELS[name]
    for search in ("reduced", "walk", "pct", "few"):
        s = Search(partial(kernel, False), Options(search, time=time, schedules=1000))
        found = next((outcome for outcome in s if outcome.failed), None)
        assert found is not None, search
        assert found.kind in ("deadlock", "exception")
    for search in ("reduced", "walk", "pct"):
        s, outcomes = searched(partial(kernel, True), search, time=time, schedules=300)
        assert failures(outcomes) == []
        if search == "reduced" and name not in ("etcd/7492", "moby/33781"):
            assert s.complete or s.cut == {"early"}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernels_failure_is_made_short(name: str) -> None:
    """Rule 17.8: the schedule is reduced to the fewest deviations, and replayed from them."""
    kernel, time = KERNELS[name]
    function, options = partial(kernel, False), Options("walk", time=time, schedules=1000)
    failed = next(outcome for outcome in Search(function, options) if outcome.failed)
    short = shrink(function, failed, options, seconds=10)
    assert short.least
    assert len(short.outcome.deviations) <= 2
    again = replay(function, short.outcome.deviations, options)
    assert (again.kind, again.deviations, again.difference) == (
        short.outcome.kind,
        short.outcome.deviations,
        "",
    )


def test_hidden_needs_one_deviation() -> None:
    """Rule 17.8: a schedule with several deviations is shortened to one, which can be replayed."""
    failed = next(outcome for outcome in Search(hidden, Options("walk")) if outcome.failed)
    assert len(failed.deviations) > 1
    short = shrink(hidden, failed)
    assert short.least
    (deviation,) = short.outcome.deviations
    assert deviation[2] == "go"
    assert replay(hidden, [deviation]).kind == "deadlock"
    assert replay(hidden, short.outcome.numbers).kind == "deadlock"
    assert replay(partial(hidden, True), [deviation]).kind == "ok"


def test_deviations_that_do_not_fit_are_told_and_are_no_failure() -> None:
    """Rule 17.8: if a deviation does not fit, the outcome names the step at which it should have
    occurred."""
    outcome = replay(chain, [("main/stage[7]", 3, "go", "main/sink")])
    assert outcome.kind == "ok"
    assert outcome.difference.startswith("after step 3 of main/stage[7]")
    assert "decision 900" in replay(chain, [(900, 1)]).difference


def test_a_program_that_is_not_the_same_twice_is_noticed() -> None:
    """Rule 17.9: a program whose number of processes is random is reported."""

    def differs() -> None:
        n = 1 + os.urandom(1)[0] % 3
        philosophers(2 + n, False)

    for _ in range(5):
        s, outcomes = searched(differs)
        if "not the same" in s.cut:
            assert not s.complete
            assert outcomes[-1].kind == "not the same"
            assert "main" in outcomes[-1].difference
            return
    pytest.fail("never noticed")


def test_a_search_for_few_notices_it_too() -> None:
    """Rule 17.9: the search "few" also notices that a later run has other processes."""
    sizes = iter([3] + [4] * 100)
    _s, outcomes = searched(lambda: philosophers(next(sizes), False), "few")
    assert outcomes[-1].kind == "not the same"


def test_where_processes_park_alone_there_are_fewer_schedules() -> None:
    """Rule 17.2: the philosophers' deadlock is found only at the grain of operations."""
    s, outcomes = searched(partial(philosophers, 3, False), "all", grain="park")
    assert s.complete
    assert failures(outcomes) == []


def test_times_come_when_nobody_can_run_or_at_any_moment() -> None:
    """Rule 17.3: a late value may arrive first only if times may pass early."""

    @coroutines.process
    async def late(out: Any) -> None:
        await coroutines.sleep(1000)
        await out.write("late")

    @coroutines.process
    async def soon(out: Any) -> None:
        for _ in range(2):
            await coroutines.yield_()
        await out.write("soon")

    def network() -> Any:
        c = coroutines.Channel("c")

        @coroutines.process
        async def both(inp: Any) -> Any:
            return await inp.read(), await inp.read()

        return coroutines.run(late(c.writer()), soon(c.writer()), both(c.reader()))[-1]

    for search in ("reduced", "all"):
        _, outcomes = searched(network, search, schedules=5000)
        assert {outcome.value for outcome in outcomes if outcome.value} == {("soon", "late")}
        _, outcomes = searched(network, search, time="any", schedules=5000)
        assert {outcome.value for outcome in outcomes if outcome.value} == {
            ("soon", "late"),
            ("late", "soon"),
        }


def test_a_run_without_an_end_is_stopped() -> None:
    """Rule 17.5: a run that exceeds the limit of steps has the outcome "no end"."""

    @coroutines.process
    async def spins() -> None:
        while True:
            await coroutines.yield_()

    for search in ("plain", "walk", "reduced"):
        s = Search(lambda: coroutines.run(spins()), Options(search, limit=200))
        outcome = next(iter(s))
        assert (outcome.kind, outcome.cut) == ("no end", "limit")


def test_an_exception_of_one_order_is_found() -> None:
    """Rule 17.5: the search finds the one order in which an assertion fails."""

    def fails() -> None:
        assert writers(3) != (2, 0, 1)

    s, outcomes = searched(fails)
    (found,) = failures(outcomes)
    assert isinstance(found.error, AssertionError)
    assert s.runs == 6


def test_a_choice_of_the_program_is_searched_and_replayed() -> None:
    """Rule 17.10: the search runs every combination of the choices of choose()."""

    @coroutines.process
    async def chooses(out: Any) -> None:
        first, second = choose(2), choose(3)
        await out.write((first, second))

    def network() -> Any:
        c = coroutines.Channel("c")

        @coroutines.process
        async def takes(inp: Any) -> Any:
            return await inp.read()

        return coroutines.run(chooses(c.writer()), takes(c.reader()))[-1]

    assert choose(5) == 0
    s, outcomes = searched(network)
    assert s.complete
    assert sorted(outcome.value for outcome in outcomes) == [
        (a, b) for a in range(2) for b in range(3)
    ]
    outcome = replay(network, [("main/chooses", 1, "fault", 1)])
    assert outcome.value == (1, 0)


def test_values_that_nobody_takes_are_counted() -> None:
    """Rule 17.5: the outcome has the number of values that remain in the buffer."""

    @coroutines.process
    async def leaves(out: Any) -> None:
        for i in range(3):
            await out.write(i)

    @coroutines.process
    async def takes_one(inp: Any) -> None:
        await inp.read()

    def network() -> None:
        c = coroutines.Channel("c", capacity=3)
        coroutines.run(leaves(c.writer()), takes_one(c.reader()))

    outcome = next(iter(Search(network, Options("plain"))))
    assert (outcome.kind, outcome.lost) == ("ok", 2)


def test_io_is_a_step_in_place() -> None:
    """Rule 17.3: each run calls an io function once for each process, and both orders are found."""
    calls = []

    @coroutines.process
    async def computes(out: Any, x: int) -> None:
        await out.write(await coroutines.io(lambda: calls.append(x) or x)())

    def network() -> Any:
        c = coroutines.Channel("c")

        @coroutines.process
        async def takes(inp: Any) -> Any:
            return await inp.read(), await inp.read()

        return coroutines.run(computes(c.writer(), 1), computes(c.writer(), 2), takes(c.reader()))[
            -1
        ]

    s, outcomes = searched(network)
    assert s.complete
    assert {outcome.value for outcome in outcomes} == {(1, 2), (2, 1)}
    assert len(calls) == 2 * (s.runs + s.blocked)


def test_a_check_within_a_check_is_refused_and_the_outer_goes_on() -> None:
    """Rule 17.2: the inner check is refused, and the outer check is complete."""

    def nested() -> None:
        assert is_checking()
        with pytest.raises(RuntimeError, match="a check within a check"):
            next(iter(Search(chain)))
        chain()

    s, outcomes = searched(nested)
    assert (s.complete, failures(outcomes)) == (True, [])
    assert not is_checking()


def test_after_a_check_networks_run_as_before() -> None:
    """Rule 17.12: after a search, networks have their usual results."""
    searched(hidden)
    assert chain() == [3, 4, 5, 6, 7]
    hidden()


def test_a_search_ends_at_its_bounds() -> None:
    """Rule 17.7: the report says which bound has ended the search."""
    s, outcomes = searched(partial(writers, 5), schedules=10)
    assert (len(outcomes), s.complete, s.cut) == (10, False, {"schedules"})
    s, _ = searched(partial(writers, 5), seconds=0.0)
    assert (s.runs, s.complete, s.cut) == (0, False, {"seconds"})


def test_auto_is_complete_where_the_reduced_search_is_and_else_goes_on_at_random() -> None:
    """Rule 17.7: a small network is searched completely, and a large one also at random."""
    s, _outcomes = searched(chain, "auto", seconds=5.0)
    assert (s.complete, s.ways) == (True, {"reduced": 1})
    s, _outcomes = searched(partial(merging, 5), "auto", seconds=0.5, schedules=20_000)
    assert not s.complete
    assert {"reduced", "walk"} <= set(s.ways)
    assert s.estimate > 1e6


def test_a_wrong_entry_of_the_relation_misses_outcomes() -> None:
    """Rule 17.7: if the table says that two writes of one channel commute, outcomes are missed."""
    write = 1
    for buffered in (False, True):
        _engine.flip(write, write, buffered)
    try:
        _s, outcomes = searched(partial(writers, 3))
        assert len({outcome.value for outcome in outcomes}) < 6
    finally:
        for buffered in (False, True):
            _engine.flip(write, write, buffered)
    assert searched(partial(writers, 3))[0].runs == 6


def test_many_processes_are_no_livelock() -> None:
    """Rules 17.5, 17.7: the bound on steps grows with the number of processes. A run that is too
    large to be analysed ends the reduced search early.
    """

    def many() -> None:
        channels = [weft.Channel() for _ in range(3000)]
        weft.run(
            *[writes_one(c.writer(), 1) for c in channels],
            *[reads(c.reader(), 1) for c in channels],
        )

    search = Search(many, Options("reduced", seconds=60.0))
    (outcome,) = search
    assert (outcome.kind, outcome.cut) == ("ok", "size") and outcome.steps > 20_000
    assert not search.complete and search.cut == {"size"}


def _reads_two_of_lossy_buffer(how: str, guards: int) -> tuple[Any, ...]:
    """Runs a reader and a writer at a full buffer that drops values, each with `guards` guards.
    Returns the two values that were read; ("ended",) if the channel ended before that.
    """
    c, d, e = coroutines.Channel("c", capacity=1, overflow=how), *map(coroutines.Channel, "de")
    kept = d.writer(), e.writer()

    @coroutines.process
    async def writes(out: Any, other: Any) -> None:
        for i in range(4):
            await coroutines.select(coroutines.Output(out, i), *([other] if guards > 1 else []))

    @coroutines.process
    async def reads(source: Any, other: Any) -> tuple[Any, ...]:
        guard = (source, other) if guards > 1 else (source,)
        return tuple([(await coroutines.select(*guard))[1] for _ in range(2)])

    value: Any = coroutines.run(writes(c.writer(), d.reader()), reads(c.reader(), e.reader()))[1]
    assert len(kept) == 2
    return value if isinstance(value, tuple) else ("ended",)


@pytest.mark.parametrize("guards", [1, 2])
@pytest.mark.parametrize("how", ["drop_oldest", "drop_newest"])
def test_a_select_at_a_buffer_that_drops_values_does_not_commute(how: str, guards: int) -> None:
    """Rule 17.7: a read before the write saves the value that the write would drop."""
    outcomes = [
        {
            outcome.value
            for outcome in searched(partial(_reads_two_of_lossy_buffer, how, guards), search)[1]
        }
        for search in ("all", "reduced")
    ]
    assert outcomes[0] == outcomes[1] and len(outcomes[0]) > 2


def _more_processes_than_parties() -> None:
    """Runs three processes, which arrive four times in all at a barrier of two parties."""
    barrier = coroutines.Barrier(2)

    @coroutines.process
    async def arrives(times: int) -> None:
        for _ in range(times):
            await barrier.sync()

    coroutines.run(arrives(1), arrives(1), arrives(2))


def test_arrivals_at_a_barrier_with_fewer_parties_than_processes_do_not_commute() -> None:
    """Rules 8.1, 17.7: all processes can continue only if the process that arrives twice arrives in
    the first phase."""
    search, outcomes = searched(_more_processes_than_parties)
    assert search.complete and {outcome.kind for outcome in outcomes} == {"ok", "deadlock"}


def _drained(through_select: bool) -> str:
    """Runs two readers. The reader that takes the last value ends the channel; after that no end of
    the channel can be made.
    """
    c, signal = coroutines.Channel("c", capacity=1), coroutines.Channel("told")
    first, second = coroutines.Channel("first"), coroutines.Channel("second")

    @coroutines.process
    async def writes(out: Any, *goes: Any) -> None:
        await out.write(1)
        out.retire()
        for go in goes:
            await go.write(None)

    @coroutines.process
    async def makes(go: Any, tell: Any) -> str:
        await go.read()
        try:
            c.reader()
        except weft.Retired:
            return "retired"
        finally:
            await tell.write(None)
        return "made"

    @coroutines.process
    async def takes(go: Any, source: Any, signal: Any) -> None:
        await go.read()
        await (coroutines.select(source) if through_select else source.read())
        await signal.read()

    kept = c.reader()
    made: str = coroutines.run(
        writes(c.writer(), first.writer(), second.writer()),
        makes(first.reader(), signal.writer()),
        takes(second.reader(), c.reader(), signal.reader()),
    )[1]
    kept.retire()
    return made


@pytest.mark.parametrize("through_select", [False, True])
def test_the_last_value_of_a_buffer_and_a_new_end_do_not_commute(through_select: bool) -> None:
    """Rules 2.5, 17.7: the search finds the outcome with the new end and the outcome without it."""
    search, outcomes = searched(partial(_drained, through_select))
    assert search.complete and {o.value for o in outcomes} == {"made", "retired"}


# --- several choices in one step ------------------------------------------------------------------


def _outcomes_by_replay(function: Callable[[], Any], search: str, **options: Any) -> int:
    """Replays a schedule of each outcome of a search, by names and by numbers. Returns how many
    outcomes there are.
    """
    found: dict[Any, Outcome] = {}
    for outcome in Search(function, Options(search, **options)):
        if outcome.value not in found:
            found[outcome.value] = decided(outcome)
    for value, outcome in found.items():
        for deviations in (outcome.deviations, outcome.numbers):
            assert replay(function, deviations, Options(**options)).value == value
    return len(found)


def test_the_selects_of_one_step_are_told_apart() -> None:
    """Rule 17.8. At the grain *park* a step lasts until its process parks."""

    @coroutines.process
    async def fills_and_takes(outs: Any, sources: Any) -> str:
        for out in outs:
            for i in range(3):
                await out.write(i)
        taken = [(await coroutines.select(*sources))[0] for _ in range(3)]
        coroutines.poison(*outs)
        return "".join(map(str, taken))

    def network() -> Any:
        buffers = [coroutines.Channel(name, capacity=3) for name in "abc"]
        outs, sources = [c.writer() for c in buffers], [c.reader() for c in buffers]
        return coroutines.run(fills_and_takes(outs, sources))

    assert _outcomes_by_replay(network, "all", grain="park") > 4


def test_the_faults_of_one_step_are_told_apart() -> None:
    """Rule 17.8: at one step a process may die, lose its session, or be slow, and the token
    distinguishes these."""

    @coroutines.process
    async def asks() -> str:
        return "".join(str(choose(2)) for _ in range(3))

    assert _outcomes_by_replay(lambda: coroutines.run(asks()), "all") == 8

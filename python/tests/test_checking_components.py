"""Checks of networks with coroutines of native components (rules 16.10, 17.2): their operations are
decided as those of Python's coroutines are."""

from __future__ import annotations

import gc
import sys
from typing import Any

import checked_programs as programs
import pytest
from components import needs_compiler, tasks

import weft
from weft import coroutines as co
from weft._checking import engine

pytestmark = [needs_compiler, pytest.mark.usefixtures("loaded")]
QUICK: dict[str, Any] = {"seconds": 60}  # an upper limit: each of these searches ends by itself


@pytest.fixture(scope="module")
def loaded() -> None:
    """Loads the component before a check, because a check refuses the compiler, which is another OS
    process."""
    tasks()


@co.process
async def writes(out: Any, *values: int) -> None:
    for value in values:
        await out.write(value)


@co.process
async def reads(r: Any) -> list[Any]:
    return [x async for x in r]


@co.process
async def retires(r: Any) -> None:
    r.retire()


def outcomes(function: Any, **options: Any) -> tuple[set[Any], int]:
    """Returns the different values of all schedules, and how many schedules were run."""
    one = engine.Search(function, engine.Options(search="reduced", **options))
    found = {repr(o.value) if o.kind == "ok" else o.kind for o in one}
    assert one.complete, (one.cut, found)
    return found, one.runs


# --- an order that fails --------------------------------------------------------------------------


def hidden(mended: bool = False) -> None:
    """As checked_programs.hidden(), with components in place of Python's processes."""
    native = tasks()
    a, a_back, b, b_back = [co.Channel(n) for n in ("A", "A.free", "B", "B.free")]
    h = [co.Channel(f"h{n}") for n in range(4)]
    first, second = (a, a_back), (b, b_back)
    late = (first, second) if mended else (second, first)
    co.run(
        native.takes_both(-a, -b, -a_back, -b_back),
        native.takes_later(+h[3], -late[0][0], -late[1][0], -late[0][1], -late[1][1]),
        native.key(+a, +a_back),
        native.key(+b, +b_back),
        writes(-h[0], 1),
        *[native.ints(+h[n], -h[n + 1]) for n in range(3)],
    )


def test_a_deadlock_of_one_order_is_found_and_replayed() -> None:
    """Rules 17.2, 17.4, 17.8. A plain run ends well, and the check finds the deadlock."""
    report = weft.check(hidden, **QUICK)
    assert (report.kind, report.deviations, report.least, report.status) == ("deadlock", 1, True, 3)
    assert "component_tasks.cpp:" in report.text and "knot:" in report.text
    again = weft.check(hidden, replay=report.token)
    assert again.kind == "deadlock" and again.lines == report.lines


def test_a_component_that_is_right_is_proven() -> None:
    """Rule 17.7. The search runs the same schedules as for the network of Python's processes; they
    stand for all."""
    report = weft.check(lambda: hidden(mended=True), **QUICK)
    assert not report.failed and report.complete, report.text
    in_python = weft.check(programs.hidden_mended, **QUICK)
    assert report.schedules == in_python.schedules


def test_a_check_gives_back_each_component_process_that_a_run_has_taken() -> None:
    """Rule 16.10. After a run the caller alone holds a process that has ended, and one that was
    cancelled while it waited.
    """
    held: list[Any] = []

    def network() -> None:
        native = tasks()
        c, d, e = [co.Channel(name) for name in "cde"]
        ends = [native.ints(+c, -d), native.ints(+d, -e)]
        f, g = co.Channel("f"), co.Channel("g")
        kept = f.writer()
        waits = native.ints(+f, -g)
        held.extend([*ends, waits])

        async def main() -> None:
            async with co.Group() as group:
                for p in (*ends, waits, writes(-c, 1, 2), reads(+e)):
                    group.start(p)
                await co.sleep(1)
                waits.cancel()

        co.run(co.process(main)())
        del kept

    for search in ("reduced", "walk"):
        held.clear()
        for outcome in engine.Search(network, engine.Options(search=search, schedules=20)):
            assert outcome.kind == "ok", outcome.error
        gc.collect()
        assert len(held) >= 3
        # `held`, the loop's variable and the argument of getrefcount()
        assert {sys.getrefcount(process) for process in held} == {3}


# --- the outcomes of all schedules ----------------------------------------------------------------


def two_sources(n: int, first: bool, native: bool) -> Any:
    """Runs a select over two sources, in a component or in Python."""

    @co.process
    async def either(a: Any, b: Any, log: Any) -> None:
        for _ in range(2 * n):
            guard, x = await co.select(a, b)
            await log.write(f"{'ab'[guard]} {x}")

    def network() -> Any:
        a, b, log = co.Channel("a"), co.Channel("b", capacity=1), co.Channel("log")
        ends = (+a, +b, -log) if first else (+b, +a, -log)
        chooses = tasks().either(*ends, 2 * n) if native else either(*ends)
        return co.run(writes(-a, *range(n)), writes(-b, *range(n)), chooses, reads(+log))[3]

    return network


@pytest.mark.parametrize("first", [True, False])
def test_a_select_of_a_component_takes_any_guard_that_a_rule_allows(first: bool) -> None:
    """Rules 5.4, 17.1: the search finds both outcomes, as for a select in Python."""
    found, runs = outcomes(two_sources(1, first, native=True))
    assert len(found) == 2
    assert (found, runs) == outcomes(two_sources(1, first, native=False))


@pytest.mark.soak
def test_more_values_have_the_same_outcomes() -> None:
    """Rules 5.4, 17.1: sources of two values have the same outcomes in a component and in
    Python."""
    assert outcomes(two_sources(2, True, True)) == outcomes(two_sources(2, True, False))


@pytest.mark.parametrize("grain", ["operation", "park"])
def test_two_writers_come_in_each_order(grain: str) -> None:
    """Rules 1.2, 17.2: the values of two components that write to one channel arrive in both
    orders."""

    def network() -> Any:
        a, b, c = co.Channel("a"), co.Channel("b"), co.Channel("c")
        native = tasks()
        return co.run(
            writes(-a, 1), writes(-b, 2), native.ints(+a, -c), native.ints(+b, -c), reads(+c)
        )[4]

    found, _ = outcomes(network, grain=grain)
    assert found == {"[1, 2]", "[2, 1]"}


def test_parties_of_a_barrier_in_components() -> None:
    """Rules 17.2, 17.7: the check decides a sync, a barrier as a guard, resign() and enrol() of
    components."""

    def network() -> Any:
        barrier, log, go = co.Barrier(2), co.Channel("log", capacity=9), co.Channel("go")
        native = tasks()
        return co.run(
            native.phases(barrier, -log, 2),
            native.phases(barrier, -log, 2),
            native.holds_up(barrier, +go),
            writes(-go, 1),
            reads(+log),
        )[4]

    found, _ = outcomes(network)
    before = [f"before {n}" for n in (0, 0, 1, 1)]
    assert found == {repr(before)}


def test_times_of_a_component_are_virtual() -> None:
    """Rule 17.3. Times pass without delay, and with `any` a time may pass before a value
    arrives."""

    def network() -> Any:
        a, log = co.Channel("a"), co.Channel("log")
        return co.run(writes(-a, 7), tasks().patient(+a, -log, 3_600_000), reads(+log))[2]

    quiet, _ = outcomes(network)
    assert len(quiet) == 1 and "in time 7" in next(iter(quiet))
    assert {"in time" in text for text in outcomes(network, time="any")[0]} == {True, False}


# --- how they end ---------------------------------------------------------------------------------


def test_a_poison_by_a_component_has_the_outcomes_of_pythons() -> None:
    """Rules 4.1, 17.2: a poison by a component has the same outcomes as a poison by a Python
    process."""

    @co.process
    async def poisons(r: Any) -> None:
        await r.read()
        r.poison()

    def network(native: bool) -> Any:
        a, log = co.Channel("a"), co.Channel("log")
        first = tasks().poisons(+a) if native else poisons(+a)
        return co.run(writes(-a, 1, 2), first, tasks().ends_as(+a, -log), reads(+log))[3]

    found, runs = outcomes(lambda: network(native=True))
    assert found == {"['poisoned']", "['retired']"}
    assert (found, runs) == outcomes(lambda: network(native=False))


def test_a_component_that_fails_is_found() -> None:
    """Rule 17.5. The failure is found; the other component is cancelled in its operation, and
    ends."""

    def network() -> None:
        a, b, log = co.Channel("a"), co.Channel("b"), co.Channel("log")
        native = tasks()
        co.run(
            writes(-a, 1, 2),
            native.fails(+a, 2),
            native.goes_on(+b, -log, 0),
            reads(+log),
            writes(-b),
        )

    report = weft.check(network, **QUICK)
    assert report.kind == "exception" and "it is 2" in report.text
    assert weft.check(network, replay=report.token).kind == "exception"


def test_a_value_that_nobody_takes_stays_with_the_component() -> None:
    """Rules 2.1, 17.2: an operation that is deferred keeps its value."""

    def network() -> Any:
        go, out, log = co.Channel("go"), co.Channel("out"), co.Channel("log")
        gone = +out
        return co.run(
            writes(-go, 1), tasks().keeps(+go, -out, -log), retires(gone), reads(+log)
        )[3]  # fmt: skip

    assert outcomes(network)[0] == {"['3 and 3']"}


def test_a_value_that_a_component_leaves_in_a_buffer_is_lost() -> None:
    """Rule 17.5. The value counts as lost, because a component releases its channels when it
    ends."""

    def network() -> None:
        a, b = co.Channel("a"), co.Channel("b", capacity=1)
        co.run(writes(-a, 1), tasks().ints(+a, -b), retires(+b))

    report = weft.check(network, **QUICK)
    assert report.kind == "lost values" and "b" in report.what, report.text


def test_a_component_that_is_not_the_same_twice_is_noticed() -> None:
    """Rule 17.9: a component that counts its calls is reported as not the same twice."""

    def network() -> Any:
        c, a, b = co.Channel("c"), co.Channel("a"), co.Channel("b")
        return co.run(
            writes(-c, 1), tasks().counts_calls(+c, -a, -b), reads(+a), reads(+b)
        )  # fmt: skip

    report = weft.check(network, **QUICK)
    assert report.kind == "not the same" and report.status == 4, report.text


def test_after_a_check_components_run_on_the_pool_again() -> None:
    """Rule 17.12: a component runs as usual after a check."""
    weft.check(hidden, **QUICK)
    a, b = co.Channel("a"), co.Channel("b")
    pooled = tasks().ints(+a, -b)
    assert co.run(writes(-a, 1, 2), pooled, reads(+b))[2] == [1, 2]

"""Scenarios of sections 7 (composition) and 8 (barriers and time)."""

from __future__ import annotations

import inspect
import math
import sys

import pytest

from conformance.scenarios import outermost, scenario
from conformance.scenarios.parts import get, settle
from weft import (
    BadUse,
    Barrier,
    Cancelled,
    Channel,
    Deadlock,
    Group,
    NoResult,
    Output,
    Parallel,
    Retired,
    Sequence,
    Spawn,
    Timer,
    after,
    at,
    current_process,
    now,
    process,
    run,
    select,
    sleep,
    yield_,
)

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup


# Threads that are woken in one order can log in another.
ONE_SCHEDULER = inspect.iscoroutinefunction(settle)


@process
async def returns(value, seconds=0):
    if seconds:
        await sleep(seconds)
    return value


@scenario("3.5", "4.3", "6.5", "7.1")
async def in_the_place_of_a_result_that_no_process_gave():
    c, d, e = Channel("c"), Channel("d"), Channel("e")
    retired, poisoned = c.reader(), d.reader()
    c.writer().retire()
    d.poison(2)
    _keep = e.writer()
    ps = [get(retired), get(poisoned), get(e.reader()), returns(None), returns(7)]
    results = await Parallel(ps, cancels(ps[2]))
    assert results[3:] == [None, 7, None]
    nothing = results[:3]
    assert [n.how for n in nothing] == ["retired", "poisoned", "cancelled"]
    assert [p.result.how for p in ps[:3]] == ["retired", "poisoned", "cancelled"]
    assert [p.result for p in ps[3:]] == [None, 7]
    for n in nothing:
        assert isinstance(n, NoResult) and not n
        assert n.process.split("/")[-1].startswith("get")
        text = repr(n)
        assert text.startswith("process " + n.process + " gave no result: it ended")
        assert n.reason in text and n.where


@process
async def cancels(p):
    await settle()
    p.cancel()


@scenario("7.1", "7.3")
async def a_sequence_goes_on_after_a_quiet_end():
    c = Channel("c")
    reader = c.reader()
    c.writer().retire()
    first, second = await Sequence(get(reader), returns("goes on"))
    assert (first.how, second) == ("retired", "goes on")


@process
async def note(log, value, seconds=0):
    await sleep(seconds)
    log.append(value)


@process
async def fail_with(error, seconds=0):
    await sleep(seconds)
    raise error


@process
async def wait_for_ever(log=None):
    try:
        await sleep(1e6)
    except Cancelled:
        if log is not None:
            log.append("cancelled")
        raise


# --- 7 --------------------------------------------------------------------------------------------


@scenario("7.1")
async def parallel_returns_the_results_in_order():
    assert await Parallel(returns("a", 3), returns("b", 1), [returns("c", 2), returns("d")]) == [
        *"abcd"
    ]
    assert await Parallel() == []


@scenario("7.2")
async def the_first_failure_cancels_the_others_and_is_raised_when_all_have_ended():
    log = []
    with pytest.raises(ZeroDivisionError):
        await Parallel(wait_for_ever(log), fail_with(ZeroDivisionError(), 1), wait_for_ever(log))
    assert log == ["cancelled", "cancelled"]


@scenario("7.2")
async def several_failures_are_raised_as_a_group_in_the_order_of_the_processes():
    with pytest.raises(BaseExceptionGroup) as error:
        await Parallel(fails_when_cancelled(ValueError("first")), fail_with(KeyError("second"), 1))
    assert [type(e) for e in error.value.exceptions] == [ValueError, KeyError]


@process
async def fails_when_cancelled(error):
    try:
        await sleep(1e6)
    except Cancelled:
        raise error from None


@scenario("7.3")
async def sequence_runs_one_after_another_and_stops_at_a_failure():
    log = []
    await Sequence(note(log, 1, 2), note(log, 2), note(log, 3))
    assert log == [1, 2, 3]
    assert await Sequence(returns("a"), returns("b")) == ["a", "b"]
    with pytest.raises(ZeroDivisionError):
        await Sequence(note(log, 4), fail_with(ZeroDivisionError()), note(log, 5))
    assert log == [1, 2, 3, 4]


@process
async def tries_to_write_when_cancelled(log, writer):
    try:
        await sleep(1e6)
    except Cancelled:
        log.append(await select(Output(writer, 1), after(1)))


@process
async def is_never_started(_end):
    raise AssertionError("it was started")


@process
async def in_a_sequence(*processes):
    await Sequence(*processes)


@scenario("7.3")
async def those_that_a_cancelled_sequence_never_starts_hold_their_ends_until_it_is_over():
    c, log = Channel("c"), []
    writer = c.writer()
    waiting = in_a_sequence(
        tries_to_write_when_cancelled(log, c.writer()), is_never_started(c.reader())
    )
    async with Group() as group:
        group.start(waiting)
        await settle()
        waiting.cancel()
    assert log == [(1, None)]
    with pytest.raises(Retired):
        await writer.write(2)


@scenario("7.3")
async def nor_do_those_behind_a_failure_hold_theirs():
    c = Channel("c")
    writer, behind = c.writer(), is_never_started(c.reader())
    with pytest.raises(ZeroDivisionError):
        await Sequence(fail_with(ZeroDivisionError()), behind)
    with pytest.raises(Retired):
        await writer.write(2)


@outermost("7.4", needs=("a run",))
def a_spawned_process_outlives_its_group_and_the_run_waits_for_it():
    log = []
    assert run(spawns(log), clock="virtual") == ["parallel is over"]
    assert log == ["spawned is over"]


@process
async def spawns(log):
    await Parallel(spawn_one(log))
    assert log == []
    return ["parallel is over"]


@process
async def spawn_one(log):
    Spawn(note(log, "spawned is over", 5))


@outermost("7.4", needs=("a run",))
def the_run_fails_with_a_spawned_process():
    with pytest.raises(ZeroDivisionError):
        run(spawn_failure(), clock="virtual")


@process
async def spawn_failure():
    Spawn(fail_with(ZeroDivisionError(), 5))


@scenario("7.5")
async def leaving_a_group_waits_for_all():
    log = []
    async with Group() as group:
        group.start(note(log, 1, 3))
        group.start(note(log, 2, 2))
        assert log == []
    assert log == [2, 1]


@scenario("7.5")
async def leaving_a_group_by_an_exception_cancels_them_first():
    log = []
    with pytest.raises(KeyError):
        async with Group() as group:
            group.start(wait_for_ever(log))
            await settle()
            raise KeyError
    assert log == ["cancelled"]


@scenario("7.6", "11.2")
async def a_process_can_be_started_once():
    once = returns(1)
    assert await Parallel(once) == [1]
    with pytest.raises(BadUse, match="returns"):
        await Parallel(once)


@scenario("7.6")
async def nothing_outlives_a_group_that_is_cancelled():
    log = []
    outer = holds_a_group(log)
    async with Group() as group:
        group.start(outer)
        await settle()
        outer.cancel()
    assert log == ["cancelled", "cancelled"]


@process
async def holds_a_group(log):
    await Parallel(wait_for_ever(log), wait_for_ever(log))


@scenario("7.7")
async def a_yield_lets_others_go_on_and_never_blocks():
    log = []
    async with Group() as group:
        group.start(yields(log, "a"))
        group.start(yields(log, "b"))
    assert sorted(log) == ["a"] * 5 + ["b"] * 5


@process
async def yields(log, name):
    for _ in range(5):
        log.append(name)
        await yield_()


@scenario("7.7")
async def ends_are_let_go_before_the_group_is_told():
    for _ in range(20):
        c = Channel("c")
        writer = c.writer()
        await Parallel(holds(writer))
        assert writer.closed


@process
async def holds(_end):
    await yield_()


@scenario("7.8", needs=("a path",))
async def a_path_names_group_function_and_index():
    all_are_there = Barrier(4)  # the second process of the same name gets an index
    paths = await Parallel([path(all_are_there) for _ in range(3)], other_path(all_are_there))
    mine = current_process().path
    assert mine.endswith("a_path_names_group_function_and_index")
    assert [p.rpartition("/")[2] for p in paths] == ["path[0]", "path[1]", "path[2]", "other_path"]
    assert all(p.startswith(mine + "/") for p in paths)
    assert (await Parallel(path(Barrier(1)).named("accountant")))[0].endswith("/accountant")


@process
async def path(all_are_there):
    await all_are_there.sync()
    return current_process().path


@process
async def other_path(all_are_there):
    await all_are_there.sync()
    return current_process().path


# --- 8 --------------------------------------------------------------------------------------------


@process
async def phases(barrier, log, name, number):
    for phase in range(number):
        await barrier.sync()
        log.append((phase, name))


@scenario("8.1")
async def all_parties_arrive_before_any_goes_on():
    barrier = Barrier(3)
    log = []
    async with Group() as group:
        group.start(phases(barrier, log, "a", 4))
        group.start(phases(barrier, log, "b", 4))
        await settle()
        assert log == []
        group.start(phases(barrier, log, "c", 4))
    assert [phase for phase, _ in log] == sorted(phase for phase, _ in log)
    assert len(log) == 12


@scenario("8.2")
async def enrol_adds_a_party_and_resign_completes_a_phase():
    barrier = Barrier(1)
    barrier.enrol()
    assert barrier.parties == 2
    log = []
    async with Group() as group:
        group.start(phases(barrier, log, "a", 1))
        await settle()
        assert log == []
        barrier.resign()
        await settle()
        assert log == [(0, "a")] and barrier.parties == 1


@scenario("8.2", "11.2")
async def resigning_below_zero_and_a_sync_of_nobody_are_bad_use():
    barrier = Barrier(0)
    with pytest.raises(BadUse):
        barrier.resign()
    with pytest.raises(BadUse):
        await barrier.sync()
    with pytest.raises(BadUse):
        Barrier(-1)
    assert barrier.parties == 0


@scenario("8.3")
async def a_cancelled_sync_is_withdrawn():
    barrier = Barrier(2)
    log = []
    gone = phases(barrier, log, "gone", 1)
    async with Group() as group:
        group.start(gone)
        await settle()
        gone.cancel()
        await settle()
        group.start(phases(barrier, log, "a", 1))
        await settle()
        assert log == []
        group.start(phases(barrier, log, "b", 1))
    assert sorted(log) == [(0, "a"), (0, "b")]


@scenario("8.4", "5.2")
async def a_barrier_as_a_guard_commits_for_all_at_once():
    barrier, c = Barrier(3), Channel("c")
    one, two = chooses(barrier, c.reader()), chooses(barrier, c.reader())
    _writer = c.writer()
    async with Group() as group:
        group.start(one)
        group.start(two)
        await settle()
        assert not one.done and not two.done
        await barrier.sync()
    assert one.result == two.result == 0


@process
async def chooses(barrier, reader):
    return (await select(barrier, reader))[0]


@scenario("8.4", "5.10")
async def a_select_that_goes_elsewhere_does_not_count_as_arrived():
    barrier, c = Barrier(2), Channel("c")
    choosing, late = chooses(barrier, c.reader()), syncs(barrier)
    writer = c.writer()
    async with Group() as group:
        group.start(choosing)
        await settle()
        await writer.write("elsewhere")
        group.start(late)
        await settle()
        assert choosing.result == 1 and not late.done
        barrier.resign()
    assert late.done


@process
async def syncs(barrier):
    await barrier.sync()


@scenario("8.5")
async def sleeps_timeouts_and_deadlines_are_never_early():
    begin = now()
    await sleep(2.5)
    assert now() >= begin + 2.5
    then = now()
    assert await select(after(1.5)) == (0, None)
    assert now() >= then + 1.5
    assert await select(at(begin + 10)) == (0, None)
    assert now() >= begin + 10


@scenario("8.5", needs=("the order of equal deadlines",))
async def equal_deadlines_fire_in_the_order_in_which_they_were_set():
    log, deadline = [], now() + 100
    async with Group() as group:
        for name in range(5):
            group.start(until(log, name, deadline))
            await settle()
    assert sorted(log) == [0, 1, 2, 3, 4]
    if ONE_SCHEDULER:
        assert log == [0, 1, 2, 3, 4]


@process
async def until(log, name, deadline):
    await select(at(deadline))
    log.append(name)


@scenario("8.5")
async def a_timer_ticks_without_drift_and_counts_what_it_missed():
    timer = Timer(1.0)
    begin = now()
    assert await timer.tick() == 1
    await sleep(0.5)
    assert await timer.tick() == 1
    assert now() - begin == pytest.approx(2.0, abs=1e-6), "half a period late, and on time again"
    await sleep(3.25)
    missed = await timer.tick()
    assert missed >= 3 and await timer.tick() == 1
    assert now() - begin == pytest.approx(2.0 + missed + 1, abs=1e-6)


@scenario("8.5", "8.6")
async def a_deadline_at_or_beyond_the_end_of_the_clock_never_comes():
    begin = now()
    assert await select(after(math.inf), at(1e308), after(1.5)) == (2, None)
    assert await select(after(1e308), at(begin + 3)) == (1, None)
    assert begin + 3 <= now() < begin + 1e6
    never = (sleeps(math.inf), sleeps(1e308))
    async with Group() as group:
        for sleeper in never:
            group.start(sleeper)
        await settle()
        assert not any(sleeper.done for sleeper in never)
        group.cancel()
    assert now() < begin + 1e6


@process
async def sleeps(seconds):
    await sleep(seconds)


@outermost("8.5", "10.1", needs=("a deadlock",))
def who_waits_for_a_time_that_never_comes_is_blocked():
    for seconds in (math.inf, 1e308):
        with pytest.raises(Deadlock):
            run(sleeps(seconds), sleeps(1.0))


@scenario("8.6")
async def virtual_time_stands_still_while_anybody_can_run():
    begin, log = now(), []
    async with Group() as group:
        group.start(yields(log, "busy"))
        for _ in range(3):
            await yield_()
        assert now() == begin


@outermost("8.6")
def virtual_time_jumps_when_nobody_can_run():
    assert run(a_year(), clock="virtual") == pytest.approx(365 * 86400.0)


@process
async def a_year():
    begin = now()
    await Parallel(returns(1, 86400), returns(2, 365 * 86400))
    return now() - begin

"""Rules 7 and 8: composition, barriers, time."""

from __future__ import annotations

import sys

import pytest
from parts import receive, send

from weft import threads
from weft.errors import BadUse, Cancelled

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup


async def gives(b, v):
    return v


async def fails(b, error, after=0):
    await b.op(b.weft.sleep(after))
    raise error


async def sleeps(b, seconds):
    await b.op(b.weft.sleep(seconds))
    return b.weft.now()


def inside(b, make):
    """Makes an operation in a process, and returns its result."""

    async def main(b):
        return await b.op(make())

    return b.run(b.process(main)(), clock="virtual")


def test_parallel_gives_results_in_order(b):  # rule 7.1
    assert inside(b, lambda: b.weft.Parallel(b.process(gives)(k) for k in range(5))) == list(
        range(5)
    )
    assert inside(b, lambda: b.weft.Parallel(b.process(gives)(1), [b.process(gives)(2)])) == [1, 2]
    assert inside(b, lambda: b.weft.Parallel()) == []


def test_run_gives_one_result_or_a_list(b):
    assert b.run(b.process(gives)(1)) == 1
    assert b.run(b.process(gives)(1), b.process(gives)(2)) == [1, 2]
    assert b.run([b.process(gives)(1)]) == [1]


def test_the_first_failure_cancels_the_others(b):  # rule 7.2
    ended = []

    async def patient(b):
        try:
            await b.op(b.weft.sleep(100))
        except Cancelled:
            ended.append(b.weft.now())
            raise

    async def main(b):
        with pytest.raises(ValueError, match="boom"):
            await b.op(
                b.weft.Parallel(b.process(patient)(), b.process(fails)(ValueError("boom"), 2))
            )
        return b.weft.now()

    assert b.run(b.process(main)(), clock="virtual") == 2.0
    assert ended == [2.0]


def test_several_failures_are_a_group_in_order(b):  # rule 7.2
    async def stubborn(b):
        try:
            await b.op(b.weft.sleep(100))
        except Cancelled:
            raise KeyError("second") from None

    with pytest.raises(BaseExceptionGroup) as caught:
        b.run(b.process(stubborn)(), b.process(fails)(ValueError("first"), 1), clock="virtual")
    assert [type(e) for e in caught.value.exceptions] == [KeyError, ValueError]
    assert isinstance(caught.value, Exception)


def test_sequence(b):  # rule 7.3
    assert inside(b, lambda: b.weft.Sequence(b.process(sleeps)(2), b.process(sleeps)(3))) == [
        2.0,
        5.0,
    ]


def test_a_sequence_stops_at_the_first_failure(b):  # rule 7.3
    later = b.process(gives)("never")
    with pytest.raises(ValueError, match="stop"):
        inside(b, lambda: b.weft.Sequence(b.process(fails)(ValueError("stop")), later))
    assert later.done  # the process has ended without having run
    with pytest.raises(BadUse, match="already"):
        b.run(later)


@pytest.mark.parametrize("which", ["started", "twice", "no process"])
def test_a_sequence_that_is_bad_use_changes_nothing(b, which):  # rules 7.6, 11.1
    first, other = b.process(gives)("first"), b.process(gives)("other")
    bad = {"twice": other, "no process": 7}.get(which)
    if which == "started":
        b.run(bad := b.process(gives)("started"))
    with pytest.raises(BadUse):
        inside(b, lambda: b.weft.Sequence(first, other, bad))
    assert not first.done and not other.done
    assert b.run(first, other) == ["first", "other"]


def test_spawn_outlives_its_group(b):  # rule 7.4
    log = []

    async def spawned(b):
        await b.op(b.weft.sleep(5))
        log.append("spawned")

    async def parent(b):
        b.weft.Spawn(b.process(spawned)())
        log.append("parent")

    async def main(b):
        await b.op(b.weft.Parallel(b.process(parent)()))
        log.append("main")

    b.run(b.process(main)(), clock="virtual")
    assert log == ["parent", "main", "spawned"]


def test_a_spawned_failure_fails_the_run(b):  # rule 7.4
    async def parent(b):
        b.weft.Spawn(b.process(fails)(ValueError("spawned"), 1))
        await b.op(b.weft.sleep(100))

    with pytest.raises(ValueError, match="spawned"):
        b.run(b.process(parent)(), clock="virtual")


def test_spawn_outside_any_run(b):
    p = b.process(gives)(1)
    with pytest.raises(BadUse, match="Spawn outside any run"):
        b.weft.Spawn(p)
    b.run(p)


def test_group(b):  # rule 7.5
    c = b.weft.Channel()

    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        g.start(b.process(send)(c.writer(), 1, 2))
        p = g.start(b.process(receive)(c.reader()))
        await b.leave(g)
        return p.result

    assert b.run(b.process(main)()) == [1, 2]


def test_leaving_a_group_by_an_exception_cancels(b):  # rule 7.5
    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        p = g.start(b.process(sleeps)(100))
        await b.op(b.weft.sleep(1))
        assert not await b.leave(g, ValueError("out"))
        return p.done, b.weft.now()

    assert b.run(b.process(main)(), clock="virtual") == (True, 1.0)


def test_a_group_raises_what_failed(b):  # rules 7.2, 7.5
    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        g.start(b.process(fails)(ValueError("in the group"), 1))
        g.start(b.process(sleeps)(100))
        with pytest.raises(ValueError, match="in the group"):
            await b.leave(g)
        return b.weft.now()

    assert b.run(b.process(main)(), clock="virtual") == 1.0


def test_a_process_is_started_once(b):  # rule 7.6
    p = b.process(gives)(1)
    with pytest.raises(BadUse, match="was started already"):
        b.run(p, p)
    assert b.run(p) == 1
    with pytest.raises(BadUse, match="process gives was started already"):
        b.run(p)


def test_yield_lets_the_others_run():  # rule 7.7
    from weft.coroutines import process, run, yield_

    log = []

    @process
    async def counts(k):
        for _ in range(3):
            log.append(k)
            await yield_()

    run(counts(0), counts(1), counts(2))
    assert log == [0, 1, 2] * 3


def test_ends_are_let_go_before_the_group_is_told(b):  # rule 7.7
    c = b.weft.Channel()

    async def idle(b, w):
        pass

    async def main(b):
        await b.op(b.weft.Parallel(b.process(idle)(c.writer())))
        return c.stats().writers

    assert b.run(b.process(main)()) == 0


def test_paths(b):  # rule 7.8
    async def path(b):
        return b.weft.current_process().path

    async def parent(b):
        return await b.op(
            b.weft.Parallel(b.process(path)(), b.process(path)().named("alone"), b.process(path)())
        )

    assert b.run(b.process(parent)()) == [
        "main/parent/path[0]",
        "main/parent/alone",
        "main/parent/path[1]",
    ]
    assert b.weft.current_process() is None


def test_result_before_the_end(b):
    p = b.process(gives)(3)
    with pytest.raises(BadUse, match="has not ended"):
        p.result  # noqa: B018
    b.run(p)
    assert (p.result, p.done, p.name) == (3, True, "gives")
    q = b.process(fails)(ValueError("kept"))
    with pytest.raises(ValueError, match="kept"):
        b.run(q)
    with pytest.raises(ValueError, match="kept"):
        q.result  # noqa: B018


def test_coroutines_and_threads_in_one_network():
    from weft import coroutines, threads

    @coroutines.process
    async def coroutine(r, w):
        async for v in r:
            await w.write(v + 1)

    @threads.process
    def thread(r, w):
        for v in r:
            w.write(v * 2)

    @threads.process
    def numbers(w):
        for v in range(100):
            w.write(v)

    a, b, c = (threads.Channel() for _ in range(3))

    @coroutines.process
    async def collect(r):
        return [v async for v in r]

    for start in (threads.Parallel, coroutines.run):
        a, b, c = (threads.Channel() for _ in range(3))
        result = start(numbers(-a), coroutine(+a, -b), thread(+b, -c), collect(+c))
        assert result[3] == [(v + 1) * 2 for v in range(100)]


# --- rule 8: barriers and time --------------------------------------------------------------------


def test_barrier(b):  # rule 8.1
    barrier, log = b.weft.Barrier(3), []

    async def party(b, k):
        for phase in range(4):
            log.append(phase)
            await b.op(barrier.sync())

    b.run(*(b.process(party)(k) for k in range(3)))
    assert log == sorted(log)


def test_resigning_completes_the_phase(b):  # rule 8.2
    barrier = b.weft.Barrier(2)

    async def waits(b):
        await b.op(barrier.sync())
        return b.weft.now()

    async def leaves(b):
        await b.op(b.weft.sleep(3))
        barrier.resign()

    assert b.run(b.process(waits)(), b.process(leaves)(), clock="virtual")[0] == 3.0
    barrier.enrol()
    assert barrier.parties == 2
    barrier.resign()
    barrier.resign()
    with pytest.raises(BadUse, match="nobody enrolled"):
        barrier.resign()


def test_a_sync_with_nobody_enrolled(b):  # rule 8.2
    barrier = b.weft.Barrier(0)

    async def party(b):
        with pytest.raises(BadUse, match="nobody enrolled"):
            await b.op(barrier.sync())

    b.run(b.process(party)())


def test_a_cancelled_sync_is_withdrawn(b):  # rule 8.3
    barrier, first = b.weft.Barrier(2), []

    async def party(b, delay):
        await b.op(b.weft.sleep(delay))
        await b.op(barrier.sync())
        return b.weft.now()

    async def cancels(b):
        await b.op(b.weft.sleep(1))
        first[0].cancel()

    first.append(b.process(party)(0))
    assert b.run(
        first[0], b.process(cancels)(), b.process(party)(2), b.process(party)(5), clock="virtual"
    )[2:] == [5.0, 5.0]


def test_a_barrier_as_guard(b):  # rule 8.4
    barrier = b.weft.Barrier(3)

    async def chooses(b):
        early = await b.op(b.weft.select(barrier, b.weft.after(1)))
        return early, await b.op(b.weft.select(barrier.when(True), b.weft.after(10))), b.weft.now()

    async def syncs(b):
        await b.op(b.weft.sleep(2))
        await b.op(barrier.sync())

    got = b.run(b.process(chooses)(), b.process(chooses)(), b.process(syncs)(), clock="virtual")
    assert got[:2] == [((1, None), (0, None), 2.0)] * 2


def test_equal_deadlines_fire_in_order(b):  # rule 8.5
    log = []

    async def late(b, k):
        await b.op(b.weft.sleep(5))
        log.append(k)

    if not b.one_scheduler:
        b.run(*(b.process(late)(k) for k in range(3)), clock="virtual")
        assert sorted(log) == [0, 1, 2]
    else:
        b.run(*(b.process(late)(k) for k in range(10)), clock="virtual")
        assert log == list(range(10))


@pytest.mark.parametrize("span", [0, -1, 0.0])
def test_a_process_that_waits_by_sleeps_of_no_time_hears_of_others(b, span):  # rules 8.5, 7.7
    """The sleeper lets a process on its own scheduler run, and notices a process on another
    thread."""
    c = b.weft.Channel()
    done = set()

    async def waits(b):
        while len(done) < 2:
            await b.op(b.weft.sleep(span))

    async def reads(b, r):
        done.add(await b.op(r.read()))

    async def beside(b):
        done.add("beside")

    writes = threads.process(lambda w: w.write("far"))
    b.run(b.process(waits)(), b.process(reads)(c.reader()), b.process(beside)(), writes(c.writer()))
    assert done == {"beside", "far"}


def test_a_process_that_polls_hears_of_others_by_a_yield(b):  # rules 5.7, 7.7
    c = b.weft.Channel()

    async def polls(b, r):
        while True:
            which, value = await b.op(b.weft.select(r, b.weft.skip()))
            if which == 0:
                return value
            await b.op(b.weft.yield_())

    async def writes(b, w):
        await b.op(w.write("heard"))

    assert b.run(b.process(polls)(c.reader()), b.process(writes)(c.writer()))[0] == "heard"


def test_sleep_is_never_early(b):  # rule 8.5
    async def naps(b):
        begin = b.weft.now()
        await b.op(b.weft.sleep(0.003))
        return b.weft.now() - begin

    assert b.run(b.process(naps)()) >= 0.003


def test_a_timer_ticks_without_drift_and_counts_what_it_missed(b):  # rule 8.5
    async def ticks(b):
        timer = b.weft.Timer(2)
        got = [(await b.op(timer.tick()), b.weft.now())]
        await b.op(b.weft.sleep(5))
        got.append((await b.op(timer.tick()), b.weft.now()))
        got.append((await b.op(timer.tick()), b.weft.now()))
        index, _ = await b.op(b.weft.select(b.weft.after(9), timer))
        return got, index, b.weft.now()

    assert b.run(b.process(ticks)(), clock="virtual") == ([(1, 2.0), (2, 7.0), (1, 8.0)], 1, 10.0)


def test_virtual_time_stands_still_while_somebody_runs(b):  # rule 8.6
    c = b.weft.Channel()

    async def busy(b, w):
        for v in range(50):
            await b.op(w.write(v))

    async def reads(b, r):
        got = [v async for v in b.each(r)]
        return len(got), b.weft.now()

    assert b.run(
        b.process(busy)(-c), b.process(reads)(+c), b.process(sleeps)(3), clock="virtual"
    ) == [None, (50, 0.0), 3.0]


def test_selects_in_ordinary_code_keep_time():  # a plain thread may select at a channel too
    from weft import threads

    c = threads.Channel()
    r, w = +c, -c
    assert threads.select(r, threads.after(0.001)) == (1, None)
    threads.sleep(0.001)
    assert not w.closed

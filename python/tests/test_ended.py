"""Rule 7.11: the end of a process as a guard, awaited, and watched."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from parts import hows, send

from weft import coroutines as co
from weft import greenlets as gr
from weft import threads as th
from weft.errors import BadUse, Cancelled, Deadlock


async def after(b, seconds, result=None):
    await b.op(b.weft.sleep(seconds))
    return result


async def fails(b, seconds):
    await b.op(b.weft.sleep(seconds))
    raise ValueError("mine")


def test_awaited_and_chosen(b):  # rule 7.11
    c = b.weft.Channel("c")

    async def watches(b, p, r):
        first = await b.op(b.weft.select(p.ended(), r, b.weft.after(1)))
        assert (first, b.weft.now()) == ((2, None), 1)
        index, end = await b.op(b.weft.select(r, p.ended(), b.weft.after(9)))
        assert (index, b.weft.now()) == (1, 2)
        for again in (p.ended(), p.ended()):  # the guard stays ready
            assert await b.op(again.wait()) == end
        assert await b.op(b.weft.select(p.ended(), b.weft.after(0))) == (0, end)
        return end

    p = b.process(after)(2, "done")
    keep = c.writer()
    end = b.run(b.process(watches)(p, c.reader()), p, b.process(after)(3), clock="virtual")[0]
    keep.retire()
    assert end == ("returned", "done", None)
    assert (end.how, end.result, end.error) == end
    assert isinstance(end, b.weft.Ended)


def test_await():  # rule 7.11
    @co.process
    async def watches(p):
        return await p.ended()

    @co.process
    async def short():
        return 7

    p = short()
    assert co.run(watches(p), p)[0] == ("returned", 7, None)


def test_every_way_to_end(b):  # rule 7.11
    c, d = b.weft.Channel("c"), b.weft.Channel("d")

    async def reads(b, r):
        await b.op(r.read())

    async def sleeps(b):
        await b.op(b.weft.sleep(100))

    async def watches(b, ps):
        await b.op(b.weft.sleep(1))
        ps[4].cancel()
        return [await b.op(p.ended().wait()) for p in ps]

    ps = [
        b.process(after)(0, "x"),
        b.process(reads)(c.reader()),
        b.process(reads)(d.reader()),
        b.weft.watched(b.process(fails)(2)),
        b.process(sleeps)(),
    ]

    async def ends_them(b, w, v):
        await b.op(b.weft.sleep(0.5))
        v.poison()

    killer = b.process(ends_them)(c.writer(), d.writer())
    ended = b.run(b.process(watches)(ps), *ps, killer, clock="virtual")[0]
    assert [e.how for e in ended] == ["returned", "retired", "poisoned", "failed", "cancelled"]
    assert [e.result for e in ended] == ["x", None, None, None, None]
    assert [str(e.error) for e in ended] == ["None", "None", "None", "mine", "None"]


def test_several_watch(b):  # rule 7.11
    async def watches(b, p):
        return (await b.op(p.ended().wait())).result, b.weft.now()

    p = b.process(after)(1, "done")
    watchers = [b.process(watches)(p) for _ in range(5)]
    assert b.run(watchers, p, clock="virtual")[:5] == [("done", 1)] * 5


def test_its_ends_are_let_go_before(b):  # rules 7.7, 7.11
    c = b.weft.Channel("c")

    async def holds(b, w):
        await b.op(b.weft.sleep(1))

    async def watches(b, p):
        await b.op(p.ended().wait())
        return c.stats().writers

    p = b.process(holds)(c.writer())
    assert b.run(b.process(watches)(p), p, clock="virtual")[0] == 0


def test_one_s_own_end_and_one_that_is_never_started(b):  # rule 7.11
    async def never(b):
        pass

    async def watches(b, p):
        with pytest.raises(BadUse, match="itself"):
            b.weft.current_process().ended()
        return await b.op(b.weft.select(p.ended(), b.weft.after(1)))

    p = b.process(never)()
    assert b.run(b.process(watches)(p), clock="virtual") == (1, None)
    b.run(p)
    assert th.select(p.ended()) == (0, ("returned", None, None))  # ordinary code may select too
    assert p.ended().wait() == ("returned", None, None)


def test_a_precondition_and_a_standing_alternative(b):  # rules 5.2, 5.9, 7.11
    c = b.weft.Channel("c")

    async def watches(b, p, r):
        got = []
        alternative = b.weft.Alternative(r, p.ended())
        for _ in range(3):
            got.append(await b.op(alternative.select()))
        off = await b.op(b.weft.select(p.ended().when(False), b.weft.skip()))
        alternative.close()
        return [i for i, _ in got], off

    async def writes(b, w):
        await b.op(w.write(1))
        await b.op(b.weft.sleep(9))

    p = b.process(after)(1)
    got = b.run(
        b.process(watches)(p, c.reader()), p, b.process(writes)(c.writer()), clock="virtual"
    )[0]
    assert got == ([0, 1, 1], (1, None))


def test_fair_between_an_end_and_a_channel(b):  # rules 5.4, 7.11
    c = b.weft.Channel(capacity=100)

    async def watches(b, p, r):
        await b.op(p.ended().wait())
        return [(await b.op(b.weft.select(p.ended(), r)))[0] for _ in range(6)]

    p = b.process(send)(c.writer(), *range(10))
    got = b.run(b.process(watches)(p, c.reader()), p)[0]
    assert sorted(got) == [0, 0, 0, 1, 1, 1]


def test_a_cancelled_watcher_leaves_nothing_behind(b):  # rules 6.2, 7.11
    async def watches(b, p):
        with pytest.raises(TimeoutError):
            scope = b.weft.timeout(1)
            await b.enter(scope)
            try:
                await b.op(p.ended().wait())
            except Cancelled as error:
                await b.leave(scope, error)
        return (await b.op(p.ended().wait())).result

    p = b.process(after)(2, "done")
    assert b.run(b.process(watches)(p), p, clock="virtual")[0] == "done"


# ---------------------------------------------------------------------------------------- watched


def test_a_watched_failure_goes_to_its_watchers(b):  # rule 7.11
    async def watches(b, p):
        end = await b.op(p.ended().wait())
        await b.op(b.weft.sleep(5))  # no process was cancelled, so this sleep returns
        return end

    p = b.weft.watched(b.process(fails)(1))
    results = b.run(b.process(watches)(p), p, b.process(after)(3, "other"), clock="virtual")
    assert results[0].how == "failed"
    assert isinstance(results[0].error, ValueError)
    assert hows(results[1:]) == ["<failed>", "other"]
    with pytest.raises(ValueError, match="mine"):
        p.result  # noqa: B018


def test_a_supervisor_starts_again(b):  # rule 7.11
    async def flaky(b, n):
        await b.op(b.weft.sleep(1))
        if n < 3:
            raise ValueError(n)
        return n

    async def supervisor(b):
        group = b.weft.Group()
        await b.enter(group)
        errors = []
        for n in range(10):
            p = group.start(b.weft.watched(b.process(flaky)(n)))
            end = await b.op(p.ended().wait())
            if end.how == "returned":
                break
            errors.append(str(end.error))
        await b.leave(group)
        return errors, end.result

    assert b.run(b.process(supervisor)(), clock="virtual") == (["0", "1", "2"], 3)


@pytest.mark.parametrize("watched", [True, False])
def test_if_no_watcher_is_alive_its_group_fails(b, watched):  # rules 7.2, 7.11
    async def watches(b, p):
        p.ended()

    p = b.process(fails)(1)
    if watched:
        b.weft.watched(p)
    with pytest.raises(ValueError, match="mine"):
        b.run(b.process(watches)(p), p, b.process(after)(9), clock="virtual")


def test_a_process_that_is_not_watched_fails_its_group_though_somebody_waits_for_it(
    b,
):  # rules 7.2, 7.11
    seen = []

    async def watches(b, p):
        try:
            seen.append(await b.op(p.ended().wait()))
            await b.op(b.weft.sleep(9))
        except Cancelled:
            seen.append("cancelled")
            raise

    p = b.process(fails)(1)
    with pytest.raises(ValueError, match="mine"):
        b.run(b.process(watches)(p), p, clock="virtual")
    assert seen[-1] == "cancelled"


def test_watched_is_for_processes_that_have_not_been_started(b):  # rule 7.11
    for wrong in (None, 1, "p", b.process(after)):
        with pytest.raises(BadUse, match="watched"):
            b.weft.watched(wrong)
    p = b.process(after)(0)
    assert b.weft.watched(p) is p
    b.run(p)
    with pytest.raises(BadUse, match="started"):
        b.weft.watched(p)


def test_ordinary_code_watches():  # rules 7.5, 7.11
    @co.process
    async def failing():
        await co.sleep(1)
        raise ValueError("mine")

    with th.Group(clock="virtual") as group:
        p = group.start(th.watched(failing()))
        index, end = th.select(p.ended(), th.after(5))
        assert (index, end.how, th.now()) == (0, "failed", 1)


def test_backends_watch_each_other():  # rules 7.11, 15.1
    @co.process
    async def coroutine(p):
        return (await p.ended()).result if p else "c"

    @th.process
    def thread(p):
        return p.ended().wait().result

    @gr.process
    def greenlet(p):
        return p.ended().wait().result

    a = coroutine(None)
    t = thread(a)
    g = greenlet(t)
    last = coroutine(g)
    assert co.run(last, g, t, a) == ["c"] * 4


# ---------------------------------------------------------------------------------------- reports


def test_in_a_deadlock_the_watcher_waits_for_the_process(b):  # rules 7.11, 10.2
    c = b.weft.Channel("c")

    async def watches(b, p, w):
        await b.op(p.ended().wait())

    async def reads(b, r):
        await b.op(r.read())

    p = b.process(reads)(c.reader())
    with pytest.raises(Deadlock) as caught:
        b.run(b.process(watches)(p, c.writer()), p)
    report = caught.value.report
    assert "main/watches: wait for 'the end of main/reads'" in report
    assert "main/watches waits for main/reads" in report
    assert "main/reads waits for main/watches" in report
    assert sorted(caught.value.knot) == ["main/reads", "main/watches"]


def test_nobody_can_start_what_a_deadlock_waits_for(b):  # rules 7.11, 10.1
    async def watches(b, p):
        await b.op(b.weft.select(p.ended()))

    p = b.process(after)(0)
    with pytest.raises(Deadlock, match="the end of after"):
        b.run(b.process(watches)(p))
    b.run(p)


@pytest.mark.parametrize("goes_on", [True, False])
def test_partial_deadlock(b, goes_on):  # rules 7.11, 14.3
    c = b.weft.Channel("c")

    async def watches(b, p, w):
        await b.op(b.weft.select(p.ended()))

    async def reads(b, r):
        if goes_on:
            await b.op(b.weft.sleep(2))
        else:
            await b.op(r.read())

    async def looks(b, ps):
        await b.op(b.weft.sleep(1))
        found = [(s.path, s.waits_for) for s in b.weft.deadlocks().processes]
        for p in ps:
            p.cancel()
        return found

    p = b.process(reads)(c.reader())
    w = b.process(watches)(p, c.writer())
    looked = b.run(w, p, b.process(looks)([w, p]), clock="virtual")[2]
    assert looked == (
        [] if goes_on else [("main/reads", ("main/watches",)), ("main/watches", ("main/reads",))]
    )


# --------------------------------------------------------------------------------- asyncio, memory


def test_in_asyncio(play):  # rules 7.11, 13.7
    @co.process
    async def child(n):
        await asyncio.sleep(0)
        return n

    @co.process
    async def watches(p):
        return (await p.ended()).result

    async def main():
        p = child(3)
        task = asyncio.ensure_future(_awaited(p))
        assert await co.Parallel(watches(p), p) == [3, 3]
        assert (await task).result == 3
        assert await co.select(p.ended(), co.after(280)) == (0, ("returned", 3, None))

    async def _awaited(p):
        return await p.ended()

    play(main())


def test_nothing_is_kept(b):  # rule 7.11
    class Big:
        pass

    kept = []

    async def gives(b):
        big = Big()
        kept.append(weakref.ref(big))
        return big

    async def watches(b, p):
        await b.op(p.ended().wait())
        p.ended()

    def once():
        p = b.process(gives)()
        b.run(b.process(watches)(p), p)

    once()
    gc.collect()
    assert kept[0]() is None

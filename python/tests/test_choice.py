"""Rule 5: choice."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from parts import catch, receive, send, take

from weft import threads as weft_threads
from weft.errors import BadUse, PeerDied, Poisoned, Retired


def test_two_selects_meet(b):  # rules 5.1, 5.3
    c, d = b.weft.Channel("c"), b.weft.Channel("d")

    async def either(b, r, w, n):
        got, sent = [], 0
        for k in range(n):
            index, value = await b.op(b.weft.select(r, b.weft.Output(w, k)))
            if index == 0:
                got.append(value)
            else:
                sent += 1
        return got, sent

    (got1, sent1), (got2, sent2) = b.run(
        b.process(either)(+c, -d, 50), b.process(either)(+d, -c, 50)
    )
    assert len(got1) == sent2
    assert len(got2) == sent1
    assert sent1 + sent2 == 50


def test_index_and_value(b):  # rule 5.2
    c, d = b.weft.Channel(), b.weft.Channel()
    _kept = (
        c.writer(),
        d.reader(),
    )  # the guard of an ended channel would be chosen, with the exception of that end (5.6)

    async def chooser(b, r, w):
        return [await b.op(b.weft.select(r, b.weft.Output(w, "out"))) for _ in range(2)]

    assert sorted(
        b.run(b.process(chooser)(+c, -d), b.process(send)(-c, "in"), b.process(take)(+d, 1))[0]
    ) == [(0, "in"), (1, None)]


@pytest.mark.parametrize("standing", [False, True])
def test_fair(b, standing):  # rules 5.4, 5.9: a guard that stays ready is chosen within N selects
    channels = [b.weft.Channel(capacity=64) for _ in range(5)]

    async def chooser(b, readers, writers):
        for w in writers:
            for _ in range(40):
                await b.op(w.write(0))
        alternative = b.weft.Alternative(*readers) if standing else None
        order = []
        for _ in range(150):
            index, _ = await b.op(alternative.select() if standing else b.weft.select(*readers))
            order.append(index)
        return order

    order = b.run(b.process(chooser)([+c for c in channels], [-c for c in channels]))
    for begin in range(145):
        assert set(order[begin : begin + 5]) == set(range(5)), (begin, order)


def test_priority(b):  # rule 5.4
    c, d = b.weft.Channel(capacity=3), b.weft.Channel(capacity=3)

    async def chooser(b, readers, writers):
        for w in writers:
            for v in range(3):
                await b.op(w.write(v))
        return [(await b.op(b.weft.select(*readers, mode="priority")))[0] for _ in range(6)]

    assert b.run(b.process(chooser)([+c, +d], [-c, -d])) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("standing", [False, True])
def test_random_is_uniform_enough(b, standing):  # rule 5.4
    c = b.weft.Channel(capacity=1, overflow="drop_newest")
    guards = [b.weft.Output(w, 1) for w in (c.writer() for _ in range(4))]

    async def chooser(b):
        a = b.weft.Alternative(*guards, mode="random") if standing else None
        return Counter(
            [
                (await b.op(a.select() if standing else b.weft.select(*guards, mode="random")))[0]
                for _ in range(2000)
            ]
        )

    counts = b.run(b.process(chooser)())
    assert sum(counts.values()) == 2000
    assert all(350 < counts[i] < 650 for i in range(4)), counts  # 500 ± 7.7 standard deviations


@pytest.mark.parametrize("mode", ["fair", "priority", "random"])
def test_an_alternative_offers_its_value_at_each_select(b, mode):  # rules 5.2, 5.9
    c = b.weft.Channel(capacity=3)

    async def chooser(b, r, w):
        a = b.weft.Alternative(b.weft.Output(w, ["v"]), mode=mode)
        for _ in range(3):
            await b.op(a.select())
        return [await b.op(r.read()) for _ in range(3)]

    assert b.run(b.process(chooser)(+c, -c)) == [["v"]] * 3


def test_preconditions(b):  # rule 5.2
    c, d = b.weft.Channel(capacity=1), b.weft.Channel(capacity=1)

    async def chooser(b, r, s, w, x):
        await b.op(w.write("c"))
        await b.op(x.write("d"))
        first = b.weft.Input(r)
        a = await b.op(b.weft.select(first.when(False), s, mode="priority"))
        return a, await b.op(b.weft.select(first, s, mode="priority"))

    assert b.run(b.process(chooser)(+c, +d, -c, -d)) == ((1, "d"), (0, "c"))


@pytest.mark.parametrize(
    ("ending", "error"), [("retire", Retired), ("poison", Poisoned), ("die", PeerDied)]
)
def test_the_guard_that_is_to_end_the_select(b, ending, error):  # rule 5.6
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    keep = c.writer()

    async def ender(b, w):
        await b.op(b.weft.sleep(1))
        getattr(w, ending)()

    async def chooser(b, r, s):
        return await catch(b, lambda: b.weft.select(r, s, ended="raise"))

    end = b.run(b.process(chooser)(+c, +d), b.process(ender)(-d), clock="virtual")[0]
    assert type(end) is error
    assert end.guard == 1
    assert end.channel is d
    assert not keep.closed


def test_a_failed_output_guard_gives_its_value_back(b):  # rules 3.3, 5.6
    c = b.weft.Channel()
    r = c.reader()

    async def chooser(b, w):
        r.retire()
        return await catch(b, lambda: b.weft.select(b.weft.Output(w, "mine")))

    assert b.run(b.process(chooser)(-c)).value == "mine"


def test_a_ready_guard_beats_an_expired_timer_and_skip(b):  # rule 5.7
    c = b.weft.Channel(capacity=1)

    async def chooser(b, r, w):
        got = []
        for guard in (
            b.weft.after(0),
            b.weft.after(-1),
            b.weft.at(b.weft.now() - 1),
            b.weft.skip(),
        ):
            await b.op(w.write("x"))
            got.append(await b.op(b.weft.select(guard, r)))
            got.append(await b.op(b.weft.select(guard, r)))
        return got

    assert b.run(b.process(chooser)(+c, -c)) == [(1, "x"), (0, None)] * 4


def test_skip_with_priority_competes_in_its_place(b):  # rule 5.7
    c = b.weft.Channel(capacity=1)

    async def chooser(b, r, w):
        await b.op(w.write("x"))
        return await b.op(b.weft.select(b.weft.skip(), r, mode="priority")), await b.op(
            b.weft.select(r, b.weft.skip(), mode="priority")
        )

    assert b.run(b.process(chooser)(+c, -c)) == ((0, None), (0, "x"))


def test_timeout(b):  # rule 5.2
    c = b.weft.Channel()
    keep = c.writer()

    async def chooser(b, r):
        begin = b.weft.now()
        chosen = await b.op(b.weft.select(r, b.weft.after(7), b.weft.after(5)))
        return chosen, b.weft.now() - begin

    assert b.run(b.process(chooser)(+c), clock="virtual") == ((2, None), 5.0)
    assert not keep.closed


@pytest.mark.parametrize("chooser_first", [True, False])
def test_a_computed_output(b, chooser_first):  # rule 5.8
    c, d, calls = b.weft.Channel(), b.weft.Channel(), []
    r = d.reader()

    async def chooser(b, w, x):
        await b.op(b.weft.sleep(0 if chooser_first else 2))
        return await b.op(
            b.weft.select(
                b.weft.Output(x, make=lambda: calls.append("never")),
                b.weft.Output(w, make=lambda: calls.append("once") or 42),
            )
        )

    async def reader(b, r):
        await b.op(b.weft.sleep(1))
        return await b.op(r.read())

    assert b.run(b.process(chooser)(-c, -d), b.process(reader)(+c), clock="virtual") == [
        (1, None),
        42,
    ]
    assert calls == ["once"]
    assert not r.closed


@pytest.mark.parametrize("capacity", [1, 2])
def test_a_value_in_the_making_takes_its_place_when_it_is_made(capacity):  # rule 5.8
    """The value that is being made reserves its slot and nothing else: before it is made, another
    value enters the buffer or goes to the waiting reader."""
    c = weft_threads.Channel(capacity=capacity)
    making, made, ready = threading.Event(), threading.Event(), []

    def make():
        making.set()
        assert made.wait(280), "the other writer waited for the value that is being made"
        return "computed"

    @weft_threads.process
    def computes(w):
        weft_threads.select(weft_threads.Output(w, make=make))

    @weft_threads.process
    def writes(w):
        assert making.wait(280)
        ready.append(weft_threads.select(weft_threads.Output(w, "plain"), weft_threads.skip())[0])
        if ready != [0]:
            w.write("plain")
        made.set()

    @weft_threads.process
    def reads(r):
        return [r.read(), r.read()]

    ps = [computes(c.writer()), writes(c.writer()), reads(c.reader())]
    assert weft_threads.run(*ps)[2] == ["plain", "computed"]
    # With one slot, the process can be ready only if the reader is waiting by then.
    assert capacity == 1 or ready == [0]


def test_a_computed_output_that_raises(b):  # rule 5.8
    c = b.weft.Channel()

    async def chooser(b, w):
        with pytest.raises(ZeroDivisionError):
            await b.op(b.weft.select(b.weft.Output(w, make=lambda: 1 // 0)))
        return "sent nothing"

    assert (
        b.run(b.process(chooser)(-c), b.process(lambda b, r: catch(b, r.read))(+c))[0]
        == "sent nothing"
    )
    assert c.stats().transfers <= 1
    d = b.weft.Channel()
    assert isinstance(
        b.run(b.process(chooser)(-d), b.process(lambda b, r: catch(b, r.read))(+d))[1], PeerDied
    )


def test_a_computed_output_to_an_extended_reader(b):  # rules 1.6, 5.8
    c, log = b.weft.Channel(), []

    async def chooser(b, w):
        chosen = await b.op(b.weft.select(b.weft.Output(w, make=lambda: "made")))
        log.append("writer")
        return chosen

    async def reader(b, r):
        block = r.extended()
        value = await b.enter(block)
        await b.op(b.weft.sleep(1))
        log.append(value)
        await b.leave(block)

    assert b.run(b.process(chooser)(-c), b.process(reader)(+c), clock="virtual")[0] == (0, None)
    assert log == ["made", "writer"]


def test_a_guard_not_chosen_leaves_no_trace(b):  # rule 5.10
    c, d = b.weft.Channel(), b.weft.Channel()

    async def chooser(b, r, w):
        return await b.op(b.weft.select(r, b.weft.Output(w, "unsent"), b.weft.after(1)))

    async def late(b, r):
        await b.op(b.weft.sleep(2))
        return c.stats(), d.stats(), await catch(b, r.read)

    keep = c.writer()
    chosen, (at_c, at_d, end) = b.run(
        b.process(chooser)(+c, -d), b.process(late)(+d), clock="virtual"
    )
    assert chosen == (2, None)
    assert (at_c.waiting_readers, at_d.waiting_writers, at_d.transfers) == (0, 0, 0)
    assert isinstance(end, Retired)
    assert not keep.closed


def test_an_output_guard_moves_an_end(b):  # rules 2.4, 5.2
    c, d = b.weft.Channel(), b.weft.Channel()
    mobile = d.writer()

    async def chooser(b, w):
        first = await b.op(b.weft.select(b.weft.Output(w, mobile), b.weft.after(1)))
        kept = mobile.closed
        second = await b.op(b.weft.select(b.weft.Output(w, mobile), b.weft.after(10)))
        return first, kept, second, mobile.closed

    async def receiver(b, r):
        await b.op(b.weft.sleep(2))
        await b.op((await b.op(r.read())).write("via"))

    got = b.run(
        b.process(chooser)(-c), b.process(receiver)(+c), b.process(receive)(+d), clock="virtual"
    )
    assert got == [((1, None), False, (0, None), True), None, ["via"]]


# --- standing -------------------------------------------------------------------------------------


def test_standing_alternative(b):  # rule 5.9
    channels = [b.weft.Channel() for _ in range(20)]

    async def chooser(b, readers):
        got = []
        with b.weft.Alternative(*readers) as a:
            live = set(range(len(readers)))
            while live:
                try:
                    got.append(await b.op(a.select()))
                except Retired as end:
                    a.enable(end.guard, False)
                    live.remove(end.guard)
        return got

    got = b.run(
        b.process(chooser)([+c for c in channels]),
        *(b.process(send)(-c, *range(5)) for c in channels),
    )[0]
    assert Counter(i for i, _ in got) == dict.fromkeys(range(20), 5)
    assert all([v for i, v in got if i == k] == list(range(5)) for k in range(20))


def test_standing_with_outputs_timers_and_barriers(b):  # rule 5.9
    c = b.weft.Channel()
    barrier = b.weft.Barrier(2)

    async def chooser(b, w):
        a = b.weft.Alternative(b.weft.Output(w, "again"), barrier, b.weft.after(5))
        chosen = [await b.op(a.select()) for _ in range(4)]
        a.close()
        return [i for i, _ in chosen], b.weft.now()

    async def other(b, r):
        got = [await b.op(r.read()), await b.op(r.read())]
        await b.op(barrier.sync())
        await b.op(b.weft.sleep(9))
        return got

    begin, (chosen, got) = 0, b.run(b.process(chooser)(-c), b.process(other)(+c), clock="virtual")
    assert chosen == ([0, 0, 1, 2], begin + 5.0)
    assert got == ["again", "again"]


def test_enable_switches_a_guard(b):  # rule 5.9
    c, d = b.weft.Channel(capacity=4), b.weft.Channel(capacity=4)

    async def chooser(b, r, s, w, x):
        for v in range(3):
            await b.op(w.write(v))
            await b.op(x.write(v))
        a = b.weft.Alternative(r, s)
        a.enable(0, False)
        got = [await b.op(a.select()) for _ in range(3)]
        a.enable(0, True)
        return [*got, await b.op(a.select())]

    assert b.run(b.process(chooser)(+c, +d, -c, -d)) == [(1, 0), (1, 1), (1, 2), (0, 0)]


# --- bad use (rule 5.5) ---------------------------------------------------------------------------


def _select_raises(b, make, match):
    async def chooser(b):
        with pytest.raises(BadUse, match=match):
            await b.op(make())
        return "told"

    assert b.run(b.process(chooser)()) == "told"


def test_no_guards(b):
    _select_raises(b, lambda: b.weft.select(), "without guards")


def test_no_guard_holds(b):
    r = b.weft.Channel().reader()
    _select_raises(
        b, lambda: b.weft.select(b.weft.Input(r).when(False)), "no guard's precondition holds"
    )


def test_both_ends_of_one_channel(b):
    c = b.weft.Channel("loop")
    r, w = +c, -c
    _select_raises(b, lambda: b.weft.select(r, b.weft.Output(w, 1)), "both ends of channel 'loop'")


def test_one_barrier_twice(b):
    barrier = b.weft.Barrier(2)
    _select_raises(b, lambda: b.weft.select(barrier, barrier), "one barrier twice")


@pytest.mark.parametrize("guard", [42, None, "c"])
def test_no_guard_at_all(b, guard):
    _select_raises(b, lambda: b.weft.select(guard), "must be a guard")


def test_a_bare_writer_is_no_guard(b):
    w = b.weft.Channel().writer()
    _select_raises(b, lambda: b.weft.select(w), r"Output\(writer, value\)")


def test_a_closed_end_as_guard(b):
    r = b.weft.Channel("shut").reader()
    r.retire()
    _select_raises(
        b, lambda: b.weft.select(r), "channel 'shut': this reader end is closed: it was retired"
    )


def test_guards_and_modes_are_checked(b):
    c = b.weft.Channel()
    r, w = +c, -c
    for make, match in [
        (lambda: b.weft.Input(w), "needs a reader"),
        (lambda: b.weft.Output(r, 1), "needs a writer"),
        (lambda: b.weft.Output(w), "either the value to write or make="),
        (lambda: b.weft.Output(w, make=3), "make must be callable"),
        (lambda: b.weft.select(r, mode="best"), "mode must be"),
        (lambda: b.weft.Alternative(r, mode=1), "mode must be"),
        (lambda: b.weft.after(float("nan")), "nan"),
        (lambda: b.weft.Alternative(r).enable(7, True), "guards 0 to 0"),
    ]:
        with pytest.raises(BadUse, match=match):
            make()
    closed = b.weft.Alternative(r)
    closed.close()
    with pytest.raises(BadUse, match="Alternative that is closed"):
        closed.select()


def test_both_ends_if_both_take_part(b):
    """Rules 5.2, 5.5: a guard takes part only while it is enabled."""
    c = b.weft.Channel("loop", capacity=1)
    r, w = +c, -c
    weft = b.weft

    async def chooses(b):
        first = await b.op(weft.select(weft.Input(r).when(False), weft.Output(w, 1)))
        second = await b.op(weft.select(r, weft.Output(w, 2).when(False)))
        with weft.Alternative(r, weft.Output(w, 3).when(False)) as alternative:
            with pytest.raises(weft.BadUse, match="both ends of channel 'loop'"):
                alternative.enable(1, True)
            alternative.enable(0, False)
            alternative.enable(1, True)
            third = await b.op(alternative.select())
        return first, second, third

    assert b.run(b.process(chooses)()) == ((1, None), (0, 1), (1, None))
    assert c.stats().buffered == 1

"""Scenarios of rules 5.2, 5.5 and 5.6: guards that are off, and guards whose channel has ended."""

from __future__ import annotations

import itertools

import pytest

from conformance.scenarios import outermost, scenario
from conformance.scenarios.parts import drain, get, put, settle
from weft import (
    Alternative,
    BadUse,
    Barrier,
    Channel,
    Deadlock,
    Group,
    Input,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    process,
    run,
    select,
    skip,
)

# --- selects that programs use --------------------------------------------------------------------


@scenario("5.6")
async def a_merge_ends_with_its_last_source():
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    *_, got = await Parallel(
        put(a.writer(), *range(4)),
        put(b.writer(), *range(10, 18)),
        merge(a.reader(), b.reader(), out.writer()),
        drain(out.reader()),
    )
    assert sorted(got) == [*range(4), *range(10, 18)]


@process
async def merge(a, b, out):
    while True:
        _, value = await select(a, b)
        await out.write(value)


@scenario("5.6", "5.9")
async def so_does_one_with_a_standing_alternative():
    channels, out = [Channel(f"c{i}") for i in range(5)], Channel("out")
    *_, got = await Parallel(
        standing_merge([c.reader() for c in channels], out.writer()),
        *(put(c.writer(), *range(10 * i, 11 * i + 1)) for i, c in enumerate(channels)),
        drain(out.reader()),
    )
    assert sorted(got) == [v for i in range(5) for v in range(10 * i, 11 * i + 1)]


@process
async def standing_merge(sources, out):
    with Alternative(*sources) as alternative:
        while True:
            await out.write((await alternative.select())[1])


@scenario("5.6")
async def a_dispatcher_ends_with_its_last_worker_and_keeps_the_value_that_nobody_took():
    x, y = Channel("x"), Channel("y")
    (guard, value, given), one, four = await Parallel(
        dispatch(x.writer(), y.writer()), get(x.reader(), 1), get(y.reader(), 4)
    )
    assert sorted(one + four) == list(range(5)) == list(range(given))
    assert guard in (0, 1) and value == 5


@process
async def dispatch(*outs):
    given = 0
    try:
        while True:
            await select(*[Output(w, given) for w in outs])
            given += 1
    except Retired as end:
        return end.guard, end.value, given


@scenario("5.6")
async def a_buffer_hands_out_what_it_holds_before_it_ends():
    for mode in ("fair", "priority", "random"):
        into, out = Channel("in"), Channel("out")
        buffering = buffer(into.reader(), out.writer(), 3, mode)
        async with Group() as group:
            group.start(buffering)
            writer, reader = into.writer(), out.reader()
            for value in range(3):
                await writer.write(value)
            writer.retire()
            await settle()
            assert [value async for value in reader] == [0, 1, 2]


@scenario("5.6")
async def a_buffer_takes_no_more_while_it_offers_a_value_that_nobody_is_left_to_take():
    into, out = Channel("in"), Channel("out")
    writer, reader = into.writer(), out.reader()
    async with Group() as group:
        group.start(buffer(into.reader(), out.writer(), 3, "fair"))
        await writer.write("held")
        await settle()
        reader.retire()
        with pytest.raises(Retired) as error:
            await writer.write("too late")
        assert error.value.value == "too late"


@scenario("5.6")
async def an_empty_buffer_takes_one_value_more_and_then_ends():
    into, out = Channel("in"), Channel("out")
    writer, reader = into.writer(), out.reader()
    async with Group() as group:
        group.start(buffer(into.reader(), out.writer(), 3, "fair"))
        reader.retire()
        await writer.write("taken")
        with pytest.raises(Retired):
            await writer.write("too late")


@process
async def buffer(into, out, capacity, mode):
    held = []
    while True:
        which, value = await select(
            Input(into).when(len(held) < capacity),
            Output(out, held[0] if held else None).when(held),
            mode=mode,
        )
        if which == 0:
            held.append(value)
        else:
            held.pop(0)


# --- which guards decide --------------------------------------------------------------------------

# Guards in a row: in, out, timer, skip, barrier; `-` is off, `!` has ended="raise". Then the guards
# whose channels retire (those of guards that are off do so before the select begins), and the
# outcome: the guards that it may name, WAITS, or the index of the chosen guard.
WAITS = "waits"
CASES = (
    ("in in", {0}, WAITS),  # a merge has a source left
    ("in in", {0, 1}, {0, 1}),
    ("out out", {0}, WAITS),  # a dispatcher has a worker left
    ("out out", {0, 1}, {0, 1}),
    ("in out", {1}, {1}),  # only the outputs decide
    ("in out", {0}, WAITS),
    ("in out", {0, 1}, {1}),
    ("in- out", {1}, {1}),  # a full buffer
    ("in- out", {0}, WAITS),
    ("in out-", {0}, {0}),  # an empty buffer
    ("in out-", {1}, WAITS),
    ("in out out-", {1}, WAITS),  # the guard that is off holds the select open
    ("in! out out-", {1}, WAITS),
    ("in out out-", {0, 1}, {1}),
    ("in out out-", {1, 2}, {1}),
    ("out out-", {0}, {0}),
    ("in in-", {0}, {0}),
    ("in- in out", {1, 2}, {2}),
    ("in in- timer", {0}, WAITS),
    ("out in- timer", {0}, WAITS),
    ("in in- timer", {0, 1}, {0}),
    ("in in- timer-", {0}, {0}),
    ("out out- timer", {0}, {0}),
    ("in timer", {0}, {0}),  # timers and skips decide nothing
    ("in- timer", {0}, WAITS),
    ("in in- skip", {0}, 2),
    ("in skip", {0}, {0}),
    ("in- skip", {0}, 1),
    ("in barrier", {0}, WAITS),  # a barrier decides instead of the inputs
    ("out barrier", {0}, {0}),
    ("in barrier-", {0}, {0}),
    ("in in!", {1}, {1}),  # guards with ended="raise"
    ("in in!", {0}, WAITS),
    ("in! out", {0}, {0}),
    ("out out!", {1}, {1}),
    ("in in!-", {1}, WAITS),
    ("in in!", {0, 1}, {0, 1}),
)


class Case:
    """Channels and the guards at them; the outcome of the select goes to `log`."""

    def __init__(self, words):
        self.channels, self.others, self.guards, self.kept, self.log = [], [], [], [], []
        self.barrier = Barrier(2) if "barrier" in words else None
        self.kinds = [word.rstrip("!-") for word in words.split()]
        for i, word in enumerate(words.split()):
            self.add(i, self.kinds[i], "!" in word, "-" not in word)

    def add(self, i, kind, loud, on):
        c = Channel(f"c{i}")
        self.channels.append(c)
        self.others.append(c.writer() if kind == "in" else c.reader())
        how = {"ended": "raise"} if loud else {}
        if kind == "in":
            self.kept.append(c.reader())
            guard = Input(self.kept[-1], **how)
        elif kind == "out":
            self.kept.append(c.writer())
            guard = Output(self.kept[-1], f"value {i}", **how)
        elif kind == "barrier":
            guard = self.barrier
        else:
            guard = after(5) if kind == "timer" else skip()
        self.guards.append(guard if on else guard.when(False))

    def retire(self, gone):
        for i in gone:
            self.others[i].retire()

    def check(self, expected, standing=False):
        if expected == WAITS:
            assert self.log == []
        elif isinstance(expected, int):
            assert self.log == [("chose", expected)]
        else:
            ((why, guard, value, channel),) = self.log
            assert why == "Retired" and guard in expected
            assert channel is self.channels[guard]
            assert value == (f"value {guard}" if self.kinds[guard] == "out" else None)


@process
async def choose(case, mode, standing=False):
    try:
        if standing:
            with Alternative(*case.guards) as alternative:
                index, _ = await alternative.select()
        else:
            index, _ = await select(*case.guards, mode=mode)
        case.log.append(("chose", index))
    except (Retired, Poisoned, PeerDied) as end:
        case.log.append((type(end).__name__, end.guard, end.value, end.channel))


async def finish(case):
    """Ends a select that still waits, whatever its guards are. (A timer expires without help.)"""
    for c in case.channels:
        c.poison()
    if case.barrier is not None and not case.log:
        await case.barrier.sync()


@scenario("5.6", "5.2")
async def who_decides_at_the_beginning():
    for words, gone, expected in CASES:
        for mode in ("fair", "priority", "random"):
            case = Case(words)
            case.retire(gone)
            async with Group() as group:
                group.start(choose(case, mode))
                await settle()
                case.check(expected)
                await finish(case)


@scenario("5.6", "5.2")
async def who_decides_while_it_waits():
    for words, gone, expected in CASES:
        if "skip" in words:
            continue  # the select never waits
        case = Case(words)
        off = {i for i in gone if words.split()[i].endswith("-")}
        case.retire(off)
        async with Group() as group:
            group.start(choose(case, "fair"))
            await settle()
            assert case.log == []
            case.retire(gone - off)
            await settle()
            case.check(expected)
            await finish(case)


@scenario("5.6", "5.9")
async def a_standing_alternative_decides_as_a_select_does():
    for words, gone, expected in CASES:
        for before in (True, False):
            if "skip" in words and not before:
                continue
            case = Case(words)
            early = gone if before else {i for i in gone if words.split()[i].endswith("-")}
            case.retire(early)
            async with Group() as group:
                group.start(choose(case, "fair", standing=True))
                await settle()
                case.retire(gone - early)
                await settle()
                case.check(expected)
                await finish(case)


# --- which guards compete -------------------------------------------------------------------------


@scenario("5.6", "5.4")
async def the_end_of_the_whole_competes_in_the_place_of_a_guard_that_decides():
    c, d = Channel("c", capacity=4), Channel("d")
    cw, cr, dw = c.writer(), c.reader(), d.writer()
    d.reader().retire()
    for value in range(3):
        await cw.write(value)
    assert await select(cr, Output(dw, "d"), mode="priority") == (0, 0)
    with pytest.raises(Retired) as error:
        await select(Output(dw, "d"), cr, mode="priority")
    assert (error.value.guard, error.value.value) == (0, "d")
    ends = 0
    for _ in range(3):
        try:
            await select(cr, Output(dw, "d"))
        except Retired as end:
            ends += 1
            assert end.guard == 1
    assert ends >= 1, "fair: within N selects"


@scenario("5.6", "5.7")
async def a_ready_guard_beats_a_timer_and_so_does_the_end_of_the_whole():
    c = Channel("c")
    reader = c.reader()
    c.writer().retire()
    for timer in (after(-1), after(0), skip(), after(1)):
        with pytest.raises(Retired):
            await select(timer.when(True), reader)
    assert await select(skip(), reader, mode="priority") == (0, None)


@scenario("5.6", "5.4")
async def a_silent_guard_is_not_counted_in_n():
    channels = [Channel(f"c{i}", capacity=64) for i in range(4)]
    readers, writers = [c.reader() for c in channels], [c.writer() for c in channels]
    for value in range(30):
        await writers[0].write(value)
        await writers[3].write(value)
    writers[1].retire()
    writers[2].retire()
    chosen = [(await select(*readers))[0] for _ in range(20)]
    assert all(set(pair) == {0, 3} for pair in itertools.pairwise(chosen)), chosen


@scenario("5.6", "4.2", "4.5")
async def poison_and_death_are_ready_in_their_place():
    for ending, error in (("poison", Poisoned), ("die", PeerDied)):
        c, d = Channel("c", capacity=1), Channel("d")
        cw, cr, dr, dw = c.writer(), c.reader(), d.reader(), d.writer()
        await cw.write("first")
        getattr(dw, ending)()
        assert await select(cr, dr, mode="priority") == (0, "first")
        await cw.write("second")
        with pytest.raises(error) as raised:
            await select(dr, cr, mode="priority")
        assert raised.value.guard == 0
        assert await cr.read() == "second"


# --- guards that are silent for good --------------------------------------------------------------


@scenario("5.6", "4.2")
async def a_silent_guard_that_is_poisoned_is_heard_by_the_next_select():
    for retired_before in (True, False):
        c, d = Channel("c"), Channel("d")
        cr, dr, cw, dw = c.reader(), d.reader(), c.writer(), d.writer()
        if retired_before:
            cw.retire()
        log = []
        async with Group() as group:
            group.start(twice(log, cr, dr))
            await settle()
            cw.retire()
            await settle()  # a foreign waiter (6.6) sees the poison when it runs
            c.poison()
            await settle()
            assert log == []
            await dw.write("value")
        assert log == [(1, "value"), ("Poisoned", 0)]


@process
async def twice(log, *guards):
    try:
        log.append(await select(*guards))
        log.append(await select(*guards))
    except Poisoned as end:
        log.append(("Poisoned", end.guard))


@scenario("5.6", "5.10")
async def a_silent_guard_stands_in_no_line():
    c, d = Channel("c"), Channel("d")
    cw, dw = c.writer(), d.writer()
    choosing = get_any(c.reader(), d.reader())
    async with Group() as group:
        group.start(choosing)
        await settle()
        assert (c.stats().waiting_readers, d.stats().waiting_readers) == (1, 1)
        cw.retire()
        await settle()
        assert (c.stats().waiting_readers, d.stats().waiting_readers) == (0, 1)
        await dw.write("d")
    assert choosing.result == (1, "d")


@process
async def get_any(*guards):
    return await select(*guards)


@scenario("5.6", "3.1")
async def what_is_buffered_and_what_blocked_writers_hold_is_handed_out_first():
    c, d = Channel("c", capacity=2), Channel("d")
    cr, dr = c.reader(), d.reader()
    async with Group() as group:
        group.start(put(c.writer(), 0, 1, 2))
        group.start(put(d.writer(), "d"))
        await settle()
        got = [(await select(cr, dr))[1] for _ in range(4)]
        assert sorted(map(str, got)) == ["0", "1", "2", "d"]
        with pytest.raises(Retired):
            await select(cr, dr)


@scenario("5.6", "5.8")
async def an_output_that_makes_its_value_is_not_asked_for_it():
    c, calls = Channel("c"), []
    writer = c.writer()
    c.reader().retire()
    with pytest.raises(Retired) as error:
        await select(Output(writer, make=lambda: calls.append("called")))
    assert error.value.value is None and calls == []


@scenario("5.6")
async def with_one_guard_it_is_as_a_read_or_a_write():
    c, d = Channel("c"), Channel("d")
    cr, dw = c.reader(), d.writer()
    c.writer().retire()
    d.reader().retire()
    for guards, value in ((cr,), None), ((Output(dw, "d"),), "d"), ((cr, cr), None):
        with pytest.raises(Retired) as error:
            await select(*guards)
        assert error.value.guard in range(len(guards)) and error.value.value == value


# --- ended="raise" --------------------------------------------------------------------------------


@scenario("5.6")
async def a_stop_channel_ends_a_process():
    stop, jobs = Channel("stop"), Channel("jobs")
    stopping, writer = stop.writer(), jobs.writer()
    working = works(jobs.reader(), stop.reader())
    async with Group() as group:
        group.start(working)
        await writer.write(1)
        await writer.write(2)
        stopping.retire()
        await settle()
        with pytest.raises(Retired):
            await writer.write(3)
    assert working.result == [1, 2]


@process
async def works(jobs, stop):
    done = []
    try:
        while True:
            done.append((await select(jobs, Input(stop, ended="raise")))[1])
    except Retired as end:
        assert end.guard == 1
    return done


@scenario("5.6", "5.9")
async def ended_raise_for_all_guards_of_a_select_or_an_alternative():
    c, d = Channel("c"), Channel("d")
    cr, dr, kept = c.reader(), d.reader(), c.writer()
    d.writer().retire()
    with pytest.raises(Retired) as error:
        await select(cr, dr, ended="raise")
    assert error.value.guard == 1
    with pytest.raises(Retired) as error:
        await select(after(5), cr, dr, mode="priority", ended="raise")
    assert error.value.guard == 2
    with Alternative(cr, dr, ended="raise") as alternative:
        with pytest.raises(Retired) as error:
            await alternative.select()
        assert error.value.guard == 1
        alternative.enable(1, False)
        async with Group() as group:
            group.start(put(c.writer(), "c"))
            assert await alternative.select() == (0, "c")
    assert not kept.closed


@scenario("5.6", "5.2")
async def a_loud_guard_with_a_precondition_is_loud():
    c, d = Channel("c"), Channel("d")
    cr, dw, kept = c.reader(), d.writer(), c.writer()
    d.reader().retire()
    with pytest.raises(Retired) as error:
        await select(cr, Output(dw, "d", ended="raise").when(True))
    assert (error.value.guard, error.value.value) == (1, "d")
    assert (await select(cr, Output(dw, "d", ended="raise").when(False), after(1)))[0] == 2
    assert not kept.closed


@scenario("5.6", "11.2")
async def ended_is_raise_or_silent():
    reader, writer = Channel("c").reader(), Channel("d").writer()
    for wrong in ("loud", 1, True):
        with pytest.raises(BadUse, match="raise"):
            Input(reader, ended=wrong)
        with pytest.raises(BadUse, match="raise"):
            Output(writer, 1, ended=wrong)
        with pytest.raises(BadUse, match="raise"):
            await select(reader, ended=wrong)
        with pytest.raises(BadUse, match="raise"):
            Alternative(reader, ended=wrong)


# --- guards that are off --------------------------------------------------------------------------


@scenario("5.2", "5.5")
async def of_a_guard_that_is_off_nothing_is_checked():
    c, d = Channel("c", capacity=1), Channel("d")
    cr, cw, dr, kept = c.reader(), c.writer(), d.reader(), d.writer()
    closed = d.reader()
    closed.retire()
    nobody, two = Barrier(0), Barrier(2)
    assert await select(Input(cr).when(False), Output(cw, "both ends")) == (1, None)
    assert await select(cr, Output(cw, "both ends").when(False)) == (0, "both ends")
    assert await select(Input(closed).when(False), skip()) == (1, None)
    assert await select(dr, Input(closed).when(False), after(1)) == (2, None)
    assert await select(nobody.when(False), skip()) == (1, None)
    assert await select(two, two.when(False), after(1)) == (2, None)
    assert not kept.closed


@scenario("5.5", "5.2", "8.4")
async def one_barrier_twice_among_the_guards_that_are_on_is_bad_use():
    barrier = Barrier(2)
    with pytest.raises(BadUse, match="twice"):
        await select(barrier, skip(), barrier)
    with Alternative(barrier, barrier.when(False), after(1)) as alternative:
        with pytest.raises(BadUse, match="twice"):
            alternative.enable(1, True)
        alternative.enable(0, False)
        alternative.enable(1, True)
        assert await alternative.select() == (2, None)


@scenario("5.5", "5.9")
async def enable_checks_both_ends_of_one_channel():
    c = Channel("loop", capacity=1)
    cr, cw = c.reader(), c.writer()
    with Alternative(cr, Output(cw, 1).when(False)) as alternative:
        with pytest.raises(BadUse, match="loop"):
            alternative.enable(1, True)
        alternative.enable(0, False)
        alternative.enable(1, True)
        assert await alternative.select() == (1, None)


@scenario("5.6", "5.9")
async def a_guard_that_is_off_ends_and_is_switched_on():
    c, d = Channel("c"), Channel("d")
    cw, dw = c.writer(), d.writer()
    with Alternative(c.reader(), Input(d.reader()).when(False)) as alternative:
        dw.retire()
        async with Group() as group:
            group.start(put(c.writer(), 1, 2))
            assert await alternative.select() == (0, 1)
            alternative.enable(1, True)
            assert await alternative.select() == (0, 2)
        cw.retire()
        with pytest.raises(Retired):
            await alternative.select()


@scenario("5.6", "5.9")
async def a_silent_guard_of_an_alternative_is_switched_off_and_on_and_stays_silent():
    c, d = Channel("c"), Channel("d")
    dw = d.writer()
    with Alternative(c.reader(), d.reader()) as alternative:
        async with Group() as group:
            group.start(put(c.writer(), 1, 2, 3))
            assert await alternative.select() == (0, 1)
            dw.retire()
            assert await alternative.select() == (0, 2)
            alternative.enable(1, False)
            alternative.enable(1, True)
            assert await alternative.select() == (0, 3)
        with pytest.raises(Retired):
            await alternative.select()
        d.poison()
        with pytest.raises(Poisoned) as error:
            await alternative.select()
        assert error.value.guard == 1


# --- deadlock -------------------------------------------------------------------------------------


@outermost("5.6", "10.2", needs=("a deadlock",))
def a_cycle_that_was_fed_from_outside_is_a_deadlock_that_names_the_ended_guard():
    fed, back = Channel("fed"), Channel("back")
    with pytest.raises(Deadlock) as error:
        run(
            put(fed.writer(), 1),
            circle(fed.reader(), back.reader(), back.writer()),
            clock="virtual",
        )
    text = str(error.value)
    assert "'fed' (ended)" in text and "'back'" in text
    assert """guard 0 'fed' has ended; if that should end the process: ended="raise\"""" in text


@process
async def circle(fed, back, _forth):
    while True:
        await select(fed, back)

"""Rule 16: processes of native components beside Python's."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

import pytest
from components import basics, needs_compiler
from parts import receive, send, take

from weft import coroutines
from weft._extension import native
from weft.coroutines import Group
from weft.errors import BadUse, Deadlock, Poisoned, Retired
from weft.native import ComponentError

pytestmark = needs_compiler


async def all_of(b, r):
    got = []
    try:
        while True:
            got.append(await b.op(r.read()))
    except Retired:
        return got


async def write_all(b, w, values):
    for v in values:
        await b.op(w.write(v))


def through(b, process, values, **channel):
    """Returns the values that a process with an `in` and an `out` writes when it reads `values`."""
    a, c = b.weft.Channel("a", **channel), b.weft.Channel("c", **channel)
    return b.run(b.process(write_all)(-a, values), process(+a, -c), b.process(all_of)(+c))[2]


def test_a_filter_between_two_processes(b):  # rule 16.1
    assert through(b, basics().scale, range(5)) == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("channel", [{}, {"capacity": 3}, {"overflow": "unbounded"}])
def test_rendezvous_and_buffers(b, channel):  # rules 1.2, 16.1
    assert through(b, basics().ints, range(100), **channel) == list(range(100))


@pytest.mark.parametrize(("overflow", "kept"), [("drop_oldest", [48, 49]), ("drop_newest", [0, 1])])
def test_a_buffer_that_drops(b, overflow, kept):  # rules 1.4, 16.2
    d = b.weft.Channel("d", capacity=2, overflow=overflow)
    reader = d.reader()
    b.run(basics().count_to(-d, 50))
    assert d.stats().dropped == 48
    assert b.run(b.process(all_of)(reader)) == kept


VALUES = [
    ("ints", [0, -1, 2**63 - 1, -(2**63)]),
    ("floats", [0.0, -1.5, math.inf, 1e308]),
    ("bools", [True, False]),
    ("texts", ["", "a", "größer\0€😀"]),
    ("blobs", [b"", b"\0\xff" * 1000]),
    ("nothings", [None, None]),
    ("lists", [[], [1.0, 2.0], [0.5] * 1000]),
    ("nested", [[], [[]], [["a", ""], ["b"]]]),
    ("tuples", [(1, "a", True), (-1, "", False)]),
    ("dicts", [{}, {"a": [1.0], "b": []}]),
    ("maybes", [None, 0, 7]),
]


@pytest.mark.parametrize(("process", "values"), VALUES, ids=[name for name, _ in VALUES])
def test_values_go_there_and_come_back(b, process, values):  # rules 16.2, 16.4
    got = through(b, getattr(basics(), process), values)
    assert got == values
    assert [type(v) for v in got] == [type(v) for v in values]


def test_numbers_that_are_like_it_convert(b):  # rule 16.4
    class Five:
        def __index__(self):
            return 5

    assert through(b, basics().floats, [1, True, Five()]) == [1.0, 1.0, 5.0]
    assert through(b, basics().ints, [True, Five()]) == [1, 5]
    assert through(b, basics().blobs, [bytearray(b"a"), memoryview(b"b")]) == [b"a", b"b"]
    assert through(b, basics().lists, [(1, 2), range(2)]) == [[1.0, 2.0], [0.0, 1.0]]


REFUSED = [
    ("ints", "x", "expected int"),
    ("ints", 1.0, "expected int"),
    ("ints", 2**63, "does not fit into 64 bits"),
    ("floats", "1", "expected float"),
    ("floats", None, "expected float"),
    ("bools", 1, "expected bool"),
    ("texts", b"a", "expected str"),
    ("texts", "\ud800", "surrogates"),
    ("blobs", "a", "expected bytes"),
    ("lists", [1, "x"], "expected float"),
    ("lists", "abc", r"expected list\[float\]"),
    ("tuples", (1, "a"), "tuple"),
    ("dicts", [("a", [])], "dict"),
]


@pytest.mark.parametrize(("process", "value", "says"), REFUSED)
def test_a_value_that_is_not_like_it_is_refused_where_it_is_written(b, process, value, says):
    # rules 16.2, 16.4
    async def writes(b, w):
        with pytest.raises(BadUse, match=says) as refused:
            await b.op(w.write(value))
        assert "channel 'a'" in str(refused.value)
        assert f"process {process} of component basics" in str(refused.value)

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(writes)(-a), getattr(basics(), process)(+a, -c), b.process(all_of)(+c))
    assert got[2] == []


def test_what_does_not_fit_the_cpp_type_is_a_failure_of_the_component(b):  # rules 16.1, 16.4
    with pytest.raises(ComponentError, match="300 does not fit") as failed:
        through(b, basics().narrow, [1, 300])
    assert failed.value.process == "narrow"


def no_result(b):
    """Returns the NoResult of a process that read from a retired channel (rule 7.1)."""

    async def reads(b, r):
        await b.op(r.read())

    c = b.weft.Channel()
    r = c.reader()
    c.writer().retire()
    return b.run([b.process(reads)(r)])[0]


@pytest.mark.parametrize("process", ["ints", "floats", "bools", "texts", "lists", "dicts"])
def test_a_no_result_is_no_native_value(b, process):  # rules 7.1, 16.4
    says = r"channel 'a'.*process main/reads gave no result: it ended at \w+.py:\d+"
    none = no_result(b)

    async def writes(b, w):
        with pytest.raises(BadUse, match=says):
            await b.op(w.write(none))

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(writes)(-a), getattr(basics(), process)(+a, -c), b.process(all_of)(+c))
    assert got[2] == []


def test_an_argument_that_is_a_no_result(b):  # rules 7.1, 16.4
    with pytest.raises(BadUse, match=r"its argument '.*process main/reads gave no result"):
        basics().count_to(-b.weft.Channel(), no_result(b))


def test_an_end_is_no_native_value(b):  # rule 16.4
    other = b.weft.Channel()

    async def writes(b, w):
        with pytest.raises(BadUse, match="expected int"):
            await b.op(w.write(other.reader()))

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    b.run(b.process(writes)(-a), basics().ints(+a, -c), b.process(all_of)(+c))


# --- how a channel becomes native -----------------------------------------------------------------


def test_values_in_the_buffer_are_converted(b):  # rule 16.3
    a, c = b.weft.Channel("a", capacity=4), b.weft.Channel("c")
    reader = a.reader()
    b.run(b.process(write_all)(-a, [1, 2, 3]))
    assert b.run(basics().ints(reader, -c), b.process(all_of)(+c))[1] == [1, 2, 3]


def test_what_waits_and_does_not_convert_stays_as_it_was(b):  # rule 16.3
    a = b.weft.Channel("a", capacity=4)
    reader = a.reader()
    b.run(b.process(write_all)(-a, [1, "x", 2]))
    with pytest.raises(BadUse, match=r"a value that waits at channel 'a', which carries int .*'x'"):
        basics().ints(reader, -b.weft.Channel("c"))
    assert b.run(b.process(all_of)(reader)) == [1, "x", 2]


def test_values_of_writers_that_wait_are_converted_or_all_stay():  # rule 16.3
    @coroutines.process
    async def writes(w, value):
        await w.write(value)

    @coroutines.process
    async def main(values):
        a, c = coroutines.Channel("a"), coroutines.Channel("c")
        writers, reader, out = [-a for _ in values], +a, +c
        async with Group() as group:
            for w, value in zip(writers, values, strict=True):
                group.start(writes(w, value))
            while a.stats().waiting_writers < len(values):
                await coroutines.yield_()
            try:
                group.start(basics().ints(reader, -c))
            except BadUse:
                return [await reader.read() for _ in values]
            return [await out.read() for _ in values]

    assert coroutines.run(main([1, 2, 3])) == [1, 2, 3]
    assert coroutines.run(main([1, "x", 3])) == [1, "x", 3]


def test_a_second_type_is_refused_and_both_are_named(b):  # rule 16.2
    a = b.weft.Channel("a")
    first = basics().ints(a.reader(), -b.weft.Channel())
    with pytest.raises(BadUse, match=r"channel 'a' carries int \(process ints .*wants float"):
        basics().floats(a.reader(), -b.weft.Channel())
    first._give_up()


def test_a_call_that_is_refused_leaves_all_its_channels_as_they_were(b):
    """Rules 11.1, 16.2, 16.3: the channels before the channel that cannot be native are also
    unchanged."""
    a, full = b.weft.Channel("a"), b.weft.Channel("full", capacity=1)
    first = basics().ints(+a, -(of_ints := b.weft.Channel("ints")))
    reader, writer = +full, -full

    async def main(b, value):
        await b.op(writer.write(value))

    b.run(b.process(main)("x"))
    for other, why in ((of_ints, "carries int"), (full, "a value that waits at")):
        fresh = b.weft.Channel("fresh")
        with pytest.raises(BadUse, match=why):
            basics().floats(+fresh, -other)
        assert not native._is_native(fresh) and not native._is_native(full)
    fresh = b.weft.Channel("fresh")
    with pytest.raises(
        BadUse, match="channel 'fresh' is given twice, as a channel of int and as a channel of"
    ):
        basics().merge(+fresh, +fresh, -b.weft.Channel())
    assert not native._is_native(fresh)

    async def takes(b):
        return await b.op(reader.read())

    assert b.run(b.process(takes)()) == "x"
    first._give_up()


# --- choice ---------------------------------------------------------------------------------------


def test_choice_in_a_component(b):  # rules 5.1, 16.1
    n, t, c = b.weft.Channel("n"), b.weft.Channel("t"), b.weft.Channel("c")
    got = b.run(
        b.process(write_all)(-n, [1, 2]),
        b.process(write_all)(-t, ["x", "y"]),
        basics().merge(+n, +t, -c),
        b.process(all_of)(+c),
    )[3]
    assert sorted(got) == [(-1, "x"), (-1, "y"), (1, ""), (2, "")]


def test_outputs_and_preconditions_in_a_component(b):  # rules 5.2, 16.1
    assert through(b, basics().place, range(50)) == list(range(50))


def test_priority_timers_and_loud_ends_in_a_component(b):  # rules 5.3, 5.6, 5.7, 16.1
    x, y, c = b.weft.Channel(capacity=1), b.weft.Channel(capacity=1), b.weft.Channel("c")
    keep = x.writer()
    xr, yr = x.reader(), y.reader()
    b.run(b.process(write_all)(x.writer(), [1]), b.process(write_all)(-y, [2]))
    got = b.run(basics().choices(xr, yr, -c), b.process(all_of)(+c))[1]
    assert got == ["b", "timer", "no time", "skip", "no time", "skip", "retired"]
    keep.retire()


def test_choice_in_python_over_native_channels(b):  # rules 5.1, 16.2
    async def either(b, r, w):
        got, sent = [], 0
        while len(got) < 20:
            out = [b.weft.Output(w, sent)] if sent < 20 else []
            index, value = await b.op(b.weft.select(r, *out))
            if index == 0:
                got.append(value)
            else:
                sent += 1
        return got

    a, c = b.weft.Channel("a"), b.weft.Channel("c", capacity=5)
    assert b.run(b.process(either)(+c, -a), basics().ints(+a, -c))[0] == list(range(20))


def test_an_alternative_and_a_computed_output(b):  # rules 5.8, 5.9, 16.2
    async def writes(b, w):
        for n in range(3):
            await b.op(b.weft.select(b.weft.Output(w, make=lambda n=n: 10 + n)))
        with pytest.raises(BadUse, match="expected int"):
            await b.op(b.weft.select(b.weft.Output(w, "x")))

    async def reads(b, r):
        got = []
        with b.weft.Alternative(r) as alternative:
            try:
                while True:
                    got.append((await b.op(alternative.select()))[1])
            except Retired:
                return got

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(writes)(-a), basics().ints(+a, -c), b.process(reads)(+c))[2]
    assert got == [10, 11, 12]


def test_an_extended_read_holds_the_component(b):  # rules 1.6, 16.1
    async def reads(b, r):
        got = []
        for _ in range(3):
            extended = r.extended()
            if b.blocking:
                with extended as value:
                    got.append(value)
            else:
                async with extended as value:
                    got.append(value)
        return got

    c = b.weft.Channel("c")
    assert b.run(basics().count_to(-c, 3), b.process(reads)(+c))[1] == [0, 1, 2]


def test_blocks(b):
    got = through(b, basics().blocks, range(100))
    assert [x for block in got for x in block] == list(range(100))
    assert all(1 <= len(block) <= 8 for block in got)


# --- how a component ends -------------------------------------------------------------------------


def test_a_component_ends_with_its_source_and_retires_what_it_holds(b):  # rules 3.5, 16.1
    assert through(b, basics().ints, []) == []


def test_poison_reaches_a_component_and_goes_on(b):  # rules 4.1, 4.3, 16.1
    async def aborts(b, w):
        await b.op(w.write(1))
        w.poison()

    async def meets(b, r):
        await b.op(r.read())
        with pytest.raises(Poisoned):
            await b.op(r.read())
        return "poisoned"

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(aborts)(-a), basics().ints(+a, -c), b.process(meets)(+c))
    assert got[2] == "poisoned"


def test_a_component_poisons_and_catches_poison(b):  # rules 4.1, 4.2, 16.1
    async def meets(b, w):
        await b.op(w.write(1))
        with pytest.raises(Poisoned) as met:
            await b.op(w.write(2))
        return met.value.strength, met.value.value

    a = b.weft.Channel("a")
    assert b.run(b.process(meets)(-a), basics().poisons(+a))[0] == (3, 2)

    async def poisons(b, w):
        w.poison()

    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    got = b.run(b.process(poisons)(-a), basics().catches(+a, -c), b.process(all_of)(+c))
    assert got[2] == ["poisoned"]


def test_an_exception_names_component_process_and_message(b):  # rules 7.2, 16.1
    a = b.weft.Channel("a")
    with pytest.raises(ComponentError) as failed:
        b.run(b.process(write_all)(-a, range(10)), basics().fails(+a, at=3))
    e = failed.value
    assert (e.component, e.process, e.type) == ("basics", "fails", "std::runtime_error")
    assert e.message == "it is 3"
    assert str(e) == "process fails of component basics: std::runtime_error: it is 3"


def test_what_is_thrown_need_not_be_an_exception(b):  # rule 16.1
    with pytest.raises(ComponentError, match="process throws_a_number of component basics: int"):
        b.run(basics().throws_a_number())


def test_bad_use_in_a_component_says_what(b):  # rules 11.1, 16.1
    c = b.weft.Channel("c")
    with pytest.raises(ComponentError, match="write on channel 'c': this end is closed"):
        b.run(basics().closes_and_writes(-c))


def test_a_failure_beside_it_cancels_a_component(b):  # rules 6.2, 7.3, 16.1
    async def fails(b):
        raise ValueError("beside")

    _c = b.weft.Channel("c")
    with pytest.raises(ValueError, match="beside"):
        b.run(b.process(fails)(), basics().sleeps(), basics().stops(_c.reader()), keep(b, _c))


def keep(b, channel):
    """Returns a process that holds a writer and does nothing with it until it is cancelled."""

    async def holds(b, w):
        await b.op(b.weft.sleep(3600))

    return b.process(holds)(channel.writer())


def test_a_deadlock_report_names_the_component_and_its_channel(b):  # rules 10.2, 16.1
    a, never, c = b.weft.Channel("a"), b.weft.Channel("never"), b.weft.Channel("c")

    async def holds(b, w, r):
        return await b.op(r.read())

    with pytest.raises(Deadlock) as found:
        b.run(
            b.process(send)(-a, 1),
            basics().deaf(+a, +never, -c),
            b.process(holds)(-never, +c),
        )
    text = str(found.value)
    assert "main/deaf: read 'never' at component_basics.cpp:" in text
    assert "main/holds: read 'c'" in text


def test_a_component_alone_that_waits_for_ever_is_a_deadlock(b):  # rules 10.1, 16.1
    a = b.weft.Channel("a")
    with pytest.raises(Deadlock, match="main/stops: read 'a'"):
        b.run(basics().stops(+a), b.process(take)(+b.weft.Channel("b"), 1))


def test_virtual_time_jumps_for_a_component_that_sleeps(b):  # rules 8.6, 16.1
    b.run(basics().sleeps(), clock="virtual")


# --- where a component runs -----------------------------------------------------------------------


def test_others_run_while_a_component_computes(b):  # rule 16.1
    a = b.weft.Channel("a")
    b.run(basics().spins(), basics().stops(+a), b.process(send)(-a, 1))


def test_two_components_of_one_network_meet(b):  # rule 16.1
    a, c, d = b.weft.Channel("a"), b.weft.Channel("c"), b.weft.Channel("d")
    f = basics()
    got = b.run(f.count_to(-a, 1000), f.ints(+a, -c), f.ints(+c, -d), b.process(all_of)(+d))[3]
    assert got == list(range(1000))


def test_in_an_asyncio_task():  # rules 13.1, 16.1
    async def main():
        a, c = coroutines.Channel("a"), coroutines.Channel("c")
        reader, writer = +c, -a
        async with Group() as group:
            group.start(basics().ints(+a, -c))
            got = []
            for n in range(20):
                await writer.write(n)
                got.append(await reader.read())
            writer.retire()
        return got

    assert asyncio.run(main()) == list(range(20))


def test_tasks_of_asyncio_meet_components():  # rules 6.6, 13.1, 16.1, 16.2
    """Tasks, which are not processes, are woken and cancelled while components write without the
    interpreter's lock.
    """

    async def main(n):
        a, c, d = (coroutines.Channel(name) for name in "acd")
        ends = -a, +a, -c, +c, -d, +d
        first = asyncio.create_task(read(ends[3]))
        await asyncio.sleep(0)  # lets the process wait before the channel becomes native
        ints, more = basics().ints(ends[1], ends[2]), basics().count_to(ends[4], 100_000)
        async with Group() as group:
            group.start(ints)
            group.start(more)
            await ends[0].write(0)
            assert await first == 0
            for k in range(n):
                impatient = asyncio.create_task(read(ends[5]))
                await asyncio.sleep(0)
                impatient.cancel()
                await asyncio.wait([impatient])
                index, value = await coroutines.select(ends[5], ends[3])
                assert index == 0 and isinstance(value, int)
                await ends[0].write(k)
                assert await read(ends[3]) == k
            ends[0].retire()
            ends[5].retire()

    async def read(r):
        return await r.read()

    asyncio.run(main(300))


def test_the_cpu_that_was_asked_for(b):
    cpu = max(os.sched_getaffinity(0))
    c = b.weft.Channel("c")
    assert b.run(basics().tells_cpu(-c, cpu=cpu), b.process(receive)(+c))[1] == [cpu]
    with pytest.raises(BadUse, match="this program may use the CPUs"):
        basics().tells_cpu(-b.weft.Channel(), cpu=10_000)


def test_the_name_that_system_tools_show(b):
    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    echo = basics().ints(+a, -c).named("the echo")
    assert "main/the echo" in b.run(send_first(b, a, c), echo)[0]  # rule 14.13


def send_first(b, a, c):
    async def looks(b, w, r):
        await b.op(w.write(1))
        await b.op(r.read())
        return [p.read_text().strip() for p in Path("/proc/self/task").glob("*/comm")]

    return b.process(looks)(-a, +c)


# --- a component as Python sees it ----------------------------------------------------------------


def test_signature_docstring_and_defaults(b):
    scale = basics().scale
    assert str(scale.__signature__).startswith(
        "(samples: 'Reader[float]', scaled: 'Writer[float]', factor: 'float' = 2.0, *, on:"
    )
    assert "Each sample times `factor`." in scale.__doc__
    assert "samples: what comes" in scale.__doc__
    assert basics().__doc__ == "Small processes for tests."
    c = b.weft.Channel("c")
    got = b.run(basics().tells(-c), b.process(all_of)(+c))[1]
    assert got[0] == "a 1 2 yes nothing"
    c = b.weft.Channel("c")
    message = basics().tells(-c, numbers=[7], yes=False, maybe=3, text="b")
    assert b.run(message, b.process(all_of)(+c))[1][0] == "b 7 no 3"


def test_wrong_arguments_are_told_at_the_call(b):  # rule 16.2
    f = basics()
    with pytest.raises(TypeError, match=r"scale\(\) of component basics: missing"):
        f.scale()
    with pytest.raises(
        BadUse, match="argument 'samples' must be a reader end of a channel of float"
    ):
        f.scale(-b.weft.Channel(), -b.weft.Channel())
    with pytest.raises(BadUse, match="argument 'factor': expected float, but 'x'"):
        f.scale(+b.weft.Channel(), -b.weft.Channel(), "x")
    with pytest.raises(BadUse, match="runs on='thread'"):
        f.scale(+b.weft.Channel(), -b.weft.Channel(), on="cloud")


def test_a_process_of_a_component_is_started_once(b):  # rule 7.6
    c = b.weft.Channel("c")
    p = basics().count_to(-c, 0)
    b.run(p)
    with pytest.raises(BadUse, match="started already"):
        b.run(p)

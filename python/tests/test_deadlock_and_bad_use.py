"""Rules 10 and 11: deadlock, and bad use."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest
from parts import receive, send

from weft.errors import BadUse, Cancelled, Deadlock


async def forwards(b, r, w):
    async for v in b.each(r):
        await b.op(w.write(v))


def test_a_ring_that_nobody_starts(b):  # rules 10.1, 10.2
    cs = [b.weft.Channel(f"c{k}") for k in range(3)]
    p = b.process(forwards)
    with pytest.raises(Deadlock) as caught:
        b.run(*(p(+cs[k], -cs[(k + 1) % 3]) for k in range(3)))
    d = caught.value
    assert d.knot == [f"main/forwards[{k}]" for k in range(3)]
    assert [(x.operation, x.places) for x in d.processes] == [
        ("read", (f"'c{k}'",)) for k in range(3)
    ]
    assert all(".py:" in x.at for x in d.processes)
    assert "knot:" in d.report and "main/forwards[0]: read 'c0'" in str(d)


def test_the_knot_is_the_smallest(b):  # rule 10.2
    x, y, z = (b.weft.Channel(n) for n in "xyz")
    with pytest.raises(Deadlock) as caught:
        b.run(
            b.process(forwards)(+x, -y),
            b.process(forwards)(+y, -x),
            b.process(send)(z.writer(), 1),
            b.process(_waits_then_reads)(x.reader(), z.reader()),
        )
    assert caught.value.knot == ["main/forwards[0]", "main/forwards[1]"]
    assert len(caught.value.processes) == 4


async def _reads_and_holds(b, r, held):
    await b.op(r.read())
    assert held


async def _keeps_received_end_and_reads(b, r, other):
    kept = await b.op(r.read())
    await b.op(other.read())
    assert kept


def test_a_process_that_has_received_an_end_holds_it(b):  # rules 2.4, 10.2
    """A process holds an end that it has received even if the process does not use the end. In an
    earlier version the report said that no known process held the end, and left the process out of
    the knot.
    """
    c, d, e = (b.weft.Channel(n) for n in "cde")
    with pytest.raises(Deadlock) as caught:
        b.run(
            b.process(_reads_and_holds)(c.reader(), e.writer()),
            b.process(send)(d.writer(), c.writer()),
            b.process(_keeps_received_end_and_reads)(d.reader(), e.reader()),
        )
    one, other = "main/_keeps_received_end_and_reads", "main/_reads_and_holds"
    assert caught.value.knot == [one, other]
    assert f"{other} waits for {one}\n" in caught.value.report + "\n"


async def _waits_then_reads(b, r, z):
    await b.op(r.read())
    await b.op(z.read())


@pytest.mark.parametrize("side", ["reader", "writer"])
def test_a_side_that_never_had_an_end_is_named(b, side):
    """Rule 10.2. The report says that the side never had an end. If an end had been kept open, the
    words would differ."""
    c = b.weft.Channel("lonely")
    p = b.process(send)(c.writer(), 1) if side == "reader" else b.process(receive)(c.reader())
    with pytest.raises(Deadlock) as caught:
        b.run(p)
    assert f"the other side of 'lonely' ('lonely' never had a {side} end)" in caught.value.report
    assert "nobody that is known" not in caught.value.report
    other = b.weft.Channel("other")
    kept = other.reader() if side == "reader" else other.writer()
    p = (
        b.process(send)(other.writer(), 1)
        if side == "reader"
        else b.process(receive)(other.reader())
    )
    with pytest.raises(Deadlock) as caught:
        b.run(p)
    assert "the other side of 'other' (nobody that is known)" in caught.value.report
    kept.retire()


def test_processes_clean_up_before_it_is_raised(b):  # rule 10.1
    c, log = b.weft.Channel("c"), []
    keep = c.writer()

    async def careful(b, r):
        try:
            await b.op(r.read())
        except Cancelled:
            log.append("cleaned up")
            raise

    with pytest.raises(Deadlock, match="'c'"):
        b.run(b.process(careful)(+c))
    assert log == ["cleaned up"]
    assert not keep.closed


def test_the_line_is_that_of_the_operation(b):  # rule 10.2
    c = b.weft.Channel("c")

    async def inner(b, r):
        return await b.op(r.read())  # here

    async def outer(b, r):
        return await inner(b, r)

    with pytest.raises(Deadlock) as caught:
        b.run(b.process(outer)(+c), b.process(forwards)(c.reader(), c.writer()))
    import inspect

    line = inspect.getsourcelines(inner)[1] + 1
    assert f"test_deadlock_and_bad_use.py:{line}" in caught.value.report


def test_selects_barriers_and_sleepers_in_the_report(b):  # rule 10.2
    c = b.weft.Channel("c")
    barrier = b.weft.Barrier(2)

    async def chooses(b, r):
        await b.op(b.weft.select(r, barrier))

    w = c.writer()
    with pytest.raises(Deadlock) as caught:
        b.run(b.process(chooses)(+c))
    assert caught.value.processes[0].operation == "select"
    assert caught.value.processes[0].places[0] == "'c'"
    assert not w.closed


def test_a_timer_is_outside(b):  # rule 10.3
    c = b.weft.Channel()

    async def late(b, w):
        await b.op(b.weft.sleep(0.01))
        await b.op(w.write(1))

    assert b.run(b.process(late)(-c), b.process(receive)(+c))[1] == [1]


def test_a_live_thread_that_holds_an_end_is_outside(b):  # rule 10.3
    c = b.weft.Channel()
    w, go = c.writer(), threading.Event()

    def foreign():
        go.wait()
        w.write("from outside")
        w.retire()

    async def tells(b):
        go.set()

    t = threading.Thread(target=foreign)
    t.start()
    assert b.run(b.process(tells)(), b.process(receive)(+c))[1] == ["from outside"]
    t.join()


def test_ten_thousand_processes_and_one_that_raises():  # an issue: nothing hangs or is lost
    from weft.coroutines import Channel, process, run

    cs = [Channel() for _ in range(10_000)]

    @process
    async def waits(r):
        await r.read()

    @process
    async def fails():
        raise ValueError("one of ten thousand")

    keep = [c.writer() for c in cs]
    with pytest.raises(ValueError, match="one of ten thousand"):
        run(*(waits(+c) for c in cs), fails())
    assert all(c.stats().waiting_readers == 0 and c.stats().readers == 0 for c in cs)
    assert len(keep) == 10_000


# --- rule 11 --------------------------------------------------------------------------------------


def test_closed_ends_say_how_they_were_closed(b):  # rules 2.2, 11.1
    c = b.weft.Channel("c")
    r, w = +c, -c
    r.retire()
    w.die()

    async def reads(b):
        with pytest.raises(
            BadUse,
            match=r"main/reads: read on channel 'c': this reader end is closed: it was retired; make another with",
        ):
            await b.op(r.read())
        with pytest.raises(BadUse, match="it was declared dead"):
            await b.op(w.write(1))

    b.run(b.process(reads)())
    assert r.closed and w.closed
    r.retire()  # retiring an end a second time does nothing


def test_reading_a_writer_and_writing_a_reader(b):  # rule 11.2
    c = b.weft.Channel("c")
    r, w = +c, -c
    with pytest.raises(BadUse, match="read on a writer end of channel 'c'"):
        w.read()
    with pytest.raises(BadUse, match="write on a reader end of channel 'c'"):
        r.write(1)
    with pytest.raises(TypeError, match="without arguments"):
        r(1)
    with pytest.raises(TypeError, match="the one value"):
        w()


def test_channels_check_their_parameters(b):  # rules 1.3, 11.2
    for how, match in [
        ({"capacity": -1}, "capacity must be from 0"),
        ({"capacity": 10**30}, r"capacity must be from 0 .* not 10{30}"),
        ({"capacity": 1, "overflow": "spill"}, "overflow must be"),
        ({"overflow": "drop_oldest"}, "give a capacity of at least 1"),
        ({"immunity": 256}, "immunity must be from 0 to 255"),
        ({"immunity": -(10**30)}, "immunity must be from 0 to 255"),
        ({"name": ""}, "the name is empty"),
    ]:
        with pytest.raises(BadUse, match=match):
            b.weft.Channel(**how)
    with pytest.raises(TypeError, match="must be a str"):
        b.weft.Channel(3)
    c = b.weft.Channel()
    for no_number in ("3", 1.5, None):
        with pytest.raises(TypeError, match="Channel: capacity must be a whole number, not"):
            b.weft.Channel(capacity=no_number)
        with pytest.raises(TypeError, match="the strength must be a whole number, not"):
            c.poison(no_number)
        with pytest.raises(TypeError, match="Barrier: parties must be a whole number, not"):
            b.weft.Barrier(no_number)
    with pytest.raises(BadUse, match="parties must be"):
        b.weft.Barrier(10**30)
    for strength in (0, 256, -1, 10**30):
        with pytest.raises(BadUse, match="strength must be from 1 to 255"):
            c.poison(strength)
    with pytest.raises(BadUse, match="parties must be"):
        b.weft.Barrier(-1)
    with pytest.raises(BadUse, match="longer than 0"):
        b.weft.Timer(0)
    with pytest.raises(TypeError, match="seconds must be a number"):
        b.weft.sleep("soon")
    with pytest.raises(BadUse, match="clock must be"):
        b.weft.run((), clock="wall")


def test_what_is_no_process(b):  # rule 11
    with pytest.raises(BadUse, match="is not a process: call a function that is decorated"):
        b.run(42)
    with pytest.raises(BadUse, match="iterable of processes"):
        b.run([1, 2])
    for no in (3, int):
        with pytest.raises(BadUse, match="decorate a function"):
            b.weft.process(no)

    def generator():
        yield 1

    with pytest.raises(BadUse, match="a process cannot be a generator"):
        b.weft.process(generator)
    with pytest.raises(BadUse, match="once is enough"):
        b.weft.process(b.weft.process(len))


def test_coroutines_outside_any_process():  # rule 11.2
    from weft import coroutines

    with pytest.raises(BadUse, match=r"start the network by weft\.coroutines\.run"):
        coroutines.Parallel()

    @coroutines.process
    async def runs():
        coroutines.run([])

    with pytest.raises(BadUse, match="would stop its scheduler"):
        coroutines.run(runs())


def test_blocking_forms_in_a_coroutine():  # rule 11.2
    from weft import coroutines, threads

    c = coroutines.Channel("c")

    @coroutines.process
    async def blocks(r):
        with pytest.raises(BadUse, match="use `async for`"):
            for _ in r:
                pass
        with pytest.raises(BadUse, match="use `async with`"), r.extended():
            pass
        with pytest.raises(BadUse, match=r"await that of weft\.coroutines"):
            threads.Parallel()

    coroutines.run(blocks(+c))


def test_awaiting_what_is_not_wefts():
    import asyncio

    from weft import coroutines

    @coroutines.process
    async def sleeps_in_asyncio():
        loop = asyncio.new_event_loop()
        future = loop.create_future()
        try:
            with pytest.raises(BadUse, match="host='asyncio'"):
                await future
        finally:
            loop.close()
        return "told"

    assert coroutines.run(sleeps_in_asyncio()) == "told"


def test_weft_in_a_running_asyncio_loop():
    import asyncio

    from weft import coroutines, threads

    @coroutines.process
    async def one():
        return 1

    @threads.process
    def two():
        return 2

    p, q = one(), two()

    async def main():
        with pytest.raises(BadUse, match="running asyncio loop"):
            coroutines.run(p)
        with pytest.raises(BadUse, match="running asyncio loop"):
            threads.Parallel(q)

    asyncio.run(main())
    assert coroutines.run(p, q) == [1, 2]


def test_backends_are_chosen(monkeypatch):
    import weft

    monkeypatch.setattr(weft, "_chosen", None)
    monkeypatch.delenv("WEFT_BACKEND", raising=False)
    from weft import coroutines, greenlets, threads

    assert weft.Parallel is coroutines.Parallel
    weft.use("threads")
    assert weft.Parallel is threads.Parallel
    weft.use("greenlets")
    assert weft.process is greenlets.process
    assert sorted(coroutines.__all__) == sorted(threads.__all__) == sorted(greenlets.__all__)
    assert set(weft.__all__) == {*coroutines.__all__, "use"} < set(dir(weft)) | {"use"}
    with pytest.raises(
        BadUse, match="no backend 'fibres': use 'coroutines', 'threads', 'greenlets' or 'processes'"
    ):
        weft.use("fibres")
    with pytest.raises(AttributeError, match="no attribute 'Chanel'"):
        weft.Chanel  # noqa: B018
    monkeypatch.setattr(weft, "_chosen", None)
    monkeypatch.setenv("WEFT_BACKEND", "fibres")
    with pytest.raises(BadUse, match="WEFT_BACKEND='fibres'"):
        weft.Parallel  # noqa: B018


def test_a_program_whose_name_is_no_utf8(tmp_path):  # rules 1.7, 10.2
    """For a Python in the C locale and without its UTF-8 mode, names with an umlaut are not
    UTF-8."""
    path = tmp_path / os.fsdecode(b"gr\xf6\xdfe.py")
    path.write_text(
        textwrap.dedent("""\
        from weft.coroutines import *

        @process
        async def waits(barrier, reader):
            await barrier.sync()
            await reader.read()

        c = Channel()
        print(c)
        try:
            run(waits(Barrier(1), c.reader()))
        except Deadlock as error:
            print(error)
        """)
    )
    result = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    name = "gr\\udcf6\\udcdfe.py"
    assert f"Channel {name}:8>" in result.stdout, result.stdout
    assert f"main/waits: read {name}:8 at {name}:6" in result.stdout, result.stdout

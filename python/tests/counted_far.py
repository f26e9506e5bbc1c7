"""The calls that counted.py makes beyond the three backends: asyncio's tasks and guests, native
components, ends at links to other programs, arrays, and values that are being sent.
counted_calls.py describes the form of the functions here.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import functools
import socket
import struct
from typing import Any

import os_process_targets as targets
from components import basics
from conftest import Backend
from counted_calls import BACKENDS, CALLS, Mark, call, gives, refused, stays

from weft import coroutines as co
from weft import threads as th
from weft._extension import native
from weft.errors import BadUse, Cancelled, ChannelEnd
from weft.processes import Hosts

CO = Backend("coroutines")


# --- asyncio ------------------------------------------------------------------------------------


def on_a_loop(main: Any) -> None:
    """Runs main() in a new loop. If asyncio has no memory to call a callback, it forgets the
    callback, and with it a task, which then never continues. In that case on_a_loop() raises
    MemoryError."""
    forgotten: list[BaseException] = []

    def forgot(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(error := context.get("exception"), MemoryError):
            forgotten.append(error)
            loop.stop()
        else:
            loop.default_exception_handler(context)

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        loop.set_exception_handler(forgot)
        try:
            loop.run_until_complete(main())
        except RuntimeError:  # the loop was stopped
            if not forgotten:
                raise
            raise MemoryError from None
        finally:
            for _ in range(0 if forgotten else 10):  # a forgotten task never ends
                for task in asyncio.all_tasks(loop):
                    task.cancel()
                loop.run_until_complete(asyncio.sleep(0))


@call
def tasks(fault: Any) -> None:
    values = [Mark() for _ in range(3)]

    async def reads(r: Any) -> Any:
        return [v async for v in r]

    async def writes(w: Any) -> None:
        for v in values:
            await w.write(v)
        w.retire()

    async def main() -> None:
        c = co.Channel("c")
        assert (await asyncio.gather(reads(+c), writes(-c)))[0] == values
        c = co.Channel("c", capacity=2)
        r, w = +c, -c
        await w.write_many([1, 2])
        many = await r.read_many(5)
        if len(many) < 2:  # read_many had no memory, and left the other values in the channel
            many += await r.read_many(5)
        assert many == [1, 2]
        await co.select(r, co.after(0), co.Output(w, 1).when(False))
        await co.sleep(0)
        await co.yield_()
        alternative = co.Alternative(co.Output(w, 5), co.after(1))
        await alternative.select()
        alternative.close()
        async with r.extended() as value:
            assert value == 5
        bar = co.Barrier(1)
        await bar.sync()
        waits = asyncio.ensure_future(co.select(r, co.after(99)))
        await asyncio.sleep(0)
        waits.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waits

    async def whole() -> None:
        with fault:
            await main()

    on_a_loop(whole)


@call
def one_read_of_a_task(fault: Any) -> None:
    """A read that fails has not taken the value (rule 1.1)."""
    value, got = Mark(), [None, None]

    async def main() -> None:
        c = co.Channel("c", capacity=1)
        r, w = +c, -c
        await w.write(value)
        try:
            with fault:
                got[0] = await r.read()
        except MemoryError:
            pass
        got[1] = (await co.select(r, co.skip(), mode="priority"))[1]

    on_a_loop(main)
    assert got in ([value, None], [None, value]), "the value was lost"


@call
def guests(fault: Any) -> None:
    async def main() -> None:
        c = co.Channel("c")

        async def write(b: Any, w: Any) -> None:
            for i in range(3):
                await w.write(i)

        async def read(b: Any, r: Any) -> Any:
            return [v async for v in r]

        with fault:
            got = await co.run_async(CO.process(write)(-c), CO.process(read)(+c))
            assert got[1] == [0, 1, 2]
            with contextlib.suppress(TypeError, BadUse):
                await co.run_async(1)

    on_a_loop(main)


@call
def a_guest_cancelled(fault: Any) -> None:
    async def main() -> None:
        c = co.Channel("c")
        keep = -c
        with fault:
            network = asyncio.ensure_future(co.run_async(CO.process(stays)(+c)))
            for _ in range(3):
                await asyncio.sleep(0)
            network.cancel()
            with contextlib.suppress(asyncio.CancelledError, Cancelled):
                await network
        del keep

    on_a_loop(main)


# --- native components --------------------------------------------------------------------------


def component(fault: Any, b: Any) -> None:
    made = basics()

    async def write_all(b: Any, w: Any, values: Any) -> None:
        for v in values:
            await b.op(w.write(v))

    async def all_of(b: Any, r: Any) -> Any:
        got = []
        with contextlib.suppress(ChannelEnd):
            while True:
                got.append(await b.op(r.read()))
        return got

    def through(process: Any, values: Any) -> Any:
        a, c = b.weft.Channel("a"), b.weft.Channel("c", capacity=1)
        return b.run(b.process(write_all)(-a, values), process(+a, -c), b.process(all_of)(+c))[2]

    with fault:
        assert through(made.scale, [1.0, 2.0]) == [2.0, 4.0]
        for name, values in (
            ("ints", [1, 2**62]),
            ("texts", ["", "größer"]),
            ("blobs", [b"", b"abc"]),
            ("lists", [[], [1.0]]),
            ("nested", [[["a"]]]),
            ("tuples", [(1, "a", True)]),
            ("dicts", [{"a": [1.0]}]),
            ("maybes", [None, 7]),
        ):
            assert through(getattr(made, name), values) == values
        out = b.weft.Channel("out", capacity=4)
        r = +out
        b.run(made.count_to(-out, 3))
        assert b.run(b.process(all_of)(r)) == [0, 1, 2]


def component_refused(fault: Any, b: Any) -> None:
    made = basics()
    c, e = b.weft.Channel("c"), b.weft.Channel("e", capacity=9)
    r, w, out, keep = +c, -c, -e, +e
    with fault:
        refused(lambda: made.scale())
        refused(lambda: made.scale(1, 2))
        refused(lambda: made.scale(r, w, 2.0, 3.0))
        refused(lambda: made.scale(r, w, unknown=1))
        refused(lambda: made.count_to(out, "a"))
        refused(lambda: made.tells(out, 1, [1.0], True))
        refused(lambda: made.tells(out, "a", ["a"], True))
        repr(made), repr(made.scale), made.processes
        with contextlib.suppress(Exception):
            b.run(made.throws_a_number())
        d = b.weft.Channel("d", capacity=2)
        r, w = +d, -d
        with contextlib.suppress(Exception):
            b.run(b.process(puts)(w, "no number"), made.fails(r, 1))
    del keep


async def puts(b: Any, w: Any, value: Any) -> None:
    await b.op(w.write(value))


for _name in BACKENDS[:2]:
    _b = Backend(_name)
    CALLS[f"component[{_name}]"] = lambda fault, b=_b: component(fault, b)
    CALLS[f"component_refused[{_name}]"] = lambda fault, b=_b: component_refused(fault, b)


# --- ends at links ------------------------------------------------------------------------------


@functools.cache
def host() -> Any:
    """Yields another OS process, which holds the ends on the other side."""
    hosts = Hosts(1)
    atexit.register(hosts.close)
    return hosts[0]


@th.process
def th_writes(w: Any, values: Any) -> None:
    for v in values:
        w.write(v)


@th.process
def th_reads(r: Any) -> list[Any]:
    return list(r)


@th.process
def th_chooses(r: Any) -> Any:
    got = [th.select(r, th.after(99))[1]]
    with r.extended() as value:
        got.append(value)
    got += r.read_many(1)
    return got


@th.process
def th_offers(w: Any) -> None:
    th.select(th.Output(w, 1), th.after(99))
    w.write_many([2, 3])


VALUES = [1, -(2**70), 1.5, "größer", b"b", None, True, (1, [2, {"a": {3}}])]


@call
def far_reads(fault: Any) -> None:
    away_process, th_process = targets.write_all.on(host()), th_reads
    with fault:
        c = th.Channel("c")
        assert th.run(away_process(-c, VALUES), th_process(+c))[1] == VALUES


@call
def far_writes(fault: Any) -> None:
    away_process = targets.total.on(host())
    with fault:
        c = th.Channel("c")
        assert th.run(away_process(+c), th_writes(-c, range(4)))[0] == 6


@call
def far_choices(fault: Any) -> None:
    away_process = targets.double.on(host())
    with fault:
        c, d = th.Channel("c"), th.Channel("d")
        assert th.run(away_process(+c, -d), th_offers(-c), th_chooses(+d))[2] == [2, 4, 6]


@call
def far_failures(fault: Any) -> None:
    process = targets.fail.on(host())
    with fault:
        refused(lambda: th.run(process(KeyError("as asked"))), KeyError)
        refused(lambda: th.run(process(targets.Unsendable())))


@call
def far_ends(fault: Any) -> None:
    away_process = targets.total.on(host())
    with fault:
        for end in (lambda e: e.poison(), lambda e: e.retire()):
            c = th.Channel("c")
            r, w = +c, -c
            end(w)
            with contextlib.suppress(ChannelEnd):
                th.run(away_process(r))


@call
def links(fault: Any) -> None:
    with fault:
        ours, theirs = socket.socketpair()
        link = native._Link(ours.detach(), "one")
        c = th.Channel("c")
        link.give(c.reader(), "c")
        refused(lambda: link.give(1, "x"))
        refused(lambda: link.give(+c, 1))
        refused(lambda: link.take(1))
        refused(lambda: native._Link("a", "b"))
        refused(lambda: native._Link())
        link.queued(), link.refused()
        theirs.close()
        link.close()


@call
def feeds(fault: Any) -> None:
    """Tests a link whose bytes Python carries. The bytes are nonsense."""
    with fault:
        link = native._Link(-1, "whole", False, False, 0, 0, 0, 1)
        feed = link.feed()
        c = th.Channel("c")
        link.give(c.reader(), "end")
        while feed.output(300):
            pass
        feed.over, feed.rest()
        feed.input(struct.pack("<I", 64) + bytes(64))
        feed.turn()
        refused(lambda: feed.input(1))
        refused(lambda: feed.output("a"))
        feed.lost("as asked")
        link.close("it is over")


@call
def lines(fault: Any) -> None:
    """Tests the serial line of a board, on which only nonsense arrives."""
    with fault:
        line = native._Line(1, 4, 64, 10, 100, 50)
        line.queue(b"abc")
        line.output(0, False), line.output(20, True)
        line.input(30, bytes(range(64)))
        line.due(), line.passed(500), line.hurry(510), line.hold(True)
        (line.linked, line.settled, line.owes, line.lost).count(None)
        refused(lambda: native._Line())
        refused(lambda: line.queue(1))
        refused(lambda: line.input("a", b""))


@call
def values_on_their_way(fault: Any) -> None:
    with fault:
        shared = native.Shared(array.array("d", [1.0, 2.0]))
        shared.shape, shared.format, shared.nbytes, memoryview(shared).tolist(), repr(shared)
        memoryview(native._shared_to_change(shared))[0] = 1
        refused(lambda: native._shared_to_change(1))
        refused(lambda: native.Shared(1))
        refused(lambda: native.Shared())
        for packed in (b"\x83\x01\x02\x03", b"\xff", b"\x9f\x01", b"", b"\xa1\x61a\xf9\x00\x00"):
            native._cbor_fault(packed)
        refused(lambda: native._cbor_fault(1))
        refused(lambda: native._unpacked())


# --- functions that Weft's own modules call -----------------------------------------------------


@call
def looks(fault: Any) -> None:
    """Asks the questions that observers ask about a running network."""

    async def asks(b: Any, p: Any) -> None:
        native._facts()
        native._network()
        native._network(1)
        native._moment()
        native._running_steps()
        native._ancestors(native.current_process())
        native._where()
        native._where(native.current_process())
        native._lent()
        native._rounds_news()
        native._foreign_threads()
        native._going_on([])
        native._smallest_knot([[1], [0]])
        refused(lambda: native._where(5))
        refused(lambda: native._ancestors(5))

    c = co.Channel("c")
    keep, r = -c, +c
    with fault:
        p = CO.process(gives)(1)
        CO.run(CO.process(asks)(p), p)
    del keep, r

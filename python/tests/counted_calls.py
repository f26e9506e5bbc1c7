"""The calls that counted.py makes: every public call of the package, each in a function that leaves
nothing behind.

A function here takes `fault`, a context manager. The references of the block of `with fault:` are
counted, and an allocation in it may be made to fail: MemoryError may be raised anywhere in the
block and at the end of the block. The code outside the block prepares the call, and checks
afterwards that no value is lost or doubled, and that the objects still work. A function that has
nothing to prepare or check has all its code in the block.

A function that takes `b` is called for each backend (conftest.py says how one function serves them
all).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any

from conftest import Backend

from weft import coroutines as co
from weft import observe
from weft.errors import BadUse, ChannelEnd, Deadlock, NoResult, Retired

CALLS: dict[str, Callable[[Any], None]] = {}
BACKENDS = ("coroutines", "threads", "greenlets")


def call(function: Callable[[Any], None]) -> Callable[[Any], None]:
    CALLS[function.__name__] = function
    return function


def on_each(function: Callable[[Any, Backend], None]) -> Callable[[Any, Backend], None]:
    """Adds a call of this function for each backend."""
    for name in BACKENDS:
        b = Backend(name)
        CALLS[f"{function.__name__}[{name}]"] = lambda fault, b=b: function(fault, b)
    return function


def refused(call: Callable[[], Any], *errors: type[BaseException]) -> None:
    """Checks that a wrong call raises one of these errors."""
    expected = errors or (TypeError, ValueError, BadUse)
    try:
        call()
    except expected:
        return
    raise AssertionError("a wrong call was obeyed")


class Mark:
    """A value that is unlike all others."""


# --- channels and ends --------------------------------------------------------------------------


@call
def channels(fault: Any) -> None:
    with fault:
        for c in (
            co.Channel(),
            co.Channel("c"),
            co.Channel("c", capacity=3),
            co.Channel("c", capacity=2, overflow="drop_oldest", immunity=2),
            co.Channel("c", overflow="unbounded", type=int),
        ):
            repr(c), c.name, c.stats(), co.statistics(c)


@call
def channels_refused(fault: Any) -> None:
    with fault:
        refused(lambda: co.Channel(1))
        refused(lambda: co.Channel("c", capacity=-1))
        refused(lambda: co.Channel("c", capacity="a"))
        refused(lambda: co.Channel("c", overflow="x"))
        refused(lambda: co.Channel("c", overflow="drop_oldest"))
        refused(lambda: co.Channel("c", immunity=-1))
        refused(lambda: co.Channel("c", unknown=1))
        refused(lambda: co.Channel("a", "b", "c"))
        refused(lambda: co.Channel() * -1)
        refused(lambda: co.Channel() * "a")
        refused(lambda: co.Channel().poison(0))
        refused(lambda: co.Channel().poison("a"))
        refused(lambda: co.statistics(1))
        refused(lambda: type(co.Channel().reader())())
        refused(lambda: type(co.Channel().writer())())


@call
def ends(fault: Any) -> None:
    with fault:
        c = co.Channel("c", capacity=1)
        r, w = c.reader(), +c
        repr(r), repr(w), hash(r), r == w, r.channel, r.closed, iter([+c, -c])
        array = co.Channel("a") * 2
        array.readers(), array.writers(), +array, -array, repr(array)
        array.poison()
        r.retire()
        w.retire()


@call
def ends_ended(fault: Any) -> None:
    with fault:
        c = co.Channel("c", capacity=1)
        both = +c, -c
        both[0].poison(2)
        both[1].poison()
        co.poison(c, +co.Channel(), strength=2)
        co.retire(+co.Channel(), -co.Channel())
        d = co.Channel()
        both = -d, +d
        both[0].die()
        both[1].die()
        refused(lambda: (+co.Channel()).poison(999))
        refused(lambda: (-co.Channel()).poison("a"))
        refused(lambda: co.poison(1))
        refused(lambda: co.retire(1))


# --- communication ------------------------------------------------------------------------------


async def writes(b: Any, w: Any, values: Any) -> None:
    for v in values:
        await b.op(w.write(v))


async def reads(b: Any, r: Any) -> Any:
    return [v async for v in b.each(r)]


@on_each
def rendezvous(fault: Any, b: Any) -> None:
    values = [Mark() for _ in range(3)]
    with fault:
        c = b.weft.Channel("c")
        got = b.run(b.process(writes)(-c, values), b.process(reads)(+c))
        assert got[1] == values


@on_each
def buffers(fault: Any, b: Any) -> None:
    values = [Mark() for _ in range(5)]
    with fault:
        for how in ({"capacity": 2}, {"overflow": "unbounded"}):
            c = b.weft.Channel("c", **how)
            assert b.run(b.process(writes)(-c, values), b.process(reads)(+c))[1] == values
        for how in ("drop_oldest", "drop_newest"):
            c = b.weft.Channel("c", capacity=2, overflow=how)
            r = +c
            b.run(b.process(writes)(-c, values))
            assert len(b.run(b.process(reads)(r))) == 2


@on_each
def one_write(fault: Any, b: Any) -> None:
    """A write that fails has not happened; a write that returns has (rule 1.1)."""
    value, values = Mark(), []

    async def body(b: Any, w: Any, r: Any) -> Any:
        try:
            with fault:
                written = w.write(value)
                _ = written if b.blocking else await written
                values.append(True)
        except MemoryError:
            pass
        return await b.op(b.weft.select(r, b.weft.skip(), mode="priority"))

    c = b.weft.Channel("c", capacity=1)
    got = b.run(b.process(body)(-c, +c))
    assert got == ((0, value) if values else got), "a write that returned has not happened"
    assert got in ((0, value), (1, None))


def takes_or_leaves(
    fault: Any, b: Any, take: Callable[[Any], Any], value_of: Callable[[Any], Any]
) -> None:
    """Checks that the value is still in the channel after `take(reader)` has failed. `value_of`
    finds the value in the result of `take`."""
    value, got = Mark(), [None, None]

    async def body(b: Any, w: Any, r: Any) -> None:
        await b.op(w.write(value))
        try:
            with fault:
                result = take(r)
                got[0] = value_of(result if b.blocking else await result)
        except MemoryError:
            pass
        got[1] = (await b.op(b.weft.select(r, b.weft.skip(), mode="priority")))[1]

    c = b.weft.Channel("c", capacity=1)
    b.run(b.process(body)(-c, +c))
    assert got in ([value, None], [None, value]), "the value was lost"


@on_each
def one_read(fault: Any, b: Any) -> None:
    """A read that fails has not taken the value (rule 1.1)."""
    takes_or_leaves(fault, b, lambda r: r.read(), lambda value: value)


@on_each
def many(fault: Any, b: Any) -> None:
    values = [Mark() for _ in range(6)]

    async def write(b: Any, w: Any) -> None:
        await b.op(w.write_many(values[:4]))
        await b.op(w.write_many(iter(values[4:])))

    async def read(b: Any, r: Any) -> Any:
        got: list[Any] = []
        with contextlib.suppress(Retired):
            while True:
                got += await b.op(r.read_many(4))
        return got

    async def refuses(b: Any, w: Any, r: Any) -> None:
        refused(lambda: w.write_many(1))
        refused(lambda: r.read_many(0))
        refused(lambda: r.read_many("a"))
        refused(lambda: w.write())
        refused(lambda: w.write(1, 2))
        refused(lambda: r.read(1))

    with fault:
        for capacity in (0, 4):
            c = b.weft.Channel("c", capacity=capacity)
            assert b.run(b.process(write)(-c), b.process(read)(+c))[1] == values
        c = b.weft.Channel("c")
        b.run(b.process(refuses)(-c, +c))


@on_each
def extended(fault: Any, b: Any) -> None:
    async def read(b: Any, r: Any) -> Any:
        got = []
        for _ in range(3):
            block = r.extended()
            value = block.__enter__() if b.blocking else await block.__aenter__()
            try:
                got.append(value)
            finally:
                try:
                    await b.leave(block)
                except MemoryError:
                    # If the block has not been left yet, its writer would wait forever.
                    await b.leave(block)
        refused(lambda: r.extended(1))
        refused(lambda: r.extended(redeliver=True))
        refused(lambda: r.extended(unknown=1))
        return got

    with fault:
        c = b.weft.Channel("c")
        got = b.run(b.process(writes)(-c, [1, 2, 3]), b.process(read)(+c))
        assert got[1] == [1, 2, 3]


@on_each
def ended_channels(fault: Any, b: Any) -> None:
    async def all_ways(b: Any, r: Any, w: Any) -> None:
        for operation in (
            r.read,
            lambda: r.read_many(2),
            lambda: b.weft.select(r),
            lambda: b.weft.select(b.weft.Input(r, ended="raise")),
        ):
            with contextlib.suppress(ChannelEnd):
                await b.op(operation())
        for operation in (
            lambda: w.write(1),
            lambda: w.write_many([1]),
            lambda: b.weft.select(b.weft.Output(w, 1)),
        ):
            with contextlib.suppress(ChannelEnd):
                await b.op(operation())

    with fault:
        for end in (lambda e: e.poison(), lambda e: e.retire(), lambda e: e.die()):
            c, d = b.weft.Channel("c"), b.weft.Channel("d")
            r, w = +c, -d
            end(-c)
            end(+d)
            b.run(b.process(all_ways)(r, w))


# --- choice, time, barriers ---------------------------------------------------------------------


@on_each
def select(fault: Any, b: Any) -> None:
    async def chooses(b: Any, r: Any, w: Any, bar: Any) -> Any:
        x, got = b.weft, []
        for mode in ("fair", "priority", "random"):
            got.append(await b.op(x.select(r, x.after(9), mode=mode)))
        await b.op(x.select(x.Output(w, 1), x.skip(), mode="priority"))
        await b.op(x.select(x.Output(w, make=list).when(1), x.skip().when(0), r))
        await b.op(x.select(x.Input(r).when(True), x.at(0)))
        await b.op(x.select(bar, x.Timer(5)))
        refused(lambda: x.select(1))
        refused(lambda: x.select())
        refused(lambda: x.select(r, mode="x"))
        refused(lambda: x.select(r, ended="x"))
        refused(lambda: x.Output(w))
        refused(lambda: x.Output(r, 1))
        refused(lambda: x.Output(w, 1, make=list))
        refused(lambda: x.Input(w))
        refused(lambda: x.Input(r, ended="x"))
        refused(lambda: x.after("a"))
        refused(lambda: x.at(None))
        refused(lambda: x.Timer(0))
        return got

    with fault:
        c, d = b.weft.Channel("c"), b.weft.Channel("d", capacity=8)
        keep = +d
        b.run(b.process(writes)(-c, range(4)), b.process(chooses)(+c, -d, b.weft.Barrier(1)))
        del keep


@on_each
def one_select(fault: Any, b: Any) -> None:
    """A choice that fails has taken no value (rule 5.1)."""
    takes_or_leaves(fault, b, lambda r: b.weft.select(b.weft.after(99), r), lambda found: found[1])


@on_each
def one_output(fault: Any, b: Any) -> None:
    """A choice that fails has written nothing; a choice that returns has written the value of its
    guard.
    """
    value, values = Mark(), []

    async def body(b: Any, w: Any, r: Any) -> Any:
        try:
            with fault:
                chosen = b.weft.select(b.weft.Output(w, make=lambda: value), b.weft.after(99))
                _ = chosen if b.blocking else await chosen
                values.append(True)
        except MemoryError:
            pass
        return await b.op(b.weft.select(r, b.weft.skip(), mode="priority"))

    c = b.weft.Channel("c", capacity=1)
    got = b.run(b.process(body)(-c, +c))
    assert got == (0, value) or not values
    assert got in ((0, value), (1, None))


@on_each
def alternative(fault: Any, b: Any) -> None:
    async def chooses(b: Any, r: Any, w: Any) -> None:
        x = b.weft
        a = x.Alternative(r, x.Output(w, 1), x.after(9), mode="priority")
        with a:
            a.enable(1, False)
            for _ in range(2):
                await b.op(a.select())
            a.enable(1, True)
            a.enable(0, False)
            await b.op(a.select())
            refused(lambda: a.enable(9, True), IndexError, ValueError, BadUse)
            refused(lambda: a.enable("a", True))
        a.close()
        refused(lambda: x.Alternative(1))
        refused(lambda: x.Alternative(r, mode="x"))

    with fault:
        c, d = b.weft.Channel("c"), b.weft.Channel("d", capacity=4)
        keep = +d
        b.run(b.process(writes)(-c, [1, 2]), b.process(chooses)(+c, -d))
        del keep


@on_each
def barriers(fault: Any, b: Any) -> None:
    async def party(b: Any, bar: Any) -> None:
        await b.op(bar.sync())
        await b.op(b.weft.select(bar, b.weft.after(99)))
        bar.resign()

    async def refuses(b: Any, bar: Any) -> None:
        refused(lambda: b.weft.Barrier(-1))
        refused(lambda: b.weft.Barrier("a"))
        refused(lambda: b.weft.Barrier())
        bar.enrol()
        bar.parties, repr(bar), bar.when(1)
        bar.resign()

    with fault:
        bar = b.weft.Barrier(3)
        b.run([b.process(party)(bar) for _ in range(3)])
        b.run(b.process(refuses)(b.weft.Barrier(1)))


@on_each
def time(fault: Any, b: Any) -> None:
    async def waits(b: Any) -> None:
        x = b.weft
        await b.op(x.sleep(0.5))
        await b.op(x.yield_()) if b.name != "threads" else x.yield_()
        await b.op(x.Timer(2).tick())
        x.now(), x.Timer(1).period, repr(x.Timer(1)), x.current_process()
        refused(lambda: x.sleep("a"))
        refused(lambda: x.sleep(float("nan")))

    with fault:
        b.run(b.process(waits)(), clock="virtual")


@on_each
def limits(fault: Any, b: Any) -> None:
    async def limited(b: Any, r: Any) -> None:
        x = b.weft
        for limit in (x.timeout(1), x.move_on_after(1), x.deadline(x.now() + 1)):
            await b.enter(limit)
            limit.reschedule(5)
            error: Any = None
            try:
                await b.op(r.read())
            except BaseException as e:
                error = e
            try:
                await b.leave(limit, error)
            except TimeoutError:
                pass
            finally:
                short = isinstance(error, MemoryError)
                error = None
            if short:
                raise MemoryError
            assert limit.expired
        refused(lambda: x.timeout("a"))

    with fault:
        c = b.weft.Channel("c")
        keep = -c
        b.run(b.process(limited)(+c), clock="virtual")
        del keep


# --- processes ----------------------------------------------------------------------------------


async def gives(b: Any, what: Any) -> Any:
    return what


async def fails(b: Any) -> None:
    raise ValueError("as asked")


async def stays(b: Any, r: Any) -> None:
    await b.op(r.read())


@on_each
def composition(fault: Any, b: Any) -> None:
    async def composes(b: Any) -> None:
        x, give = b.weft, b.process(gives)
        assert await b.op(x.Parallel(give(1), [give(2)])) == [1, 2]
        assert await b.op(x.Sequence(give(1), give(2))) == [1, 2]
        x.Spawn(give(3))
        p = give(4).named("p")
        repr(p), p.name, p.path, p.done, p.id, repr(give), p == p, hash(p)
        refused(lambda: p.result)
        assert await b.op(x.Parallel(p)) == [4]
        assert p.result == 4
        assert p.done
        for wrong in (p, 1):
            with contextlib.suppress(BadUse, TypeError):
                await b.op(x.Parallel(wrong))
        refused(lambda: give(1) * -1)
        refused(lambda: give(1).named(1))
        [q._never_run() for q in give(1) * 2]
        refused(lambda: x.run(1))

    with fault:
        b.run(b.process(composes)())
        b.run(b.process(composes)() * 2)
        refused(lambda: b.run())
        refused(lambda: b.run(1))
        refused(lambda: b.run(b.process(gives)(1), clock="x"))
        refused(lambda: b.weft.process(1))


@on_each
def failures(fault: Any, b: Any) -> None:
    async def catches(b: Any, r: Any) -> None:
        for block in (b.process(fails)(), b.process(stays)(r)), (b.process(fails)(),) * 1:
            try:
                await b.op(b.weft.Parallel(*block))
            except ValueError:
                pass
            except BaseException as group:
                assert group.exceptions

    with fault:
        c = b.weft.Channel("c")
        keep = -c
        b.run(b.process(catches)(+c))
        refused(lambda: b.run(b.process(fails)()), ValueError)
        del keep


@on_each
def groups(fault: Any, b: Any) -> None:
    async def leads(b: Any, r: Any) -> None:
        g = b.weft.Group()
        await b.enter(g)
        p = g.start(b.process(gives)(1))
        q = g.start(b.process(stays)(r))
        refused(lambda: g.start(1))
        refused(lambda: g.start(p))
        q.cancel()
        await b.leave(g)
        h = b.weft.Group()
        await b.enter(h)
        h.start(b.process(stays)(r))
        h.cancel()
        await b.leave(h)

    with fault:
        c = b.weft.Channel("c")
        keep = -c
        b.run(b.process(leads)(+c))
        refused(lambda: b.weft.Group(clock="x"))
        del keep


@on_each
def process_ends(fault: Any, b: Any) -> None:
    async def awaits(b: Any, r: Any) -> None:
        g = b.weft.Group()
        await b.enter(g)
        p, q = g.start(b.process(gives)(1)), g.start(b.process(stays)(r))
        index, ended = await b.op(b.weft.select(p.ended(), b.weft.after(99)))
        assert (index, ended.result) == (0, 1)
        q.cancel()
        (_, ended) = await b.op(b.weft.select(q.ended()))
        repr(ended)
        await b.leave(g)

    with fault:
        c = b.weft.Channel("c")
        keep = -c
        b.run(b.process(awaits)(+c))
        del keep


@on_each
def descriptors(fault: Any, b: Any) -> None:
    async def waits(b: Any, file: Any, r: Any) -> None:
        readable, writable = b.weft.readable, b.weft.writable
        assert await b.op(b.weft.select(readable(file), r, b.weft.after(99))) == (0, None)
        assert await b.op(writable(file.fileno()).wait()) is None
        refused(lambda: readable("file"))
        refused(lambda: readable(-1))
        refused(lambda: writable())

    with fault:
        here, there = socket.socketpair()
        with here, there:
            there.send(b"x")
            c = b.weft.Channel("c")
            keep = -c
            b.run(b.process(waits)(here, +c))
            del keep


@on_each
def streams(fault: Any, b: Any) -> None:
    async def serves(b: Any, door: Any) -> None:
        with await b.op(door.accept()) as s:
            repr(s)
            while data := await b.op(s.read_some(100)):
                await b.op(s.write_all(data))
            refused(lambda: s.read_some(0))
            refused(lambda: s.write_all("text"))
        refused(s.read_some, OSError)

    async def asks(b: Any, door: Any) -> None:
        refused(lambda: b.weft.connect("localhost:1"))
        refused(lambda: b.weft.listen(1))
        with await b.op(b.weft.connect(door.address)) as s:
            assert (s.local, s.peer) > ("", "")
            await b.op(s.write_some(b"question"))
            assert s.sent == 8
            assert await b.op(s.read_some()) == b"question"
            s.shutdown_write()
            assert await b.op(s.read_some()) == b""

    with fault, b.weft.listen(("127.0.0.1", 0)) as door:
        b.run(b.process(serves)(door), b.process(asks)(door))
        b.weft.Stream.pair()[0].close()


@on_each
def no_result(fault: Any, b: Any) -> None:
    with fault:
        c = b.weft.Channel("c")
        r = +c
        (-c).retire()
        none = b.run(b.process(stays)(r), b.process(gives)(1))[0]
        if none is None:  # there was no memory for the reason
            return
        assert isinstance(none, NoResult)
        repr(none), str(none), none.process, none.how, none.where, none.reason
        refused(lambda: none.unknown, NoResult, AttributeError)
        bool(none)


@on_each
def deadlock(fault: Any, b: Any) -> None:
    with fault:
        c, d = b.weft.Channel("c"), b.weft.Channel("d")
        try:
            b.run(b.process(crossed)(-c, +d), b.process(crossed)(-d, +c))
        except Deadlock as e:
            assert e.processes, str(e)


async def crossed(b: Any, w: Any, r: Any) -> None:
    await b.op(w.write(1))
    await b.op(r.read())


@on_each
def io(fault: Any, b: Any) -> None:
    def parsed(text: str) -> int:
        return int(text)

    async def calls(b: Any) -> None:
        assert await b.op(b.weft.io(parsed)("3")) == 3
        with contextlib.suppress(ValueError):
            await b.op(b.weft.io(parsed)("a"))
        refused(lambda: b.weft.io(1))

    with fault:
        b.run(b.process(calls)())


@on_each
def observers(fault: Any, b: Any) -> None:
    values = [1, 2]
    with fault:
        with observe.measuring() as m:
            c = b.weft.Channel("c")
            b.run(b.process(writes)(-c, values), b.process(reads)(+c))
            m.rows(), m.json(), m["c"]
        observe.debug(True)
        try:
            c = b.weft.Channel("c", capacity=1)
            b.run(b.process(writes)(-c, values), b.process(reads)(+c))
        finally:
            observe.debug(False)
        with observe.watching_deadlocks("warn"):
            c = b.weft.Channel("c")
            b.run(b.process(writes)(-c, values), b.process(reads)(+c))
        observe.deadlocks()


@on_each
def misuse(fault: Any, b: Any) -> None:
    """Operations that are not awaited, awaited twice, or begun outside of a process."""

    async def abuses(b: Any, w: Any) -> None:
        if not b.blocking:
            operation = w.write(1)
            operation.close()
            refused(lambda: operation.send(None), RuntimeError, BadUse)
            again = w.write(2)
            await again
            refused(lambda: again.send(None), RuntimeError, BadUse)
            refused(lambda: w.write(3).throw(KeyError("k")), KeyError)
            refused(lambda: b.weft.sleep(1).throw(KeyError), KeyError)
            refused(lambda: b.weft.select(b.weft.skip()).throw(KeyError), KeyError)
            refused(lambda: w.write(3).throw(5))

    with fault:
        c = b.weft.Channel("c", capacity=5)
        keep = +c
        b.run(b.process(abuses)(-c))
        token = b.weft.Outside()
        token.due, token.closed, repr(token)
        with token:
            pass
        token.close()
        f = b.process(gives)
        f.on("threads"), f.__get__(None, int), f.__get__(5, int)
        refused(lambda: f.on("x"))
        refused(lambda: f.on(1))
        del keep

"""Rule 11.2: using an operation in place of its result, without awaiting it, is BadUse, and the
message advises `await`."""

from __future__ import annotations

import asyncio
import operator
import warnings

import pytest

from weft import coroutines as co
from weft.coroutines import BadUse, Channel, Parallel, io, process, run, select

pytestmark = pytest.mark.filterwarnings("ignore:.*never awaited")


@process
async def one():
    return 1


@io
def called():
    return 1, 2


def kinds():
    a, b = Channel("a"), Channel("b", capacity=9)
    r, w = a.reader(), b.writer()
    return {
        "read": r.read,
        "write": lambda: w.write(1),
        "sync": co.Barrier(2).sync,
        "sleep": lambda: co.sleep(0),
        "yield": co.yield_,
        "select": lambda: select(r, co.skip()),
        "Alternative": co.Alternative(r, co.skip()).select,
        "tick": co.Timer(1).tick if hasattr(co.Timer, "tick") else lambda: select(r, co.skip()),
        "read_many": lambda: b.reader().read_many(2),
        "write_many": lambda: w.write_many([1, 2]),
        "Parallel": lambda: Parallel(one(), one()),
        "io": called,
    }


def pairs(op):
    a, b = op
    return a, b


USES = {
    "unpacked": pairs,
    "iterated": list,
    "iter": iter,
    "contained": lambda op: 3 in op,
    "starred": lambda op: print(*op),
    "compared": lambda op: op == 3,
    "compared to": lambda op: op != 3,
    "ordered": lambda op: op > 3,
    "added": lambda op: op + 1,
    "added to": lambda op: 1 + op,
    "added up": lambda op: operator.iadd(1, op),
    "multiplied": lambda op: 2 * op,
    "power": lambda op: op**2,
    "negated": operator.neg,
    "asked": bool,
    "not": operator.not_,
    "an index": lambda op: [1, 2][op],
    "indexed": lambda op: op[0],
    "assigned": lambda op: operator.setitem(op, 0, 1),
    "int": int,
    "float": float,
    "len": len,
}


@pytest.mark.parametrize("use", USES)
def test_an_operation_that_is_used_as_its_result(use):  # rule 11.2
    @process
    async def main():
        for kind, make in kinds().items():
            with pytest.raises(BadUse, match=r"was not awaited.*write `await` before it"):
                print(kind, USES[use](make()))

    run(main())


def test_in_a_task_of_asyncio():  # rule 11.2
    async def main():
        r = Channel("a").reader()
        with pytest.raises(BadUse, match="read was not awaited"):
            pairs(r.read())
        with pytest.raises(BadUse, match="select was not awaited"):
            pairs(select(r, co.skip()))

    asyncio.run(main())


class Wraps:
    """Awaits an operation by `__await__`, as libraries do."""

    def __init__(self, op):
        self.op = op

    def __await__(self):
        return (yield from self.op.__await__())


def test_what_awaits_otherwise_is_not_refused():
    """Other ways of awaiting are allowed: by `__await__`, with awaitables in sets, and in lists
    that are searched.
    """

    @process
    async def main():
        c, d = Channel("c", capacity=4), Channel("d", capacity=4)
        r, w = c.reader(), c.writer()
        for value in range(4):
            await Wraps(w.write(value))
        assert await Wraps(r.read()) == 0
        assert await Wraps(r.read_many(1)) == [1]
        assert await Wraps(select(r, d.reader())) == (0, 2)
        assert await Wraps(Parallel(one(), one())) == [1, 1]
        assert await Wraps(called()) == (1, 2)
        ops = [r.read(), co.yield_()]
        assert len(set(ops)) == 2 and ops.index(ops[1]) == 1 and ops[0] in ops
        assert ops[0] != ops[1] and ops[0] == ops[0]
        assert await ops[0] == 3

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(main())


def test_neither_a_channel_nor_a_writer_is_iterated():  # rule 11.2
    c = Channel("c")
    for use in (iter, list, lambda x: 3 in x, aiter):
        with pytest.raises(
            BadUse, match=r"iteration over channel 'c' itself: .*channel.reader\(\)"
        ):
            use(c)

    w = c.writer()
    for use in (iter, list, lambda x: 3 in x, aiter):
        with pytest.raises(
            BadUse, match=r"read on a writer end of channel 'c': .*channel.reader\(\)"
        ):
            use(w)

    @process
    async def main():
        with pytest.raises(BadUse, match="iteration over channel 'c' itself"):
            async for _ in c:
                pass

    run(main())

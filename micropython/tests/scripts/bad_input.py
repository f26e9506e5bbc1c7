# Bad input gives clear errors, nothing is lost silently, and the network can still be stopped.
import builtins

from weft import _core
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Group,
    NoRoom,
    Parallel,
    Poisoned,
    Retired,
    process,
    run,
    select,
    sleep_ms,
)
from weft.isr import Ring


def refused(what, *kinds):
    try:
        what()
    except kinds or (BadUse,) as e:
        print(type(e).__name__, e)
    else:
        print("not refused")


@process
async def reads(r):
    return await r.read()


async def nothing():
    pass


class Full:
    """Simulates a heap that is full at the (n+1)th call."""

    def __init__(self, of, n):
        self.of, self.n = of, n

    def __call__(self, *args):
        self.n -= 1
        if self.n < 0:
            raise MemoryError
        return self.of(*args)


# The first mistake loads the module of sentences. There may be no memory for this module.
loads, builtins.__import__ = builtins.__import__, Full(None, 0)
refused(lambda: Channel("c").poison(0))
builtins.__import__ = loads

refused(lambda: run(nothing))
refused(lambda: run(5))
refused(lambda: Channel("c", capacity=-1))
refused(lambda: Channel("c", capacity=1 << 29))
refused(lambda: Channel("c", overflow="explode"))
refused(lambda: Channel("c", capacity=1).poison(0))
refused(lambda: Ring(0))
refused(lambda: Ring("4"))


@process
async def main():
    c = Channel("orders")
    _r, w = c.reader(), c.writer()
    try:
        await select()
    except BadUse as e:
        print(e)
    w.write("not awaited")
    try:
        await Parallel()
    except BadUse as e:
        print(e)


try:
    run(main())
except BaseException as e:
    print("left", type(e).__name__)


@process
async def after_poison():
    c = Channel("gone")
    r = c.reader()
    c.poison(3)
    for what in (r.read, c.writer):
        try:
            await what()
        except Poisoned as e:
            print(e, e.strength)


run(after_poison())


@process
async def overflowing():
    ring = Ring(2, "isr")
    r = ring.reader()
    put = [ring.put(i) for i in range(4)]
    got = [await r.read(), await r.read()]
    ring.close()
    try:
        await r.read()
    except Retired as e:
        print("ring", put, ring.overflows, got, e)


run(overflowing())


@process
async def waits(log):
    try:
        await sleep_ms(1000000)
    except Cancelled:
        log.append("stopped")
        raise


@process
async def crowd(log):
    room, _core.room = _core.room, Full(_core.room, 2)
    try:
        await Parallel([waits(log) for _ in range(5)])
    except NoRoom as e:
        print(e)
    finally:
        _core.room = room
    async with Group() as g:
        p = g.start(waits(log))
        await sleep_ms(1)
        p.cancel()


log = []
run(crowd(log))
print(log)


@process
async def late():
    refused(lambda: Group().start(reads(Channel("c").reader())))
    async with Group() as g:
        pass
    refused(lambda: g.start(reads(Channel("c").reader())))


run(late())

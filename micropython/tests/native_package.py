"""Measures the CommsTime of ../README.md with the whole package, for test_native.py: instructions
(on the board) or nanoseconds for each communication, bytes allocated, and bytes of a process that
waits. Prints lines `name: value`."""

import gc
import sys
import time

gc.collect()
free = gc.mem_alloc()
from weft import _core  # noqa: E402
from weft.coroutines import Channel, Group, poison, process, run, yield_  # noqa: E402

gc.collect()
print("import, bytes: %d" % (gc.mem_alloc() - free))
BOARD = sys.platform == "qemu"
N = {"qemu": 1000, "webassembly": 10000}.get(sys.platform, 250000)


@process
async def prefix(into, out):
    await out.write(0)
    while True:
        await out.write(await into)


@process
async def delta(into, one, two):
    while True:
        v = await into
        await one.write(v)
        await two.write(v)


@process
async def successor(into, out):
    while True:
        await out.write(await into + 1)


@process
async def consume(into, out):
    for _ in range(16):
        await into
    begin(out)
    for _ in range(N):
        await into
    end(out)
    poison(into)


@process
def yprefix(into, out):
    yield out.write(0)
    while True:
        v = yield into
        yield out.write(v)


@process
def ydelta(into, one, two):
    while True:
        v = yield into
        yield one.write(v)
        yield two.write(v)


@process
def ysuccessor(into, out):
    while True:
        v = yield into
        yield out.write(v + 1)


@process
def yconsume(into, out):
    for _ in range(16):
        yield into
    begin(out)
    for _ in range(N):
        yield into
    end(out)
    poison(into)


def begin(out):
    gc.collect()
    if _core.NATIVE:
        gc.disable()
    out[0] = time.ticks_cpu() if BOARD else time.time_ns()  # this call can allocate
    out[1] = gc.mem_alloc()


def end(out):
    out[1] = gc.mem_alloc() - out[1]
    out[0] = (time.ticks_diff(time.ticks_cpu(), out[0]) * 40) if BOARD else time.time_ns() - out[0]
    gc.enable()


def commstime(a_prefix, a_delta, a_successor, a_consume):
    a, b, c, d = [Channel(x) for x in "abcd"]
    out = [0, 0]
    run(a_prefix(+a, -b), a_delta(+b, -c, -d), a_successor(+c, -a), a_consume(+d, out))
    return out


@process
async def waits(r):
    await r


@process
async def parked(n, out):
    """Returns the bytes of a process that waits at a channel of its own, as the mean of n."""
    writers = [None] * n
    async with Group() as group:
        for i in range(n):
            c = Channel("c")
            writers[i] = -c
            group.start(waits(+c))
            if not i:
                await yield_()
                gc.collect()
                before = gc.mem_alloc()
        c = None
        await yield_()
        gc.collect()
        out[0] = (gc.mem_alloc() - before) / (n - 1)
        for w in writers:
            w.retire()


for form, network in (
    ("await", (prefix, delta, successor, consume)),
    ("yield", (yprefix, ydelta, ysuccessor, yconsume)),
):
    cost, bytes_ = commstime(*network)
    print("%s, cost: %d" % (form, cost // (4 * N)))
    print("%s, bytes: %d" % (form, bytes_))
out = [0]
run(parked(40, out))
print("parked: %d" % out[0])

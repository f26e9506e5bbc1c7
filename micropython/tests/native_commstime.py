"""Measures CommsTime on the bare core, for test_native.py: instructions (on the board) or
nanoseconds for each communication, bytes allocated, and bytes of a process that waits. Prints lines
`name: value`."""

import gc
import sys
import time

import core

Proc, Chan, Rd, Wr, push, loop = core.Proc, core.Chan, core.Rd, core.Wr, core.push, core.loop
BOARD = sys.platform == "qemu"
N = 1000 if BOARD else 250000


def nothing(*_):
    raise NotImplementedError


def ended(p, v):
    raise SystemExit if p.x == "consume" else NotImplementedError


def failed(p, e):
    raise e


core.hooks(nothing, nothing, ended, failed, nothing)


async def prefix(into, out):
    await out.write(0)
    while True:
        await out.write(await into)


async def delta(into, one, two):
    while True:
        v = await into
        await one.write(v)
        await two.write(v)


async def successor(into, out):
    while True:
        await out.write((await into) + 1)


async def consume(into, out):
    for _ in range(16):
        await into
    begin(out)
    for _ in range(N):
        await into
    end(out)


def yprefix(into, out):
    yield out.write(0)
    while True:
        v = yield into
        yield out.write(v)


def ydelta(into, one, two):
    while True:
        v = yield into
        yield one.write(v)
        yield two.write(v)


def ysuccessor(into, out):
    while True:
        v = yield into
        yield out.write(v + 1)


def yconsume(into, out):
    for _ in range(16):
        yield into
    begin(out)
    for _ in range(N):
        yield into
    end(out)


def begin(out):
    gc.collect()
    if core.NATIVE:
        gc.disable()
    out[0] = time.ticks_cpu() if BOARD else time.time_ns()  # this call can allocate
    out[1] = gc.mem_alloc()


def end(out):
    out[1] = gc.mem_alloc() - out[1]
    out[0] = (time.ticks_diff(time.ticks_cpu(), out[0]) * 40) if BOARD else time.time_ns() - out[0]
    gc.enable()


def commstime(a_prefix, a_delta, a_successor, a_consume):
    a, b, c, d = [Chan(None) for _ in range(4)]
    out = [0, 0]
    for x, g in (
        ("prefix", a_prefix(Rd(a), Wr(b))),
        ("delta", a_delta(Rd(b), Wr(c), Wr(d))),
        ("successor", a_successor(Rd(c), Wr(a))),
        ("consume", a_consume(Rd(d), out)),
    ):
        p = Proc(x)
        p.start(g)
        push(p)
    try:
        loop(0)
    except SystemExit:
        pass
    return out


async def waits(r):
    await r


def parked(n):
    """Returns the bytes of a process that waits at a channel of its own, with the channel and both
    its ends: the mean of n.
    """
    keep = [None] * n
    writers = [None] * n
    gc.collect()
    before = gc.mem_alloc()
    for i in range(n):
        c = Chan(None)
        keep[i] = p = Proc(None)
        writers[i] = Wr(c)
        p.start(waits(Rd(c)))
        push(p)
        loop(0)
    c = p = None
    gc.collect()
    return (gc.mem_alloc() - before) / n


for form, network in (
    ("await", (prefix, delta, successor, consume)),
    ("yield", (yprefix, ydelta, ysuccessor, yconsume)),
):
    cost, bytes_ = commstime(*network)
    print("%s, cost: %d" % (form, cost // (4 * N)))
    print("%s, bytes: %d" % (form, bytes_))
print("parked: %d" % parked(50))

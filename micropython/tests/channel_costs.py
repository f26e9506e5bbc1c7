"""Measures the cost of a value at a plain channel, at a channel with a buffer, and by a select of
two. Prints lines `name: value`, in nanoseconds. The emulated Cortex-M3 executes one instruction in
each nanosecond, the RP2040 one cycle in 8 ns, so the figures of both are exact."""

from time import ticks_diff as diff
from time import ticks_us as ticks

from weft.coroutines import Channel, process, run, select

N = 400


@process
async def writes(out, n):
    for i in range(n):
        await out.write(i)


@process
async def reads(source, n):
    for _ in range(16):  # warms up: one-time costs are not measured
        await source
    began = ticks()
    for _ in range(n - 16):
        await source
    return diff(ticks(), began) * 1000 / (n - 16)


@process
async def chooses(a, b, n):
    for _ in range(16):
        await select(a, b)
    began = ticks()
    for _ in range(n - 16):
        await select(a, b)
    return diff(ticks(), began) * 1000 / (n - 16)


def told(what, cost):
    print("%s: %d" % (what, cost))


c = Channel("plain")
told("plain", run(reads(+c, N), writes(-c, N))[0])
for size in (1, 8):
    c = Channel("buffered", capacity=size)
    told("buffered %d" % size, run(reads(+c, N), writes(-c, N))[0])
a, b = Channel("a"), Channel("b")
told("select, two writers", run(chooses(+a, +b, N), writes(-a, N // 2), writes(-b, N // 2))[0])
a, b = Channel("a"), Channel("b")
w = -a
told("select, one writer", run(chooses(+a, +b, N), writes(-b, N))[0])

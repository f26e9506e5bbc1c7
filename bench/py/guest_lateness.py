"""Measures how late a 1 ms timer of asyncio is, in ns, while CommsTime runs as a guest of its loop,
or while nothing else runs.

A sample is a percentile over a stretch of PER timers.
"""

import asyncio
import sys
import time

from sampler import fail, numbers

from weft.coroutines import Channel, process, run_async


@process
async def prefix(source, sink):
    await sink.write(0)
    async for value in source:
        await sink.write(value)


@process
async def delta(source, left, right):
    async for value in source:
        await left.write(value)
        await right.write(value)


@process
async def successor(source, sink):
    async for value in source:
        await sink.write(value + 1)


@process
async def consumer(source, until):
    n = 0
    while not until:
        if await source.read() != n:
            fail(f"lateness: a wrong value after {n}")
        n += 1
    source.channel.poison()
    return n


async def lateness(per):
    """Returns how late each of `per` timers of 1 ms was, in ascending order."""
    late = []
    for _ in range(per):
        start = time.perf_counter_ns()
        await asyncio.sleep(0.001)
        late.append(time.perf_counter_ns() - start - 1_000_000)
    return sorted(late)


async def main(loaded, percent, samples, per):
    until = []
    if loaded == 2:
        a, b, c, d = (Channel() for _ in range(4))
        network = asyncio.create_task(
            run_async(
                prefix(c.reader(), a.writer()),
                delta(a.reader(), b.writer(), d.writer()),
                successor(b.reader(), c.writer()),
                consumer(d.reader(), until),
            )
        )
    await lateness(20)
    figures = []
    for _ in range(samples):
        late = await lateness(per)
        figures.append(max(late[min(per - 1, per * percent // 100)], 1))
    if loaded == 2:
        until.append(True)
        if (await network)[3] < samples * per:
            fail("lateness: the network did not run")
    print("ns", *figures, flush=True)


if len(sys.argv) != 5:
    fail("usage: guest_lateness.py LOADED PERCENT SAMPLES PER, LOADED 1 for no and 2 for yes")
asyncio.run(main(*numbers("LOADED PERCENT SAMPLES PER")))

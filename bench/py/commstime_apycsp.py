"""CommsTime in aPyCSP's names, with a sequential delta, inside asyncio. WEFT_BENCH_MODULE names the
module: weft.compat.apycsp or apycsp.
"""

import asyncio
import importlib
import os

from sampler import Sampler, fail, numbers

p = importlib.import_module(os.environ["WEFT_BENCH_MODULE"])


@p.process
async def prefix(source, sink):
    await sink(0)
    while True:
        await sink(await source())


@p.process
async def delta(source, left, right):
    while True:
        value = await source()
        await left(value)
        await right(value)


@p.process
async def successor(source, sink):
    while True:
        await sink(await source() + 1)


@p.process
async def consumer(source, channels, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = await source()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()
    for channel in channels:
        await channel.poison()


async def main(samples, per):
    channels = a, b, c, d = [p.Channel(name) for name in "abcd"]
    await p.Parallel(
        prefix(c.read, a.write),
        delta(a.read, b.write, d.write),
        successor(b.read, c.write),
        consumer(d.read, channels, samples, per),
    )


asyncio.run(main(*numbers("SAMPLES PER")))

"""CommsTime over four asyncio.Queue(1), with a sequential delta."""

import asyncio

from sampler import Sampler, fail, numbers


async def prefix(source, sink):
    await sink.put(0)
    while True:
        await sink.put(await source.get())


async def delta(source, left, right):
    while True:
        value = await source.get()
        await left.put(value)
        await right.put(value)


async def successor(source, sink):
    while True:
        await sink.put(await source.get() + 1)


async def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = await source.get()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()


async def main(samples, per):
    a, b, c, d = (asyncio.Queue(1) for _ in range(4))
    others = [asyncio.ensure_future(p) for p in (prefix(c, a), delta(a, b, d), successor(b, c))]
    await consumer(d, samples, per)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


asyncio.run(main(*numbers("SAMPLES PER")))

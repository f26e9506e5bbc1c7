"""CommsTime over four trio memory channels of size 0, with a sequential delta."""

import trio
from sampler import Sampler, fail, numbers


async def prefix(source, sink):
    await sink.send(0)
    while True:
        await sink.send(await source.receive())


async def delta(source, left, right):
    while True:
        value = await source.receive()
        await left.send(value)
        await right.send(value)


async def successor(source, sink):
    while True:
        await sink.send(await source.receive() + 1)


async def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = await source.receive()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()


async def main(samples, per):
    (aw, ar), (bw, br), (cw, cr), (dw, dr) = (trio.open_memory_channel(0) for _ in range(4))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prefix, cr, aw)
        nursery.start_soon(delta, ar, bw, dw)
        nursery.start_soon(successor, br, cw)
        await consumer(dr, samples, per)
        nursery.cancel_scope.cancel()


trio.run(main, *numbers("SAMPLES PER"))

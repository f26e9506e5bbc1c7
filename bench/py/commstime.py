"""CommsTime with a sequential delta, by on.py; with WEFT_BENCH_HOST=asyncio, as a guest of
asyncio.
"""

import os

from sampler import Sampler, fail, numbers

from weft import Channel, Parallel, process, run


@process
async def prefix(source, sink):
    await sink.write(0)
    while True:
        await sink.write(await source.read())


@process
async def delta(source, left, right):
    while True:
        value = await source.read()
        await left.write(value)
        await right.write(value)


@process
async def successor(source, sink):
    while True:
        await sink.write(await source.read() + 1)


@process
async def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = await source.read()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()


@process
async def main(samples, per):
    a, b, c, d = (Channel() for _ in range(4))
    await Parallel(
        prefix(c.reader(), a.writer()),
        delta(a.reader(), b.writer(), d.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), samples, per),
    )


run(main(*numbers("SAMPLES PER")), host=os.environ.get("WEFT_BENCH_HOST", "weft"))

"""A ring of N asyncio tasks over queues of size 1; a token is passed round the ring."""

import asyncio

from sampler import Sampler, fail, numbers, resident


async def element(source, sink):
    while True:
        await sink.put(await source.get() + 1)


async def main(n, samples, per):
    before = resident()
    first = source = asyncio.Queue(1)
    tasks = []
    for _ in range(n - 1):  # this task is the n-th process of the ring
        sink = asyncio.Queue(1)
        tasks.append(asyncio.ensure_future(element(source, sink)))
        source = sink

    async def lap():
        await first.put(0)
        value = await source.get()
        if value != n - 1:
            fail(f"ring: the token came back as {value}, expected {n - 1}")

    await lap()
    print(f"bytes {(resident() - before) / n:.1f}")
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        for _ in range(per):
            await lap()
        sampler.end(per * n)
    sampler.print()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


asyncio.run(main(*numbers("N SAMPLES PER")))

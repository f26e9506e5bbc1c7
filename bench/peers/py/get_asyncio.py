"""One get of an asyncio.Queue(1) at which two writers wait.

The figure includes the cost of the writers and of the event loop, as does the figure of a select.
"""

import asyncio

from sampler import Sampler, fail, numbers


async def writer(sink, mark):
    while True:
        await sink.put(mark)


async def reader(source, samples, per):
    sampler = Sampler()
    seen = {0: 0, 1: 0}
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            seen[await source.get()] += 1
        if k:
            sampler.end(per)
    if not all(seen.values()) or sum(seen.values()) != per * (samples + 1):
        fail(f"get: values were lost or a writer starved: {seen}")
    sampler.print()


async def main(samples, per):
    channel = asyncio.Queue(1)
    writers = [asyncio.ensure_future(writer(channel, mark)) for mark in (0, 1)]
    await reader(channel, samples, per)
    for task in writers:
        task.cancel()
    await asyncio.gather(*writers, return_exceptions=True)


asyncio.run(main(*numbers("SAMPLES PER")))

"""A standing alternative over N channels that blocks each time: a writer writes to a pseudo-random
channel only when the alternative has blocked. Run this file by on.py.
"""

from sampler import Sampler, fail, numbers

from weft import Alternative, Channel, Parallel, process, run, yield_


@process
async def reader(sources, selects):
    alternative = Alternative(*sources)
    for _ in range(selects):
        index, value = await alternative.select()
        if value != index:
            fail(f"select: channel {index} gave {value}, and should give its own number, {index}")


@process
async def writer(sinks, samples, per):
    random = 2463534242  # xorshift32
    sampler = Sampler()
    await yield_()  # the alternative blocks for the first time
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            random ^= random << 13 & 0xFFFFFFFF
            random ^= random >> 17
            random ^= random << 5 & 0xFFFFFFFF
            at = random % len(sinks)
            await sinks[at].write(at)
            # The woken process runs before yield_() returns (rule 7.7), and blocks again.
            await yield_()
        if k:
            sampler.end(per)
    sampler.print()


@process
async def main(n, samples, per):
    channels = [Channel() for _ in range(n)]
    await Parallel(
        reader([c.reader() for c in channels], per * (samples + 1)),
        writer([c.writer() for c in channels], samples, per),
    )


run(main(*numbers("N SAMPLES PER")))

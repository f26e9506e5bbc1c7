"""A fair select over N channels, with two writers waiting at each. Run this file by on.py."""

from sampler import Sampler, fail, numbers

from weft import Alternative, Channel, Parallel, process, run


@process
async def writer(sink, mark):
    while True:
        await sink.write(mark)


@process
async def reader(sources, samples, per):
    alternative = Alternative(*sources, mode="fair")
    taken = [0] * len(sources)
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            index, value = await alternative.select()
            if value != index:
                fail(f"select: channel {index} gave {value}")
            taken[index] += 1
        if k:
            sampler.end(per)
    # Every guard stays ready, so a guard is chosen within N selects (rule 5.4).
    if max(taken) - min(taken) > 1 + sum(taken) // len(taken) // 2:
        fail(f"select: not fair: between {min(taken)} and {max(taken)} a channel")
    sampler.print()


@process
async def main(n, samples, per):
    channels = [Channel() for _ in range(n)]
    writers = [writer(c.writer(), i) for i, c in enumerate(channels) for _ in range(2)]
    await Parallel(*writers, reader([c.reader() for c in channels], samples, per))


run(main(*numbers("N SAMPLES PER")))

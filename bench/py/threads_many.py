"""N thread processes start, each meets one partner once and waits again, and then all are poisoned.
Run this file by on.py.
"""

from sampler import Sampler, fail, numbers

from weft import Channel, Parallel, process, run


@process
async def worker(source, sink):
    await sink.write(await source.read())
    await source.read()


@process
async def partner(source, sink, n):
    for value in range(n):
        await sink.write(value)
    total = 0
    for _ in range(n):
        total += await source.read()
    if total != n * (n - 1) // 2:
        fail(f"threads_many: the sum is {total}, expected {n * (n - 1) // 2}")
    sink.poison()


@process
async def main(n, samples):
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        outward, back = Channel(), Channel()
        workers = [worker(outward.reader(), back.writer()) for _ in range(n)]
        await Parallel(*workers, partner(back.reader(), outward.writer(), n))
        sampler.end(n)
    sampler.print()


run(main(*numbers("N SAMPLES")))

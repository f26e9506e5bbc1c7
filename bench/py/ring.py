"""A ring of N processes, each with a body of two lines; a token is passed round the ring. Run this
file by on.py, or by `weft run --on BACKEND`.
"""

import time

from sampler import Sampler, fail, in_use, numbers

from weft import Channel, Parallel, process, run


@process
async def element(source, sink):
    while True:
        value = await source.read()
        await sink.write(value + 1)


@process
async def token(sink, source, n, before, samples, per):
    async def lap():
        await sink.write(0)
        value = await source.read()
        if value != n - 1:
            fail(f"ring: the token came back as {value}, expected {n - 1}")

    await lap()
    if (grown := in_use() - before) > 0:  # a small ring takes less than a page
        print(f"bytes {grown / n:.1f}")
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        for _ in range(per):
            await lap()
        sampler.end(per * n)
    sampler.print()


def elements(source, sink, n):
    """Yields the n − 1 processes between `source` and `sink`."""
    for k in range(n - 1):
        if k == n - 2:
            yield element(source, sink)
        else:
            between = Channel()
            yield element(source, between.writer())
            source = between.reader()


@process
async def main(n, samples, per):
    before = in_use()
    # The CPU time is measured, because other programs interrupt such a long stretch.
    began = time.process_time_ns()
    first, last = Channel(), Channel()
    ring = list(elements(first.reader(), last.writer(), n))
    print(f"create {(time.process_time_ns() - began) / n:.1f}")
    await Parallel(*ring, token(first.writer(), last.reader(), n, before, samples, per))


run(main(*numbers("N SAMPLES PER")))

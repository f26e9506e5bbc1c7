"""Sends TOKENS tokens round a ring of N processes. Run this file by on.py, or by `weft run --on
BACKEND`.

The program repeats the PyCSP paper's figure 4. All processes except one may hold a token; if all of
these hold one, only the remaining process can read.
"""

from sampler import Sampler, fail, numbers

from weft import Channel, Parallel, process, run


@process
async def element(source, sink, starts):
    if starts is not None:
        await sink.write(starts)
    while True:
        value = await source.read()
        await sink.write(value + 1)


@process
async def timer(source, sink, n, tokens, samples, per):
    """An element like the others, which also measures. Every element forwards as many values as
    this one.

    Therefore a stretch of k values here is a stretch of k × N communications, except for the few
    values that have not arrived yet. A token begins with the number of its first element, and each
    element adds one. So the value that arrives here shows how often the token has passed round the
    ring, and whether each element has forwarded it.
    """
    await sink.write(0)
    passed = 0

    async def laps(count):
        nonlocal passed
        for _ in range(count * tokens):
            value = await source.read()
            expected = passed // tokens * n + n - 1
            if value != expected:
                fail(f"tokens: a token arrived as {value}, expected {expected}")
            passed += 1
            await sink.write(value + 1)

    await laps(1)
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        await laps(per)
        sampler.end(per * tokens * n)
    sampler.print()


@process
async def main(n, tokens, samples, per):
    if tokens >= n:
        fail(
            f"tokens: {tokens} tokens for {n} processes: one process at least must be without a token"
        )
    channels = [Channel() for _ in range(n)]
    ring = [
        element(channels[k - 1].reader(), channels[k].writer(), k if k < tokens else None)
        for k in range(1, n)
    ]
    first = timer(channels[n - 1].reader(), channels[0].writer(), n, tokens, samples, per)
    await Parallel(first, *ring)


run(main(*numbers("N TOKENS SAMPLES PER")))

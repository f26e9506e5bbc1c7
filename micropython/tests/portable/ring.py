"""Prints results of CommsTime and of a growing sieve: channels, poison, groups."""

from weft import Channel, Group, Parallel, current_process, poison, process, run


@process
async def prefix(into, out, first):
    await out.write(first)
    while True:
        await out.write(await into.read())


@process
async def delta(into, one, two):
    while True:
        v = await into.read()
        await one.write(v)
        await two.write(v)


@process
async def successor(into, out):
    async for v in into:
        await out.write(v + 1)


@process
async def consume(into, n):
    last = None
    for _ in range(n):
        last = await into.read()
    poison(into)
    return last


@process
async def commstime(n):
    a, b, c, d = [Channel(x) for x in "abcd"]
    parts = (prefix(+c, -a, 0), delta(+a, -b, -d), successor(+b, -c), consume(+d, n))
    return (await Parallel(*parts))[3]


@process
async def numbers(out, most):
    for n in range(2, most):
        await out.write(n)


@process
async def strain(source, out, prime):
    async for n in source:
        if n % prime:
            await out.write(n)


@process
async def primes(most):
    found = []
    async with Group() as g:
        c = Channel()
        g.start(numbers(c.writer(), most))
        source = c.reader()
        while True:
            prime = None
            async for prime in source:
                break
            if prime is None:
                return found
            found.append(prime)
            out = Channel()
            g.start(strain(source, out.writer(), prime).named("strain-%d" % prime))
            source = out.reader()


print(run(commstime(100).named("commstime"), primes(30)))


@process
async def name():
    return current_process().path


print(run(name()))

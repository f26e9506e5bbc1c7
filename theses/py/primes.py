"""The first N primes by a sieve that has a process for each prime. Run this file by on.py, or by
`weft run --on BACKEND`.

The program repeats the PyCSP paper's figures 5 and 6. The figure is ns for each prime, from the
first process to the last answer.
"""

from sampler import Sampler, fail, numbers

from weft import Channel, Group, process, run


@process
async def counter(out):
    n = 2
    while True:
        await out.write(n)
        n += 1


@process
async def strike(source, out, prime):
    """Forwards the numbers that `prime` does not divide."""
    while True:
        n = await source.read()
        if n % prime:
            await out.write(n)


async def sieve(n):
    found = []
    async with Group() as group:
        numbers_from_two = Channel()
        group.start(counter(numbers_from_two.writer()))
        source = numbers_from_two.reader()
        while len(found) < n:
            prime = await source.read()
            found.append(prime)
            sifted = Channel()
            group.start(strike(source, sifted.writer(), prime))
            source = sifted.reader()
        source.retire()
    return found


def is_prime(n):
    return all(n % k for k in range(2, int(n**0.5) + 1))


@process
async def main(n, samples):
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        found = await sieve(n)
        sampler.end(n)
        if len(found) != n or not all(is_prime(p) for p in found) or found != sorted(set(found)):
            fail(f"primes: {found[-1]} is not the {n}th prime")
    sampler.print()


run(main(*numbers("N SAMPLES")))

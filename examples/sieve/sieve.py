"""The sieve of primes as a growing pipeline: one process for every prime found.

    weft run examples/sieve/sieve.py
    weft run examples/sieve/sieve.py --primes 200 --on threads

      count from 2 ──► not ÷2 ──► not ÷3 ──► not ÷5 ──► … ──► the next prime comes out

When enough primes are known, the last reader end is released, and the pipeline ends, process by
process, from its last to its first (rules 3.3 and 3.5). The design is McIlroy's; section 5.2 of the
PyCSP paper cited in examples/mandelbrot measures it.
"""

from __future__ import annotations

import itertools
import json
import time

import click

from weft import Channel, Group, process, run


@process
async def numbers(out):
    for number in itertools.count(2):
        await out.write(number)


@process
async def strain(before, out, prime):
    async for number in before:
        if number % prime:
            await out.write(number)


@process
async def sieve(wanted):
    primes = []
    async with Group() as pipeline:
        link = Channel("numbers")
        pipeline.start(numbers(link.writer()))
        end = link.reader()
        while True:
            primes.append(await end.read())
            if len(primes) == wanted:
                end.retire()
                break
            link = Channel(f"not ÷{primes[-1]}")
            pipeline.start(strain(end, link.writer(), primes[-1]))
            end = link.reader()
    return primes


@click.command(
    epilog="Choose the backend with: weft run sieve.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--primes",
    "wanted",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Primes to find.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(wanted, as_json):
    """Find primes with a pipeline that grows by one process a prime."""
    began = time.perf_counter()
    primes = run(sieve(wanted))
    seconds = time.perf_counter() - began
    if as_json:
        print(json.dumps({"example": "sieve", "seconds": round(seconds, 4), "primes": primes}))
    else:
        print(*primes)
        print(f"{len(primes)} primes by {len(primes)} processes: {seconds:.3f} s")


if __name__ == "__main__":
    main()

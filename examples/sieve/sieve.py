"""The sieve of primes as a growing pipeline: one process for every prime found.

    weft run examples/sieve/sieve.py
    weft run examples/sieve/sieve.py --primes 200 --on threads

      count from 2 ──► not ÷2 ──► not ÷3 ──► not ÷5 ──► … ──► the next prime comes out

When enough primes are known the last reader end is let go of, and that ends the pipeline from its end to its beginning
(rules 3.3 and 3.5). The design is McIlroy's; section 5.2 of the PyCSP paper cited in examples/mandelbrot measures it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

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


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="sieve.py",
        description="Find primes with a pipeline that grows by one process a prime.",
        epilog="Choose the backend with: weft run sieve.py --on coroutines|threads [these options]",
    )
    parser.add_argument("--primes", type=at_least_one, default=100, help="how many (%(default)s)")
    parser.add_argument("--json", action="store_true", help="close with one line of JSON on stdout")
    options = parser.parse_args()
    began = time.perf_counter()
    primes = run(sieve(options.primes))
    seconds = time.perf_counter() - began
    if options.json:
        print(json.dumps({"example": "sieve", "seconds": round(seconds, 4), "primes": primes}))
    else:
        print(*primes)
        print(f"{len(primes)} primes by {len(primes)} processes: {seconds:.3f} s")


if __name__ == "__main__":
    main()

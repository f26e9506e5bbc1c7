"""CommsTime: what does a communication cost? Four small processes that do nothing but communicate.

    weft run examples/commstime/commstime.py
    weft run examples/commstime/commstime.py --on threads --rounds 20000 --parallel-delta

        prefix(0) ──a──► delta ──d──► consumer
           ▲               │
           c               b
           └── successor ◄─┘

A round is four communications (five channels' worth of work in the version whose delta writes to both sides in parallel is
still four). The benchmark is Peter Welch's, from occam; every CSP system since reports it.
"""

from __future__ import annotations

import argparse
import json
import time

from weft import Channel, Parallel, process, run


@process
async def prefix(before, out, first):
    await out.write(first)
    async for value in before:
        await out.write(value)


@process
async def successor(before, out):
    async for value in before:
        await out.write(value + 1)


@process
async def delta(before, left, right):
    async for value in before:
        await left.write(value)
        await right.write(value)


@process
async def send(out, value):
    await out.write(value)


@process
async def parallel_delta(before, left, right):
    async for value in before:
        await Parallel(send(left, value), send(right, value))


@process
async def consumer(before, rounds):
    """Reads `rounds` numbers after one that warms up; returns the seconds they took and the last number."""
    await before.read()
    began = time.perf_counter()
    for _ in range(rounds):
        last = await before.read()
    return time.perf_counter() - began, last


@process
async def commstime(rounds, split):
    a, b, c, d = (Channel(name) for name in "abcd")
    *_, measured = await Parallel(
        prefix(c.reader(), a.writer(), 0),
        split(a.reader(), d.writer(), b.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), rounds),
    )
    return measured


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="commstime.py",
        description="Measure what a communication costs.",
        epilog="Choose the backend with: weft run commstime.py --on coroutines|threads [these options]",
    )
    parser.add_argument("--rounds", type=at_least_one, default=20_000, help="numbers the consumer reads (%(default)s)")
    parser.add_argument("--parallel-delta", action="store_true", help="delta starts two processes a round instead of writing twice")
    parser.add_argument("--json", action="store_true", help="close with one line of JSON on stdout")
    options = parser.parse_args()
    seconds, last = run(commstime(options.rounds, parallel_delta if options.parallel_delta else delta))
    each = seconds / options.rounds / 4
    if options.json:
        print(json.dumps({"example": "commstime", "rounds": options.rounds, "last": last, "us": round(each * 1e6, 4)}))
    else:
        print(f"{options.rounds} rounds in {seconds:.3f} s: {each * 1e6:.3f} µs a communication; the last number is {last}")


if __name__ == "__main__":
    main()

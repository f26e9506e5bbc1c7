"""CommsTime measures what a communication costs, with four small processes that only communicate.

    weft run examples/commstime/commstime.py
    weft run examples/commstime/commstime.py --on threads --rounds 20000 --parallel-delta

        prefix(0) ──a──► delta ──d──► consumer
           ▲               │
           c               b
           └── successor ◄─┘

A round is four communications. The benchmark is Peter Welch's, from occam; authors of CSP
systems have reported its result ever since.
"""

from __future__ import annotations

import json
import time

import click

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
    return True  # None if the channel has ended, because the process then ends quietly (rule 3.5)


@process
async def delta_in_parallel(before, left, right):
    async for value in before:
        if not all(await Parallel(send(left, value), send(right, value))):
            return


@process
async def consumer(before, rounds):
    """Reads one number as a warm-up, then `rounds` numbers; returns the seconds that these took and
    the last number.
    """
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


@click.command(
    epilog="Choose the backend with: weft run commstime.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="Numbers the consumer reads.",
)
@click.option(
    "--parallel-delta",
    is_flag=True,
    help="Delta starts two processes a round instead of writing twice.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(rounds, parallel_delta, as_json):
    """Measure what a communication costs."""
    seconds, last = run(commstime(rounds, delta_in_parallel if parallel_delta else delta))
    each = seconds / rounds / 4
    if as_json:
        print(
            json.dumps(
                {"example": "commstime", "rounds": rounds, "last": last, "us": round(each * 1e6, 4)}
            )
        )
    else:
        print(
            f"{rounds} rounds in {seconds:.3f} s: {each * 1e6:.3f} µs a communication; the last number is {last}"
        )


if __name__ == "__main__":
    main()

"""Sends a token round a ring of processes, to measure how many processes are possible, and what a
hop costs.

    weft run examples/token_ring/token_ring.py --size 100000
    weft run examples/token_ring/token_ring.py --size 1000 --on threads

      start ──► relay ──► relay ──► … ──► back to start

Each process adds one to the token, so the number that returns is the number of its hops.
"""

from __future__ import annotations

import json
import time

import click

from weft import Channel, Parallel, process, run


@process
async def relay(before, after):
    async for token in before:
        await after.write(token + 1)


@process
async def start(before, after, rounds):
    """Sends the token round once to warm up, then `rounds` times; returns the token, and the
    seconds that those rounds took.
    """
    await after.write(1)
    token = await before.read()
    began = time.perf_counter()
    for _ in range(rounds):
        await after.write(token + 1)
        token = await before.read()
    return token, time.perf_counter() - began


@process
async def ring(size, rounds):
    links = [Channel("link") for _ in range(size)]
    relays = [relay(links[i].reader(), links[i + 1].writer()) for i in range(size - 1)]
    first, *_ = await Parallel(start(links[-1].reader(), links[0].writer(), rounds), relays)
    return first


@click.command(
    epilog="Choose the backend with: weft run token_ring.py --on coroutines|greenlets|threads [these options]"
)
@click.option(
    "--size",
    type=click.IntRange(min=2),
    default=1000,
    show_default=True,
    help="Processes in the ring.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Times the token goes round.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one line of JSON on stdout at the end."
)
def main(size, rounds, as_json):
    """Send a token round a ring of processes."""
    token, seconds = run(ring(size, rounds))
    hops = size * rounds
    if as_json:
        print(
            json.dumps(
                {
                    "example": "token_ring",
                    "size": size,
                    "token": token,
                    "us": round(seconds / hops * 1e6, 4),
                }
            )
        )
    else:
        print(
            f"{size} processes, {hops} hops in {seconds:.3f} s: "
            f"{seconds / hops * 1e6:.3f} µs a hop; the token is {token}"
        )


if __name__ == "__main__":
    main()

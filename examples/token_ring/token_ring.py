"""A token goes round a ring of processes: how many can there be, and what does a hop cost?

    weft run examples/token_ring/token_ring.py --size 100000
    weft run examples/token_ring/token_ring.py --size 1000 --on threads

      start ──► relay ──► relay ──► … ──► back to start

Each process adds one to the token, so the number that comes back says how many hops it made.
"""

from __future__ import annotations

import argparse
import json
import time

from weft import Channel, Parallel, process, run


@process
async def relay(before, after):
    async for token in before:
        await after.write(token + 1)


@process
async def start(before, after, rounds):
    """Sends the token round once to warm up, then `rounds` times; returns the token and the seconds those took."""
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


def number_from(least: int):
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {text}")
        return int(text)

    return number


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="token_ring.py",
        description="Send a token round a ring of processes.",
        epilog="Choose the backend with: weft run token_ring.py --on coroutines|threads [these options]",
    )
    parser.add_argument("--size", type=number_from(2), default=1000, help="processes in the ring (%(default)s)")
    parser.add_argument("--rounds", type=number_from(1), default=10, help="times the token goes round (%(default)s)")
    parser.add_argument("--json", action="store_true", help="close with one line of JSON on stdout")
    options = parser.parse_args()
    token, seconds = run(ring(options.size, options.rounds))
    hops = options.size * options.rounds
    if options.json:
        print(json.dumps({"example": "token_ring", "size": options.size, "token": token, "us": round(seconds / hops * 1e6, 4)}))
    else:
        print(f"{options.size} processes, {hops} hops in {seconds:.3f} s: {seconds / hops * 1e6:.3f} µs a hop; the token is {token}")


if __name__ == "__main__":
    main()

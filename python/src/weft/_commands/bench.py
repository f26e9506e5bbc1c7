"""Makes the measurement of `weft bench` without a checkout: CommsTime on Weft's coroutines against
asyncio.Queue(1), in one run. `pass_on` passes the command on to the harness of a checkout.

CommsTime is four processes in a ring with a tap: prefix → delta → successor → prefix, and delta →
consumer. A round is four communications. The two programs run alternately, and the shortest time of
each counts, so that other load on the machine has little effect on the result.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence

from weft.cli import EXIT
from weft.coroutines import Channel, Parallel, Reader, Writer, process, run

NAME = "commstime"
# The number of rounds with Weft; asyncio runs a fifth of them.
ROUNDS = int(os.environ.get("WEFT_BENCH_ROUNDS", "20000"))
TURNS = 5


@process
async def _prefix(before: Reader[int], out: Writer[int]) -> None:
    await out.write(0)
    async for value in before:
        await out.write(value)


@process
async def _successor(before: Reader[int], out: Writer[int]) -> None:
    async for value in before:
        await out.write(value + 1)


@process
async def _delta(before: Reader[int], left: Writer[int], right: Writer[int]) -> None:
    async for value in before:
        await left.write(value)
        await right.write(value)


@process
async def _consumer(before: Reader[int], rounds: int) -> float:
    await before.read()
    began = time.perf_counter()
    for _ in range(rounds):
        await before.read()
    return time.perf_counter() - began


@process
async def _commstime(rounds: int) -> float:
    a, b, c, d = (Channel[int](name) for name in "abcd")
    consumer = _consumer(d.reader(), rounds)
    await Parallel(
        _prefix(c.reader(), a.writer()),
        _delta(a.reader(), d.writer(), b.writer()),
        _successor(b.reader(), c.writer()),
        consumer,
    )
    return consumer.result


def with_weft(rounds: int) -> float:
    """Returns the seconds that one communication takes with Weft."""
    return run(_commstime(rounds)) / rounds / 4


async def _asyncio_commstime(rounds: int) -> float:
    a, b, c, d = (asyncio.Queue[int](1) for _ in range(4))

    async def prefix() -> None:
        await a.put(0)
        while True:
            await a.put(await c.get())

    async def delta() -> None:
        while True:
            value = await a.get()
            await d.put(value)
            await b.put(value)

    async def successor() -> None:
        while True:
            await c.put(await b.get() + 1)

    tasks = [asyncio.create_task(body()) for body in (prefix, delta, successor)]
    await d.get()
    began = time.perf_counter()
    for _ in range(rounds):
        await d.get()
    seconds = time.perf_counter() - began
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seconds


def with_asyncio(rounds: int) -> float:
    """Returns the seconds that one communication takes with asyncio."""
    return asyncio.run(_asyncio_commstime(rounds)) / rounds / 4


def measure(rounds: int = ROUNDS, turns: int = TURNS) -> dict[str, float]:
    """Returns the nanoseconds that one communication takes with Weft and with asyncio."""
    weft = peer = float("inf")
    for _ in range(turns):
        weft = min(weft, with_weft(rounds))
        peer = min(peer, with_asyncio(max(1, rounds // 5)))
    return {"weft.coroutines": weft * 1e9, "asyncio.Queue(1)": peer * 1e9}


def main(as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    ns = measure()
    ratio = ns["weft.coroutines"] / ns["asyncio.Queue(1)"]
    table = Table(title="CommsTime, nanoseconds a communication (least of several turns)")
    table.add_column("what")
    table.add_column("ns", justify="right")
    for what, value in ns.items():
        table.add_row(what, f"{value:.0f}")
    table.add_row("ratio", f"{ratio:.3f}")
    Console(stderr=as_json).print(table)
    if as_json:
        print(
            json.dumps(
                {
                    "bench": NAME,
                    "ns": {k: round(v, 1) for k, v in ns.items()},
                    "ratio": {"asyncio": round(ratio, 4)},
                }
            )
        )


def pass_on(command: Sequence[str]) -> int:
    """Runs a command to its end and returns its status. Passes SIGINT and SIGTERM on, so that the
    command can end the programs that it has started.
    """
    numbers: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def tell(number: int, _: object) -> None:
        numbers.append(number)
        if process is not None:
            process.send_signal(number)

    kept = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen(command)
        for number in numbers[:1]:  # a signal arrived before the command was started
            process.send_signal(number)
        status = process.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if not numbers:
        return status
    return EXIT["interrupted" if numbers[0] == signal.SIGINT else "terminated"]

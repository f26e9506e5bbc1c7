"""Processes that test_boards.py places on a board. They run on CPython, too."""

from __future__ import annotations

import sys
import threading
from typing import Any

from weft.coroutines import Channel, Parallel, Reader, Retired, Writer, process, sleep

SCALE = 3
LOCK = threading.Lock()
ROOM = Channel("room")


def scaled(x: int) -> int:
    return x * SCALE


class Mean:
    def __init__(self, n: int) -> None:
        self.last = [0] * n
        self.at = 0

    def of(self, x: int) -> int:
        self.last[self.at % len(self.last)] = x
        self.at += 1
        return sum(self.last) // len(self.last)


@process
async def count(out: Writer[int], n: int) -> int:
    for i in range(n):
        await out.write(scaled(i))
    return n


@process
async def smooth(source: Reader[int], out: Writer[int], n: int = 2) -> None:
    mean = Mean(n)
    async for x in source:
        await out.write(mean.of(x))


@process
async def echo(value: Any, *more: Any, **named: Any) -> Any:
    return [value, more, named, sys.implementation.name]


@process
async def helped(x: int) -> int:
    from placed_helper import shifted

    return shifted(x)


@process
async def spread(outs: Any) -> None:
    for i, out in enumerate(outs["all"]):
        await out.write(i)


@process
async def fails(out: Writer[int]) -> None:
    await out.write(1)
    raise ValueError("no good")


@process
async def reads(source: Reader[int]) -> int:
    return await source.read()


@process
async def writes_for_ever(out: Writer[int]) -> None:
    n = 0
    try:
        while True:
            await out.write(n)
            n += 1
    finally:
        print("wrote", n)


@process
async def waits(told: Writer[str]) -> None:
    try:
        await told.write("waits")
        await sleep(1000)
    finally:
        print("cancelled")


@process
async def says() -> None:
    print("one", 2, sep="-")
    print("no end", end="")
    for _ in range(3):
        print("x" * 1500)
        await sleep(0.02)


@process
async def says_too_much() -> None:
    for i in range(100):
        print(i, "y" * 100)


@process
async def exchange(source: Reader[int], out: Writer[int]) -> None:
    await out.write(await source.read())


@process
async def exchange_within(source: Reader[int], out: Writer[int]) -> None:
    await Parallel(exchange(source, out))


@process
async def needs_what_is_not_there() -> None:
    import nowhere_at_all

    nowhere_at_all.f()


@process
async def needs_room() -> int:
    return len(bytearray(100_000_000))


@process
async def gives_an_object() -> Any:
    return Mean(1)


@process
async def computes_for_ever(told: Writer[int]) -> None:
    await told.write(1)
    while True:
        pass


@process
async def until_retired(source: Reader[int], told: Writer[str]) -> None:
    try:
        while True:
            await source.read()
    except Retired:
        await told.write("retired")


# Processes that cannot be sent to a board, or use objects that cannot.


@process
async def locks() -> None:
    with LOCK:
        pass


@process
async def uses_a_channel() -> None:
    await ROOM.writer().write(1)


@process
def no_coroutine() -> None:
    pass


def other(function: Any) -> Any:
    return function


@process
@other
async def decorated() -> None:
    pass

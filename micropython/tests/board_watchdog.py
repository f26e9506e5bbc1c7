"""A program for the emulated Cortex-M3, run by test_watchdog.py: a timer's hard interrupt ticks the
watchdog, which must name the one process that computes without operations, and not the two other
processes.
"""

import weft_board

import micropython
from weft.coroutines import Channel, process, run
from weft.watchdog import Watchdog


def start(period, tick):
    weft_board.tick(period * 1000, lambda: micropython.schedule(tick, None))


dog = Watchdog(1, start=start)


@process
async def numbers(out, n):
    for i in range(n):
        await out.write(i)


@process
async def crunch(into):
    total = 0
    async for i in into:
        if i % 100 == 50:
            for k in range(30000):
                total += k
    return total


c = Channel("c")
run(numbers(-c, 300), crunch(+c))
print("named:", sorted(dog.hogs), "three times or more:", min(dog.hogs.values()) >= 3)
d, e = Channel("d"), Channel("e")


@process
async def passes(into, out):
    async for v in into:
        await out.write(v)


@process
async def counts(into):
    n = 0
    async for _ in into:
        n += 1
    return n


dog.hogs.clear()
print(run(numbers(-d, 1000), passes(+d, -e), counts(+e)), dog.hogs)
weft_board.tick(0, None)

"""A program for test_rp2040.py: the watchdog with its default machine.Timer names a process that
computes, and does not name one that lets others run."""

import time

from weft.coroutines import Channel, process, run
from weft.watchdog import Watchdog

dog = Watchdog(5)


@process
async def numbers(out, n):
    for i in range(n):
        await out.write(i)


@process
async def crunch(into):
    async for i in into:
        if i == 20:
            began = time.ticks_ms()
            while time.ticks_diff(time.ticks_ms(), began) < 40:
                pass


@process
async def total(into):
    n = 0
    async for v in into:
        n += v
    return n


c = Channel("c")
run(numbers(-c, 40), crunch(+c))
print("named:", sorted(dog.hogs), "three times or more:", min(dog.hogs.values()) >= 3)
dog.hogs.clear()
d = Channel("d")
print(run(numbers(-d, 400), total(+d)), dog.hogs)
dog.stop()

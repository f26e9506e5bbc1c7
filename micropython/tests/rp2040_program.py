"""A program for test_rp2040.py: a network on the emulated RP2040, with Weft frozen into the
firmware. It prints the results."""

import sys
import time

from machine import Pin

from weft import _core
from weft.coroutines import Channel, after, process, run, select, sleep_ms


@process
async def numbers(out, n):
    for i in range(n):
        await out.write(i)


@process
async def total(source):
    n = 0
    async for value in source:
        n += value
    return n


@process
async def blink(out):
    led = Pin(25, Pin.OUT)
    for _ in range(3):
        led.toggle()
        await sleep_ms(10)
        await out.write(led.value())


@process
async def watch(source):
    seen = []
    while len(seen) < 3:
        which, value = await select(source, after(1))
        seen.append((which, value))
    return seen


print(sys.platform, _core.NATIVE)
c = Channel("numbers")
print(run(numbers(c.writer(), 40), total(c.reader())))
d = Channel("led")
began = time.ticks_ms()
print(run(blink(d.writer()), watch(d.reader())))
print(time.ticks_diff(time.ticks_ms(), began) >= 30)

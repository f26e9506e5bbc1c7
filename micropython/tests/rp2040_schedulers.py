"""A program for test_rp2040.py: a scheduler of coroutines on each core of the emulated RP2040,
joined by lines, while the collector runs on core 0."""

import _thread
import gc

from machine import mem32

from weft.cores import core1
from weft.coroutines import BadUse, NoRoom, Parallel, process, run

CPUID = 0xD0000000  # a register that gives the number of the core that reads it


@core1.process
def numbers(out, n):
    for i in range(n):
        yield out.write(i)
    return mem32[CPUID]


@core1.process
def means(source, out):
    while True:
        a = yield source.read()
        b = yield source.read()
        yield out.write((a + b) // 2)


@process
async def total(source):
    n = 0
    async for v in source:
        n += v
        if v % 50 == 0:
            gc.collect()  # core 1 runs meanwhile
    return n, mem32[CPUID]


for _ in range(2):  # one network after the other
    raw, line = core1.Channel("raw"), core1.to_main(4, "means")
    summed, (last, left) = run(total(+line), core1.run(numbers(-raw, 300), means(+raw, -line)))
    print(summed, last, left.how)


@core1.process
def echo(source, out):
    yield core1.sleep_ms(2)
    while True:
        v = yield source.read()
        yield out.write(v)


@process
async def asks(out, source):
    got = []
    for i in range(20):
        await out.write(i)
        got.append(await source.read())
    source.poison()
    return got == list(range(20))


down, up = core1.from_main(1, "down"), core1.to_main(1, "up")
asked, (left,) = run(asks(-down, +up), core1.run(echo(+down, -up)))
print(asked, left.how)


# The heap loses the same number of bytes whether core 1 does few communications or many.
@core1.process
def count(source, out, n):
    for _ in range(n):
        v = yield source.read()
    yield out.write(v)


spare = [0]


@process
def wait(source):
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    yield source.read()
    spare[0] = gc.mem_alloc() - before
    gc.enable()


def spent(n):
    raw, line = core1.Channel("raw"), core1.to_main(4, "last")
    run(wait(+line), core1.run(numbers(-raw, n), count(+raw, -line, n)))
    return spare[0]


spent(10)
extra = spent(2000) - spent(10)
print("a byte a communication, at most:", extra < 2000 or extra)


# A third scheduler is refused: core 1 runs one network at a time, and none while other code runs on
# it.
@process
async def wants_more(source):
    await source.read()
    try:
        await Parallel(core1.run())
    except BadUse as e:
        return str(e)


up = core1.to_main(1, "up")
print(run(wants_more(+up), core1.run(numbers(-up, 4)))[0])  # the first network cannot end yet
there = [True]


def busy():
    while there[0]:
        pass


_thread.start_new_thread(busy, ())
try:
    run(core1.run())
except NoRoom as e:
    print(str(e).split("; ")[0])
there[0] = False
print(run(core1.run()))

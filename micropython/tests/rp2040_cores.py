"""A program for test_rp2040.py, on both cores of the emulated RP2040. It runs two processes of
weft.threads and tries a third, which is refused. Then it runs coroutines on core 0 beside a
function on core 1 that allocates nothing."""

import _thread
from time import sleep_ms

from machine import mem32

from weft import coroutines as C
from weft import threads as T
from weft.isr import Ring

CPUID = 0xD0000000  # a register that gives the number of the core that reads it


@T.process
def numbers(out, n):
    for i in range(n):
        out.write((i, mem32[CPUID]))


@T.process
def total(source):
    n, cores = 0, set()
    for i, core in source:
        n += i
        cores.add(core)
    return n, sorted(cores), mem32[CPUID]


for n in (1, 200):  # the second network needs core 1, which the first has left
    c = T.Channel("numbers")
    print(T.run(numbers(-c, n), total(+c)))


@T.process
def idle():
    pass


try:
    T.run(idle(), idle(), idle())
except C.NoRoom as e:
    print(str(e).split("; ")[0])

ring = Ring(32, "samples")
where = [None]


class Samples:
    next = 0


def sample(s, number):
    where[0] = mem32[CPUID]
    while s.next < number:
        if ring.put(s.next):
            s.next += 1
        else:
            sleep_ms(1)
    while not ring.put(-1):
        sleep_ms(1)


@C.process
async def sums(source):
    n = 0
    async for v in source:
        if v < 0:
            ring.close()
            return n, mem32[CPUID], where[0]
        n += v


@C.process
async def main():
    source = ring.reader()
    s = Samples()
    s.next = 0
    _thread.start_new_thread(sample, (s, 500))
    return (await C.Parallel(sums(source)))[0]


print(C.run(main()))

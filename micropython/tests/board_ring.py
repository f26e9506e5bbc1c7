"""A program for the emulated Cortex-M3, run by test_ring.py: a timer's hard interrupt fills a ring.
The interrupt runs with the heap locked."""

import weft_board

from weft.coroutines import process, run
from weft.isr import Ring

ring = Ring(4, "ring")


class Beats:
    def __init__(self):
        self.n = 0

    def put(self):
        if self.n < 10:
            ring.put(self.n)
            self.n += 1


class Allocates:
    def __init__(self):
        self.n = 0

    def put(self):
        self.n += 1
        ring.put([self.n])  # this allocates a list, which must fail in the interrupt


def beats(what, most):
    weft_board.tick(1000, what.put)
    while what.n < most:
        pass
    weft_board.tick(0, None)


@process
async def take(source):
    got = []
    async for value in source:
        got.append(value)
        if len(got) == 4:
            ring.close()
    return got


@process
async def main():
    from weft.coroutines import Parallel

    source = ring.reader()
    beats(Beats(), 10)  # meanwhile the scheduler does not poll the ring
    return (await Parallel(take(source)))[0], ring.overflows


print(run(main()))
beats(Allocates(), 1)

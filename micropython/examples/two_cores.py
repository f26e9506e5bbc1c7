"""A pipeline over two cores: core 1 samples and puts values into a ring, and a scheduler of
coroutines on core 0 does the rest. Core 1 allocates nothing: its values are numbers that fit into a
word, in slots that exist before it starts."""

from board import beside

from weft.coroutines import process, run
from weft.isr import Ring

ring = Ring(32, "samples")


class Samples:
    """The work of core 1. All its fields exist before core 1 starts."""

    def __init__(self, number):
        self.next, self.number = 0, number

    def step(self):
        """Puts as many values as there is room for. Returns True when all values and -1, the end,
        have been put."""
        while self.next < self.number:
            if not ring.put(self.next):
                return False
            self.next += 1
        return ring.put(-1)


@process
async def sums(source):
    total = n = 0
    async for value in source:
        if value < 0:
            ring.close()
            return n, total
        n += 1
        total += value


@process
async def main():
    from weft.coroutines import Parallel

    source = ring.reader()
    beside(Samples(500).step)
    return (await Parallel(sums(source)))[0]


print(run(main()))

"""A pipeline over two cores: core 1 samples and puts into a ring, a scheduler of coroutines on core 0 does the rest. Core 1 moves
values that exist and allocates nothing: numbers that fit a word, and slots that were made before."""

from weft.coroutines import process, run
from weft.isr import Ring

try:
    from time import sleep_ms
except ImportError:
    from time import sleep as _sleep

    def sleep_ms(n):
        _sleep(n / 1000)


ring = Ring(32, "samples")


def sample(number):
    """On core 1: waits while the ring is full."""
    i = 0
    while i < number:
        if ring.put(i):
            i += 1
        else:
            sleep_ms(1)
    while not ring.put(-1):
        sleep_ms(1)


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
    import _thread

    from weft.coroutines import Parallel

    source = ring.reader()
    _thread.start_new_thread(sample, (500,))
    return (await Parallel(sums(source)))[0]


print(run(main()))

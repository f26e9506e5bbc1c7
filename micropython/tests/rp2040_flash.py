"""A program for test_rp2040.py: core 0 writes files while a function on core 1 fills a ring. Both
at once have crashed MicroPython (upstream's issues 8793 and 16619)."""

import _thread
from time import sleep_us

from weft.coroutines import process, run
from weft.isr import Ring

ring = Ring(64, "samples")


class Samples:
    next = 0
    stop = False


def sample(s):
    """Runs on core 1; allocates nothing."""
    while not s.stop:
        if ring.put(s.next & 1023):
            s.next += 1
        sleep_us(200)


@process
async def watch(s):
    """Runs on core 0: reads the values, and after each 100 writes a file and reads it back."""
    source = ring.reader()
    _thread.start_new_thread(sample, (s,))
    last, wrong = -1, 0
    for i in range(6):
        for _ in range(100):
            v = await source.read()
            wrong += v != (last + 1) & 1023
            last = v
        text = "written %d\n" % i * 300
        with open("data.txt", "w") as file:
            file.write(text)
        with open("data.txt") as file:
            wrong += file.read() != text
    s.stop = True
    ring.close()
    return wrong


s = Samples()
s.next, s.stop = 0, False
print(run(watch(s)), ring.overflows > 0)

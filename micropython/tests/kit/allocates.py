"""Prints the bytes that each communication allocates, with collection off. The arguments are
`awaits` or `yields`, and the number of communications."""

import gc
import sys

from weft.coroutines import Channel, process, run


@process
async def writes(out, n):
    for _ in range(n):
        await out.write(None)


@process
async def reads(source, n):
    for _ in range(n):
        await source.read()


@process
def writes_yielding(out, n):
    for _ in range(n):
        yield out.write(None)


@process
def reads_yielding(source, n):
    for _ in range(n):
        yield source.read()


def spent(writer, reader, n):
    c = Channel("c")
    gc.collect()
    gc.disable()
    ps = [writer(c.writer(), n), reader(c.reader(), n)]
    before = gc.mem_alloc()
    run(*ps)
    after = gc.mem_alloc()
    gc.enable()
    return after - before


KINDS = {
    "awaits": (writes, reads),
    "yields": (writes_yielding, reads_yielding),
    "awaited reads": (writes_yielding, reads),
    "awaited writes": (writes, reads_yielding),
}
writer, reader = KINDS[sys.argv[1]]
n = int(sys.argv[2])
spent(writer, reader, 10)
base = spent(writer, reader, 10)  # the bytes of the network itself
print((spent(writer, reader, n + 10) - base) / n)

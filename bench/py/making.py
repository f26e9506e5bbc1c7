"""Makes N processes with bodies of two lines, each with its channel and both ends, and does not run
them. instructions.py runs this program, by on.py.
"""

import os

from sampler import numbers

from weft import Channel, process


@process
async def element(source, sink):
    while True:
        await sink.write(await source.read() + 1)


def elements(n):
    source = Channel().reader()
    for _ in range(n):
        between = Channel()
        yield element(source, between.writer())
        source = between.reader()


made = list(elements(*numbers("N")))
os._exit(0)  # nothing is freed, because only the making is counted

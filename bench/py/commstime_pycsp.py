"""CommsTime in pycsp's names, with a sequential delta. WEFT_BENCH_MODULE names the module:
weft.compat.pycsp.greenlets, pycsp.greenlets, …
"""

import importlib
import os

from sampler import Sampler, fail, numbers

p = importlib.import_module(os.environ["WEFT_BENCH_MODULE"])


@p.process
def prefix(source, sink):
    sink(0)
    while True:
        sink(source())


@p.process
def delta(source, left, right):
    while True:
        value = source()
        left(value)
        right(value)


@p.process
def successor(source, sink):
    while True:
        sink(source() + 1)


@p.process
def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = source()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()
    p.poison(source)


def main(samples, per):
    a, b, c, d = (p.Channel(name) for name in "abcd")
    p.Parallel(
        prefix(c.reader(), a.writer()),
        delta(a.reader(), b.writer(), d.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), samples, per),
    )
    p.shutdown()


main(*numbers("SAMPLES PER"))

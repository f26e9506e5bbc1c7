"""A ring of N greenlet processes of two lines; a token goes round."""

import time

from sampler import Sampler, fail, numbers, resident

from weft.greenlets import Channel, Parallel, process, run


@process
def element(source, sink):
    while True:
        value = source.read()
        sink.write(value + 1)


@process
def token(sink, source, n, before, samples, per):
    def lap():
        sink.write(0)
        value = source.read()
        if value != n - 1:
            fail(f"ring: the token came back as {value}, expected {n - 1}")

    lap()
    print(f"bytes {(resident() - before) / n:.1f}")
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        for _ in range(per):
            lap()
        sampler.end(per * n)
    sampler.print()


def elements(source, sink, n):
    """The n − 1 processes between `source` and `sink`."""
    for k in range(n - 1):
        if k == n - 2:
            yield element(source, sink)
        else:
            between = Channel()
            yield element(source, between.writer())
            source = between.reader()


@process
def main(n, samples, per):
    before = resident()
    began = time.process_time_ns()  # one long stretch, which others interrupt
    first, last = Channel(), Channel()
    ring = list(elements(first.reader(), last.writer(), n))
    print(f"create {(time.process_time_ns() - began) / n:.1f}")
    Parallel(*ring, token(first.writer(), last.reader(), n, before, samples, per))


run(main(*numbers("N SAMPLES PER")))

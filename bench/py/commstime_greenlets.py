"""CommsTime by greenlet processes, sequential delta."""

from sampler import Sampler, fail, numbers

from weft.greenlets import Channel, Parallel, process, run


@process
def prefix(source, sink):
    sink.write(0)
    while True:
        sink.write(source.read())


@process
def delta(source, left, right):
    while True:
        value = source.read()
        left.write(value)
        right.write(value)


@process
def successor(source, sink):
    while True:
        sink.write(source.read() + 1)


@process
def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = source.read()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()


@process
def main(samples, per):
    a, b, c, d = (Channel() for _ in range(4))
    Parallel(
        prefix(c.reader(), a.writer()),
        delta(a.reader(), b.writer(), d.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), samples, per),
    )


run(main(*numbers("SAMPLES PER")))

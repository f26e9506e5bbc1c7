"""CommsTime by four threads over four queue.Queue(1), with a sequential delta."""

import queue
import threading

from sampler import Sampler, fail, numbers


def prefix(source, sink):
    sink.put(0)
    while True:
        sink.put(source.get())


def delta(source, left, right):
    while True:
        value = source.get()
        left.put(value)
        right.put(value)


def successor(source, sink):
    while True:
        sink.put(source.get() + 1)


def consumer(source, samples, per):
    sampler = Sampler()
    expected = 0
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            value = source.get()
            if value != expected:
                fail(f"commstime: read {value}, expected {expected}")
            expected += 1
        if k:
            sampler.end(4 * per)
    sampler.print()


def main(samples, per):
    a, b, c, d = (queue.Queue(1) for _ in range(4))
    for function, ends in ((prefix, (c, a)), (delta, (a, b, d)), (successor, (b, c))):
        threading.Thread(target=function, args=ends, daemon=True).start()
    consumer(d, samples, per)


main(*numbers("SAMPLES PER"))

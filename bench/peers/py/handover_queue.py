"""Two threads hand an integer there and back over two queue.Queue(1). The figure is ns for a
hand-over.
"""

import queue
import threading

from sampler import Sampler, fail, numbers


def successor(source, out):
    while True:
        out.put(source.get() + 1)


def main(samples, per):
    a, b = queue.Queue(1), queue.Queue(1)
    threading.Thread(target=successor, args=(a, b), daemon=True).start()
    sampler = Sampler()
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for n in range(per):
            a.put(n)
            if b.get() != n + 1:
                fail("handover_queue: a wrong value came back")
        if k:
            sampler.end(2 * per)
    sampler.print()


main(*numbers("SAMPLES PER"))

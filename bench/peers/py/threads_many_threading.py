"""N threads start, each meets one partner once over a rendezvous of locks and waits again, and then
all threads are made to end.
"""

import threading

from sampler import Sampler, fail, numbers


class Rendezvous:
    """Passes one value at a time from a writer to a reader; each side takes its turn by a lock."""

    def __init__(self):
        self.writing, self.reading = threading.Lock(), threading.Lock()
        self.there, self.taken = threading.Lock(), threading.Lock()
        self.there.acquire()
        self.taken.acquire()
        self.value = None
        self.ended = False

    def write(self, value):
        with self.writing:
            self.value = value
            self.there.release()
            self.taken.acquire()

    def read(self):
        with self.reading:
            if self.ended:
                return None
            self.there.acquire()
            if self.ended:
                return None
            value = self.value
            self.taken.release()
            return value

    def end(self):
        self.ended = True
        self.there.release()


def worker(source, sink):
    sink.write(source.read())
    source.read()


def partner(source, sink, n):
    for value in range(n):
        sink.write(value)
    total = 0
    for _ in range(n):
        total += source.read()
    if total != n * (n - 1) // 2:
        fail(f"threads_many: the sum is {total}, expected {n * (n - 1) // 2}")
    sink.end()


def main(n, samples):
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        there, back = Rendezvous(), Rendezvous()
        threads = [threading.Thread(target=worker, args=(there, back)) for _ in range(n)]
        threads.append(threading.Thread(target=partner, args=(back, there, n)))
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        sampler.end(n)
    sampler.print()


main(*numbers("N SAMPLES"))

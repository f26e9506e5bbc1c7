"""PER calls of a function that takes 100 µs of CPU, over WORKERS processes of
weft.processes.Executor. The figure is ns for a call.
"""

import sys
import time

from sampler import Sampler, fail, numbers


def busy(n):
    """Uses 100 µs of its own CPU time; waiting for a CPU does not count towards it."""
    end = time.thread_time_ns() + 100_000
    while time.thread_time_ns() < end:
        pass
    return n + 1


def measure(executor, workers, samples, per):
    sampler = Sampler()
    with executor as pool:
        for _ in pool.map(busy, range(workers * 20)):  # these calls warm up the OS processes
            pass
        for _ in range(samples):
            sampler.begin()
            results = list(pool.map(busy, range(per)))
            sampler.end(per)
            if results != list(range(1, per + 1)):
                fail(f"{sys.argv[0]}: a wrong result")
    sampler.print()


def main(workers, samples, per):
    from weft.processes import Executor

    measure(Executor(workers), workers, samples, per)


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES PER"))

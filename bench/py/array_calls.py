"""Four calls of a function that adds up one array of MB megabytes, over WORKERS processes of
weft.processes.Executor. The figure is ns for the four calls. Each sample uses another array.
"""

import numpy
from sampler import Sampler, fail, numbers

CALLS = 4


def total(array):
    return float(array.sum())


def measure(four, samples, mb):
    """Measures four(array), which returns the results of four calls of total(array)."""
    sampler = Sampler()
    for k in range(samples + 1):
        array = numpy.full(mb * 125_000, float(k))
        sampler.begin()
        results = list(four(array))
        if k:  # the first four calls start the OS processes
            sampler.end(1)
        if results != [k * array.size] * CALLS:
            fail("array_calls: a wrong sum")
    sampler.print()


def main(workers, samples, mb):
    from weft.processes import Executor

    with Executor(workers) as pool:
        measure(lambda array: pool.map(total, [array] * CALLS), samples, mb)


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES MB"))

"""The parts that the programs between two OS processes share, Weft's and the peers': CPUs, the
clock, and the values that are sent.

KIND is dict (1,000 items, names to numbers), array (1 MB of float64) or bytes (1 MB).
"""

import os
import time

# perf_counter_ns() reads a clock of the whole system, not of one process (Linux: CLOCK_MONOTONIC).
now = time.perf_counter_ns
MEGABYTE = 1 << 20


def pin(k):
    """Pins this thread to the first (0) or the last (1) of the CPUs that the harness gave this
    program.
    """
    mine = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {mine[-k]})


def payload(kind):
    if kind == "dict":
        return {f"name {i}": i for i in range(1000)}
    if kind == "bytes":
        return bytes(range(256)) * (MEGABYTE // 256)
    import numpy

    return numpy.arange(MEGABYTE // 8, dtype=numpy.float64)


def check(kind, value, expected):
    """Returns whether the value that arrived is the one that was sent, by its size and its first
    and last items: a complete check would read the value twice.
    """
    if kind == "dict":
        return value == expected
    return len(value) == len(expected) and value[0] == expected[0] and value[-1] == expected[-1]

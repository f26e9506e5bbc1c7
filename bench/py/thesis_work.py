"""Contains the workloads of the thesis on compiled components, in Python, and the method by which
the thesis's main thread counts (theses/COMPONENTS.md).
"""

import math
import os
import time

WORKERS = 2
MASK = (1 << 64) - 1


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


def allocate(n):
    for block in [bytearray(4096) for _ in range(100)]:
        block[n % 4096] = 1
    return n


WORK = {
    "messaging": lambda n: n,
    "light": lambda n: fibonacci(math.isqrt(n)),
    "heavy": fibonacci,
    "recursive": recursive,
    "alloc": allocate,
}


def expected(workload, messages):
    """Returns the sum of a worker's results for the numbers 1 to `messages`, modulo 2 to the 64th.
    The sum is computed without the worker's recursion, which would take long.
    """
    work = fibonacci if workload == "recursive" else WORK[workload]
    return sum(work(n) for n in range(1, messages + 1)) & MASK


def figures(workload, messages, samples, once):
    """Runs `once()`, which returns each worker's sum, once to warm up and then `samples` times;
    prints the ns for a pair of messages.

    With THESIS_FIRST in the environment it also prints the first run, which warms up: `first NS`;
    and the CPU time that this program has used in each of the other runs, for all its threads
    together: `cpu NS…`. Other programs on the machine affect that time little.
    """
    right = [expected(workload, messages)] * WORKERS
    ns, cpu = [], []
    for k in range(samples + 1):
        begun, worked = time.perf_counter_ns(), time.process_time_ns()
        sums = once()
        took, worked = time.perf_counter_ns() - begun, time.process_time_ns() - worked
        if [s & MASK for s in sums] != right:
            raise SystemExit(f"{workload}: a worker's results add up to {sums}, not to {right}")
        if k:
            ns.append(took / messages / WORKERS)
            cpu.append(worked / messages / WORKERS)
        elif os.environ.get("THESIS_FIRST"):
            print(f"first {took / messages / WORKERS:.3f}")
    if os.environ.get("THESIS_FIRST"):
        print("cpu", *(f"{v:.3f}" for v in cpu))
    print("ns", *(f"{v:.3f}" for v in ns))

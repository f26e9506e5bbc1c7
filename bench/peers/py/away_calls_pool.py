"""The calls of away_calls.py over WORKERS processes of concurrent.futures.ProcessPoolExecutor, with
the start method spawn. The figure is ns for a call.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from away_calls import measure
from sampler import numbers


def main(workers, samples, per):
    spawn = multiprocessing.get_context("spawn")
    measure(ProcessPoolExecutor(workers, mp_context=spawn), workers, samples, per)


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES PER"))

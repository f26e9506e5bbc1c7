"""The calls of file_calls.py over concurrent.futures.ProcessPoolExecutor, with the start method
spawn and no progress bar.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from file_calls import measure
from sampler import numbers


def main(workers, samples, per):
    spawn = multiprocessing.get_context("spawn")
    measure(ProcessPoolExecutor(workers, mp_context=spawn), samples, per)


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES PER"))

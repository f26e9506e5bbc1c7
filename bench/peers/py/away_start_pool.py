"""Starts a multiprocessing.Pool of N, runs N calls and joins the pool. The figure is ns for a
process: the whole time ÷ N. The start method is spawn.
"""

import multiprocessing

from sampler import Sampler, numbers


def nothing(_):
    pass


def main(n, samples):
    spawn = multiprocessing.get_context("spawn")
    sampler = Sampler()
    for _ in range(samples):
        sampler.begin()
        with spawn.Pool(n) as pool:
            pool.map(nothing, range(n), chunksize=1)
            pool.close()
            pool.join()
        sampler.end(n)
    sampler.print()


if __name__ == "__main__":
    main(*numbers("N SAMPLES"))

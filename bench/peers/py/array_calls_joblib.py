"""The calls of array_calls.py by joblib.Parallel, whose processes (loky) also stay warm."""

from array_calls import CALLS, measure, total
from joblib import Parallel, delayed
from sampler import numbers


def main(workers, samples, mb):
    pool = Parallel(n_jobs=workers)
    measure(lambda array: pool(delayed(total)(array) for _ in range(CALLS)), samples, mb)


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES MB"))

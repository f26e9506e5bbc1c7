"""Reads PER gzip files and counts their words, with a call for each file, over WORKERS processes of
weft.processes.Executor, with its progress bar. The figure is ns for a file.
"""

import gzip
import os
import sys
import tempfile
from pathlib import Path

from sampler import Sampler, fail, numbers

WORDS = 2_000


def count(path):
    with gzip.open(path, "rt", encoding="ascii") as file:
        return len(file.read().split())


def measure(executor, samples, per, **options):
    sampler = Sampler()
    with tempfile.TemporaryDirectory() as folder, executor as pool:
        paths = [str(Path(folder, f"{n}.gz")) for n in range(per)]
        for n, path in enumerate(paths):
            with gzip.open(path, "wt", encoding="ascii", compresslevel=1) as file:
                file.write(" ".join(f"w{n * k % 977}" for k in range(WORDS)))
        list(pool.map(count, paths[:20]))  # these calls warm up the OS processes
        for _ in range(samples):
            sampler.begin()
            results = list(pool.map(count, paths, **options))
            sampler.end(per)
            if results != [WORDS] * per:
                fail(f"{sys.argv[0]}: a wrong number of words")
    sampler.print()


def main(workers, samples, per):
    from weft.processes import Executor

    os.environ["FORCE_COLOR"] = "1"  # rich draws as it does on a terminal
    measure(Executor(workers), samples, per, progress="always")


if __name__ == "__main__":
    main(*numbers("WORKERS SAMPLES PER"))

"""The yardstick: the work KIND of away_tasks.py by WORKERS OS processes that do not communicate;
each does every WORKERS-th task.

The figure is the ns from the processes' release to the end of the last process. The processes are
started by multiprocessing, and are warm.
"""

import multiprocessing
import os
import sys

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from away_tasks import Work, tasks_of, wrong
from sampler import Sampler, fail, numbers


def worker(pipe, k, workers, kind):
    while (per := pipe.recv()) is not None:
        work = Work(kind, per)
        pipe.send(None)  # reports that this process is ready
        pipe.recv()
        for task in tasks_of(kind, per)[k::workers]:
            work.do(task)
        pipe.send(work.total)


def measure(pipes, kind, per, sampler):
    for pipe in pipes:
        pipe.send(per)
    for pipe in pipes:
        pipe.recv()
    sampler.begin()
    for pipe in pipes:
        pipe.send(None)
    totals = [pipe.recv() for pipe in pipes]
    sampler.end(1)
    if why := wrong(kind, per, totals):
        fail(f"away_work_apart: {why}")


def main():
    kind = sys.argv.pop(1)
    workers, samples, per = numbers("WORKERS SAMPLES PER")
    spawn = multiprocessing.get_context("spawn")
    pipes, children = [], []
    for k in range(workers):
        ours, theirs = spawn.Pipe()
        pipes.append(ours)
        children.append(spawn.Process(target=worker, args=(theirs, k, workers, kind)))
        children[-1].start()
    measure(pipes, kind, max(16, per // 16), Sampler())  # the first run warms up
    sampler = Sampler()
    for _ in range(samples):
        measure(pipes, kind, per, sampler)
    for pipe in pipes:
        pipe.send(None)
    for child in children:
        child.join()
    sampler.print()


if __name__ == "__main__":
    main()

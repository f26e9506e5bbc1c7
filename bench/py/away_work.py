"""The work KIND of away_tasks.py by WORKERS processes on hosts that are warm; the workers take
tasks from one channel. The figure is ns for a whole run.
"""

import sys

from away_tasks import Work, tasks_of, wrong
from sampler import Sampler, fail, numbers

from weft import threads
from weft.processes import Channel, Hosts, process, run


@process
def worker(tasks, done, kind, per):
    work = Work(kind, per)
    done.write(None)  # reports that this worker is ready
    for task in tasks:
        work.do(task)
    done.write(work.total)


@threads.process
def source(out, ready, go, kind, per):
    """Hands out the tasks when all workers are ready."""
    ready.read()
    go.write(None)
    for task in tasks_of(kind, per):
        out.write(task)


@threads.process
def sink(done, ready, go, workers, kind, per, sampler):
    for _ in range(workers):
        done.read()
    ready.write(None)
    go.read()
    if sampler is not None:
        sampler.begin()
    totals = [done.read() for _ in range(workers)]
    if sampler is not None:
        sampler.end(1)
    if why := wrong(kind, per, totals):
        fail(f"away_work: {why}")


def network(hosts, workers, kind, per, sampler):
    tasks, done, ready, go = (Channel(name) for name in ("tasks", "done", "ready", "go"))
    run(
        source(tasks.writer(), ready.reader(), go.writer(), kind, per),
        sink(done.reader(), ready.writer(), go.reader(), workers, kind, per, sampler),
        *(worker.on(hosts)(tasks.reader(), done.writer(), kind, per) for _ in range(workers)),
    )


def main():
    kind = sys.argv.pop(1)
    workers, samples, per = numbers("WORKERS SAMPLES PER")
    sampler = Sampler()
    with Hosts(workers) as hosts:
        network(hosts, workers, kind, max(16, per // 16), None)  # this run warms up
        for _ in range(samples):
            network(hosts, workers, kind, per, sampler)
    sampler.print()


if __name__ == "__main__":
    main()

"""Jobs for WORKERS workers, as in the PyCSP paper's listing 7. Run this file by on.py, or by `weft
run --on BACKEND`.

KIND: numpy or compiled (the Mandelbrot set of the paper's figure 7, PER × PER points, in 100 jobs),
or montecarlo (table 1: PER random points in pure Python, in 20 jobs). The figure is the ns of a
run, from the moment when all workers have reported that they are ready to the last result.
"""

import ctypes
import os
import random
import subprocess
import sys
from pathlib import Path

from sampler import Sampler, fail, numbers

from weft import Channel, Output, Parallel, process, run, select

KINDS = ("numpy", "compiled", "montecarlo")
STEPS = 1000  # the picture in the paper has 5000 steps
XMIN, XMAX = -1.6744096758873175, -1.6744096714940624
YMIN, YMAX = 0.00004716419197284976, 0.000047167062611931696

SOURCE = """
void escape(double x0, double dx, double y, int n, int steps, int* out) {
  for (int i = 0; i < n; ++i) {
    double cx = x0 + i * dx, x = 0, z = 0;
    int k = 0;
    while (k < steps && x * x + z * z <= 4) {
      const double t = x * x - z * z + cx;
      z = 2 * x * z + y;
      x = t;
      ++k;
    }
    out[i] = k;
  }
}
"""


def compiled():
    """Returns the compiled worker's library. The library is compiled once for each version of the
    source, into the folder of builds.
    """
    folder = Path(__file__).resolve().parents[2] / ".build" / "bench"
    library = folder / f"escape-{abs(hash_of(SOURCE)):x}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = library.with_suffix(f".{os.getpid()}")
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made)],
            input=SOURCE,
            text=True,
            check=True,
        )
        made.replace(library)
    loaded = ctypes.CDLL(str(library))
    loaded.escape.argtypes = [
        ctypes.c_double,
        ctypes.c_double,
        ctypes.c_double,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_int),
    ]
    loaded.escape.restype = None
    return loaded.escape


def hash_of(text):
    value = 0
    for byte in text.encode():
        value = (value * 31 + byte) % (1 << 61)
    return value


class Work:
    """The work of one worker. A job is a range of lines, or a number of points with their seed."""

    def __init__(self, kind, per):
        self.kind, self.per = kind, per
        if kind == "compiled":
            self.escape = compiled()
            self.counts = (ctypes.c_int * per)()
        elif kind == "numpy":
            import numpy

            self.numpy = numpy

    def do(self, job):
        if self.kind == "montecarlo":
            return self.points(*job)
        line = self.numpy_line if self.kind == "numpy" else self.compiled_line
        return sum(line(YMIN + (YMAX - YMIN) * y / self.per) for y in range(*job))

    def points(self, seed, count):
        rng = random.Random(seed)
        inside = 0
        for _ in range(count):
            x, y = rng.random(), rng.random()
            if x * x + y * y <= 1:
                inside += 1
        return inside

    def compiled_line(self, y):
        dx = (XMAX - XMIN) / self.per
        self.escape(XMIN, dx, y, self.per, STEPS, self.counts)
        return sum(self.counts)

    def numpy_line(self, y):
        numpy = self.numpy
        c = XMIN + (XMAX - XMIN) / self.per * numpy.arange(self.per) + 1j * y
        z = numpy.zeros_like(c)
        count = numpy.zeros(self.per, dtype=numpy.int64)
        for _ in range(STEPS):
            inside = z.real * z.real + z.imag * z.imag <= 4
            if not inside.any():
                break
            count += inside
            z = numpy.where(inside, z * z + c, z)
        return int(count.sum())


def jobs_of(kind, per):
    if kind == "montecarlo":
        return [(seed, per // 20) for seed in range(20)]
    parts = min(100, per)
    return [(per * k // parts, per * (k + 1) // parts) for k in range(parts)]


@process
async def worker(jobs, results, kind, per):
    work = Work(kind, per)
    await results.write(None)
    async for job in jobs:
        await results.write(work.do(job))


@process
async def delegate(jobs_out, results, kind, workers, samples, per):
    for _ in range(workers):
        await results.read()
    sampler = Sampler()
    totals = set()
    for _ in range(samples):
        left = jobs_of(kind, per)
        wanted, got, total = len(left), 0, 0
        sampler.begin()
        while got < wanted:
            k, value = await select(
                results, Output(jobs_out, left[-1] if left else None).when(bool(left))
            )
            if k == 0:
                got += 1
                total += value
            else:
                left.pop()
        sampler.end(1)
        totals.add(total)
    if len(totals) != 1:
        fail(f"jobs: the runs do not agree: {sorted(totals)}")
    total = totals.pop()
    if kind == "montecarlo":
        if abs(4 * total / (per // 20 * 20) - 3.14159) > 0.05:
            fail(f"jobs: π is {4 * total / per}")
    elif not 0.02 < total / (per * per * STEPS) <= 1:
        fail(f"jobs: {total} steps in all")
    sampler.print()


def kind_of():
    kind = sys.argv[1] if len(sys.argv) > 1 else "none"
    if kind not in KINDS:
        fail(f"jobs: KIND is one of {', '.join(KINDS)}, not {kind}")
    return kind


@process
async def main(kind, workers, samples, per):
    if kind == "compiled":
        compiled()  # The library is compiled before the workers need it.
    jobs, results = Channel("jobs"), Channel("results")
    ends = [(jobs.reader(), results.writer()) for _ in range(workers)]
    await Parallel(
        delegate(jobs.writer(), results.reader(), kind, workers, samples, per),
        *(worker(r, w, kind, per) for r, w in ends),
    )


# (Each OS process runs this file up to run(), so this line must not change sys.argv.)
run(main(kind_of(), *numbers("KIND WORKERS SAMPLES PER", words=1)))

"""Defines work for several CPUs, the same for Weft and for the yardstick: KIND is cut into tasks,
whose results are added up.

mandelbrot: PER lines of PER points, 200 steps, numpy; the result is the sum of the steps.
montecarlo: PER million points for π, numpy. wordcount: PER megabytes of text made of 20,000 words;
the result is the number of times that each word occurs.
"""

import random
from collections import Counter

STEPS = 200
LINES = 8  # lines of a task
POINTS = 100_000  # points of a task


def tasks_of(kind, per):
    """Returns the tasks, each a number."""
    if kind == "mandelbrot":
        return range(0, per, LINES)
    return range(per * 10 if kind == "montecarlo" else per)


class Work:
    """Does the tasks of one worker, and adds their results up."""

    def __init__(self, kind, per):
        self.per = per
        self.do = getattr(self, kind)
        self.total = Counter() if kind == "wordcount" else 0
        if kind == "wordcount":
            rng = random.Random(1)
            words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(20_000)]
            self.text = " ".join(rng.choices(words, k=170_000))[: 1 << 20]
        else:
            import numpy

            self.numpy = numpy
            # The arrays are allocated once, because the kernel's work for a new allocation depends
            # on the thread's arena.
            self.points, self.inside = numpy.empty((2, POINTS)), numpy.empty(POINTS, dtype=bool)

    def mandelbrot(self, first):
        numpy = self.numpy
        per = self.per
        x = numpy.linspace(-2, 0.5, per)
        for line in range(first, min(first + LINES, per)):
            c = x + 1j * (2.5 * line / per - 1.25)
            z = numpy.zeros_like(c)
            count = numpy.zeros(per, dtype=numpy.int64)
            for _ in range(STEPS):
                z = numpy.where(abs(z) <= 2, z * z + c, z)
                count += abs(z) <= 2
            self.total += int(count.sum())

    def montecarlo(self, seed):
        x, y = self.numpy.random.default_rng(seed).random(out=self.points)
        x *= x
        y *= y
        x += y
        self.numpy.less_equal(x, 1, out=self.inside)
        self.total += int(self.numpy.count_nonzero(self.inside))

    def wordcount(self, megabyte):
        at = megabyte * 4096 % len(self.text)  # every megabyte begins at another place in the text
        self.total.update((self.text[at:] + " " + self.text[:at]).split())


def wrong(kind, per, totals):
    """Returns a description of the fault in the results of all workers, or None if there is
    none."""
    if kind == "montecarlo":
        pi = 4 * sum(totals) / (len(tasks_of(kind, per)) * POINTS)
        return None if abs(pi - 3.14159) < 0.02 else f"π is {pi}"
    # The limits enclose the set's share of this part of the plane, with some points near the set.
    if kind == "mandelbrot":
        share = sum(totals) / (per * per * STEPS)
        return None if 0.2 < share < 0.35 else f"{share} of all steps"
    count = sum(sum(t.values()) for t in totals)
    return None if 160_000 * per < count < 210_000 * per else f"{count} words"

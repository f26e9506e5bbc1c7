"""The Mandelbrot set in numpy: the work of a worker, and the colours of the picture. This module
uses no processes.

A pixel's *height* is its escape time made smooth, ν = n + 1 − log₂(ln|z| / ln B), with n the first
iteration at which |z| > B (the "normalised iteration count" of Peitgen and Richter); NaN if the
pixel has not escaped after the last iteration.

Invariants of `heights`
- Points that have escaped leave the arrays, so that only the remaining points cost work.
- The arrays of the remaining points are contiguous complex128, and every operation on them is in
  place: two numpy calls an iteration, each of which releases the GIL while it runs.
- Only once in STRIDE iterations is it checked which points have escaped. Those points are run again
  from the beginning of the stride, with each step recorded, so that their escape time is exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRIDE = 20
# A point counts as escaped when its |z| is above this value; it is large, so that the smooth height
# has no seams.
BAILOUT = 256.0


@dataclass(frozen=True)
class View:
    """A rectangle of the complex plane at a resolution, and the maximum number of iterations for a
    pixel."""

    width: int
    height: int
    iterations: int
    xmin: float = -1.6744096758873175
    xmax: float = -1.6744096714940624
    ymin: float = 0.00004716419197284976
    ymax: float = 0.000047167062611931696

    def band(self, top: int, bottom: int) -> NDArray[np.complex128]:
        """Returns the points of the rows top … bottom − 1, row by row; row 0 is at ymax, as in
        pictures.
        """
        x = np.linspace(self.xmin, self.xmax, self.width)
        y = np.linspace(self.ymax, self.ymin, self.height)[top:bottom]
        return (x[np.newaxis, :] + 1j * y[:, np.newaxis]).ravel()


def bands(rows: int, jobs: int) -> list[tuple[int, int]]:
    """Splits `rows` rows into at most `jobs` bands (top, bottom), whose heights differ by one row
    at most.
    """
    jobs = min(jobs, rows)
    edges = [rows * i // jobs for i in range(jobs + 1)]
    return list(itertools.pairwise(edges))


def compute(view: View, top: int, bottom: int) -> NDArray[np.float32]:
    """Returns the heights of the rows top … bottom − 1, shape (bottom − top, width)."""
    return heights(view.band(top, bottom), view.iterations).reshape(bottom - top, view.width)


def heights(points: NDArray[np.complex128], iterations: int) -> NDArray[np.float32]:
    """Returns the smooth escape time of each point; NaN for points that stay within BAILOUT for all
    iterations.
    """
    result = np.full(points.size, np.nan, np.float32)
    alive = np.arange(points.size)  # the point that each entry of the arrays belongs to
    c = points.astype(np.complex128)
    z = np.zeros_like(c)
    done = 0
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # escaped points overflow before the next check
        while done < iterations and alive.size:
            steps = min(STRIDE, iterations - done)
            start = z.copy()
            for _ in range(steps):
                np.square(z, out=z)
                np.add(z, c, out=z)
            living = np.abs(z) <= BAILOUT  # false for NaN too
            if not living.all():
                gone = ~living
                result[alive[gone]] = done + _escape(start[gone], c[gone], steps)
                alive, z, c = alive[living], z[living], c[living]
            done += steps
    return result


def _escape(
    z: NDArray[np.complex128], c: NDArray[np.complex128], steps: int
) -> NDArray[np.float64]:
    """Returns the smooth escape time of points that all escape within `steps` iterations of z."""
    path = np.empty((steps, z.size), np.complex128)
    for row in path:
        np.square(z, out=row)
        np.add(row, c, out=row)
        z = row
    size = np.abs(path)
    first = np.argmax(~(size <= BAILOUT), axis=0)
    size = size[first, np.arange(first.size)]
    return first + 2 - np.log2(np.log(size) / np.log(BAILOUT))


def colour(height: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Returns an RGB picture of the heights, shape (rows, columns, 3). Points that never escaped
    are black.

    The colour follows the rank of a height, mixed with its logarithm, rather than the height
    itself: most of this view's heights lie within a few iterations of each other, and the rest
    reach a hundred times as far.
    """
    inside = np.isnan(height)
    outside = height[~inside].astype(np.float64)
    picture = np.zeros((*height.shape, 3), np.uint8)
    if not outside.size:
        return picture
    order = np.sort(outside)
    rank = np.searchsorted(order, outside) / outside.size
    depth = np.log1p(outside - order[0])
    phase = 0.78 * rank + 0.34 * depth
    picture[~inside] = _palette(phase)
    return picture


# The colours for the phases 0 … 1, and then from the start again: night blue, sea, cream, amber,
# wine.
_STOPS = np.array(
    [(6, 10, 46), (21, 88, 160), (240, 249, 232), (255, 176, 32), (110, 18, 48)], np.float64
)


def _palette(phase: NDArray[np.float64]) -> NDArray[np.uint8]:
    at = (phase % 1.0) * len(_STOPS)
    stop = at.astype(np.intp) % len(_STOPS)
    part = at - np.floor(at)
    part = (part * part * (3 - 2 * part))[
        :, np.newaxis
    ]  # smoothstep: no edges where two colours meet
    rgb = _STOPS[stop] * (1 - part) + _STOPS[(stop + 1) % len(_STOPS)] * part
    return (rgb + 0.5).astype(np.uint8)

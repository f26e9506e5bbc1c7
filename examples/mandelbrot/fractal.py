"""The Mandelbrot set in numpy: what a worker computes and how the picture is coloured. It knows
nothing of processes.

A pixel's *height* is its escape time made smooth, ν = n + 1 − log₂(ln|z| / ln B), with n the first
iteration at which |z| > B (the "normalised iteration count" of Peitgen and Richter); NaN if it has
not escaped after the last iteration.

Invariants of `heights`
- Points that have escaped leave the arrays, so the work is what the living points need.
- The live arrays are contiguous complex128 and every operation on them is in place: two numpy calls
  an iteration, each of which lets go of the GIL while it runs.
- Whether points escaped is asked once in STRIDE iterations only. Those that did are run again from
  where the stride began, each step on record, so that their escape time is exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRIDE = 20
BAILOUT = 256.0  # |z| beyond which a point counts as escaped; large, so that the smooth height has no seams


@dataclass(frozen=True)
class View:
    """A rectangle of the complex plane at a resolution, and how many iterations a pixel may
    take."""

    width: int
    height: int
    iterations: int
    xmin: float = -1.6744096758873175
    xmax: float = -1.6744096714940624
    ymin: float = 0.00004716419197284976
    ymax: float = 0.000047167062611931696

    def band(self, top: int, bottom: int) -> NDArray[np.complex128]:
        """The points of the rows top … bottom − 1, row by row; row 0 is at ymax, as pictures
        are."""
        x = np.linspace(self.xmin, self.xmax, self.width)
        y = np.linspace(self.ymax, self.ymin, self.height)[top:bottom]
        return (x[np.newaxis, :] + 1j * y[:, np.newaxis]).ravel()


def bands(rows: int, jobs: int) -> list[tuple[int, int]]:
    """Splits `rows` rows into at most `jobs` bands (top, bottom), whose heights differ by one row
    at most."""
    jobs = min(jobs, rows)
    edges = [rows * i // jobs for i in range(jobs + 1)]
    return list(itertools.pairwise(edges))


def compute(view: View, top: int, bottom: int) -> NDArray[np.float32]:
    """The heights of the rows top … bottom − 1, shape (bottom − top, width)."""
    return heights(view.band(top, bottom), view.iterations).reshape(bottom - top, view.width)


def heights(points: NDArray[np.complex128], iterations: int) -> NDArray[np.float32]:
    """The smooth escape time of each point; NaN for those that stay within BAILOUT for all
    iterations."""
    result = np.full(points.size, np.nan, np.float32)
    alive = np.arange(points.size)  # which point the live arrays' entries belong to
    c = points.astype(np.complex128)
    z = np.zeros_like(c)
    done = 0
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # what has escaped overflows before it is asked
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
    """The smooth escape time of points all of which escape within `steps` iterations of z."""
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
    """An RGB picture of the heights, shape (rows, columns, 3). Points that never escaped are black.

    Colour follows the rank of a height rather than the height, mixed with its logarithm: most of
    this view's heights lie within a few iterations of each other and the rest reach a hundred times
    further.
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


# The colours that phase 0 … 1 runs through and around again: night blue, sea, cream, amber, wine.
_STOPS = np.array(
    [(6, 10, 46), (21, 88, 160), (240, 249, 232), (255, 176, 32), (110, 18, 48)], np.float64
)


def _palette(phase: NDArray[np.float64]) -> NDArray[np.uint8]:
    at = (phase % 1.0) * len(_STOPS)
    stop = at.astype(np.intp) % len(_STOPS)
    part = at - np.floor(at)
    part = (part * part * (3 - 2 * part))[
        :, np.newaxis
    ]  # smoothstep: no edges where two stops meet
    rgb = _STOPS[stop] * (1 - part) + _STOPS[(stop + 1) % len(_STOPS)] * part
    return (rgb + 0.5).astype(np.uint8)

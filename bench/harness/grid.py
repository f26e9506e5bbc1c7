"""Curves over one variable: measured in interleaved rounds, drawn on logarithmic axes, and printed
as a table.

This module serves the experiments of papers (theses/cppcsp.py, theses/pycsp.py), which are drawn
over a whole grid; ./run bench judges ratios instead.

Invariants
- Each point is the least of its samples over all rounds.
- A curve ends where its program fails: larger values of the variable are not tried, and the reason
  is kept.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from . import runner
from .build import Program

# Bytes of memory; with less, the system would kill some program, perhaps not the program that uses
# the memory.
SPARE = 2 << 30
COLOURS = ("#1b6ca8", "#d1495b", "#2a9d5c", "#8a5fbf", "#e08e0b", "#444444")


@dataclass(frozen=True)
class Experiment:
    """Curves over one variable. `curves[name]` holds the arguments of the program for a point, with
    {x} in place of the variable.
    """

    name: str
    title: str
    x: str
    y: str
    source: str
    cpus: int
    points: Sequence[int]
    curves: Mapping[str, Sequence[str]]
    scale: float = 1.0  # the factor from the program's ns to y
    largest: Mapping[str, int] = field(default_factory=dict)  # curve → the last value that is tried

    def tried(self, curve: str) -> list[int]:
        return [x for x in self.points if x <= self.largest.get(curve, x)]


@dataclass
class Found:
    """The figures of a measurement: y by curve and point; the bytes of each process, if a program
    reports them; and the reasons why curves ended early.
    """

    values: dict[str, dict[int, float]] = field(default_factory=dict)
    bytes: dict[str, dict[int, float]] = field(default_factory=dict)
    ended: dict[str, tuple[int, str]] = field(default_factory=dict)


def measure(
    e: Experiment,
    program: Callable[[str, int], Program],
    cpus: Sequence[int],
    rounds: int,
    may_end: bool = False,
    timeout: float = 900.0,
) -> Found:
    """Runs `program(curve, x)` for all points, round by round. Raises RunError. With `may_end`, a
    failure only ends its curve, and so does a program that leaves less than SPARE bytes of memory.
    """
    found = Found({c: {} for c in e.curves}, {c: {} for c in e.curves})
    total, done = rounds * sum(len(e.tried(c)) for c in e.curves), 0
    if not sys.stderr.isatty():
        print(f"{e.name}: {total} runs", file=sys.stderr, flush=True)
    for _ in range(rounds):
        for x in e.points:
            for curve in e.curves:
                if x not in e.tried(curve):
                    continue
                done += 1
                if sys.stderr.isatty():
                    progress = f"\r\033[K{e.name} {done}/{total}: {curve} {x}"
                    print(progress, end="", file=sys.stderr, flush=True)
                if x >= found.ended.get(curve, (math.inf, ""))[0]:
                    continue
                try:
                    got = runner.run_once(program(curve, x), cpus, timeout, SPARE if may_end else 0)
                except runner.RunError as error:
                    if not may_end:
                        raise
                    found.ended[curve] = (x, str(error))
                    found.values[curve].pop(x, None)
                    continue
                values = found.values[curve]
                values[x] = min(min(got["ns"]) * e.scale, values.get(x, math.inf))
                if "bytes" in got:
                    found.bytes[curve][x] = max(got["bytes"])
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def ticks(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def plot(e: Experiment, found: Mapping[str, Mapping[int, float]]) -> str:
    """Returns the curves as an SVG; both axes are logarithmic."""
    width, height, left, right, top, bottom = 640, 400, 70, 120, 40, 50
    values = [v for curve in found.values() for v in curve.values()]
    if not values:
        raise ValueError(f"{e.name}: nothing to draw")
    rows = ticks(min(values), max(values) * 1.001)
    x0, x1 = math.log2(min(e.points)), math.log2(max(e.points)) or 1.0
    y0, y1 = math.log10(rows[0]), math.log10(rows[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log2(x) - x0) / ((x1 - x0) or 1) * (width - left - right) + left
        return across, height - bottom - (math.log10(y) - y0) / ((y1 - y0) or 1) * (
            height - top - bottom
        )

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14">{escape(e.title)}</text>',
        f'<text x="{(left + width - right) / 2}" y="{height - 10}" text-anchor="middle">{escape(e.x)}</text>',
        f'<text x="16" y="{height / 2}" text-anchor="middle" transform="rotate(-90 16 {height / 2})">{escape(e.y)}</text>',
    ]
    for value in rows:
        _, y = at(e.points[0], value)
        out.append(f'<path d="M{left} {y:.1f}H{width - right}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
    for point in e.points:
        x, _ = at(point, rows[0])
        out.append(
            f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle">{short(point)}</text>'
        )
    ends = []
    for colour, (curve, data) in zip(COLOURS, found.items(), strict=False):
        if not data:
            continue
        places = [at(x, y) for x, y in sorted(data.items())]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        ends.append([places[-1][1], colour, curve])
    previous = 0.0
    # The names are placed beside the last points, without overlapping.
    for y, colour, curve in sorted(ends):
        previous = max(float(y), previous + 14)
        out.append(
            f'<text x="{width - right + 10}" y="{previous + 4:.1f}" fill="{colour}">{escape(str(curve))}</text>'
        )
    return "\n".join([*out, "</svg>", ""])


def short(n: int) -> str:
    for size, letter in ((2**20, "M"), (2**10, "k")):
        if n >= size and n % size == 0:
            return f"{n // size}{letter}"
    return str(n)


def table(e: Experiment, found: Mapping[str, Mapping[int, float]]) -> str:
    lines = [
        f"### {e.title} ({e.y})",
        "",
        f"| {e.x} | " + " | ".join(found) + " |",
        "|---:|" + "---:|" * len(found),
    ]
    lines += [
        f"| {x:,} | " + " | ".join(number(data.get(x)) for data in found.values()) + " |"
        for x in e.points
    ]
    return "\n".join([*lines, ""])


def number(value: float | None) -> str:
    """Returns the value with four digits; "" for a point that was not measured."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.4g}"

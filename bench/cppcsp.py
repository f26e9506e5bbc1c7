"""./run cppcsp: the experiments of the C++CSP paper over its whole grid; tables and plots to out/cppcsp.

    ./run cppcsp             Monte Carlo 2^24 iterations, Mandelbrot 2^8 to 2^11, StressedAlt 64 to 65,536, messages 8 B to 16 MB
    ./run cppcsp --full      the paper's sizes: 2^30 iterations, Mandelbrot to 2^13
    ./run cppcsp --only WORD the experiments whose name contains WORD
    ./run cppcsp --quick     two sizes of each: does everything run?

Each point is the least of its samples in a few interleaved rounds, as in ./run bench; there ratios are judged, here curves are drawn.
Writes out/cppcsp/NAME.svg, NAME.json and tables.md. Exit status: 1 if a program failed, 130 after Ctrl-C (what was finished is kept).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))

from harness import runner  # noqa: E402
from harness.build import Builder, Program  # noqa: E402
from harness.targets import Candidate  # noqa: E402

COLOURS = ("#1b6ca8", "#d1495b", "#2a9d5c", "#8a5fbf", "#e08e0b", "#444444")


@dataclass(frozen=True)
class Experiment:
    """Curves over one variable: `arguments[curve](x)` are the words of the program for one point."""

    name: str
    title: str
    x: str
    y: str
    source: str
    cpus: int
    points: Sequence[int]
    curves: Mapping[str, Sequence[str]]  # words, in which {x} is the variable
    scale: float = 1.0  # from the program's ns to y


def experiments(full: bool, quick: bool) -> list[Experiment]:
    def sizes(points: Sequence[int]) -> list[int]:
        return list(points[:2] if quick else points)

    iterations = 2**30 if full else 2**20 if quick else 2**24
    dimensions = sizes([2**k for k in range(8, 14 if full else 12)])
    alternative = [str(2000 if quick else 150_000)]
    return [
        Experiment(
            "stressedalt", "StressedAlt: a fair select over N channels", "channels", "ns a select",
            "cpp/stressedalt.cpp", 1, sizes([64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536]),
            {kind: [kind, "{x}", "3", *alternative] for kind in ("local", "shared", "standing")},
        ),
        Experiment(
            "montecarlo", f"Monte Carlo π, {iterations:,} iterations", "workers", "ms", "cpp/montecarlo.cpp", 2,
            sizes([1, 2, 4, 8, 16, 32]),
            {"network": ["network", "{x}", "3", str(iterations)], "independent": ["independent", "{x}", "3", str(iterations)]},
            iterations / 1e6,
        ),
        *(
            Experiment(
                f"mandelbrot-{workers}", f"Mandelbrot, {workers} worker{'s' * (workers > 1)}", "dimension", "ns a pixel",
                "cpp/mandelbrot.cpp", 2, dimensions,
                {by: [by, str(workers), "{x}", "3"] for by in ("copy", "move", "mobile", "independent")}
                | {"move, coroutines": ["move", str(workers), "{x}", "3", "coroutines"]},
            )
            for workers in (1, 2, 4, 8)
        ),
        Experiment(
            "messages", "One hand-over of a message of N bytes", "bytes", "ns", "cpp/messages.cpp", 1,
            sizes([8, 64, 512, 4096, 32768, 65536, 131072, 262144, 1048576, 16777216]),
            {by: [by, "{x}", "3", "50"] for by in ("copy", "move", "mobile", "memcpy")},
        ),
    ]  # fmt: skip


def measure(e: Experiment, builder: Builder, rounds: int) -> dict[str, dict[int, float]]:
    """The least of each point's samples, in y's unit. Raises RunError or Broken."""
    available = sorted(os.sched_getaffinity(0))
    cpus = runner.choose_cpus(available, min(e.cpus, len(available)))
    candidate = Candidate("x", "cpp", e.source, (), e.cpus, 1, 1)
    built = builder.program(candidate)
    found: dict[str, dict[int, float]] = {curve: {} for curve in e.curves}
    total, done = rounds * len(e.points) * len(e.curves), 0
    if not sys.stderr.isatty():
        print(f"{e.name}: {total} runs", file=sys.stderr, flush=True)
    for _ in range(rounds):
        for x in e.points:
            for curve, words in e.curves.items():
                done += 1
                if sys.stderr.isatty():
                    progress = f"\r\033[K{e.name} {done}/{total}: {curve} {x}"
                    print(progress, end="", file=sys.stderr, flush=True)
                argv = [*built.argv, *(word.format(x=x) for word in words)]
                values = runner.run_once(Program(argv, built.env), cpus, 900.0)["ns"]
                best = min(values) * e.scale
                found[curve][x] = min(best, found[curve].get(x, math.inf))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def ticks(low: float, high: float) -> list[float]:
    return [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def plot(e: Experiment, found: Mapping[str, Mapping[int, float]]) -> str:
    """Both axes logarithmic."""
    width, height, left, right, top, bottom = 640, 400, 70, 120, 40, 50
    values = [v for curve in found.values() for v in curve.values()]
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
        places = [at(x, y) for x, y in sorted(data.items())]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        ends.append([places[-1][1], colour, curve])
    previous = 0.0
    for y, colour, curve in sorted(ends):  # names beside the last points, not on top of one another
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
        f"| {x:,} | " + " | ".join(f"{data[x]:,.4g}" for data in found.values()) + " |"
        for x in e.points
    ]
    return "\n".join([*lines, ""])


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run cppcsp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="WORD", default="")
    options = parser.parse_args(argv)
    chosen = [e for e in experiments(options.full, options.quick) if options.only in e.name]
    if not chosen:
        parser.error(f"no experiment's name contains {options.only!r}")
    out = BENCH.parent / "out/cppcsp"
    out.mkdir(parents=True, exist_ok=True)
    builder = Builder(
        BENCH, BENCH.parent / ".build/bench", lambda text: print(text, file=sys.stderr, flush=True)
    )
    tables = []
    for e in chosen:
        found = measure(e, builder, 1 if options.quick else 3)
        (out / f"{e.name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        (out / f"{e.name}.svg").write_text(plot(e, found), encoding="utf-8")
        tables.append(table(e, found))
        print(tables[-1], flush=True)
    (out / "tables.md").write_text("\n".join(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except runner.RunError as error:
        print(f"\ncppcsp: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\ncppcsp: stopped; finished experiments are kept in out/cppcsp", file=sys.stderr)
        sys.exit(130)

"""./run thesis pycsp: the experiments of the paper on PyCSP's three types of processes, on Weft's four
types.

    ./run thesis pycsp              rings to 4,096 processes, four token rings, 200 primes, jobs for 1 to 4 workers
    ./run thesis pycsp --full       rings up to each limit, 1,000 primes, ten workers, larger jobs
    ./run thesis pycsp --only WORD  the experiments whose name contains WORD
    ./run thesis pycsp --quick      two sizes of each, to check that everything runs
    ./run thesis pycsp --write      writes the results into theses/PYCSP.md and theses/plots too

The paper compares three implementations of PyCSP's processes (threads, OS processes, greenlets) in
section 5 and table 1. Each program is one text, which runs on coroutines, greenlets, threads and OS
processes. Each point is the least of its samples in a few interleaved rounds; a curve ends at the
limit of its type of process. The command writes out/pycsp/NAME.svg, NAME.json and tables.md; with
--write also the tables between the marks of theses/PYCSP.md, each with its machine and commit. Exit
status: 1 if a program failed below its limit, 130 after Ctrl-C, 143 after SIGTERM (finished results
are kept).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

from harness import runner  # noqa: E402
from harness.build import Program  # noqa: E402
from harness.grid import Experiment, Found, measure, number, plot, table  # noqa: E402
from page import filled, provenance  # noqa: E402

PAGE = HERE / "PYCSP.md"
PLOTS = HERE / "plots"
KINDS = ("coroutines", "greenlets", "threads", "processes")
RINGS = (8, 16, 32, 64)
TIMEOUT = 1800.0


def doubling(first: int, last: int) -> list[int]:
    points = [first]
    while points[-1] < last:
        points.append(2 * points[-1])
    return points


def experiments(full: bool, quick: bool) -> list[Experiment]:
    def sizes(points: Sequence[int]) -> list[int]:
        return list(points[:2] if quick else points)

    samples = "2" if quick else "5"
    return [
        Experiment(
            "ring", "A token in a ring of N processes", "processes", "µs a communication", "../../bench/py/ring.py", 2,
            sizes(doubling(4, 2**20 if full else 4096)),
            {kind: ["{x}", samples, "2"] for kind in KINDS},
            1e-3,
            # The largest size that is tried. Larger sizes need more memory than the machine has, or
            # take too long.
            {} if full else {"processes": 256},
        ),
        *(
            Experiment(
                f"tokens-{n}", f"Tokens in a ring of {n} processes", "tokens", "µs a communication", "tokens.py", 2,
                sizes(tokens_of(n)),
                {kind: [str(n), "{x}", samples, "4" if kind == "processes" else "40"] for kind in KINDS},
                1e-3,
            )
            for n in (RINGS if full else RINGS[:1] if quick else RINGS[:2])
        ),
        Experiment(
            "primes", "A sieve with a process for each prime", "primes", "ms a prime", "primes.py", 2,
            sizes(doubling(8, 1024 if full else 256)),
            {kind: ["{x}", "1"] for kind in KINDS},
            1e-6,
            {"processes": 64 if full else 16},
        ),
        *(
            Experiment(
                name, title, "workers", "ms", "jobs.py", 2,
                sizes([1, 2, 3, 4, 10] if full else [1, 2, 4]),
                # With --full a picture takes over a second; a point is the minimum of six times.
                {
                    kind: [name, "{x}", "2" if full else samples, str(size[1] if full else size[0])]
                    for kind in KINDS
                },
                1e-6,
            )
            for name, title, size in (
                ("numpy", "Mandelbrot set, a numpy worker", (48, 200)),
                ("compiled", "Mandelbrot set, a compiled worker", (200, 1000)),
                ("montecarlo", "Monte Carlo π in pure Python", (200_000, 2_000_000)),
            )
        ),
    ]  # fmt: skip


def tokens_of(n: int) -> list[int]:
    """Returns counts of tokens from 1 to n − 1: all of them for a small ring; for a large ring some
    of them, with the smallest and the largest.
    """
    return sorted({1, 2, *range(n // 8, n, n // 8), n - 2, n - 1})


def speed_ups(values: Mapping[str, Mapping[int, float]]) -> str:
    """Returns a table of speed-ups: how many times as fast as with one worker each backend is."""
    points = sorted({x for data in values.values() for x in data})
    lines = ["| speed-up | " + " | ".join(values) + " |", "|---:|" + "---:|" * len(values)]
    for x in points:
        cells = [
            number(data[1] / data[x]) if 1 in data and x in data else "" for data in values.values()
        ]
        lines.append(f"| {x} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def sizes_of(found: Found) -> str:
    """Returns, for each backend, the bytes of a process in the largest ring, if they are known, and
    the size at which the curve ended.
    """
    lines = []
    for kind, data in found.bytes.items():
        if data:
            n = max(data)
            lines.append(
                f"- {kind}: {data[n]:,.0f} bytes a process, with its channel, in a ring of {n:,}"
            )
    lines += [f"- {kind} ended at {n:,}: {why}" for kind, (n, why) in found.ended.items()]
    return "\n".join([*lines, ""]) if lines else ""


def text_of(e: Experiment, found: Found) -> str:
    parts = [table(e, found.values)]
    if e.x == "workers":
        parts.append(speed_ups(found.values))
    parts.append(sizes_of(found))
    return "\n".join(filter(None, parts))


def write(
    e: Experiment, found: Found, where_measured: str, page: Path = PAGE, plots: Path = PLOTS
) -> None:
    """Writes an experiment into the page, and its picture beside it.

    Raises:
        ValueError: the page has no marks for the experiment, or nothing was measured.
    """
    picture = plots / f"pycsp-{e.name}.svg"
    drawn = plot(e, found.values)
    body = f"{text_of(e, found)}\n![{e.title}: {e.y} by {e.x}](plots/{picture.name})\n\n{where_measured}"
    text = filled(page.read_text(encoding="utf-8"), e.name, body)
    picture.write_text(drawn, encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def run(e: Experiment, rounds: int) -> Found:
    available = sorted(os.sched_getaffinity(0))
    cpus = runner.choose_cpus(available, min(e.cpus, len(available)))
    weft = str(Path(sys.executable).with_name("weft"))
    path = os.pathsep.join(filter(None, (str(BENCH / "py"), os.environ.get("PYTHONPATH"))))

    def program(kind: str, x: int) -> Program:
        words = [word.format(x=x) for word in e.curves[kind]]
        argv = [weft, "run", str((HERE / "py" / e.source).resolve()), "--on", kind, *words]
        # Each library may use one thread, because further threads would distort the speed-ups.
        return Program(argv, {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"})

    return measure(e, program, cpus, rounds, may_end=e.name == "ring", timeout=TIMEOUT)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run thesis pycsp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="WORD", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    if options.write and options.quick:
        parser.error(
            "--write puts results into theses/PYCSP.md, and --quick has none: leave one out"
        )
    chosen = [e for e in experiments(options.full, options.quick) if options.only in e.name]
    if not chosen:
        parser.error(f"no experiment's name contains {options.only!r}")
    out = ROOT / "out/pycsp"
    out.mkdir(parents=True, exist_ok=True)
    tables = []
    where_measured = provenance(
        f"./run thesis pycsp{' --full' if options.full else ''} --write"
    )  # The first sample, before any run, is the load of the machine.
    for e in chosen:
        found = run(e, 1 if options.quick else 3)
        (out / f"{e.name}.json").write_text(
            json.dumps(dataclasses.asdict(found)) + "\n", encoding="utf-8"
        )
        (out / f"{e.name}.svg").write_text(plot(e, found.values), encoding="utf-8")
        tables.append(text_of(e, found))
        print(tables[-1], flush=True)
        (out / "tables.md").write_text("\n".join(tables), encoding="utf-8")
        if options.write:
            write(e, found, where_measured)
    return 0


if __name__ == "__main__":
    sys.exit(
        runner.stopped_by(
            lambda: main(sys.argv[1:]), "pycsp", "finished experiments are kept in out/pycsp"
        )
    )

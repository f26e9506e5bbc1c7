"""./run thesis cppcsp: the experiments of the C++CSP paper over its whole grid; tables and plots to
out/cppcsp.

    ./run thesis cppcsp             Monte Carlo 2^24 iterations, Mandelbrot 2^8 to 2^11, StressedAlt 64 to 65,536, messages 8 B to 16 MB
    ./run thesis cppcsp --full      the paper's sizes: 2^30 iterations, Mandelbrot to 2^13
    ./run thesis cppcsp --only WORD the experiments whose name contains WORD
    ./run thesis cppcsp --quick     two sizes of each, to check that everything runs

Each point is the least of its samples in a few interleaved rounds, as in ./run bench; here curves
are drawn, and no ratios are judged. The command writes out/cppcsp/NAME.svg, NAME.json and
tables.md. Exit status: 1 if a program failed, 130 after Ctrl-C, 143 after SIGTERM (finished results
are kept).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

from harness import runner  # noqa: E402
from harness.build import Builder, Program  # noqa: E402
from harness.grid import Experiment, measure, plot, table  # noqa: E402
from harness.targets import Candidate  # noqa: E402


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


def measured(e: Experiment, builder: Builder, rounds: int) -> dict[str, dict[int, float]]:
    """Returns the least sample of each point, in the unit of the y axis. Raises RunError or
    Broken.
    """
    available = sorted(os.sched_getaffinity(0))
    cpus = runner.choose_cpus(available, min(e.cpus, len(available)))
    built = builder.program(Candidate("x", "cpp", e.source, (), e.cpus, 1, 1))

    def program(curve: str, x: int) -> Program:
        return Program([*built.argv, *(word.format(x=x) for word in e.curves[curve])], built.env)

    return measure(e, program, cpus, rounds).values


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run thesis cppcsp",
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
    out = ROOT / "out/cppcsp"
    out.mkdir(parents=True, exist_ok=True)
    builder = Builder(
        BENCH, ROOT / ".build/bench", lambda text: print(text, file=sys.stderr, flush=True)
    )
    tables = []
    for e in chosen:
        found = measured(e, builder, 1 if options.quick else 3)
        (out / f"{e.name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        (out / f"{e.name}.svg").write_text(plot(e, found), encoding="utf-8")
        tables.append(table(e, found))
        print(tables[-1], flush=True)
    (out / "tables.md").write_text("\n".join(tables), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(
        runner.stopped_by(
            lambda: main(sys.argv[1:]), "cppcsp", "finished experiments are kept in out/cppcsp"
        )
    )

"""./run thesis upycsp: the experiments of the thesis on μPyCSP by its own names, on MicroPython
and CPython of this machine, and how much fits in small heaps. The command prints the tables, with
the thesis's figures beside the measured ones, and draws out/upycsp/*.svg.

    ./run thesis upycsp [commstime] [select] [room] [lines] [waiting] [--full | --quick] [--runs N]

Without names the command runs all experiments. There are 100 runs (or N) of 200 messages, and on
threads a quarter of that. With --full there are 5000 messages, as in the thesis; with --quick 2
runs of 20, to try the command."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]
from harness.grid import Experiment, plot  # noqa: E402

from micropython.tests import tiers  # noqa: E402

BENCH = ROOT / "micropython" / "bench"

# The thesis's minimum, mean and maximum in µs: tables 7.1, 7.3, 7.4; uaPyCSP² is the thesis's
# rescheduling future.
COMMSTIME = {
    ("sequential", "PyCSP, CPython"): (12.000, 13.293, 17.941),
    ("sequential", "uPyCSP"): (17.622, 17.999, 18.396),
    ("sequential", "uaPyCSP"): (13.483, 13.606, 13.847),
    ("parallel", "PyCSP, CPython"): (36.687, 37.563, 39.618),
    ("parallel", "aPyCSP, CPython"): (12.773, 13.053, 13.403),
    ("parallel", "uPyCSP"): (28.742, 29.580, 30.595),
    ("parallel", "uaPyCSP"): (22.077, 22.255, 22.975),
}
SELECT = {
    ("with100x5", "aPyCSP, CPython"): (78.716, 79.358, 80.656),
    ("with100x5", "PyCSP, CPython"): (47.757, 59.170, 97.495),
    ("with100x5", "uaPyCSP"): (246.971, 249.032, 251.841),
    ("with100x5", "uPyCSP"): (24.615, 26.283, 34.524),
    ("select100x5", "aPyCSP, CPython"): (78.349, 79.104, 84.470),
    ("select100x5", "PyCSP, CPython"): (49.583, 58.457, 103.198),
    ("select100x5", "uaPyCSP"): (247.531, 250.031, 252.369),
    ("select100x5", "uPyCSP"): (24.862, 26.632, 29.528),
    ("with5x2", "aPyCSP, CPython"): (10.801, 10.930, 12.359),
    ("with5x2", "PyCSP, CPython"): (17.738, 19.247, 26.880),
    ("with5x2", "uaPyCSP"): (25.648, 25.783, 27.305),
    ("with5x2", "uPyCSP"): (18.433, 19.087, 22.838),
    ("select5x2", "aPyCSP, CPython"): (10.294, 10.371, 10.858),
    ("select5x2", "PyCSP, CPython"): (17.436, 18.817, 21.336),
    ("select5x2", "uaPyCSP"): (25.063, 25.250, 25.727),
    ("select5x2", "uPyCSP"): (18.673, 19.359, 20.671),
}
LINES = {  # table 7.6: append, popleft, filter in µs
    "deque": {500: (26, 25, 42), 4000: (201, 198, 323), 8000: (401, 394, 644)},
    "list": {500: (29, 46, 53), 4000: (215, 908, 409), 8000: (412, 4179, 816)},
}
NAMES = (  # the thesis's name, module, where
    ("PyCSP, CPython", "pycsp_locks", "cpython"),
    ("aPyCSP, CPython", "apycsp", "cpython"),
    ("uPyCSP", "pycsp_locks", "pure"),
    ("uaPyCSP", "apycsp", "pure"),
    ("uPyCSP, user C module", "pycsp_locks", "native"),
    ("uaPyCSP, user C module", "apycsp", "native"),
)
HEAP = "8m"
SPACE = 64 * 2**20


def figures(output: str) -> list[float]:
    """Returns the figures of the `ns` line, in µs. Raises ValueError if there is no such line."""
    for line in output.splitlines():
        if line.startswith("ns "):
            return [float(v) / 1000 for v in line.split()[1:]]
    raise ValueError(f"no figures in {output!r}")


def named(module: str, where: str, experiment: str, runs: int, per: int) -> list[float]:
    """Runs the thesis's program on weft.compat. CPython is the interpreter that runs this file,
    with its own Weft."""
    words = [str(HERE / "upycsp_device.py"), module, experiment, str(runs), str(per)]
    if where == "cpython":
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
        return figures(done.stdout)
    with tempfile.TemporaryDirectory() as folder:
        lib = tiers.installed(Path(folder), ROOT / "compat/micropython")
        return figures(tiers.run(where, *words, heap=HEAP, folders=(lib,)))


def own(way: str, bench: str, runs: int, per: int) -> list[float]:
    return figures(
        tiers.run("pure", BENCH / "on_device.py", bench, way, str(runs), str(per), heap=HEAP)
    )


def three(values: Sequence[float]) -> str:
    return f"{min(values):.3g} / {sum(values) / len(values):.3g} / {max(values):.3g}"


def thrice(values: tuple[float, float, float] | None) -> str:
    return " / ".join(f"{v:.3g}" for v in values) if values else "–"


def named_table(experiments: Sequence[str], then: dict, runs: int, per: int) -> str:
    lines = ["| | | thesis, min / avg / max µs | Weft by that name |", "|---|---|---|---|"]
    for experiment in experiments:
        for name, module, where in NAMES:
            slower = per // 4 if module == "pycsp_locks" else per
            now = named(module, where, experiment, runs, max(1, slower))
            lines.append(
                f"| {experiment} | {name} | {thrice(then.get((experiment, name)))} | {three(now)} |"
            )
    return "\n".join(lines)


def commstime(runs: int, per: int) -> str:
    lines = ["", "| the thesis's futures, re-written, here | min / avg / max µs |", "|---|---|"]
    for bench, delta in (("commstime", "sequential"), ("parallel", "parallel")):
        for way, name in (
            ("yielding", "yielding future"),
            ("rescheduling", "rescheduling future"),
            ("await", "Weft's own names, `await`"),
        ):
            lines.append(f"| {delta}, {name} | {three(own(way, bench, runs, per))} |")
    table = named_table(("sequential", "parallel"), COMMSTIME, runs, per)
    return table + "\n" + "\n".join(lines)


def select(runs: int, per: int) -> str:
    return named_table(("with5x2", "select5x2", "with100x5", "select100x5"), SELECT, runs, per)


def fits(what: str, where: str, heap: str, n: int = 0, folders: tuple[Path, ...] = ()) -> str:
    """Returns the text that room_on_device.py prints, or "does not load" if the heap is too small
    even for the package."""
    try:
        output = tiers.run(
            where, BENCH / "room_on_device.py", what, str(n), heap=heap, folders=folders
        )
    except AssertionError as e:
        if "MemoryError" in str(e):
            return "does not load"
        raise
    return output.split(": ")[1].strip()


def room(quick: bool) -> str:
    lines = ["| heap | Weft, pure | Weft, user C module | asyncio, rescheduling future |"]
    lines.append("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "made"
        subprocess.run(
            [
                *(sys.executable, str(tiers.HERE / "mkpackage.py"), "--compiled", str(made)),
                *("--mpy-cross", str(tiers.MADE / "mpy-cross")),
            ],
            check=True,
            capture_output=True,
        )
        for kb in (192,) if quick else (64, 128, 192, 256, 384):
            row = [
                fits("parked", "pure", f"{kb}k", folders=(made,)),
                fits("parked", "native", f"{kb}k", folders=(made,)),
                fits("tasks", "pure", f"{kb}k"),
            ]
            lines.append(f"| {kb} KB | " + " | ".join(row) + " |")
    lines += ["", "| stack, bytes | threads |", "|---|---|"]
    for stack in (65536,) if quick else (16384, 32768, 65536, 131072, 262144):
        lines.append(f"| {stack:,} | {limited(stack)} |")
    return "\n".join(lines)


def limited(stack: int) -> int:
    """Returns how many threads with stacks of this size fit in SPACE bytes of addresses: the unix
    port has no other limit of its own."""
    done = subprocess.run(
        [
            *("prlimit", f"--as={SPACE}", *tiers.command("pure", "8m")),
            *(str(BENCH / "room_on_device.py"), "threads", str(stack)),
        ],
        env=tiers.environment("pure"),
        capture_output=True,
        text=True,
        # Without memory, libc cannot end the threads either; but the figure has already been
        # printed.
        check=False,
    )
    assert "threads" in done.stdout, done.stderr
    return int(done.stdout.split(": ")[1])


def measured_lines(points: Sequence[int]) -> dict[str, dict[int, list[int]]]:
    return {
        kind: {n: [int(v) for v in fits(kind, "pure", "8m", n).split()] for n in points}
        for kind in ("list", "deque")
    }


def lines(quick: bool, out: Path) -> str:
    points = [500, 1000, 2000] if quick else [500, 1000, 2000, 4000, 8000, 16000]
    found = measured_lines(points)
    table = ["| N, µs for all | thesis: append, popleft, filter | here |", "|---|---|---|"]
    for kind, by_n in found.items():
        for n, values in by_n.items():
            then = LINES[kind].get(n)
            before = ", ".join(map(str, then)) if then else "–"
            table.append(f"| {kind}, {n:,} | {before} | {', '.join(map(str, values))} |")
    curves = {
        f"{kind}, {what}": {n: max(values[k], 1) for n, values in by_n.items()}
        for kind, by_n in found.items()
        for k, what in enumerate(("append", "first", "filter"))
    }
    draw(out, "lines", "list and deque on MicroPython", "elements", "µs for all", points, curves)
    return "\n".join(table)


def waiting(quick: bool, runs: int, per: int, out: Path) -> str:
    points = [1, 2, 4] if quick else [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 100, 1000]
    ways = ("yielding", "rescheduling", "await")
    found = {
        way: {n: min(own(way, f"waiting{n}", min(runs, 10), per)) for n in points} for way in ways
    }
    draw(
        out,
        "waiting",
        "A communication while N wait",
        "waiters",
        "µs a communication",
        points,
        found,
    )
    table = ["| waiters | " + " | ".join(ways) + " |", "|---|---|---|---|"]
    table += [f"| {n} | " + " | ".join(f"{found[w][n]:.3g}" for w in ways) + " |" for n in points]
    slower = [n for n in points if found["yielding"][n] > found["rescheduling"][n]]
    table += ["", f"The yielding future is the slower from {slower[0] if slower else '–'} waiters."]
    return "\n".join(table)


def draw(
    out: Path, name: str, title: str, x: str, y: str, points: Sequence[int], found: dict
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    picture = plot(Experiment(name, title, x, y, "", 1, points, {}), found)
    (out / f"{name}.svg").write_text(picture, encoding="utf-8")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run thesis upycsp",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args(argv)
    quick = options.quick
    if options.runs < 1:
        parser.error("--runs: at least 1")
    runs, per = (2, 20) if quick else (options.runs, 5000 if options.full else 200)
    out = ROOT / "out" / "upycsp"
    parts = {
        "commstime": lambda: commstime(runs, per),
        "select": lambda: select(runs, per),
        "room": lambda: room(quick),
        "lines": lambda: lines(quick, out),
        "waiting": lambda: waiting(quick, runs, per, out),
    }
    unknown = set(options.names) - set(parts)
    if unknown:
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for name in options.names or parts:
        print(f"\n## {name}\n\n{parts[name]()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

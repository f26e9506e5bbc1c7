"""./run thesis components: the experiments of the thesis on compiled components, on its control,
its design, and Weft.

    ./run thesis components              five workloads with small counts, some minutes
    ./run thesis components --full       the thesis's own counts, some hours
    ./run thesis components --only WORD  workloads with WORD in the name: messaging-100000, heavy
    ./run thesis components --runs N     measured runs of each (10), not counting the first ones
    ./run thesis components --quick      the fewest messages, two runs, to see that everything runs
    ./run thesis components --write      also write the tables into theses/COMPONENTS.md

Runs are interleaved: in each round every program is started once; it makes a first run, which is
reported separately, and then its share of the other runs. Every result is checked. The command
writes out/components/NAME.json and tables.md; with --write also the tables between the marks of
theses/COMPONENTS.md, each with its machine and commit. A program whose libraries are not installed
is left out, with a line that names what to install. Exit status: 1 if a program failed, 130 after
Ctrl-C, 143 after SIGTERM (finished results are kept).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

from harness import runner  # noqa: E402
from harness.build import Missing, need  # noqa: E402
from page import filled, provenance  # noqa: E402

PAGE = HERE / "COMPONENTS.md"
COUNTS = {  # messages to each worker: the small count, and the thesis's count
    "messaging": ((5_000,), (100_000, 500_000)),
    "light": ((5_000,), (100_000, 500_000)),
    "heavy": ((1_000,), (1_000, 5_000)),
    "recursive": ((10, 22), (10, 40)),
    "alloc": ((2_000,), (100_000, 500_000)),
}
WORKERS = 2
MODULES = ("module:zmq", "module:jsonplus")
NEEDS = {
    "control": MODULES,
    "design": (*MODULES, "header:zmq.hpp", "header:nlohmann/json.hpp"),
    "weft": (),
    "weft, blocks of 64": (),
}
# The figures of the thesis (tables IV.3 to IV.7), for its control and for its design: mean,
# variance, deviation and range of ten runs, and the first run, in seconds on an Apple M1.
THESIS = {
    ("messaging", 100_000): ((17.968, 0.224, 0.494, 1.370), (13.912, 0.022, 0.148, 0.553)),
    ("messaging", 500_000): ((87.126, 1.768, 0.329, 4.610), (69.500, 0.045, 0.212, 0.908)),
    ("light", 100_000): ((19.018, 0.358, 0.598, 1.396), (13.916, 0.026, 0.162, 0.605)),
    ("light", 500_000): ((102.975, 3.054, 1.748, 6.075), (70.071, 0.415, 0.664, 2.223)),
    ("heavy", 1_000): ((0.211, 0.000, 0.002, 0.005), (0.138, 0.000, 0.011, 0.037)),
    ("heavy", 5_000): ((2.565, 0.003, 0.057, 0.226), (0.712, 0.000, 0.020, 0.074)),
    ("recursive", 10): ((0.012, 0.001, 0.031, 0.103), (0.003, 0.000, 0.001, 0.005)),
    ("recursive", 40): ((41.983, 0.111, 0.333, 1.146), (0.549, 0.000, 0.001, 0.004)),
    ("alloc", 100_000): ((220.682, 74.318, 8.621, 29.359), (14.264, 0.009, 0.093, 0.291)),
    ("alloc", 500_000): ((1090.916, 6.818, 2.611, 8.379), (71.339, 0.069, 0.263, 0.761)),
}


@dataclasses.dataclass(frozen=True)
class Case:
    workload: str
    messages: int

    @property
    def name(self) -> str:
        return f"{self.workload}-{self.messages}"


@dataclasses.dataclass
class Found:
    """Times of a program in seconds: the first run of each round, the other runs, and the CPU time
    of each other run.
    """

    first: list[float] = dataclasses.field(default_factory=list)
    runs: list[float] = dataclasses.field(default_factory=list)
    cpu: list[float] = dataclasses.field(default_factory=list)


def cases(full: bool, quick: bool) -> list[Case]:
    if quick:
        return [Case(workload, 10) for workload in COUNTS]
    return [Case(workload, n) for workload, counts in COUNTS.items() for n in counts[full]]


def argv(who: str, case: Case, runs: int) -> list[str]:
    """Returns the command of a program. The workers of the design and of Weft are pinned, each to a
    CPU of its own.
    """
    words = [case.workload, str(case.messages), str(runs)]
    peers = BENCH / "peers" / "py"
    if who == "control":
        return [str(peers / "thesis_control.py"), *words]
    if who == "design":
        return [str(peers / "thesis_design.py"), *words, "pinned"]
    block = "64" if "blocks" in who else "1"
    return [str(BENCH / "py" / "on.py"), "coroutines", "native_thesis", *words, block, "pinned"]


def parse(out: str, pairs: int) -> Found:
    """Reads the text that a program printed, in nanoseconds for each pair of messages, and returns
    seconds for each run.

    Raises:
        RunError: a line is missing or has no numbers.
    """
    try:
        lines = {key: rest for key, _, rest in (line.partition(" ") for line in out.splitlines())}
        first, runs, cpu = (
            [float(word) * pairs / 1e9 for word in lines[key].split()]
            for key in ("first", "ns", "cpu")
        )
    except (KeyError, ValueError) as error:
        raise runner.RunError(f"printed no figures, but {out[:80]!r}") from error
    if len(first) != 1 or not runs or len(runs) != len(cpu):
        raise runner.RunError(
            f"printed {len(first)} first runs, {len(runs)} others and {len(cpu)} of CPUs"
        )
    return Found(first, runs, cpu)


def started(who: str, case: Case, runs: int) -> Found:
    """Runs a program once.

    Raises:
        RunError: the program failed, or printed something other than its figures.
    """
    done = subprocess.run(
        [sys.executable, *argv(who, case, runs)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(BENCH / "py"), "THESIS_FIRST": "1"},
    )
    if done.returncode != 0:
        last = runner.last_words(done.stderr)
        raise runner.RunError(f"{case.name}, {who} ended with status {done.returncode}: {last}")
    return parse(done.stdout, WORKERS * case.messages)


def shares(runs: int, rounds: int) -> list[int]:
    """Returns the number of runs in each round. The shares are as equal as possible, and at least
    one."""
    rounds = min(runs, rounds)
    return [runs // rounds + (k < runs % rounds) for k in range(rounds)]


def measure(
    case: Case,
    people: Sequence[str],
    runs: Sequence[int],
    start: Callable[[str, Case, int], Found] = started,
) -> dict[str, Found]:
    """Runs every program in every round, one at a time. Raises RunError as soon as a program
    fails."""
    found = {who: Found() for who in people}
    for share in runs:
        for who in people:
            more = start(who, case, share)
            found[who].first += more.first
            found[who].runs += more.runs
            found[who].cpu += more.cpu
    return found


def number(value: float) -> str:
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def table(case: Case, found: Mapping[str, Found]) -> str:
    """Returns a table with a line for each program: the thesis's own figures, if the thesis has
    this count, and below them the figures that were measured.
    """
    lines = [
        f"**{case.workload}, {case.messages:,} messages to each worker**",
        "",
        "| who | mean s | variance | deviation | range | first run | CPU s | control ÷ it | by CPU |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    theirs = THESIS.get((case.workload, case.messages), ())
    for who, row in zip(("control", "design"), theirs, strict=False):
        cells = " | ".join(f"{value:.3f}" for value in row)
        lines.append(
            f"| the thesis's {who}, its machine | {cells} |  |  | {number(theirs[0][0] / row[0])} |  |"
        )
    for who, one in found.items():
        many = len(one.runs) > 1
        cells = [
            number(statistics.mean(one.runs)),
            number(statistics.variance(one.runs)) if many else "",
            number(statistics.stdev(one.runs)) if many else "",
            number(max(one.runs) - min(one.runs)) if many else "",
            number(statistics.mean(one.first)),
            number(statistics.mean(one.cpu)),
            *(
                number(statistics.mean(of(found["control"])) / statistics.mean(of(one)))
                if "control" in found
                else ""
                for of in (lambda f: f.runs, lambda f: f.cpu)
            ),
        ]
        lines.append(f"| {who} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def here(say: Callable[[str], None]) -> list[str]:
    """Returns the programs that this machine can run. For each other program, calls `say` with the
    names of the missing packages.
    """
    people = []
    for who, needs in NEEDS.items():
        try:
            for one in needs:
                need(one)
            people.append(who)
        except Missing as why:
            say(f"components: {who} left out: {why}")
    return people


def write(case: Case, text: str, where_measured: str, page: Path = PAGE) -> None:
    """Writes a table into the page.

    Raises:
        ValueError: the page has no marks for the table.
    """
    body = f"{text}\n{where_measured}"
    page.write_text(filled(page.read_text(encoding="utf-8"), case.name, body), encoding="utf-8")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run thesis components",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="WORD", default="")
    parser.add_argument("--runs", metavar="N", type=int, default=10)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(words)
    if options.write and options.quick:
        parser.error(
            "--write puts results into theses/COMPONENTS.md, and --quick has none: leave one out"
        )
    if options.runs < 1:
        parser.error("--runs wants a number of at least 1")
    chosen = [c for c in cases(options.full, options.quick) if options.only in c.name]
    if not chosen:
        parser.error(f"no experiment's name contains {options.only!r}")
    out = ROOT / "out/components"
    out.mkdir(parents=True, exist_ok=True)
    people = here(lambda text: print(text, file=sys.stderr, flush=True))
    runs = shares(2 if options.quick else options.runs, 2 if options.full else 5)
    tables = []
    command = (
        f"./run thesis components{' --full' if options.full else ''} --runs {options.runs} --write"
    )
    for case in chosen:
        # The load of the machine is recorded before the first run.
        where_measured = provenance(command)
        found = measure(case, people, runs)
        kept = {who: dataclasses.asdict(one) for who, one in found.items()}
        (out / f"{case.name}.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
        tables.append(table(case, found))
        print(tables[-1], flush=True)
        (out / "tables.md").write_text("\n".join(tables), encoding="utf-8")
        if options.write:
            write(case, tables[-1], where_measured)
    return 0


if __name__ == "__main__":
    sys.exit(
        runner.stopped_by(
            lambda: main(sys.argv[1:]), "components", "finished tables are kept in out/components"
        )
    )

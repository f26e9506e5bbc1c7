"""./run bench: measures Weft beside its peers.

Exit status: 0 if all was measured, whether its target (its *reach*) is met or not, and even if a
peer is not on this machine; 1 if a program failed, hung or did not build, or with --check if a
reach is not met; 2 for bad usage; 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))

from harness import curve, headline, machine, runner, show, targets  # noqa: E402
from harness.build import Broken, Builder, Missing, Program  # noqa: E402
from harness.grid import Experiment, plot  # noqa: E402
from harness.result import Result, check_schema, evaluate  # noqa: E402


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description="Measure Weft beside its peers, interleaved and pinned, and compare with what must be reached.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="benches to run; all of them if none is named"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the benches and what they must reach"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a bench, the last line of the output"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round, to check that everything runs (its figures are not comparable)",
    )
    parser.add_argument(
        "--runs", type=int, metavar="N", help="rounds, in place of the number in targets.toml"
    )
    parser.add_argument(
        "--per",
        type=int,
        metavar="N",
        help="how much a sample does, in place of `per` in targets.toml (what it counts is the "
        "bench's: 1024 is a gigabyte of py-processes-wordcount); kept as out/bench/NAME.per-N.json, "
        "and in no report",
    )
    parser.add_argument("--check", action="store_true", help="exit status 1 if a reach is not met")
    parser.add_argument(
        "--report",
        action="store_true",
        help="then put the results kept in out/bench into bench/results, and write bench/RESULTS.md "
        "and bench/TARGETS.md from those (not of quick runs)",
    )
    parser.add_argument(
        "--no-run",
        action="store_true",
        help="with --report: measure nothing, use what is kept in out/bench",
    )
    parser.add_argument("--milestone", metavar="M", help="judge by the reach of this milestone")
    # The following options are for the harness's own tests: other definitions, and another place
    # for the results.
    parser.add_argument(
        "--targets", type=Path, default=BENCH / "targets.toml", help=argparse.SUPPRESS
    )
    parser.add_argument("--root", type=Path, default=BENCH.parent, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.runs is not None and options.runs < 1:
        parser.error("--runs wants a number of at least 1")
    if options.per is not None and (options.per < 1 or not options.names):
        parser.error("--per wants a number of at least 1, and the names of benches")
    if options.per is not None and options.report:
        parser.error("--report wants what targets.toml says: leave --per out")
    if options.no_run and not options.report:
        parser.error("--no-run goes with --report")
    if options.report and options.quick:
        parser.error("--report wants whole runs: leave --quick out")
    return options


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def prepare(
    bench: targets.Bench, builder: Builder, available: Sequence[int]
) -> tuple[dict[str, Program], dict[str, list[int]], dict[str, str], dict[str, str]]:
    """Returns the programs, their CPUs, and the reasons why candidates are skipped or broken."""
    programs: dict[str, Program] = {}
    cpus: dict[str, list[int]] = {}
    skipped: dict[str, str] = {}
    broken: dict[str, str] = {}
    for c in bench.candidates:
        try:
            cpus[c.name] = runner.choose_cpus(available, c.cpus)
            free = machine.free_mb()
            if c.memory_mb and free is not None and free < c.memory_mb:
                raise Missing(f"needs {c.memory_mb} MB of memory, {free} MB are free")
            programs[c.name] = builder.program(c)
        except (Missing, runner.RunError) as why:
            skipped[c.name] = f"skipped: {why}"
            say(f"{bench.name}: {c.name} {skipped[c.name]}")
        except Broken as why:
            broken[c.name] = str(why)
            say(f"{bench.name}: {c.name}: {why}")
    return programs, cpus, skipped, broken


def measure(
    bench: targets.Bench, builder: Builder, milestone: str, command: str, quick: bool
) -> Result:
    available = sorted(os.sched_getaffinity(0))
    programs, cpus, skipped, broken = prepare(bench, builder, available)
    with show.progress(bench.name, bench.rounds * len(programs)) as step:

        def before(name: str, round_: int) -> None:
            step(f"round {round_ + 1}/{bench.rounds}, {name}")

        samples = runner.interleave(programs, cpus, bench.rounds, bench.timeout, before)
    here = {**machine.machine(), "pinned": {name: cpus[name] for name in programs}}
    frame = {
        "command": command,
        "commit": machine.commit(BENCH.parent),
        "machine": here,
        "versions": machine.versions(bench),
        "quick": quick,
    }
    return evaluate(bench, samples, skipped, broken, milestone, frame)


def draw(bench: targets.Bench, result: Result, folder: Path) -> None:
    """Draws the curve of a bench in which one number varies."""
    found = curve.curves(result["ns"])
    if not found:
        return
    points = sorted({n for values in found.values() for n in values})
    e = Experiment(bench.name, bench.title, "N", "ns", "", bench.candidates[0].cpus, points, {})
    path = folder / f"{bench.name}.svg"
    path.write_text(plot(e, found), encoding="utf-8")
    say(f"wrote out/bench/{path.name}")


def kept(folder: Path, names: Sequence[str]) -> dict[str, Result]:
    """Returns the kept result of each bench that has one."""
    found: dict[str, Result] = {}
    for name in names:
        path = folder / f"{name}.json"
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            wrong = check_schema(result)
            if wrong:
                say(
                    f"bench: {folder.name}/{path.name} is of another version ({wrong[0]}): "
                    "measure again"
                )
            else:
                found[name] = result
    return found


def publish(folder: Path, results: Path, names: Sequence[str]) -> dict[str, Result]:
    """Returns all the results from which RESULTS.md is written. Results that were measured here, in
    `folder`, go into `results`, which is under version control; a bench that was not measured here
    keeps its earlier result.
    """
    results.mkdir(exist_ok=True)
    for name, result in kept(folder, names).items():
        text = json.dumps(result, ensure_ascii=False, indent=1)
        (results / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return kept(results, names)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    try:
        all_ = targets.load(options.targets)
    except targets.DefinitionError as error:
        say(f"bench: {error}")
        return 2
    for name in options.names:
        if name not in all_.benches:
            say(f"bench: there is no bench {name!r}; there are: {', '.join(all_.benches)}")
            return 2
    if options.list:
        print(show.listing(all_))
        return 0
    milestone = options.milestone or all_.milestone
    folder = options.root / "out/bench"
    folder.mkdir(parents=True, exist_ok=True)
    builder = Builder(options.targets.resolve().parent, options.root / ".build/bench", say)
    status = 0
    for name in [] if options.no_run else options.names or list(all_.benches):
        bench = all_.benches[name]
        bench = bench.quick() if options.quick else bench
        bench = bench.with_rounds(options.runs) if options.runs else bench
        bench = bench.with_per(options.per) if options.per else bench
        words = [
            name,
            "--json",
            *(["--quick"] if options.quick else []),
            *(["--runs", str(options.runs)] if options.runs else []),
            *(["--per", str(options.per)] if options.per else []),
        ]
        result = measure(
            bench, builder, milestone, "./run bench " + shlex.join(words), options.quick
        )
        line = json.dumps(result, ensure_ascii=False)
        unusual = ([f"per-{options.per}"] if options.per else []) + ["quick"] * options.quick
        kept_as = ".".join([name, *unusual, "json"])
        (folder / kept_as).write_text(line + "\n", encoding="utf-8")
        draw(bench, result, folder)
        show.table(bench, result)
        if options.json:
            print(line, flush=True)
        else:
            print(flush=True)
        if result["failed"] or (options.check and not result["met"]):
            status = 1
    if options.report:
        path = options.targets.resolve().parent / "RESULTS.md"
        found = publish(folder, path.parent / "results", list(all_.benches))
        picture = headline.picture(all_, found)
        if picture is not None:
            (path.parent / "plots").mkdir(exist_ok=True)
            (path.parent / headline.PICTURE).write_text(picture, encoding="utf-8")
        path.write_text(show.report(all_, found), encoding="utf-8")
        path.with_name("TARGETS.md").write_text(show.asked(all_, found), encoding="utf-8")
        say("wrote bench/RESULTS.md and bench/TARGETS.md")
    return status


if __name__ == "__main__":
    sys.exit(
        runner.stopped_by(
            lambda: main(sys.argv[1:]), "bench", "the bench that was running is not kept"
        )
    )

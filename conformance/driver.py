"""Defines what a runtime must supply so that networks can run on it, and the loop that checks the
networks.

A `Driver` takes a network (data) and returns a history (records). There are three drivers:
`ModelDriver` (the reference: the model itself), `ProgramDriver` (a *twin*: any program, for example
in C++, that reads the network as lines and prints its history as JSON lines) and
`python_driver.PythonDriver` (the Python backends). README.md defines networks, histories and the
line format.

    python -m conformance.driver --on model --seeds 0:1000
    python -m conformance.driver --on coroutines --seed 17          shows one network
    python -m conformance.driver --on 'program:build/twin --threads' --seeds 0:200
    python -m conformance.driver --twin                             acts as a twin, over the model
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from .checker import Verdict, check
from .explore import run
from .interp import Record
from .networks import DEFAULT, FEATURES, Net, generate, readable
from .program import BLOCKS
from .retiring import retiring
from .shrink import repeated, report, shrink

SHAPES: dict[str, Callable[[int, int, frozenset[str]], Net]] = {
    "any": generate,
    "retiring": retiring,
}


class Driver(Protocol):
    """A runtime under test.

    name: for messages. grain: "atomic" for one scheduler, "cores" for threads. clock: "virtual" or
    "real". features: the features that its networks may have.
    """

    name: str
    grain: str
    clock: str
    features: frozenset[str]

    def run(self, net: Net, seed: int) -> list[Record]:
        """Runs the network and returns its history. `seed` seeds every random choice of the runtime
        that can be seeded. If the runtime breaks or hangs, run() still returns the records made so
        far.
        """


class ModelDriver:
    """The reference: the model under a seeded scheduler."""

    def __init__(self, grain: str = "atomic"):
        self.name, self.grain, self.clock, self.features = (
            f"model ({grain})",
            grain,
            "virtual",
            FEATURES,
        )

    def run(self, net: Net, seed: int) -> list[Record]:
        return run(net, seed, self.grain)


class ProgramDriver:
    """A program that reads a network in the line format on its standard input and prints its
    history, one JSON object per line.
    """

    def __init__(
        self,
        command: list[str],
        grain: str,
        clock: str,
        features: frozenset[str] = DEFAULT,
        seconds: float = 280,
    ):
        self.name, self.command, self.grain, self.clock = " ".join(command), command, grain, clock
        self.features, self.seconds = features, seconds

    def run(self, net: Net, seed: int) -> list[Record]:
        try:
            done = subprocess.run(
                [*self.command, "--seed", str(seed)],
                input=to_lines(net),
                capture_output=True,
                text=True,
                timeout=self.seconds,
                check=False,
            )
            text, complaint = done.stdout, done.stderr.strip() if done.returncode else ""
        except subprocess.TimeoutExpired as late:
            text = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            complaint = f"not done within {self.seconds} s"
        history = []
        for line in text.splitlines():
            try:
                history.append(json.loads(line))
            except json.JSONDecodeError:
                complaint = complaint or f"not a record: {line[:80]!r}"
        if complaint:
            print(f"{self.command[0]}: {complaint}", file=sys.stderr)
        return history


# --- the line format


def to_lines(net: Net) -> str:
    """Returns the network in the line format (README.md), which consists only of words, so that a
    twin needs no JSON.
    """
    out = ["weft-net 1"]
    for c in net["channels"]:
        out.append(
            f"channel {c.get('capacity', 0)} {c.get('overflow', 'block')} {c.get('immunity', 1)}"
        )
    out.extend(f"barrier {n}" for n in net.get("barriers", []))
    _lines_of_process(net["main"], out)
    return "\n".join(out) + "\n"


def _lines_of_process(p: dict[str, Any], out: list[str]) -> None:
    ends = [f"s{e}" if isinstance(e, int) else f"c{e[0]}{e[1]}" for e in p["ends"]]
    out.append(" ".join(["process", str(p["id"]), *ends]))
    _lines_of_body(p["body"], out)
    out.append("end")


def _lines_of_body(body: list[Any], out: list[str]) -> None:
    for s in body:
        if s[0] in ("par", "seq", "spawn"):
            out.append(s[0])
            for p in s[1] if s[0] != "spawn" else [s[1]]:
                _lines_of_process(p, out)
            out.append("end")
        elif s[0] in BLOCKS:
            out.append(" ".join(map(str, [s[0], s[1], *s[3:]])))
            _lines_of_body(s[2], out)
            out.append("end")
        elif s[0] == "try":
            out.append(" ".join(["try", *s[2]]))
            _lines_of_body(s[1], out)
            out.append("except")
            _lines_of_body(s[3], out)
            out.append("end")
        elif s[0] == "select":
            out.append(f"select {s[1]}")
            for g in s[2]:
                words = [
                    g["g"],
                    *(str(g[k]) for k in ("end", "t", "b", "p") if k in g),
                    g.get("fn", ""),
                ]
                words += ["ends"] * g.get("ends", False) + ["off"] * (not g.get("pre", True))
                out.append(" ".join(w for w in words if w))
            out.append("end")
        else:
            out.append(" ".join(map(str, s)))


def from_lines(text: str) -> Net:
    """Returns the network that `to_lines` wrote. Raises ValueError, with the line, for any other
    text.
    """
    lines = [
        ln.split() for ln in text.splitlines() if ln.strip() and not ln.lstrip().startswith("#")
    ]
    if not lines or lines.pop(0) != ["weft-net", "1"]:
        raise ValueError("a network begins with the line 'weft-net 1'")
    net: Net = {"channels": [], "barriers": []}
    while lines and lines[0][0] in ("channel", "barrier"):
        word, *args = lines.pop(0)
        if word == "barrier":
            net["barriers"].append(int(args[0]))
        else:
            net["channels"].append(
                {"capacity": int(args[0]), "overflow": args[1], "immunity": int(args[2])}
            )
    try:
        net["main"] = _process_from(lines)
    except IndexError:
        raise ValueError("the network breaks off: an 'end' is missing") from None
    if lines:
        raise ValueError(f"after the network: {' '.join(lines[0])!r}")
    return net


def _process_from(lines: list[list[str]]) -> dict[str, Any]:
    word, number, *ends = lines.pop(0)
    if word != "process":
        raise ValueError(f"expected a process, got {word!r}")
    parsed = [int(e[1:]) if e[0] == "s" else [int(e[1:-1]), e[-1]] for e in ends]
    return {"id": int(number), "ends": parsed, "body": _body_from(lines)[0]}


def _body_from(lines: list[list[str]]) -> tuple[list[Any], str]:
    body: list[Any] = []
    while True:
        word, *args = lines.pop(0)
        if word in ("end", "except"):
            return body, word
        if word in ("par", "seq", "spawn"):
            procs = []
            while lines[0] != ["end"]:
                procs.append(_process_from(lines))
            lines.pop(0)
            body.append([word, procs[0] if word == "spawn" else procs])
        elif word in BLOCKS:
            inner, _ = _body_from(lines)
            first = args[0] if word == "limit" else int(args[0])
            body.append([word, first, inner, *map(int, args[1:])])
        elif word == "try":
            inner, _ = _body_from(lines)
            handler, _ = _body_from(lines)
            body.append(["try", inner, args, handler])
        elif word == "select":
            guards = []
            while lines[0] != ["end"]:
                kind, *more = lines.pop(0)
                g: dict[str, Any] = {"g": kind}
                if more and more[-1] == "off":
                    g["pre"] = not more.pop()
                if more and more[-1] == "ends":
                    g["ends"] = bool(more.pop())
                field = {
                    "in": "end",
                    "out": "end",
                    "timeout": "t",
                    "deadline": "t",
                    "barrier": "b",
                    "ended": "p",
                }.get(kind)
                if field:
                    g[field] = int(more[0])
                if len(more) > 1:
                    g["fn"] = more[1]
                guards.append(g)
            lines.pop(0)
            body.append(["select", args[0], guards])
        elif word in (
            "read",
            "write",
            "send",
            "sync",
            "enrol",
            "resign",
            "sleep",
            "yield",
            "retire",
            "poison",
            "die",
            "cancel",
            "ended",
            "reschedule",
            "fail",
        ):
            body.append([word, *map(int, args)])
        else:
            raise ValueError(f"a statement of unknown kind {word!r}")


# --- the loop


def verdict(
    driver: Driver, net: Net, seed: int, budget: int = 50_000
) -> tuple[Verdict, list[Record]]:
    """Runs one network on a runtime and judges its history. Returns (verdict, history)."""
    history = driver.run(net, seed)
    return check(net, history, driver.grain, budget, driver.clock), history


def conform(
    driver: Driver,
    seeds: range,
    size: int = 4,
    say: Callable[[str], None] = print,
    budget: int = 50_000,
    shape: str = "any",
    seconds: float = float("inf"),
    first: bool = False,
) -> tuple[int, int, int]:
    """Runs the networks of one of the SHAPES for these `seeds`; shrinks and shows the networks that
    fail. Returns (passed, failed, undecided).

    No further network is started once `seconds` have passed. If `first` is true, the loop ends with
    the first network that fails, and does not shrink it.
    """
    passed = failed = unknown = 0
    until = time.monotonic() + seconds
    for seed in seeds:
        if time.monotonic() >= until:
            break
        if seed > seeds.start and (seed - seeds.start) % 50 == 0:
            # This line shows that the run continues.
            print(f"  {seed - seeds.start} of {len(seeds)}", file=sys.stderr, flush=True)
        net = SHAPES[shape](seed, size, driver.features)
        v, history = verdict(driver, net, seed, budget)
        unknown += v.unknown
        if v:
            passed += 1
            continue
        failed += 1
        if first:
            say(f"{driver.name}: seed {seed} fails: {v.why}")
            break

        def once(n: Net, seed: int = seed) -> bool:
            return not verdict(driver, n, seed, budget)[0]

        try:
            small = shrink(net, once if driver.grain == "atomic" else repeated(once), tries=400)
            for _ in range(50):
                again, shorter = verdict(driver, small, seed, budget)
                if not again:
                    v, history, net = again, shorter, small
                    break
        except ValueError:
            say(f"seed {seed}: it failed once and not again; the network as it was generated:")
        say(f"{driver.name}: seed {seed} fails\n{report(net, history, v.why)}\n")
    return passed, failed, unknown


def driver_of(
    name: str,
    grain: str,
    clock: str,
    without: frozenset[str] = frozenset(),
    also: frozenset[str] = frozenset(),
) -> Driver:
    """Returns the driver for a name given on the command line, with the features of its networks
    adjusted.
    """
    if name == "model":
        driver: Driver = ModelDriver(grain or "atomic")
    elif name.startswith("program:"):
        driver = ProgramDriver(name[8:].split(), grain or "cores", clock or "virtual")
    else:
        from .python_driver import ApartDriver

        driver = ApartDriver(name)
    driver.features = (driver.features | also) - without
    return driver


def main() -> int:
    args = argparse.ArgumentParser(
        prog="conformance.driver",
        description="Random networks on a runtime, checked against the model.",
    )
    args.add_argument(
        "--on",
        default="model",
        metavar="RUNTIME",
        help="model, program:COMMAND, or a Python backend: coroutines, threads, greenlets, guest, tasks, several of them "
        "(greenlets+threads), mixed (the first three)",
    )
    args.add_argument(
        "--seeds", default="0:100", metavar="A:B", help="networks of the seeds A to B-1"
    )
    args.add_argument("--seed", type=int, help="one network: show it, its history and the verdict")
    args.add_argument("--size", type=int, default=4, help="most processes at the top (default 4)")
    args.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="start no network after this many seconds: passed + failed tells how many ran",
    )
    args.add_argument(
        "--first",
        action="store_true",
        help="stop at the first failing network, without shrinking it",
    )
    args.add_argument(
        "--shape",
        default="any",
        choices=[*SHAPES],
        help="any statements (default), or selects whose guards retire while they go on",
    )
    args.add_argument(
        "--grain",
        default="",
        choices=["", "atomic", "cores"],
        help="the grain of model and program",
    )
    args.add_argument(
        "--clock", default="", choices=["", "virtual", "real"], help="the clock of program"
    )
    args.add_argument(
        "--without",
        default="",
        metavar="F,F",
        help=f"features that the runtime lacks: {', '.join(sorted(FEATURES))}",
    )
    args.add_argument(
        "--with",
        dest="also",
        default="",
        metavar="F,F",
        help="features beyond those of every runtime: cancel, ended, watched, limit",
    )
    args.add_argument(
        "--twin",
        action="store_true",
        help="read a network's lines, print its history under the model",
    )
    given, rest = args.parse_known_args()
    if given.twin:
        for record in run(from_lines(sys.stdin.read()), given.seed or 0, given.grain or "atomic"):
            print(json.dumps(record))
        return 0
    if rest:
        args.error(f"unknown: {' '.join(rest)}")
    without, also = (frozenset(filter(None, f.split(","))) for f in (given.without, given.also))
    if missing := (without | also) - FEATURES:
        args.error(
            f"no such feature: {', '.join(sorted(missing))}; there are {', '.join(sorted(FEATURES))}"
        )
    driver = driver_of(given.on, given.grain, given.clock, without, also)
    if given.seed is not None:
        net = SHAPES[given.shape](given.seed, given.size, driver.features)
        v, history = verdict(driver, net, given.seed)
        print(report(net, history, v.why or "possible"))
        return 0 if v else 1
    lo, _, hi = given.seeds.partition(":")
    shape = "" if given.shape == "any" else f"{given.shape} "
    print(f"{driver.name}: {shape}networks of the seeds {lo} to {int(hi) - 1}, size {given.size}")
    passed, failed, unknown = conform(
        driver,
        range(int(lo), int(hi)),
        given.size,
        shape=given.shape,
        seconds=given.seconds,
        first=given.first,
    )
    if unknown:
        print(f"{unknown} of those that passed were not decided within the budget")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


__all__ = [
    "Driver",
    "ModelDriver",
    "ProgramDriver",
    "conform",
    "from_lines",
    "readable",
    "to_lines",
    "verdict",
]

if __name__ == "__main__":
    sys.exit(main())

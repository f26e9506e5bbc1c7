"""Compares `weft check` with Spin on the same dining philosophers, and the same sleeping barber, in
Python for Weft and in Promela for Spin.

    python -m conformance.spin_beside [--largest 8]

The two count different things: Spin stores states, and visits each once; Weft runs the program
itself, stores nothing, and counts the runs that stand for all orders. Spin reads a model, so its
seconds are those of `spin -a`, of the compiler, and of the search, counted separately. The seconds
of Weft are those of `weft.check`. Both have to find the deadlock of the greedy philosophers, and to
prove that the other programs have none.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

PHILOSOPHERS = """
chan fork[{n}] = [1] of {{ bit }};
proctype philosopher(byte a; byte b) {{
  fork[a]!0; fork[b]!0; fork[b]?_; fork[a]?_
}}
init {{ atomic {{ {run} }} }}
"""
BARBER = """
chan room = [{chairs}] of {{ byte }};
chan shaven[{n}] = [0] of {{ bit }};
proctype customer(byte me) {{
  if
  :: atomic {{ nfull(room) -> room!me }}; shaven[me]?_
  :: full(room)
  fi
}}
active proctype barber() {{
  byte who;
end:
  do
  :: room?who -> shaven[who]!0
  od
}}
init {{ atomic {{ {run} }} }}
"""


class Spin(NamedTuple):
    """The result of Spin."""

    states: int
    deadlock: bool
    making: float  # seconds of spin -a and of the compiler together
    searching: float


def spin(model: str) -> Spin:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.pml").write_text(model)
        began = time.perf_counter()
        _run(["spin", "-a", "model.pml"], folder)
        _run(["cc", "-O2", "-DSAFETY", "-DMEMLIM=2000", "-o", "pan", "pan.c"], folder)
        made = time.perf_counter()
        output = _run(["./pan", "-m100000"], folder)
        searched = time.perf_counter()
    states = re.search(r"([\d.e+]+) states, stored", output)
    errors = re.search(r"errors: (\d+)", output)
    assert states is not None and errors is not None, output
    return Spin(int(float(states[1])), errors[1] != "0", made - began, searched - made)


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def philosophers(n: int, ordered: bool) -> tuple[str, Callable[[], Any]]:
    """Returns the model for Spin and the function for Weft. A fork is a buffer of one place."""
    from weft.coroutines import Channel, process, run

    @process
    async def philosopher(first: Any, second: Any) -> None:
        await first[0].write(None)
        await second[0].write(None)
        await second[1].read()
        await first[1].read()

    hands = [(i, (i + 1) % n) for i in range(n)]
    if ordered:
        hands = [(min(pair), max(pair)) for pair in hands]

    def network() -> None:
        forks = [Channel(f"fork{i}", capacity=1) for i in range(n)]

        def ends(i: int) -> Any:
            return forks[i].writer(), forks[i].reader()

        run(*[philosopher(ends(a), ends(b)) for a, b in hands])

    starts = "; ".join(f"run philosopher({a},{b})" for a, b in hands)
    return PHILOSOPHERS.format(n=n, run=starts), network


def barber(chairs: int, customers: int) -> tuple[str, Callable[[], Any]]:
    from weft.coroutines import Channel, Output, process, run, select, skip

    @process
    async def barber(room: Any, shaven: Any) -> None:
        async for number in room:
            await shaven[number].write(None)

    @process
    async def customer(number: int, room: Any, shaven: Any) -> None:
        if (await select(Output(room, number), skip(), mode="priority"))[0] == 0:
            await shaven.read()

    def network() -> None:
        room = Channel("room", capacity=chairs)
        shaven = [Channel(f"shaven{i}") for i in range(customers)]
        run(
            barber(room.reader(), tuple(c.writer() for c in shaven)),
            *[customer(i, room.writer(), c.reader()) for i, c in enumerate(shaven)],
        )

    starts = "; ".join(f"run customer({i})" for i in range(customers))
    return BARBER.format(chairs=chairs, n=customers, run=starts), network


def networks(largest: int) -> Iterator[tuple[str, tuple[str, Callable[[], Any]]]]:
    for n in (3, 5, 8):
        if n <= largest:
            yield f"{n} philosophers, greedy", philosophers(n, False)
    for n in (3, 5, 8):
        if n <= largest:
            yield f"{n} philosophers, ordered", philosophers(n, True)
    for customers in (3, 4):
        yield f"barber, 1 chair, {customers} customers", barber(1, customers)


def main() -> int:
    import weft

    p = argparse.ArgumentParser(description="weft check beside Spin.")
    p.add_argument("--largest", type=int, default=8, help="how many philosophers, at most")
    largest = p.parse_args().largest
    print("| network | Spin: states | making it, s | search, s | Weft: runs | s | both find |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    for name, (model, network) in networks(largest):
        theirs = spin(model)
        began = time.perf_counter()
        ours = weft.check(network, seconds=120)
        seconds = time.perf_counter() - began
        same = theirs.deadlock == (ours.kind == "deadlock") and (ours.complete or theirs.deadlock)
        wrong += not same
        found = "a deadlock" if theirs.deadlock else "a proof" if same else "NOT THE SAME"
        runs = ours.found_at if theirs.deadlock else ours.schedules
        print(
            f"| {name} | {theirs.states:,} | {theirs.making:.1f} | {theirs.searching:.2f} | {runs:,} | {seconds:.2f} "
            f"| {found} |",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

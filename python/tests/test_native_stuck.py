"""Rules 10.5, 14.3: a report on demand and the search for partial deadlocks, where components run
without the lock of the interpreter: no process that may continue is reported, and all processes
that are stuck are named."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from components import basics, needs_compiler, parties, tasks

import weft.threads as th
from weft._watching import observers as _observers
from weft.observe import PartialDeadlock, deadlocks

pytestmark = [needs_compiler, pytest.mark.usefixtures("nobody_observes")]

BOUND = 280.0  # s: no test waits longer than this
BOTH = pytest.mark.parametrize("on", ["thread", "pool"])


@th.process
def writes(w: Any, value: Any) -> None:
    w.write(value)


@th.process
def keeps_looking(looks: int, channel: Any, found: list[Any]) -> None:
    for _ in range(looks):
        if report := deadlocks():
            found.append([p.path for p in report.processes])
    channel.poison()


class Waits:
    """An observer that counts how many processes of these names have parked, and in which
    operation."""

    def __init__(self, **how: str) -> None:
        self.how = {f"main/{name}": op for name, op in how.items()}
        self.all = threading.Event()
        self.parked: set[str] = set()

    def __call__(self, what: str, process: Any, op: str | None, *_: Any) -> None:
        if what == "park" and process is not None and self.how.get(process.path) == op:
            self.parked.add(process.path)
            if len(self.parked) == len(self.how):
                self.all.set()

    def __enter__(self) -> Waits:
        _observers.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _observers.remove(self)


@th.process
def asks(waits: Waits, wanted: set[str], let_go: Any, found: list[PartialDeadlock]) -> None:
    """Asks for reports, once the processes have parked, until all wanted processes are named. Until
    then a process may still be about to wait.
    """
    assert waits.all.wait(BOUND)
    while {p.path for p in deadlocks().processes} != wanted:
        pass
    found.append(deadlocks())
    let_go()


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("kind", ["thread", "pool", "place", "both"])
def test_a_process_that_goes_on_is_never_named(kind: str, n: int) -> None:
    """Rule 14.3: a token passes around a ring of components, while another thread searches for
    deadlocks again and again.
    """
    ring = [th.Channel(f"c{i}") for i in range(n)]
    makes = {
        "thread": lambda _, r, w: basics().ints(r, w),
        "pool": lambda _, r, w: tasks().ints(r, w),
        "place": lambda i, r, w: tasks().place(r, w) if i % 2 else basics().place(r, w),
        "both": lambda i, r, w: tasks().ints(r, w) if i % 2 else basics().ints(r, w),
    }[kind]
    found: list[Any] = []
    th.run(
        *[makes(i, +ring[i], -ring[(i + 1) % n]) for i in range(n)],
        writes(-ring[0], 1),
        keeps_looking(5000, ring[0], found),
    )
    assert found == []


@BOTH
def test_a_process_that_reads_for_ever_is_named(on: str) -> None:  # rules 10.5, 14.3
    c, d = th.Channel("c"), th.Channel("d")
    found: list[PartialDeadlock] = []
    with Waits(**{"ints[0]": "read", "ints[1]": "read"}) as waits:
        th.run(
            tasks().ints(+c, -d, on=on),
            tasks().ints(+d, -c, on=on),
            asks(waits, {"main/ints[0]", "main/ints[1]"}, c.poison, found),
        )
    first = found[0].processes[0]
    assert first.operation == "read" and first.waits_for == ("main/ints[1]",)


@BOTH
def test_a_choice_between_stuck_partners_is_named(on: str) -> None:  # rules 10.5, 14.3
    a, b = th.Channel("a"), th.Channel("b")
    found: list[PartialDeadlock] = []
    with Waits(**{"place[0]": "select", "place[1]": "select"}) as waits:
        th.run(
            tasks().place(+a, -b, on=on),
            tasks().place(+b, -a, on=on),
            asks(waits, {"main/place[0]", "main/place[1]"}, a.poison, found),
        )
    assert {p.operation for p in found[0].processes} == {"select"}
    assert {p.waits_for for p in found[0].processes} == {("main/place[0]",), ("main/place[1]",)}


@th.process
def waits_for_itself(r: Any, *_ends: Any) -> None:
    r.read()


@BOTH
@pytest.mark.parametrize("timer", [True, False])
def test_a_timer_in_its_choice_may_wake_it(on: str, timer: bool) -> None:  # rule 14.3
    a, b, own = th.Channel("a"), th.Channel("b"), th.Channel("own")
    log = th.Channel("log", overflow="unbounded")
    keep = log.reader()
    f = tasks()
    chooses = f.patient(+a, -log, 10**7, on=on) if timer else f.either(+a, +b, -log, 1, on=on)
    found: list[Any] = []
    with Waits(**{chooses.name: "select", "waits_for_itself": "read"}) as waits:
        th.run(
            chooses,
            waits_for_itself(+own, -own, -a, -b),
            asks(
                waits,
                {"main/waits_for_itself"} | (set() if timer else {f"main/{chooses.name}"}),
                lambda: (own.poison(), chooses.cancel()),
                found,
            ),
        )
    assert len(found) == 1
    del keep


def test_a_process_that_sleeps_is_not_named() -> None:  # rule 14.3
    found: list[Any] = []
    sleeps = basics().sleeps()
    with Waits(sleeps="sleep") as waits:
        th.run(sleeps, looks_100_times(waits, sleeps.cancel, found))
    assert found == [set()] * 100


@th.process
def looks_100_times(waits: Waits, let_go: Any, found: list[Any]) -> None:
    assert waits.all.wait(BOUND)
    found += [{p.path for p in deadlocks().processes} for _ in range(100)]
    let_go()


def test_in_an_extended_read_and_at_a_barrier() -> None:  # rules 1.6, 8.1, 14.3
    c, during = th.Channel("c"), th.Channel("during")
    found: list[Any] = []
    unbounded = th.Channel("unbounded", overflow="unbounded")
    keep = unbounded.reader()
    barrier = th.Barrier(2)
    with Waits(extends="extended read", ints="read", phases="sync") as waits:
        th.run(
            parties().extends(+c, -during),
            tasks().ints(+during, -c),
            parties().phases(barrier, -unbounded, 1),
            # A process that continues may be the missing party, so `phases` is not named.
            asks(
                waits,
                {"main/extends", "main/ints"},
                lambda: (c.poison(), barrier.sync()),
                found,
            ),
        )
    assert {p.operation for p in found[0].processes} == {"extended read", "read"}
    del keep

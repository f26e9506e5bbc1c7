"""Compares networks on the real backends with the model: random networks from printed seeds, and
some on which a backend and the model once disagreed.

These tests run few seeds, to be quick; `soak` runs thousands. For one seed: python -m
conformance.driver --on BACKEND --seed N
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from conformance import task_driver
from conformance.checker import check
from conformance.driver import conform
from conformance.interp import Sim
from conformance.networks import DEFAULT, generate
from conformance.objects import Op
from conformance.python_driver import ApartDriver, PythonDriver
from conformance.retiring import retiring
from conformance.shrink import report
from conformance.tests.kit import net, proc

BACKENDS = ("coroutines", "threads", "greenlets", "mixed", "guest")  # "guest": of an asyncio loop
TASKS = (
    "tasks",
    pytest.param("tasks+coroutines", marks=pytest.mark.soak),
    "tasks+coroutines+greenlets+threads",
)
EACH = 8  # networks in each test
BUDGET = 10_000  # states of a network that the checker searches


@pytest.fixture(scope="module", params=BACKENDS)
def driver(request: pytest.FixtureRequest) -> Iterator[ApartDriver]:
    on = ApartDriver(request.param)
    yield on
    on.close()


@pytest.fixture(scope="module", params=TASKS)
def tasks(request: pytest.FixtureRequest) -> Iterator[ApartDriver]:
    """Yields a driver whose processes are tasks, that is, foreign waiters (6.6): alone, or beside
    other processes."""
    on = ApartDriver(request.param, DEFAULT | {"cancel"})
    yield on
    on.close()


@pytest.mark.parametrize("first", range(0, 4 * EACH, EACH))
def test_random_networks(driver: ApartDriver, first: int) -> None:
    conforms(driver, first)


@pytest.mark.parametrize("first", [0])
def test_networks_whose_guards_retire(driver: ApartDriver, first: int) -> None:
    """Selects lose guards one by one, and continue with the other guards (rule 5.6)."""
    conforms(driver, first, "retiring")


def test_tasks_whose_guards_retire(tasks: ApartDriver) -> None:
    """Selects of tasks lose guards one by one, and continue with the other guards (rules 5.6,
    6.6)."""
    conforms(tasks, 0, "retiring")


def test_in_those_networks_selects_go_on_without_a_guard() -> None:
    """Rule 5.6. If no select continued after a guard retired, the tests of networks whose guards
    retire would compare nothing. Therefore this test counts the selects that continue, by their
    outcome.
    """
    came_to: Counter[str] = Counter()
    for seed in range(60):
        sim = Sim(retiring(seed))
        rng = random.Random(seed)
        log: list[Op] = []  # a decided operation is seen at several steps
        while steps := sim.steps():
            sim.apply(rng.choice(steps))
            for op in sim.ops.values():
                if op.out is None or op.kind != "select" or any(op is known for known in log):
                    continue
                log.append(op)
                on = [i for i, g in enumerate(op.guards) if g.pre and g.kind in ("in", "out")]
                if any(sim.retired(op, i) for i in on):
                    came_to[op.out[0]] += 1
    assert came_to["ok"] >= 40, came_to
    assert came_to["Retired"] >= 40, came_to


@pytest.mark.parametrize("first", [0, EACH])
def test_random_networks_of_tasks(tasks: ApartDriver, first: int) -> None:
    """Rules 6.3, 6.6, 13.7: tasks are cancelled when a process fails, when another process names
    their number, and at a deadlock."""
    conforms(tasks, first)


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets", "mixed", "guest"])
def test_networks_whose_processes_watch_one_another(backend: str) -> None:
    """Rules 5.6, 7.11: ends of processes among guards that retire, and failures that go to
    watchers.
    """
    on = ApartDriver(backend, DEFAULT | {"ended", "watched"})
    try:
        conforms(on, 0, "retiring")
    finally:
        on.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_networks_with_limits(backend: str) -> None:
    """Rules 6.1 to 6.3, 7.12, together with ends of processes and processes that cancel one
    another.
    """
    on = ApartDriver(backend, DEFAULT | {"limit", "cancel", "ended", "watched"})
    try:
        conforms(on, 0)
        conforms(on, 0, "retiring")
    finally:
        on.close()


@pytest.mark.parametrize("backend", ["coroutines", "mixed", "guest"])
def test_random_networks_with_cancellations(backend: str) -> None:
    """Rules 6.1 to 6.5, 7.2: processes that cancel one another."""
    on = ApartDriver(backend, DEFAULT | {"cancel"})
    try:
        conforms(on, 100)
    finally:
        on.close()


def conforms(driver: ApartDriver, first: int, shape: str = "any") -> None:
    print(f"{driver.name}: {shape} networks of the seeds {first} to {first + EACH - 1}")
    messages: list[str] = []
    passed, failed, unknown = conform(
        driver, range(first, first + EACH), say=messages.append, budget=BUDGET, shape=shape
    )
    assert (passed, failed) == (EACH, 0), "\n".join(messages)
    assert unknown <= EACH // 5, "the checker's budget ran out too often to have compared anything"


def select(mode: str, *guards: dict[str, Any]) -> list[Any]:
    return ["select", mode, list(guards)]


def out(end: int, **more: Any) -> dict[str, Any]:
    return {"g": "out", "end": end, **more}


def within(end: int, **more: Any) -> dict[str, Any]:
    return {"g": "in", "end": end, **more}


SOURCE, SINK = proc(1, ["0w"], ["write", 0], ["write", 0]), proc(2, ["0r"], ["read", 0])

# Each of these networks was shrunk from one on which a runtime and the model disagreed, or the
# network decided how a rule must be read.
FOUND = {
    "rule 4.1: poison at a closed end": net(
        1, proc(1, ["0w"], ["retire", 0], ["poison", 0, 2]), SINK
    ),
    "rule 4.3: a poison that was not met spreads all the same": net(
        2,
        proc(1, ["0w", "1w"], ["poison", 0, 2], ["par", [proc(2, ["0r"])]]),
        proc(3, ["1r"], ["read", 0]),
    ),
    "rule 5.2: a guard that is off, of a closed end": net(
        1,
        proc(1, ["0r"], ["retire", 0], select("fair", within(0, pre=False), {"g": "skip"})),
        proc(2, ["0w"]),
    ),
    "rule 5.4: a sleep between selects does not change whose turn it is": net(
        [{"capacity": 3}],
        proc(1, ["0w", "0w"], ["loop", 2, [["sleep", 1], select("fair", out(0), out(1))]]),
        proc(2, ["0r"], ["sleep", 5]),
    ),
    "rule 5.6: of an end's two guards either may be named": net(
        1,
        proc(1, ["0r"], ["read", 0]),
        proc(2, ["0w", "0w"], ["loop", 2, [select("fair", out(0), out(1))]]),
    ),
    "rule 5.7: guards after a skip of a priority select are never chosen": net(
        1,
        proc(1, ["0w"], select("priority", {"g": "skip"}, {"g": "barrier", "b": 0})),
        barriers=[1],
    ),
    "rule 5.8: a function that raises, a reader at a buffer": net(
        [{"capacity": 1}],
        proc(1, ["0r"], ["read", 0]),
        proc(2, ["0w"], select("fair", out(0, fn="raise"))),
    ),
    "rule 5.8: a function's value takes its place when it is made": net(
        [{"capacity": 1}],
        proc(1, ["0w"], ["loop", 2, [select("fair", out(0, fn="make"))]]),
        proc(2, ["0r"], ["loop", 2, [["read", 0]]]),
        proc(3, ["0w", "0w"], ["write", 0]),
    ),
    "rule 5.8: a reader goes on after the function": net(
        1,
        proc(1, ["0w"], ["yield"], ["yield"]),
        proc(2, ["0w"], select("priority", out(0, fn="raise"))),
        proc(3, ["0r"], ["read", 0]),
    ),
    "rule 7.1: who gave no result, and how it ended": net(
        3,
        proc(
            1,
            [],
            [
                "par",
                [
                    proc(2, ["0r"], ["read", 0]),
                    proc(3, ["0w"]),
                    proc(4, ["1r"], ["read", 0]),
                    proc(5, ["1w"], ["poison", 0, 1]),
                ],
            ],
        ),
    ),
    "rule 7.3: a sequence that stops lets go of what its other processes hold": net(
        [{}, {"capacity": 1}],
        proc(1, ["0r"], ["sleep", 1], ["fail"]),
        proc(
            2,
            ["0w"],
            [
                "seq",
                [proc(3, ["1w"], ["write", 0], ["sleep", 2]), proc(4, ["1r"], ["read", 0])],
            ],
        ),
    ),
    "rule 7.3: so does one whose process fails": net(
        [{}, {"capacity": 1}],
        proc(1, ["0w"], ["seq", [proc(2, ["1w"], ["write", 0], ["fail"]), proc(3, ["1r"])]]),
    ),
    "rule 7.4: the run's failure cancels what was spawned": net(
        2,
        proc(1, ["0r"], ["fail"]),
        proc(2, ["0w"], ["spawn", proc(3, ["1w"], ["write", 0])]),
    ),
    "rule 8.2: a barrier guard with nobody enrolled": net(
        1, proc(1, ["0w"], ["resign", 0], select("fair", {"g": "barrier", "b": 0})), barriers=[1]
    ),
    "rule 8.6: the timeout of a writer that an extended read holds": net(
        2,
        proc(1, ["0w", "1r"], select("fair", out(0), {"g": "timeout", "t": 2})),
        proc(2, ["0r", "1w", "1r"], ["ext", 0, [["write", 1]]]),
    ),
    "rule 10.3: ends of processes that were never started": net(
        1, proc(1, [], ["seq", [proc(2, ["0w"], ["write", 0]), proc(3, ["0r"])]])
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_networks_that_disagreed(driver: ApartDriver, name: str) -> None:
    agrees(driver, name)


@pytest.mark.parametrize("name", FOUND)
def test_networks_of_tasks_that_disagreed(tasks: ApartDriver, name: str) -> None:
    agrees(tasks, name)


def agrees(driver: ApartDriver, name: str) -> None:
    for seed in range(3):  # threads vary from run to run
        history = driver.run(FOUND[name], seed)
        found = check(FOUND[name], history, driver.grain, clock=driver.clock)
        assert found and not found.unknown, report(FOUND[name], history, found.why)


def test_a_task_that_loses_what_it_took_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the driver of tasks can fail: a cancellation that takes a committed value back
    (6.3) has no explanation.
    """
    given = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["read", 0]))

    async def forgets(start: Any) -> Any:
        await start()
        raise asyncio.CancelledError

    real = task_driver._play

    async def loses(steps: Any, desk: Any) -> Any:
        def wrapped() -> Any:
            sent: Any = None
            error: BaseException | None = None
            while True:
                try:
                    start = steps.throw(error) if error else steps.send(sent)
                except StopIteration as end:
                    return end.value
                error = None
                waits = not isinstance(start, task_driver.Composition)
                try:
                    sent = yield functools.partial(forgets, start) if waits else start
                except BaseException as raised:
                    error = raised

        return await real(wrapped(), desk)

    driver = PythonDriver("tasks")
    assert check(given, driver.run(given, 0), driver.grain, clock=driver.clock)
    monkeypatch.setattr(task_driver, "_play", loses)
    assert not check(given, driver.run(given, 0), driver.grain, clock=driver.clock)


def test_a_network_that_hangs_is_a_history_that_breaks_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A server that dies, and a runtime that never answers, are both reported, and the driver
    continues.
    """
    broken = ApartDriver("no_such_backend")
    assert broken.run(generate(0), 0) == []
    assert broken.server is None
    assert "the network of seed 0 ended its process" in capsys.readouterr().err
    stuck = ApartDriver("conformance.tests.stuck")
    history = stuck.run(net(1, SOURCE, SINK), 7)
    stuck.close()
    assert [r["e"] for r in history if r["p"] == 1] == ["call", "ret", "call"], history
    assert not check(net(1, SOURCE, SINK), history)
    assert f"the network of seed 7 did not end within {stuck.seconds} s" in capsys.readouterr().err

"""Tests that the end of a process in another OS process is reported in this one like the end of a
thread process (rules 3.5, 4.3, 4.6, 6.5, 7.1).

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import os_process_targets_results as targets
import pytest

import weft.threads as th
from weft.processes import (
    Channel,
    Executor,
    Hosts,
    NoResult,
    Parallel,
    Poisoned,
    Retired,
    Supervisor,
    run,
)

FILE = "os_process_targets_results.py"


@th.process
def beside() -> str:
    return "beside"


@pytest.fixture(scope="module")
def host() -> Iterator[Hosts]:
    with Hosts(1) as hosts:
        yield hosts


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(1) as e:
        yield e


def ended(process: Any) -> Any:
    """Returns the exception that was raised, or how the process ended quietly."""
    try:
        results = Parallel(process, beside())
    except BaseException as error:
        return error
    assert results[1] == "beside"
    return results[0]


def place(function: Any, after: int) -> str:
    body = getattr(function, "_weft_body", function)
    return f"{FILE}:{body.__code__.co_firstlineno + after}"


@pytest.mark.parametrize("way", targets.WAYS)
def test_as_of_a_thread(host: Hosts, pool: Executor, way: str) -> None:  # rules 3.5, 4.3, 6.5
    wanted = targets.WAYS[way][1]
    here = ended(targets.left_here(way))
    there = [
        ended(targets.left.on(host)(way)),
        ended(targets.left_here.on(Supervisor(host, restarts=0))(way)),
    ]
    call = pool.submit(targets.leaves, way).exception()
    if isinstance(wanted, str):
        assert [n.how for n in (here, *there)] == [wanted] * 3
        assert [n.process for n in there] == ["main/left", "main/left_here"]
        assert getattr(call, "met", True) is True
        return
    assert isinstance(here, wanted)
    assert [type(e) for e in there] == [wanted] * 2 and type(call) is wanted
    for error in (*there, call):
        assert error.met is (way.startswith("PeerDied"))
        assert str(error).split(": ")[-1] == str(here).split(": ")[-1]
        assert "Traceback" in str(error.__cause__)  # the traceback of the other OS process
        if wanted is Poisoned:
            assert error.strength == here.strength


def test_in_an_os_process_of_its_own() -> None:  # rules 3.5, 7.2
    with pytest.raises(Retired, match="mine"):
        Parallel(targets.left("Retired, made"), beside())
    assert ended(targets.left("Retired, met")).how == "retired"


def test_poison_of_its_own_poisons_what_it_holds(host: Hosts) -> None:  # rule 4.3
    """The process runs on a thread, in another OS process, or under a supervisor. The
    poison has the same strength in all three."""
    for process in (
        targets.left_here,
        targets.left.on(host),
        targets.left.on(Supervisor(host, restarts=0)),
    ):
        c = Channel("c")
        r = c.reader()
        with pytest.raises(Poisoned, match="mine"):
            Parallel(process("Poisoned, made", c.writer()), beside())
        with pytest.raises(Poisoned) as caught:
            r.read()
        assert (caught.value.strength, caught.value.met) == (7, True)


# --- NoResult -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reads_once_too_often", "reads_once_too_often_async"])
def test_its_no_result_says_where_it_ended_there(host: Hosts, how: str) -> None:  # rule 7.1
    c = Channel("c")

    @th.process
    def writes(out: Any) -> None:
        out.write(1)

    function = getattr(targets, how)
    _, n = Parallel(writes(c.writer()), function.on(host)(c.reader()))
    assert isinstance(n, NoResult) and not n
    assert (n.process, n.how) == (f"main/{how}", "retired")
    assert n.where == place(function, 3)
    assert n.reason == "read on channel 'c': the other side has retired"
    assert n.where in repr(n) and repr(pickle.loads(pickle.dumps(n))) == repr(n)


def test_one_in_a_result_comes_as_it_was(host: Hosts) -> None:  # rules 7.1, 9.1
    n, returned = run(targets.a_network_of_its_own.on(host)())
    assert returned == "returned"
    assert isinstance(n, NoResult) and not n
    assert n.process.endswith("a_network_of_its_own/reads_here")
    assert (n.how, n.where) == ("retired", place(targets.reads_here.__wrapped__, 2))
    with pytest.raises(NoResult, match="gave no result: it ended at os_process_targets_results"):
        n + 1


def test_one_that_was_cancelled_there(host: Hosts) -> None:  # rules 6.5, 7.1
    ready = Channel("ready")
    p = targets.waits.on(host)(ready.writer())

    @th.process
    def cancels(r: Any) -> None:
        for _ in r:
            pass
        p.cancel()

    n, _ = Parallel(p, cancels(ready.reader()))
    assert (n.process, n.how, n.reason) == ("main/waits", "cancelled", "cancelled")
    assert n.where == place(targets.waits, 3)

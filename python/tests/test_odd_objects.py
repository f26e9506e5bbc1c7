"""Some runs of the fuzzer of odd objects (fuzz_odd.py), always with the same seeds, and objects
that once made a program wait forever (rules 9.3, 11.1, 12.1).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fuzz_odd
import odd_away
import odd_world
import pytest
from odd_objects import Loads, Odd, make

import weft.coroutines as co
import weft.threads as th
from weft._hosts.pickling import RemoteTraceback
from weft.processes import BadUse, Executor, Hosts

FUZZER = Path(__file__).with_name("fuzz_odd.py")


def fuzz(*arguments: str, fuzzer: Path = FUZZER, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(fuzzer), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})


def test_nothing_crashes_or_hangs_and_others_go_on() -> None:  # rules 9.3, 11.1, 12.1
    """A failing seed is printed with its case, and can be run again alone."""
    done = fuzz("--seed", "0", "--cases", "200")
    assert done.stdout.splitlines()[-1] == "200 passed, 0 failed", done.stdout


BAD = {
    "os.abort()": "FAILED: seed 0: ends with status -6: case ",
    "time.sleep(1000)": "FAILED: seed 0: hangs: case ",
}


@pytest.mark.parametrize("bad", BAD)
def test_it_tells_what_a_place_does(bad: str, tmp_path: Path) -> None:
    """Checks that the fuzzer notices faults: a fuzzer that noticed none would be worse than no
    fuzzer."""
    for file in [FUZZER, *FUZZER.parent.glob("odd_*.py")]:
        text = file.read_text(encoding="utf-8")
        act = "def away_argument(world: World, odd: Odd) -> Any:"
        text = text.replace(act, f"{act}\n    import os, time\n    {bad}")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    cases = [n for n, where, _ in fuzz_odd.cases_of(0, 200) if where == "away_argument"]
    case = ("--seed", "0", "--only", str(cases[0]))
    done = fuzz(*case, fuzzer=tmp_path / FUZZER.name, ODD_HANG="2")
    assert BAD[bad] in done.stdout, done.stdout


# --- single objects -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(1) as one:
        yield one


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(1) as one:
        yield one


ODD_FAILURES = [
    Odd("exception", method, "raises", error)
    for method in ("__str__", "__repr__", "__reduce__", "@__cause__", "@__class__", "@args")
    for error in ("Exception", "SystemExit", "KeyboardInterrupt", "RecursionError", "Retired")
] + [
    Odd("exception", "@__cause__", "returns", "another"),  # each cause has a cause, endlessly
    Odd("exception", "@__notes__", "raises", "BaseException"),
    Odd("base exception", "__getattribute__", "raises", "MemoryError"),
    Odd("exception", "meta.@__name__", "raises", "Exception"),
    Odd("exception", "__str__", "recurses", "by a call"),
]


@pytest.mark.parametrize("odd", ODD_FAILURES, ids=str)
def test_an_odd_failure_is_a_failure(hosts: Hosts, pool: Executor, odd: Odd) -> None:  # rule 9.3
    """The failure keeps its class if the exception can be sent; otherwise it is a RuntimeError. Its
    cause contains the traceback."""
    for fails in (
        lambda: th.run(odd_away.raises.on(hosts)(odd)),
        lambda: pool.submit(odd_away.raised, odd).result(),
    ):
        with pytest.raises(BaseException) as caught:
            fails()
        assert type.__dict__["__name__"].__get__(caught.type) in ("OddThing", "RuntimeError")
        cause = BaseException.__cause__.__get__(caught.value)  # type: ignore[attr-defined]
        assert type(cause) is RemoteTraceback
        assert 'odd_away.py", line' in cause.text
    assert pool.submit(abs, -3).result() == 3


CONTROL = ("StopIteration", "StopAsyncIteration", "GeneratorExit", "Retired", "Poisoned")
ENDS = (*CONTROL, "Cancelled", "KeyboardInterrupt", "SystemExit", "BaseException")


@pytest.mark.parametrize("error", [*ENDS, "ValueError", "MemoryError"])
def test_what_unpickling_raises_fails_its_call(
    hosts: Hosts, pool: Executor, error: str
) -> None:  # rule 9.3
    """An odd argument fails in the other OS process, and an odd result fails in this one. Other
    calls in the same batch continue."""
    odd = Odd("object", "", "raises", error if error != "ValueError" else "Exception")
    name = odd.more
    wanted = (BadUse, f"cannot be rebuilt: unpickling raises {name}") if error in ENDS else (None,)
    others = [pool.submit(abs, -n) for n in range(5)]
    calls = [
        lambda: th.run(odd_world.gives.on(hosts)(Loads(odd))),
        lambda: th.run(odd_away.makes_what_loads.on(hosts)(odd)),
        lambda: pool.submit(odd_away.given, Loads(odd)).result(),
        lambda: pool.submit(odd_away.loads, odd).result(),
    ]
    for call in calls:
        with pytest.raises(BaseException) as caught:
            call()
        if wanted[0] is None:
            assert caught.type.__name__ == name
        else:
            assert caught.type is BadUse
            assert wanted[1] in str(caught.value)
    assert [f.result() for f in others] == list(range(5))


@pytest.mark.parametrize("error", ENDS)
def test_a_result_that_cannot_be_pickled_fails_its_call(
    hosts: Hosts, pool: Executor, error: str
) -> None:  # rule 9.3
    odd = Odd("object", "__reduce__", "raises", error)
    for call in (
        lambda: th.run(odd_away.makes.on(hosts)(odd)),
        lambda: pool.submit(odd_away.made, odd).result(),
        lambda: pool.submit(odd_away.given, make(odd)).result(),
    ):
        with pytest.raises(BadUse, match=r"OddThing cannot go to another OS process|: "):
            call()
    assert pool.submit(abs, -3).result() == 3


def test_an_object_whose_class_cannot_be_hashed(hosts: Hosts, pool: Executor) -> None:  # rule 9.3
    """Pickle calls the class's __hash__; the feeder thread of a pool must not."""
    odd = Odd("object", "meta.__hash__", "raises", "OSError")
    for call in (
        lambda: th.run(odd_world.gives.on(hosts)([make(odd), 1])),
        lambda: pool.submit(odd_away.given, make(odd)).result(),
        lambda: pool.submit(odd_away.given, (1, [make(odd)])).result(),
    ):
        with pytest.raises(BadUse, match=r"cannot be pickled .*no descriptor"):
            call()
    assert pool.submit(abs, -3).result() == 3


@pytest.mark.parametrize("error", CONTROL)
@pytest.mark.parametrize("reader", [odd_world.reads, odd_world.areads, odd_world.greads])
def test_a_value_whose_unpickling_would_end_its_loop_is_bad_use(
    hosts: Hosts, reader: Any, error: str
) -> None:  # rules 3.4, 9.3
    """In an earlier version a process that read the odd value ended quietly, as if the channel had
    ended.
    """
    c = th.Channel("c")
    odd = Odd("object", "", "raises", error)
    far_process = odd_away.writes_what_loads.on(hosts)(c.writer(), odd)
    with pytest.raises(BadUse, match=f"read on channel 'c': .* cannot be rebuilt here, .* {error}"):
        co.run(far_process, reader(c.reader()))

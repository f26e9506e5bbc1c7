"""weft.compat.pycsp: `@multiprocess` starts an OS process. Each of these processes starts an
interpreter; the start takes some 0.2 s."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import away
import pytest

from weft.compat.pycsp.parallel import Channel, InfoException, MultiProcess, Parallel, process
from weft.errors import BadUse, ProcessDied


@process
def sink(inp: Any, got: list[Any]) -> None:
    while True:
        got.append(inp())


def test_each_has_an_interpreter_of_its_own() -> None:
    (one, first), (two, second) = Parallel(2 * away.who())
    assert len({one, two, os.getpid()}) == 3
    assert first.endswith(".who") and second.endswith(".who")


def test_commstime_of_multiprocesses() -> None:
    a, b, c, d = (Channel(name) for name in "abcd")
    results = Parallel(
        away.prefix(+c, -a, 0),
        away.delta(+a, -b, -d),
        away.successor(+b, -c),
        away.consumer(+d, 50),
    )
    assert results == [None, None, None, list(range(50))]


def test_processes_of_both_kinds_in_one_network() -> None:
    a, b = Channel("a"), Channel("b", buffer=2)
    got: list[int] = []
    Parallel(away.writes(-a, [1, 2, 3], "retire"), away.successor(+a, -b), sink(+b, got))
    assert got == [2, 3, 4]


@pytest.mark.parametrize("buffer", [0, 3])
def test_poison_crosses_behind_what_was_written(buffer: int) -> None:
    c = Channel("c", buffer=buffer)
    assert Parallel(away.writes(-c, [1, 2], "poison"), away.reads_all({"in": [+c]}))[1] == (
        [1, 2],
        "poison",
    )


def test_a_process_that_returns_gives_up_nothing() -> None:
    c = Channel("c")
    keeps, got = -c, []
    first, second = +c, -c

    @process
    def reads() -> None:
        got.extend(first() for _ in range(3))

    @process
    def both() -> None:
        Parallel(away.writes(keeps, [1], "nothing"))
        keeps(2)
        second(3)

    Parallel(reads(), both())
    assert got == [1, 2, 3]


def test_a_choice_there() -> None:
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    got: list[int] = []
    inp = +c

    @process
    def reads() -> None:
        got.append(inp())

    results = Parallel(
        away.writes(-a, [1, 2], "nothing"),
        away.writes(-b, [10], "nothing"),
        away.chooses(+a, +b, -c, 3),
        reads(),
    )
    assert (results[2], got) == ([1, 2, 10], [13])


def test_they_nest() -> None:
    (pids,) = Parallel(away.nests())
    assert len({*pids, os.getpid()}) == 4


def test_failures_and_deaths_are_told() -> None:
    with pytest.raises(LookupError, match="there"):
        Parallel(away.fails())
    with pytest.raises(ProcessDied) as caught:
        Parallel(away.dies())
    assert caught.value.status == 3


def test_what_cannot_go_says_so() -> None:
    with pytest.raises(InfoException, match=r"\+channel or -channel"):
        Parallel(away.writes(Channel("c"), [1], "retire"))

    def local() -> int:
        return 1

    try:
        import cloudpickle  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        with pytest.raises(BadUse, match="cloudpickle"):
            Parallel(MultiProcess(local, pycsp_host="localhost", pycsp_port=9998))
    else:
        assert Parallel(MultiProcess(local, pycsp_host="localhost", pycsp_port=9998)) == [1]


@pytest.mark.parametrize(
    "how", ["Parallel(work(1), work(2))", "Spawn(work(1), work(2)); shutdown()"]
)
def test_a_program_without_a_guard_of_its_main_module(tmp_path: Path, how: str) -> None:
    """The OS process imports the main module only up to the module's first Parallel or Spawn."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import os
from weft.compat.pycsp.parallel import *
@multiprocess
def work(n):
    apart = os.getpid() != int(os.environ["PARENT"])
    os.write(1, b"work %d %a\\n" % (n, apart))  # one piece: the two write at once
os.environ.setdefault("PARENT", str(os.getpid()))
{how}
print("done")
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "done", "work 1 True", "work 2 True"]

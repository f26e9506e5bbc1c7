"""Objects that are nested deeper than calls may be (rule 2.3), and counts that are too large (rule
11.2). Both are tested in separate programs, because a fault would crash the interpreter or use up
the machine's memory.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from children import child

import weft.coroutines as co
import weft.threads as th
from weft.processes import Channel

MANY = 60_000


def runs(*program: str) -> str:
    with child(str(Path(__file__).with_name("deep_objects.py")), *program) as running:
        out, err = running.communicate()
    assert running.returncode == 0, out[-2000:] + err[-4000:]
    return out


def test_what_is_nested_deeper_than_calls() -> None:  # rules 2.3, 9.3, 11.2
    """The object may be an argument, a value and a result, wherever the process runs. Sending such
    an object to another OS process is bad use."""
    output = runs("deep", str(MANY)).splitlines()
    assert output[-1] == "over", output
    wrong = [line for line in output[:-1] if not line.endswith((": done", ": BadUse"))]
    assert not wrong
    assert sum(line.endswith(": BadUse") for line in output) == 7


@co.process
async def takes(*_: Any) -> int:
    return 1


def test_containers_that_hold_themselves_or_one_another_often() -> None:  # rule 2.3
    first: list[Any] = []
    last = first
    for _ in range(1000):
        last.append([])
        last = last[0]
    last.append(first)
    shared: list[Any] = []
    for _ in range(100):
        shared = [shared, shared]
    others: list[Any] = [[i] for i in range(100)]
    assert co.run(takes([others, first], shared)) == 1


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, dict])
def test_ends_are_found_in_the_order_in_which_they_are_given(kind: Any) -> None:  # rule 2.3
    """The order is the same in subclasses of these containers, whatever the subclasses' own methods
    do."""

    class Odd(kind):  # type: ignore[misc]
        def __iter__(self) -> Any:
            raise SystemExit

        def __len__(self) -> int:
            raise SystemExit

    c = Channel("c")
    r = c.reader()
    items = {r: r} if kind is dict else [r]
    assert co.run(takes([[Odd(items)], Odd()])) == 1
    with pytest.raises(co.BadUse, match="the last process that held it has finished"):
        th.run(th.process(lambda: r.read())())


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_more_than_can_be_is_refused_before_the_first_is_made() -> None:  # rule 11.2
    output = runs("many").splitlines()
    assert output == [
        "Channel() * n: MemoryError",
        "n * Channel(): MemoryError",
        "coroutine * n: MemoryError",
        "thread * n: MemoryError",
        "Barrier(n): BadUse",
        "Channel(capacity=n): BadUse",
        "Hosts(n): OSError",
        "Executor(n): done",
    ]


def test_what_is_said_of_too_many_hosts() -> None:  # rule 11.2
    from weft.processes import Hosts

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with pytest.raises(OSError, match=rf"this program may have {most:,} descriptors"):
        Hosts(1 << 40)

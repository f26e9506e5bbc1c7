"""Rules 7.11, 16.1, 16.5: a component's process behaves like any other: its end is a guard, it may
be watched, and its channels have statistics. The component's library needs no symbol of Python or
of the extension.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

import pytest
from components import HERE, collect, needs_compiler, source, tasks

import weft.native
import weft.threads as th
from weft.errors import Poisoned
from weft.native import ComponentError

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

pytestmark = needs_compiler

BOTH = pytest.mark.parametrize("on", ["thread", "pool"])


@th.process
def asks(*processes: Any) -> list[Any]:
    """Returns how each process ended."""
    return [p.ended().wait() for p in processes]


@th.process
def poisons(end: Any) -> None:
    end.poison()


@th.process
def reads_once(r: Any) -> Any:
    return r.read()


@BOTH
def test_every_way_to_end_is_told(on: str) -> None:  # rules 7.11, 16.1
    a, b, c, d, e = (th.Channel(name) for name in "abcde")
    logs = [th.Channel(overflow="unbounded") for _ in range(3)]
    keep = d.writer(), [log.reader() for log in logs]
    returned = tasks().ints(+a, -logs[0], on=on)
    poisoned = tasks().ints(+b, -logs[1], on=on)
    retired = tasks().ints(+c, -e, on=on)
    cancelled = tasks().ints(+d, -logs[2], on=on)

    @th.process
    def cancels() -> None:
        cancelled.cancel()

    got = th.run(
        asks(returned, poisoned, retired, cancelled),
        *(returned, source(-a, [1])),
        *(poisoned, poisons(-b)),
        # When this process has read once, the channel `e` no longer has a reader.
        *(retired, source(-c, [1, 2, 3]), reads_once(+e)),
        *(cancelled, cancels()),
    )[0]
    assert [end.how for end in got] == ["returned", "poisoned", "retired", "cancelled"]
    assert [end.result for end in got] == [None] * 4
    del keep


@BOTH
def test_an_end_beside_a_channel_in_one_choice(on: str) -> None:  # rules 5.1, 7.11, 16.1
    a, c = th.Channel("a"), th.Channel("c")
    ints = tasks().ints(+a, -c, on=on)

    @th.process
    def chooses(r: Any) -> list[Any]:
        got = []
        while len(got) < 4:
            which, value = th.select(r, ints.ended())
            got.append(value if which == 0 else value.how)
        return got

    assert th.run(chooses(+c), ints, source(-a, [1, 2, 3]))[0] == [1, 2, 3, "returned"]


@BOTH
def test_a_failure_that_is_watched_is_the_watchers(on: str) -> None:  # rules 7.2, 7.11, 16.1
    a = th.Channel("a")
    fails = th.watched(tasks().fails(+a, 2, on=on))

    @th.process
    def watches(w: Any) -> Any:
        end = fails.ended()  # before the run, since a failure without watchers goes to its group
        for n in (0, 1, 2):
            w.write(n)
        return end.wait()

    end = th.run(watches(-a), fails)[0]
    assert end.how == "failed"
    assert isinstance(end.error, ComponentError) and end.error.message == "it is 2"


@BOTH
def test_a_failure_that_nobody_watches_is_its_groups(on: str) -> None:  # rules 7.2, 7.11
    a = th.Channel("a")
    with pytest.raises((ComponentError, ExceptionGroup), match=r"it is 2|failed"):
        th.run(tasks().fails(+a, 2, on=on), source(-a, [0, 1, 2]))


@BOTH
@pytest.mark.parametrize("capacity", [0, 3])
def test_the_figures_of_its_channels(on: str, capacity: int) -> None:  # rules 16.1, 16.2
    a, c = th.Channel("a", capacity=capacity), th.Channel("c", capacity=capacity)
    ints = tasks().ints(+a, -c, on=on)
    assert (a.stats().readers, c.stats().writers) == (1, 1)
    got = th.run(source(-a, range(20)), ints, collect(+c))[2]
    assert got == list(range(20))
    for channel in (a, c):
        stats = channel.stats()
        assert (stats.transfers, stats.buffered, stats.dropped) == (20, 0, 0)
        assert (stats.readers, stats.writers) == (0, 0)
        assert (stats.waiting_readers, stats.waiting_writers) == (0, 0)


@BOTH
def test_one_that_waits_is_counted(on: str) -> None:  # rules 16.1, 16.2
    a, c = th.Channel("a"), th.Channel("c")

    @th.process
    def looks(w: Any, r: Any) -> None:
        while a.stats().waiting_readers == 0:
            pass
        w.write(1)
        while c.stats().waiting_writers == 0:
            pass
        r.poison()

    th.run(tasks().ints(+a, -c, on=on), looks(-a, +c))
    with pytest.raises(Poisoned):
        c.reader()


# --- its library ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["component_basics.cpp", "component_tasks.cpp"])
def test_a_library_needs_nothing_of_python_or_of_the_extension(file: str) -> None:  # rule 16.5
    """A library that needs no symbol of Python serves every Python, including free-threaded ones,
    and shares no state of C++.
    """
    if not shutil.which("nm"):
        pytest.skip("no nm")
    library = weft.native.build(HERE / file)
    results = subprocess.run(
        ["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True
    ).stdout
    needed = [line.split()[-1] for line in results.splitlines()]
    # The library does need some symbols.
    assert any("memcpy" in name or "Znwm" in name for name in needed)
    ours = [name for name in needed if name.startswith(("Py", "_Py")) or "4weft" in name]
    assert ours == []

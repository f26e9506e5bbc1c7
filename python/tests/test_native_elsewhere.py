"""Rule 16.7: using an operation that is not allowed at channels with ends in other OS processes is
bad use, and the message names the channel. The component and all other processes may continue."""

from __future__ import annotations

import functools
import os
from typing import Any

import os_process_targets_native as targets_native
import pytest
from components import basics, collect, needs_compiler, parties, source, tasks

import weft.threads as th
from weft import coroutines as co
from weft.native import ComponentError
from weft.processes import BadUse, Channel, Hosts, Supervisor

pytestmark = needs_compiler

EXTENDED = r"extended read on channel '{}': it has ends in other OS processes.*read\(\) it"
COMPUTED = (
    r"computed output and channels that have ends in other OS processes.*make the value first"
)


@pytest.fixture(scope="module")
def host() -> Any:
    with Hosts(1) as hosts:
        yield hosts


@th.process
def with_far_reader(ends: Any, make: Any, out: Any) -> None:
    """Receives a reader from another OS process, and runs the process that `make` makes of it and
    `out`.
    """
    th.Parallel(make(ends.read(), out))


def at_a_far_reader(host: Any, make: Any, values: list[Any], out: Any) -> list[Any]:
    """Returns the values that `make(reader, writer)` writes; the reader's channel was made in the
    host.
    """
    ends = Channel("ends")
    return th.run(
        targets_native.makes.on(host)(-ends, values),
        with_far_reader(+ends, make, -out),
        collect(+out),
    )[2]


# --- extended reads -------------------------------------------------------------------------------


def test_an_extended_read_here_of_a_writer_elsewhere(host: Any) -> None:  # rules 1.6, 16.7
    a, d = Channel("a"), Channel("d")
    with pytest.raises(ComponentError, match="BadUse: " + EXTENDED.format("a")):
        th.run(targets_native.gives.on(host)(-a, [1]), parties().extends(+a, -d), collect(+d))


@pytest.mark.parametrize("on", ["process", "host"])
def test_an_extended_read_elsewhere(host: Any, on: str) -> None:  # rules 1.6, 16.7, 16.8
    a, d = Channel("a"), Channel("d")
    where = host if on == "host" else on
    with pytest.raises(ComponentError, match="BadUse: " + EXTENDED.format("a")):
        th.run(source(-a, [1]), parties().extends(+a, -d, on=where), collect(+d))


def test_an_extended_read_of_a_channel_that_came_from_elsewhere(host: Any) -> None:  # rule 16.7
    with pytest.raises(ComponentError, match="BadUse: " + EXTENDED.format("far")):
        at_a_far_reader(host, parties().extends, [1], Channel("d"))


# --- computed outputs -----------------------------------------------------------------------------


def test_a_computed_output_here_for_a_reader_elsewhere(host: Any) -> None:  # rules 5.8, 16.7
    a, c = Channel("a"), Channel("c")
    with pytest.raises(ComponentError, match="BadUse: select with a " + COMPUTED):
        th.run(source(-a, [1]), parties().serves(+a, -c), targets_native.takes.on(host)(+c, 1))


def test_a_computed_output_beside_an_input_from_elsewhere(host: Any) -> None:  # rules 5.8, 16.7
    a, c = Channel("a"), Channel("c")
    with pytest.raises(ComponentError, match=COMPUTED):
        th.run(targets_native.gives.on(host)(-a, [1]), parties().serves(+a, -c), collect(+c))


@pytest.mark.parametrize("on", ["process", "host"])
def test_a_computed_output_elsewhere(host: Any, on: str) -> None:  # rules 5.8, 16.7, 16.8
    a, c = Channel("a"), Channel("c")
    where = host if on == "host" else on
    with pytest.raises(ComponentError, match=COMPUTED):
        th.run(source(-a, [1]), parties().serves(+a, -c, on=where), collect(+c))


# --- the component may go on ----------------------------------------------------------------------


@pytest.mark.parametrize("on", ["thread", "host"])
def test_the_component_goes_on_after_it(host: Any, on: str) -> None:  # rule 16.7
    """The refused operation has taken and written no value: the value is read afterwards, and
    arrives."""
    a, c, log = Channel("a"), Channel("c"), Channel("log")
    where = host if on == "host" else on
    got, _, results = th.run(
        targets_native.asks.on(host)(-a, +c, [0, 41]),
        parties().tries(+a, -c, -log, on=where),
        collect(+log),
    )
    assert got == 41
    assert len(results) == 2
    assert results[0].startswith("extended read on channel 'a': it has ends in other OS processes")
    assert results[1].startswith("select with a computed output")


def test_where_all_ends_are_here_both_work() -> None:  # rules 1.6, 5.8
    a, c, log = Channel("a"), Channel("c"), Channel("log")
    got = th.run(source(-a, [0, 1, 2]), parties().tries(+a, -c, -log), collect(+c), collect(+log))
    assert got[2:] == [[7, 2], ["extended", "computed"]]


# --- barriers -------------------------------------------------------------------------------------

REFUSED = (
    r"phases of component parties in another OS process: it is given a Barrier.*on='thread', or"
)


def test_a_barrier_goes_to_no_other_os_process(host: Any) -> None:  # rules 8.1, 16.7
    """The error is raised where the process is made, before any process starts."""
    barrier, log = co.Barrier(2), Channel("log")
    w = log.writer()
    for where in ("process", host, host[0], Supervisor()):
        with pytest.raises(BadUse, match=REFUSED):
            parties().phases(barrier, w, 1, on=where)
    made = parties().phases(barrier, w, 1)
    with pytest.raises(BadUse, match=REFUSED):
        made.on(host)

    @th.process
    def meets() -> None:
        barrier.sync()
        barrier.resign()

    assert th.run(made, meets(), collect(+log))[2] == ["before 0"]  # the barrier is as it was
    assert barrier.parties == 0


def test_a_barrier_beside_a_channel_that_was_made_here(host: Any) -> None:  # rules 8.4, 16.7
    """The writer is in another OS process. The value is read first, and then the parties meet at
    the barrier."""
    a, log = Channel("a"), Channel("log")
    barrier = co.Barrier(2)

    @th.process
    def meets(log: Any) -> list[str]:
        output = [log.read()]
        barrier.sync()
        return output + list(log)

    got = th.run(
        targets_native.gives.on(host)(-a, [1]),
        parties().syncs_or_reads(barrier, +a, -log),
        meets(+log),
    )
    assert got[2] == ["read 1", "sync"]


def test_a_barrier_beside_a_channel_that_came_from_elsewhere(host: Any) -> None:  # rule 16.7
    barrier = co.Barrier(1)
    text = "guard 0 is a barrier of this OS process, and another guard is at a channel that another OS proce"
    with pytest.raises(ComponentError, match=text):
        at_a_far_reader(
            host, lambda r, w: parties().syncs_or_reads(barrier, r, w), [1], Channel("log")
        )


# --- on the pool ----------------------------------------------------------------------------------


def test_a_read_on_the_pool_of_a_channel_that_came_from_elsewhere(host: Any) -> None:
    """Rules 16.7, 16.10: the read is refused on the pool; a component on a thread reads."""
    text = r"read on channel 'far': it has ends in other OS processes.*on='thread'"
    with pytest.raises(ComponentError, match=text):
        at_a_far_reader(host, tasks().ints, [1, 2], Channel("c"))
    on_a_thread = functools.partial(tasks().ints, on="thread")
    assert at_a_far_reader(host, on_a_thread, [1, 2], Channel("c")) == [1, 2]
    assert at_a_far_reader(host, basics().ints, [1, 2], Channel("c")) == [1, 2]


def test_a_channel_gets_ends_elsewhere_while_the_pool_waits_there(host: Any) -> None:
    """Rules 16.7, 16.10: the read that waits receives its value; the next operation at the channel
    is refused."""
    a, c, ready = Channel("a"), Channel("c"), Channel("ready")
    w = a.writer()
    seen: list[int] = []

    @th.process
    def later(ready: Any, writer: Any) -> None:
        ready.read()
        while a.stats().waiting_readers == 0:  # waits until the process is back at its read
            os.sched_yield()
        th.Parallel(targets_native.gives.on(host)(writer, [5, 6]))

    @th.process
    def first(writer: Any, got: Any, ready: Any) -> None:
        writer.write(1)
        seen.append(got.read())
        ready.write(None)
        seen.extend(got)

    with pytest.raises(ComponentError, match=r"read on channel 'a': it has ends in other OS"):
        th.run(
            first(a.writer(), +c, -ready),
            later(+ready, w),
            tasks().ints(+a, -c),
        )
    assert seen == [1, 5]

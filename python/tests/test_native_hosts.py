"""Processes of native components in other OS processes, and native channels with ends in other OS
processes (rules 16.7, 16.8).

Nearly every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import array
import os
import signal
import sysconfig
import threading
from typing import Any

import numpy as np
import os_process_targets_native as targets_native
import pytest
from components import HERE, basics, collect, messages, needs_compiler, source

import weft.native
import weft.threads as th
from weft import coroutines as co
from weft.native import ComponentError
from weft.processes import (
    BadUse,
    Channel,
    Deadlock,
    Hosts,
    PeerDied,
    Poisoned,
    ProcessDied,
    Supervisor,
)

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def crashing() -> Any:
    return weft.native.load(HERE / "component_crash.cpp")


@pytest.fixture(scope="module")
def host() -> Any:
    with Hosts(1) as hosts:
        yield hosts


@th.process
def until_it_ends(inp: Any) -> tuple[list[Any], str]:
    """Returns the values that were read, and how the channel ended."""
    got: list[Any] = []
    try:
        while True:
            got.append(inp.read())
    except (th.Retired, PeerDied, Poisoned) as end:
        return got, type(end).__name__


@th.process
def outcome_of(process: Any) -> Any:
    """Returns the exception that the process raised, or None."""
    try:
        return th.Parallel(process)[0]
    except BaseException as error:
        return error


def through(made: Any, values: Any, host: Any) -> list[Any]:
    a, c = Channel("a"), Channel("c")
    return th.run(source(-a, values), made(+a, -c, on=host), collect(+c))[2]


# --- where the component runs ---------------------------------------------------------------------


def test_it_runs_in_an_os_process_of_its_own_or_on_a_host(crashing: Any, host: Any) -> None:
    """Rule 16.8: the process runs in the place that on=, factory.on() or process.on() chooses."""
    pids = []
    for make in (
        lambda w: crashing.pid(w, on="process"),
        lambda w: crashing.pid(w).on(weft.processes),
        lambda w: crashing.pid(w, on=host),
        lambda w: crashing.pid.on(host[0])(w),
        lambda w: crashing.pid(w).on(host),
        lambda w: crashing.pid(w),
    ):
        c = Channel("c")
        pids.append(th.run(make(-c), collect(+c))[1][0])
    assert len({os.getpid(), *pids[:3]}) == 4
    assert pids[2:5] == host.pids * 3
    assert pids[5] == os.getpid()


VALUES = [
    ("ints", [0, -1, 2**63 - 1]),
    ("floats", [0.0, -1.5, 1e308]),
    ("texts", ["", "größer\0€😀"]),
    ("blobs", [b"", b"\0\xff" * 40_000]),
    ("nothings", [None]),
    ("nested", [[], [["a", ""], ["b"]]]),
    ("tuples", [(1, "a", True)]),
    ("dicts", [{}, {"a": [1.0], "b": []}]),
    ("maybes", [None, 7]),
]


@pytest.mark.parametrize(("name", "values"), VALUES, ids=[name for name, _ in VALUES])
def test_values_go_there_and_come_back(host: Any, name: str, values: Any) -> None:  # rule 16.7
    got = through(getattr(basics(), name), values, host)
    assert got == values
    assert [type(v) for v in got] == [type(v) for v in values]


@pytest.mark.parametrize("n", [0, 3, 100_000])
def test_arrays_are_copied(
    host: Any, n: int
) -> None:  # rule 16.7: in a frame, and in shared memory
    numbers = array.array("d", range(n))
    (got,) = through(basics().negate, [numbers], host)
    assert got.tolist() == [-x for x in range(n)]
    # The array still belongs to the writer, and is unchanged.
    assert numbers.tolist() == list(range(n))
    if n:
        got[0] = 7.0  # this array belongs to its reader
        assert got[0] == 7.0


def test_aggregates_and_values_go_there_and_come_back(host: Any) -> None:  # rules 16.4, 16.7
    m = messages()
    sample = m.Sample(0.5, 7)
    assert through(m.samples, [sample], host) == [sample]
    track = m.Track("t", [sample, sample], None)
    assert through(m.tracks, [track], host) == [track]
    values = [{"limit": 2.5, "name": "x", "all": [None, True, b"y", 2**60]}]
    assert through(m.values, values, host) == values
    a, c = Channel("a"), Channel("c")  # an array may be an argument too
    by = m.Sample(1.0, 1)
    got = th.run(source(-a, [sample]), m.later(+a, -c, by, on=host), collect(+c))[2]
    assert got == [m.Sample(1.5, 8)]


def test_arrays_within_values_are_copied(host: Any) -> None:  # rule 16.7
    m = messages()
    image = np.arange(6.0).reshape(2, 3)
    frame = m.Frame(m.Sample(0.0, 1), image, [np.ones(2, np.float32), np.zeros(0, np.float32)])
    (got,) = through(m.frames, [frame], host)
    assert got.at == frame.at
    assert np.asarray(got.image).tolist() == image.tolist()
    assert [np.asarray(row).tolist() for row in got.rows] == [[1.0, 1.0], []]
    got.image[0, 0] = 9.0  # this is the reader's own copy
    assert image[0, 0] == 0.0
    (marked,) = through(m.marks, [np.zeros((2, 2))], host)
    assert np.asarray(marked).tolist() == [[0.0, 1.0], [10.0, 11.0]]
    ((n, numbers),) = through(m.pairs, [(3, array.array("d", [1.5]))], host)
    assert (n, numbers.tolist()) == (3, [1.5])


def test_an_array_that_was_not_written_is_the_components_yet(host: Any) -> None:  # rules 3.2, 5.1
    m = messages()
    go, out, log = Channel("go"), Channel("out"), Channel("log")

    @th.process
    def leaves(go: Any, reader: Any, log: Any) -> str:
        reader.retire()
        go.write(1)
        return str(log.read())

    r = out.reader()
    assert th.run(leaves(-go, r, +log), m.keeps(+go, -out, -log, on=host))[0] == "7 with 3"
    ins, a, b, log = Channel("ins"), Channel("a"), Channel("b"), Channel("log")
    sizes = [array.array("d", range(n)) for n in (1, 0, 2)]
    got = th.run(
        source(-ins, sizes),
        m.either(+ins, -a, -b, -log, on=host),
        collect(+log),
    )
    assert got[2][:1] == ["nobody, and 1 are here"]


def test_a_component_there_and_one_here_meet(host: Any) -> None:  # rule 16.7
    a, b, c = Channel("a"), Channel("b", capacity=3), Channel("c")
    f = basics()
    got = th.run(
        source(-a, range(200)),
        f.ints(+a, -b, on=host),
        f.ints(+b, -c),
        collect(+c),
    )[3]
    assert got == list(range(200))


def test_choice_there(crashing: Any, host: Any) -> None:  # rules 5.2, 5.6, 16.8
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    got = th.run(
        source(-a, [1]), source(-b, [2]), crashing.either(+a, +b, -out, on=host), collect(+out)
    )[3]
    assert sorted(got) == [1, 2]
    a, out = Channel("a"), Channel("out")
    got = th.run(source(-a, range(50)), crashing.place(+a, -out, on=host), collect(+out))[2]
    assert got == list(range(50))


def test_skip_timer_and_a_loud_end_there(crashing: Any, host: Any) -> None:  # rules 5.6, 5.7, 16.8
    a, out = Channel("a"), Channel("out")

    @th.process
    def ends(writer: Any, heard: Any) -> list[str]:
        got = [heard.read(), heard.read()]
        writer.retire()
        return [*got, heard.read()]

    assert th.run(ends(-a, +out), crashing.patient(+a, -out, on=host))[0] == [
        "nothing yet",
        "late",
        "retired",
    ]


def test_blocks_there(crashing: Any, host: Any) -> None:  # rule 16.8
    a, out = Channel("a", capacity=100), Channel("out")
    w = a.writer()
    th.run(source(w, range(100)))
    blocks = th.run(crashing.blocks(+a, -out, on=host), collect(+out))[1]
    assert [x for block in blocks for x in block] == list(range(100))
    assert all(1 <= len(block) <= 8 for block in blocks)
    assert len(blocks[0]) == 8  # all blocks have arrived


# --- channels that become native, or get ends elsewhere, in every order (rule 16.7) ---------------


def test_an_end_goes_away_while_a_component_waits_here(host: Any) -> None:
    """The component waits in a read or a write before the channel has ends in other OS
    processes."""
    a, c = Channel("a"), Channel("c")
    f = basics()
    w, r = a.writer(), c.reader()
    with th.Group() as group:
        group.start(f.ints(+a, -c).named("here"))
        th.run(source(a.writer(), [1, 2]), targets_native.takes.on(host)(c.reader(), 2))
        th.run(targets_native.gives.on(host)(a.writer(), [3, 4]), takes_here(c.reader(), 2))
        w.retire()
        assert collect_here(r) == []


@pytest.mark.parametrize("capacity", [0, 3])
@pytest.mark.parametrize("when", range(4))
def test_a_channel_is_wired_while_components_are_busy_there(
    host: Any, capacity: int, when: int
) -> None:
    """Ends go to other OS processes while the components are in operations without the
    interpreter's lock. No value is lost or overtaken (rules 1.2, 1.5, 16.7)."""
    a, b, c = Channel("a"), Channel("b", capacity=capacity), Channel("c")
    f = basics()
    more = b.writer()

    go = Channel("go")

    @th.process
    def hears(inp: Any, go: Any) -> list[int]:
        got = [inp.read() for _ in range(30 * when)]
        go.write(None)
        return got + list(inp)

    @th.process
    def joins(go: Any, out: Any) -> None:
        go.read()
        th.Parallel(targets_native.gives.on(host)(out, [-1, -2, -3]))

    got = th.run(
        hears(+c, -go),
        joins(+go, more),
        f.count_to(-a, 500),
        f.ints(+a, -b),
        f.ints(+b, -c),
    )[0]
    assert [x for x in got if x >= 0] == list(range(500))
    assert [x for x in got if x < 0] == [-1, -2, -3]


@th.process
def takes_here(inp: Any, n: int) -> list[Any]:
    return [inp.read() for _ in range(n)]


def collect_here(reader: Any) -> list[Any]:
    return list(reader)


def test_values_that_wait_are_converted_either_way(host: Any) -> None:  # rules 16.3, 16.7
    f = basics()
    a = Channel("a", capacity=4)
    w = a.writer()
    c = Channel("c")
    th.run(source(w, [1, 2.5]))  # as Python objects, which are then packed for the other OS process
    assert th.run(f.floats(+a, -c, on=host), collect(+c))[1] == [1.0, 2.5]
    b, d = Channel("b", capacity=4), Channel("d", capacity=4)
    into = b.writer()
    # the channel is native now: values that are written from here on are converted
    call = f.floats(+b, -d)
    th.run(source(into, [3]))
    assert th.run(targets_native.takes.on(host)(d.reader(), 1), call)[0] == [3.0]


def test_a_python_process_elsewhere_writes_what_does_not_convert(host: Any) -> None:  # rule 16.7
    a, c = Channel("a"), Channel("c")
    text = (
        r"a value read from channel 'a'.* which carries int .*expected int, but 'x' is of type str"
    )
    with pytest.raises(ComponentError, match=text):
        th.run(
            targets_native.gives.on(host)(-a, [1, "x"]), basics().ints(+a, -c), until_it_ends(+c)
        )


@pytest.mark.parametrize("on", ["thread", "host"])
def test_what_does_not_convert_is_told_at_the_write(host: Any, on: str) -> None:  # rules 16.2, 16.7
    a, c = Channel("a"), Channel("c")

    @th.process
    def mistaken(out: Any) -> str:
        try:
            out.write("seven")
        except BadUse as bad:
            out.write(7)
            return str(bad)
        return ""

    made = basics().floats(+a, -c, on=host if on == "host" else "thread")
    results, _, got = th.run(mistaken(-a), made, collect(+c))
    assert "a value written to channel 'a'" in results
    assert "expected float, but 'seven' is of type str" in results
    assert got == [7.0]


def test_a_buffer_with_a_value_that_does_not_convert(host: Any) -> None:  # rules 16.3, 16.7
    a, c = Channel("a", capacity=2), Channel("c")
    r = a.reader()
    th.run(targets_native.gives.on(host)(-a, ["x"]))
    with pytest.raises(BadUse, match=r"a value that waits at channel 'a'.*expected int"):
        basics().ints(r, -c)
    assert th.run(takes_here(r, 1)) == ["x"]  # the channel is unchanged


def test_a_second_type_is_refused_before_anything_goes(host: Any) -> None:  # rule 16.2
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    f = basics()
    r = b.reader()
    first = f.ints(+a, -b, on=host)
    with pytest.raises(BadUse, match=r"carries int .*wants float"):
        f.floats(r, -c, on=host)
    assert th.run(source(-a, [1]), first, takes_here(r, 1))[2] == [1]


# --- how it ends ----------------------------------------------------------------------------------


def test_retirement_poison_and_cancellation_go_over(crashing: Any, host: Any) -> None:
    """Rules 3.5, 4.3 and 6.1 hold for a component in another OS process."""
    a, c = Channel("a"), Channel("c")
    f = basics()

    @th.process
    def poisoner(out: Any) -> None:
        out.write(1)
        out.poison(5)

    got = th.run(poisoner(-a), f.ints(+a, -c, on=host), until_it_ends(+c))[2]
    assert got == ([1], "Poisoned")
    a, c = Channel("a"), Channel("c")
    never = a.writer()

    @th.process
    def cancels(process: Any, out: Any) -> None:
        out.write(1)  # once this is written, the process is at work
        process.cancel()

    with th.Group() as group:
        process = f.ints(+a, -c, on=host)
        group.start(process)
        th.run(cancels(process, never), takes_here(c.reader(), 1))
    assert process.done


def test_what_it_throws_arrives(crashing: Any, host: Any) -> None:  # rule 16.8
    a, c = Channel("a"), Channel("c")
    with pytest.raises(
        ComponentError, match=r"process crash of component crashing: std::runtime_error: at 2"
    ):
        th.run(
            source(-a, range(9)),
            crashing.crash(+a, -c, at=3, how="throw", on=host),
            until_it_ends(+c),
        )


def test_a_supervisor_names_the_component_whose_process_died(crashing: Any, caplog: Any) -> None:
    """Rules 7.13, 16.8: the name is in the component's report, in the log, and in the exception
    that is raised at last."""
    a, c = Channel("a"), Channel("c")
    log: list[ProcessDied] = []
    place = Supervisor(restarts=1, backoff=0, report=lambda error, _: log.append(error))
    with caplog.at_level("WARNING", "weft"):
        died, *_ = th.run(
            outcome_of(crashing.crash(+a, -c, at=1, how="exit").on(place)),
            outcome_of(source(-a, range(100))),
            until_it_ends(+c),
        )
    assert [e.process for e in (*log, died)] == ["crash of component crashing"] * 3
    (line,) = [r.getMessage() for r in caplog.records if "started again" in r.getMessage()]
    assert "'crash of component crashing'" in line


@pytest.mark.parametrize(
    ("how", "number", "status"),
    [("segv", signal.SIGSEGV, None), ("abort", signal.SIGABRT, None), ("exit", None, 7)],
)
@pytest.mark.parametrize("on", ["process", "host"])
def test_a_crash_is_contained(
    crashing: Any, how: str, number: int | None, status: int | None, on: str
) -> None:
    """Rule 16.8: the peers read the values that were written, and then meet PeerDied. The
    process that started the component meets ProcessDied. Another network continues, and the next
    call works."""
    a, c = Channel("a"), Channel("c")
    with Hosts(1) as hosts:
        where: Any = "process" if on == "process" else hosts
        died, written, ended, others = th.run(
            outcome_of(crashing.crash(+a, -c, at=3, how=how, on=where)),
            outcome_of(source(-a, range(100))),
            until_it_ends(+c),
            another_network(),
        )
        assert isinstance(died, ProcessDied)
        assert (died.signal, died.status) == (number, status)
        assert died.process == "crash of component crashing"
        assert "'crash of component crashing'" in str(died)
        assert number is None or signal.Signals(number).name in str(died)
        assert isinstance(written, PeerDied)
        assert ended == ([0, 1], "PeerDied")
        assert others == 500
        if on == "host":  # a new host has replaced the old one
            assert through(basics().ints, [1, 2], hosts) == [1, 2]


@th.process
def another_network() -> int:
    a, b = Channel("a"), Channel("b")
    return co.run(co_numbers(-a), basics().ints(+a, -b), co_count(+b))[2]


@co.process
async def co_numbers(w: Any) -> None:
    for k in range(500):
        await w.write(k)


@co.process
async def co_count(r: Any) -> int:
    return len([x async for x in r])


def test_it_is_killed_from_outside(crashing: Any) -> None:  # rule 16.8
    a, c = Channel("a"), Channel("c")

    @th.process
    def killer(out: Any, inp: Any, pids: Any) -> tuple[list[Any], str]:
        out.write(1)
        first = inp.read()
        os.kill(pids[0], signal.SIGKILL)
        got, how = [first], ""
        try:
            got.append(inp.read())
        except PeerDied:
            how = "PeerDied"
        return got, how

    with Hosts(1) as hosts:
        died, seen = th.run(outcome_of(basics().ints(+a, -c, on=hosts)), killer(-a, +c, hosts.pids))
    assert isinstance(died, ProcessDied)
    assert (died.process, died.signal) == ("ints of component basics", signal.SIGKILL)
    assert seen == ([1], "PeerDied")


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="a standstill is told there: test_processes_deadlock.py",
)
def test_a_deadlock_names_it(host: Any) -> None:  # rules 10.1, 16.8
    a, never, out = Channel("a"), Channel("never"), Channel("out")
    silent = never.writer()
    with pytest.raises(Deadlock) as caught:
        th.run(source(-a, [1]), basics().deaf(+a, +never, -out, on=host), collect(+out))
    assert "deaf" in str(caught.value)
    assert "other side of 'never'" in str(caught.value)
    assert "component_basics.cpp:" in str(caught.value)
    silent.retire()


# --- mistakes -------------------------------------------------------------------------------------


def test_bad_use_is_told_here_and_at_once(crashing: Any, host: Any) -> None:  # rule 16.8
    c = Channel("c")
    w = c.writer()
    with pytest.raises(BadUse, match=r"on='cloud'.*on='thread', on='pool', on='process'.*Hosts"):
        crashing.pid(w, on="cloud")
    with pytest.raises(BadUse, match="no such backend"):
        crashing.pid(w, on=7)
    with pytest.raises(BadUse, match="writer end of a channel of int, not 3"):
        crashing.pid(3, on=host)
    with pytest.raises(BadUse, match=r"cpu=999"):
        crashing.pid(w, on=host, cpu=999)
    process = crashing.pid(w, on=host)
    assert th.run(process, collect(+c))[1] == host.pids
    with pytest.raises(BadUse, match="has started"):
        process.on(host)


def test_a_library_that_has_gone(tmp_path: Any, host: Any) -> None:
    library = weft.native.build(HERE / "component_crash.cpp", output=tmp_path / "gone.so")
    made = weft.native.load(library)
    library.unlink()
    c = Channel("c")
    with pytest.raises(BadUse, match=r"pid in another OS process: .*gone\.so"):
        th.run(made.pid(-c, on=host), until_it_ends(+c))


def test_an_end_goes_away_while_a_value_is_converted(host: Any) -> None:  # rules 12.1, 16.7
    """In an earlier version the reader in the host received a cell that belonged to this program,
    and the program crashed.
    """
    c, fed, here = Channel("c"), Channel("fed"), Channel("here")
    # This component writes nothing; it makes `c` native.
    component = basics().ints(fed.reader(), c.writer())
    it_is_there = threading.Event()

    class Slow:
        def __index__(self) -> int:
            assert it_is_there.wait(280)
            return 5

    @th.process
    def writes(out: Any) -> None:
        out.write(Slow())

    @th.process
    def hears(inp: Any) -> None:
        assert inp.read()
        it_is_there.set()

    fed.writer().retire()
    away = targets_native.says_then_takes.on(host)(here.writer(), c.reader())
    got = th.run(writes(c.writer()), away, hears(here.reader()), component)
    assert got[1] == 5

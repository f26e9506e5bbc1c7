"""weft.processes: processes of the operating system as processes of a network (rules 1 to 4, 6, 7,
11; WIRE.md 7, 8).

Every test here starts interpreters; each start takes some 0.2 s.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest
from parts import hows

import weft.coroutines as co
import weft.threads as th
from weft._hosts import pickling as _pickling
from weft.processes import (
    BadUse,
    Channel,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    Sequence,
    after,
    process,
    run,
    select,
    statistics,
)

TIMEOUT = 280  # seconds for a program; each program takes about two


def program(
    tmp_path: Path, text: str, *arguments: str, **keywords: Any
) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return subprocess.run(
        [sys.executable, *(arguments or (str(path),))],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd=tmp_path,
        **keywords,
    )


def children() -> set[int]:
    """Returns the pids of the children of this OS process."""
    mine = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8")
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == os.getpid():
            mine.add(int(stat.parent.name))
    return mine


@pytest.fixture(autouse=True)
def nobody_is_left() -> Any:
    before = children()
    yield
    assert children() <= before


# --- values and ends ------------------------------------------------------------------------------


def test_two_writers_and_a_reader_each_in_its_own_process() -> None:
    c = Channel("c")
    a, b, sum_ = Parallel(
        targets.source(c.writer(), 100),
        targets.source(c.writer(), 100, 100),
        targets.total(c.reader()),
    )
    assert len({a, b, os.getpid()}) == 3
    assert sum_ == sum(range(200))
    assert statistics(c).transfers == 200


def test_a_pipeline_through_another_process_keeps_order() -> None:
    a, b = Channel("a"), Channel("b")
    got: list[int] = []

    @th.process
    def here(inp: Any) -> None:
        got.extend(inp)

    Parallel(
        targets.source(a.writer(), 50), targets.double(a.reader(), b.writer()), here(b.reader())
    )
    assert got == [2 * i for i in range(50)]


def test_coroutines_there_and_here() -> None:
    a, b = Channel("a"), Channel("b", capacity=3)

    @co.process
    async def numbers(out: Any) -> None:
        for i in range(20):
            await out.write(i)

    @co.process
    async def add(inp: Any) -> int:
        return sum([v async for v in inp])

    results = run(
        numbers(a.writer()), targets.double_async(a.reader(), b.writer()), add(b.reader())
    )
    assert results[2] == 2 * sum(range(20))


def test_a_network_within_a_process() -> None:
    assert run(targets.inner_network(30)) == sum(range(30))


VALUES = [0, -1, 1.5, "é", b"\0\xff", None, True, (1, [2, {"k": {3}}]), "x" * 60_000, 10**30]


def test_values_pass_by_copy_as_they_are() -> None:  # rule 9.1
    c = Channel("c")
    got: list[Any] = []

    @th.process
    def here(inp: Any) -> None:
        got.extend(inp)

    Parallel(targets.write_all(c.writer(), VALUES), here(c.reader()))
    assert got == VALUES


def test_an_end_is_closed_where_it_was_given_away_and_where_it_is_closed() -> (
    None
):  # rules 2.3, 3.1
    c = Channel("c")
    w = c.writer()
    got: list[int] = []

    @th.process
    def here(inp: Any) -> None:
        got.extend(inp)

    results, _ = Parallel(targets.closes_early(w), here(c.reader()))
    assert got == [1]
    assert results.startswith("BadUse") and "retired" in results
    with pytest.raises(BadUse):
        w.write(1)


def test_an_end_goes_on_to_a_process_of_a_process() -> None:
    c = Channel("c")
    pid, sum_ = Parallel(targets.nested(c.writer(), 10), targets.total(c.reader()))
    assert pid != os.getpid() and sum_ == 45


def test_one_end_for_two_processes_retires_with_the_last() -> None:  # rule 2.3
    c = Channel("c")
    w = c.writer()
    results = Parallel(targets.source(w, 5), targets.source(w, 5), targets.total(c.reader()))
    assert results[2] == 20


def test_what_waits_there_already_goes_too() -> None:
    """A writer waits, and values are in the buffer, before the channel is connected to another OS
    process; all these values arrive."""
    plain, full = Channel("plain"), Channel("full", capacity=3)

    @th.process
    def early(out: Any, ready: Any) -> None:
        w = full.writer()
        for v in ("a", "b", "c"):
            w.write(v)
        ready.write(None)
        out.write("d")

    @th.process
    def begin(inp: Any, ready: Any) -> list[Any]:
        ready.read()
        r = full.reader()
        return [Parallel(targets.total_of_text(r))[0], Parallel(targets.first_of(inp))[0]]

    ready = Channel("ready")
    results = Parallel(early(plain.writer(), ready.writer()), begin(plain.reader(), ready.reader()))
    assert results[1] == ["abc", "d"]


# --- ends of channels -----------------------------------------------------------------------------


def test_retirement_ends_a_process_elsewhere_quietly() -> None:  # rules 3.1, 3.5
    d = Channel("d")

    @th.process
    def three(out: Any) -> None:
        for i in range(3):
            out.write(i)

    results = Parallel(three(d.writer()), targets.ends_quietly(d.reader()))
    assert hows(results) == [None, "<retired>"]
    e = Channel("e")
    # a run of exactly one process raises what ended that process (rule 7.1)
    with pytest.raises(Retired):
        w, r = e.writer(), e.reader()
        w.retire()
        run(targets.ends_quietly(r))


@pytest.mark.parametrize("strength", [1, 7])
def test_poison_crosses_over(strength: int) -> None:  # rule 4
    c = Channel("c")

    @th.process
    def reads(inp: Any) -> int:
        try:
            inp.read()
        except Poisoned as error:
            return error.strength
        return 0

    assert Parallel(targets.poison_it(c.writer(), strength), reads(c.reader()))[1] == strength


def test_an_immune_channel_stays() -> None:  # rule 4.4
    c = Channel("c", immunity=5)

    @th.process
    def reads(inp: Any, poisoned: Any) -> str:
        poisoned.read()
        return str(inp.read())

    @th.process
    def first_poison_then_write(out: Any, poisoned: Any) -> None:
        Parallel(targets.poison_it(c.writer(), 4))
        poisoned.write(None)
        out.write("alive")

    done = Channel("done")
    results = Parallel(
        first_poison_then_write(c.writer(), done.writer()), reads(c.reader(), done.reader())
    )
    assert results[1] == "alive"


# --- choice where the home is ---------------------------------------------------------------------


def test_a_select_at_home_over_ends_that_others_have() -> None:  # rule 5
    a, b, out = Channel("a"), Channel("b"), Channel("out")

    @th.process
    def merge(x: Any, y: Any, to: Any) -> int:
        n = 0
        try:
            while True:
                i, v = select(x, y, after(280))
                assert i < 2
                select(Output(to, v), after(280))
                n += 1
        except Retired:
            return n

    results = Parallel(
        targets.source(a.writer(), 20),
        targets.source(b.writer(), 20, 100),
        merge(a.reader(), b.reader(), out.writer()),
        targets.total(out.reader()),
    )
    assert results[2:] == [40, sum(range(20)) + sum(range(100, 120))]


@pytest.mark.parametrize("is_open", [True, False])
def test_a_guard_that_is_off_holds_a_choice_open_if_its_channel_is(is_open: bool) -> None:
    """Rule 5.6, WIRE.md 5.11: no process in the choosing OS process has met the end of the channel,
    so the choice learns of that end from the channel's home."""
    inp, on, off = Channel("inp"), Channel("on"), Channel("off")

    @th.process
    def writes(out: Any) -> None:
        if is_open:
            out.write(5)
        else:
            until.read()

    ended = Channel("ended")
    until = ended.reader()
    writer, ends = inp.writer(), (inp.reader(), on.writer(), off.writer())
    reader = off.reader()
    on.reader().retire()
    if not is_open:
        reader.retire()
    results = Parallel(targets.held_open(*ends, ended.writer()), writes(writer))
    assert results[0] == ("5 at 0" if is_open else "retired at 1")


def test_what_is_not_built_says_so() -> None:
    a, b = Channel("a"), Channel("b")
    results = run(targets.bad_uses(a.reader(), b.writer()))
    assert len(results) == 3 and all(s.startswith("BadUse") for s in results), results
    assert all("another OS process" in s for s in results), results


# --- failures -------------------------------------------------------------------------------------


def test_an_exception_arrives_with_its_traceback() -> None:
    with pytest.raises(ValueError, match="of mine") as caught:
        run(targets.fail(ValueError("of mine")))
    cause = caught.value.__cause__
    assert isinstance(cause, _pickling.RemoteTraceback)
    assert "os_process_targets.py" in str(cause) and "raise error" in str(cause)


def test_a_group_of_exceptions_arrives() -> None:
    group: Any = pytest.importorskip("builtins")
    if not hasattr(group, "ExceptionGroup"):
        pytest.skip("3.11")
    with pytest.raises(group.ExceptionGroup) as caught:
        run(targets.fail(group.ExceptionGroup("two", [ValueError("a"), KeyError("b")])))
    assert [type(e) for e in caught.value.exceptions] == [ValueError, KeyError]


def test_an_end_that_is_a_failure_arrives_as_what_it_is() -> None:  # rules 4.5, 7.2
    with pytest.raises(PeerDied, match="the other side died") as caught:
        run(targets.loses_its_peer())
    assert caught.value.channel is None


def test_an_exception_that_cannot_be_pickled_arrives_as_its_text() -> None:
    with pytest.raises(RuntimeError, match="Picky: picky 1 2"):
        run(targets.fail_pickily())


def test_a_result_that_cannot_be_pickled() -> None:
    with pytest.raises(BadUse, match="Unsendable"):
        run(targets.unpicklable_result())


def test_values_that_cannot_go_are_refused_at_the_write() -> None:  # rule 11.2
    c = Channel("numbers")

    @th.process
    def reads(inp: Any) -> Any:
        return inp.read()

    results, value = Parallel(targets.bad_writes(c.writer()), reads(c.reader()))
    assert value == "good"
    assert len(results) == 4 and all(
        s.startswith("BadUse: write on channel 'numbers'") for s in results
    ), results
    for text, part in zip(
        results, ("Unsendable", "list", "closed", "reader() or writer()"), strict=True
    ):
        assert part in text


def test_the_home_refuses_them_too() -> None:
    c = Channel("numbers")
    messages: list[str] = []

    @th.process
    def writes(out: Any) -> None:
        for value in (targets.Unsendable(), [lambda: 0], [c]):
            try:
                out.write(value)
            except BadUse as error:
                messages.append(str(error))
        try:
            select(Output(out, targets.Unsendable()), after(280))
        except BadUse as error:
            messages.append(str(error))
        out.write(5)

    # The reader was handed over before its process writes a value to this channel.
    ready = Channel("ready")

    @th.process
    def first(inp: Any, out: Any) -> None:
        inp.read()
        writes_body(out)

    writes_body = writes.__wrapped__
    results = Parallel(
        first(ready.reader(), c.writer()), targets.ready_then_total(ready.writer(), c.reader())
    )
    assert results[1] == 5
    assert len(messages) == 4 and all("channel 'numbers'" in s for s in messages), messages
    assert "give it an end" in messages[2]


def test_arguments_that_cannot_go() -> None:
    with pytest.raises(BadUse, match="process write_all"):
        run(targets.write_all(Channel("c").writer(), [targets.Unsendable()]))
    with pytest.raises(BadUse, match=r"give it an end, reader\(\) or writer\(\)"):
        run(targets.write_all(Channel("c"), []))


def test_what_cannot_be_pickled_is_named_by_its_parameter() -> None:
    c = Channel("c")
    inp, out, other = c.reader(), c.writer(), c.writer()
    with pytest.raises(BadUse, match=r"process source: argument n: a value of type lock cannot go"):
        run(targets.source(out, threading.Lock()))
    with pytest.raises(BadUse, match=r"process source: argument first: .* type function cannot go"):
        run(targets.source(other, 1, first=lambda: 0))
    assert run(targets.total(inp)) == 0, "a call that came to nothing lets go of its ends"


def test_a_function_that_nobody_can_import() -> None:
    @process
    def local() -> int:
        return 41

    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        with pytest.raises(BadUse, match=r"local is not a global name.*cloudpickle"):
            run(local())
    else:
        assert run(local()) == 41


def test_process_refuses_what_is_no_function() -> None:
    for wrong in (5, int, targets.source):
        with pytest.raises(BadUse, match="@process"):
            process(wrong)


# --- cancellation ---------------------------------------------------------------------------------


def test_a_failure_here_cancels_them_there(tmp_path: Path) -> None:  # rules 6.1, 7.2
    report = tmp_path / "said"
    ready, never = Channel("ready"), Channel("never")
    kept = never.writer()  # keeps the channel from ending

    @th.process
    def fails(inp: Any) -> None:
        inp.read()
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        Parallel(
            targets.wait_to_be_cancelled(ready.writer(), never.reader(), str(report)),
            fails(ready.reader()),
        )
    assert report.read_text(encoding="utf-8") == "cancelled"
    kept.retire()


def test_a_write_that_is_withdrawn_keeps_its_value(tmp_path: Path) -> None:  # rule 6.2
    report = tmp_path / "said"
    ready, never = Channel("ready"), Channel("never")
    kept = never.reader()  # keeps the channel from ending

    @th.process
    def fails(inp: Any) -> None:
        inp.read()
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        Parallel(
            targets.value_of_cancelled(ready.writer(), never.writer(), str(report)),
            fails(ready.reader()),
        )
    assert report.read_text(encoding="utf-8") == "mine yet"
    kept.retire()
    assert statistics(never).transfers == 0


def test_ctrl_c_ends_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            """
            import os
            from weft.processes import *

            @process
            def waits(ready, inp):
                ready.write(os.getpid())
                inp.read()

            @process
            def never(inp, out):
                for pid in inp:
                    print("pid", pid, flush=True)
                out.read()

            ready, silent, other = Channel("ready"), Channel("silent"), Channel("other")
            w = silent.writer()
            v = other.writer()
            Parallel(waits(ready.writer(), silent.reader()), never(ready.reader(), other.reader()))
            """
        ),
        encoding="utf-8",
    )
    running = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout is not None
    line = running.stdout.readline()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=TIMEOUT)
    assert running.returncode != 0 and "KeyboardInterrupt" in err, (out, err)
    assert not Path(f"/proc/{line.split()[1]}").exists()


def test_one_after_another() -> None:
    assert Sequence(targets.inner_network(2), targets.inner_network(3)) == [1, 3]

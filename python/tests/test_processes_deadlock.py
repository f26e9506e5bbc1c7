"""Deadlock over several OS processes (rules 10.1 to 10.3, 10.6; WIRE.md 10)."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any

import os_process_targets_stuck as targets_stuck
import pytest

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft._distributed_deadlock import knots as _knots
from weft._distributed_deadlock import rounds as _rounds
from weft.processes import (
    Barrier,
    BlockedProcess,
    Channel,
    Deadlock,
    Group,
    Hosts,
    Parallel,
    process,
    run,
)


def stuck(*processes: Any) -> Deadlock:
    with pytest.raises(Deadlock) as caught:
        Parallel(*processes)
    return caught.value


def blocked(log: Deadlock) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(p.path, p.operation, p.places) for p in log.processes]


# --- deadlocks, with their knots ------------------------------------------------------------------


def test_two_os_processes_that_read_from_each_other_first() -> None:
    a, b = Channel("a"), Channel("b")
    message = stuck(
        targets_stuck.pass_on(a.reader(), b.writer()), targets_stuck.pass_on(b.reader(), a.writer())
    )
    assert blocked(message) == [
        ("main/pass_on[0]", "read", ("'a'",)),
        ("main/pass_on[1]", "read", ("'b'",)),
    ]
    assert message.knot == ["main/pass_on[0]", "main/pass_on[1]"]
    assert isinstance(message.processes[0], BlockedProcess)
    line = targets_stuck.pass_on._weft_body.__code__.co_firstlineno + 3
    assert message.processes[0].at == f"os_process_targets_stuck.py:{line}"
    assert "main/pass_on[0] waits for main/pass_on[1]" in message.report
    assert "3 OS processes" in message.report


def test_a_ring_through_hosts_a_thread_and_a_coroutine_again_and_again() -> None:
    with Hosts(2) as hosts:
        for _ in range(3):
            a, b, c = Channel("a"), Channel("b"), Channel("c")
            message = stuck(
                targets_stuck.pass_on.on(hosts[0])(a.reader(), b.writer()),
                targets_stuck.pass_on_here(b.reader(), c.writer()),
                targets_stuck.pass_on_async.on(hosts[1])(c.reader(), a.writer()),
            )
            assert message.knot == ["main/pass_on", "main/pass_on_async", "main/pass_on_here"]
            for pid in hosts.pids:
                assert f"in OS process {pid}" in message.report
        a, b = Channel("a"), Channel("b")  # the hosts are still usable
        w = th.process(lambda out: out.write(7))
        r = th.process(lambda inp: inp.read())
        got = Parallel(
            w(a.writer()), targets_stuck.pass_on.on(hosts)(a.reader(), b.writer()), r(b.reader())
        )
        assert got[2] == 7


def test_a_choice_at_far_ends_names_its_channels() -> None:
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    message = stuck(
        targets_stuck.choose(a.reader(), b.reader(), c.writer()),
        targets_stuck.pass_on_here(c.reader(), a.writer()),
        targets_stuck.pass_on_here(c.reader(), b.writer()),
    )
    assert ("main/choose", "select", ("'a'", "'b'")) in blocked(message)
    assert "main/choose" in message.knot


@pytest.mark.parametrize("kind", ["meets", "meets_async"])
def test_at_a_barrier_that_another_made_they_sync(kind: str) -> None:  # rule 8.7
    b, c = Barrier(2), Channel("c")
    message = stuck(
        getattr(targets_stuck, kind)(b, c.writer()),
        targets_stuck.pass_on_here(c.reader(), c.writer()),
    )
    assert [(path, operation) for path, operation, _ in blocked(message)] == [
        (f"main/{kind}", "sync"),
        ("main/pass_on_here", "read"),
    ]
    assert "test_processes_deadlock.py" in message.processes[0].places[0]
    assert f"main/{kind}: sync" in message.report


def test_the_knot_is_smaller_than_what_is_blocked() -> None:
    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    message = stuck(
        targets_stuck.pass_on(a.reader(), b.writer()),
        targets_stuck.pass_on_here(b.reader(), a.writer()),
        targets_stuck.pass_on_here(c.reader(), d.writer()).named("waits"),
        targets_stuck.choose(d.reader(), b.reader(), c.writer()).named("behind"),
    )
    assert len(message.processes) == 4
    assert (
        message.knot in (["main/pass_on", "main/pass_on_here"], ["main/waits"])
        or len(message.knot) < 4
    )


def test_hosts_of_hosts() -> None:
    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    message = stuck(
        targets_stuck.two_more(a.reader(), c.writer(), d.reader(), b.writer()),
        targets_stuck.pass_on_here(c.reader(), d.writer()),
        targets_stuck.pass_on_here(b.reader(), a.writer()).named("last"),
    )
    paths = {path for path, _, _ in blocked(message)}
    assert paths == {
        "main/two_more/pass_on",
        "main/two_more/pass_on_here",
        "main/pass_on_here",
        "main/last",
    }
    assert set(message.knot) - {"main/two_more"} == paths
    assert "3 OS processes" in message.report


def test_a_group_of_ordinary_code() -> None:
    a, b = Channel("a"), Channel("b")
    with pytest.raises(Deadlock) as caught, Group() as g:
        g.start(targets_stuck.pass_on(a.reader(), b.writer()))
        g.start(targets_stuck.pass_on(b.reader(), a.writer()))
    assert len(caught.value.knot) == 2


def test_a_process_of_its_own_that_nobody_writes_to() -> None:
    a, b = Channel("a"), Channel("b")
    kept, also = a.writer(), b.reader()
    signal = stuck(targets_stuck.pass_on(a.reader(), b.writer()))
    assert signal.knot == ["main/pass_on"]
    assert "nobody that is known" in signal.report
    kept.retire()
    also.retire()


# --- no false report ------------------------------------------------------------------------------


def test_a_timer_in_a_host_is_no_deadlock() -> None:
    a, b = Channel("a"), Channel("b")
    r = th.process(lambda inp, out: out.write(inp.read()))
    assert (
        Parallel(targets_stuck.asleep(a.reader(), b.writer()), r(b.reader(), a.writer()))[0]
        == "slept"
    )


def test_an_os_process_that_computes_is_asked_and_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keep = os.open(fifo, os.O_RDWR)
    answers: list[bool] = []
    real = _rounds._still

    def still(spaces: Any) -> bool:
        answers.append(real(spaces))
        if len(answers) == 4:  # by then the host has been asked four times
            os.write(keep, b"go on")
        return answers[-1]

    monkeypatch.setattr(_rounds, "_still", still)
    a = Channel("a")
    r = th.process(lambda inp: inp.read())
    try:
        assert Parallel(targets_stuck.computes(str(fifo), a.writer()), r(a.reader()))[1] == b"go on"
    finally:
        os.close(keep)
    assert answers[:4] == [False] * 4


def test_a_cancellation_that_is_being_carried_out_is_no_deadlock(tmp_path: Path) -> None:
    """Rules 6.1, 10.1: the cancellation has arrived in the other OS process, but has not reached
    the processes in that OS process yet.
    """
    report, go_on = tmp_path / "said", tmp_path / "go on"
    for fifo in (report, go_on):
        os.mkfifo(fifo)
    a, b = Channel("a"), Channel("b")
    with Hosts(1) as hosts:
        run(targets_stuck.will_obey_late.on(hosts)(str(report), str(go_on)))
        waits = targets_stuck.greets_and_reads.on(hosts)(b.writer(), a.reader())

        @th.process
        def cancels(inp: Any, held: Any) -> list[bool]:
            inp.read()
            waits.cancel()
            assert report.read_bytes() == b"here"
            found = [s.waits for s in _rounds._all_spaces() if s.pid != os.getpid()]
            go_on.write_bytes(b"go on")
            return found

        held = a.writer()
        assert Parallel(waits, cancels(b.reader(), held))[1] == [False]


def test_a_thread_that_may_hold_an_end_makes_it_a_standstill(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = Channel("a"), Channel("b")
    kept = [a.writer()]
    message = threading.Event()
    real = _knots.tell

    def tell(spaces: Any) -> None:
        real(spaces)
        message.set()

    monkeypatch.setattr(_knots, "tell", tell)

    def later() -> None:
        message.wait(280)
        kept.pop().write("late")

    thread = threading.Thread(target=later)
    r = th.process(lambda inp: inp.read())
    with caplog.at_level(logging.WARNING, "weft"):
        thread.start()
        got = Parallel(targets_stuck.pass_on(a.reader(), b.writer()), r(b.reader()))
        thread.join()
    assert got[1] == "late"
    (messages,) = [m for m in caplog.messages if m.startswith("standstill")]
    assert "main/pass_on: read 'a'" in messages and "an end of 'a'" in messages


def test_a_network_that_ends_well_after_many_standstills() -> None:
    a, b = Channel("a"), Channel("b")

    @th.process
    def slowly(out: Any, inp: Any) -> list[int]:
        got = []
        for i in range(3):
            th.sleep(0.15)  # longer than it takes to ask all address spaces
            out.write(i)
            with_end = inp.read()
            got.append(with_end)
        return got

    @th.process
    def back(inp: Any, out: Any) -> None:
        for v in inp:
            out.write(v)

    import os_process_targets as targets

    c = Channel("c")
    got = Parallel(
        slowly(a.writer(), c.reader()),
        targets.double(a.reader(), b.writer()),
        back(b.reader(), c.writer()),
    )
    assert got[0] == [0, 2, 4]


# --- the rounds' logic ----------------------------------------------------------------------------


def space(incarnation: int, waits: bool = True, sessions: Any = ()) -> _rounds.Space:
    return _rounds.Space(
        incarnation, incarnation, waits, list(sessions), [], [], [], [], False, {}, {}
    )


def test_all_must_wait() -> None:
    assert _rounds._still([space(1), space(2)])
    assert not _rounds._still([space(1), space(2, waits=False)])


def test_what_was_sent_must_have_been_taken() -> None:
    assert _rounds._still([space(1, sessions=[(2, 5, 7)]), space(2, sessions=[(1, 7, 5)])])
    assert not _rounds._still([space(1, sessions=[(2, 6, 7)]), space(2, sessions=[(1, 7, 5)])])
    assert not _rounds._still([space(1, sessions=[(2, 5, 7)]), space(2, sessions=[(1, 8, 5)])])


def test_counters_wrap() -> None:
    top = (1 << 32) - 1
    assert _rounds._still([space(1, sessions=[(2, top, 0)]), space(2, sessions=[(1, 0, top)])])


def test_a_session_with_who_was_not_asked_is_not_known() -> None:
    assert not _rounds._still([space(1, sessions=[(3, 1, 1)]), space(2)])


def test_what_has_moved_between_two_rounds_is_seen() -> None:
    first = [space(1, sessions=[(2, 5, 7)]), space(2, sessions=[(1, 7, 5)])]
    second = [space(2, sessions=[(1, 8, 6)]), space(1, sessions=[(2, 6, 8)])]
    assert _rounds._moved(first, second)
    assert not _rounds._moved(first, list(reversed(first)))


def test_the_smallest_knot() -> None:
    a, b, c, d, e = ((0, i) for i in range(5))
    assert _knots.smallest_knot({a: {b}, b: {a}, c: {a}}) == [a, b]
    assert _knots.smallest_knot({a: {b}, b: {c}, c: {a}, d: {e}, e: {d}}) == [d, e]
    assert _knots.smallest_knot({a: {b}, b: {a, c}, c: set()}) == [c]
    assert _knots.smallest_knot({a: {d}, b: {c}, c: {b}, d: {e}, e: {d}}) == [b, c]
    assert _knots.smallest_knot({}) == []


def test_a_process_that_waits_for_the_end_of_another_waits_for_it() -> None:
    """Rules 7.11, 10.2: in a report over several OS processes too, a process that waits for the end
    of another process counts as waiting for that process."""

    def waits(number: int, operation: str, place: int) -> Any:
        at = "x.py:1", 0, "places", [(place, False)]
        return (number, f"main/p{number}", operation, *at, [], True)

    places = {
        30: ("c", True, (), (), 0, 0, None),
        40: ("the end of p7", True, (), (7,), 0, 0, None),
    }
    first = space(1)._replace(facts=[([waits(7, "read", 30), waits(9, "wait for", 40)], places)])
    text, knot, shown, _ = _knots.report([first, space(2)])
    assert [row.path for row in shown] == ["main/p7", "main/p9"]
    assert knot == ["main/p7"]
    assert text.splitlines()[-1] == (
        "  main/p7 waits for whoever is on the other side of c (c never had a writer end)"
    )
    both = [waits(7, "wait for", 41), waits(9, "wait for", 40)]
    places[41] = ("the end of p9", True, (), (9,), 0, 0, None)
    text = _knots.report([first._replace(facts=[(both, places)])])[0]
    assert text.splitlines()[-2:] == ["  main/p7 waits for main/p9", "  main/p9 waits for main/p7"]


async def _reads(inp: Any) -> Any:
    return await inp.read()


async def _writes(out: Any) -> None:
    await out.write(7)


KINDS = {
    "processes": (process(targets_stuck.reads), process(targets_stuck.writes)),
    "coroutines": (co.process(_reads), co.process(_writes)),
    "greenlets": (gr.process(targets_stuck.reads), gr.process(targets_stuck.writes)),
    "threads": (th.process(targets_stuck.reads), th.process(targets_stuck.writes)),
}


@pytest.mark.parametrize("kind", ["on hosts", *KINDS])
def test_a_side_that_never_had_an_end_is_named(kind: str) -> None:
    """Rule 10.2, for processes of all backends, beside processes that wait in another OS
    process."""
    with Hosts(1) as hosts:
        reads, writes = KINDS.get(kind, KINDS["processes"])
        if kind == "on hosts":
            reads, writes = reads.on(hosts), writes.on(hosts)
        for side in "writer", "reader":
            a, b, c = Channel("a"), Channel("b"), Channel("lonely")
            message = stuck(
                reads(c.reader()) if side == "writer" else writes(c.writer()),
                targets_stuck.pass_on(a.reader(), b.writer()),
                targets_stuck.pass_on_here(b.reader(), a.writer()),
            )
            assert f"other side of 'lonely' ('lonely' never had a {side} end)" in message.report


def test_a_run_that_ends_leaves_nothing_behind_that_might_wake_another() -> None:
    a, b = Channel("a"), Channel("b")
    stuck(
        targets_stuck.pass_on(a.reader(), b.writer()), targets_stuck.pass_on(b.reader(), a.writer())
    )
    assert not _rounds._members
    c = Channel("c")
    kept = c.writer()  # no process holds this end: a thread that is not a process might hold it
    with pytest.raises(Deadlock, match="nobody that is known"):
        th.run(th.process(lambda inp: inp.read())(c.reader()))
    kept.retire()

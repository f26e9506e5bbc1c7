"""Choices over ends whose home is another OS process (rules 5, 6; WIRE.md 4.5, 5): in processes of
every backend, with timers, ends of processes and local channels beside these ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import os_process_targets_choice as targets_choice
import pytest
from test_processes import nobody_is_left  # noqa: F401 – a fixture

import weft.coroutines as co
import weft.threads as th
from weft.processes import (
    Cancelled,
    Channel,
    Parallel,
    PeerDied,
    ProcessDied,
    after,
    run,
    skip,
    statistics,
)


@th.process
def numbers(out: Any, n: int, first: int = 0) -> None:
    for i in range(first, first + n):
        out.write(i)


@th.process
def one(inp: Any) -> Any:
    return inp.read()


@pytest.mark.parametrize("kind", ["threads", "greenlets", "coroutines", "tasks"])
def test_far_and_local_ends_in_one_choice(kind: str) -> None:  # rules 5.1, 5.6, 6.6
    a, b, out = Channel("a"), Channel("b"), Channel("out")
    results = Parallel(
        numbers(a.writer(), 20),
        numbers(b.writer(), 20, 100),
        targets_choice.merge(kind, a.reader(), b.reader(), out.writer(), 20),
        one(out.reader()),
    )
    got = results[2]
    assert [v for i, v in got if i == 0] == list(range(20))
    assert [v for i, v in got if i == 1] == list(range(20))
    assert [v for i, v in got if i == 2] == list(range(100, 120))
    assert results[3] == "out"
    assert [statistics(c).transfers for c in (a, b, out)] == [20, 20, 1]


def test_timers_skips_and_limits() -> None:  # rules 5.2, 5.7, 7.12
    a, out, ready = Channel("a"), Channel("out"), Channel("ready")
    kept = a.writer(), out.reader()

    @th.process
    def late(inp: Any, w: Any) -> None:
        inp.read()
        w.write("late")

    results = Parallel(
        targets_choice.times_out(a.reader(), out.writer(), ready.writer()),
        late(ready.reader(), kept[0]),
    )
    assert results[0] == [
        (1, None),
        (2, None),
        (1, None),
        (1, None),
        (1, None),
        (0, None),
        True,
        True,
        "timeout",
        (0, "late"),
    ]
    assert statistics(out).transfers == 0  # the withdrawn output was not taken (rule 6.2)
    kept[1].retire()


def test_the_end_of_a_process_is_a_guard() -> None:  # rule 7.11
    a, ready = Channel("a"), Channel("ready")

    @th.process
    def late(inp: Any, w: Any) -> None:
        inp.read()
        w.write("late")

    results = Parallel(
        targets_choice.waits_for_an_end(a.reader(), ready.writer()),
        late(ready.reader(), a.writer()),
    )
    timed, *ends, value = results[0]
    assert timed == (2, None)
    assert [i for i, _ in ends] == [1, 0, 1]
    assert value == "late"


def test_the_end_of_an_os_process_is_a_guard() -> None:
    a = Channel("a")
    kept = a.writer()
    assert run(targets_choice.ends_elsewhere(a.reader())) == [1, "failed", 9]
    kept.retire()


@pytest.mark.parametrize("how", ["retire", "poison"])
def test_how_it_ends(how: str) -> None:  # rules 5.6, 4.1
    a, b = Channel("a"), Channel("b")

    @th.process
    def first(out: Any) -> None:
        out.write(1)
        if how == "poison":
            out.poison(7)

    @th.process
    def second(out: Any) -> None:
        if how == "retire":
            out.write(2)

    kept = b.writer() if how == "poison" else None
    results = Parallel(
        first(a.writer()), second(b.writer()), targets_choice.how_it_ends(a.reader(), b.reader())
    )
    if how == "retire":
        assert sorted(results[2][:2]) == ["0 1", "1 2"]
        assert results[2][2].startswith("Retired") and len(results[2]) == 3
    else:
        assert results[2] == ["0 1", "Poisoned 0 7"]
    if kept is not None:
        kept.retire()


def test_retirement_is_an_outcome_if_it_is_asked_for() -> None:  # rule 5.6
    a, b = Channel("a"), Channel("b")
    kept = b.writer()

    @th.process
    def first(out: Any) -> None:
        out.write(1)

    results = Parallel(
        first(a.writer()), targets_choice.raises_at_the_first(a.reader(), b.reader())
    )
    assert results[1] == ["0 1", "Retired 0"]
    kept.retire()


@pytest.mark.parametrize("mode", ["fair", "priority"])
def test_alternatives(mode: str) -> None:  # rules 5.3, 5.4
    a, b = Channel("a", capacity=50), Channel("b", capacity=50)
    w, v = a.writer(), b.writer()
    for i in range(40):
        w.write(i)
        v.write(i)
    chosen = run(targets_choice.alternative(a.reader(), b.reader(), mode, 20))
    if mode == "fair":
        assert sorted(chosen[:20]) == [0] * 10 + [1] * 10
    else:
        assert chosen[:20] == [0] * 20
    assert chosen[20] == 1 and (chosen[21] == 0 or mode == "fair")
    w.retire(), v.retire()


def test_choices_that_span_meet_each_other() -> None:  # WIRE.md 5.4
    a, b = Channel("a"), Channel("b")
    n = 30
    results = Parallel(
        targets_choice.meets_another(a.reader(), b.writer(), n, True),
        targets_choice.meets_another(b.reader(), a.writer(), n, False),
    )
    assert results[0] == [x for i in range(n) for x in (1, i)]
    assert results[1] == [x for i in range(n) for x in (i, 1)]


def test_a_choice_is_cancelled(tmp_path: Path) -> None:  # rules 6.1, 6.2
    report = tmp_path / "said"
    ready, a, out = Channel("ready"), Channel("a"), Channel("out")
    kept = a.writer(), out.reader()

    @th.process
    def fails(inp: Any) -> None:
        inp.read()
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        Parallel(
            targets_choice.is_cancelled(ready.writer(), a.reader(), out.writer(), str(report)),
            fails(ready.reader()),
        )
    assert report.read_text(encoding="utf-8") == "cancelled"
    kept[0].retire(), kept[1].retire()


@pytest.mark.parametrize("how", ["skip", "a timeout of 0"])
def test_a_select_that_polls_is_cancelled_before_its_home_has_answered(how: str) -> None:
    """Rule 6.1: the skip must not be chosen before every home has answered."""
    over, here = Channel("over"), Channel("here", capacity=1)

    @co.process
    async def main() -> list[str]:
        async with co.Group() as group:
            group.start(targets_choice.keeps_a_channel(here.writer(), over.reader()))
            ends, signals = here.reader(), over.writer()
            pid, inp = await ends.read()
            messages: list[str] = []
            os.kill(pid, signal.SIGSTOP)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)  # all threads have stopped
            looker = group.start(looks(inp, skip() if how == "skip" else after(0), messages))
            while not messages:
                await co.yield_()
            looker.cancel()
            os.kill(pid, signal.SIGCONT)
            await looker.ended()
            await signals.write(None)
        return messages

    assert co.run(main()) == ["looks", "cancelled"]


@co.process
async def looks(inp: Any, instead: Any, messages: list[str]) -> None:
    messages.append("looks")
    try:
        messages.append(str(await co.select(inp, instead)))
    except Cancelled:
        messages.append("cancelled")
        raise


def test_an_asyncio_task_is_cancelled() -> None:  # rule 6.6
    a = Channel("a")
    kept = a.writer()
    assert run(targets_choice.task_is_cancelled(a.reader())) == ["CancelledError"] * 3
    kept.retire()


def test_what_is_bad_use_there() -> None:  # rules 5.5, 11.2
    a, both = Channel("a"), Channel("both")
    w = a.writer()

    @th.process
    def after_it(out: Any) -> None:
        out.write("alive")

    results = Parallel(
        targets_choice.misuses(a.reader(), both.reader(), both.writer()), after_it(w)
    )
    answers = results[0]
    assert all(s.startswith("BadUse") for s in answers[:2]), answers
    assert "barrier" in answers[0] and "both ends" in answers[1]
    assert answers[2] == "alive"


@pytest.mark.parametrize("enough", [1, 7, 20, 50])
def test_a_process_is_killed_in_its_choice(enough: int) -> None:  # rules 4.5, 6.4
    """At most one value is lost, which the process had read but not passed on. The other values
    are intact and in order, and the writers learn of the death.
    """
    a, b, out, kill = Channel("a"), Channel("b"), Channel("out"), Channel("kill")
    ended: dict[int, int] = {}
    got: list[int] = []

    @th.process
    def writes(w: Any, first: int) -> None:
        n = first
        try:
            while True:
                w.write(n)
                n += 1
        except (PeerDied, Cancelled):  # either may be raised first: a failure cancels the others
            ended[first] = n

    @th.process
    def reads(r: Any, signals: Any) -> None:
        try:
            while True:
                got.append(r.read())
                if len(got) == enough:
                    signals.write(None)
        except (PeerDied, Cancelled):
            pass

    with pytest.raises(ProcessDied) as caught:
        Parallel(
            writes(a.writer(), 0),
            writes(b.writer(), 1000),
            reads(out.reader(), kill.writer()),
            targets_choice.killed_when_told(a.reader(), b.reader(), out.writer(), kill.reader()),
        )
    assert caught.value.signal == signal.SIGKILL
    written = [*range(ended[0]), *range(1000, ended[1000])]
    assert len(got) >= enough and len(set(got)) == len(got) and set(got) <= set(written)
    assert len(written) - len(got) <= 1
    for mine in ([v for v in got if v < 1000], [v for v in got if v >= 1000]):
        assert mine == sorted(mine)


def test_choices_that_are_left_take_nothing() -> None:  # rule 6.2
    a, ready = Channel("a"), Channel("ready")

    @th.process
    def late(inp: Any, w: Any) -> None:
        inp.read()
        w.write("late")

    results = Parallel(
        targets_choice.leaves_choices(a.reader(), ready.writer()), late(ready.reader(), a.writer())
    )
    assert results[0] == [2] * 6 + [True, (0, "late")]
    assert statistics(a).transfers == 1


def test_a_value_that_waits_in_a_choice_goes_on_to_another_os_process() -> None:  # WIRE.md 7.4
    a = Channel("a")
    kept = a.writer()
    assert run(targets_choice.hands_out_meanwhile(a.reader())) == [1, {"k": [1]}]
    kept.retire()

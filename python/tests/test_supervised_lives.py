"""Tests which processes are started again (rule 7.16), and which values a death loses (rule 7.17).

Most tests are in virtual time, with a Place that starts no OS processes. The Place decides when an
OS process would die.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import os_process_targets_supervised as targets
import pytest

import weft.threads as th
from weft import observe
from weft._hosts import loops
from weft._hosts.hosts import Elsewhere
from weft.processes import (
    BadUse,
    Channel,
    ChannelEnd,
    Hosts,
    Parallel,
    PeerDied,
    ProcessDied,
    Supervisor,
    run,
)
from weft.threads import after, now, select

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup


class Place(Elsewhere):
    """A place that simulates OS processes in this program. Each life of f(name, lives) lasts for
    the next number of `lives`, in seconds, and then dies; after the last number the call returns.
    In its life n the process holds the value "job n".
    """

    _stops = True

    def __init__(self) -> None:
        self.began: list[tuple[float, str]] = []
        self.lost = 0

    def call(self, function: Any, args: Any, keywords: Any, attempt: Any = None) -> Any:
        name, lives = args
        self.began.append((now(), name))
        kill = Channel(capacity=1)
        killed = kill.writer()

        def kills() -> None:
            with contextlib.suppress(ChannelEnd):
                killed.write(None)

        attempt.runs(len(self.began), kills)
        life = next(lives, None)
        if life is not None:
            select(kill.reader(), after(life))
            self.lost += 1
            attempt.died = True
            attempt.lost = lambda n=self.lost: [("jobs", Job(n))]
            raise ProcessDied(name, len(self.began), -9)
        attempt.runs(0, lambda: None)
        return name


class Job:
    def __init__(self, n: int) -> None:
        self.n = n

    def __repr__(self) -> str:
        return f"job {self.n}"


@pytest.fixture(autouse=True)
def as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves values as they are, because those of Place are not packed."""
    from weft._hosts import supervisor

    packed = supervisor._unpacked
    monkeypatch.setattr(supervisor, "_unpacked", lambda v: v if isinstance(v, Job) else packed(v))


@th.process
def served(name: str, lives: Iterator[float]) -> str:
    raise AssertionError("Place runs nothing")


@contextlib.contextmanager
def heard() -> Iterator[list[Any]]:
    events: list[Any] = []
    with observe.supervision(events.append):
        yield events


def virtual(*processes: Any) -> Any:
    return run(*processes, clock="virtual")


def test_a_service_that_crashes_10000_times_goes_on(caplog: Any) -> None:
    """Rule 7.16: two deaths in each minute, for days. Rule 7.17: each lost value is named."""
    place = Place()
    supervisor = Supervisor(place, restarts=3, within=60, backoff=0.1)
    with caplog.at_level(logging.WARNING, "weft"):
        result = virtual(served.on(supervisor)("service", iter([30.0] * 10_000)))
    assert result == "service"
    text = "\n".join(r.getMessage() for r in caplog.records)
    named = re.findall(r"what it had read last is lost: job (\d+) of channel 'jobs'", text)
    assert named == [str(n) for n in range(1, 10_001)]
    assert text.count("it is started again (2 of 3 within 60 s)") == 9_999


def test_so_many_deaths_within_the_time_are_too_many(caplog: Any) -> None:
    place = Place()
    supervisor = Supervisor(place, restarts=3, within=60, backoff=0, name="s")
    with heard() as events, pytest.raises(ProcessDied):
        virtual(served.on(supervisor)("a", iter([50.0, 50.0, 5.0, 5.0, 5.0, 5.0])))
    # at time 115 the deaths at 50 and at 100 no longer count
    assert [at for at, _ in place.began] == [0, 50, 100, 105, 110]
    assert [e.event for e in events] == [*["began", "died"] * 4, "began", "given up"]
    assert events[-1].supervisor == "s" and events[-1].life == 5
    assert str(events[0]).endswith("began (life 1)")


def test_without_within_so_many_in_all() -> None:
    """Rule 7.16: without `within` all restarts of a process count, separately for each process."""
    place = Place()
    supervisor = Supervisor(place, restarts=2, backoff=0)
    with pytest.raises(ProcessDied):
        virtual(served.on(supervisor)("a", iter([1000.0] * 3)))
    assert len(place.began) == 3


@pytest.mark.parametrize("again", ["died", "recycled"])
def test_a_process_that_waits_for_its_next_life_is_given_up_too(again: str) -> None:
    """Rule 7.16: `b` is in its back-off, or was just recycled, when `a` dies once too often."""
    place = Place()
    supervisor = Supervisor(
        place, restarts=int(again == "died"), backoff=5, strategy="rest for one"
    )
    a, b = served.on(supervisor), served.on(supervisor)
    found: dict[str, Any] = {}

    @th.process
    def kept(supervised: Any, name: str) -> None:
        try:
            found[name] = Parallel(supervised)
        except ProcessDied as error:
            found[name] = str(error)

    if again == "recycled":
        call = place.call

        def recycles(function: Any, args: Any, keywords: Any, attempt: Any = None) -> Any:
            if args[0] == "b":
                th.sleep(2)
                if len(place.began) < 2:
                    raise loops.Recycled
            return call(function, args, keywords, attempt)

        supervisor._run = recycles
        with observe.supervision(lambda e: th.sleep(1) if e.event == "recycled" else None):
            virtual(kept(a("a", iter([2.5])), "a"), kept(b("b", iter([])), "b"))
        assert "'a'" in found["b"]
    else:
        with heard() as events:
            virtual(kept(a("a", iter([2.0])), "a"), kept(b("b", iter([1.0])), "b"))
        assert "'b'" in found["b"]
        assert [e.event for e in events].count("given up") == 2
    assert "'a'" in found["a"]
    assert [name for _, name in place.began].count("b") == (again == "died")


@pytest.mark.parametrize("tree", [False, True])
def test_the_counts_begin_anew_when_no_process_is_left(tree: bool) -> None:
    """The counts begin anew with each run, because a supervisor outlives its runs, whose clocks may
    differ."""
    place = Place()
    if tree:
        above = Supervisor(place, restarts=1, within=60, backoff=0)
        supervisor = Supervisor(place, restarts=0, within=60, under=above)
    else:
        supervisor = Supervisor(place, restarts=1, within=60, backoff=0, strategy="one for all")
    for _ in range(3):
        assert virtual(served.on(supervisor)("a", iter([1000.0]))) == "a"


def test_the_back_off_of_a_supervisor_starts_over_after_its_own_healthy_life() -> None:
    """The supervisor is itself started again every 150 s, although none of its processes runs that
    long."""
    place = Place()
    above = Supervisor(place, restarts=None, backoff=1, healthy=60)
    below = Supervisor(place, restarts=2, backoff=0, under=above)
    virtual(served.on(below)("a", iter([50.0] * 12)))
    assert [at for at, _ in place.began][::3] == [0, 151, 302, 453, 604]


def test_the_log_names_a_death_in_one_whole_sentence(caplog: Any) -> None:
    """The sentence of the log ends before "; the last that it wrote to its standard error:" and the
    text that follows.
    """
    place = Place()
    call = place.call

    def wrote(function: Any, args: Any, keywords: Any, attempt: Any = None) -> Any:
        try:
            return call(function, args, keywords, attempt)
        except ProcessDied:
            raise ProcessDied("a", 7, 3, stderr="oh\nno") from None

    supervisor = Supervisor(place, backoff=0)
    supervisor._run = wrote
    with caplog.at_level(logging.WARNING, "weft"):
        virtual(served.on(supervisor)("a", iter([1.0])))
    died = (
        "the OS process 7 of 'a' exited with status 3 before its process had ended; it is started"
    )
    assert died in caplog.text


def test_supervisors_that_are_dropped_are_forgotten() -> None:
    above = Supervisor(Place())
    below = [weakref.ref(Supervisor(Place(), under=above)._node) for _ in range(3)]
    gc.collect()
    assert [one() for one in below] == [None] * 3


def test_numbers_that_make_no_sense() -> None:
    with pytest.raises(BadUse, match="within must be more than 0 seconds"):
        Supervisor(within=0)
    with pytest.raises(BadUse, match="within must be seconds"):
        Supervisor(within=10**400)
    assert virtual(served.on(Supervisor(Place(), restarts=10**30))("a", iter([1.0]))) == "a"


def test_the_back_off_starts_over_after_a_healthy_life() -> None:
    place = Place()
    supervisor = Supervisor(place, restarts=None, backoff=0.25, healthy=20)
    with heard() as events:
        virtual(served.on(supervisor)("a", iter([1.0, 1.0, 1.0, 20.0, 1.0])))
    assert [e.pause for e in events if e.event == "died"] == [0.25, 0.5, 1.0, 0.25, 0.5]


FOREVER = 10_000.0


@pytest.mark.parametrize(
    ("strategy", "again"),
    [("one for one", "b"), ("one for all", "abc"), ("rest for one", "bc")],
)
def test_strategies(strategy: str, again: str) -> None:
    """Rule 7.16: b dies at 5. No process starts again before the pause has ended."""
    place = Place()
    supervisor = Supervisor(place, strategy=strategy, backoff=0.5)
    lives = {"a": [FOREVER], "b": [5.0], "c": [FOREVER]}
    started = [served.on(supervisor)(name, iter(lives[name])) for name in "abc"]
    with heard() as events:
        results = virtual(*started)
    assert results == ["a", "b", "c"]
    second = sorted(name for at, name in place.began if at == 5.5)
    assert second == list(again)
    stopped = sorted(e.process[-1] for e in events if e.event == "stopped")
    assert len(stopped) == len(again) - 1


def test_one_for_all_has_one_count() -> None:
    place = Place()
    supervisor = Supervisor(place, restarts=3, within=60, strategy="one for all", backoff=0)
    lives = [iter([10.0, FOREVER, 10.0, FOREVER]), iter([FOREVER, 10.0, FOREVER, 10.0])]
    with pytest.raises(ExceptionGroup, match="2 processes failed"):
        virtual(*[served.on(supervisor)(n, one) for n, one in zip("ab", lives, strict=True)])
    assert len(place.began) == 8  # the fourth death is the last one


def test_one_that_has_ended_is_not_started_again() -> None:
    place = Place()
    supervisor = Supervisor(place, strategy="one for all", backoff=0)
    assert virtual(
        served.on(supervisor)("a", iter(())), served.on(supervisor)("b", iter([5.0]))
    ) == ["a", "b"]
    assert sorted(name for _, name in place.began) == ["a", "b", "b"]


def test_a_tree_of_supervisors() -> None:
    """Rule 7.16: the third death in `left` counts as one for `above`, which starts `right` again
    too; then `left` counts anew. At the second such death `above` ends.
    """
    place = Place()
    above = Supervisor(place, restarts=1, within=600, strategy="one for all", backoff=0)
    left = Supervisor(place, restarts=2, within=60, under=above, backoff=0)
    right = Supervisor(place, restarts=2, within=60, under=above, backoff=0)

    def lives() -> Iterator[float]:
        while True:
            yield 1.0

    with heard() as events, pytest.raises(ExceptionGroup, match="3 processes failed"):
        virtual(
            served.on(left)("a", lives()),
            served.on(left)("b", iter([FOREVER] * 9)),
            served.on(right)("c", iter([FOREVER] * 9)),
        )
    starts = {name: [at for at, n in place.began if n == name] for name in "abc"}
    assert starts == {"a": [0, 1, 2, 3, 4, 5], "b": [0, 3], "c": [0, 3]}
    given_up = [e for e in events if e.event == "given up"]
    assert len(given_up) == 3


def test_rest_for_one_of_supervisors() -> None:
    """The place of a supervisor among the children of the supervisor above it is fixed when the
    lower supervisor is made."""
    place = Place()
    above = Supervisor(place, strategy="rest for one", backoff=0)
    first = Supervisor(place, restarts=0, under=above)
    second = Supervisor(place, restarts=0, under=above)
    virtual(
        served.on(first)("a", iter([FOREVER])),
        served.on(second)("b", iter([5.0, FOREVER])),
        served.on(above)("c", iter([FOREVER, FOREVER])),
    )
    assert sorted(name for at, name in place.began if at == 5) == ["b", "c"]


def test_health() -> None:
    place = Place()
    supervisor = Supervisor(place, backoff=3)
    seen: list[Any] = []

    @th.process
    def looks() -> None:
        for pause in (1, 5, 3):
            th.sleep(pause)
            seen.extend(supervisor.health())

    virtual(looks(), served.on(supervisor)("a", iter([5.0, FOREVER])))
    assert [(h.state, h.life, h.restarts, h.age) for h in seen] == [
        ("runs", 1, 0, 1),
        ("waits", 1, 1, 6),
        ("runs", 2, 1, 1),
    ]
    assert {h.process for h in seen} == {"main/served"} and seen[0].pid == 1
    assert supervisor.health() == []


def test_a_listener_that_fails_is_logged(caplog: Any) -> None:
    def fails(event: Any) -> None:
        raise LookupError

    with observe.supervision(fails):
        assert virtual(served.on(Supervisor(Place()))("a", iter(()))) == "a"
    assert "a listener to supervision has failed" in caplog.text


# --- OS processes ---------------------------------------------------------------------------------


@th.process
def writes(out: Any, values: list[Any]) -> None:
    with contextlib.suppress(PeerDied):
        for value in values:
            out.write(value)


@th.process
def gathers(inp: Any) -> list[Any]:
    got = []
    with contextlib.suppress(ChannelEnd):
        while True:
            got.append(inp.read())
    return got


def serve(worker: Any, place: Any, jobs: list[Any], capacity: int = 0) -> list[Any]:
    a, b = Channel("jobs", capacity=capacity), Channel("done")
    return Parallel(
        writes(a.writer(), jobs), worker.on(place)(a.reader(), b.writer()), gathers(b.reader())
    )[2]


def crashes(place: Any, n: int, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "weft"):
        done = serve(targets.dies_at_odd, place, list(range(2 * n)))
    assert done == list(range(0, 2 * n, 2))
    named = re.findall(r"read last is lost: (\d+) of channel 'jobs'", caplog.text)
    assert [int(i) for i in named] == list(range(1, 2 * n, 2))


def test_each_lost_value_is_named(caplog: Any) -> None:
    """Rule 7.17: each value is named that a loop `for job in jobs` loses when its OS process is
    killed."""
    crashes(Supervisor(restarts=3, within=0.001, backoff=0), 4, caplog)


@pytest.mark.soak
def test_each_of_300_lost_values_is_named(caplog: Any) -> None:
    with Hosts(1, start="forkserver", backoff=0) as hosts:
        crashes(Supervisor(hosts, restarts=None, backoff=0), 300, caplog)


def test_the_values_of_a_buffer_are_named_too(caplog: Any) -> None:
    """Rule 7.17: the values are also named for a coroutine, and at the last death."""
    with caplog.at_level(logging.WARNING, "weft"), pytest.raises(ProcessDied):
        serve(targets.dies_at_odd_async, Supervisor(restarts=1, backoff=0), list(range(9)), 3)
    assert re.findall(r"read last is lost: (\d+) of channel 'jobs'", caplog.text) == ["1", "3"]


def test_a_value_with_ends_is_not_kept(caplog: Any) -> None:
    """Rule 7.17: if a value with an end were kept, the reader of the answers would not learn of the
    death."""
    jobs = Channel("jobs")

    @th.process
    def asks(out: Any) -> str:
        answer = Channel("answer")
        reader = answer.reader()
        out.write(("question", answer.writer()))
        with pytest.raises(ChannelEnd) as caught:
            reader.read()
        return type(caught.value).__name__

    @th.process
    def supervised(inp: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.reads_and_dies.on(Supervisor(restarts=0))(inp))

    assert Parallel(asks(jobs.writer()), supervised(jobs.reader()))[0] in ("PeerDied", "Retired")
    assert "'a value with ends' of channel 'jobs'" in caplog.text


@pytest.mark.parametrize("worker", [targets.dies_once_each, targets.dies_once_each_async])
def test_redeliver_works_for_loops(worker: Any, caplog: Any, tmp_path: Any) -> None:
    """Rule 7.17: the worker dies once in each odd job, and does that job in its next life."""
    place = Supervisor(restarts=None, backoff=0, redeliver=True)
    jobs = [(i, str(tmp_path / str(i))) for i in range(4)]
    assert serve(worker, place, jobs) == [0, 1, 2, 3]
    assert "read last" not in caplog.text
    assert caplog.text.count("it is started again") == 2


def test_a_loop_that_is_left_has_used_its_value() -> None:
    place = Supervisor(backoff=0, redeliver=True)
    assert serve(targets.leaves_its_loop, place, [1, 2, 3]) == [1, "then", 2, "left", 3]


@pytest.mark.parametrize("redeliver", [False, True])
def test_recycling(redeliver: bool, caplog: Any) -> None:
    """Rule 7.17: three values in each life; no value is lost, and no death is counted."""
    place = Supervisor(restarts=0, redeliver=redeliver, max_values=3)
    with heard() as events:
        done = serve(targets.says_its_pid, place, list(range(7)))
    assert [n for n, _ in done] == list(range(7))
    pids = [pid for _, pid in done]
    assert len(set(pids)) == 3 and pids[0] == pids[2] != pids[3]
    assert [e.event for e in events].count("recycled") == 2
    assert "lost" not in caplog.text and "started again" not in caplog.text


@pytest.mark.parametrize("limit", [{"max_age": 0}, {"max_memory": 1}])
def test_recycling_by_age_and_memory(limit: dict[str, Any]) -> None:
    """Each limit is exceeded before the first value, so the worker of this test ends in its third
    life.
    """
    place = Supervisor(restarts=0, **limit)
    lives: list[int] = []

    class Enough(Exception):
        pass

    a, b = Channel("jobs"), Channel("done")

    @th.process
    def counts(inp: Any) -> None:
        for pid in inp:
            lives.append(pid)
            if len(lives) == 3:
                raise Enough

    with pytest.raises(Enough):
        Parallel(targets.says_it_begins.on(place)(a.reader(), b.writer()), counts(b.reader()))
    assert len(set(lives)) == 3


@pytest.mark.parametrize("redeliver", [True, False])
def test_a_memory_limit_that_is_met_is_a_death(caplog: Any, tmp_path: Any, redeliver: bool) -> None:
    """Rule 7.17: in its next life the worker receives the job again, or a warning names the job."""
    place = Supervisor(backoff=0, redeliver=redeliver, memory_limit=1 << 32)
    jobs = [(i, str(tmp_path / str(i))) for i in range(2)]
    assert serve(targets.takes_much_once, place, jobs) == ([0, 1] if redeliver else [1])
    assert "exited with status 12" in caplog.text
    lost = "what it had read last is lost: (0, " in caplog.text
    assert lost is not redeliver


def test_peers_learn_that_it_is_given_up() -> None:
    """Rules 4.5, 7.13: peers learn that the supervisor has abandoned the process, although no
    attempt was known to be the last."""
    c = Channel("c")
    place = Supervisor(restarts=1, within=1000, backoff=0)

    @th.process
    def supervised(out: Any) -> None:
        with pytest.raises(ProcessDied):
            Parallel(targets.dies.on(place)(out))

    @th.process
    def reads(inp: Any) -> str:
        with pytest.raises(ChannelEnd) as caught:
            inp.read()
        return type(caught.value).__name__

    assert Parallel(supervised(c.writer()), reads(c.reader()))[1] == "PeerDied"


def test_one_for_all_of_os_processes() -> None:
    """The second process waits forever in its first life, and is killed together with the first
    process."""
    lives, done = Channel("lives"), Channel("done")
    place = Supervisor(strategy="one for all", backoff=0)

    @th.process
    def tells(out: Any, inp: Any) -> list[str]:
        names = [inp.read(), inp.read()]
        out.write("die")
        names += [inp.read(), inp.read()]
        out.write("end")
        out.write("end")
        return sorted(names)

    with heard() as events:
        result = Parallel(
            tells(lives.writer(), done.reader()),
            targets.obeys.on(place)("a", lives.reader(), done.writer()),
            targets.obeys.on(place)("b", lives.reader(), done.writer()),
        )
    assert result == [["a", "a", "b", "b"], "a", "b"]
    assert sorted(e.event for e in events if e.event in ("died", "stopped")) == ["died", "stopped"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Supervisor(within=-1), "within"),
        (lambda: Supervisor(healthy="long"), "healthy"),
        (lambda: Supervisor(strategy="all"), "strategy must be one of one for one, one for all"),
        (lambda: Supervisor(under=3), "under must be a Supervisor"),
        (lambda: Supervisor(max_values=0), "max_values"),
        (lambda: Supervisor(max_age=-1), "max_age"),
        (lambda: Supervisor(max_memory=0), "max_memory"),
        (lambda: Supervisor(memory_limit=0), "memory_limit"),
        (lambda: Supervisor(Elsewhere(), strategy="one for all"), "strategy is for.*leave hosts"),
        (lambda: Supervisor(Elsewhere(), max_values=3), "max_values.*leave hosts out"),
        (lambda: Supervisor(Elsewhere(), memory_limit=3), "memory_limit is for"),
        (lambda: observe.supervision(3).__enter__(), "a function of one event"),
    ],
)
def test_bad_arguments(wrong: Callable[[], Any], says: str) -> None:
    with pytest.raises(BadUse, match=says):
        wrong()

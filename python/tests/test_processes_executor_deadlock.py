"""An Executor of weft.processes that has begun but has no calls does not prevent the report of a
deadlock or a standstill; a call that is not over does (rules 10.1 to 10.3, 10.6, 11.2; WIRE.md 10).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sysconfig
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import os_process_targets as targets
import os_process_targets_stuck as targets_stuck
import pytest
from test_processes import program

import weft
import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft._distributed_deadlock import knots as _knots
from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import executor as _executor
from weft.processes import Barrier, Channel, Deadlock, Executor, Hosts, Parallel, Retired

# In free-threaded builds other threads are not known by name, so one of them might hold an end that
# no process holds.
knows_threads = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="a standstill is told there"
)


def pids(pool: Executor) -> list[int]:
    return sorted(host.pid for host in pool._state.hosts)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Executor]:
    """Yields an Executor with two OS processes that have begun. After the test the OS processes
    must be the same, and must still compute.
    """
    paths = [str(tmp_path / "one"), str(tmp_path / "other")]
    for path in paths:
        os.mkfifo(path)
    with Executor(2) as e:
        both = [e.submit(targets.meet, *paths), e.submit(targets.meet, *reversed(paths))]
        before = sorted(one.result() for one in both)
        assert pids(e) == before
        yield e
        assert set(e.map(targets.its_pid, range(50))) <= set(before)
        assert pids(e) == before


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], list[bool]]:
    """rounds(n, then): returns a list of what the rounds find from now on; after the n-th,
    then() is called."""

    def after(n: int, then: Callable[[], Any]) -> list[bool]:
        found: list[bool] = []
        real = _rounds._still

        def still(spaces: Any) -> bool:
            found.append(real(spaces))
            if len(found) == n:
                then()
            return found[-1]

        monkeypatch.setattr(_rounds, "_still", still)
        return found

    return after


@pytest.fixture
def fifo(tmp_path: Path) -> tuple[str, Callable[[], Any]]:
    """Yields a path at which targets.wait_for_file() waits, and a function that ends that wait."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path), lambda: path.write_text("gone on", encoding="utf-8")


async def _awaits(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


def _blocks(inp: Any, out: Any) -> None:
    out.write(inp.read())


PASS_ON = {
    "coroutines": co.process(_awaits),
    "greenlets": gr.process(_blocks),
    "threads": th.process(_blocks),
    "processes": targets_stuck.pass_on,
}


def stuck(kind: str = "coroutines") -> Deadlock:
    """Runs two processes that wait for each other; returns the Deadlock that is reported."""
    a, b = Channel("a"), Channel("b")
    pass_on = PASS_ON[kind]
    with pytest.raises(Deadlock) as caught:
        Parallel(
            pass_on(a.reader(), b.writer()).named("one"),
            pass_on(b.reader(), a.writer()).named("other"),
        )
    message = caught.value
    assert [(p.path, p.operation, p.places) for p in message.processes] == [
        ("main/one", "read", ("'a'",)),
        ("main/other", "read", ("'b'",)),
    ]
    assert message.knot == ["main/one", "main/other"]
    return message


# --- deadlocks that are reported ------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(PASS_ON))
def test_beside_one_that_has_no_calls(kind: str, pool: Executor) -> None:
    """A deadlock is reported again and again, and the report does not contain the Executor's own OS
    processes."""
    for _ in range(2):
        message = stuck(kind)
        assert f"they are in {3 if kind == 'processes' else 1} OS process" in message.report
        assert not any(str(pid) in message.report for pid in pids(pool))
        assert "2 processes are blocked" in message.report
        assert pool.submit(targets.power, 3).result() == 9


def test_beside_hosts_and_one_in_an_os_process(pool: Executor) -> None:
    """The report also covers the Executor of a process in a host, because the whole tree of this
    program is asked.
    """
    a, b = Channel("a"), Channel("b")
    with Hosts(1) as hosts, pytest.raises(Deadlock) as caught:
        Parallel(
            targets_stuck.with_an_executor.on(hosts)(a.reader(), b.writer()),
            targets_stuck.pass_on_here(b.reader(), a.writer()),
        )
    assert [p.path for p in caught.value.processes] == [
        "main/pass_on_here",
        "main/with_an_executor",
    ]
    assert "2 OS processes" in caught.value.report


def test_once_the_last_call_is_over(
    pool: Executor, rounds: Any, fifo: tuple[str, Callable[[], Any]]
) -> None:
    """The deadlock is reported when the call is over, and not before."""
    path, go = fifo
    call = pool.submit(targets.wait_for_file, path)
    found = rounds(5, go)  # after five such rounds the executor stops asking
    stuck()
    assert found[:5] == [False] * 5
    assert call.done() and call.result() == "gone on"


@pytest.mark.soak
def test_once_what_waits_for_the_last_call_is_told(
    pool: Executor, rounds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call's callback may wake a process. When the callback has ended, no other event starts a
    round: the OS process of the call has been waiting for a long time, and has already reported
    that.
    """
    go, over = threading.Event(), []
    pool.submit(targets.power, 3).add_done_callback(lambda _: (go.wait(), over.append(True)))
    found, real = rounds(5, _rounds.standing), _rounds._look

    def look(ring: Any) -> None:
        real(ring)
        if len(found) >= 10:
            go.set()

    monkeypatch.setattr(_rounds, "_look", look)
    stuck()
    assert over and found[:10] == [False] * 10


def test_a_network_whose_process_waits_for_a_call(
    pool: Executor, rounds: Any, fifo: tuple[str, Callable[[], Any]]
) -> None:
    """The processes wait for a process that waits for a call, so there is no deadlock."""
    path, go = fifo
    rounds(4, go)
    c, d = Channel("c"), Channel("d")

    @th.process
    def asks(out: Any) -> None:
        call = pool.submit(targets.wait_for_file, path)
        _rounds.standing()  # a process that begins to wait for a channel makes this call
        out.write(call.result())

    @co.process
    async def reads(inp: Any, out: Any) -> None:
        await out.write(await inp.read())

    got = th.process(lambda inp: inp.read())
    assert Parallel(asks(c.writer()), reads(c.reader(), d.writer()), got(d.reader()))[2] == (
        "gone on"
    )


def test_a_guest_of_asyncio_whose_process_awaits_a_call(pool: Executor) -> None:  # rule 13.6
    c = Channel("c")

    @co.process
    async def asks(out: Any) -> None:
        for n in range(20):
            await out.write(await asyncio.wrap_future(pool.submit(targets.power, n)))

    @co.process
    async def reads(inp: Any) -> list[int]:
        return [v async for v in inp]

    got = weft.run(asks(c.writer()), reads(c.reader()), host="asyncio")
    assert got[1] == [n * n for n in range(20)]


def test_a_callback_that_wakes_a_process(
    pool: Executor, rounds: Any, fifo: tuple[str, Callable[[], Any]]
) -> None:
    """No process waits for the call. Its callback writes, so there is no deadlock."""
    path, go = fifo
    rounds(4, go)
    c = Channel("c", capacity=1)
    out = c.writer()
    pool.submit(targets.wait_for_file, path).add_done_callback(lambda f: out.write(f.result()))
    assert Parallel(th.process(lambda inp: inp.read())(c.reader()))[0] == "gone on"


@knows_threads
def test_a_thread_that_may_hold_an_end_makes_it_a_standstill(pool: Executor) -> None:  # rule 10.6
    """The report is the same as in a program without an Executor: it does not mention the
    Executor's threads and processes.
    """
    c = Channel("c")
    reports, out = [], c.writer()
    message = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reports.append(record.getMessage())
            message.set()

    handler = Handler()
    thread = threading.Thread(target=lambda: (message.wait(), out.write("late")))
    thread.start()
    logging.getLogger("weft").addHandler(handler)
    try:
        assert Parallel(th.process(lambda inp: inp.read())(c.reader()).named("waits"))[0] == "late"
    finally:
        logging.getLogger("weft").removeHandler(handler)
        thread.join()
    assert len(reports) == 1 and reports[0].startswith("standstill")
    assert reports[0].count(" at ") == 1 and "main/waits: read 'c'" in reports[0]
    assert "weft: " not in reports[0]


# --- calls that wait too --------------------------------------------------------------------------


def test_a_call_whose_processes_wait_for_each_other() -> None:
    """The deadlock breaks the pool, and the pool's error says where its calls wait. An OS process
    of the pool without calls does not prevent this.
    """
    with Executor(2) as e:
        e.submit(abs, -1).result()
        with pytest.raises(BrokenProcessPool) as caught:
            [f.result() for f in [e.submit(targets_stuck.within), e.submit(targets.power, 2)]]
        assert "calls wait for ever: deadlock: 2 processes" in str(caught.value)
        assert "/pass_on_here[0]: read 'a' at os_process_targets_stuck.py" in str(caught.value)
        with pytest.raises(BrokenProcessPool):
            e.submit(abs, -1)
    stuck()


@knows_threads
def test_a_call_that_waits_for_a_process_here(pool: Executor) -> None:
    """The call and the process are both reported; an Executor that has no calls is not broken by
    this deadlock. (When the process in this program ends, the call may end too.)
    """
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    with Executor(1) as e:
        call = e.submit(targets_stuck.reads, c.reader())
        with pytest.raises(Deadlock) as caught:
            Parallel(
                targets_stuck.pass_on_here(a.reader(), b.writer()),
                th.process(lambda inp, *out: out[0].write(inp.read()))(
                    b.reader(), a.writer(), c.writer()
                ).named("other"),
            )
        assert [p.path for p in caught.value.processes] == [
            "main/executor",
            "main/other",
            "main/pass_on_here",
        ]
        assert isinstance(call.exception(), (Retired, BrokenProcessPool))
        with pytest.raises(BrokenProcessPool, match="calls wait for ever"):
            e.submit(abs, -1)


def test_a_call_for_which_ordinary_code_writes(pool: Executor, rounds: Any) -> None:  # rule 10.6
    """No pool is broken, because this thread, which is not a process, holds the other end."""
    c, looked = Channel("c"), threading.Event()
    out = c.writer()
    found = rounds(2, looked.set)
    call = pool.submit(targets_stuck.reads, c.reader())
    looked.wait()
    out.write(7)
    assert call.result() == 7 and found


# --- when it ends, whichever way ------------------------------------------------------------------


def test_after_one_of_its_processes_was_killed() -> None:
    with Executor(1) as e:
        pid = e.submit(os.getpid).result()
        stuck()
        os.kill(pid, signal.SIGKILL)
        e._state.feeders[0].join()
        stuck()
        with pytest.raises(BrokenProcessPool):
            e.submit(os.getpid)
    stuck()


def test_after_calls_that_come_to_nothing(fifo: tuple[str, Callable[[], Any]]) -> None:
    """The calls fail, are cancelled or are given up. No such call counts as still going on, so the
    deadlock is reported."""
    path, go = fifo
    with Executor(1, max_tasks_per_child=3) as e:
        assert [f.exception() is None for f in [e.submit(targets.power, n) for n in range(7)]]
        assert e.submit(targets.power, targets.Unsendable()).exception() is not None
        assert e.submit(targets.unsendable).exception() is not None
        assert isinstance(e.submit(targets.inverse, 0).exception(), ZeroDivisionError)
        stuck()
        busy = e.submit(targets.wait_for_file, path)
        while not busy.running():
            pass
        waits = [e.submit(targets.power, n) for n in range(5)]
        assert waits[1].cancel()
        assert e._state.going_on
        e._state.cancel()
        go()
        assert busy.result() == "gone on"
        stuck()
        assert not e._state.going_on
    stuck()
    with Executor(1) as e:
        assert isinstance(e.submit(targets.exits_at_once).exception(), BrokenProcessPool)
        stuck()


def test_shut_down_without_waiting(pool: Executor, fifo: tuple[str, Callable[[], Any]]) -> None:
    path, go = fifo
    with Executor(1) as e:
        call = e.submit(targets.wait_for_file, path)
        e.shutdown(wait=False)
        go()
        stuck()
        assert call.result() == "gone on"


HEAD = """
import logging, os, threading, time
import weft.threads as th
from weft.processes import BadUse, Executor

class Handler(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), flush=True)
        end.set() if wakes else os._exit(3)

def has_looked(pid):
    # waits until the main thread of that program has fallen asleep often
    def sleeps():
        with open(f"/proc/{pid}/task/{pid}/status") as f:
            return int(f.read().partition("\\nvoluntary_ctxt_switches:")[2].split()[0])
    first = sleeps()
    while sleeps() < first + 20:
        time.sleep(0.001)  # nobody tells how often another program's thread has slept
    return "woken"

end, wakes, c = threading.Event(), [], th.Channel("c")

if __name__ == "__main__":
    logging.getLogger("weft").addHandler(Handler())
"""


def runs(tmp_path: Path, text: str, *, seconds: str = "0.02") -> tuple[str, str]:
    lines = HEAD + "\n".join("    " + line for line in text.strip().splitlines())
    environment = {**os.environ, "WEFT_STANDSTILL": seconds}
    result = program(tmp_path, lines, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_a_program_that_deadlocks_and_ends_without_shutdown(tmp_path: Path) -> None:
    out, err = runs(
        tmp_path,
        """
e = Executor(2)
print(e.submit(abs, -3).result())
d, f = th.Channel("d"), th.Channel("f")
p = th.process(lambda inp, out: out.write(inp.read()))
try:
    th.run(p(d.reader(), f.writer()), p(f.reader(), d.writer()))
except th.Deadlock as told:
    print(len(told.processes))
print(e.submit(abs, -4).result())
""",
    )
    assert (out, err) == ("3\n2\n4\n", "")


@knows_threads
def test_ordinary_code_that_nobody_can_wake(tmp_path: Path) -> None:  # rule 11.2
    """Waiting for a value that no process can write is bad use, even beside an Executor without
    calls."""
    out, err = runs(
        tmp_path,
        """
keep = c.writer()
with Executor(1) as e:
    print(e.submit(abs, -3).result())
    while e._state.going_on: pass
    try:
        c.reader().read()
    except BadUse as wrong:
        print(wrong)
    print(e.submit(abs, -4).result())
""",
    )
    assert out.startswith("3\nread on channel 'c'") and "would wait for ever" in out
    assert out.endswith("4\n") and err == ""


@knows_threads
def test_ordinary_code_that_a_thread_may_wake(tmp_path: Path) -> None:  # rule 10.6
    """The wait is a standstill: another thread might end it. The Executor's own threads do not
    count as such threads.
    """
    out, _ = runs(
        tmp_path,
        """
wakes.append(c.writer())
t = threading.Thread(target=lambda: (end.wait(), wakes[0].write(7)), name="another")
t.start()
with Executor(1) as e:
    print(e.submit(abs, -3).result())
    while e._state.going_on: pass
    print(c.reader().read())
t.join()
""",
    )
    first, *message, last = out.splitlines()
    assert (first, last) == ("3", "7")
    assert message[0].startswith("standstill: ordinary code outside any run")
    assert "another thread (another)" in message[2] and "weft: " not in out


def test_ordinary_code_that_a_call_may_wake(tmp_path: Path) -> None:  # rules 10.6, 11.2
    """The callback of the call writes: the wait is neither bad use nor a standstill."""
    out, err = runs(
        tmp_path,
        """
out = c.writer()
with Executor(1) as e:
    e.submit(has_looked, os.getpid()).add_done_callback(lambda f: out.write(f.result()))
    print(c.reader().read())
""",
    )
    assert (out, err) == ("woken\n", "")


# --- parties that may still wake them -------------------------------------------------------------


def test_a_barrier_that_ordinary_code_is_yet_to_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 10.6: the processes are at most in a standstill, because this thread may be the
    barrier's other party.
    """
    looked, tell = threading.Event(), _knots.tell

    def tells(spaces: Any) -> None:
        tell(spaces)
        looked.set()

    monkeypatch.setattr(_knots, "tell", tells)
    barrier = Barrier(2)
    with Executor(1) as e:
        call = e.submit(targets_stuck.syncs, barrier)
        looked.wait()
        barrier.sync()
        assert call.result() == "met"


def test_a_callback_that_cancels_has_calls_in_hand_until_it_is_over(
    fifo: tuple[str, Callable[[], Any]],
) -> None:
    with Executor(1) as e:
        state, seen = e._state, []

        def cancels(_: Any) -> None:
            state.cancel()
            seen.append((state.waits_for_hosts(), state.going_on))

        path_open = e.submit(targets.power, 2)
        path_open.result()
        path, go = fifo
        before = e.submit(targets.wait_for_file, path)
        # This call is queued after the first call, so that its callback is set in time.
        later = e.submit(targets.power, 3)
        later.add_done_callback(cancels)
        go()
        assert before.result() == "gone on"
        assert later.result() == 9
        e.submit(targets.power, 4).result()
        assert seen == [(False, True)]


class _Calls:
    """An Executor all of whose calls wait in hosts."""

    def __init__(self) -> None:
        self.why: list[str] = []

    def waits_for_hosts(self) -> bool:
        return True

    def stuck(self, why: str) -> Callable[[], None]:
        self.why.append(why)
        return lambda: None


@pytest.mark.parametrize("how", list(targets_stuck.CALLS))
def test_an_executor_in_a_host_whose_call_waits_for_ever(how: str, tmp_path: Path) -> None:
    """Wire 10.4: the pool is broken, and its error gives the reason; processes in the host that
    wait for the call end.
    """
    message = tmp_path / "told"
    a, b = Channel("a"), Channel("b")
    with Hosts(1) as hosts:
        with pytest.raises(Deadlock) as caught:
            Parallel(
                targets_stuck.with_a_call.on(hosts)(how, a.reader(), b.writer(), str(message)),
                targets_stuck.pass_on_here(b.reader(), a.writer()),
            )
        paths = [p.path for p in caught.value.processes]
        assert paths[-2:] == ["main/pass_on_here", "main/with_a_call"]
        assert sum("/pass_on_here[" in path for path in paths) == 2
        answer = message.read_text(encoding="utf-8")
        assert answer.startswith("BrokenProcessPool: calls wait for ever: deadlock: ")
        assert "/pass_on_here[0]: read 'a' at os_process_targets_stuck.py" in answer
        stuck("processes")  # beside the host, which goes on


@knows_threads
def test_an_executor_in_a_host_whose_call_waits_for_a_process_here() -> None:
    a, b, c = Channel("a"), Channel("b"), Channel("c")
    with Hosts(1) as hosts, pytest.raises(Deadlock) as caught:
        Parallel(
            targets_stuck.with_a_call_that_reads.on(hosts)(
                a.reader(), b.writer(), c.reader(), c.writer()
            ),
            targets_stuck.pass_on_here(b.reader(), a.writer()),
        )
    assert [p.path for p in caught.value.processes] == [
        "main/executor",
        "main/pass_on_here",
        "main/with_a_call_that_reads",
    ]
    stuck()


@pytest.mark.parametrize(
    "of", [targets_stuck.with_a_call_for_a_file, targets_stuck.with_calls_that_come]
)
def test_an_executor_in_a_host_that_goes_on(
    of: Any, rounds: Any, fifo: tuple[str, Callable[[], Any]]
) -> None:
    """No deadlock is reported while a call in a host, or its callback, is under way."""
    path, go = fifo
    found, a = rounds(4, go), Channel("a")
    with Hosts(1) as hosts:
        reads = th.process(lambda inp: inp.read())(a.reader())
        assert Parallel(of.on(hosts)(path, a.writer()), reads)[1] == "gone on"
        assert found[:4] == [False] * 4
        stuck("processes")


def test_calls_are_told_of_a_deadlock_that_another_program_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """WIRE.md 10.8: the message of the other program has ended the runs of this program with a
    deadlock, so this program starts another run."""
    calls = _Calls()

    def all_spaces() -> Any:
        _rounds._waiting = set()
        raise _rounds._Gone

    monkeypatch.setattr(_rounds, "_waiting", {calls})
    monkeypatch.setattr(_rounds, "_all_spaces", all_spaces)
    _rounds._declare("all of them wait", [])
    assert calls.why == ["all of them wait"]


# --- the collector, and forks ---------------------------------------------------------------------


def test_a_child_of_a_fork_waits_for_no_feeder_of_its_parent() -> None:
    with Executor(1) as e:
        e.submit(targets.power, 2).result()
        assert e._state in _executor._states
        pid = os.fork()
        if pid == 0:
            os._exit(len(_executor._states))
        assert os.waitpid(pid, 0)[1] == 0

"""weft.processes.Hosts: OS processes that remain and run many processes, and the choice of the
place where a process runs (rules 6.1, 7.1, 11.1, 15.3).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import os_process_targets as targets
import os_process_targets_memory as targets_memory
import pytest
from parts import hows
from test_processes import TIMEOUT, nobody_is_left, program  # noqa: F401

import weft
import weft.coroutines as co
import weft.processes as pr
import weft.threads as th
from weft.processes import BadUse, Channel, Group, Hosts, Parallel, ProcessDied, run


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with Hosts(2, initializer=targets.remember, initargs=("begun",)) as hosts:
        yield hosts


# --- calls ----------------------------------------------------------------------------------------


def test_they_stay_warm_between_parallels(two: Hosts) -> None:
    pids = set(two.pids)
    assert len(pids) == len(two) == 2 and os.getpid() not in pids
    for _ in range(3):
        assert set(Parallel(*(targets.who.on(two)() for _ in range(4)))) <= pids
    assert set(two.pids) == pids


def test_one_of_them_by_its_number_before_and_after_the_call(two: Hosts) -> None:
    for i in (0, 1):
        results = Parallel(
            targets.who().on(two[i]), targets.who.on(two[i])(), targets.who().on(host=two[i])
        )
        assert results == [two[i].pid] * 3
    with pytest.raises(IndexError):
        two[2]
    assert [one.pid for one in two[0:2]] == [two[0].pid, two[1].pid]
    assert two[2:] == []


def test_many_of_one_network_in_one_host_at_once(two: Hosts) -> None:
    """Runs a pipeline of five processes in one OS process. The outermost ends are in this OS
    process."""
    channels = [Channel(f"c{i}") for i in range(6)]
    stages = [
        targets.double.on(two[0])(a.reader(), b.writer()) for a, b in itertools.pairwise(channels)
    ]

    @th.process
    def numbers(out: Any) -> None:
        for i in range(10):
            out.write(i)

    results = Parallel(
        numbers(channels[0].writer()), *stages, targets.total.on(two[1])(channels[5].reader())
    )
    assert results[-1] == 45 * 2**5


def test_processes_of_every_kind_go_there(two: Hosts) -> None:
    """Functions of a thread process, of a coroutine and of weft.processes run in a host, and a
    function for a host runs in this program.
    """

    a, b = Channel("a"), Channel("b")
    Parallel(
        targets.source.on(two)(a.writer(), 5),
        targets.double_async.on(two)(a.reader(), b.writer()),
        targets.total.on(pr)(b.reader()),
    )
    assert run(targets.thread_who.on(two)()) in two.pids
    assert run(targets.who.on("threads")()) == os.getpid()
    assert run(targets.who_async.on(co)()) == os.getpid() == run(targets.who_async.on(th)())
    assert run(targets.thread_who.on("processes")()) not in (os.getpid(), *two.pids)
    assert run(targets.thread_who.on(two).on(th)()) == os.getpid()


def test_what_the_initializer_did_is_there(two: Hosts) -> None:
    assert run(targets.remembered.on(two)()) == "begun"


def test_an_exception_and_a_retirement_leave_the_host_as_it_was(two: Hosts) -> None:
    pids = two.pids
    with pytest.raises(ValueError, match="of mine"):
        run(targets.fail.on(two)(ValueError("of mine")))
    c = Channel("c")
    w, r = c.writer(), c.reader()
    w.retire()
    assert hows(Parallel(targets.ends_quietly.on(two)(r))) == ["<retired>"]  # rule 3.5
    assert two.pids == pids


def test_a_cancelled_call_ends_and_the_host_goes_on(two: Hosts, tmp_path: Path) -> None:  # rule 6.1
    report = tmp_path / "said"
    ready, never = Channel("ready"), Channel("never")
    kept = never.writer()

    @th.process
    def fails(inp: Any) -> None:
        inp.read()
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        Parallel(
            targets.wait_to_be_cancelled.on(two[0])(ready.writer(), never.reader(), str(report)),
            fails(ready.reader()),
        )
    assert report.read_text(encoding="utf-8") == "cancelled"
    kept.retire()
    assert run(targets.who.on(two[0])()) == two[0].pid


@pytest.mark.soak
def test_more_calls_than_ends_that_a_session_holds(two: Hosts) -> None:
    """A session holds 4,096 ends at a time; successive calls may use any number of ends."""
    pid = two[0].pid
    for _ in range(36):
        assert set(Parallel(*(targets.thread_who.on(two[0])() for _ in range(60)))) == {pid}


# --- settings -------------------------------------------------------------------------------------


def test_settings_reach_the_host() -> None:
    cpu = min(os.sched_getaffinity(0))
    with Hosts(
        1, affinity=[{cpu}], nice=3, memory_limit=8 << 30, threads=2, preload=["colorsys"]
    ) as hosts:
        (got,) = Parallel(targets.settings.on(hosts)())
    assert got == {
        "cpus": {cpu},
        "nice": os.nice(0) + 3,
        "memory": 8 << 30,
        "threads": ["2"] * 3,
        "preloaded": True,
    }


def test_they_end_at_the_same_time(tmp_path: Path) -> None:
    meeting, reports = tmp_path / "meeting", [tmp_path / "0", tmp_path / "1"]
    os.mkfifo(meeting)
    with Hosts(2) as hosts:
        for i in (0, 1):
            run(targets.ends_with_another.on(hosts[i])(str(meeting), i == 0, str(reports[i])))
    assert [file.read_text(encoding="utf-8") for file in reports] == ["met", "met"]


def test_a_fresh_interpreter_collects_garbage_but_not_what_it_began_with(two: Hosts) -> None:
    assert run(targets.collector.on(two)()) == (True, True)


def test_after_max_tasks_calls_a_fresh_one() -> None:
    with Hosts(1, max_tasks=2) as hosts:
        pids = [run(targets.who.on(hosts)()) for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4] != pids[0]


def test_an_initializer_that_fails_fails_every_call() -> None:
    with Hosts(1, initializer=targets.fails_at_once) as hosts:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                run(targets.who.on(hosts)())


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n": 0}, "from 1 on"),
        ({"n": True}, "whole number"),
        ({"n": 1, "max_tasks": 0}, "max_tasks"),
        ({"n": 1, "max_tasks": True}, "max_tasks"),
        ({"n": 1, "max_tasks": 2, "start": "fork"}, "leave max_tasks out"),
        ({"n": 1, "threads": 0}, "threads"),
        ({"n": 1, "restarts": -1}, "restarts"),
        ({"n": 1, "restarts": 1.5}, "restarts"),
        ({"n": 1, "backoff": float("nan")}, "backoff"),
        ({"n": 1, "backoff": None}, "backoff"),
        ({"n": 1, "nice": "3"}, "nice"),
        ({"n": 1, "memory_limit": 8e9}, "memory_limit"),
        ({"n": 1, "affinity": "all"}, "spread"),
        ({"n": 1, "affinity": [[10_000]]}, "not CPUs"),
        ({"n": 1, "affinity": [0]}, r"a set of CPUs for each host.* not 0 for one"),
        ({"n": 1, "affinity": [["0"]]}, "a set of CPUs for each host"),
        ({"n": 1, "initializer": 3}, "initializer must be a function, not 3"),
        ({"n": 1, "preload": "os"}, "list"),
        ({"n": 1, "initializer": targets.remember, "initargs": (targets.Unsendable(),)}, "not me"),
    ],
)
def test_bad_settings_say_what_is_wrong(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(BadUse, match=message):
        Hosts(**keywords)


def test_a_limit_that_leaves_no_memory_at_all_says_so() -> None:
    with (
        Hosts(1, memory_limit=1_000_000) as hosts,
        pytest.raises(BadUse, match=r"memory_limit=1000000: .* MB of address space before"),
    ):
        run(targets.who.on(hosts)())


def test_bad_places_say_what_is_wrong(two: Hosts) -> None:
    with pytest.raises(BadUse, match=r"no such backend|give weft"):
        targets.thread_who.on("cores")
    with pytest.raises(BadUse, match="give weft"):
        targets.thread_who.on(5)
    awaits = targets.who_async_here()
    with pytest.raises(BadUse, match="before it is called"):
        awaits.on(two)
    run(awaits)
    p = targets.thread_who()
    run(p)
    with pytest.raises(BadUse, match="has started"):
        p.on(two)
    closed = Hosts(1)
    closed.close()
    closed.close()
    with pytest.raises(BadUse, match="closed"):
        run(targets.who.on(closed)())


# --- forks (rule 11.2) --------------------------------------------------------------------------

FORKS = """
    import os

    from weft.processes import BadUse, Executor, Hosts, Parallel, process

    @process
    def number():
        return os.getpid()

    def child(hosts, pool):
        for use in (lambda: Parallel(number.on(hosts)()), lambda: pool.submit(os.getpid).result(20)):
            try:
                print("a host of the parent served its child:", use())
            except BaseException as error:
                print(type(error).__name__, error)
        with Hosts(1) as own:
            print("own", len({*Parallel(number.on(own)(), number()), os.getpid(), *hosts.pids}))

    if __name__ == "__main__":
        with Hosts(1) as hosts, Executor(1) as pool:
            before = Parallel(number.on(hosts)()), pool.submit(os.getpid).result()
            pid = os.fork()
            if pid == 0:
                child(hosts, pool)
            else:
                status = os.waitpid(pid, 0)[1]
                after = Parallel(number.on(hosts)()), pool.submit(os.getpid).result()
                print("parent", status, before == after)
"""


def test_a_fork_leaves_the_hosts_to_the_parent(tmp_path: Path) -> None:
    """In the child an error says what to use instead. The child leaves the parent's blocks, and
    ends; the parent continues."""
    done = program(tmp_path, FORKS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4, done.stdout + done.stderr
    assert "started before a fork" in lines[0]
    assert "Make Hosts or an Executor in the child" in lines[0]
    assert lines[1].startswith("BadUse this Executor was made before a fork"), lines
    assert lines[2:] == ["own 4", "parent 0 True"]


# --- deaths ---------------------------------------------------------------------------------------


def test_a_host_that_dies_fails_all_its_calls_and_is_replaced() -> None:
    ready, never = Channel("ready"), Channel("never")
    kept = never.writer()
    with Hosts(1) as hosts:
        pid = hosts[0].pid
        assert pid is not None
        deaths: list[int] = []

        @th.process
        def waits() -> None:
            with pytest.raises(ProcessDied) as caught:
                Parallel(targets.reads_when_ready.on(hosts)(ready.writer(), never.reader()))
            deaths.append(caught.value.pid)

        @th.process
        def kills(inp: Any) -> None:
            for _ in range(3):
                inp.read()
            os.kill(pid, signal.SIGKILL)

        Parallel(waits(), waits(), waits(), kills(ready.reader()))
        assert deaths == [pid] * 3
        assert run(targets.who.on(hosts)()) not in (pid, os.getpid())
    kept.retire()


class Asks:
    """An object that calls a function when it is pickled. An argument is pickled when a host is
    started."""

    does: Callable[[], object] = int

    def __reduce__(self) -> Any:
        type(self).does()
        return int, ()


def test_a_host_is_started_under_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 12.1: an argument with which the host is started asks the hosts, and closes them. Then
    the call for which the host was started is refused, and no OS process remains."""
    asked: list[Any] = []
    with Hosts(2, initializer=targets.remember, initargs=(Asks(),), backoff=0) as hosts:
        pids = hosts.pids
        with pytest.raises(ProcessDied):
            run(targets.die.on(hosts[0])("exit"))
        monkeypatch.setattr(Asks, "does", lambda: asked.append((hosts.pids, hosts[0].pid)))
        assert run(targets.who.on(hosts[0])()) == hosts[0].pid
        assert asked == [(pids[1:], None)]
        with pytest.raises(ProcessDied):
            run(targets.die.on(hosts[1])("exit"))
        monkeypatch.setattr(Asks, "does", hosts.close)
        with pytest.raises(BadUse, match="closed"):
            run(targets.who.on(hosts[1])())


def test_a_host_cannot_be_called_by_what_it_is_started_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Hosts(1, initializer=targets.remember, initargs=(Asks(),), backoff=0) as hosts:
        with pytest.raises(ProcessDied):
            run(targets.die.on(hosts)("exit"))
        monkeypatch.setattr(Asks, "does", lambda: hosts.call(targets.who, (), {}))
        with pytest.raises(BadUse, match=r"being started.*make the call before"):
            run(targets.who.on(hosts)())
        monkeypatch.setattr(Asks, "does", int)
        assert run(targets.who.on(hosts)()) in hosts.pids


def test_calls_that_wait_for_a_host_share_it() -> None:
    with Hosts(1, backoff=0) as hosts:
        with pytest.raises(ProcessDied):
            run(targets.die.on(hosts)("exit"))
        assert len(set(Parallel(*(targets.who.on(hosts)() for _ in range(4))))) == 1


def test_a_host_that_keeps_dying_is_given_up() -> None:
    with Hosts(1, restarts=1, backoff=0.0) as hosts:
        for _ in range(2):
            with pytest.raises(ProcessDied):
                run(targets.die.on(hosts)("exit"))
        with pytest.raises(BadUse, match="died 2 times"):
            run(targets.who.on(hosts)())


def test_hosts_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    result = program(
        tmp_path,
        """
        import os, signal
        from weft.processes import *

        @process
        def who():
            return os.getpid()

        if __name__ == "__main__":
            hosts = Hosts(1)
            print(run(who.on(hosts)()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    pid = int(result.stdout)
    import select as selecting

    with contextlib.suppress(ProcessLookupError):  # the OS process has ended already
        descriptor = os.pidfd_open(pid)
        assert selecting.select([descriptor], [], [], TIMEOUT)[0]
        os.close(descriptor)


# --- programs -------------------------------------------------------------------------------------


def test_weft_run_on_processes(tmp_path: Path) -> None:
    """A program that awaits, and a module beside it that awaits, run as on threads, except that
    each process has its own interpreter.
    """
    (tmp_path / "helper.py").write_text(
        "async def add(inp):\n    return sum([v async for v in inp])\n", encoding="utf-8"
    )
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            """
            import os
            from weft import Channel, Parallel, process
            import helper

            @process
            async def numbers(out):
                for i in range(5):
                    await out.write(i)
                return os.getpid()

            @process
            async def total(inp):
                return os.getpid(), await helper.add(inp)

            async def main():
                c = Channel("c")
                a, (b, n) = await Parallel(numbers(c.writer()), total(c.reader()))
                print(n, len({a, b, os.getpid()}))

            if __name__ == "__main__":
                main()
            """
        ),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "weft.cli", "run", str(path), "--on", "processes"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "10 3\n"), result.stderr


def test_use_and_the_environment_choose_it(tmp_path: Path) -> None:
    text = """
    import os, weft
    if {use}:
        weft.use("processes")

    @weft.process
    def who():
        return os.getpid(), weft._chosen

    if __name__ == "__main__":
        pid, chosen = weft.run(who())
        print(pid != os.getpid(), chosen)
    """
    used = program(tmp_path, text.format(use=True))
    named = program(
        tmp_path, text.format(use=False), env={**os.environ, "WEFT_BACKEND": "processes"}
    )
    assert used.stdout == named.stdout == "True processes\n", used.stderr + named.stderr
    with pytest.raises(BadUse, match="'processes'"):
        weft.use("cores")


def test_a_group_of_coroutines_uses_them(two: Hosts) -> None:
    @co.process
    async def main() -> int:
        async with Group() as g:
            p = g.start(targets.who.on(two)())
        return int(p.result)

    assert run(main()) in two.pids
    assert threading.active_count() < 50


@pytest.mark.parametrize("held", ["", "me = lambda: me\n    me.hosts = hosts\n    del hosts"])
def test_a_program_ends_with_hosts_that_it_never_closed(tmp_path: Path, held: str) -> None:
    """The hosts are in a global, or in a cycle. In both cases the hosts are released when the
    interpreter has almost ended.
    """
    text = f"""
        from os_process_targets import who
        from weft.processes import Hosts, run
        if __name__ == "__main__":
            hosts = Hosts(2)
            run(who.on(hosts)())
            {held.replace(chr(10), chr(10) + " " * 8)}
            print("done")
        """
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parent))
    result = program(tmp_path, text, env=environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def test_a_program_ends_while_a_daemon_thread_waits_for_a_host(tmp_path: Path) -> None:
    """The thread sleeps in a link while the program's static objects are destroyed."""
    text = """
        import threading
        from os_process_targets import waits_for_ever
        from weft.processes import Channel, Hosts, run
        if __name__ == "__main__":
            hosts, begun = Hosts(1), Channel("begun")
            called = waits_for_ever.on(hosts)(begun.writer())
            threading.Thread(target=run, args=(called,), daemon=True).start()
            begun.reader().read()
            print("done")
        """
    environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parent))
    result = program(tmp_path, text, env=environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.soak
def test_a_call_leaves_no_name_behind() -> None:
    """A warm host's memory does not grow: each end that a call receives has its own name in the
    host, which is freed with the end. The memory that malloc has allocated is compared after every
    400 calls.
    """
    calls, most = 400, 40  # bytes per call; an earlier version left some 165
    with Hosts(1) as hosts:
        used = targets_memory.in_use.on(hosts)
        if run(used()) < 0:
            pytest.skip("no mallinfo2")
        levels = []
        for _ in range(4):
            for _ in range(calls):
                run(targets_memory.nothing.on(hosts)())
            levels.append(run(used()))
    grown = min(b - a for a, b in itertools.pairwise(levels))
    assert grown < most * calls, levels

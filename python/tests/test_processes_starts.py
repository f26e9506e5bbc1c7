"""Tests how OS processes of weft.processes begin: by a server, by a fork, in a frozen program (rule
15.1). Every test starts interpreters.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest
from test_processes import program

from weft._hosts import start as _start
from weft.processes import BadUse, Channel, Executor, Hosts, Parallel, ProcessDied, run


@pytest.fixture
def server() -> Iterator[None]:
    yield
    _start.stop_servers()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_by_a_server(server: None, capfd: pytest.CaptureFixture[str]) -> None:
    """The OS process is like a fresh interpreter, except that the preloaded modules are
    imported."""
    with Hosts(2, start="forkserver", preload=["decimal"]) as hosts:
        assert len({parent_of(pid) for pid in hosts.pids}) == 1
        assert parent_of(hosts.pids[0]) != os.getpid()
        a, b = Channel("a"), Channel("b")
        results = Parallel(
            targets.source.on(hosts)(a.writer(), 50),
            targets.double.on(hosts)(a.reader(), b.writer()),
            targets.total.on(hosts)(b.reader()),
        )
        assert results[2] == 2 * sum(range(50))
        with pytest.warns(UserWarning, match="warned"):
            run(targets.says.on(hosts)())
        settings = run(targets.as_it_began.on(hosts[0])())
    out, err = capfd.readouterr()
    assert (out, "complained" in err) == ("printed\nwritten\n", True)
    assert settings["decimal"] and settings["stdin"] == ""
    assert settings["argv"] == sys.argv and settings["path"] == sys.path
    assert settings["OMP_NUM_THREADS"] == "1" and settings["directory"] == str(Path.cwd())


def test_the_environment_is_that_of_the_moment(
    server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hosts(1, start="forkserver") as hosts:
        assert run(targets.as_it_began.on(hosts)())["WEFT_TEST"] is None
    monkeypatch.setenv("WEFT_TEST", "later")
    with Hosts(1, start="forkserver", threads=None) as hosts:
        assert run(targets.as_it_began.on(hosts)())["WEFT_TEST"] == "later"


@pytest.mark.parametrize("how", ["kill", "exit", "segv"])
def test_a_child_of_a_server_says_how_it_died(server: None, how: str) -> None:
    with Hosts(1, start="forkserver") as hosts:
        for _ in range(2):  # another process replaces the first one
            with pytest.raises(ProcessDied) as caught:
                run(targets.die.on(hosts)(how))
        expected = {"kill": (9, None), "exit": (None, 3), "segv": (11, None)}[how]
        assert (caught.value.signal, caught.value.status) == expected
        assert ("in die" in caught.value.stack) == (how == "segv")


def test_an_executor_with_a_context(server: None) -> None:
    with Executor(2, mp_context=multiprocessing.get_context("forkserver")) as pool:
        parents = set(pool.map(os_parent, range(8)))
    assert os.getpid() not in parents
    with Executor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert pool.submit(os.getppid).result() == os.getpid()


def os_parent(_: Any) -> int:
    return os.getppid()


def test_copies_draw_other_numbers(server: None) -> None:
    pytest.importorskip("numpy")
    with Hosts(2, start="forkserver", preload=["numpy.random"]) as hosts:
        drawn = Parallel(*[targets.draws.on(hosts[i])() for i in range(2)])
    assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1]


FORKED = """
    import os, sys
    from weft.processes import Channel, Hosts, Parallel, process, run

    big = {i: str(i) for i in range(1000)}  # it is there in the copies, and never sent

    @process
    def looks(inp, out):
        for i in inp:
            out.write((big[i], os.getpid()))
        print("looked", flush=True)

    @process
    def asks(out):
        for i in range(3):
            out.write(i)

    @process
    def told(inp):
        return list(inp)

    def main():
        print("before")
        with Hosts(2, start="fork") as hosts:
            big.clear()
            assert len(set(hosts.pids)) == 2
            a, b = Channel("a"), Channel("b")
            got = Parallel(asks.on("threads")(a.writer()), looks.on(hosts)(a.reader(), b.writer()), told.on("threads")(b.reader()))
            assert [text for text, _ in got[2]] == ["0", "1", "2"]
            assert {pid for _, pid in got[2]} <= set(hosts.pids)
        print("after")

    main()
    """


def test_by_a_fork(tmp_path: Path) -> None:
    """The child has a copy of the parent's memory. Nevertheless no text is printed twice, and no
    child runs the rest of the program.
    """
    done = program(tmp_path, FORKED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["before", "looked", "after"]


def test_a_fork_that_is_killed_ends_its_calls_alone(tmp_path: Path) -> None:
    """The other hosts do not keep the killed host's sockets open. Another fork is refused, because
    the program has threads by then."""
    text = """
        import os, signal
        from weft.processes import BadUse, Hosts, ProcessDied, process, run

        @process
        def dies():
            os.kill(os.getpid(), signal.SIGKILL)

        @process
        def lives():
            return "lives"

        with Hosts(3, start="fork") as hosts:
            for i in (1, 0):
                try:
                    run(dies().on(hosts[i]))
                except ProcessDied as error:
                    print(error.signal)
            print(run(lives().on(hosts[2])))
            try:
                run(lives().on(hosts[0]))
            except BadUse as error:
                print(error)
        """
    done = program(tmp_path, text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["9", "9", "lives"]
    assert "other threads live" in lines[3] and "forkserver" in lines[3]


def test_a_fork_is_refused_beside_threads() -> None:
    with pytest.raises(BadUse, match="start must be one of"):
        Hosts(1, start="threads")
    with Hosts(1) as hosts:  # starting a host gives the program threads
        run(targets.who.on(hosts)())
        with pytest.raises(BadUse, match=r"other threads live.*weft.*use start='forkserver'"):
            Hosts(1, start="fork")


@pytest.mark.parametrize("hook", ["before", "after_in_parent"])
def test_a_signal_while_a_host_is_forked_is_not_lost(tmp_path: Path, hook: str) -> None:
    """Rule 6.7. Python drops an exception that a function raises which os.fork() calls. If a
    handler raises, no child remains, and other hosts can be forked afterwards; a handler that does
    not raise is called once, and only in the parent.
    """
    text = f"""
        import os, signal
        from pathlib import Path
        from weft.processes import Hosts, process, run

        @process
        def pid():
            return os.getpid()

        comes = [signal.SIGINT]
        os.register_at_fork({hook}=lambda: comes and signal.raise_signal(comes.pop()))
        try:
            Hosts(2, start="fork")
        except KeyboardInterrupt:
            print("Ctrl-C")
        print(len(Path("/proc/self/task", str(os.getpid()), "children").read_text().split()))

        class Ended(Exception):
            pass

        def ends(number, frame):
            raise Ended(number)

        signal.signal(signal.SIGTERM, ends)
        comes.append(signal.SIGTERM)
        try:
            Hosts(1, start="fork")
        except Ended as error:
            print("Ended", error)
        calls = []
        signal.signal(signal.SIGUSR1, lambda number, frame: calls.append(os.getpid()))
        comes.append(signal.SIGUSR1)
        with Hosts(1, start="fork") as hosts:
            print(calls == [os.getpid()], run(pid().on(hosts[0])) == hosts[0].pid)
            assert signal.getsignal(signal.SIGTERM) is ends
        """
    done = program(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Ctrl-C", "0", "Ended 15", "True True"]


FROZEN = """
    import sys
    sys.frozen = True
    sys.executable = {executable!r}
    from weft.processes import Channel, Hosts, Parallel, freeze_support, process, run

    @process
    def adds(inp):
        return sum(inp), sys.frozen

    @process
    def numbers(out):
        for i in range(10):
            out.write(i)

    if __name__ == "__main__":
        {support}
        c = Channel("c")
        print(Parallel(numbers(c.writer()), adds(c.reader()))[1])
    """


@pytest.mark.parametrize("support", [True, False])
def test_a_frozen_program(tmp_path: Path, support: bool) -> None:
    """The executable is the program itself. In a child freeze_support() runs the child's work. A
    program without that call reports an error."""
    executable = tmp_path / "frozen"
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/program.py "$@"\n')
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    text = FROZEN.format(
        executable=str(executable), support="freeze_support()" if support else "pass"
    )
    done = program(tmp_path, text)
    if support:
        assert (done.returncode, done.stdout) == (0, "(45, True)\n"), done.stderr
    else:
        assert done.returncode != 0 and "call weft.processes.freeze_support() first" in done.stderr


FORK_FAILS = """
    import os
    from weft._hosts import host as _host, start as _start
    from weft.processes import Hosts, process, run

    @process
    def who():
        return os.getpid()

    begin, begun = _start.begin, []

    def fails_the_third_time(*args):
        begun.append(args)
        if len(begun) == 3:
            raise OSError("no more processes")
        return begin(*args)

    _start.begin = fails_the_third_time
    try:
        Hosts(4, start="fork")
    except OSError as error:
        print(error)
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        print("nobody is left,", len(_host._forked_before), "descriptors are")
    _start.begin = begin
    with Hosts(2, start="fork") as hosts:
        print(run(who.on(hosts)()) in hosts.pids)
    """


@pytest.mark.soak
@pytest.mark.parametrize("start", [pytest.param("spawn", marks=pytest.mark.soak), "forkserver"])
def test_hosts_that_are_dropped_leave_nothing(server: None, start: str) -> None:
    """Hosts are dropped in a notebook whose cell is run again. The test waits until no descriptor
    of these hosts is left.
    """
    with Hosts(1, start=start):  # the server of the first start remains
        pass
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for used in (False, True):
        hosts = Hosts(2, start=start)
        pids = hosts.pids
        if used:
            run(targets.who.on(hosts)())
        del hosts
        while len(list(Path("/proc/self/fd").iterdir())) > before:
            gc.collect()
            os.sched_yield()
        while any(Path(f"/proc/{pid}").exists() for pid in pids):
            with Hosts(1, start=start):  # the start of a host collects the status of earlier hosts
                pass


def test_a_fork_that_fails_ends_those_before_it(tmp_path: Path) -> None:
    """The hosts that were started before the failed fork were never connected. The error is that of
    the system, and later hosts are not affected.
    """
    done = program(tmp_path, FORK_FAILS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "no more processes",
        "nobody is left, 0 descriptors are",
        "True",
    ]


def asleep_until_killed() -> tuple[_start.Child, Any]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    return _start.Child(process.pid), process


def test_several_threads_wait_for_a_child_and_one_kills_it() -> None:
    child, process = asleep_until_killed()
    got: list[Any] = []
    waiters = [threading.Thread(target=lambda: got.append(child.wait())) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    child.kill()
    for waiter in waiters:
        waiter.join()
    assert got == [-9] * 4 == [child.wait()] * 4
    child.kill()
    process.communicate()


def test_a_child_that_somebody_waits_for_is_not_kept() -> None:
    """The program noticed the end of the host before the OS process had quite ended. Another thread
    collects the status of the OS process.
    """
    with subprocess.Popen(["sleep", "1000"]) as program:
        child = _start.Child(program.pid)
        _start.reap(child)
        child.kill()
        status = child.wait()
        kept = weakref.ref(child)
        del child
        assert status == -9
        # The descriptor by which a server reports the end of a child is closed too.
        assert kept() is None


def test_a_child_whose_status_the_program_took_itself() -> None:
    child, process = asleep_until_killed()
    child.kill()
    process.communicate()
    assert child.wait() == child.poll() == 255


def test_several_threads_wait_for_a_child_of_a_server() -> None:
    message, tell = os.pipe()
    forkserver.write_signed(tell, 4242)
    child = _start._OfServer(message)
    child.began()
    assert (child.pid, child.poll()) == (4242, None)
    got: list[Any] = []
    waiters = [threading.Thread(target=lambda: got.append(child.wait())) for _ in range(4)]
    for waiter in waiters:
        waiter.start()
    forkserver.write_signed(tell, 3)
    os.close(tell)
    for waiter in waiters:
        waiter.join()
    assert got == [3] * 4


@pytest.mark.parametrize("when", ["before it was asked", "before it answered"])
def test_a_server_that_goes_while_it_starts_somebody(
    server: None, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    with Hosts(1, start="forkserver"):
        pass
    others: list[int] = []

    def gone(*_: Any) -> tuple[int, int]:
        message, of_child = os.pipe()
        os.close(of_child)
        asked, tell = os.pipe()
        (os.close if when == "before it was asked" else others.append)(asked)
        return message, tell

    before = len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patched:
        patched.setattr(forkserver.ForkServer, "connect_to_new_process", gone)
        with pytest.raises(OSError, match=r"fork server has gone.*try again"):
            Hosts(1, start="forkserver")
    for fd in others:
        os.close(fd)
    # Some memory of the first hosts may have been freed only since `before` was counted.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    with Hosts(1, start="forkserver") as hosts:
        assert run(targets.who.on(hosts)()) in hosts.pids

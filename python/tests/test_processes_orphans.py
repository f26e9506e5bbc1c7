"""OS processes end when the program that started them is killed (rule 7.4, processes.md), and an
interrupted start leaves no zombie (rule 6.7)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from test_processes import TIMEOUT, nobody_is_left, program  # noqa: F401

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open")

NETWORK = """
import os, signal, sys
from weft.processes import *
import weft.threads as th

@process
def computes(ready):
    ready.write(os.getpid())
    while True:
        pass

@process
def starts_another(ready):
    from weft._hosts import child
    child.AFTERLIFE = 1e6  # this OS process stays: the inner one must not wait for its end
    ready.write(os.getpid())
    Parallel(computes(ready))

@th.process
def killer(inp, number):
    pids = [inp.read() for _ in range(number)]
    if sys.argv[1] == "stopped":
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    print(*pids, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    c = Channel("c")
    if sys.argv[1] == "stopped":
        Parallel(computes(c.writer()), killer(c.reader(), 1))
    else:
        Parallel(starts_another(c.writer()), killer(c.reader(), 2))
"""


def pids_of(how: str, tmp_path: Path) -> list[int]:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(NETWORK), encoding="utf-8")
    # This pipe is also the standard output of the OS processes, so the test must not wait until all
    # of them have closed it.
    with subprocess.Popen([sys.executable, str(path), how], stdout=subprocess.PIPE) as done:
        assert done.stdout is not None
        pids = [int(word) for word in done.stdout.readline().split()]
        assert done.wait(TIMEOUT) == -signal.SIGKILL
        done.stdout.close()
    return pids


def wait_for_end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # the OS process has already ended
        descriptor = os.pidfd_open(pid)
        try:
            assert select.select([descriptor], [], [], TIMEOUT)[0], f"{pid} lives on"
        finally:
            os.close(descriptor)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG")
def test_one_that_was_stopped_ends_with_its_parent(tmp_path: Path) -> None:
    (pid,) = pids_of("stopped", tmp_path)
    wait_for_end(pid)


def test_one_of_an_os_process_ends_beside_it_not_after_it(tmp_path: Path) -> None:
    outer, inner = pids_of("nested", tmp_path)
    try:
        wait_for_end(inner)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(outer, signal.SIGKILL)
        wait_for_end(outer)


SPAWNED = """
start = subprocess.Popen.__init__

def interrupted(self, *args, **keywords):
    start(self, *args, **keywords)
    self._child_created, self.returncode = False, 0  # as before the child's pid is known
    raise KeyboardInterrupt

subprocess.Popen.__init__ = interrupted
"""
SERVED = """
start = util.spawnv_passfds

def interrupted(*args):
    start(*args)
    raise KeyboardInterrupt

resource_tracker.ensure_running()  # of multiprocessing: it lives as long as the program
util.spawnv_passfds = interrupted
"""
# The server's pid is forgotten before its status is taken.
STOPPED = """
start_module.stop_servers()
close = os.close

def interrupted(fd):
    close(fd)
    if sys._getframe(1).f_code.co_name == "_stop_unlocked":  # a finaliser may close others meanwhile
        raise KeyboardInterrupt

with Hosts(1, start="forkserver"):
    pass
os.close = interrupted
try:
    start_module.stop_servers()
finally:
    os.close = close
"""


@pytest.mark.parametrize(
    ("method", "interrupt"),
    [("spawn", SPAWNED), ("forkserver", SERVED), ("forkserver", STOPPED)],
    ids=["spawn", "forkserver", "stopped"],
)
def test_rule_6_7_an_interrupted_start_leaves_no_zombie(
    tmp_path: Path, method: str, interrupt: str
) -> None:
    done = program(
        tmp_path,
        f"""
        import contextlib, os, subprocess, sys, threading
        from multiprocessing import resource_tracker, util
        from pathlib import Path

        from weft._hosts import start as start_module
        from weft.processes import Hosts

        def children():
            pids = []
            for task in Path("/proc/self/task").glob("*/children"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread ended
                    pids += map(int, task.read_text().split())
            return [pid for pid in pids if pid != resource_tracker._resource_tracker._pid]

        if __name__ == "__main__":
            try:
                exec({interrupt!r})
                Hosts(1, start={method!r})
            except KeyboardInterrupt:
                print("interrupted")
            for pid in children():
                with contextlib.suppress(ChildProcessError):  # its status was taken already
                    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            for thread in threading.enumerate():
                if thread.name == "weft: waits for one":
                    thread.join()
            print(children())
        """,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n[]\n", "")

"""The child of a fork keeps none of its parent's threads and links (rules 10.3, 11.2)."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_processes import program

import weft.threads as th
from weft import _helper_threads
from weft._extension import native
from weft.errors import BadUse
from weft.processes import Channel, Deadlock, Parallel
from weft.processes import process as away_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def child_says(what: Callable[[], str]) -> str:
    there, here = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(here, what().encode())
        except BaseException as error:
            os.write(here, repr(error).encode())
        finally:
            os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as file:
        output = file.read().decode()
    os.waitpid(pid, 0)
    return output


def wait_for_each_other() -> str:
    a, b = Channel("a"), Channel("b")

    @th.process
    def reads(inp: Any, out: Any) -> None:
        out.write(inp.read())

    try:
        Parallel(reads(a.reader(), b.writer()), reads(b.reader(), a.writer()))
    except Deadlock:
        return "Deadlock"
    return "no deadlock"


def test_a_thread_that_helped_the_parent_helps_nobody() -> None:
    """The state of a thread of the parent no longer exists in the child, where a foreign thread may
    have the same memory."""
    began, stop = threading.Event(), threading.Event()

    def helps() -> None:
        _helper_threads.add_until_end()
        began.set()
        stop.wait()

    thread = threading.Thread(target=helps)
    thread.start()
    began.wait()
    try:
        assert native._helpers() > 0
        assert child_says(lambda: str(native._helpers())) == "0"
    finally:
        stop.set()
        thread.join()


def test_what_may_wake_the_parent_from_outside_does_not_wake_the_child() -> None:
    """In the child a deadlock is reported although the parent has offered a name, or has a
    session (WIRE-NETWORKS.md 17.16)."""
    ours, theirs = socket.socketpair()
    native._outside(True)
    link = native._Link(ours.detach(), "python")
    try:
        assert child_says(wait_for_each_other) == "Deadlock"
    finally:
        link.close()
        theirs.close()
        native._outside(False)
    assert child_says(wait_for_each_other) == "Deadlock"


# --- the parent's objects are refused (rule 11.4) -------------------------------------------------


def of_the_parent() -> dict[str, Callable[[], Any]]:
    barrier, channel = th.Barrier(1), Channel("held")
    reader = channel.reader()
    used = th.Alternative(barrier, th.skip())
    used.select()  # facts that were established in the parent do not hold in the child
    waits = th.Alternative(reader, th.skip())
    waits.select()
    return {
        "sync": barrier.sync,
        "enrol": barrier.enrol,
        "resign": barrier.resign,
        "parties": lambda: barrier.parties,
        "select": lambda: th.select(barrier),
        "alternative": used.select,
        "alternative of a reader": waits.select,
        "precondition": lambda: th.select(barrier.when(condition=True)),
        "reader": reader.read,
        "new end": channel.writer,
        "argument": lambda: th.run(in_another(barrier)),
    }


@away_process
def in_another(barrier: Any) -> None:
    barrier.sync()


@pytest.mark.parametrize("what", list(of_the_parent()))
def test_what_was_made_before_a_fork_is_refused_in_the_child(what: str) -> None:
    """Rule 11.4: using the object in the child is bad use, because the child would wait for parties
    that do not exist in it, or, at a barrier of one party, continue alone."""
    all_of_them = of_the_parent()

    def used() -> str:
        try:
            return repr(all_of_them[what]())
        except BadUse as error:
            return str(error)

    output = child_says(used)
    assert "made before a fork" in output and "this is the child" in output


# --- what the child of a run may do (rule 11.4) ---------------------------------------------------

WITHIN = """
import os, sys, threading
import weft.coroutines as co, weft.greenlets as gr, weft.threads as th
from weft.errors import BadUse, Deadlock

@co.process
async def gives(n):
    return n

@th.process
def crosses(inp, out):
    out.write(inp.read())

def run_within():
    assert th.run(gives(1), gives(2)) == [1, 2]
    with th.Group() as g:
        p = g.start(gives(3))
    assert p.result == 3
    a, b = th.Channel("a"), th.Channel("b")
    try:
        th.run(crosses(a.reader(), b.writer()), crosses(b.reader(), a.writer()))
    except Deadlock as told:
        assert len(told.processes) == 2
        try:
            th.Channel("c").reader().read()  # nobody can wake it: no run of the parent's
        except BadUse:
            print("ran", flush=True)

def leaves():
    with th.timeout(1000), th.Group() as inner:
        inner.start(gives(1))
        sys.exit(4)

def leaves_threads():
    t = threading.Thread(target=lambda: print("a thread", flush=True))
    t.start()
    sys.exit("a text")

def fails():
    raise ValueError("told so")

WHAT = {
    "nothing": lambda: None,
    "run": run_within,
    "run and exit": lambda: (run_within(), sys.exit(3)),
    "exit in blocks": leaves,
    "exit with a text": leaves_threads,
    "_exit": lambda: os._exit(5),
    "fails": fails,
    "uses": lambda: held.write(1),
}

def forks():
    # a child does it; the parent says how that ended
    global done
    pid = os.fork()
    if pid == 0:
        WHAT[sys.argv[1]]()
        return "of the child"
    done = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

@th.process
def in_thread():
    with th.timeout(1000):
        return forks()

@gr.process
def in_greenlet():
    with th.timeout(1000):
        return forks()

@co.process
async def in_coroutine():
    async with co.timeout(1000):
        return forks()

@co.process
async def others(inp):
    # run in the parent only; they wait as it forks
    value = await inp.read()
    print("others", value, flush=True)

PROCESSES = {
    "threads": in_thread,
    "greenlets": in_greenlet,
    "coroutines": in_coroutine,
    "apart": in_coroutine.on("threads"),
}

c = th.Channel("held")
held = c.writer()
if sys.argv[2] == "a block":
    with th.timeout(1000), th.Group() as g:
        g.start(others(c.reader()))
        g.start(th.process(lambda: th.sleep(0.001))())
        th.yield_()
        if not forks():
            held.write(1)
else:
    @th.process
    def writes(p, out):
        th.Parallel(p)
        out.write(1)
    th.run(others(c.reader()), writes(PROCESSES[sys.argv[2]](), held))
print(done)
"""

ENDS = {
    "nothing": (0, "", ""),
    "run": (0, "ran\n", ""),
    "run and exit": (3, "ran\n", ""),
    "exit in blocks": (4, "", ""),
    "exit with a text": (1, "a thread\n", "a text\n"),
    "_exit": (5, "", ""),
    "fails": (1, "", "ValueError: told so\n"),
    "uses": (1, "", "made before a fork"),
}


@pytest.mark.parametrize("kind", ["a block", "threads", "greenlets", "coroutines", "apart"])
@pytest.mark.parametrize("what", list(ENDS))
def test_what_a_child_made_within_a_run_may_do(kind: str, what: str, tmp_path: Path) -> None:
    """Rule 11.4: the child ends like any program, no process of the parent continues in the child,
    and the parent continues."""
    done = program(tmp_path, WITHIN, str(tmp_path / "program.py"), what, kind)
    status, output, message = ENDS[what]
    if kind == "a block" and what in ("nothing", "run"):
        status, message = 1, "entered before a fork cannot be left in the child"
    assert done.stdout == f"{output}others 1\n{status}\n"
    assert done.returncode == 0
    if message.endswith("\n") or not message:
        assert done.stderr.endswith(message) and ("Traceback" in done.stderr) == (what == "fails")
    else:
        assert message in done.stderr and done.stderr.count("BadUse") >= 1
    if not message:
        assert done.stderr == ""


AWAY = """
import os
import weft.coroutines as co, weft.threads as th
from weft.processes import *

class Forks:
    def __reduce__(self):
        return forks, (0,)

def forks(status):
    # the child's code ends here; the parent returns how the child ended
    pid = os.fork()
    if pid == 0:
        os.close(1)
        if status:
            raise SystemExit(status)
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

@process
def thread(status):
    return forks(status)

@co.process
async def coroutine(status):
    return forks(status)

@process
def given(status):
    return status

def begins():
    global begun
    begun = forks(0)

@process
def began():
    return begun

if __name__ == "__main__":
    with Hosts(1, initializer=begins) as hosts:
        of = [thread.on(hosts), coroutine.on(hosts), thread, coroutine.on("processes")]
        print(Parallel(f(status) for f in of for status in (0, 3)))
        print(Parallel(given.on(hosts)(Forks()), given(Forks()), began.on(hosts)()))
    with Executor(1) as pool:
        print(pool.submit(forks, 0).result(), pool.submit(forks, 3).result())
"""


def test_a_child_made_in_another_os_process_ends_so_too(tmp_path: Path) -> None:
    """Rule 11.4 holds whichever code of the OS process forks, as this test does in a host."""
    done = program(tmp_path, AWAY)
    assert (done.stdout, done.stderr) == ("[0, 3, 0, 3, 0, 3, 0, 3]\n[0, 0, 0]\n0 3\n", "")


HANDLER = """
import os, signal, sys, threading
import weft.coroutines as co, weft.greenlets as gr, weft.threads as th

answer = th.Channel("answer")
told, write = answer.reader(), answer.writer()

def handler(*_):
    global how
    pid = os.fork()
    if pid == 0:
        if sys.argv[1] == "exit":
            sys.exit(3)
        if sys.argv[1] == "run":
            inner = th.Channel("inner")
            @th.process
            def reads(inp):
                print("ran", inp.read(), flush=True)
            @th.process
            def writes(out):
                out.write(1)
            th.run(reads(inner.reader()), writes(inner.writer()))
        if sys.argv[1] == "raise":
            raise ValueError("told so")
        return
    how = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    handled.set()

signal.signal(signal.SIGUSR1, handler)
handled = threading.Event()

def kicks():
    while not answer.stats().waiting_readers:
        os.sched_yield()
    os.kill(os.getpid(), signal.SIGUSR1)
    handled.wait()
    write.write("go on")

@co.process
async def in_coroutine():
    return await told.read()

waits = {"ordinary": told.read, "block": lambda: th.run(gr.process(told.read)()),
         "coroutine": lambda: co.run(in_coroutine())}[sys.argv[2]]
threading.Thread(target=kicks).start()
print(waits(), how, flush=True)
"""

HANDLED = {
    "return": (1, "", "has forked while its thread waited"),
    "exit": (3, "", ""),
    "run": (1, "ran 1\n", "has forked while its thread waited"),
    "raise": (1, "", "ValueError: told so"),
}


@pytest.mark.parametrize("where", ["ordinary", "block", "coroutine"])
@pytest.mark.parametrize("what", list(HANDLED))
def test_a_handler_that_forks_during_a_wait_ends_the_child(
    what: str, where: str, tmp_path: Path
) -> None:
    """Rule 11.4: in the child nothing could end the wait for the parent's objects; in the parent
    the wait continues."""
    done = program(tmp_path, HANDLER, str(tmp_path / "program.py"), what, where)
    status, output, message = HANDLED[what]
    assert done.stdout == f"{output}go on {status}\n"
    assert message in done.stderr and done.returncode == 0
    assert bool(done.stderr) == bool(message)

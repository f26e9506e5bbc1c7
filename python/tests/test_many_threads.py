"""Thousands of thread processes do not all ask for the interpreter lock at once
(python/native/interpreter/door.hpp).

The tests count how often a thread gives up its CPU voluntarily. Without the door, each thread that
waits for the lock does so every 5 ms: in these programs each thread does so some 500 times, and
more often on a slower machine; with the door, less than ten times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest

LOCK = not sysconfig.get_config_var("Py_GIL_DISABLED")
BOUND = 280  # s for a whole program
MAX_SWITCHES = 60  # the largest number of times that a thread may give up its CPU

HEAD = """
import faulthandler, os, resource, signal, sys, threading
faulthandler.dump_traceback_later(270, exit=True)
from weft.threads import *
from weft.errors import *

N = 2000

@process
def meets(source, sink):
    sink.write(source.read())
    source.read()

@process
def partner(source, sink):
    for value in range(N):
        sink.write(value)
    print(sorted(source.read() for _ in range(N)) == list(range(N)))
    {end}

def switches():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
"""

NETWORK = """
there, back = Channel("there"), Channel("back")
try:
    run([meets(there.reader(), back.writer()) for _ in range(N)], partner(back.reader(), there.writer()))
except ZeroDivisionError:
    print("failed")
print(switches() / N)
"""


def program(text: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.skipif(not LOCK, reason="there is no interpreter lock")
@pytest.mark.parametrize(
    ("end", "expected"),
    [("sink.poison()", []), ("sink.retire()", []), ("1 / 0", ["failed"])],
    ids=["poisoned", "retired", "cancelled"],  # rules 4.2, 3.1, 7.2
)
def test_two_thousand_threads_start_meet_and_end(end: str, expected: list[str]) -> None:
    *words, count = program(HEAD.replace("{end}", end) + NETWORK)
    assert words == ["True", *expected]
    assert float(count) < MAX_SWITCHES


@pytest.mark.skipif(not LOCK, reason="there is no interpreter lock")
def test_two_thousand_threads_that_yield() -> None:  # rule 7.7
    """Each thread gives up the lock and takes it again. All threads continue, and only few ask for
    the lock at a time."""
    *words, count = program(
        HEAD.replace("{end}", "pass")
        + """
@process
def yields():
    for _ in range(5):
        yield_()
    return 1

print(sum(run([yields() for _ in range(N)])) == N)
print(switches() / N)
"""
    )
    assert words == ["True"]
    assert float(count) < MAX_SWITCHES


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_finds_an_empty_door() -> None:  # rule 11.2
    """The parent's threads wait in the door when it forks. None of these threads exists in the
    child, so the door must be empty there."""
    words = program(
        HEAD.replace("{end}", "pass")
        + """
@process
def adds(a, b):
    return a + b

with Group() as g:
    for k in range(50):
        g.start(adds(k, k))
    # Nothing has given up the lock yet: they wait for it.
    if (pid := os.fork()) == 0:
        signal.alarm(260)
        os._exit(sum(run([adds(k, 1) for k in range(4)], adds(10, 20))[-1:]))
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status))
"""
    )
    assert words == ["30"]


def test_a_program_that_ends_while_threads_stand_in_the_door() -> None:  # rule 7.6
    """The network of a daemon thread is cut off where it is, quietly, because the interpreter no
    longer gives any thread the lock.
    """
    words = program(
        HEAD.replace("{end}", "pass")
        + """
ready = threading.Event()

@process
def turns():
    while True:
        ready.set()
        yield_()

threading.Thread(target=lambda: run([turns() for _ in range(50)]), daemon=True).start()
ready.wait()
print("over")
"""
    )
    assert words == ["over"]

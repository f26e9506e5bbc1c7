"""Rule 10.6: where no deadlock can be proven, a standstill is reported to the logger `weft`; and
rule 11.2: ordinary code that no process can wake.

Each test runs a separate program, because a fault would make it hang, and because an environment
variable sets the time after which a standstill is reported.
"""

from __future__ import annotations

import os
import re
import sys

import pytest
from children import child

HEAD = """
import logging, os, sys, threading, warnings
import weft.{backend} as weft
from weft.{backend} import *

warnings.simplefilter("error")
told = []
some = threading.Condition()

class Handler(logging.Handler):
    def emit(self, record):
        assert record.levelno == logging.WARNING and record.name == "weft"
        with some:
            told.append(record.getMessage())
            some.notify_all()

logging.getLogger("weft").addHandler(Handler())

def wait_for(n):
    with some:
        some.wait_for(lambda: len(told) >= n)

def unrelated(body):
    t = threading.Thread(target=body, name="unrelated")
    t.start()
    return t

def another_is_told():
    # another network, begun now, stands still and is told of: so long has passed
    e = Channel("e")
    k = e.writer()
    network = unrelated(lambda: run(reads(e.reader())))
    with some:
        some.wait_for(lambda: any("'e'" in text for text in told))
    k.write(1)
    network.join()

def mine():
    return [text for text in told if "'c'" in text]

c, d = Channel("c"), Channel("d")
keep, also = c.writer(), d.writer()
"""
READS = """
@process
async def reads(*ends):
    for r in ends: await r.read()
"""
CALLS = READS.replace("async ", "").replace("await ", "")


def runs(program: str, backend: str, seconds: str = "0.02") -> tuple[str, str]:
    text = HEAD.format(backend=backend) + program
    environment = {**os.environ, "WEFT_STANDSTILL": seconds}
    with child("-c", text, env=environment) as p:
        out, err = p.communicate()
        assert p.returncode == 0, err
    return out, err


def body(backend: str) -> str:
    return READS if backend == "coroutines" else CALLS


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
def test_it_names_who_waits_where_and_what_might_wake_it(backend):  # rule 10.6
    out, _ = runs(
        body(backend)
        + """
def other():
    wait_for(1)
    keep.retire()
t = unrelated(other)
run(reads(c.reader()), reads(c.reader()))
t.join()
assert len(told) == 1, told
print(told[0])
""",
        backend,
    )
    lines = out.splitlines()
    assert lines[0] == (
        "standstill: nothing has run for 0.02 s, and no timer, io call or socket is due; 2 processes wait"
    )
    for i, line in enumerate(lines[1:3]):
        assert line.startswith(f"  main/reads[{i}]: read 'c' at <string>:")
        assert line.endswith("; an end of 'c' is held by no process")
    assert "(unrelated)" in lines[3] or not getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
def test_once_a_run_for_the_same_places(backend):  # rule 10.6
    runs(
        body(backend)
        + """
def other():
    for n in (1, 2, 3):
        wait_for(n)
        (keep if n < 3 else also).write(n)
stay = c.reader()
t = unrelated(other)
run(reads(c.reader()))       # told
run(reads(c.reader(), d.reader()))  # told again: another run; and in it another place
t.join()
assert [s.count("'c'") > 0 for s in told] == [True, True, False], told
""",
        backend,
    )


def test_threads_whoever_sleeps_or_ends_last():  # rule 10.6
    runs(
        CALLS
        + """
@process
def ends(): pass
def other():
    wait_for(1)
    keep.retire()
t = unrelated(other)
run(*[reads(c.reader()) for _ in range(5)], *[ends() for _ in range(5)])
t.join()
assert told[0].count("main/reads[") == 5, told
""",
        "threads",
    )


def test_a_mixed_network():  # rule 10.6
    runs(
        READS
        + """
import weft.threads, weft.greenlets
@weft.threads.process
def thread(r): r.read()
@weft.greenlets.process
def green(r): r.read()
def other():
    wait_for(1)
    keep.retire()
t = unrelated(other)
run(reads(c.reader()), thread(c.reader()), green(c.reader()))
t.join()
assert all(x in told[0] for x in ("main/reads:", "main/thread:", "main/green:")), told
""",
        "coroutines",
    )


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
def test_a_block_that_does_something_else_counts_as_running(backend):  # rule 10.6
    runs(
        body(backend)
        + """
def other():
    with some:
        some.wait_for(mine)
    keep.retire()
t = unrelated(other)
with Group() as g:
    g.start(reads(c.reader()))
    another_is_told()
    assert not mine(), told
t.join()
assert len(mine()) == 1, told
""",
        backend,
    )


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
def test_an_io_call_is_due(backend):  # rule 10.6
    wait = "await " if backend == "coroutines" else ""
    runs(
        body(backend)
        + f"""
@process
{"async " if backend == "coroutines" else ""}def calls(w):
    {wait}io(another_is_told)()
    assert not mine(), told
    {wait}w.write(1)
run(reads(c.reader()), calls(keep))
assert not mine(), told
""",
        backend if backend != "threads" else "greenlets",
    )


def test_a_guest_looks_by_one_timer_of_its_loop():  # rules 10.6, 13.3
    runs(
        READS
        + """
import asyncio
handles = []
async def main():
    loop = asyncio.get_running_loop()
    later = loop.call_later
    def call_later(delay, f, *a, **k):
        handles.append(getattr(f, "__name__", ""))
        return later(delay, f, *a, **k)
    loop.call_later = call_later
    await run_async(reads(c.reader()), reads(d.reader()))
def other():
    wait_for(1)
    keep.write(1)
    wait_for(2)
    also.write(1)
t = unrelated(other)
asyncio.run(main())
t.join()
assert len(told) == 2 and "'c'" not in told[1], told
assert handles.count("weft_standstill") == 2, handles
""",
        "coroutines",
    )


def test_a_guest_beside_something_else_on_the_loop_says_nothing():  # rule 10.6
    runs(
        READS
        + """
import asyncio
async def main():
    network = asyncio.ensure_future(run_async(reads(c.reader())))
    await asyncio.to_thread(another_is_told)
    assert not mine(), told
    await keep.write(1)
    await network
asyncio.run(main())
assert not mine(), told
""",
        "coroutines",
    )


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", "2 s"])
def test_a_time_that_is_none_is_told(seconds):  # rule 10.6
    err = runs("", "coroutines", seconds)[1]
    assert f"WEFT_STANDSTILL={seconds} is not a number of seconds (0: never)" in err


def test_a_handler_that_raises_ends_the_run():  # rule 10.6
    runs(
        READS
        + """
class Stop(Exception): pass
class Raises(logging.Handler):
    def handle(self, record): raise Stop
logging.getLogger("weft").addHandler(Raises())
end = threading.Event()
t = unrelated(end.wait)
try:
    run(reads(c.reader()))
except Stop:
    end.set()
t.join()
assert len(told) == 1 and end.is_set()
""",
        "coroutines",
    )


ORDINARY = {
    "read": "r.read()",
    "call": "r()",
    "write": "w.write(1)",
    "iterate": "next(iter(r))",
    "extended": "r.extended().__enter__()",
    "select": "select(r)",
    "output": "select(Output(w, 1))",
    "alternative": "Alternative(r).select()",
    "sync": "Barrier(2).sync()",
    "sleep": "sleep(float('inf'))",
    "tick": "Timer(float('inf')).tick()",
    "barrier guard": "select(Barrier(2), r)",
    "end": "select(process(body)().ended())",
}


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
@pytest.mark.parametrize("operation", ORDINARY)
def test_ordinary_code_that_nobody_could_wake_is_bad_use(operation, backend):  # rule 11.2
    out, _ = runs(
        f"""
def body(): pass
warnings.simplefilter("ignore")  # a process that is never started
x = Channel("x")
r, w = x.reader(), x.writer()
try:
    {ORDINARY[operation]}
except BadUse as e:
    print(e)
# It has changed nothing.
t = unrelated(lambda: w.write(7))
print(r.read())
t.join()
""",
        backend,
    )
    answer, value = out.splitlines()
    assert "in ordinary code would wait for ever" in answer
    assert "run(...)" in answer and "await" in answer
    assert value == "7"


@pytest.mark.parametrize(
    "program",
    [
        "c.reader(); b = Channel(capacity=1); b.writer().write(1)",
        "sleep(0.001); select(c.reader(), after(0.001)); Timer(0.001).tick(); yield_()",
        "t = unrelated(lambda: keep.write(1)); c.reader().read(); t.join()",
        "import signal; signal.signal(signal.SIGALRM, lambda *a: keep.retire()); signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "try: c.reader().read()\nexcept Retired: pass",
        "try:\n with timeout(0.001): c.reader().read()\nexcept TimeoutError: pass\nelse: 1/0",
    ],
)
def test_ordinary_code_that_may_be_woken_waits(program):  # rule 11.2
    runs(program, "threads")


# ------------------------------------------------------------------------ ordinary code that waits


@pytest.mark.parametrize("backend", ["coroutines", "greenlets", "threads"])
@pytest.mark.parametrize("operation", [o for o in ORDINARY if o not in ("sleep", "tick")])
def test_ordinary_code_that_waits_is_told_of(operation, backend):  # rules 10.6, 11.2
    """Another thread exists, so the wait is not bad use. The report contains the operation, the
    place, and advice.
    """
    out, _ = runs(
        f"""
def body(): pass
warnings.simplefilter("ignore")  # a process that is never started
r, w = c.reader(), c.writer()
class Over(Exception): pass
class Ends(logging.Handler):  # what the logger's handler raises ends the waiting
    def handle(self, record): raise Over
logging.getLogger("weft").addHandler(Ends())
end = threading.Event()
t = unrelated(end.wait)
try:
    {ORDINARY[operation]}
except Over:
    pass
else:
    raise AssertionError("it went on")
finally:
    end.set()
    t.join()
assert len(told) == 1, told
print(told[0])
""",
        backend,
    )
    first, where, may = out.splitlines()
    assert first == (
        "standstill: ordinary code outside any run has waited for 0.02 s, and no run goes on that could wake it"
    )
    assert where.startswith("  MainThread: ")
    assert "at <string>:" in where
    if operation in ("read", "call", "write", "iterate", "extended", "select", "output"):
        assert " 'c' at " in where
    assert "run(...)" in may and "`await`" in may
    assert "another thread" in may or not getattr(sys, "_is_gil_enabled", lambda: True)()


def test_what_nobody_can_wake_but_a_signal_says_so():  # rules 10.6, 11.2
    out, _ = runs(
        """
import signal
class Rings(logging.Handler):
    def handle(self, record): signal.raise_signal(signal.SIGUSR1)
signal.signal(signal.SIGUSR1, lambda *_: keep.retire())
logging.getLogger("weft").addHandler(Rings())
try:
    c.reader().read()
except Retired:
    print(told[0])
assert len(told) == 1, told
""",
        "threads",
    )
    assert out.splitlines()[2].startswith("what may still wake it: the handler of SIGUSR1. ")


def test_ordinary_code_is_told_of_once_for_each_line():  # rule 10.6
    runs(
        CALLS
        + """
r = c.reader()
def first(): return r.read()
def second(): return r.read()
def other():
    wait_for(1)
    keep.write(1)
    wait_for(2)
    keep.write(2)
    another_is_told()  # so long has passed again
    keep.write(3)
t = unrelated(other)
assert [first(), second(), first()] == [1, 2, 3]
t.join()
assert len(mine()) == 2, told
""",
        "threads",
    )


@pytest.mark.parametrize(
    "wait",
    [
        "r.read()",  # the run below writes the value
        "select(r, after(1000))",
        "with timeout(1000): r.read()",
    ],
)
def test_ordinary_code_that_something_will_wake_is_not_told_of(wait):  # rule 10.6
    """Either a run continues in which a process is busy outside any operation of Weft, or the wait
    has a time limit. Nothing is reported."""
    runs(
        CALLS
        + f"""
r = c.reader()
@process
def computes(w):
    another_is_told()
    w.write(1)
def goes_on():
    run(computes(keep))
t = unrelated(goes_on)
{wait}
t.join()
assert not mine(), told
""",
        "threads",
    )


def test_ordinary_code_is_told_of_once_the_run_has_ended():  # rule 10.6: checked again
    runs(
        CALLS
        + """
r = c.reader()
@process
def computes():
    another_is_told()
    assert not mine(), told
def goes_on():
    run(computes())
    with some:
        some.wait_for(mine)
    keep.write(1)
t = unrelated(goes_on)
r.read()
t.join()
assert len(mine()) == 1, told
""",
        "threads",
    )


# rule 10.6: code that waits for its sockets is no standstill
def test_ordinary_code_beside_a_loop_is_not_told_of():
    runs(
        CALLS
        + """
import asyncio
import weft.coroutines as tasks
r, d2 = c.reader(), tasks.Channel(capacity=1)
async def main():
    await d2.writer().write(1)  # the loop meets Weft
    await asyncio.to_thread(another_is_told)
    assert not mine(), told
    await keep.write(1)
t = unrelated(lambda: asyncio.run(main()))
r.read()
t.join()
assert not mine(), told
""",
        "threads",
    )


def test_a_thread_of_the_programs_is_named():  # rule 10.6
    out, _ = runs(
        """
def waits():
    c.reader().read()
t = unrelated(waits)
wait_for(1)
keep.write(1)
t.join()
print(told[0])
""",
        "threads",
    )
    assert re.match(r"  unrelated: read .*'c' at <string>:", out.splitlines()[1])


def test_ordinary_code_whose_last_thread_ends_is_bad_use():  # rules 10.6, 11.2: checked again
    out, _ = runs(
        """
r = c.reader()
t = unrelated(lambda: wait_for(1))
try:
    r.read()
except BadUse as wrong:
    print(wrong)
t.join()
assert len(told) == 1, told
try:
    r.read()
except BadUse as wrong:
    print(wrong)
""",
        "threads",
    )
    first, second = out.splitlines()
    assert first == second and "'c' in ordinary code would wait for ever" in first


@pytest.mark.parametrize(("name", "signal"), [("weft: a call", 0), ("mine", 1)])
def test_threads_of_wefts_own_are_no_ordinary_code(name, signal, caplog, monkeypatch):  # rule 10.6
    """Helper threads that wait are not reported, because a user cannot change that."""
    import threading

    from weft._watching import standstill as _standstill

    monkeypatch.setattr(_standstill, "_alone", set())
    messages = []

    def body() -> None:
        messages.append(_standstill.alone("read on", f" {name}", (), False, 0, 2.0))

    thread = threading.Thread(target=body, name=name)
    thread.start()
    thread.join()
    assert messages == [bool(signal)]
    assert len(caplog.records) == signal

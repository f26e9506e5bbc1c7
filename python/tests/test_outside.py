"""Rule 10.3: events that Weft does not see. With a token `Outside` there is no false deadlock for
threads of a C library, or for signals whose handlers act; and each real deadlock is reported.

Tests that might hang, or end with a false Deadlock, run in separate programs. In these programs a
standstill is reported after 20 ms, and the outside part acts when the report is made.
"""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from children import child

from weft.coroutines import BadUse, Channel, Deadlock, Outside, process, run

BACKENDS = ["coroutines", "greenlets", "threads", "guest", "block"]

# A C library with a thread that calls back for each byte that arrives through a pipe, as an audio
# device or a client of a broker does.
LIBRARY = """
#include <pthread.h>
#include <unistd.h>
static void (*callback)(int);
static int from;
static void* calls_back(void* nothing) {
  unsigned char byte;
  while (read(from, &byte, 1) == 1) callback(byte);
  return nothing;
}
int start(void (*f)(int), int descriptor) {
  pthread_t thread;
  callback = f;
  from = descriptor;
  return pthread_create(&thread, 0, calls_back, 0) || pthread_detach(thread);
}
"""

HEAD = """
import asyncio, ctypes, importlib, logging, os, signal, sys, threading
backend, library = sys.argv[1:]
weft = importlib.import_module(
    "weft." + {"guest": "coroutines", "block": "threads"}.get(backend, backend))
from weft.coroutines import *

told, then = [], None
class Tells(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
        if then: then()
logging.getLogger("weft").addHandler(Tells())

if backend in ("coroutines", "guest"):
    @weft.process
    async def reads(r): return await r.read()
    @weft.process
    async def chooses(r, s): return (await select(r, s))[1]
    @weft.process
    async def sleeps(): await sleep(1000)
else:
    @weft.process
    def reads(r): return r.read()
    @weft.process
    def chooses(r, s): return weft.select(r, s)[1]
    @weft.process
    def sleeps(): weft.sleep(1000)

def network(*processes):
    if backend == "guest":
        async def main(): return await run_async(*processes)
        return asyncio.run(main())
    if backend == "block":
        with weft.Group() as g:
            started = [g.start(p) for p in processes]
        return [p.result for p in started] if len(started) > 1 else started[0].result
    return run(*processes)

def deadlock_of(*processes):
    try:
        network(*processes)
    except Deadlock as e:
        return str(e)
    raise AssertionError("no deadlock")

class Source:
    def __init__(self, f):
        r, self.w = os.pipe()
        self.f = ctypes.CFUNCTYPE(None, ctypes.c_int)(f)
        assert ctypes.CDLL(library).start(self.f, r) == 0
    def rings(self, n): os.write(self.w, bytes([n]))
    def ends(self): os.close(self.w)

def fresh(name):
    global c, w
    c = Channel(name)
    w = c.writer()
    told.clear()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    cc = shutil.which(os.environ.get("CC", "cc"))
    assert cc, "there is no C compiler"
    folder: Path = tmp_path_factory.mktemp("library")
    (folder / "back.c").write_text(LIBRARY, encoding="utf-8")
    made = folder / "back.so"
    subprocess.run(
        [cc, "-shared", "-fPIC", "-pthread", str(folder / "back.c"), "-o", str(made)], check=True
    )
    return str(made)


def runs(text: str, backend: str = "coroutines", library: str = "", **environment: str) -> str:
    around = {**os.environ, "WEFT_STANDSTILL": "0.02", **environment}
    with child("-c", HEAD + text, backend, library, env=around) as p:
        out, err = p.communicate()
        assert p.returncode == 0, err + out
    return out


# --- threads of C ---------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_thread_of_c(backend: str, library: str) -> None:  # rule 10.3
    """Python knows the C thread only while the thread calls back, and not between two calls."""
    runs(
        """
used = threading.Event()
def called(n):
    if n == 0:
        d.writer().write(0)
        used.set()
    else:
        w.write(n)
d = Channel(capacity=1)
keep = d.reader()
source = Source(called)

fresh("a")  # the thread has not been in Python yet, so Weft cannot know of it
said = deadlock_of(reads(c.reader()))
assert said.splitlines()[-1] == (
    "if something that Weft does not see will use such an end (a C library that calls back, a device): "
    "hold a weft.Outside() meanwhile"), said

fresh("b")  # so this says that there is something
then = lambda: source.rings(7)
with Outside():
    assert network(reads(c.reader())) == 7
assert len(told) == 1 and "what 1 weft.Outside stands for" in told[0], told

source.rings(0)
used.wait()
fresh("c")  # it has used Weft: it counts
assert network(reads(c.reader())) == 7
assert len(told) == 1 and "a thread that is no process of this run (thread " in told[0], told

fresh("d")  # until it has ended
then = source.ends
assert "main/reads: read 'd'" in deadlock_of(reads(c.reader()))
assert len(told) == 1, told
""",
        backend,
        library,
    )


@pytest.mark.parametrize(
    ("what", "backend"),
    [("_thread", "guest"), ("_thread", "threads"), ("of C", "coroutines"), ("threading", "guest")],
)
def test_one_that_was_found_in_python(what: str, backend: str, library: str) -> None:  # rule 10.3
    """A thread that has only been seen running Python code does not use Weft, and the run is not
    notified when it ends. An earlier version waited for such a thread forever.
    """
    runs(
        f"""
import _thread
inside, over = threading.Event(), threading.Event()
def called(*_):
    inside.set()
    over.wait()
source = None
if "{what}" == "of C":
    source = Source(called)
    source.rings(0)
elif "{what}" == "_thread":
    _thread.start_new_thread(called, ())
else:
    threading.Thread(target=called).start()
inside.wait()
def then():
    over.set()
    if source: source.ends()
fresh("c")
deadlock_of(reads(c.reader()))
assert len(told) == 1, told
""",
        backend,
        library,
    )


@pytest.mark.parametrize("act", ["c.poison()", "p.cancel()"])
def test_one_that_only_ends_what_is_there(act: str, library: str) -> None:  # rule 10.3
    """The thread only ends channels, and neither reads nor writes values. Nevertheless the thread
    counts as outside."""
    runs(
        f"""
acted = threading.Event()
def called(n):
    {act}
    acted.set()
source = Source(called)
fresh("first")
p = reads(c.reader())
p * 0
source.rings(0)
acted.wait()
fresh("second")
then = lambda: source.rings(0)
p = reads(c.reader())
try:
    network(p)
except (Poisoned, Retired, Cancelled):
    pass
assert len(told) == 1, told
""",
        library=library,
    )


def test_ordinary_code_that_one_will_wake(library: str) -> None:  # rules 10.6, 11.2
    runs(
        """
source = Source(lambda n: w.write(n))
fresh("a")
try:
    c.reader()()
except BadUse as e:
    assert "would wait for ever" in str(e)
fresh("b")
then = lambda: source.rings(7)
with Outside():
    assert c.reader()() == 7
assert len(told) == 1 and "what 1 weft.Outside stands for" in told[0], told
fresh("c")
assert c.reader()() == 7  # it has used Weft
fresh("d")
then = source.ends
try:
    c.reader()()
except BadUse as e:
    assert "would wait for ever" in str(e)
else:
    raise AssertionError("it went on")
""",
        "threads",
        library,
    )


# --- Outside --------------------------------------------------------------------------------------


def test_a_token_and_its_end() -> None:  # rule 10.3
    token = Outside()
    assert (token.due, token.closed, repr(token)) == (False, False, "<Outside>")
    token.close()
    token.close()
    assert (token.closed, repr(token)) == (True, "<Outside, closed>")
    with pytest.raises(BadUse, match="make another"), token:
        pass
    with Outside(due=True) as due:
        assert (due.due, due.closed, repr(due)) == (True, False, "<Outside, due>")
    assert due.closed
    with pytest.raises(ZeroDivisionError), Outside() as left:
        raise ZeroDivisionError
    assert left.closed


@pytest.mark.parametrize("bad", [(True,), (1, 2)])
def test_what_it_is_is_said_by_name(bad: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Outside(*bad)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_goes_nowhere(way: Any) -> None:  # rule 11.2
    with Outside() as token, pytest.raises(BadUse, match="make one with Outside"):
        way(token)


def test_one_that_is_dropped_has_ended() -> None:  # rule 10.3
    @process
    async def reads(r: Any) -> None:
        await r.read()

    def deadlocks() -> bool:
        c = Channel[int]()
        kept = c.writer()
        try:
            run(reads(c.reader()))
        except Deadlock:
            return True
        kept.retire()
        return False

    tokens = [Outside(), Outside(due=True)]
    tokens.append(tokens)  # type: ignore[arg-type]  # a cycle
    del tokens
    import gc

    gc.collect()
    assert deadlocks()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_last_that_goes_lets_runs_look(backend: str) -> None:  # rules 10.3, 10.6
    runs(
        """
def drops(): tokens[0] = None
for goes in lambda: tokens[0].close(), drops:
    fresh("c")
    tokens = [Outside()]
    then = goes
    said = deadlock_of(reads(c.reader()))
    assert "main/reads: read 'c'" in said, said
    assert len(told) == 1 and "what 1 weft.Outside stands for" in told[0], told
""",
        backend,
    )


@pytest.mark.parametrize(
    ("comes", "goes"),
    [
        ("token = Outside(due=True)", "token.close()"),
        ("token = Outside(due=True)", "del token"),
        # This token is ended as it is when a program leaves a network.
        ("from weft._extension import native as token; token._outside(True)", "token._outside(0)"),
    ],
    ids=["closed", "dropped", "left"],
)
def test_it_goes_on_a_thread_that_counts_itself(comes: str, goes: str) -> None:  # rules 10.3, 10.6
    """The thread remains, and might hold an end. So when no process is due any more, this is a
    standstill and not a deadlock.
    """
    runs(
        f"""
{comes}
fresh("c")
started, over = threading.Event(), threading.Event()
@process
async def starts(r):
    started.set()
    await r.read()
def other():
    global token
    started.wait()
    {goes}
    over.wait()
def then():
    w.retire()
    over.set()
t = threading.Thread(target=other)
t.start()
try:
    run(starts(c.reader()))
except Retired:
    pass
t.join()
assert len(told) == 1 and "thread that is no process" in told[0], told
"""
    )


def test_a_virtual_clock_stands_still_for_it() -> None:  # rules 8.6, 10.6
    runs(
        """
fresh("c")
token = Outside()
@process
async def naps(out):
    async with timeout(2e6):
        await select(never.reader(), after(1e6))
    await out.write(token.closed)
never = Channel("never")
kept = never.writer()
then = token.close
assert run(reads(c.reader()), naps(w), clock="virtual") == [True, None]
assert len(told) == 1 and "main/naps: select 'never'" in told[0], told

token = Outside()
@process
async def sleeps_alone():
    await sleep(1e6)
    return token.closed
then = lambda: token.close()
told.clear()
assert run(sleeps_alone(), clock="virtual")
assert len(told) == 1 and "main/sleeps_alone: sleep at" in told[0], told
"""
    )


def test_in_the_child_of_a_fork_there_is_none() -> None:  # rule 10.3
    runs(
        """
import warnings
warnings.simplefilter("ignore")
tokens = [Outside(), Outside(due=True)]
if (pid := os.fork()) == 0:
    fresh("child")
    assert all(t.closed for t in tokens)
    deadlock_of(reads(c.reader()))
    tokens[0].close()
    tokens.clear()
    with Outside():
        pass
    fresh("again")
    deadlock_of(reads(c.reader()))
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
fresh("parent")
assert not any(t.closed for t in tokens)
tokens[1].close()
then = tokens[0].close
deadlock_of(reads(c.reader()))
assert len(told) == 1, told
"""
    )


# --- handlers of signals --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_handler_acts(backend: str) -> None:  # rules 10.3, 10.6
    """While a signal's handler may act, a standstill is reported, and the handler ends the wait. A
    handler that reaches no end does not hide a deadlock."""
    runs(
        """
then = lambda: os.kill(os.getpid(), signal.SIGUSR1)
for act in lambda *_: c.poison(), lambda *_: w.retire(), lambda *_: p.cancel():
    signal.signal(signal.SIGUSR1, act)
    fresh("c")
    p = reads(c.reader())
    try:
        network(p)
    except (Poisoned, Retired, Cancelled):
        pass
    assert len(told) == 1, told
    assert told[0].endswith("what may still wake them: the handler of SIGUSR1"), told

signal.signal(signal.SIGUSR1, lambda *_: told.append(1))  # reaches none
fresh("d")
deadlock_of(reads(c.reader()))
assert not told
""",
        backend,
    )


def test_a_handler_of_the_loop_acts() -> None:  # rules 10.3, 13.6
    runs(
        """
async def main(handler):
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, handler)
    return await run_async(reads(c.reader()))
then = lambda: os.kill(os.getpid(), signal.SIGUSR1)
fresh("c")
try:
    asyncio.run(main(lambda: c.poison()))
except Poisoned:
    pass
assert len(told) == 1 and told[0].endswith("the handler of SIGUSR1"), told
fresh("d")
try:
    asyncio.run(main(lambda: told.append(1)))
except Deadlock:
    assert not told
else:
    raise AssertionError("no deadlock")
"""
    )


def test_a_virtual_clock_waits_for_no_signal() -> None:  # rule 8.6
    runs(
        """
signal.signal(signal.SIGUSR1, lambda *_: w.retire())
fresh("c")
@process
async def waits(r):
    await select(r, after(1e6))
    return now()
assert run(waits(c.reader()), clock="virtual") >= 1e6
"""
    )


def test_ordinary_code_waits_for_a_handler_that_may_act() -> None:  # rules 10.6, 11.2
    runs(
        """
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
fresh("c")
try:
    c.reader()()
except BadUse as e:
    assert "would wait for ever" in str(e)
else:
    raise AssertionError("it went on")
signal.signal(signal.SIGUSR1, lambda *_: w.retire())
fresh("d")
then = lambda: os.kill(os.getpid(), signal.SIGUSR1)
try:
    c.reader()()
except Retired:
    pass
assert len(told) == 1 and "the handler of SIGUSR1" in told[0], told
""",
        "threads",
    )


# --- over several OS processes --------------------------------------------------------------------

AWAY = """
import logging, os, signal, sys, threading
from weft.processes import *

told, then = [], None
class Tells(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
        if then: then()
logging.getLogger("weft").addHandler(Tells())

@process
def reads(r):
    return r.read()

@process
def holds(r):
    with Outside():
        return r.read()

def deadlock_of(*processes):
    try:
        run(*processes)
    except Deadlock as e:
        return str(e)
    raise AssertionError("no deadlock")

def fresh(name):
    global c, w
    c = Channel(name)
    w = c.writer()
    told.clear()

def main():
    global then
    here = f"in OS process {os.getpid()}"
    # of the program itself
    fresh("a")
    signal.signal(signal.SIGUSR1, lambda *_: c.poison())
    then = lambda: os.kill(os.getpid(), signal.SIGUSR1)
    try:
        run(reads(c.reader()))
    except Poisoned:
        pass
    assert len(told) == 1 and f"the handler of SIGUSR1 {here}" in told[0], told
    signal.signal(signal.SIGUSR1, lambda *_: told.append(1))  # reaches none
    fresh("b")
    token = Outside()
    then = token.close
    said = deadlock_of(reads(c.reader()))
    assert "ends of 'b' are still open outside any process: retire them" in said, said
    assert said.endswith("hold a weft.Outside() meanwhile"), said
    assert len(told) == 1 and "what 1 weft.Outside stands for" in told[0] and here in told[0], told
    # of a process there
    fresh("c")
    then = w.retire
    try:
        run(holds(c.reader()))
    except Retired:
        pass
    assert len(told) == 1 and "what 1 weft.Outside stands for" in told[0] and here not in told[0], told

if __name__ == "__main__":
    main()
"""


def test_over_several_os_processes(tmp_path: Path) -> None:  # rules 10.3, 10.6, wire 10
    program = tmp_path / "os_process_targets.py"
    program.write_text(AWAY, encoding="utf-8")
    with child(str(program)) as p:
        out, err = p.communicate()
        assert p.returncode == 0, err + out


# --- without the extension module -----------------------------------------------------------------


def test_in_pure_python_it_says_what_to_do() -> None:  # rule 10.3
    """In pure Python, threads that are not processes cannot use ends, so the message advises what
    to do instead.
    """
    text = "from weft.coroutines import Outside"
    with child("-c", text, env={**os.environ, "WEFT_PURE": "1"}) as p:
        _, err = p.communicate()
    assert p.returncode == 1
    assert "weft.coroutines has no 'Outside' in pure Python" in err

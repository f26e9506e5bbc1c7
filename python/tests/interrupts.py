"""Sends a storm of SIGINT and SIGTERM from outside, at any moment of a network, on every backend
(rules 6, 6.7, 7.6).

    .venv/bin/python python/tests/interrupts.py [ROUNDS [SEED]]   last line: N passed, N failed

In each round a child starts an endless network, prints "ready", and is sent signals some
microseconds later. The child must leave the network by the exception that the handler raises, leave
no party at its channels, and be ready for the next round. The seed determines the moment of a
signal, but not the code that the signal interrupts.

Invariant: the child takes the byte that ends a round only once no signal of that round can arrive
any more: signals are sent before the byte, and the code that notices them runs at the latest when
select() returns.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from children import child

CHILD = """
import asyncio, faulthandler, gc, os, select, signal, sys, time
import weft.coroutines as co, weft.threads as th
from weft.coroutines import Channel, Output, after, process
KIND, ROUNDS = sys.argv[1], int(sys.argv[2])
if KIND in ("greenlets", "mixed", "block"):
    import weft.greenlets as gr
signal.signal(signal.SIGINT, signal.default_int_handler)

class Ended(SystemExit):  # as of sys.exit(): asyncio swallows others
    pass

def on_term(*_):
    raise Ended
signal.signal(signal.SIGTERM, on_term)

@co.process
async def nothing():
    pass

@co.process
async def co_source(w):
    for i in range(10**9):
        await w.write(i)
        if i % 64 == 63:
            await co.sleep(0.0003)

@co.process
async def co_relay(r, w):
    while True:
        _, v = await co.select(r, after(1000))
        await co.select(Output(w, v), after(1000))

@co.process
async def co_sink(r):
    async with co.Group() as g:
        g.start(co_idle(Channel().reader()))
        async for _ in r:
            pass

@co.process
async def co_idle(r):
    await r.read()

@co.process
async def co_calls(r):
    nap = co.io(time.sleep)
    while True:
        await nap(0.001)

def blocking(m):
    @m.process
    def source(w):
        for i in range(10**9):
            w.write(i)
            if i % 64 == 63:
                m.sleep(0.0003)
    @m.process
    def relay(r, w):
        while True:
            _, v = m.select(r, m.after(1000))
            m.select(m.Output(w, v), m.after(1000))
    @m.process
    def sink(r):
        for _ in r:
            pass
    @m.process
    def idle(r):
        r.read()
    @m.process
    def calls(r):
        nap = m.io(time.sleep)
        while True:
            nap(0.001)
            m.yield_()  # on threads an io call is a plain call, and no operation
    return source, relay, sink, idle, calls

COROUTINES = co_source, co_relay, co_sink, co_idle, co_calls
if KIND == "threads":
    parts = blocking(th)
elif KIND == "greenlets":
    parts = blocking(gr)
elif KIND in ("mixed", "block"):
    parts = co_source, blocking(th)[1], blocking(gr)[2], co_idle, blocking(gr)[4]
else:
    parts = COROUTINES

def network(channels):
    c, d, e = channels
    source, relay, sink, idle, calls = parts
    return source(c.writer()), relay(c.reader(), d.writer()), sink(d.reader()), idle(e.reader()), calls(e.writer())

async def in_tasks(channels):  # asyncio tasks at channels, beside a guest
    c, d, e = channels
    r, w = d.reader(), c.writer()
    async def put():
        i = 0
        while True:
            await w.write(i)
            i += 1
            if i % 64 == 0:
                await asyncio.sleep(0.0003)
    async def take():
        while True:
            await co.select(r, after(1000))
    await asyncio.gather(put(), take(), co.run_async(co_relay(c.reader(), d.writer())))

def in_a_block(channels):
    # The main program is the relay; with it run coroutines, greenlets and threads.
    c, d, e = channels
    source, _, sink, idle, calls = parts
    r, w = c.reader(), d.writer()
    with gr.Group() as g:
        for p in source(c.writer()), sink(d.reader()), idle(e.reader()), calls(e.writer()):
            g.start(p)
        del p
        while True:
            _, v = gr.select(r, gr.after(1000))
            gr.select(gr.Output(w, v), gr.after(1000))

def play(channels):
    if KIND == "guest":
        co.run(*network(channels), host="asyncio")
    elif KIND == "tasks":
        asyncio.run(in_tasks(channels))
    elif KIND == "threads":
        th.run(*network(channels))
    elif KIND == "greenlets":
        gr.run(*network(channels))
    elif KIND == "block":
        in_a_block(channels)
    else:
        co.run(*network(channels))

# What a handler raises in asyncio's own code, plain programs of asyncio do not survive either: a callback that was taken and not run is
# lost with its task, and the loop's end waits for that. So there the handlers of this program let the loop raise it, in a callback.
due = []
LIBRARY = os.path.dirname(asyncio.__file__) + os.sep
def asyncios_own(frame):
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(LIBRARY) or os.path.basename(file) in ("_weakrefset.py", "weakref.py"):
            return True
        if file == "<string>" or os.path.basename(os.path.dirname(file)) == "weft":
            return False
        frame = frame.f_back
    return False
def raise_due(*_):
    if due:
        raise due.pop()
def raise_where_it_may(error, frame):
    if not asyncios_own(frame):
        raise error
    due.append(error)
    loop = asyncio._get_running_loop()
    if loop is not None:
        loop.call_soon_threadsafe(raise_due)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
if KIND in ("guest", "tasks"):
    signal.signal(signal.SIGTERM, lambda _, frame: raise_where_it_may(Ended(), frame))
    signal.signal(signal.SIGALRM, lambda _, frame: due and raise_where_it_may(due.pop(), frame))
    if hasattr(asyncio, "Runner"):
        on_sigint = asyncio.Runner._on_sigint
        def on_second(self, number, frame, main_task):
            try:
                on_sigint(self, number, frame, main_task)
            except KeyboardInterrupt as error:
                raise_where_it_may(error, frame)
        asyncio.Runner._on_sigint = on_second
    else:  # 3.10: it comes where it comes
        signal.signal(signal.SIGINT, lambda _, frame: raise_where_it_may(KeyboardInterrupt(), frame))

faulthandler.register(signal.SIGUSR1, sys.__stderr__, all_threads=True)
sys.stderr = open(os.devnull, "w")  # where the processes were; sys.__stderr__ says what is wrong
def until_told():
    select.select([0], [], [])
    raise_due()

def note(error):
    got.append(type(error).__name__ if isinstance(error, (KeyboardInterrupt, Ended)) else repr(error))

for _ in range(ROUNDS):
    channels = Channel("c"), Channel("d", capacity=2), Channel("e")
    got = []
    try:  # one for each signal, and one more: the second may come while the first is being noted
        try:
            try:
                print("ready", flush=True)
                play(channels)
                got.append("an end by itself")
            except BaseException as error:
                note(error)
            until_told()
        except BaseException as error:
            note(error)
        until_told()
    except BaseException as error:
        note(error)
    until_told()
    os.read(0, 1)
    gc.collect()
    gc.collect()  # what the finaliser of a task of asyncio let go of: it steps processes to their ends
    co.run(nothing())  # a finaliser's retirement waits for the next operation (12.2)
    left = [(s.readers, s.writers, s.waiting_readers, s.waiting_writers) for s in (c.stats() for c in channels)]
    print(",".join(got) or "nothing", "nobody" if not any(map(any, left)) else left, flush=True)
"""

KINDS = ("coroutines", "greenlets", "threads", "mixed", "block", "guest", "tasks")


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def storm(kind: str, rounds: int, seed: int, signals: tuple[signal.Signals, ...]) -> list[str]:
    """Returns the faults, one line for each round. In each round the child is sent `signals`, one
    after the other, with some time between them.
    """
    dice = random.Random(seed)
    wrong = []
    names = {signal.SIGINT: "KeyboardInterrupt", signal.SIGTERM: "Ended"}
    allowed = {names[s] for s in signals}
    with child(
        "-c",
        CHILD,
        kind,
        str(rounds),
        stdin=subprocess.PIPE,
        bufsize=1,
        seconds=280 + rounds / 4,
    ) as p:
        assert p.stdin is not None and p.stdout is not None
        for k in range(rounds):
            if p.stdout.readline() != "ready\n":
                break
            for s in signals:
                spin(dice.choice((0, 0.0001, 0.002, 0.01)) * dice.random())
                p.send_signal(s)
            p.stdin.write("x")
            p.stdin.flush()
            # SIGUSR1 makes the child print where it hangs.
            tell = threading.Timer(240, p.send_signal, (signal.SIGUSR1,))
            tell.start()
            line = p.stdout.readline().rstrip("\n")
            tell.cancel()
            got, _, left = line.partition(" ")
            if kind in ("guest", "tasks"):
                # asyncio.Runner sets its count of interrupts to 0 after it has set its handler. If
                # an interrupt arrives between these two steps, the runner forgets that it cancelled
                # the task for that interrupt.
                got = got.replace("CancelledError()", "KeyboardInterrupt")
            if not set(got.split(",")) <= allowed or (len(signals) == 1 and left != "nobody"):
                wrong.append(f"{kind}, seed {seed}, round {k}, {len(signals)} signals: {line!r}")
        p.stdin.close()
        p.stdin = None
        _, err = p.communicate()
    if p.returncode != 0:
        wrong.append(f"{kind}, seed {seed}: the child ended with {p.returncode}: {err[-2000:]}")
    return wrong


AT_THE_END = """
import asyncio, atexit, signal, sys
import weft.coroutines as co, weft.threads as th
from weft.coroutines import Channel
signal.signal(signal.SIGINT, signal.default_int_handler)
c = Channel()

@co.process
async def pair(r, w):
    await co.Parallel(put(w), take(r))
@co.process
async def put(w):
    for i in range(200):
        await w.write(i)
@th.process
def take(r):
    for _ in r: pass

def last():
    d = Channel()
    co.run(pair(d.reader(), d.writer()))
atexit.register(last)
g = th.Group(); g.__enter__(); g.start(take(c.reader()))
keep = put(c.writer())
print("bye", flush=True)
"""


def at_the_end(rounds: int, seed: int) -> list[str]:
    """Sends Ctrl-C while the interpreter shuts down. The program must end, with or without the
    interrupt, and must not crash.
    """
    dice = random.Random(seed)
    wrong = []
    for k in range(rounds):
        with child("-W", "ignore", "-c", AT_THE_END) as p:
            assert p.stdout is not None
            p.stdout.readline()
            spin(0.03 * dice.random())
            p.send_signal(signal.SIGINT)
            _, err = p.communicate()
        if p.returncode not in (0, 1, 120, 130, -signal.SIGINT) or "Fatal" in err:
            wrong.append(f"at the end, seed {seed}, round {k}: {p.returncode}: {err[-2000:]}")
    return wrong


def cases(rounds: int) -> list[tuple[str, Callable[[int], list[str]]]]:
    made: list[tuple[str, Callable[[int], list[str]]]] = []
    for kind in KINDS:
        for name, signals in (
            ("Ctrl-C", (signal.SIGINT,)),
            ("Ctrl-C twice", (signal.SIGINT, signal.SIGINT)),
            ("SIGTERM", (signal.SIGTERM,)),
        ):
            made.append(
                (
                    f"{kind}: {name}",
                    lambda seed, kind=kind, signals=signals: storm(kind, rounds, seed, signals),  # type: ignore[misc]
                )
            )
    made.append(("at the end", lambda seed: at_the_end(max(3, rounds // 10), seed)))
    return made


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    passed = failed = 0
    for name, play in cases(rounds):
        wrong = play(seed)
        print(f"{name}, {rounds} rounds, seed {seed}: {'right' if not wrong else 'WRONG'}")
        for line in wrong[:10]:
            print("  " + line)
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

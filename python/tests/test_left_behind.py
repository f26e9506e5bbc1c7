"""Groups that a process leaves open, and runs that a thread leaves waiting, continue to their end
(rules 7.6, 10.3)."""

from __future__ import annotations

import signal
import subprocess
import textwrap

import pytest
from children import child, until_asleep

PARTS = """
import threading
import warnings
from weft import greenlets as gr
from weft.coroutines import Cancelled, Channel, Deadlock, Group, Parallel, process, run, run_async, yield_

warnings.simplefilter("ignore")
log, kept = [], []


@process
async def stays(r):
    try:
        await r.read()
    except Cancelled:
        for _ in range(8):  # it outlives the process that started it
            await yield_()
        log.append("stayed")


@gr.process
def greenlet_stays(r):
    try:
        r.read()
    except Cancelled:
        for _ in range(8):
            yield_()
        log.append("stayed")


def begin(*processes):
    steps = Parallel(*processes).__await__()
    steps.send(None)
    return steps


async def closes(c):
    begin(stays(+c)).close()


async def closes_greenlets(c):
    begin(greenlet_stays(+c)).close()


async def leaves_it_as_it_is(c):
    kept.append(begin(stays(+c)))


async def never_leaves_a_block(c):
    group = await Group().__aenter__()
    group.start(stays(+c))
    kept.append(group)


async def leaves_one_that_does(c):
    begin(process(never_leaves_a_block)(c)).close()
"""


def prints(program: str, message: str) -> None:
    """Checks that the program ends without help, and prints exactly `message`."""
    with child("-c", PARTS + textwrap.dedent(program)) as running:
        out, err = running.communicate()
    assert (running.returncode, out, err) == (0, message, "")


@pytest.mark.parametrize("place", ["", ".on('threads')"])
@pytest.mark.parametrize(
    "how", ["closes", "closes_greenlets", "leaves_it_as_it_is", "never_leaves_a_block"]
)
def test_by_a_process_that_ends(how: str, place: str) -> None:  # rules 7.6, 11.1
    """Tests processes that a thread process has left behind: these processes run on the thread of
    that process.
    """
    prints(f"print(run([process({how}){place}(Channel('c'))]), log)", "[None] ['stayed']\n")


def test_by_one_that_was_left_itself() -> None:  # rules 7.6, 11.1
    """The process had already been left behind when it started a process, or the processes that it
    started continue."""
    prints("print(run([process(leaves_one_that_does).on('threads')(Channel('c'))]))", "[None]\n")


FOREIGN_THREAD = """
from weft import threads
c = Channel("c")
keep = c.writer()  # the foreign thread may have it, as far as is known
threading.Thread(target=input).start()


async def waits(r):
    await r.read()


def thread_waits(r):
    r.read()


try:
    run([{}(+c)])
except Deadlock as e:
    print(e.knot, [p.path for p in e.processes])
"""


@pytest.mark.parametrize(
    "made",
    [
        "process(waits)",
        "process(waits).on('threads')",
        "threads.process(thread_waits)",
        "gr.process(thread_waits)",
    ],
)
def test_by_a_thread_that_ends(made: str) -> None:  # rules 10.1, 10.3
    """While the thread exists, it might write; once the thread has ended, no code can write."""
    with child("-c", PARTS + FOREIGN_THREAD.format(made), stdin=subprocess.PIPE) as running:
        until_asleep(running.pid)
        out, err = running.communicate("\n")
    name = "waits" if "thread_" not in made else "thread_waits"
    assert (running.returncode, out, err) == (0, f"['main/{name}'] ['main/{name}']\n", "")


def test_by_a_loop_that_is_closed() -> None:  # rules 7.6, 13.5
    """The network of the loop had a thread process, which ends long after the guest."""
    prints(
        """
        import asyncio, gc, logging, os
        from weft import threads
        from weft.coroutines import Spawn
        logging.disable()  # asyncio names the tasks that were left
        begun, go = threading.Event(), threading.Event()

        @threads.process
        def thread():
            begun.set()
            go.wait()

        async def host(processes):
            network = asyncio.ensure_future(run_async(*processes))
            while not begun.is_set():
                await asyncio.sleep(0)

        @process
        async def spawns():
            kept.append(thread())
            Spawn(kept[-1])

        for how in thread, spawns:
            begun.clear(), go.clear(), kept.clear()
            processes = [how(), how()] if how is spawns else [thread()]
            loop = asyncio.new_event_loop()
            loop.run_until_complete(host(processes))
            loop.close()
            del loop
            gc.collect()
            go.set()
            for p in kept or processes:
                while not p.done:
                    os.sched_yield()
        print("ended")
        """,
        "ended\n",
    )


def test_an_extended_read_that_nobody_ends() -> None:  # rules 1.6, 6.3, 10.1
    """The writer of the extended read cannot be cancelled. The run waits until the extended read
    ends, reports that on stderr, and then has deadlocked.
    """
    program = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: kept.clear())
print("ready", flush=True)


@process
async def holds(r):
    kept.append(r.extended())
    await kept[-1].__aenter__()


@process
async def writes(w):
    await w.write(1)


c = Channel("c")
try:
    run(holds(+c), writes(-c))
except Deadlock as e:
    print(len(kept), [p.path for p in e.processes])
"""
    with child("-c", PARTS + program) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        until_asleep(running.pid)
        running.send_signal(signal.SIGUSR1)
        out, err = running.communicate()
    assert (running.returncode, out) == (0, "0 ['main/writes']\n")
    # The report also names the process that waits for the run.
    assert "main/writes: write 'c' at " in err
    assert "held by an extended read whose block nobody ends" in err

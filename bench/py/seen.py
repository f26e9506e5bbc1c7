"""Measures the cost of a look from outside (rules 14.9, 14.10): seen.py WHAT SAMPLES PER

alone     ns for a communication of CommsTime of coroutines that nobody looks at, with the socket
attached  the same while another OS process takes a look of 100 ms each second
many-alone, many-attached  the same, beside 10,000 processes that wait
first     ns from the start of `weft top --once` to its end; the program has PER processes that wait
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sampler import Sampler, fail, numbers

from weft import Channel, Parallel, process, run

LOOKER = """
import sys, time
from weft._watching.visit import Looking
with Looking(int(sys.argv[1])) as looking:
    print("looks", flush=True)
    while True:
        looking.look(0.1, 2000)
        time.sleep(0.9)
"""


@process
async def prefix(source, sink):
    await sink.write(0)
    while True:
        await sink.write(await source.read())


@process
async def delta(source, left, right):
    while True:
        value = await source.read()
        await left.write(value)
        await right.write(value)


@process
async def successor(source, sink):
    while True:
        await sink.write(await source.read() + 1)


def looker():
    return subprocess.Popen(
        [sys.executable, "-c", LOOKER, str(os.getpid())], stdout=subprocess.PIPE, text=True
    )


@process
async def waits(source):
    await source.read()


@process
async def consumer(source, keep, samples, per, attached):
    """Holds the only writer of the channel at which the other processes wait."""
    sampler = Sampler()
    await source.read()
    other = looker() if attached else None
    if other and other.stdout.readline() != "looks\n":
        fail("seen: the looker did not start")
    for k in range(samples + 1):  # stretch 0 warms up
        sampler.begin()
        for _ in range(per):
            await source.read()
        if k:
            sampler.end(4 * per)
    if other:
        other.kill()
        other.wait()
    keep.retire()
    sampler.print()


@process
async def commstime(samples, per, attached, others):
    a, b, c, d, e = (Channel() for _ in range(5))
    keep = e.writer()
    waiting = [waits(e.reader()) for _ in range(others)]
    await Parallel(
        prefix(c.reader(), a.writer()),
        delta(a.reader(), b.writer(), d.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), keep, samples, per, attached),
        *waiting,
    )


@process
def asks(samples):
    """Runs `weft top` in a thread process, so that the program answers meanwhile."""
    for k in range(samples + 1):
        start = time.perf_counter_ns()
        done = subprocess.run(
            [Path(sys.executable).with_name("weft"), "top", str(os.getpid()), "--once"],
            capture_output=True,
            text=True,
            check=False,
        )
        spent = time.perf_counter_ns() - start
        if done.returncode or "main" not in done.stdout:
            fail(f"seen: weft top: {done.stderr.strip() or done.stdout}")
        if k:
            print("ns", spent, flush=True)
    folder.cleanup()
    os._exit(0)  # the processes wait forever


@process
async def many(samples, per):
    c = Channel()
    keep = c.writer()
    await Parallel(asks(samples), *(waits(c.reader()) for _ in range(per)))
    keep.retire()


# A program's socket for looks is in the user's runtime directory. Many containers have no such
# directory, so the bench makes one.
folder = tempfile.TemporaryDirectory()
os.environ["XDG_RUNTIME_DIR"] = folder.name
what = sys.argv[1] if len(sys.argv) > 1 else ""
samples, per = numbers("WHAT SAMPLES PER", words=1)
if what == "first":
    run(many(samples, per))
elif what.removeprefix("many-") in ("alone", "attached"):
    run(commstime(samples, per, "attached" in what, 10_000 if "many" in what else 0))
else:
    fail("usage: seen.py alone|attached|many-alone|many-attached|first SAMPLES PER")

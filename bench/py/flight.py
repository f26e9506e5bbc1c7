"""The flight recorder's cost (rule 14.14; ../../python/docs/flight.md): flight.py WHAT SAMPLES PER

event     ns for an event of CommsTime of coroutines, one figure: the least time with the recorder
          minus the least time without it. The two are measured alternately. A communication is two
          events
on, off   ns for a communication, with the recorder and without it
size      bytes for an event, definitions included: the mean of CommsTime and a farm of 64 workers
read      ns for which `weft trace` reads an event: sums, verdict and critical path of a file
"""

import sys
import tempfile
import time
from pathlib import Path

from sampler import fail, numbers

from weft import Channel, Parallel, observe, process, run
from weft._watching import flight_read

STRETCHES = 10
WORKERS = 64
BLOCK = 1 << 16


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


@process
async def consumer(source, per, ns):
    expected = 0
    for k in range(STRETCHES + 1):
        start = time.perf_counter_ns()
        for _ in range(per):
            value = await source.read()
            if value != expected:
                fail(f"flight: read {value}, expected {expected}")
            expected += 1
        if k:
            ns.append((time.perf_counter_ns() - start) / (4 * per))


@process
async def commstime(per, ns):
    a, b, c, d = (Channel() for _ in range(4))
    await Parallel(
        prefix(c.reader(), a.writer()),
        delta(a.reader(), b.writer(), d.writer()),
        successor(b.reader(), c.writer()),
        consumer(d.reader(), per, ns),
    )


@process
async def source(sink, jobs):
    for job in range(jobs):
        await sink.write(job)


@process
async def worker(jobs, results):
    async for job in jobs:
        await results.write(job)


@process
async def sink(results):
    async for _ in results:
        pass


@process
async def farm(jobs):
    a, b = Channel(), Channel()
    await Parallel(
        source(a.writer(), jobs),
        *(worker(a.reader(), b.writer()) for _ in range(WORKERS)),
        sink(b.reader()),
    )


def events_of(path):
    return flight_read.Recorded([path]).summary().events


def timed(what, samples, per, path):
    on, off = [], []
    for _ in range(max(1, samples // STRETCHES)):
        run(commstime(per, off))
        with observe.flight(path, size=1 << 20):
            run(commstime(per, on))
    if what == "event":  # the difference of single samples means nothing if the CPU changes speed
        on = [(min(on) - min(off)) / 2]
    print("ns", *(f"{v:.2f}" for v in (off if what == "off" else on)))


def sized(per, path):
    means = []
    for network in (commstime(per, []), farm(10 * per)):
        with observe.flight(path, size=1 << 20):
            run(network)
        means.append(path.stat().st_size / events_of(path))
    print("bytes", f"{sum(means) / len(means):.3f}")


def read(samples, per, path):
    with observe.flight(path, size=256 << 20):
        run(commstime(per, []))
    ns = []
    for _ in range(samples):
        start = time.perf_counter_ns()
        recorded = flight_read.Recorded([path])
        events = recorded.summary().events
        recorded.critical()
        ns.append((time.perf_counter_ns() - start) / events)
    if events < 88 * per:
        fail(f"flight: the file has {events} events, expected {88 * per}")
    print("ns", *(f"{v:.2f}" for v in ns))


what = sys.argv[1] if len(sys.argv) > 1 else ""
samples, per = numbers("WHAT SAMPLES PER", words=1)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "bench.flight"
    if what in ("event", "on", "off"):
        timed(what, samples, per, path)
    elif what == "size":
        sized(per, path)
    elif what == "read":
        read(samples, per, path)
    else:
        fail("usage: flight.py event|on|off|size|read SAMPLES PER")

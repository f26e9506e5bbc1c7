"""Runs the thesis's own programs, under their names: upycsp_device.py MODULE EXPERIMENT SAMPLES
PER, on MicroPython and on CPython alike. The program prints `ns V V …`, a figure for each sample.

MODULE: apycsp or pycsp_locks, of weft.compat. EXPERIMENT: sequential, parallel (CommsTime's delta;
an operation is a communication), select CxW or with CxW (StressedAlt; an operation is a choice from
C channels with W writers each), written as one word: select5x2."""

import gc
import sys

try:
    from time import ticks_diff, ticks_us

    def since(t):
        return ticks_diff(ticks_us(), t) * 1000

except ImportError:
    from time import perf_counter_ns as ticks_us

    def since(t):
        return ticks_us() - t


module, experiment = sys.argv[1:3]
samples, per = int(sys.argv[3]), int(sys.argv[4])
figures = []

if module == "apycsp":
    from weft.compat.apycsp import Alternative, Channel, Parallel, process

    @process
    async def prefix(cin, cout):
        await cout(0)
        while True:
            await cout(await cin())

    @process
    async def sequential(cin, one, two):
        while True:
            value = await cin()
            await one(value)
            await two(value)

    @process
    async def parallel(cin, one, two):
        while True:
            value = await cin()
            await Parallel(one(value), two(value))

    @process
    async def successor(cin, cout):
        while True:
            await cout(await cin() + 1)

    @process
    async def consumer(cin):
        expected = 0
        for k in range(samples + 1):  # Stretch 0 warms up.
            gc.collect()
            t = ticks_us()
            for _ in range(per):
                value = await cin()
            if k:
                figures.append(since(t) / (per * 4))
            expected += per
            assert value == expected - 1
        for channel in (a, b, c, d):
            await channel.poison()

    @process
    async def writer(cout):
        while True:
            await cout(1)

    @process
    async def chooser(channels):
        alt = Alternative(*[c.read for c in channels])
        for k in range(samples + 1):
            gc.collect()
            t = ticks_us()
            if experiment[:4] == "with":
                for _ in range(per):
                    async with alt as (_, value):
                        pass
            else:
                for _ in range(per):
                    _, value = await alt.select()
            if k:
                figures.append(since(t) / per)
            assert value == 1
        for c in channels:
            await c.poison()

    def run(*processes):
        import asyncio

        async def main():
            await Parallel(*processes)

        asyncio.run(main())

else:
    from weft.compat import pycsp_locks
    from weft.compat.pycsp_locks import Alternative, Channel, process

    run = getattr(pycsp_locks, "CSP", pycsp_locks.Parallel)  # On CPython, Parallel is run by CSP.

    @process
    def prefix(cin, cout):
        cout(0)
        while True:
            cout(cin())

    @process
    def sequential(cin, one, two):
        while True:
            value = cin()
            one(value)
            two(value)

    @process
    def once(cout, value):
        cout(value)

    @process
    def parallel(cin, one, two):
        while True:
            value = cin()
            run(once(one, value), once(two, value))

    @process
    def successor(cin, cout):
        while True:
            cout(cin() + 1)

    @process
    def consumer(cin):
        expected = 0
        for k in range(samples + 1):
            gc.collect()
            t = ticks_us()
            for _ in range(per):
                value = cin()
            if k:
                figures.append(since(t) / (per * 4))
            expected += per
            assert value == expected - 1
        for channel in (a, b, c, d):
            channel.poison()

    @process
    def writer(cout):
        while True:
            cout(1)

    @process
    def chooser(channels):
        alt = Alternative(*[c.read for c in channels])
        for k in range(samples + 1):
            gc.collect()
            t = ticks_us()
            if experiment[:4] == "with":
                for _ in range(per):
                    with alt as (_, value):
                        pass
            else:
                for _ in range(per):
                    _, value = alt.select()
            if k:
                figures.append(since(t) / per)
            assert value == 1
        for c in channels:
            c.poison()


if experiment in ("sequential", "parallel"):
    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    delta = parallel if experiment == "parallel" else sequential
    run(
        prefix(c.read, a.write),
        delta(a.read, b.write, d.write),
        successor(b.read, c.write),
        consumer(d.read),
    )
else:
    number, writers = [
        int(n) for n in experiment.replace("select", "").replace("with", "").split("x")
    ]
    channels = [Channel("c%d" % n) for n in range(number)]
    run(chooser(channels), *[writer(c.write) for c in channels for _ in range(writers)])
assert len(figures) == samples
print("ns", " ".join("%.1f" % f for f in figures))

"""Runs one bench on MicroPython: on_device.py BENCH WAY SAMPLES PER. It prints `ns V V …`, with a
figure for each sample.

Ways: await and yield (Weft's coroutines), threads, apycsp (the old names on Weft), yielding,
rescheduling, cfuture (the thesis's), pair (two threads that pass a lock back and forth)."""

import gc
import sys
from time import ticks_diff
from time import ticks_us as ticks

sys.path.append("/".join(__file__.split("/")[:-1]) or ".")
bench, way = sys.argv[1:3]
samples, per = int(sys.argv[3]), int(sys.argv[4])
figures = []


class Stop(Exception):
    pass


async def measured(read, per_sample, count):
    """Reads samples × per values; returns the time of each stretch, divided by the number of
    operations."""
    for k in range(samples + 1):
        gc.collect()
        t = ticks()
        for _ in range(per_sample):
            await read()
        if k:
            figures.append(ticks_diff(ticks(), t) * 1000 / (per_sample * count))


def called(read, per_sample, count):
    for k in range(samples + 1):
        gc.collect()
        t = ticks()
        for _ in range(per_sample):
            read()
        if k:
            figures.append(ticks_diff(ticks(), t) * 1000 / (per_sample * count))


def commstime_weft():
    from weft.coroutines import Channel, Parallel, poison, process, run

    @process
    async def prefix(i, o):
        await o.write(0)
        while True:
            await o.write(await i.read())

    @process
    async def delta(i, a, b):
        while True:
            v = await i.read()
            await a.write(v)
            await b.write(v)

    @process
    async def send(o, v):
        await o.write(v)

    @process
    async def parallel_delta(i, a, b):
        while True:
            v = await i.read()
            await Parallel(send(a, v), send(b, v))

    @process
    async def successor(i, o):
        while True:
            await o.write(await i.read() + 1)

    @process
    async def consumer(i):
        await measured(i.read, per, 4)
        for channel in (
            a,
            b,
            c,
            d,
            # The benches of these ways run several times, since a parallel delta outlives a send
            # that was poisoned.
        ):
            channel.poison()

    @process
    def yprefix(i, o):
        yield o.write(0)
        while True:
            v = yield i.read()
            yield o.write(v)

    @process
    def ydelta(i, a, b):
        while True:
            v = yield i.read()
            yield a.write(v)
            yield b.write(v)

    @process
    def ysuccessor(i, o):
        while True:
            v = yield i.read()
            yield o.write(v + 1)

    @process
    def yconsumer(i):
        for k in range(samples + 1):
            gc.collect()
            t = ticks()
            for _ in range(per):
                yield i.read()
            if k:
                figures.append(ticks_diff(ticks(), t) * 1000 / (per * 4))
        poison(i)

    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    if way == "yield":
        run(yprefix(+c, -a), ydelta(+a, -b, -d), ysuccessor(+b, -c), yconsumer(+d))
    else:
        chosen = parallel_delta if bench == "parallel" else delta
        run(prefix(+c, -a), chosen(+a, -b, -d), successor(+b, -c), consumer(+d))


def commstime_apycsp():
    from weft.compat.apycsp import Channel, process, run_CSP
    from weft.compat.apycsp.plugNplay import Prefix, SeqDelta2, Successor

    @process
    async def consumer(cin):
        await measured(cin, per, 4)
        await cin.poison()

    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    run_CSP(
        Prefix(c.read, a.write, prefixItem=0),
        SeqDelta2(a.read, b.write, d.write),
        Successor(b.read, c.write),
        consumer(d.read),
    )


def commstime_futures():
    import asyncio

    import baselines

    Channel = baselines.channels(
        baselines.Yielding if way == "yielding" else baselines.Rescheduling
    )

    async def prefix(i, o):
        await o.write(0)
        while True:
            await o.write(await i.read())

    async def delta(i, a, b):
        while True:
            v = await i.read()
            if bench == "parallel":
                await baselines.parallel(a.write(v), b.write(v))
            else:
                await a.write(v)
                await b.write(v)

    async def successor(i, o):
        while True:
            await o.write(await i.read() + 1)

    async def consumer(i, all_of_them):
        await measured(i.read, per, 4)
        for c in all_of_them:
            c.poison()

    async def main():
        a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
        await baselines.parallel(
            prefix(c, a), delta(a, b, d), successor(b, c), consumer(d, (a, b, c, d))
        )

    asyncio.run(main())


def commstime_threads():
    if way == "threads":
        from weft.threads import Channel, poison, process, run

        a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
        ends = [(+c, -a), (+a, -b, -d), (+b, -c), +d]
    else:
        import baselines

        Channel, run = baselines.locked()
        a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
        ends = [(c, a), (a, b, d), (b, c), d]

    def prefix(i, o):
        o.write(0)
        while True:
            o.write(i.read())

    def delta(i, a, b):
        while True:
            v = i.read()
            a.write(v)
            b.write(v)

    def successor(i, o):
        while True:
            o.write(i.read() + 1)

    def consumer(i):
        called(i.read, per, 4)
        if way == "threads":
            poison(i)
        else:
            for x in (a, b, c, d):
                x.poison()

    if way == "threads":
        run(
            process(prefix)(*ends[0]),
            process(delta)(*ends[1]),
            process(successor)(*ends[2]),
            process(consumer)(ends[3]),
        )
    else:
        run(
            lambda: prefix(*ends[0]),
            lambda: delta(*ends[1]),
            lambda: successor(*ends[2]),
            lambda: consumer(ends[3]),
        )


def lock_pair():
    """Measures two threads that pass a lock to each other: the least cost of a switch between
    threads.
    """
    from _thread import allocate_lock, start_new_thread

    one, two, done = allocate_lock(), allocate_lock(), [False]
    one.acquire()
    two.acquire()

    def other():
        while not done[0]:
            one.acquire()
            two.release()

    start_new_thread(other, ())

    def there_and_back():
        one.release()
        two.acquire()

    called(there_and_back, per, 1)
    done[0] = True
    one.release()


def thread_stream():
    """Measures a stream from one thread process to another, to compare a communication with the
    lock pair.
    """
    from weft.threads import Channel, poison, process, run

    @process
    def writes(o):
        while True:
            o.write(1)

    @process
    def reads(i):
        called(i.read, per, 1)
        poison(i)

    c = Channel("c")
    run(writes(-c), reads(+c))


def stressedalt(channels, writers):
    if way in ("await", "standing"):
        from weft.coroutines import Alternative, Channel, poison, process, run, select

        @process
        async def writes(o):
            while True:
                await o.write(1)

        @process
        async def reads(ends):
            if way == "standing":
                with Alternative(*ends) as alt:
                    await measured(alt.select, per, 1)
            else:

                async def choose():
                    await select(*ends)

                await measured(choose, per, 1)
            for end in ends:
                poison(end)

        cs = [Channel("c%d" % i) for i in range(channels)]
        ps = [writes(c.writer()) for c in cs for _ in range(writers)]
        run(reads([c.reader() for c in cs]), *ps)
        return
    import asyncio

    import baselines

    Channel = baselines.channels(
        baselines.Yielding if way == "yielding" else baselines.Rescheduling
    )

    async def writes(c):
        while True:
            await c.write(1)

    async def reads(cs):
        async def choose():
            await Channel.select(*cs)

        await measured(choose, per, 1)
        for c in cs:
            c.poison()

    async def main():
        cs = [Channel() for _ in range(channels)]
        await baselines.parallel(reads(cs), *[writes(c) for c in cs for _ in range(writers)])

    asyncio.run(main())


def waiting_yield(number):
    from weft.coroutines import Channel, poison, process, run

    @process
    def waits(i):
        yield i.read()

    @process
    def echo(i, o):
        while True:
            v = yield i.read()
            yield o.write(v)

    @process
    def asks(i, o, never):
        for k in range(samples + 1):
            gc.collect()
            t = ticks()
            for _ in range(per):
                yield o.write(1)
                yield i.read()
            if k:
                figures.append(ticks_diff(ticks(), t) * 1000 / (per * 2))
        poison(i, o)
        never.poison()

    a, b, never = Channel("a"), Channel("b"), Channel("never")
    ps = [waits(never.reader()) for _ in range(number)]
    run(asks(+a, -b, never.writer()), echo(+b, -a), *ps)


def waiting(number):
    """Measures two processes that send a value back and forth while `number` other processes
    wait.
    """
    if way == "yield":
        waiting_yield(number)
        return
    if way == "await":
        from weft.coroutines import Channel, poison, process, run

        @process
        async def waits(i):
            await i.read()

        @process
        async def echo(i, o):
            while True:
                await o.write(await i.read())

        @process
        async def asks(i, o, never):
            # waiting() and parked() measure the time themselves instead of calling measured().
            # Before the allocator could make the coroutine of measured(), it would pass over the
            # memory of all waiting processes.
            for k in range(samples + 1):
                gc.collect()
                t = ticks()
                for _ in range(per):
                    await o.write(1)
                    await i.read()
                if k:
                    figures.append(ticks_diff(ticks(), t) * 1000 / (per * 2))
            poison(i, o)
            never.poison()

        a, b, never = Channel("a"), Channel("b"), Channel("never")
        ps = [waits(never.reader()) for _ in range(number)]
        run(asks(+a, -b, never.writer()), echo(+b, -a), *ps)
        return
    import asyncio

    import baselines

    Future = baselines.Yielding if way == "yielding" else baselines.Rescheduling
    Channel = baselines.channels(Future)
    future = Future()

    async def waits():
        await future

    async def echo(i, o):
        while True:
            await o.write(await i.read())

    async def asks(i, o):
        for k in range(samples + 1):
            gc.collect()
            t = ticks()
            for _ in range(per):
                await o.write(1)
                await i.read()
            if k:
                figures.append(ticks_diff(ticks(), t) * 1000 / (per * 2))
        i.poison()
        o.poison()
        future.set_result(None)

    async def main():
        a, b = Channel(), Channel()
        await baselines.parallel(asks(a, b), echo(b, a), *[waits() for _ in range(number)])

    asyncio.run(main())


if bench in (
    "commstime",
    "parallel",
):  # the delta is sequential, or parallel (await and the futures)
    if way in ("await", "yield"):
        commstime_weft()
    elif way == "apycsp":
        commstime_apycsp()
    elif way in ("threads", "cfuture"):
        commstime_threads()
    else:
        commstime_futures()
elif bench == "pair":
    lock_pair()
elif bench == "stream":
    thread_stream()
elif bench[:11] == "stressedalt":
    n, m = bench[11:].split("x")
    stressedalt(int(n), int(m))
elif bench[:7] == "waiting":
    waiting(int(bench[7:]))
print("ns", " ".join("%.1f" % f for f in figures))

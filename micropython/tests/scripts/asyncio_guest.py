# Processes inside asyncio, and tasks at channels (rules 6.6, 13).
import asyncio

from weft.coroutines import (
    Cancelled,
    Channel,
    Parallel,
    Retired,
    process,
    run,
    run_async,
    select,
    sleep,
)


@process
async def numbers(out, n):
    for i in range(n):
        await asyncio.sleep_ms(1)  # an operation of asyncio's in a process
        await out.write(i)


@process
async def total(source):
    n = 0
    async for v in source:
        n += v
    return n


@process
async def sleeps():
    await sleep(0.005)
    return "slept"


async def in_a_task():
    c = Channel("c")
    print("run_async", await run_async(numbers(c.writer(), 5), total(c.reader()), sleeps()))


async def tasks_at_channels():
    c = Channel("c")
    w, r = c.writer(), c.reader()

    async def writes():
        for i in range(5):
            await w.write(i)
        w.retire()

    t = asyncio.create_task(writes())
    got = []
    async for v in r:
        got.append(v)
    await t
    print("tasks", got)


async def a_task_and_a_process():
    c, d = Channel("c"), Channel("d")
    w, r = c.writer(), d.reader()

    @process
    async def doubles(source, out):
        async for v in source:
            await out.write(2 * v)

    async def network():
        return await Parallel(doubles(c.reader(), d.writer()))

    t = asyncio.create_task(network())
    got = []
    for i in range(4):
        await w.write(i)
        got.append(await r.read())
    w.retire()
    print("mixed", got, await t)


async def a_cancelled_reader_loses_nothing():
    c = Channel("c")
    w, r = c.writer(), c.reader()
    seen = []

    async def reads():
        while True:
            seen.append(await r.read())

    async def writes():
        for i in range(40):
            await w.write(i)
        w.retire()

    writer = asyncio.create_task(writes())
    for i in range(30):
        t = asyncio.create_task(reads())
        for _ in range(i % 4):
            await asyncio.sleep_ms(0)
        t.cancel()
        try:
            await t
        except asyncio.CancelledError:
            pass
        except Retired:
            break
    try:
        await reads()
    except Retired:
        pass
    await writer
    print("cancelled reader", seen == list(range(40)) or seen)


async def a_cancelled_writer_loses_nothing():
    c = Channel("c")
    w, r = c.writer(), c.reader()
    sent, seen = [], []

    async def writes():
        while True:
            await w.write(len(sent))
            sent.append(1)

    async def reads():
        async for v in r:
            seen.append(v)

    reader = asyncio.create_task(reads())
    for i in range(30):
        t = asyncio.create_task(writes())
        for _ in range(i % 5):
            await asyncio.sleep_ms(0)
        t.cancel()
        try:
            await t
        except asyncio.CancelledError:
            pass
    w.retire()
    await reader
    print("cancelled writer", seen == list(range(len(sent))) or (seen, len(sent)))


async def cancelled_runs():
    c = Channel("c")
    kept = c.writer()
    log = []

    @process
    async def waits(r):
        try:
            await r.read()
        except Cancelled:
            log.append("weft")
            raise

    @process
    async def waits_for_asyncio():
        try:
            await asyncio.sleep_ms(100000)
        except Cancelled:
            log.append("asyncio")
            raise

    async def network():
        await run_async(waits(c.reader()), waits_for_asyncio())

    t = asyncio.create_task(network())
    await asyncio.sleep_ms(5)
    t.cancel()
    try:
        await t
    except asyncio.CancelledError:
        print("cancelled", sorted(log), kept.closed)


async def an_event_and_a_flag():
    e = asyncio.Event()
    flag = asyncio.ThreadSafeFlag()

    @process
    async def waits():
        await e.wait()
        await flag.wait()
        return "set"

    async def sets():
        await asyncio.sleep_ms(2)
        e.set()
        await asyncio.sleep_ms(2)
        flag.set()

    t = asyncio.create_task(sets())
    print("event", await run_async(waits()))
    await t


async def a_task_selects():
    c, d = Channel("c"), Channel("d")
    w, r, s = c.writer(), c.reader(), d.reader()
    kept = d.writer()

    async def writes():
        await w.write("x")

    t = asyncio.create_task(writes())
    print("select", await select(r, s))
    from weft.coroutines import after

    print("timeout", await select(r, s, after(0.002)))
    await t
    assert not kept.closed


async def failures():
    @process
    async def fails():
        await asyncio.sleep_ms(1)
        raise ValueError("as meant")

    try:
        await run_async(fails(), sleeps())
    except ValueError as e:
        print("failed", e)


async def main():
    await in_a_task()
    await tasks_at_channels()
    await a_task_and_a_process()
    await a_cancelled_reader_loses_nothing()
    await a_cancelled_writer_loses_nothing()
    await cancelled_runs()
    await an_event_and_a_flag()
    await a_task_selects()
    await failures()


asyncio.run(main())
c = Channel("c")
print("host", run(numbers(c.writer(), 3), total(c.reader()), host="asyncio"))

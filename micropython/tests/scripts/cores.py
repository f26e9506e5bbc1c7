# Two schedulers of coroutines, one on each core (in this script the cores are threads), joined by
# lines. Core 1 runs generators and allocates nothing.
import gc

from weft import _beside, _time, cores
from weft.cores import core1
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Deadlock,
    Group,
    NoResult,
    NoRoom,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    process,
    run,
    select,
    sleep,
)

MARK = [None] * 4  # made beforehand: core 1 can store into it, but not append


def hows(results):
    """Returns the results; a process without a result is represented by how it ended (7.1)."""
    if isinstance(results, NoResult):
        return "<%s>" % results.how
    return [hows(x) for x in results] if isinstance(results, list) else results


@core1.process
def numbers(out, n):
    for i in range(n):
        yield out.write(i)
    return n


@core1.process
def means(source, out):
    while True:
        a = yield source.read()
        b = yield source
        yield out.write((a + b) // 2)


@process
async def total(source):
    n = 0
    async for v in source:
        n += v
    return n


def told(kind, *processes):
    try:
        return "not raised: %s" % (run(*processes),)
    except kind as e:
        return "%s: %s" % (type(e).__name__, e)


# A pipeline of three processes, two of them on core 1: the pipeline ends on its own (rules 3.1,
# 3.2), and its results come back (7.1).
for _ in range(3):
    raw, line = core1.Channel("raw"), core1.to_main(4, "means")
    print(hows(run(total(+line), core1.run(numbers(-raw, 500), means(+raw, -line)))))


# Values go to core 1 and back, in order (1.3).
@core1.process
def squares(source, out):
    while True:
        v = yield source.read()
        yield out.write(v * v)


@process
async def feed(out, n):
    for i in range(n):
        await out.write(i)


down, up = core1.from_main(2, "down"), core1.to_main(3, "up")
print(hows(run(feed(-down, 100), total(+up), core1.run(squares(+down, -up)))))


# Values that core 1 wrote before it ended can be read later, even if they are more than the line
# has room for (1.3, 3.1).
@process
async def late():
    line = core1.to_main(4, "late")
    source = +line
    done = await Parallel(core1.run(numbers(-line, 8)))
    return done, await all_of(source)


async def all_of(source):
    got = []
    async for v in source:
        got.append(v)
    return got


print(hows(run(late())))


# No memory is allocated: core 1 would raise MemoryError, and the heap keeps its size over many
# communications.
@core1.process
def count(source, out, n):
    for _ in range(n):
        v = yield source.read()
    yield out.write(v)


@process
def wait(source):
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    yield source.read()
    MARK[0] = gc.mem_alloc() - before
    gc.enable()


def spent(n):
    raw, line = core1.Channel("raw"), core1.to_main(4, "last")
    run(wait(+line), core1.run(numbers(-raw, n), count(+raw, -line, n)))
    return MARK[0]


spent(10)
extra = spent(100000) - spent(10)
print("a hundredth of a byte a communication, at most:", extra < 1000 or extra)


# Poison crosses a line, both ways (4.1, 4.2); values in its slots are dropped.
@core1.process
def poisons(out):
    yield out.write(1)
    out.poison(3)


@process
async def meets(source):
    try:
        while True:
            await source.read()
    except Poisoned as e:
        return "poisoned with %d" % e.strength


line = core1.to_main(4, "line")
print(hows(run(meets(+line), core1.run(poisons(-line)))))


@core1.process
def writes_on(out):
    i = 0
    try:
        while True:
            yield out.write(i & 255)
            i += 1
    except Poisoned as e:
        MARK[1] = e
    return i > 4


@process
async def reads_five(source, poison):
    for _ in range(5):
        await source.read()
    if poison:
        source.poison()


line = core1.to_main(4, "line")
print(hows(run(reads_five(+line, True), core1.run(writes_on(-line)))), MARK[1])

# When the reader has ended, the writer on core 1 gets the error, and ends (3.2). The same happens
# to a writer on core 0 when core 1's reader has ended.
MARK[1] = None
line = core1.to_main(4, "line")
print(hows(run(reads_five(+line, False), core1.run(writes_on(-line)))), MARK[1])


@core1.process
def takes(source, n):
    for _ in range(n):
        v = yield source.read()
    return v


@process
async def until_retired(out):
    i = 0
    try:
        while True:
            await out.write(i)
            i += 1
    except Retired:
        return i >= 3


line = core1.from_main(2, "line")
print(hows(run(until_retired(-line), core1.run(takes(+line, 3)))))


# A process that dies is reported as dead (4.5).
@core1.process
def dies(out):
    yield out.write(1)
    out.die()


@process
async def widow(source):
    try:
        while True:
            await source.read()
    except PeerDied as e:
        return str(e)


line = core1.to_main(4, "line")
print(hows(run(widow(+line), core1.run(dies(-line)))))


# A line is among the guards, both ways (5.1); core 1 sleeps (8.5).
@core1.process
def slow(go, out):
    yield go.read()
    yield core1.sleep_ms(5)
    yield out.write(7)
    v = yield go.read()
    return v


@process
async def chooses(source, out):
    first = await select(source, after(0.001))
    await out.write(1)
    second = await select(source, after(1000))
    third = await select(Output(out, 5), after(1000))
    return first, second, third


up, down = core1.to_main(1, "up"), core1.from_main(1, "down")
print(hows(run(chooses(+up, -down), core1.run(slow(+down, -up)))))


# The first failure cancels the other processes, and is raised on core 0 (7.2).
@core1.process
def fails(source):
    yield source.read()
    raise ValueError


raw = core1.Channel("raw")
print(told(ValueError, core1.run(numbers(-raw, 500), fails(+raw))))


@core1.process
def allocates(source):
    yield source.read()
    MARK[2] = [1, 2, 3]


raw = core1.Channel("raw")
print(told(NoRoom, core1.run(numbers(-raw, 500), allocates(+raw))), MARK[2])


@core1.process
async def awaits(source):
    await source.read()


raw = core1.Channel("raw")
print(told(BadUse, core1.run(numbers(-raw, 500), awaits(+raw))))


@core1.process
def over(source):
    for v in source:
        yield


raw = core1.Channel("raw")
print(told(BadUse, core1.run(numbers(-raw, 500), over(+raw))))

# No process on core 1 can go on (10.1).
a, b = core1.Channel("a"), core1.Channel("b")
print(told(Deadlock, core1.run(means(+a, -b), means(+b, -a))))


# No process can go on, on either core: each side waits for the other (10.1). The report contains
# the knot (10.2).
@process
async def answers(source, out):
    while True:
        await out.write(await source.read())


@core1.process
def asks(out, source):
    v = yield source.read()
    yield out.write(v)


down, up = core1.from_main(1, "down"), core1.to_main(1, "up")
try:
    run(answers(+up, -down), core1.run(asks(-up, +down), takes(+core1.from_main(1, "none"), 1)))
except Deadlock as e:
    print("Deadlock: %s (%s)" % (e, ", ".join(e.knot)))


# Core 0's reader waits for another channel, the line is full, and core 1's writer waits.
@process
async def elsewhere(source, other):
    await other.read()
    await source.read()


c, up = Channel("c"), core1.to_main(1, "up")
kept = -c
print(told(Deadlock, elsewhere(+up, +c), core1.run(writes_on(-up))))


# With a sleeper on either core there is no deadlock.
@core1.process
def sleeps_once(out):
    yield core1.sleep_ms(5)
    yield out.write(1)


@process
async def rests(out):
    await sleep(0.005)
    await out.write(2)


down, up = core1.from_main(1, "down"), core1.to_main(1, "up")
print(hows(run(total(+up), rests(-down), core1.run(sleeps_once(-up), takes(+down, 1)))))


# A network is cancelled wherever its processes are (6.1, 7.6): in a read, a write, a sleep.
@core1.process
def sleeps():
    try:
        yield core1.sleep_ms(1000000)
    except Cancelled:
        MARK[3] = True
        raise


@process
async def impatient():
    a, up = core1.Channel("a"), core1.to_main(1, "up")
    source = +up
    async with Group() as g:
        p = g.start(core1.run(numbers(-up, 10), numbers(-a, 1), takes(+a, 2), sleeps()))
        await source.read()
        p.cancel()
    rest = await all_of(source)
    return p.done, MARK[3], rest == list(range(1, 1 + len(rest)))


print(hows(run(impatient())))

# Errors: a second network, a port that has no thread left, processes and ends on the wrong core.
line, more = core1.to_main(1, "line"), core1.Channel("more")
print(told(BadUse, core1.run(numbers(-line, 3)), core1.run(), total(+line)))

start, _beside.LIMIT, _beside.TRIES = _beside.start_new_thread, 1, 10


def in_use(body, args):
    raise OSError("core1 in use")


_beside.start_new_thread = in_use
line = core1.to_main(1, "line")
print(told(NoRoom, total(+line), core1.run(numbers(-line, 3))))
_beside.start_new_thread, _beside.LIMIT = start, 1 << 30

c = Channel("core 0's")
print(told(BadUse, core1.run(numbers(-c, 3))))
raw = core1.Channel("raw")
w = raw.writer()
print(told(BadUse, core1.run(takes(+raw, 1))))
try:
    run(numbers(-core1.Channel(), 1))
except BadUse as e:
    print("BadUse:", str(e)[:23])
print(told(BadUse, core1.run(feed(-c, 3))))


# Ends of channels cannot be sent between cores.
@process
async def sends(out, what):
    await out.write(what)


down = core1.from_main(1, "down")
print(told(BadUse, sends(-down, +c), core1.run(takes(+down, 1))))


@core1.process
def sends1(out, what):
    yield out.write(what)


raw, line = core1.Channel("raw"), core1.to_main(1, "line")
print(told(BadUse, total(+line), core1.run(sends1(-line, +raw), numbers(-raw, 0))))
for wrong in (0, "x"):
    try:
        core1.to_main(wrong)
    except BadUse as e:
        print("BadUse:", e)


# Core 1 sleeps while it waits for core 0: in that time it checks for work only a few times.
woken = cores._wake


def counted():
    MARK[0] += 1
    woken()


@process
async def pauses(out):
    await out.write(1)
    await sleep(0.01)
    looks = MARK[0]
    await sleep(0.1)
    looks = MARK[0] - looks
    await out.write(2)
    return looks


MARK[0], cores._wake = 0, counted
line = core1.from_main(1, "line")
looks, v = run(pauses(-line), core1.run(takes(+line, 2)))
cores._wake = woken
print(v, looks < 5 or looks)


# A run that is left by an exception, such as Ctrl-C, leaves no process on core 1.
def interrupted():
    raise KeyboardInterrupt


idle, _time.idle = _time.idle, interrupted
MARK[3], line = None, core1.to_main(4, "line")
print(told(KeyboardInterrupt, total(+line), core1.run(sleeps(), numbers(-line, 3))), MARK[3])
_time.idle = idle
line = core1.to_main(4, "line")
print(hows(run(total(+line), core1.run(numbers(-line, 5)))))

# The next network runs in asyncio's loop.
raw, line = core1.Channel("raw"), core1.to_main(4, "means")
print(hows(run(total(+line), core1.run(numbers(-raw, 100), means(+raw, -line)), host="asyncio")))

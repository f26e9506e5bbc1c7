# The watchdog names processes that compute without an operation, and no others. The processes
# themselves make the ticks, by micropython.schedule, which runs them between two bytecodes, as a
# timer's soft callback does.
import micropython
from weft.coroutines import BadUse, Channel, Group, process, run, sleep, yield_
from weft.watchdog import Watchdog

started = []


def start(period, tick):
    started.append(period)
    return None


found = []
dog = Watchdog(50, tell=found.append, start=start)
print("period", started)


def tick():
    micropython.schedule(dog.tick, None)
    for _ in range(20):
        pass


@process
async def hog(n):
    await yield_()
    for _ in range(n):
        tick()
    await yield_()


@process
async def polite(n):
    for _ in range(n):
        tick()
        await yield_()


@process
async def ping(out, into, n):
    for i in range(n):
        tick()
        await out.write(i)
        await into


@process
async def pong(into, out):
    async for v in into:
        tick()
        await out.write(v)


@process
async def network(*processes):
    async with Group() as group:
        for p in processes:
            group.start(p)


def hogs(*processes):
    dog.hogs.clear()
    found.clear()
    run(network(*processes).named("net"))
    return dog.hogs, found


print("two ticks and it is one", hogs(hog(2)))
print("five", hogs(hog(5), polite(3)))
print("polite", hogs(polite(10), polite(10)))
c, d = Channel("c"), Channel("d")
print("a pair", hogs(ping(-c, +d, 10), pong(+c, -d)))


@process
async def idles():
    await sleep(0.01)


print("one tick in ordinary code", dog.tick(None), hogs(idles()))
print("again", hogs(hog(3)))
try:
    Watchdog(0, start=start)
except BadUse as e:
    print(e)
try:
    Watchdog(50)
    print("machine.Timer is here")
except BadUse as e:
    print(e)
dog.stop()

# In a plain run there is no loop that serves asyncio's awaitables: a process that awaits such an
# object gets an error, and can go on. An earlier version let the C code of asyncio's queues write
# through None.
import asyncio

from weft.coroutines import Channel, Parallel, process, run

event = asyncio.Event()
lock = asyncio.Lock()


async def other():
    pass


@process
async def awaits(how):
    for _ in range(2):
        try:
            await how()
        except Exception as e:
            print(type(e).__name__, e)
    return "went on"


@process
async def beside(how):
    return await Parallel(awaits(how), awaits(how))


async def held():
    await lock.acquire()
    print(run(awaits(lambda: asyncio.sleep(0.001)), awaits(lock.acquire)))
    lock.release()
    await asyncio.sleep(0)  # the event loop goes on


for how in (lambda: asyncio.sleep(0.001), event.wait):
    print(run(beside(how)))
asyncio.run(held())
event.set()  # wakes the tasks that are still in its queue
asyncio.run(other())
print(run(awaits(lambda: asyncio.sleep(0.001)), host="asyncio"))


@process
def suspends():
    yield


@process
def yields():
    yield 12


for made in (suspends, yields):
    try:
        run(made())
    except Exception as e:
        print(type(e).__name__, e)


@process
async def writes(out):
    await out.write(1)


@process
async def parent(out):
    await writes(out)


@process
async def reads(source):
    return await source


c = Channel("c")
try:
    run(parent(-c), reads(+c))
except Exception as e:
    print(type(e).__name__, e)

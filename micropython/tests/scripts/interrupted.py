# Ctrl-C while all processes wait: each is cancelled, cleans up and releases its ends. No process
# stays in a channel's waiting queue, where a later writer would meet it.
from weft import _time
from weft.coroutines import Cancelled, Channel, Parallel, Retired, process, run, select, sleep_ms

wait = _time.wait


def interrupted(dt):
    _time.wait = wait
    raise KeyboardInterrupt


@process
async def ctrl_c():
    _time.wait = interrupted  # called when all processes sleep
    await sleep_ms(100000)


@process
async def reads(name, r, w):
    try:
        print(name, "got", await r.read())
    except Cancelled:
        print(name, "was cancelled")
        raise


@process
async def chooses(name, r, s, w):
    try:
        print(name, "got", await select(r, s))
    except Cancelled:
        print(name, "was cancelled")
        raise


@process
async def both(r, s, w):
    await Parallel(reads("within", r, w), reads("beside", s, w))


@process
async def writes(w):
    await w.write(7)
    print("written")


@process
async def takes(r):
    print("read", await r.read())


@process
async def goes_on(r, w):
    while True:
        try:
            await r.read()
        except Cancelled:
            print("goes on")


@process
async def clears_up(r, w):
    try:
        await r.read()
    finally:
        await sleep_ms(1)
        print("cleared up")


def tried(*make):
    cs = [Channel() for _ in range(3)]
    ends = [(c.reader(), c.writer()) for c in cs]
    held = Channel()
    still = held.reader()
    try:
        run(ctrl_c(), make[0](*[x.reader() for x in cs[: make[1]]], held.writer()))
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
    for r, w in ends[: make[1]]:
        run(takes(r), writes(w))
    try:
        run(takes(still))
    except Retired:
        print("its writer has gone")


tried(lambda r, w: reads("one", r, w), 1)
tried(lambda r, s, w: chooses("two", r, s, w), 2)
tried(both, 2)
tried(goes_on, 1)  # nothing can go on: the process is cancelled once more, and then dropped
tried(clears_up, 1)

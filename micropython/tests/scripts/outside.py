# Events from outside a run: rings in one run after another, io calls, waits of several days.
from weft import _beside, _io, _time
from weft.coroutines import (
    Cancelled,
    Channel,
    Deadlock,
    Group,
    NoRoom,
    Retired,
    io,
    process,
    run,
    sleep,
    yield_,
)
from weft.isr import Ring


@process
async def one_of(ring):
    r = ring.reader()
    ring.put(ring.overflows)
    return await r


# A ring serves one run after another; a later run does not read values that an earlier run has left
# in the ring.
ring = Ring(4)
print(run(one_of(ring)), run(one_of(ring)))


# A ring that is closed loses no value that was put, however slow its reader is.
@process
async def closes(ring):
    r = ring.reader()
    for half in (0, 4):
        for i in range(half, half + 4):
            ring.put(i)
        # One round of the scheduler: values in the slots go to the channel, if there is room.
        await yield_()
    ring.close()
    ring.close()
    got = []
    try:
        while True:
            got.append(await r)
    except Retired as e:
        print(got, e)


run(closes(Ring(4, "slow")))


# Rules 6.3, 7.9: a call that ends while its caller is cancelled delivers its value.
@process
async def calls(log):
    try:
        log.append(await io(lambda: 7)())
        await yield_()
        log.append("not cancelled")
    except Cancelled:
        log.append("cancelled")
        raise


@process
async def cancels_as_it_ends(log):
    async with Group() as g:
        p = g.start(calls(log))
        await yield_()
        while not p.k.at.over:  # the call's own thread sets `over`
            pass
        p.cancel()


log = []
run(cancels_as_it_ends(log))
print(log)


# If the port has no thread left, Weft tries once more. If the port still has none, an error reports
# this.
def in_use(fn, args):
    raise OSError("core1 in use")


start, _io.start_new_thread = _io.start_new_thread, in_use
print(run(calls([])))  # on rp2 core 1 is free a moment later
_beside.start_new_thread = in_use
try:
    run(calls([]))
except NoRoom as e:
    print(e)
_io.start_new_thread = _beside.start_new_thread = start


# Rule 10.3: a ring counts as outside while a process waits at it, and not afterwards.
@process
async def takes(r, ring, n):
    r2 = ring.reader()
    for _ in range(n):
        print("came", await r2)
    await r


def deadlock_of(n, clock="steady"):
    c, ring = Channel("c"), Ring(4)
    kept = c.writer()
    for i in range(n):
        ring.put(i)
    try:
        run(takes(c.reader(), ring, n), clock=clock)
    except Deadlock as e:
        print(str(e).split("\n")[1])
    del kept


deadlock_of(0)
deadlock_of(2)


@process
async def sleeps(ring):
    r = ring.reader()
    await sleep(1000)
    return r is not None


print(run(sleeps(Ring(4)), clock="virtual"))  # an empty ring does not stop a virtual clock (8.6)


class Poller:
    """Stands for poll(), which would wait for days."""

    def __init__(self, then):
        self.then = then
        self.asked = []

    def register(self, *what):
        pass

    unregister = register

    def poll(self, ms):
        self.asked.append(ms)
        self.then()
        return ()


# A board that waits for days still sees each half turn of its clock's milliseconds (2**29).
ring = Ring(4)
poller, _time._poller = _time._poller, Poller(lambda: ring.put(9))


@process
async def waits():
    return await ring.reader()


print(run(waits()), all(0 <= ms <= 1 << 28 for ms in _time._poller.asked))
_time._poller = poller

# Simulates rp2, which has one thread besides the main program, on a port with more threads: two
# processes can run at a time, and a third is refused.
from weft import _beside
from weft.threads import Channel, NoRoom, Parallel, Spawn, process, run

_beside.LIMIT = 1
_beside.TRIES = 10
start = _beside.start_new_thread
ran = []


@process
def put(out):
    out.write(7)


@process
def get(source):
    return source.read()


@process
def idle():
    ran.append(1)


@process
def inner():
    d = Channel("d")
    try:
        # The first process waits for the second, so its thread is not free when the second begins.
        Parallel(put(-d), get(+d), idle())
    except NoRoom:
        return "inside"


@process
def spawns():
    Spawn(idle())


def two():
    c = Channel("c")
    return run(put(-c), get(+c))


def refused(*processes):
    try:
        run(*processes)
    except NoRoom as e:
        return e


print("two:", two())
c = Channel("c")
print("three:", refused(put(-c), get(+c), idle()))
print("the third ran:", len(ran))
print("two again:", two())
print("three inside:", run(inner()), len(ran) <= 1)

# The thread becomes free before the end of the network is reported, so that the next network can
# use it. An earlier version sometimes failed in this test.
print("2000 networks:", all(two() == [None, 7] for _ in range(2000)))

# For a moment after the thread on core 1 has ended, the port might report that core 1 is in use.
busy = [3]


def in_use(body, args):
    if busy[0]:
        busy[0] -= 1
        raise OSError("core1 in use")
    return start(body, args)


_beside.start_new_thread = in_use
print("after a moment:", two(), busy)
busy[0] = 1000
c = Channel("c")
print("for good:", refused(put(-c), get(+c)))
print("tries:", 1000 - busy[0])
print("spawned:", refused(spawns()))
_beside.start_new_thread = start
print("and after it:", two())

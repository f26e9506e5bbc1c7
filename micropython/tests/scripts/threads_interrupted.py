# Ctrl-C in threads is raised in the main program's thread. The first one cancels all processes and
# is raised when they have ended (rule 6.7, as far as MicroPython goes). Then the lock is free, and
# no process is left in a channel's waiting queue. A second Ctrl-C ends the run immediately.
from weft import _machine, threads
from weft.threads import Cancelled, Channel, process, run, sleep

pause, here = threads._pause, threads._here
landed = []


def lands(dt):
    """Raises Ctrl-C while the main program's thread waits, once a process waits at c."""
    if threads.get_ident() == main and len(landed) < wanted and c.stats().waiting_readers:
        landed.append(dt)
        raise KeyboardInterrupt
    pause(dt)


class Lands:
    """Raises Ctrl-C in the middle of an operation, under the lock."""

    def get(self, me):
        if me == main and not landed:
            landed.append(me)
            raise KeyboardInterrupt
        return here.get(me)


main, wanted = threads.get_ident(), 0
told = Channel("told", capacity=100)
lines = told.reader()


@process
def reads(name, r, out):
    try:
        r.read()
    except Cancelled:
        out.write(name + " was cancelled")
        raise


@process
def reads_all_the_same(r, out):
    for _ in range(3):
        try:
            r.read()
        except Cancelled:
            out.write("goes on")


@process
def sleeps(seconds, out):
    sleep(seconds)


@process
def writes(w, v):
    w.write(v)


@process
def takes(r):
    return r.read()


def tried(what, n, *ps):
    global wanted
    wanted = n
    del landed[:]
    _machine.pause = threads._pause = lands
    try:
        run(*ps)
    except KeyboardInterrupt:
        print(what, "- KeyboardInterrupt", len(landed))
    finally:
        _machine.pause, threads._pause, threads._here = pause, pause, here
    print("the lock is free:", not _machine.lock.locked())


def print_reports():
    @process
    def all_of_it(r):
        return r.read()

    while told.stats().buffered:
        print(run(all_of_it(+told)))


c, d = Channel("c"), Channel("d")
ends = c.reader(), c.writer(), d.reader(), d.writer(), told.writer()
tried("who leads", 1, reads("one", +c, -told), sleeps(1000, -told))
print_reports()
tried("the run waits", 1, reads("two", +c, -told), sleeps(1000, -told), writes(-told, "three ends"))
print_reports()
threads._here = Lands()
tried("a read", 0, takes(+d), takes(+c))
print_reports()
print(run(takes(+c), writes(-c, 5))[0], run(takes(+d), writes(-d, 6))[0])
try:
    run(writes(-Channel("nobody"), 7), takes(+Channel("nothing")))
except threads.Deadlock as e:
    print(sorted(e.knot)[:1])
tried("one goes on", 2, reads_all_the_same(+c, -told), writes(-told, "five ends"))
print_reports()

# weft.threads: a thread wakes a process after it has released the lock, because the woken process
# would only wait for the lock. A process that is woken without a reason waits again. A process
# that two threads wake at the same moment wakes once.
from weft import _machine
from weft.threads import Channel, current_process, process, run, yield_

held = []
whose = _machine.Thread.poke


def poke(self):
    held.append(_machine.lock.locked())
    whose(self)


@process
def writes(out, n):
    _machine.Thread.poke = poke
    for i in range(n):
        out.write(i)
    _machine.Thread.poke = whose


@process
def reads(source, n):
    return [source.read() for _ in range(n)]


c = Channel("c")
print(run(writes(-c, 40), reads(+c, 40))[1] == list(range(40)))
print(len(held) > 0, True in held)


@process
def pesters(out, other):
    """Wakes the other process without a reason, before it gives that process a value."""
    for _ in range(20):
        while other[0] is None or other[0].k.at is None:  # waits until the other process waits
            yield_()
        other[0].poke()
        yield_()
    out.write("a value")


@process
def waits(source, me):
    me[0] = current_process()
    return source.read()


c, me = Channel("c"), [None]
print(run(pesters(-c, me), waits(+c, me))[1])


class Twice:
    """Simulates a lock that another thread has released since this thread checked it."""

    def locked(self):
        return True

    def release(self):
        raise RuntimeError


@process
def alone():
    pass


p = alone()
p.sem = Twice()
p.poke()
print("poked")

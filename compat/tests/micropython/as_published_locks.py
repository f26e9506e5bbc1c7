# Programs like PyCSP-locksharing's own, with the imports as published.
# ruff: noqa: E402, I001
import weft.compat.as_published as published

published.pycsp()
from pycsp import CSP, Alternative, Channel, Parallel, PoisonException, Process, Sequence, Skip
from pycsp import Spawn, Timer, process
from pycsp.plugNplay import AltDelta2, SkipProcess, poison_chans
from pycsp.utils import avg


@process
def writes(cout, n):
    return {cout(i) for i in range(n)}


@process
def drains(cin):
    return list(cin)


@process
def timed(cin):
    timer = Timer(0.001)
    guard, value = Alternative(cin, timer, Timer(60)).select()
    return guard is timer, value


@process
def spawns(ch):
    child = Spawn(writes(ch.write, 2))
    got = [ch.read(), ch.read()]
    child.join()
    return got, child.retval


a, b, c = Channel("a"), Channel("b"), Channel("c")
net = Parallel(
    Sequence(writes(a.write, 3), poison_chans(a)),
    Sequence(AltDelta2(a.read, b.write, c.write), poison_chans(b, c)),
    Parallel(drains(b.read), drains(c.read)),
)
print(net.retval, net.run() is net, net.retval)
print(a.verify(), a.poisoned, a.queue_len(), a.read._chan is a, repr(b.read))
print(CSP(drains(a.read)), CSP(SkipProcess(), SkipProcess()))

# Outside a network a process object can be run, a choice can be made, and processes can be spawned.
print(Sequence(timed(Channel("idle").read)).run().retval)
skip = Skip()
print(Alternative(Channel("idle").read, skip).select()[0] is skip)
print(CSP(spawns(Channel("s"))))
print(isinstance(net, Process), isinstance(net.processes[0].processes[0], Process))

# Mistakes are reported.
once = SkipProcess()
Parallel(once).run()
for wrong in (lambda: Parallel(once).run(), lambda: Parallel(3), once.start, SkipProcess().join):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error)
poisoned = Channel("p")
poisoned.poison()
try:
    Parallel(writes(poisoned.write, 1), check_poison=True).run()
except PoisonException:
    print("poisoned")
print(avg([1, 2, 3]))

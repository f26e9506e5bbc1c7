# PyCSP-locksharing's programs, of which only the imports were changed.
# ruff: noqa: F401, F811
from weft.compat.pycsp_locks import *
from weft.compat.pycsp_locks.plugNplay import Mux2, ParDelta2, Prefix, SeqDelta2, Successor


@process
def consumer(cin, n):
    for _ in range(n):
        value = cin()
    cin.poison()
    return value


def commstime(Delta2):
    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    return (
        Parallel(
            Prefix(c.read, a.write, prefixItem=0),
            Delta2(a.read, b.write, d.write),
            Successor(b.read, c.write),
            consumer(d.read, 100),
        )
        .run()
        .retval[3]
    )


print(commstime(SeqDelta2), commstime(ParDelta2))


@process
def writer(cout, n):
    for i in range(n):
        cout(i)


@process(verbose_poison=True)
def stressed(channels, n):
    alt = Alternative(*[ch.read for ch in channels])
    total = 0
    for _ in range(n):
        guard, value = alt.select()
        total += 1
    with alt as (guard, value):
        total += 1
    for ch in channels:
        poison_channel(ch)
    return total


chans = [Channel() for _ in range(5)]
writers = [writer(ch.write, 1000) for ch in chans for _ in range(2)]
print(CSP(stressed(chans, 19), writers)[0])


@process
def drains(cin):
    got = []
    for value in cin:
        got.append(value)
    return got


@process
def selects_out(ch, other):
    alt = Alternative(ch.write.alt_pending_write("out"), Timer(5), other.read)
    guard, _ = alt.select()
    ch.poison()
    return type(guard).__name__


ch, other = Channel("ch"), BufferedChannel("other")
print(Parallel(drains(ch.read), selects_out(ch, other)).run().retval)

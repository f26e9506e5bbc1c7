# aPyCSP's programs, of which only the imports were changed.
# ruff: noqa: F401, F811
from weft.compat.apycsp import *
from weft.compat.apycsp.plugNplay import Mux2, ParDelta2, Prefix, SeqDelta2, Successor


@process
async def consumer(cin, n):
    for _ in range(n):
        value = await cin()
    await cin.poison()
    return value


def commstime(Delta2):
    a, b, c, d = Channel("a"), Channel("b"), Channel("c"), Channel("d")
    return run_CSP(
        Prefix(c.read, a.write, prefixItem=0),
        Delta2(a.read, b.write, d.write),
        Successor(b.read, c.write),
        consumer(d.read, 100),
    )[3]


print(commstime(SeqDelta2), commstime(ParDelta2))


@process
async def writer(cout, n):
    for i in range(n):
        await cout(i)


@process(verbose_poison=True)
async def stressed(channels, n):
    alt = Alternative(*[ch.read for ch in channels])
    total = 0
    for _ in range(n):
        guard, value = await alt.select()
        total += 1
    async with alt as (guard, value):
        total += 1
    for ch in channels:
        await poison_channel(ch)
    return total


chans = [Channel() for _ in range(5)]
print(run_CSP(stressed(chans, 19), [writer(ch.write, 1000) for ch in chans for _ in range(2)])[0])


@process
async def drains(cin):
    got = []
    async for value in cin:
        got.append(value)
    return got


@process
async def selects_out(ch, other):
    alt = Alternative(ch.write.alt_pending_write("out"), Timer(5), other.read)
    guard, _ = await alt.select()
    await ch.poison()
    return type(guard).__name__


ch, other = Channel("ch"), BufferedChannel("other")
print(run_CSP(drains(ch.read), selects_out(ch, other)))


@process
async def reads(cin):
    return await cin()


@process
async def poisons(cout):
    await cout.poison()


ch = Channel("ch")
print(run_CSP(reads(ch.read), poisons(ch.write)))  # None, not a NoResult

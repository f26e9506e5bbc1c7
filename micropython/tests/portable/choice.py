"""Prints results of choices, buffers, times, limits, barriers and ended processes."""

import weft
from weft.errors import BadUse, Cancelled, Poisoned, Retired


@weft.process
async def writes(out, values):
    for v in values:
        await out.write(v)


@weft.process
async def merge(one, other):
    got = []
    for _ in range(6):
        which, value = await weft.select(one, weft.Input(other), weft.after(60))
        got.append((which, value))
    return sorted(got)


@weft.process
async def offers(out, n):
    with weft.Alternative(weft.Output(out, n)) as alt:
        return await alt.select()


@weft.process
async def limited(source):
    async with weft.move_on_after(0.001) as t:
        await source.read()
    try:
        async with weft.timeout(0.001):
            await source.read()
    except OSError as e:
        return t.expired, type(e).__name__


@weft.process
async def meets(barrier, n):
    for _ in range(n):
        await barrier.sync()
    return barrier.parties


@weft.process
async def ends(source, kind):
    try:
        await source.read()
    except kind as e:
        return isinstance(e, weft.ChannelEnd)


@weft.process
async def waits_for_ever(source):
    try:
        await source.read()
    except Cancelled:
        raise


@weft.process
async def cancels(victim):
    end = victim.ended()
    victim.cancel()
    return (await end.wait()).how


a, b = weft.Channel("a"), weft.Channel(capacity=2, overflow="block")
print(weft.run(merge(+a, +b), writes(-a, [1, 2, 3]), writes(-b, [4, 5, 6]))[0])
c = weft.Channel("c", capacity=1)
print(weft.run(offers(-c, 7)), c.stats().buffered)
idle = weft.Channel("idle")
writer = idle.writer()
print(weft.run(limited(+idle), clock="virtual"))
both = weft.Barrier(2)
print(weft.run(meets(both, 3), meets(both, 3)))
for kind, ending in ((Retired, weft.retire), (Poisoned, weft.poison)):
    d = weft.Channel("d")
    reader, writer = d.reader(), d.writer()
    ending(writer)
    print(weft.run(ends(reader, kind)))
e = weft.Channel("e")
keeps = e.writer()


@weft.process
async def main():
    victim = weft.watched(waits_for_ever(e.reader()))
    results = await weft.Parallel(victim, cancels(victim))
    return results[1]


print(weft.run(main()))
try:
    weft.Channel(capacity=-1)
except BadUse as e:
    print("bad use")

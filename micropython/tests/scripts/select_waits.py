# Tests a select of plain readers that waits, and everything that can happen to the select meanwhile
# (rules 5.1, 5.3, 5.4, 5.6, 5.8, 5.10, 6.2). In pure Python such a select uses the objects of an
# earlier select again.
from weft import _alt
from weft.coroutines import (
    Alternative,
    BadUse,
    Channel,
    Input,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    move_on_after,
    process,
    run,
    select,
    skip,
    yield_,
)


@process
async def writes(out, *values):
    for v in values:
        await out.write(v)


@process
async def reads(source, n):
    got = []
    for _ in range(n):
        got.append(await source)
    return got


@process
async def chooses(n, *ends):
    got = []
    for _ in range(n):
        try:
            got.append(await select(*ends))
        except (Poisoned, PeerDied, Retired) as e:
            got.append((type(e).__name__, e.guard, e.channel.name))
    return got


@process
async def later(what):
    await yield_()
    await yield_()
    what()


@process
async def writes_late(out, *values):
    for _ in range(4):
        await yield_()
    await Parallel(writes(out, *values))


def pair():
    return Channel("a"), Channel("b")


# A select of the same end twice gives up both of its places in the queue, and a plain read is
# served after that.
c = Channel("twice")
r = +c
print("twice", run(chooses(2, r, r), writes(-c, 1, None, 3, 4), reads(+c, 2)))

# A channel that retires is silent; the select ends when its last channel retires (5.6).
a, b = pair()
wa, wb = -a, -b
silent = [chooses(3, +a, +b), later(wa.retire), writes_late(wb, 5)]
print("retired", run(*silent)[0])
a, b = pair()
wa, wb = -a, -b
both = [chooses(2, +a, Input(+b)), later(wa.retire), later(wb.retire)]
print("all retired", run(*both)[0])


# One channel retires while a select waits; the next select of both takes the other channel's value.
@process
async def again(a, b, wa, wb):
    first = await Parallel(chooses(1, a, b), later(wa.retire), writes_late(wb, 1))
    second = await Parallel(chooses(1, a, b), writes(wb, 2))
    return first[0], second[0]


a, b = pair()
print("again", run(again(+a, +b, -a, -b)))


# An output meets a select that uses the objects of an earlier select, which had lost a guard.
@process
async def offers(*guards):
    try:
        return await select(*guards)
    except ZeroDivisionError:
        return "failed"


a, b = pair()
wa, wb = -a, -b
lost = run(chooses(1, +a, +b), later(wa.retire), writes_late(wb, 5))[0]
a, b = pair()
wb = -b
print("after a loss", lost, run(chooses(1, +a, +b), offers(Output(-a, 6), after(60))))

# A select raises the error of poison and of a dead peer, and the next select serves the other guard
# first (5.4).
a, b = pair()
wa, wb = -a, -b
print("poisoned", run(chooses(3, +a, +b), later(wa.poison), writes(wb, 1))[0])
a, b = pair()
wa, wb = -a, -b
print("died", run(chooses(2, +a, +b), later(wa.die), writes(wb, 1))[0])


# A select that is cancelled leaves no trace (5.10, 6.2), also while another select waits.
@process
async def impatient(a, b):
    async with move_on_after(0.001) as t:
        await select(a, b)
    return t.expired, await select(a, b), await b


@process
async def slow(out, a):
    await select(a, after(0.01))
    await Parallel(writes(out, 7, 8))


a, b = pair()
other = Channel("other")
wa, wo = -a, -other
print("cancelled", run(impatient(+a, +b), slow(-b, +other))[0])


# More selects wait than there are objects to use again; they have two and three guards.
@process
async def everybody():
    result = []
    for turn in range(3):
        cs = [Channel("c%d" % i) for i in range(9)]
        ends = [(Channel("d"), Channel("e")) for c in cs]
        ps = [
            chooses(2, +c, +ends[i][0]) if i % 2 else chooses(2, +ends[i][0], +c, +ends[i][1])
            for i, c in enumerate(cs)
        ]
        got = await Parallel(ps, [writes(-c, 10 * turn + i, i) for i, c in enumerate(cs)])
        result.append([v for choices in got[:9] for _, v in choices])
    return result


print("many", run(everybody()))
assert len(_alt.spare) <= 4
assert all(x.p is None and x.v is None and not x.live for x in _alt.spare)


# The queue is first come, first served: readers before and behind a select, and two selects.
@process
async def in_order():
    a, b = pair()
    wa = -a
    ps = reads(+a, 1), chooses(1, +a, +b), chooses(1, +b, +a), reads(+a, 1)
    return await Parallel(*(ps + (writes(wa, 1, 2, 3, 4),)))


print("in order", run(in_order()))


# An end that arrives belongs to the process of the select, and is retired when this process ends
# (2.3).
@process
async def carries(out):
    d = Channel("d")
    await out.write(-d)
    try:
        await d.reader()
    except Retired:
        return "retired"


a, b = pair()
w = -a
print("an end", run(chooses(1, +a, +b), carries(-b))[1])


# Outputs of other selects meet the select, with a value and with a function that makes the value
# (5.3, 5.8).
@process
async def stands(guard):
    with Alternative(guard) as alt:
        return await alt.select()


for make in (lambda: 9, lambda: 1 // 0):
    a, b = pair()
    w, wb = -a, -b
    print("made", run(chooses(1, +a, +b), offers(Output(wb, make=make))))
a, b = pair()
wa, wb = -a, -b
print("offered", run(chooses(2, +a, +b), offers(Output(wb, 6)), stands(Output(wa, 7))))


# After a wait both guards are ready: of two selects in a row each chooses another guard (5.4).
@process
async def fair(a, b):
    await select(a, b)
    got = []
    for _ in range(6):
        await yield_()
        await yield_()
        got.append((await select(a, b))[0])
    return got


a, b = pair()
print("fair", run(fair(+a, +b), writes(-a, *range(4)), writes(-b, *range(4)))[0])


# A process that ends by the poison that its select has met has not failed (3.5).
@process
async def ends(a, b):
    await select(a, b)


a, b = pair()
wa, wb = -a, -b
print("no failure", run(ends(+a, +b), later(wa.poison)))


# A closed end is bad use, also behind a guard that is ready, and other guards may stand between
# readers (5.5).
@process
async def mixed(a, b, closed):
    await yield_()
    print("mixed", await select(b, after(60), a), await select(b, skip(), a))
    closed.retire()
    await yield_()
    try:
        await select(a, closed)
    except BadUse as e:
        print("closed", e)
    return await a


a, b = pair()
wb = -b
print(run(mixed(+a, +b, +b), writes(-a, 1, 2, 3))[0])

# A NoResult stands for a missing result: in the list, and as `p.result`, also within the block of a
# group (rule 7.1). Tests coroutines and threads.
from weft import coroutines as co
from weft import threads as th
from weft.coroutines import NoResult


def ended(m):
    c = m.Channel("c")
    r = c.reader()
    c.writer().retire()
    return r


@co.process
async def co_reads(r):
    return await r.read()


@co.process
async def co_block():
    async with co.Group() as g:
        p = g.start(co_reads(ended(co)))
        await p.ended()
        early = p.result
    return early, p.result, await co.Parallel(co_reads(ended(co)), co_reads(ended(co)))


@th.process
def th_reads(r):
    return r.read()


@th.process
def th_block():
    with th.Group() as g:
        p = g.start(th_reads(ended(th)))
        p.ended().wait()
        early = p.result
    return early, p.result, th.Parallel(th_reads(ended(th)), th_reads(ended(th)))


for early, late, both in (co.run(co_block()), th.run(th_block())):
    for n in (early, late, both[1]):
        print(isinstance(n, NoResult), bool(n), n.how, n.where, n)

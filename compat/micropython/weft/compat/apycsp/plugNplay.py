"""aPyCSP's plug and play processes."""

from . import Alternative, Parallel, process


@process
async def Identity(cin, cout):
    while True:
        await cout(await cin())


@process
async def Prefix(cin, cout, prefixItem=None):
    await cout(prefixItem)
    while True:
        await cout(await cin())


@process
async def SeqDelta2(cin, cout1, cout2):
    while True:
        value = await cin()
        await cout1(value)
        await cout2(value)


@process
async def ParDelta2(cin, cout1, cout2):
    while True:
        value = await cin()
        await Parallel(cout1(value), cout2(value))


Delta2 = ParDelta2


@process
async def Successor(cin, cout):
    while True:
        await cout(await cin() + 1)


@process
async def Mux2(cin1, cin2, cout):
    alt = Alternative(cin1, cin2)
    while True:
        _, value = await alt.select()
        await cout(value)


@process
async def SkipProcess():
    pass


@process
async def poison_chans(*chans, verbose=False):
    """Poisons the given channels, or the channels of the given ends."""
    for ch in chans:
        if verbose:
            print("poison_chans() - poison", ch)
        await ch.poison()

# Programs like aPyCSP's own, with the imports as published: inside asyncio, in tasks and processes.
# ruff: noqa: E402
import weft.compat.as_published as published

published.apycsp()
import asyncio

import apycsp
from apycsp import Alternative, Channel, Parallel, PoisonException, Sequence, Skip, Spawn, process
from apycsp.plugNplay import Identity, SkipProcess, poison_chans
from apycsp.utils import CSPTaskGroup, aenumerate, avg, handle_common_args


@process
async def writes(cout, n):
    results = set()
    for i in range(n):
        results.add(await cout(i))
    return results


@process
async def reads(cin):
    got = []
    async for i, value in aenumerate(cin, 1):
        got.append((i, value))
    return got


@process
async def waits(cin):
    try:
        return await cin()
    except PoisonException:
        return "poisoned"


async def main():
    a, b = Channel("a"), Channel("b")
    print(
        await Parallel(
            Sequence(writes(a.write, 3), poison_chans(a)),
            Sequence(Identity(a.read, b.write), poison_chans(b)),
            reads(b.read),
        )
    )
    print(a.verify(), a.poisoned, a.queue_len(), repr(a), a.read.channel() is a, a.read._chan is a)

    # Tasks read and write too, and a write waits in the channel's queue until a process reads.
    c = Channel("c")
    spawned = [Spawn(c.write(i)) for i in range(3)]
    while c.queue_len() < 3:
        await asyncio.sleep(0)
    print(c.queue, c.verify(), await c.read())
    print(await c.read(), await c._read(), c.queue_len())
    print(spawned[0].done(), await spawned[1])

    # A select in a task, outside a run.
    skip = Skip()
    guard, value = await Alternative(c.read, skip).select()
    print(guard is skip, value)
    reader = Spawn(waits(c.read))
    guard, value = await Alternative(c.write.alt_pending_write(7)).select()
    print(type(guard).__name__, value, await reader, reader.done(), reader.exception())

    # Poison acts when it is awaited, and a group waits for what it has spawned.
    d = Channel("d")
    unused = d.poison()
    print(d.poisoned)
    async with CSPTaskGroup(poison_shield=True) as group:
        group.spawn(d.read())
        print(await group.spawn(SkipProcess()))
        await unused
    print(d.poisoned, group.poisoned, len(group.group))
    try:
        await Alternative(d.read).select()
    except PoisonException:
        print("poisoned")
    try:
        e = Channel("e")
        await Alternative(e.read, e.write.alt_pending_write(1)).select()
    except Exception as error:
        print(type(error).__name__)


asyncio.run(main())
print(
    handle_common_args([(("-p", "--profile"), {"action": "store_true", "default": False})]).profile
)
print(avg([1, 2, 3]), apycsp.BufferedChannel.__name__)
try:
    import nosuch  # noqa: F401
except ModuleNotFoundError:
    print("no such module")

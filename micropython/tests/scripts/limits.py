# Rule 7.12 beyond the scenarios: requests that come at the same moment, and operations after a
# request has been met. Rule 7.11: fairness.
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Group,
    Parallel,
    current_process,
    move_on_after,
    process,
    run,
    select,
    sleep,
    timeout,
)


@process
async def two_in_one_moment(last):
    async with move_on_after(1) as outer:
        async with move_on_after(1) as inner:
            if last is not None:  # the outer limit's timer is set after the inner one's
                outer.reschedule(1)
            await sleep(50)
        print("the inner one took it")
    return outer.expired, inner.expired


@process
async def limited(log):
    try:
        async with move_on_after(1):
            await sleep(50)
        log.append("moved on")
    except Cancelled:
        log.append("cancelled")
        raise


@process
async def from_outside_in_the_same_moment():
    log = []
    async with Group() as group:
        p = limited(log)

        @process
        async def cancels():
            await sleep(1)
            p.cancel()

        group.start(cancels(), p)
    return log


@process
async def sends(writer, n):
    for i in range(n):
        await writer.write(i)


@process
async def goes_on_after_it():
    c = Channel("c")
    reader = c.reader()
    writer = c.writer()
    got = []
    async with Group() as group:
        group.start(sends(writer, 4))
        async with timeout(1) as scope:
            try:
                await sleep(5)
            except Cancelled:
                got.append(await reader)  # the core's own read, the first operation afterwards
                got.append(await reader.read())
        got.append(scope.expired)
        got.append(await reader)
        try:
            async with timeout(1):
                while True:
                    got.append(await reader)
        except Exception as e:
            got.append(type(e).__name__)
    return got


@process
async def cancelled_again_after_it():
    me = current_process()
    messages = []

    @process
    async def again():
        await sleep(2)
        me.cancel()

    async with Group() as group:
        group.start(again())
        async with move_on_after(1):
            try:
                await sleep(5)
            except Cancelled:
                messages.append("limit")
                try:
                    await sleep(5)
                except Cancelled:
                    messages.append("outside")
    return messages


@process
async def ends_do_not_spoil_fairness():
    a, b = Channel("a"), Channel("b")
    ra, rb = a.reader(), b.reader()
    first, second = sends(a.writer(), 20), sends(b.writer(), 20)
    async with Group() as group:
        group.start(first, second)
        chosen = []
        for _ in range(10):
            chosen.append((await select(ra, rb, first.ended()))[0])
        ra.retire()
        rb.retire()
    return sorted(chosen)


for p in (
    two_in_one_moment(None),
    two_in_one_moment(1),
    from_outside_in_the_same_moment(),
    goes_on_after_it(),
    cancelled_again_after_it(),
    ends_do_not_spoil_fairness(),
):
    print(p.name, run(p, clock="virtual"))


@process
async def pair():
    return await Parallel(two_in_one_moment(None), two_in_one_moment(1))


print(run(pair(), clock="virtual"))


async def leaves(scope):
    try:
        await scope.__aexit__(None, None, None)
    except BadUse as e:
        print(e)


@process
async def leaves_anothers(scope):
    await leaves(scope)


@process
async def leaves_out_of_order():  # rule 11.1: bad use changes nothing
    async with move_on_after(1) as outer:
        await Parallel(leaves_anothers(outer))
        async with move_on_after(50):
            await leaves(outer)
            await sleep(100)
    return outer.expired


print(run(leaves_out_of_order(), clock="virtual"))

"""The program of test_flight.py: it records most kinds of operations.

flight_program.py FILE [EVENTS]
"""

import sys

from weft import flight

flight.record(int(sys.argv[2]) if len(sys.argv) > 2 else 256)

from weft.coroutines import (  # noqa: E402
    Alternative,
    Barrier,
    Channel,
    Output,
    Parallel,
    Retired,
    after,
    process,
    run,
    select,
    sleep_ms,
)


@process
async def numbers(out, n):
    for i in range(n):
        await out.write(i)


@process
async def squares(source, out):
    async for v in source:
        await out.write(v * v)


@process
async def chooser(source, other):
    seen = []
    try:
        while True:
            seen.append(await select(source, other))
    except Retired:
        return seen


@process
async def pair(b):
    await sleep_ms(1)
    await b.sync()


@process
async def main():
    a, b, c = Channel("a"), Channel("b", capacity=2), Channel("c")
    print((await Parallel(numbers(-a, 3), squares(+a, -b), numbers(-c, 1), chooser(+b, +c)))[3])
    both = Barrier(2)
    await Parallel(pair(both), pair(both))
    d = Channel("d")
    await Parallel(held(+d), numbers(-d, 1).named("source"))
    e, f = Channel("e"), Channel("f", capacity=1, overflow="drop_oldest")
    await Parallel(stands(+e, -f), numbers(-e, 2))


@process
async def held(source):
    async with source.extended() as v:
        print(v)


@process
async def stands(source, out):
    with Alternative(source, after(60)) as choice:
        try:
            while True:
                print(await choice.select())
        except Retired:
            pass
    print(await select(Output(out, 1)), await select(Output(out, 2)))


run(main())
flight.save(sys.argv[1], "dev")

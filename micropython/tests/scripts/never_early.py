# A timer is never early (rule 8.5), wherever within a millisecond of the clock it is set. It can be
# late.
from time import ticks_diff, ticks_us

from weft.coroutines import (
    Channel,
    Timer,
    after,
    at,
    move_on_after,
    now,
    process,
    run,
    select,
    sleep,
    sleep_ms,
    yield_,
)

early = []
done = []
c = Channel("never written")
source, kept = +c, -c


@process
async def busy():
    while not done:
        await yield_()


@process
async def main():
    async def limited(ms):
        async with move_on_after(ms / 1000):
            await source

    waits = (
        ("sleep", lambda ms: sleep(ms / 1000)),
        ("sleep_ms", sleep_ms),
        ("after", lambda ms: select(source, after(ms / 1000))),
        ("at", lambda ms: select(source, at(now() + ms / 1000))),
        ("limit", limited),
        ("Timer", lambda ms: Timer(ms / 1000).tick()),
    )
    for ms in range(1, 8):
        for name, wait in waits:
            began = ticks_us()
            await wait(ms)
            if ticks_diff(ticks_us(), began) < ms * 1000:
                early.append((name, ms))
    done.append(1)


run(main(), busy())
run(main())
print("early:", early)

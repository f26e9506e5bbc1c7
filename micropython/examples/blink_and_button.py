"""An LED blinks; each press of the button changes the pace. A hard interrupt reports the press,
through a ring."""

from board import PLAYED, Pin

from weft.coroutines import Channel, after, poison, process, run, select, sleep_ms
from weft.isr import Ring

LED, BUTTON = 25, 14
PACES = (0.02, 0.01, 0.005)  # seconds between on and off
ring = Ring(8, "presses")


@process
async def blink(paces, led, times):
    """Blinks at the newest pace; ends after `times` changes at the last pace."""
    pace, level, changes, log = None, 0, 0, []
    while changes < times:
        which, value = await select(paces, after(pace if pace else 1))
        if which == 0:
            pace, changes = value, 0
            log.append(pace)
        else:
            level = 1 - level
            led.value(level)
            changes += pace == PACES[-1]
    poison(paces)
    return log


@process
async def button(presses, paces):
    """Asks for the next pace at each press of the button."""
    n = 0
    await paces.write(PACES[n])
    async for _ in presses:
        n = (n + 1) % len(PACES)
        await paces.write(PACES[n])


@process
async def finger():
    """Simulates a finger, on a PC: presses the button twice."""
    for _ in range(2):
        await sleep_ms(50)
        for pin in PLAYED:
            pin.handler(pin)


@process
async def main():
    from weft.coroutines import Parallel

    pin = Pin(BUTTON, Pin.IN, Pin.PULL_UP)
    pin.irq(lambda p: ring.put(1), trigger=Pin.IRQ_FALLING, hard=True)
    paces = Channel("paces")
    ps = [blink(+paces, Pin(LED, Pin.OUT), 6), button(ring.reader(), -paces)]
    if PLAYED is not None:
        ps.append(finger())
    ends = await Parallel(ps) if PLAYED is None else await _until_done(ps)
    return ends[0], ring.overflows


async def _until_done(ps):
    from weft.coroutines import Group

    async with Group() as group:
        for p in ps:
            group.start(p)
        while not ps[0].done:
            await sleep_ms(5)
        ring.close()
    return [p.result for p in ps]


print(run(main()))

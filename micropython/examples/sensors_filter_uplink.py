"""Two sensors, a filter that averages four values, and a slow uplink: back-pressure slows the
sensors down. A sensor that may lose values has a channel that drops the oldest."""

from weft.coroutines import Channel, process, run, select, sleep_ms


@process
async def sensor(out, first, number):
    for i in range(number):
        await out.write(first + i)


@process
async def average(one, two, out, number):
    """Averages the values of two sensors. When both sensors have ended (rule 5.6), writes the
    remaining values and ends."""
    held = []
    try:
        while True:
            _, value = await select(one, two)
            held.append(value)
            if len(held) == number:
                await out.write(sum(held) // number)
                held = []
    finally:
        print("left over:", len(held))


@process
async def uplink(source):
    sent = 0
    async for _ in source:
        await sleep_ms(2)  # the radio is slow, so all processes before it wait
        sent += 1
    return sent


a, b, out = Channel("a"), Channel("b"), Channel("out")
print(run(sensor(-a, 0, 21), sensor(-b, 100, 21), average(+a, +b, -out, 4), uplink(+out))[3])

lossy = Channel("newest", capacity=3, overflow="drop_oldest")


@process
async def late(source):
    await sleep_ms(20)  # only the three newest samples are useful
    got = []
    async for value in source:
        got.append(value)
    return got


print(run(sensor(-lossy, 0, 50), late(+lossy))[1], "dropped", lossy.stats().dropped)

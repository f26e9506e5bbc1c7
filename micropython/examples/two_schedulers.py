"""A pipeline over two cores, each with a scheduler of its own: core 1 samples and takes means, core
0 sums up and announces when it has enough. On core 1 a process is a generator, and allocates
nothing. On unix a thread takes the place of core 1."""

from weft.cores import core1
from weft.coroutines import process, run


@core1.process
def samples(stop, out, number):
    for i in range(number):
        yield out.write(i & 15)
        if i % 100 == 99:
            yield core1.sleep_ms(1)
    seen = yield stop.read()
    return seen


@core1.process
def means(source, out):
    while True:
        a = yield source.read()
        b = yield source.read()
        yield out.write((a + b) // 2)


@process
async def sums(source, stop, number):
    total = n = 0
    async for value in source:
        n += 1
        total += value
        if n == number:
            await stop.write(n)
    return n, total


raw = core1.Channel("raw")  # between two processes of core 1
line = core1.to_main(8, "means")  # from core 1 to core 0; the next line leads the other way:
stop = core1.from_main(1, "stop")
summed, (sampled, _) = run(
    sums(+line, -stop, 250), core1.run(samples(+stop, -raw, 500), means(+raw, -line))
)
print(summed, sampled)

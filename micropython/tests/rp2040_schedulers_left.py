"""A program for test_rp2040.py: core 0 writes files while a scheduler runs on core 1 (upstream's
issue 8793). One Ctrl-C ends that run and core 1's network. Two of them end another run while core 1
goes on; then the board is reset (16619)."""

from weft import _time
from weft.cores import core1
from weft.coroutines import Parallel, process, run, sleep


@core1.process
def count(out):
    i = 0
    while True:
        yield out.write(i & 1023)
        i += 1


@core1.process
def on(source, out):
    while True:
        v = yield source.read()
        yield out.write(v)


@process
async def never():
    await sleep(1000)


def interrupted():
    raise KeyboardInterrupt


@process
async def watch(source):
    last, wrong = -1, 0
    for i in range(6):
        for _ in range(100):
            v = await source.read()
            wrong += v != (last + 1) & 1023
            last = v
        text = "written %d\n" % i * 300
        with open("data.txt", "w") as file:
            file.write(text)
        with open("data.txt") as file:
            wrong += file.read() != text
    print(wrong, "of 600 wrong")
    _time.idle = interrupted  # simulates a Ctrl-C while core 0 has nothing to do
    await Parallel(never())


def leave():
    raw, line = core1.Channel("raw"), core1.to_main(8, "samples")
    try:
        run(core1.run(count(-raw), on(+raw, -line)), watch(+line))
    except KeyboardInterrupt:
        print("core 1 is left running:", core1.on and not core1.over)


idle = _time.idle
leave()
_time.idle = idle
core1.leave = interrupted  # simulates a second Ctrl-C, while core 0 waits for core 1
leave()

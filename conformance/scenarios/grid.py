"""Producer/consumer networks: one or many processes at each side, plain or choosing, with or
without delays.

A choosing side has an input and an output guard in every select. The channel of the other guard has
no partner at its far side. So selects meet plain operations and other selects. `load("grid",
backend)` compiles this file; `network(...)` runs one network.
"""

from __future__ import annotations

from weft import Channel, Output, Parallel, process, run, select, sleep


@process
async def producer(out, idle, number, values, choosing, delays):
    for value in range(values):
        await pause(delays, number, value)
        if choosing:
            index, _ = await select(idle, Output(out, (number, value)))
            assert index == 1
        else:
            await out.write((number, value))


@process
async def consumer(into, idle, number, seen, choosing, delays):
    """Logs every value; ends when the producers have ended (rules 3.1 and 3.5)."""
    while True:
        await pause(delays, number, len(seen))
        if choosing:
            index, value = await select(into, Output(idle, "nobody reads this"), ended="raise")
            assert index == 0
        else:
            value = await into.read()
        seen.append(value)


async def pause(delays, number, step):
    if delays is not None:
        await sleep(delays[(number * 7 + step) % len(delays)])


@process
async def whole(producers, consumers, choosing_producers, choosing_consumers, values, delays, seen):
    c, to_producers, from_consumers = (
        Channel("c"),
        Channel("to producers"),
        Channel("from consumers"),
    )
    kept = to_producers.writer(), from_consumers.reader()
    outs = [c.writer() for _ in range(producers)]
    intos = [c.reader() for _ in range(consumers)]
    await Parallel(
        [
            producer(outs[i], to_producers.reader(), i, values, choosing_producers, delays)
            for i in range(producers)
        ],
        [
            consumer(intos[i], from_consumers.writer(), i, seen[i], choosing_consumers, delays)
            for i in range(consumers)
        ],
    )
    assert c.stats().transfers == producers * values
    assert not any(end.closed for end in kept)


def network(producers, consumers, choosing_producers, choosing_consumers, values, delays):
    """Runs a network and returns the values that each consumer read, in their order."""
    seen = [[] for _ in range(consumers)]
    run(
        whole(producers, consumers, choosing_producers, choosing_consumers, values, delays, seen),
        clock="virtual",
    )
    return seen

"""Cancellations race with commits (rule 6.4): writers and readers, plain and choosing, are
cancelled all the time.

A cancelled writer tries again with the same value, a cancelled reader reads again. So if a
cancelled operation had moved its value after all, the value would be doubled; if a committed
operation had been withdrawn, the value would be lost. `load("races", backend)` compiles this file;
`race(...)` runs one race.
"""

from __future__ import annotations

import random

from weft import (
    Cancelled,
    Channel,
    Output,
    Parallel,
    Retired,
    process,
    run,
    select,
    yield_,
)


@process
async def writer(out, idle, number, requests, choosing, cancelled):
    """Writes 0, 1, 2, … until there have been `requests` cancellations; returns the number of
    values written.
    """
    value = 0
    while cancelled[0] < requests:
        while True:
            try:
                if choosing:
                    await select(idle, Output(out, (number, value)))
                else:
                    await out.write((number, value))
                break
            except Cancelled:
                cancelled[0] += 1
        value += 1
    return value


@process
async def reader(into, idle, choosing, seen, cancelled):
    while True:
        try:
            if choosing:
                _, value = await select(into, Output(idle, "nobody reads this"), ended="raise")
            else:
                value = await into.read()
            seen.append(value)
        except Cancelled:
            cancelled[0] += 1
        except Retired:
            return


@process
async def canceller(victims, seed, requests, cancelled):
    """Cancels one of the victims again and again until `requests` operations have raised
    `Cancelled`."""
    dice = random.Random(seed)
    while cancelled[0] < requests:
        dice.choice(victims).cancel()
        for _ in range(dice.randrange(3)):
            await yield_()


@process
async def whole(seed, capacity, requests, seen, cancelled):
    c = Channel("c", capacity=capacity)
    to_writers, from_readers = Channel("to writers"), Channel("from readers")
    kept = to_writers.writer(), from_readers.reader()
    writers = [
        writer(c.writer(), to_writers.reader(), i, requests, i % 2 == 1, cancelled)
        for i in range(4)
    ]
    readers = [
        reader(c.reader(), from_readers.writer(), i % 2 == 1, seen[i], cancelled) for i in range(4)
    ]
    results = await Parallel(
        writers, readers, canceller([*writers, *readers], seed, requests, cancelled)
    )
    assert not any(end.closed for end in kept)
    return results[:4]


def race(seed, capacity, requests):
    """Runs a race. Returns how many values each of four writers wrote, the values that each of four
    readers read, and how many operations raised `Cancelled` (a few late cancellations are never
    raised).
    """
    seen, cancelled = [[] for _ in range(4)], [0]
    written = run(whole(seed, capacity, requests, seen, cancelled))
    return written, seen, cancelled[0]

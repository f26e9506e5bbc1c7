"""Rules 1 to 10 hold where processes of components are mixed with processes of all other kinds
(rule 16.1). Random tests print their seed.
"""

from __future__ import annotations

import random

import pytest
from components import basics, needs_compiler, parties
from parts import co_echo, gr_echo, th_echo

from weft import coroutines as co
from weft import threads as th
from weft.errors import Deadlock, Poisoned
from weft.native import ComponentError

pytestmark = needs_compiler
SEEDS = range(40)


def kinds():
    f = basics()
    return [co_echo, gr_echo, th_echo, f.ints, f.place, f.ints]


def channel(choose, name):
    return co.Channel(name, capacity=choose.choice([0, 0, 1, 5]))


def chain(choose, length):
    """Makes a chain of processes, at least one of them native. Returns the first and the last
    channel."""
    channels = [channel(choose, f"c{n}") for n in range(length + 1)]
    made = [choose.choice(kinds()) for _ in range(length)]
    made[choose.randrange(length)] = basics().ints
    steps = [f(+a, -b) for f, a, b in zip(made, channels[:-1], channels[1:], strict=True)]
    return channels[0], steps, channels[-1]


@co.process
async def numbers(w, n):
    for k in range(n):
        await w.write(k)


@co.process
async def collect(r):
    return [x async for x in r]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_overtaken_in_a_chain(seed):  # rules 1.2, 1.5, 3.5, 16.1
    choose = random.Random(seed)
    first, steps, last = chain(choose, choose.randint(1, 6))
    got = co.run(numbers(-first, 100), *steps, collect(+last))[-1]
    assert got == list(range(100)), f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_value_goes_one_way_where_chains_share_channels(seed):  # rules 1.3, 5.4, 16.1
    """Several writers and readers of every kind at two channels: each value that was written is
    read once."""
    choose = random.Random(seed)
    a, b = channel(choose, "a"), channel(choose, "b")
    workers = [choose.choice(kinds()) for _ in range(choose.randint(1, 4))] + [basics().ints]
    sources = choose.randint(1, 3)

    @co.process
    async def either(x, y):
        got = []
        while True:
            try:
                _, value = await co.select(x, y)
            except co.Retired:
                return got
            got.append(value)

    got = co.run(
        *(numbers(-a, 60) for _ in range(sources)),
        *(w(+a, -b) for w in workers),
        either(+b, +b),
    )[-1]
    assert sorted(got) == sorted([*range(60)] * sources), f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_poison_goes_through_a_chain(seed):  # rules 4.1, 4.3, 16.1
    choose = random.Random(seed)
    first, steps, last = chain(choose, choose.randint(1, 5))
    backwards = choose.random() < 0.5

    @co.process
    async def aborts(end):
        if not backwards:
            await end.write(0)
        end.poison(2)

    @co.process
    async def meets(end):
        with pytest.raises(Poisoned) as met:
            while True:
                await (end.write(1) if backwards else end.read())
        return met.value.strength

    source, sink = (meets(-first), aborts(+last)) if backwards else (aborts(-first), meets(+last))
    got = co.run(source, *steps, sink)
    assert got[0 if backwards else -1] == 2, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failure_cancels_a_chain(seed):  # rules 6.2, 7.3, 16.1
    choose = random.Random(seed)
    first, steps, last = chain(choose, choose.randint(1, 5))

    @co.process
    async def fails(r):
        for _ in range(choose.randint(0, 5)):
            await r.read()
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        co.run(numbers(-first, 10**9), *steps, fails(+last))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_that_bites_its_tail_is_a_deadlock(seed):  # rules 10.1, 10.2, 16.1
    choose = random.Random(seed)
    names = [f"c{n}" for n in range(choose.randint(1, 5))]
    channels = [co.Channel(name) for name in names]
    made = [choose.choice([co_echo, gr_echo, th_echo, basics().ints]) for _ in names]
    made[0] = basics().ints
    ring = [f(+a, -b) for f, a, b in zip(made, channels, channels[1:] + channels[:1], strict=True)]
    if len(ring) == 1:  # a ring of one process waits for itself
        ring.append(numbers(-co.Channel("apart", capacity=1), 1))
    with pytest.raises(Deadlock) as found:
        co.run(*ring)
    assert "/ints" in str(found.value), f"seed {seed}"
    assert all(f"'{name}'" in str(found.value) for name in names), f"seed {seed}"


# --- stars: one channel, many of every kind -------------------------------------------------------


def reader_of(choose, end, got):
    """Returns a process that reads all values into `got`, one by one, in blocks, or by choice."""

    @co.process
    async def singly(r):
        async for x in r:
            got.append(x)

    @co.process
    async def in_blocks(r):
        async for block in r.blocks(choose.randint(1, 7)):
            got.extend(block)

    @co.process
    async def by_choice(r):
        with pytest.raises(co.Retired):
            while True:
                got.append((await co.select(r))[1])

    @co.process
    async def extended(r):
        with pytest.raises(co.Retired):
            while True:
                async with r.extended() as x:
                    got.append(x)

    return choose.choice([singly, in_blocks, by_choice, extended])(end)


@pytest.mark.parametrize("seed", SEEDS)
def test_writers_and_readers_of_every_kind_at_one_channel(
    seed,
):  # rules 1.2, 1.3, 3.1, 3.3, 16.1, 16.9
    choose = random.Random(seed)
    c, got = channel(choose, "c"), []

    @co.process
    async def in_blocks(w, n):
        await w.write_many(range(n))

    writers = [basics().count_to, numbers, in_blocks]
    made = [choose.choice(writers)(-c, 50) for _ in range(choose.randint(1, 4))]
    made.append(basics().count_to(-c, 50))
    readers = [reader_of(choose, +c, got) for _ in range(choose.randint(1, 3))]
    co.run(*made, *readers)
    assert sorted(got) == sorted([*range(50)] * len(made)), f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_retire_one_after_another(seed):  # rules 3.1, 3.2, 16.1
    """At the end no reader is left. The channel has ended for writers of every kind, and each value
    that was read had been written once.
    """
    choose = random.Random(seed)
    c, got = channel(choose, "c"), []

    @co.process
    async def some(r, n):
        for _ in range(n):
            got.append(await r.read())

    readers = [some(+c, choose.randint(1, 20)) for _ in range(choose.randint(1, 4))]
    made = [
        choose.choice([basics().count_to, numbers])(-c, 1000) for _ in range(choose.randint(0, 2))
    ]
    co.run(*readers, *made, basics().count_to(-c, 1000))
    assert all(got.count(x) <= len(made) + 1 for x in got), f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_parties_of_every_kind_at_a_barrier(seed):  # rules 8.1, 8.2, 8.4, 16.1
    """No party begins a phase before all parties have ended the previous one."""
    choose = random.Random(seed)
    n, phases = choose.randint(1, 3), 5
    native = choose.randint(1, 3)
    barrier = co.Barrier(n + native)
    log = co.Channel("log", overflow="unbounded")
    reader = +log

    @co.process
    async def meets(w):
        for phase in range(phases):
            await w.write(f"before {phase}")
            if choose.random() < 0.5:
                await barrier.sync()
            else:
                await co.select(barrier)
        barrier.resign()

    @th.process
    def blocks(w):
        for phase in range(phases):
            w.write(f"before {phase}")
            barrier.sync()
        barrier.resign()

    others = [choose.choice([meets, blocks])(-log) for _ in range(n)]
    co.run(*(parties().phases(barrier, -log, phases) for _ in range(native)), *others)
    got = co.run(collect(reader))
    each = n + native
    assert [x for k in range(phases) for x in got[k * each : (k + 1) * each]] == got
    assert all(set(got[k * each : (k + 1) * each]) == {f"before {k}"} for k in range(phases)), (
        f"seed {seed}"
    )
    assert barrier.parties == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_server_of_computed_values_among_clients(seed):  # rules 5.2, 5.8, 16.1
    """Each value that is read is the sum of the values written so far. So the sums only grow, and
    the last sum is that of all values.
    """
    choose = random.Random(seed)
    a, c = channel(choose, "a"), co.Channel("c")
    clients = choose.randint(1, 3)

    @co.process
    async def client(w, r):
        seen = []
        for _ in range(10):
            await w.write(1)
            seen.append(await r.read())
        return seen

    seen = co.run(*(client(-a, +c) for _ in range(clients)), parties().serves(+a, -c))[:-1]
    assert all(s == sorted(s) for s in seen), f"seed {seed}"
    assert max(max(s) for s in seen) <= 10 * clients


@pytest.mark.parametrize("seed", SEEDS)
def test_a_component_that_throws_in_a_network(seed):  # rules 6.2, 7.2, 16.1
    choose = random.Random(seed)
    first, steps, last = chain(choose, choose.randint(1, 4))
    with pytest.raises(ComponentError, match="it is 7") as failed:
        co.run(numbers(-first, 10**9), *steps, basics().fails(+last, at=7))
    assert failed.value.process == "fails"

"""Rules 1 to 10 hold where processes of components are mixed with all others (rule 16.1). What is random prints its seed."""

from __future__ import annotations

import random

import pytest
from components import basics, needs_compiler
from parts import co_echo, gr_echo, th_echo

from weft import coroutines as co
from weft.errors import Deadlock, Poisoned

pytestmark = needs_compiler
SEEDS = range(40)


def kinds():
    f = basics()
    return [co_echo, gr_echo, th_echo, f.ints, f.place, f.ints]


def channel(choose, name):
    return co.Channel(name, capacity=choose.choice([0, 0, 1, 5]))


def chain(choose, length):
    """Processes one behind another, at least one of them native; the first channel and the last."""
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
    """Several writers and readers of every kind at two channels; what comes out is what went in, each once."""
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
    if len(ring) == 1:  # it waits for itself
        ring.append(numbers(-co.Channel("apart", capacity=1), 1))
    with pytest.raises(Deadlock) as found:
        co.run(*ring)
    assert "/ints" in str(found.value), f"seed {seed}"
    assert all(f"'{name}'" in str(found.value) for name in names), f"seed {seed}"

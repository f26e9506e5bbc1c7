"""Rules 3 and 4: retirement, poison and death."""

from __future__ import annotations

import pytest
from parts import catch, hows, receive, send, take

from weft.errors import PeerDied, Poisoned, Retired


def test_readers_drain_before_they_are_told(b):  # rule 3.1
    c = b.weft.Channel(capacity=3)

    async def fill(b, w):
        for v in range(3):
            await b.op(w.write(v))

    async def late(b, r):
        await b.op(b.weft.sleep(1))
        got = [await b.op(r.read()) for _ in range(3)]
        return got, await catch(b, r.read)

    _, (got, end) = b.run(b.process(fill)(-c), b.process(late)(+c), clock="virtual")
    assert got == [0, 1, 2]
    assert isinstance(end, Retired)
    assert end.channel is c
    assert end.guard is None


def test_a_waiting_write_still_delivers_when_its_end_is_closed(b):  # rule 3.2
    c = b.weft.Channel()
    w = c.writer()

    async def closer(b):
        await b.op(b.weft.sleep(1))
        w.retire()

    async def reader(b, r):
        await b.op(b.weft.sleep(2))
        return await b.op(r.read()), await catch(b, r.read)

    value, end = b.run(
        b.process(send)(w, "still"), b.process(closer)(), b.process(reader)(+c), clock="virtual"
    )[2]
    assert value == "still"
    assert isinstance(end, Retired)


def test_writers_get_their_value_back(b):  # rule 3.3
    c = b.weft.Channel(capacity=1)

    async def reader(b, r):
        await b.op(b.weft.sleep(1))

    async def writer(b, w):
        await b.op(w.write("in the buffer"))
        return await catch(b, lambda: w.write("mine")), await catch(b, lambda: w.write("also mine"))

    first, second = b.run(b.process(writer)(-c), b.process(reader)(+c), clock="virtual")[0]
    assert isinstance(first, Retired)
    assert (first.value, second.value) == ("mine", "also mine")
    assert c.stats().dropped == 1


def test_iteration_ends_on_retired_and_on_it_only(b):  # rule 3.4
    c = b.weft.Channel()

    async def poisoner(b, w):
        await b.op(w.write(1))
        w.poison()

    async def reader(b, r):
        got = []
        try:
            async for v in b.each(r):
                got.append(v)
        except Poisoned:
            got.append("poisoned")
        return got

    assert b.run(b.process(poisoner)(-c), b.process(reader)(+c))[1] == [1, "poisoned"]


def test_an_uncaught_retired_is_quiet(b):  # rule 3.5
    c = b.weft.Channel()
    results = b.run(b.process(take)(+c, 5), b.process(send)(-c, 1))
    assert hows(results) == ["<retired>", None]


def test_poison_spreads(b):  # rule 4.3
    x, y, z = (b.weft.Channel(n) for n in "xyz")

    async def middle(b, r, w):
        async for v in b.each(r):
            await b.op(w.write(v))

    async def source(b, w):
        await b.op(w.write(1))
        w.poison(strength=3)

    async def sink(b, r):
        got = []
        try:
            while True:
                got.append(await b.op(r.read()))
        except Poisoned as p:
            return got, p.strength

    assert b.run(
        b.process(source)(-x),
        b.process(middle)(+x, -y),
        b.process(middle)(+y, -z),
        b.process(sink)(+z),
    )[3] == ([1], 3)


def test_catching_it_stops_the_spread(b):  # rule 4.3
    x, y = b.weft.Channel(), b.weft.Channel()

    async def careful(b, r, w):
        try:
            await b.op(r.read())
        except Poisoned:
            await b.op(w.write("caught"))

    async def source(b, w):
        w.poison()

    assert b.run(b.process(source)(-x), b.process(careful)(+x, -y), b.process(receive)(+y))[2] == [
        "caught"
    ]


def test_poison_drops_what_is_buffered_and_gives_waiting_values_back(b):  # rule 4.2
    c = b.weft.Channel(capacity=1)

    async def writer(b, w):
        await b.op(w.write("buffered"))
        return await catch(b, lambda: w.write("waiting"))

    async def poisoner(b, r):
        await b.op(b.weft.sleep(1))
        r.poison()

    error = b.run(b.process(writer)(-c), b.process(poisoner)(+c), clock="virtual")[0]
    assert isinstance(error, Poisoned)
    assert error.value == "waiting"
    assert c.stats().dropped == 1


@pytest.mark.parametrize(("given", "expected"), [((1, 3, 2), 3), ((2, 2), 2)])
def test_strength_never_falls(b, given, expected):  # rule 4.1
    c = b.weft.Channel()
    r = c.reader()
    for s in given:
        c.poison(s)
    assert b.run(b.process(lambda b, r: catch(b, r.read))(r)).strength == expected


def test_the_strength_is_that_of_the_channel_when_the_process_goes_on(b):  # rule 4.2
    c = b.weft.Channel()

    async def poisons_twice(b, w):
        await b.op(b.weft.sleep(1))  # waits until the other process waits
        c.poison(1)
        c.poison(2)

    waits, _ = b.run(
        b.process(lambda b, r: catch(b, r.read))(+c),
        b.process(poisons_twice)(-c),
        clock="virtual",
    )
    # A thread may continue between the two poisons.
    assert waits.strength in ({1, 2} if b.name == "threads" else {2})


def test_immunity(b):  # rule 4.4
    c = b.weft.Channel(immunity=2)
    w = c.writer()
    w.poison(1)
    assert b.run(b.process(send)(w, 1), b.process(receive)(+c))[1] == [1]
    d = b.weft.Channel(immunity=2)
    r = d.reader()
    d.poison(strength=2)
    assert isinstance(b.run(b.process(lambda b, r: catch(b, r.read))(r)), Poisoned)
    with pytest.raises(Poisoned):  # rule 2.5
        d.writer()


def test_death(b):  # rule 4.5
    c = b.weft.Channel(capacity=2)

    async def dies(b, w):
        await b.op(w.write("last words"))
        w.die()

    async def reader(b, r):
        await b.op(b.weft.sleep(1))
        return await b.op(r.read()), await catch(b, r.read)

    value, end = b.run(b.process(dies)(-c), b.process(reader)(+c), clock="virtual")[1]
    assert value == "last words"
    assert isinstance(end, PeerDied)


def test_an_uncaught_peer_died_is_a_failure(b):  # rule 4.5
    c = b.weft.Channel()

    async def dies(b, w):
        w.die()

    with pytest.raises(PeerDied):
        b.run(b.process(dies)(-c), b.process(receive)(+c))


def test_a_failure_retires_and_does_not_poison(b):  # rule 4.6
    c, seen = b.weft.Channel(), []

    async def fails(b, w):
        raise ZeroDivisionError

    async def reader(b, r):
        end = await catch(b, r.read)
        seen.append(end)

    async def outer(b):
        await b.op(b.weft.Parallel(b.process(fails)(-c)))

    r = c.reader()
    with pytest.raises(ZeroDivisionError):
        b.run(b.process(outer)())
    b.run(b.process(reader)(r))
    assert isinstance(seen[0], Retired)


def test_poison_and_retire_take_several(b):
    c, d = b.weft.Channel(), b.weft.Channel()
    ends = [c.reader(), d.reader()]
    b.weft.poison(*ends, strength=4)
    assert {b.run(b.process(lambda b, r: catch(b, r.read))(e)).strength for e in ends} == {4}
    e, f = b.weft.Channel(), b.weft.Channel()
    b.weft.retire(e.writer(), f.writer())
    assert (e.stats().writers, f.stats().writers) == (0, 0)

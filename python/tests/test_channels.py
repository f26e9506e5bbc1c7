"""Rules 1 and 2: channels and ends."""

from __future__ import annotations

import gc

import pytest
from parts import catch, receive, send, take

from weft.errors import BadUse, Retired


def test_rendezvous_passes_values_in_order(b):  # rule 1.1
    c = b.weft.Channel()
    assert b.run(b.process(send)(c.writer(), 1, 2, 3), b.process(receive)(c.reader())) == [
        None,
        [1, 2, 3],
    ]
    assert c.stats().transfers == 3


def test_a_write_completes_when_it_is_taken(b):  # rule 1.1
    c, log = b.weft.Channel(), []

    async def writer(b, w):
        await b.op(w.write("x"))
        log.append("written")

    async def reader(b, r):
        await b.op(b.weft.sleep(1))
        log.append("about to read")
        await b.op(r.read())

    b.run(b.process(writer)(-c), b.process(reader)(+c), clock="virtual")
    assert log == ["about to read", "written"]


def test_readers_are_served_first_come_first_served(b):  # rule 1.2
    c, got = b.weft.Channel(), []

    async def reader(b, r, k):
        await b.op(b.weft.sleep(k))
        got.append((k, await b.op(r.read())))

    async def writer(b, w):
        await b.op(b.weft.sleep(10))
        for v in range(3):
            await b.op(w.write(v))

    b.run(*(b.process(reader)(+c, k) for k in (2, 0, 1)), b.process(writer)(-c), clock="virtual")
    assert sorted(got) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("overflow", "kept", "dropped"),
    [("drop_oldest", [2, 3], 1), ("drop_newest", [1, 2], 1), ("unbounded", [1, 2, 3], 0)],
)
def test_overflow(b, overflow, kept, dropped):  # rule 1.4
    c = b.weft.Channel(capacity=2, overflow=overflow)

    async def fill_then_read(b, w, r):
        for v in (1, 2, 3):
            await b.op(w.write(v))
        w.retire()
        return [v async for v in b.each(r)]

    assert b.run(b.process(fill_then_read)(-c, +c)) == kept
    assert c.stats().dropped == dropped


def test_a_buffer_takes_the_next_writers_value_when_one_leaves(b):  # rules 1.3, 1.5
    c, log = b.weft.Channel(capacity=1), []

    async def writer(b, w):
        for v in range(3):
            await b.op(w.write(v))
            log.append(v)

    async def reader(b, r):
        await b.op(b.weft.sleep(1))
        assert log == [0]
        first = await b.op(r.read())
        await b.op(b.weft.sleep(1))
        assert log == [0, 1]
        return [first] + [v async for v in b.each(r)]

    assert b.run(b.process(writer)(-c), b.process(reader)(+c), clock="virtual")[1] == [0, 1, 2]


def test_unbounded_grows(b):  # rule 1.4
    c = b.weft.Channel(capacity=1, overflow="unbounded")

    async def all_of_it(b, w, r):
        for v in range(1000):
            await b.op(w.write(v))
        w.retire()
        return [v async for v in b.each(r)]

    assert b.run(b.process(all_of_it)(-c, +c)) == list(range(1000))


@pytest.mark.parametrize("how", ["plainly", "by an exception"])
def test_extended_read_holds_the_writer(b, how):  # rule 1.6
    c, log = b.weft.Channel(), []

    async def writer(b, w):
        await b.op(w.write("x"))
        log.append("writer goes on")

    async def reader(b, r):
        block = r.extended()
        value = await b.enter(block)
        await b.op(b.weft.sleep(1))
        log.append(f"block of {value} ends")
        if how == "plainly":
            await b.leave(block)
        else:
            await b.leave(block, ValueError("in the block"))

    b.run(b.process(writer)(-c), b.process(reader)(+c), clock="virtual")
    assert log == ["block of x ends", "writer goes on"]


def test_extended_read_occupies_its_slot(b):  # rule 1.6
    c, log = b.weft.Channel(capacity=1), []

    async def writer(b, w):
        for v in range(2):
            await b.op(w.write(v))
            log.append(v)

    async def reader(b, r):
        block = r.extended()
        await b.op(b.weft.sleep(1))
        assert await b.enter(block) == 0
        await b.op(b.weft.sleep(1))
        assert log == [0]
        await b.leave(block)
        return await b.op(r.read())

    assert b.run(b.process(writer)(-c), b.process(reader)(+c), clock="virtual")[1] == 1
    assert log == [0, 1]


def test_poison_does_not_take_an_extended_value_back(b):  # rule 1.6
    c = b.weft.Channel()

    async def writer(b, w):
        return await catch(b, lambda: w.write("x"))

    async def reader(b, r):
        block = r.extended()
        value = await b.enter(block)
        r.poison()
        await b.leave(block)
        return value

    assert b.run(b.process(writer)(-c), b.process(reader)(+c)) == [None, "x"]


def test_names(b):  # rule 1.7
    assert b.weft.Channel("tea").name == "tea"
    assert b.weft.Channel().name.startswith("test_channels.py:")
    assert repr(b.weft.Channel("tea")) == "<Channel tea>"


def test_names_of_places_whose_code_is_gone(b):  # rule 1.7
    """The names keep the code object with its lines alive. If the code object were freed, another
    code object might get its address.
    """
    for k in range(200):
        space = {"Channel": b.weft.Channel}
        exec(compile("\n" * k + "c = Channel()\nd = Channel()", f"place{k}.py", "exec"), space)
        assert space["c"].name == f"place{k}.py:{k + 1}"
        assert space["d"].name == f"place{k}.py:{k + 2}"


# --- rule 2: ends ---------------------------------------------------------------------------------


def test_ends_are_counted_and_callable(b):  # rule 2.1
    c = b.weft.Channel()
    r, w = +c, -c
    other = c.reader()
    assert (c.stats().readers, c.stats().writers) == (2, 1)

    async def both(b, r, w):
        return await b.op(r())

    async def write(b, w):
        await b.op(w(7))

    assert b.run(b.process(both)(r, other), b.process(write)(w))[0] == 7
    assert (c.stats().readers, c.stats().writers) == (0, 0)


def test_a_dropped_end_is_retired(b):  # rule 2.2, 12.2
    c = b.weft.Channel()
    r, w = c.reader(), c.writer()

    async def reader(b, r):
        return await catch(b, r.read)

    del w
    gc.collect()
    assert isinstance(b.run(b.process(reader)(r)), Retired)


@pytest.mark.parametrize(
    "shape",
    [list, tuple, set, lambda ends: dict.fromkeys(ends), lambda ends: [[{"x": tuple(ends)}]]],
)
def test_ends_in_containers_are_held(b, shape):  # rule 2.3
    c = b.weft.Channel()
    ends = [c.writer(), c.writer()]

    async def idle(b, given):
        pass

    assert isinstance(
        b.run(b.process(idle)(shape(ends)), b.process(lambda b, r: catch(b, r.read))(+c))[1],
        Retired,
    )
    assert all(e.closed for e in ends)


def test_an_end_given_to_two_is_let_go_by_the_last(b):  # rule 2.3
    c = b.weft.Channel()
    w = c.writer()

    async def late(b, w):
        await b.op(b.weft.sleep(5))
        await b.op(w.write("late"))

    async def early(b, w):
        pass

    assert b.run(b.process(early)(w), b.process(late)(w), b.process(receive)(+c), clock="virtual")[
        2
    ] == ["late"]
    with pytest.raises(BadUse, match="last process that held it has finished"):
        w.write(1)


def test_a_process_that_is_never_started_lets_go(b):  # rule 2.3
    c = b.weft.Channel()
    with pytest.warns(RuntimeWarning, match="process send was made and never started"):
        r = c.reader()
        b.process(send)(c.writer(), 1)
        gc.collect()
    assert c.stats().writers == 0 or b.run(b.process(receive)(r)) == []


def test_an_end_that_is_sent_moves(b):  # rule 2.4
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    mobile = d.writer()

    async def sender(b, w):
        await b.op(w.write(mobile))
        return mobile.closed

    async def receiver(b, r):
        got = await b.op(r.read())
        await b.op(got.write("through a mobile end"))

    assert b.run(b.process(sender)(-c), b.process(receiver)(+c), b.process(receive)(+d))[::2] == [
        True,
        ["through a mobile end"],
    ]
    with pytest.raises(BadUse, match="sent away, over a channel or to another OS process"):
        mobile.write(1)


def test_an_end_whose_write_fails_stays(b):  # rule 2.4
    c, d = b.weft.Channel(), b.weft.Channel()
    mobile = d.writer()

    async def sender(b, w):
        return await catch(b, lambda: w.write(mobile))

    async def leaver(b, r):
        await b.op(b.weft.sleep(1))

    error, _ = b.run(b.process(sender)(-c), b.process(leaver)(+c), clock="virtual")
    assert isinstance(error, Retired)
    assert error.value is mobile
    assert not mobile.closed
    assert d.stats().writers == 1


def test_an_end_that_is_dropped_undelivered_is_retired(b):  # rule 2.4
    c, d = b.weft.Channel(capacity=1, overflow="drop_newest"), b.weft.Channel()

    async def sender(b, w):
        await b.op(w.write(1))
        await b.op(w.write(d.writer()))

    other = d.reader()
    b.run(b.process(sender)(-c), b.process(take)(+c, 1))
    assert isinstance(b.run(b.process(lambda b, r: catch(b, r.read))(other)), Retired)


def test_a_side_that_ended_gives_no_new_end(b):  # rule 2.5
    c = b.weft.Channel("c")
    c.reader().retire()
    with pytest.raises(Retired, match="'c'"):
        c.reader()
    with pytest.raises(Retired, match="'c'"):
        c.writer()  # a write at this end would raise the exception


def test_ends_keep_their_channel_alive(b):  # rule 2.6
    r, w = (lambda c: (c.reader(), c.writer()))(b.weft.Channel("kept"))
    gc.collect()
    assert r.channel.name == "kept"
    assert b.run(b.process(send)(w, 1), b.process(receive)(r))[1] == [1]

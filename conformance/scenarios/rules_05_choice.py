"""Scenarios of section 5 (choice)."""

from __future__ import annotations

import pytest

from conformance.scenarios import scenario
from conformance.scenarios.parts import drain, get, put, settle
from weft import (
    Alternative,
    BadUse,
    Barrier,
    Channel,
    Group,
    Input,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    at,
    now,
    process,
    select,
    skip,
)


@process
async def always(writer, number):
    for value in range(number):
        await writer.write(value)


@scenario("5.1")
async def two_choices_meet_and_exactly_one_guard_commits_on_each_side():
    a, b = Channel("a"), Channel("b")
    left, right = await Parallel(
        either_output(a.writer(), b.writer(), 50), either_input(a.reader(), b.reader(), 50)
    )
    assert left == right, "what the one chose the other chose"


@process
async def either_output(a, b, number):
    return [((await select(Output(a, i), Output(b, i)))[0], i) for i in range(number)]


@process
async def either_input(a, b, number):
    return [await select(a, b) for _ in range(number)]


@scenario("5.2")
async def the_result_is_the_index_and_for_an_input_the_value():
    c, d = Channel("c", capacity=1), Channel("d", capacity=1)
    cw, cr, dw, dr = c.writer(), c.reader(), d.writer(), d.reader()
    await cw.write("value")
    assert await select(after(5), cr) == (1, "value")
    assert await select(cr, Output(dw, "sent")) == (1, None)
    assert await dr.read() == "sent"
    assert await select(cr, skip()) == (1, None)
    assert await select(cr, after(2)) == (1, None)
    assert await select(at(now() + 2), cr) == (0, None)
    assert await select(cr, Barrier(1)) == (1, None)
    assert await select(cr, Output(dw, make=lambda: "made")) == (1, None)
    assert await dr.read() == "made"


@scenario("5.2")
async def a_guard_whose_precondition_is_false_takes_no_part():
    c = Channel("c", capacity=1)
    writer, reader = c.writer(), c.reader()
    await writer.write("ready")
    assert await select(Input(reader).when(False), after(1)) == (1, None)
    assert await select(Input(reader).when(True), after(1).when(False)) == (0, "ready")
    assert await select(Output(writer, 1).when(False), skip()) == (1, None)
    with pytest.raises(BadUse):
        await select(Input(reader).when(False), skip().when(False))


@scenario("5.3")
async def choices_with_an_input_and_an_output_guard_in_each_meet():
    c, d = Channel("c"), Channel("d")
    first, second = await Parallel(
        in_or_out(c.reader(), d.writer(), 40), in_or_out(d.reader(), c.writer(), 40)
    )
    assert first["in"] == second["out"] and first["out"] == second["in"]
    assert first["in"] + first["out"] == 40


@process
async def in_or_out(reader, writer, number):
    done = {"in": 0, "out": 0}
    for _ in range(number):
        index, _value = await select(reader, Output(writer, 1))
        done["in" if index == 0 else "out"] += 1
    return done


@scenario("5.3")
async def three_choices_in_a_ring_each_in_and_out():
    c = [Channel(f"c{i}") for i in range(3)]
    log = []
    async with Group() as group:
        for i in range(3):
            group.start(ring_member(c[i].reader(), c[(i + 1) % 3].writer(), i, log))
    assert len(log) == 2, "exactly one pair meets; the third withdraws by its timeout"
    assert sorted(kind for kind, _ in log) == ["in", "out"]


@process
async def ring_member(reader, writer, number, log):
    index, _ = await select(reader, Output(writer, number), after(10))
    if index < 2:
        log.append(("in" if index == 0 else "out", number))


@scenario("5.4")
async def fair_chooses_a_guard_that_stays_ready_within_n_selects():
    channels = [Channel(f"c{i}", capacity=64) for i in range(5)]
    readers = [c.reader() for c in channels]
    await Parallel(always(c.writer(), 60) for c in channels)
    chosen = [(await select(*readers))[0] for _ in range(50)]
    for begin in range(46):
        assert set(chosen[begin : begin + 5]) == set(range(5))


@scenario("5.4")
async def priority_chooses_the_first_ready_guard():
    channels = [Channel(f"c{i}", capacity=8) for i in range(3)]
    readers = [c.reader() for c in channels]
    writers = [c.writer() for c in channels]
    for _ in range(3):
        await writers[1].write("1")
        await writers[2].write("2")
    chosen = [(await select(*readers, mode="priority"))[0] for _ in range(6)]
    assert chosen == [1, 1, 1, 2, 2, 2]
    await writers[2].write("2")
    await writers[0].write("0")
    assert await select(*readers, mode="priority") == (0, "0")


@scenario("5.4")
async def random_chooses_every_ready_guard_and_no_other():
    channels = [Channel(f"c{i}", capacity=512) for i in range(4)]
    readers = [c.reader() for c in channels]
    writers = [c.writer() for c in channels]
    for writer in writers[:3]:
        for value in range(300):
            await writer.write(value)
    counts = [0] * 4
    for _ in range(300):
        counts[(await select(*readers, mode="random"))[0]] += 1
    assert counts[3] == 0
    assert all(50 < count < 150 for count in counts[:3]), counts  # 100 ± 6 standard deviations


@scenario("5.5")
async def the_same_end_twice_is_two_guards():
    c = Channel("c", capacity=8)
    writer, reader = c.writer(), c.reader()
    for value in range(8):
        await writer.write(value)
    chosen = [await select(reader, reader) for _ in range(8)]
    assert [value for _, value in chosen] == list(range(8))
    assert {index for index, _ in chosen} == {0, 1}


@scenario("5.5", "11.1", "11.2")
async def both_ends_of_one_channel_in_one_select_is_bad_use():
    c = Channel("orders")
    with pytest.raises(BadUse, match="orders"):
        await select(c.reader(), Output(c.writer(), 1))


@scenario("5.5", "11.2")
async def a_select_without_guards_is_bad_use():
    with pytest.raises(BadUse):
        await select()
    with pytest.raises(BadUse):
        await select(Input(Channel("c").reader()).when(False))


@scenario("5.6")
async def a_guard_that_is_to_end_the_select_is_ready_with_its_end_and_names_itself():
    c, d = Channel("c"), Channel("d")
    quiet, ended, writer, _other = c.reader(), d.reader(), d.writer(), c.writer()
    writer.retire()
    with pytest.raises(Retired) as error:
        await select(quiet, Input(ended, ended="raise"))
    assert error.value.guard == 1 and error.value.channel is d


@scenario("5.6")
async def an_ended_guard_competes_in_its_place():
    c, d = Channel("c", capacity=1), Channel("d")
    cw, cr, ended = c.writer(), c.reader(), d.reader()
    d.poison()
    await cw.write("first")
    assert await select(cr, ended, mode="priority") == (0, "first")
    await cw.write("second")
    with pytest.raises(Poisoned) as error:
        await select(ended, cr, mode="priority")
    assert error.value.guard == 0
    assert await cr.read() == "second", "what was not chosen is still there"


@scenario("5.6")
async def a_waiting_select_is_told_of_an_end():
    for ending in ("retire", "poison", "die"):
        c, d = Channel("c"), Channel("d")
        waiting = which_end(c.reader(), d.reader())
        _kept, writer = c.writer(), d.writer()
        async with Group() as group:
            group.start(waiting)
            await settle()
            getattr(writer, ending)()
        assert waiting.result == (
            {"retire": "Retired", "poison": "Poisoned", "die": "PeerDied"}[ending],
            1,
        )


@process
async def which_end(*readers):
    try:
        await select(*readers, ended="raise")
    except (Retired, Poisoned, PeerDied) as error:
        return type(error).__name__, error.guard


@scenario("5.6")
async def an_output_guard_that_has_ended_carries_its_value_back():
    c, d = Channel("c"), Channel("d")
    cw, dw, cr, _dr = c.writer(), d.writer(), c.reader(), d.reader()
    cr.retire()
    with pytest.raises(Retired) as error:
        await select(Output(dw, "d"), Output(cw, "c", ended="raise"))
    assert (error.value.guard, error.value.value) == (1, "c")


@scenario("5.7")
async def a_ready_guard_beats_a_timer_that_has_expired():
    c = Channel("c", capacity=1)
    writer, reader = c.writer(), c.reader()
    await writer.write("ready")
    assert await select(after(-1), reader) == (1, "ready")
    assert await select(after(-1), reader) == (0, None)


@scenario("5.7")
async def skip_is_chosen_only_when_nothing_else_is_ready_but_by_priority_in_its_place():
    c = Channel("c", capacity=1)
    writer, reader = c.writer(), c.reader()
    for mode in ("fair", "random"):
        for _ in range(20):
            await writer.write("ready")
            assert await select(skip(), reader, mode=mode) == (1, "ready")
            assert await select(skip(), reader, mode=mode) == (0, None)
    await writer.write("ready")
    assert await select(skip(), reader, mode="priority") == (0, None)
    assert await select(reader, skip(), mode="priority") == (0, "ready")


@scenario("5.8")
async def an_output_guards_function_is_called_once_after_the_commit_and_not_if_not_chosen():
    c, d = Channel("c"), Channel("d")
    calls = []

    def make(name):
        calls.append(name)
        return name

    dr = d.reader()
    reader = get(c.reader())
    cw, dw = c.writer(), d.writer()
    assert (await select(Output(dw, make=lambda: make("d")), after(1)))[0] == 1
    assert calls == []
    async with Group() as group:
        group.start(reader)
        await settle()
        index, _ = await select(
            Output(dw, make=lambda: make("d")), Output(cw, make=lambda: make("c"))
        )
        assert (index, calls) == (1, ["c"])
    assert reader.result == ["c"] and calls == ["c"]
    assert not dr.closed


@scenario("5.8")
async def if_the_function_raises_the_select_raises_that_and_the_reader_hears_of_a_death():
    c = Channel("c")
    writer = c.writer()
    reader = which_end(c.reader())

    def broken():
        raise ZeroDivisionError

    async with Group() as group:
        group.start(reader)
        await settle()
        with pytest.raises(ZeroDivisionError):
            await select(Output(writer, make=broken))
    assert reader.result == ("PeerDied", 0)


@scenario("5.9")
async def a_standing_alternative_obeys_the_same_rules():
    channels = [Channel(f"c{i}") for i in range(3)]
    readers, kept = [c.reader() for c in channels], [c.writer() for c in channels]
    seen = [[], [], []]
    async with Group() as group:
        with Alternative(*readers) as alternative:
            for c in channels:
                group.start(put(c.writer(), *range(20)))
            for _ in range(60):
                index, value = await alternative.select()
                seen[index].append(value)
    assert seen == [list(range(20))] * 3 and len(kept) == 3


@scenario("5.9")
async def a_standing_alternatives_fairness_is_first_come_first_served():
    channels = [Channel(f"c{i}") for i in range(3)]
    readers = [c.reader() for c in channels]
    async with Group() as group:
        with Alternative(*readers) as alternative:
            kept = [c.writer() for c in channels]
            group.start(put(channels[1].writer(), "first"))
            assert await alternative.select() == (1, "first")
            for i in (2, 0, 1):
                group.start(put(channels[i].writer(), i))
                await settle()
            assert [(await alternative.select())[0] for _ in range(3)] == [2, 0, 1]
            assert len(kept) == 3


@scenario("5.9")
async def a_standing_alternatives_guards_are_switched_on_it():
    c, d = Channel("c"), Channel("d")
    cr, dr = c.reader(), d.reader()
    async with Group() as group:
        with Alternative(cr, dr) as alternative:
            group.start(put(c.writer(), "c"))
            group.start(put(d.writer(), "d"))
            await settle()
            alternative.enable(0, False)
            assert await alternative.select() == (1, "d")
            alternative.enable(0, True)
            alternative.enable(1, False)
            assert await alternative.select() == (0, "c")


@scenario("5.10")
async def a_select_leaves_no_trace_at_the_guards_it_did_not_choose():
    c, d = Channel("c"), Channel("d")
    cw, cr, dw, dr = c.writer(), c.reader(), d.writer(), d.reader()
    assert await select(cr, Output(dw, "d"), after(1)) == (2, None)
    assert (c.stats().waiting_readers, d.stats().waiting_writers) == (0, 0)
    late = drain(cr)
    async with Group() as group:
        group.start(late)
        await settle()
        await cw.write("to the one that waits")
        cw.retire()
    assert late.result == ["to the one that waits"]
    assert (await select(dr, after(1)))[0] == 1, (
        "the value of the guard that was not chosen never moved"
    )


@scenario("5.10", "1.2")
async def a_party_whose_select_has_committed_elsewhere_is_passed_over():
    c, d = Channel("c"), Channel("d")
    cw, dw = c.writer(), d.writer()
    choosing, second = one_select(c.reader(), d.reader()), get(c.reader())
    async with Group() as group:
        group.start(choosing)
        await settle()
        group.start(second)
        await settle()
        await dw.write("d")
        await cw.write("c")
    assert choosing.result == (1, "d") and second.result == ["c"]


@process
async def one_select(*guards):
    return await select(*guards)

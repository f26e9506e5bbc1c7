"""Rules 9.2 and 14.5: the debug mode reports processes that change a value after sending it, and no
others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import errors as weft_errors
from weft._watching import debug as _debug
from weft._watching import observers as _observers
from weft.coroutines import Channel, Output, Parallel, process, run, select, yield_
from weft.observe import Changed, debug


@pytest.fixture
def changes() -> Any:
    found: list[Changed] = []
    debug(True, found.append)
    yield found
    debug(False)
    assert _observers._observers == []


@process
async def collect(r: Any, *more: Any) -> list[Any]:
    return [v async for v in r]


def test_a_buffer_used_again_and_again(b: Any, changes: list[Changed]) -> None:
    """Rule 9.2: the commonest mistake: the sender changes a list that it has sent, and sends the
    list again."""
    c = b.weft.Channel("c", capacity=3)

    async def reuses(b: Any, w: Any) -> None:
        data = [0]
        for i in range(3):
            data[0] = i
            await b.op(w.write(data))

    b.run(b.process(reuses)(c.writer()))
    assert changes and changes[0].sender == "main/reuses"
    assert (changes[0].kind, changes[0].channel) == ("list", "c")
    assert Path(changes[0].file).name == Path(__file__).name
    assert "w.write(data)" in Path(__file__).read_text().splitlines()[changes[0].line - 1]
    assert "send a copy" in str(changes[0])


def test_changed_while_it_waits_in_a_rendezvous(b: Any, changes: list[Changed]) -> None:
    """Rule 9.2: a value may not be changed once its write has begun. In this test a third process
    changes the value while the writer waits."""
    c, gate = b.weft.Channel("c"), b.weft.Channel("gate")
    shared: list[int] = []

    async def writes(b: Any, w: Any) -> None:
        await b.op(w.write(shared))

    async def meddles(b: Any, key: Any) -> None:
        while c.stats().waiting_writers == 0:
            await b.op(b.weft.yield_())
        shared.append(1)
        await b.op(key.write(None))

    async def reads_late(b: Any, r: Any, gate: Any) -> None:
        await b.op(gate.read())
        await b.op(r.read())

    b.run(
        b.process(writes)(c.writer()),
        b.process(meddles)(gate.writer()),
        b.process(reads_late)(c.reader(), gate.reader()),
    )
    assert [x.sender for x in changes] == ["main/writes"]
    noticed = ["before its receiver had it"]
    # On threads, both processes run once the write has committed, so the sender may notice the
    # change first.
    if b.name == "threads":
        noticed.append(
            "while it was under way, noticed by the sender before the end of its process"
        )
    assert changes[0].noticed in noticed


def test_before_the_reader_has_gone_on(changes: list[Changed]) -> None:
    """Rule 9.2: the reader is already waiting, so the write is done immediately; the writer changes
    the object before its next operation."""
    c, other = Channel("c"), Channel("other", capacity=9)

    @process
    async def writes(w: Any, o: Any) -> None:
        await yield_()
        data = {"x": 1}
        await w.write(data)
        data["x"] = 2
        await o.write("next")

    run(collect(c.reader()), writes(c.writer(), other.writer()), collect(other.reader()))
    assert len(changes) == 1 and "before its next write" in changes[0].noticed


LONG_AFTER = """
from weft.coroutines import Channel, process, run
from weft.observe import debug

changes = []
debug(True, changes.append)

@process
async def collect(r):
    return [v async for v in r]

@process
async def writes(w, o):
    data = [1]
    await w.write(data)
    for _ in range(5):
        await o.write("x")
    data.append(2)

c, other = Channel("c"), Channel("other")
run(collect(c.reader()), writes(c.writer(), other.writer()), collect(other.reader()))
assert len(changes) == 1, changes
print(changes[0].noticed)
"""


def test_long_after() -> None:
    """Rule 14.5: the receiver has the value, but only the sender ran. (The test runs a separate
    program, because there must be no other thread.)
    """
    done = subprocess.run(
        [sys.executable, "-c", LONG_AFTER], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert "the end of its process" in done.stdout


def test_a_receiver_may_change_what_it_has(b: Any, changes: list[Changed]) -> None:
    """Rule 14.5: there is no false alarm when a receiver changes the value, passes it on, and
    another receiver changes it."""
    c, d = b.weft.Channel("c"), b.weft.Channel("d", capacity=2)

    async def makes(b: Any, w: Any) -> None:
        for i in range(5):
            await b.op(w.write([i]))

    async def changes_it(b: Any, r: Any, w: Any) -> None:
        async for v in b.each(r):
            v.append("seen")
            await b.op(w.write(v))

    async def changes_again(b: Any, r: Any) -> list[Any]:
        got = []
        async for v in b.each(r):
            v.append("twice")
            got.append(v)
        for v in got:
            v.clear()
        return got

    b.run(
        b.process(makes)(c.writer()),
        b.process(changes_it)(c.reader(), d.writer()),
        b.process(changes_again)(d.reader()),
    )
    assert changes == []


def test_a_receiver_on_another_thread_may_change_it_at_any_time(changes: list[Changed]) -> None:
    """Rule 14.5: a receiver on another thread may change the value while its sender runs."""
    c, other = Channel("c"), Channel("other", capacity=9)
    changed = threading.Event()

    @process
    def changes_it(r: Any) -> None:
        r.read().append("mine")
        changed.set()

    @process
    async def writes(w: Any, o: Any) -> None:
        data = [1]
        await w.write(data)
        assert changed.wait(280)  # this waits without an operation of Weft
        await o.write(1)

    run(changes_it(c.reader()), writes(c.writer(), other.writer()), collect(other.reader()))
    assert changes == []


def test_what_comes_back_is_mine_again(changes: list[Changed]) -> None:
    """Rule 14.5: a value that has been sent back may be changed, and so may an object inside
    another object."""
    outward, back = Channel("there"), Channel("back")

    @process
    async def ping(w: Any, r: Any) -> None:
        data = [0]
        for _ in range(4):
            await w.write(data)
            (data,) = await r.read()
            data.append(1)

    @process
    async def pong(r: Any, w: Any) -> None:
        async for v in r:
            v.append(2)
            await w.write((v,))

    run(ping(outward.writer(), back.reader()), pong(outward.reader(), back.writer()))
    assert changes == []


def test_a_write_that_failed_leaves_the_object(changes: list[Changed]) -> None:
    """Rule 9.2: the value may be changed once its write has failed."""
    c, d = Channel("c"), Channel("d")

    @process
    async def writes(w: Any, keep: Any) -> None:
        data = [1]
        try:
            await w.write(data)
        except weft_errors.Poisoned:
            data.append(2)
        await keep.write(1)

    @process
    async def poisons(r: Any) -> None:
        r.poison()

    run(writes(c.writer(), d.writer()), poisons(c.reader()), collect(d.reader()))
    assert changes == []


def test_guards_that_were_not_chosen_leave_their_objects(changes: list[Changed]) -> None:
    """Rule 5.10: the value of a guard that was not chosen may be changed."""
    c, d = Channel("c"), Channel("d")

    @process
    async def chooses(w: Any, never: Any, keep: Any) -> None:
        sent, kept = [1], [2]
        index, _ = await select(Output(never, kept), Output(w, sent))
        assert index == 1
        kept.append(3)
        await yield_()

    run(chooses(c.writer(), d.writer(), d.reader()), collect(c.reader()))
    assert changes == []


def test_a_chosen_guard_sends(changes: list[Changed]) -> None:
    """Rule 9.2: an output of a select is a write."""
    c = Channel("c", capacity=2)

    @process
    async def chooses(w: Any) -> None:
        sent = [1]
        await select(Output(w, sent))
        sent.append(3)

    run(chooses(c.writer()))
    assert len(changes) == 1


def test_arrays_are_watched_in_place(changes: list[Changed]) -> None:
    c = Channel("c", capacity=2)

    @process
    async def writes(w: Any) -> None:
        a = np.zeros(1000)
        await w.write(a)
        a[500] = 1

    run(writes(c.writer()))
    assert [x.kind for x in changes] == ["ndarray"]


def test_ends_locks_and_generators() -> None:
    """A value that contains an end is compared by the end's identity. `unwatched` names the types
    of values that cannot be pickled."""
    mode = debug(True)
    assert mode is not None
    c, d = Channel("c", capacity=9), Channel("d")

    @process
    async def writes(w: Any, end: Any) -> None:
        await w.write([end])
        await w.write(threading.Lock())
        await w.write([1, (x for x in ())])
        await w.write(3)

    try:
        run(writes(c.writer(), d.writer()))
    finally:
        assert debug(False) is mode
    assert mode.unwatched == {"lock", "list"}
    assert debug(False) is None


def test_results_of_children_may_be_what_was_sent(changes: list[Changed]) -> None:
    """Rule 14.5: a value that returns as the result of a child may be changed."""

    @process
    async def returns(r: Any) -> Any:
        return await r.read()

    @process
    async def writes(w: Any, data: Any) -> None:
        await w.write(data)

    @process
    async def parent() -> None:
        c = Channel("c")
        data: list[int] = []
        _, back = await Parallel(writes(c.writer(), data), returns(c.reader()))
        back.append(1)
        await yield_()

    run(parent())
    assert changes == []


def test_without_a_callback_it_warns_at_the_line_of_the_write() -> None:
    program = """
from weft.coroutines import *
@process
async def a(w):
    x = [1]
    await w.write(x)
    x.append(2)
c = Channel("c", capacity=1)
run(a(c.writer()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"WEFT_DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    assert "<string>:6: WeftWarning: process main/a wrote a list to channel c" in done.stderr
    off = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"WEFT_DEBUG": "0"},
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    assert off.stderr == ""


values = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3), st.booleans(), st.none(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.tuples(inner, inner),
        st.sets(st.integers(), max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(values)
def test_a_fingerprint_is_one_of_the_value(value: Any) -> None:
    assert _debug.is_atom(value) or _debug.fingerprint([value]) == _debug.fingerprint([value])
    holder = [value]
    before = _debug.fingerprint(holder)
    holder.append(1)
    assert _debug.fingerprint(holder) != before


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("cd"), values), max_size=6), st.booleans(), st.integers(0, 2)
)
def test_programs_that_keep_the_rule_are_never_accused(
    sent: list[tuple[str, Any]], change: bool, capacity: int
) -> None:
    """Rule 14.5: random values pass through two channels and a stage that changes them, without a
    report."""
    found: list[Changed] = []
    debug(True, found.append)
    try:
        channels = {k: Channel(k, capacity=capacity) for k in "cd"}
        out = Channel("out")

        @process
        async def writes(ends: Any) -> None:
            for k, v in sent:
                await ends[k].write([v])

        @process
        async def stage(r: Any, w: Any) -> None:
            async for v in r:
                if change:
                    v.append("x")
                await w.write(v)

        run(
            writes({k: c.writer() for k, c in channels.items()}),
            *(stage(c.reader(), out.writer()) for c in channels.values()),
            collect(out.reader()),
        )
    finally:
        debug(False)
    assert found == []


def test_what_a_buffer_has_dropped_is_not_kept_for_ever(monkeypatch):
    """Rule 14.5: no process will take the dropped values, so only the values that are still under
    way are watched."""
    monkeypatch.setattr(_debug, "_MAX_OBJECTS", 20)
    found = []
    mode = debug(True, found.append)
    try:
        c = Channel("c", capacity=2, overflow="drop_oldest")
        out, inp = c.writer(), c.reader()
        for i in range(200):
            value = [i]
            out.write(value)
        assert len(mode._under_way) == 20
        value.append(1)
        assert [inp.read(), inp.read()] == [[198], [199, 1]]
        assert len(mode._under_way) == 18
    finally:
        debug(False)
    assert len(found) == 1

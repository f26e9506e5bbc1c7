"""Rules 10.2, 11.1 and 11.2: mistakes that users make, and the messages that report them. Each
message says what to write instead."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
import warnings
import weakref
from collections import Counter
from pathlib import Path

import pytest

from weft import coroutines, greenlets, threads
from weft.coroutines import BadUse, Channel, Deadlock, Parallel, process, run


@process
async def worker(*ends):
    return len(ends)


@threads.process
def calling(*ends):
    return len(ends)


# --- forgotten calls ------------------------------------------------------------------------------


def starts(how):
    """Returns a function that starts a process that is passed to it in a wrong form."""

    @process
    async def in_a_process(it):
        if how == "Spawn":
            coroutines.Spawn(it)
        else:
            await getattr(coroutines, how)(it)

    return {
        "run": lambda it: run(it),
        "run of two": lambda it: run((), it),
        "threads.Parallel": lambda it: threads.Parallel(it),
        "greenlets.Sequence": lambda it: greenlets.Sequence(it),
        "Group.start": lambda it: start_in_a_group(it),
        "Parallel": lambda it: run(in_a_process(it)),
        "Sequence": lambda it: run(in_a_process(it)),
        "Spawn": lambda it: run(in_a_process(it)),
    }[how]


def start_in_a_group(it):
    with threads.Group() as g:
        g.start(it)


EVERY_START = pytest.mark.parametrize(
    "how",
    [
        "run",
        "run of two",
        "threads.Parallel",
        "greenlets.Sequence",
        "Group.start",
        "Parallel",
        "Sequence",
        "Spawn",
    ],
)


@EVERY_START
def test_the_function_in_place_of_its_call(how):  # rule 11.1
    with pytest.raises(
        BadUse, match=r"<process worker> is not a process yet: call it, worker\(\.\.\.\)"
    ):
        starts(how)(worker)


@EVERY_START
def test_a_plain_coroutine_in_place_of_a_process(how):  # rule 11.1
    async def plain(): ...

    coroutine = plain()
    with pytest.raises(BadUse, match="is not a process: decorate its function with @process"):
        starts(how)(coroutine)
    coroutine.close()


@EVERY_START
@pytest.mark.parametrize("which", ["write", "read", "select", "sleep", "io", "parallel"])
def test_an_operation_in_place_of_a_process(how, which):  # rule 11.1
    made = []

    @process
    # This must be a coroutine process: elsewhere the call would perform the operation immediately.
    async def makes():
        c = Channel("c")
        r, w = c.reader(), c.writer()
        made.append(
            {
                "write": lambda: w.write(1),
                "read": lambda: r.read(),
                "select": lambda: coroutines.select(r),
                "sleep": lambda: coroutines.sleep(1),
                "io": lambda: coroutines.io(len)([]),
                "parallel": lambda: coroutines.Parallel(worker()),
            }[which]()
        )

    run(makes())
    (operation,) = made
    with pytest.raises(BadUse, match="is an operation, not a process: await it in an async"):
        starts(how)(operation)
    if how != "Group.start":  # Group.start takes one process
        with pytest.raises(BadUse, match="in an iterable of processes is an operation"):
            starts(how)([operation])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the operation was never awaited
        made.clear()
        del operation
        gc.collect()


def test_the_function_in_a_list():  # rule 11.1
    with pytest.raises(
        BadUse, match=r"<process worker> in an iterable of processes is not a process yet"
    ):
        run([worker])


def test_what_a_process_has_is_asked_of_its_function():  # rule 11.1
    for name in ("cancel", "done", "ended", "id", "named", "path", "result"):
        with pytest.raises(AttributeError, match=rf"call it first, worker\(\.\.\.\)\.{name}"):
            getattr(worker, name)
    with pytest.raises(AttributeError, match="object has no attribute 'nmaed'"):
        worker.nmaed  # noqa: B018
    assert not hasattr(worker, "result")
    assert worker.__name__ == "worker"
    with pytest.raises(BadUse, match=r"watched.* call it, worker\(\.\.\.\)"):
        coroutines.watched(worker)


def test_a_process_function_that_was_never_made():  # rule 11.1
    """copy, pickle and similar functions make process functions without calling __init__."""
    empty = type(worker).__new__(type(worker))
    with pytest.raises(BadUse, match="is not awaited"):
        empty.__await__()
    with pytest.raises(AttributeError, match="no attribute 'cancel'"):
        empty.cancel  # noqa: B018
    with pytest.raises(TypeError):
        empty()


def test_processes_are_not_awaited():  # rule 11.1
    p = worker()

    @process
    async def awaits():
        with pytest.raises(BadUse, match=r"`await Parallel\(worker\(\.\.\.\)\)` runs it"):
            await p
        with pytest.raises(BadUse, match=r"`await Parallel\(worker\(\.\.\.\)\)` runs a process"):
            await worker
        return await Parallel(p)

    assert run(awaits()) == [0]


# --- channels and their ends ----------------------------------------------------------------------


def test_a_channel_is_used_through_its_ends(b):  # rule 11.2
    c = b.weft.Channel("c")
    r = c.reader()
    for use, says in [
        (lambda: c.read(), r"read on channel 'c' itself: take an end of it, channel\.reader\(\)"),
        (
            lambda: c.write(1),
            r"write on channel 'c' itself: take an end of it, channel\.writer\(\)",
        ),
        (lambda: c.retire(), r"retire on channel 'c' itself: .*reader\(\) or writer\(\)"),
        (lambda: b.weft.retire(r, c), r"retire: expected ends of channels"),
        (lambda: b.weft.poison(c, 5), r"poison: expected channels and ends of channels, got 5"),
        (lambda: b.weft.statistics(r), r"the channel of an end is end\.channel"),
    ]:
        with pytest.raises(BadUse, match=says):
            use()
    assert not r.closed
    with pytest.raises(TypeError):
        b.weft.retire(r, strength=2)
    b.weft.poison(c)


def test_capacity_without_its_name():  # rule 11.2
    with pytest.raises(
        TypeError, match=r"name must be a str, not int; for a buffer: capacity=\.\.\."
    ):
        Channel(5)
    with pytest.raises(TypeError, match=r"Channel\('c', capacity=\.\.\.\)"):
        Channel("c", 5)


@pytest.mark.parametrize(("given", "named"), [("c", "'c'"), (None, r"test_mistakes\.py:\d+")])
def test_a_channel_is_named_alike_everywhere(b, given, named):  # rules 1.7, 11.1
    messages = []

    def told(use):
        with pytest.raises(coroutines.WeftError) as caught:
            use()
        messages.append(str(caught.value))

    c = b.weft.Channel(given)
    r, w = c.reader(), c.writer()
    told(lambda: w.read())
    told(lambda: r.write(1))
    told(lambda: c.read())
    r.retire()
    told(lambda: threads.select(r))
    told(lambda: r.extended())
    told(lambda: threads.select(threads.Output(w, 1)))
    told(lambda: c.reader())
    assert [text for text in messages if not re.search(f"channel {named}", text)] == []


def test_an_extended_read_that_is_never_entered(b):  # rule 11.1
    r = b.weft.Channel("c").reader()
    with pytest.warns(RuntimeWarning, match="extended read on channel 'c' was never entered"):
        r.extended()
        gc.collect()


def test_an_extended_read_is_a_block():  # rules 1.6, 11.1
    @process
    async def awaits(r):
        with pytest.raises(BadUse, match=r"`async with reader\.extended"):
            await r.extended()

    run(awaits(Channel("c").reader()))


def test_an_extended_read_that_was_entered_is_quiet(b):
    c = b.weft.Channel("c")

    async def reads(b, r):
        block = r.extended()
        value = await b.enter(block)
        await b.leave(block)
        return value

    async def writes(b, w):
        await b.op(w.write(7))

    assert b.run(b.process(reads)(+c), b.process(writes)(-c))[0] == 7


def test_a_parallel_of_one_that_is_not_awaited():
    @process
    async def forgets():
        p = worker()
        with pytest.warns(RuntimeWarning, match="Parallel of 1 process was never awaited"):
            Parallel(p)
            gc.collect()
        p._give_up()

    run(forgets())


# --- ends that no process was given ---------------------------------------------------------------


async def reads_all(b, r):
    async for _ in b.each(r):
        pass


async def writes_one(b, w):
    await b.op(w.write(1))


def line_of(text):
    """Returns the place of `text` in this file, as reports name it."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = [n for n, line in enumerate(lines, 1) if text in line and "line_of" not in line]
    assert len(found) == 1
    return f"test_mistakes.py:{found[0]}"


REMEDY = (
    "if something that Weft does not see will use such an end (a C library that calls back, a device): "
    "hold a weft.Outside() meanwhile"
)


def test_a_writer_that_was_kept_outside(b):  # rules 2.2, 10.2
    c = b.weft.Channel("c")
    kept = c.writer()  # the one that is kept
    with pytest.raises(Deadlock) as caught:
        b.run(b.process(reads_all)(+c), b.process(writes_one)(-c))
    where = line_of("# the one that is kept")
    assert caught.value.report.splitlines()[-2:] == [
        f"a writer end of 'c' is still open outside any process (made at {where}): retire it",
        REMEDY,
    ]
    kept.retire()
    d = b.weft.Channel("d")
    assert b.run(b.process(reads_all)(+d), b.process(writes_one)(-d)) == [None, None]


def test_readers_that_were_kept_in_an_object(b):  # rules 2.2, 10.2
    c = b.weft.Channel("c")

    class Keeps:
        ends = (c.reader(), {"more": c.reader()})  # both are kept

    with pytest.raises(Deadlock) as caught:
        b.run(b.process(writes_one)(-c))
    where = line_of("# both are kept")
    assert caught.value.report.splitlines()[-2:] == [
        f"2 reader ends of 'c' are still open outside any process (made at {where}): retire them",
        REMEDY,
    ]
    assert Keeps.ends


def test_a_writer_that_a_process_kept_for_itself():  # rules 2.3, 10.2
    @process
    async def keeps():
        c = Channel("c")
        kept = c.writer()  # in a variable of a process
        await Parallel(reads(c.reader()))
        return kept

    @process
    async def reads(r):
        async for _ in r:
            pass

    with pytest.raises(Deadlock, match=f"made at {line_of('# in a variable of a process')}"):
        run(keeps())


def test_where_a_moved_end_was_made():  # rules 2.4, 10.2
    ends, c = Channel("ends", capacity=1), Channel("c")
    to, of = ends.writer(), ends.reader()
    to.write(c.writer())  # made here, and moved
    kept = of.read()

    @threads.process
    def reads(r):
        for _ in r:
            pass

    with pytest.raises(Deadlock, match=f"made at {line_of('# made here, and moved')}"):
        threads.run(reads(c.reader()))
    assert not kept.closed


def test_a_deadlock_of_processes_alone_says_nothing_of_ends(b):
    c, d = b.weft.Channel("c"), b.weft.Channel("d")

    async def forwards(b, r, w):
        async for v in b.each(r):
            await b.op(w.write(v))

    with pytest.raises(Deadlock) as caught:
        b.run(b.process(forwards)(+c, -d), b.process(forwards)(+d, -c))
    assert "end of" not in caught.value.report


def test_variables_are_not_kept_by_the_search(b):  # rule 2.2
    c = b.weft.Channel("c")
    kept = c.writer()
    with pytest.raises(Deadlock, match="still open outside any process"):
        b.run(b.process(reads_all)(+c))
    assert c.stats().writers == 1
    del kept
    gc.collect()
    assert c.stats().writers == 0


class Thing:
    pass


def test_nothing_is_kept_by_the_search(b):  # rules 2.2, 14.2
    """The search examines all objects, and every variable. The search must not make any of these
    objects exist longer."""
    c = b.weft.Channel("c")
    kept = c.writer()
    box, variable = [Thing()], Thing()
    seen = [weakref.ref(box[0]), weakref.ref(variable)]
    gc.disable()
    try:
        with pytest.raises(Deadlock, match="still open outside any process"):
            b.run(b.process(reads_all)(+c))
        big = [len(o) for o in gc.get_objects() if type(o) is list and any(x is gc for x in o)]
    finally:
        gc.enable()
    assert big == []
    assert not kept.closed
    box.clear()
    del variable
    assert [ref() for ref in seen] == [None] * 2


def test_what_locals_gave_is_left_alone(b):  # rule 14.2
    """The search leaves the dictionary of locals() unchanged. Before Python 3.13 each call of
    locals() returns the same dictionary."""
    c = b.weft.Channel("c")
    kept = c.writer()
    mine = locals()
    with pytest.raises(Deadlock, match="still open outside any process"):
        b.run(b.process(reads_all)(+c))
    assert mine["kept"] is kept


# --- other threads --------------------------------------------------------------------------------


def test_an_end_used_by_two_threads_at_once():  # rule 1.2
    c = Channel("c")
    r, w, got = c.reader(), c.writer(), []
    readers = [threading.Thread(target=lambda: got.append(r.read())) for _ in range(2)]
    for t in readers:
        t.start()
    for value in (1, 2):
        w.write(value)
    for t in readers:
        t.join()
    assert sorted(got) == [1, 2]


# --- objects that are no values -------------------------------------------------------------------

ALONE = """
import copy, multiprocessing, pickle, sys
from weft.coroutines import BadUse, Barrier, Channel, process

@process
async def worker(end): pass

if __name__ == "__main__":
    c = Channel("c")
    ways = [copy.copy, copy.deepcopy, pickle.dumps, lambda x: pickle.dumps([x], 2)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        ways.append(lambda x: pool.apply(repr, (x,)))
        for what in (c, c.reader(), c.writer(), Barrier(2), worker(c.reader())):
            for way in ways:
                try:
                    way(what)
                except BadUse as error:
                    print(type(what).__name__, error)
    assert "weft.processes" not in sys.modules
"""


def test_what_is_copied_or_pickled_by_itself_says_how_it_travels(tmp_path):
    """Rule 11.2 holds in a program that has not imported weft.processes, also from within a
    Pool."""
    file = tmp_path / "alone.py"
    file.write_text(ALONE)
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    output = [line.split(" ", 1) for line in ran.stdout.splitlines()]
    assert Counter(kind for kind, _ in output) == dict.fromkeys(
        ("Channel", "Reader", "Writer", "Barrier", "Process"), 5
    )
    for kind, text in output:
        assert "neither copied nor pickled" in text and "on('processes')" in text
        if kind != "Process":
            assert "from weft.processes import process" in text and "multiprocessing" in text
        if kind in ("Reader", "Writer"):
            assert f"end.channel.{kind.lower()}()" in text


# --- objects that are thrown into an operation ----------------------------------------------------


@pytest.mark.parametrize("which", ["read", "write", "select", "io"])
def test_what_is_thrown_into_an_operation_is_an_exception(which):  # rule 11.1
    """The throw() of an operation behaves like the throw() of a coroutine."""

    @process
    async def throws():
        c = Channel("c")
        r, w = c.reader(), c.writer()
        make = {
            "read": r.read,
            "write": lambda: w.write(1),
            "select": lambda: coroutines.select(r),
            "io": lambda: coroutines.io(len)([]),
        }[which]
        with pytest.raises(TypeError, match=r"throw\(\) takes an exception"):
            make().__await__().throw()
        for no_exception in (3, "text", int, None):
            with pytest.raises(TypeError, match="exceptions must derive from BaseException"):
                make().__await__().throw(no_exception)
        with pytest.raises(KeyError, match="told"):
            make().__await__().throw(KeyError("told"))
        with pytest.raises(KeyError):
            make().__await__().throw(KeyError)
        with pytest.raises(KeyError, match="told"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            make().__await__().throw(KeyError, "told")
        with pytest.raises(KeyError, match="told"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            make().__await__().throw(KeyError, KeyError("told"))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run(throws())

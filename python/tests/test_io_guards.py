"""Section 18: descriptors as guards, in coroutines, greenlets and threads."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref

import os_process_targets_choice as targets
import pytest

import weft
from weft import coroutines as co
from weft import processes as ps
from weft import threads as th
from weft._watching import shares, trace
from weft.coroutines import readable, writable
from weft.errors import BadUse, Cancelled, Deadlock


@pytest.fixture
def ends():
    a, b = socket.socketpair()
    with a, b:
        a.setblocking(False)
        yield a, b


async def passes(b, writer, value):
    await b.op(writer.write(value) if not b.blocking else writer(value))


def test_a_descriptor_a_channel_and_a_time(b, ends):  # rule 18.3
    here, there = ends
    c = b.weft.Channel(capacity=1)

    async def selects(b, r, w):
        select, op = b.weft.select, b.op
        assert await op(select(readable(here), r, b.weft.after(0.001))) == (2, None)
        there.send(b"abc")
        await passes(b, w, 7)
        # The descriptor's guard is not chosen, so no byte is lost.
        assert await op(select(r, readable(here), mode="priority")) == (0, 7)
        assert await op(select(r, readable(here), mode="priority")) == (1, None)
        assert await op(select(r, readable(here), mode="random")) == (1, None)
        assert here.recv(10) == b"abc"
        assert await op(select(readable(here).when(False), writable(here))) == (1, None)
        assert await op(select(readable(here), b.weft.skip())) == (1, None)
        assert await op(writable(here).wait()) is None
        there.shutdown(socket.SHUT_WR)
        assert await op(readable(here).wait()) is None  # the end of the stream is ready
        assert here.recv(10) == b""

    b.run(b.process(selects)(c.reader(), c.writer()))


def test_one_process_waits_and_another_writes(b, ends):  # rules 18.2, 18.4
    here, there = ends

    async def reads(b):
        got = b""
        while len(got) < 300:
            await b.op(readable(here).wait())
            try:
                got += here.recv(100)
            except BlockingIOError:
                continue  # the other process was the first to read
        return got

    async def writes(b):
        for _ in range(30):
            await b.op(writable(there).wait())
            there.send(b"0123456789")
            await b.op(b.weft.yield_())

    got = b.run(b.process(reads)(), b.process(writes)())[0]
    assert got == b"0123456789" * 30


def test_many_wait_for_one_number(b):  # rule 18.4
    reads, writes = os.pipe()

    async def waits(b):
        await b.op(readable(reads).wait())
        return 1

    async def gives(b):
        await b.op(b.weft.yield_())
        os.write(writes, b"x")

    try:
        found = b.run(*(b.process(waits)() for _ in range(5)), b.process(gives)())
        assert found[:5] == [1] * 5
    finally:
        os.close(reads)
        os.close(writes)


def test_awaited():  # rule 18.3
    reads, writes = os.pipe()

    @co.process
    async def waits():
        return await readable(reads)

    @co.process
    async def gives():
        await co.yield_()
        os.write(writes, b"x")

    try:
        assert co.run(waits(), gives())[0] is None
    finally:
        os.close(reads)
        os.close(writes)


def test_an_alternative(b, ends):  # rules 5.9, 18.3
    here, there = ends
    c = b.weft.Channel(capacity=1)

    async def selects(b, r, w):
        alternative = b.weft.Alternative(r, readable(here))
        for _ in range(3):
            there.send(b"x")
            assert await b.op(alternative.select()) == (1, None)
            assert here.recv(10) == b"x"
            await passes(b, w, 5)
            assert await b.op(alternative.select()) == (0, 5)
        alternative.close()

    b.run(b.process(selects)(c.reader(), c.writer()))


def test_a_wait_is_outside(b, ends):  # rule 18.2
    """Until the thread has written, the run is not deadlocked; after the wait, it is deadlocked."""
    here, there = ends
    c = b.weft.Channel()
    keep = c.writer()

    async def waits(b, r):
        await b.op(b.weft.select(r, readable(here)))
        await b.op(writable(here).wait())
        await b.op(r.read() if not b.blocking else r())

    writes = threading.Timer(0.01, there.send, (b"x",))
    writes.start()
    with pytest.raises(Deadlock):
        b.run(b.process(waits)(c.reader()))
    writes.join()
    keep.retire()


def test_observed(b, ends, tmp_path):  # rules 14.6, 18.2
    here, _ = ends

    async def waits(b):
        await b.op(b.weft.select(writable(here), b.weft.after(60)))
        await b.op(writable(here).wait())

    file = tmp_path / "t.jsonl"
    b.run(b.process(waits)(), trace=file)
    events, _ = trace.read(file)
    done = [(e["op"], e.get("kind")) for e in events if e["e"] == "commit"]
    assert done == [("select", "writable"), ("write to a descriptor", None)]
    assert {shares._what(*one) for one in done} == {"io"}


def test_a_limit_and_a_cancellation_take_no_byte(b, ends):  # rules 7.12, 18.1
    here, there = ends

    async def waits(b):
        await b.op(readable(here).wait())

    async def ends_it(b):
        limit = b.weft.move_on_after(0.001)
        await b.enter(limit)
        try:
            await b.op(readable(here).wait())
        except Cancelled as e:
            assert await b.leave(limit, e)
        else:
            raise AssertionError("the wait has not been ended")
        group = b.weft.Group()
        await b.enter(group)
        p = group.start(b.process(waits)())
        await b.op(b.weft.yield_())
        p.cancel()
        await b.leave(group)
        there.send(b"x")
        await b.op(readable(here).wait())
        assert here.recv(10) == b"x"

    b.run(b.process(ends_it)())


def test_ctrl_c_ends_a_wait(b, ends):  # rule 6.7
    here, _ = ends

    async def waits(b):
        await b.op(readable(here).wait())

    rings = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    rings.start()
    with pytest.raises(KeyboardInterrupt):
        b.run(b.process(waits)())
    rings.join()


def test_a_coroutine_that_is_dropped_while_it_waits(ends):  # rule 18.3
    """The guard of the dropped select no longer watches the descriptor, and no longer counts as
    something outside for which the run waits."""
    here, there = ends

    @co.process
    async def waits():
        await co.select(readable(here), co.after(100))

    @co.process
    async def drops():
        async with co.Group() as g:
            p = g.start(waits())
            await co.yield_()
            p.cancel()
        there.send(b"x")
        await readable(here)
        return here.recv(10)

    assert co.run(drops()) == b"x"


def test_ordinary_code(ends):  # rule 18.3: in a thread that is not a process
    here, there = ends
    there.send(b"x")
    assert th.select(readable(here)) == (0, None)
    writes = threading.Timer(0.01, there.send, (b"y",))
    here.recv(1)
    writes.start()
    assert readable(here).wait() is None
    assert here.recv(10) == b"y"
    writes.join()


def test_where_nothing_says_when_it_is_ready(b, ends):  # rule 18.7
    here, _ = ends

    async def waits(b):
        await b.op(writable(here).wait())

    with pytest.raises(BadUse, match="with virtual time nothing says"):
        b.run(b.process(waits)(), clock="virtual")


def test_in_a_check(ends):  # rule 18.7
    here, _ = ends

    @co.process
    async def waits():
        await writable(here)

    report = weft.check(lambda: co.run(waits()))
    assert report.kind == "exception" and "weft check cannot say when" in report.what


def test_beside_an_end_of_another_program():  # rule 18.7
    c = ps.Channel("c")
    _kept = c.writer()
    with ps.Hosts(1) as hosts, pytest.raises(BadUse, match=r"cannot be chosen beside an end"):
        ps.run(targets.waits_beside_a_descriptor.on(hosts)(c.reader()))


def test_in_a_loop_of_asyncio(ends):  # rule 18.7
    here, _ = ends

    async def in_a_task():
        await writable(here)

    with pytest.raises(BadUse, match="a loop of asyncio"):
        asyncio.run(in_a_task())

    @co.process
    async def waits():
        await writable(here)

    async def guest():
        await co.run_async(waits())

    with pytest.raises(BadUse, match="a loop of asyncio"):
        asyncio.run(guest())


def test_in_the_child_of_a_fork(ends):  # rules 11.4, 18.7
    here, _ = ends
    assert writable(here).wait() is None
    child = os.fork()
    if child == 0:
        try:
            writable(here).wait()
        except BadUse as e:
            os._exit(0 if "child of a fork" in str(e) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def in_child(code):
    """Returns the status of a child of a fork that runs `code` and then ends with 0."""
    child = os.fork()
    if child == 0:
        try:
            code()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_of_a_fork_takes_no_event_of_its_parent(ends):  # rules 11.4, 18.4
    """The child sleeps like the parent's thread, while a descriptor of the parent is ready."""
    here, there = ends
    began, go = os.pipe(), os.pipe()
    results = []

    def sleeps():
        c = th.Channel()
        r, w = c.reader(), c.writer()

        def writes():
            os.write(began[1], b"x")
            os.read(go[0], 1)  # the parent's descriptor is ready
            w(1)

        helper = threading.Thread(target=writes)
        helper.start()
        assert r() == 1
        helper.join()

    def forks_and_waits():
        assert th.select(readable(here), th.skip()) == (1, None)  # the thread has an engine
        child = os.fork()
        if child == 0:
            try:
                sleeps()
            finally:
                os._exit(0)
        os.read(began[0], 1)
        # If the child had kept the parent's engine, both OS processes would sleep in it while this
        # thread waits.
        writes = threading.Timer(0.05, there.send, (b"x",))
        ends_it = threading.Timer(0.2, os.write, (go[1], b"x"))
        writes.start()
        ends_it.start()
        results.append(th.select(readable(here), th.after(60)))
        writes.join()
        ends_it.join()
        os.waitpid(child, 0)

    try:
        forks_and_waits()
    finally:
        for fd in began + go:
            os.close(fd)
    assert results == [(0, None)]


def test_a_fork_while_other_threads_wait(ends):  # rules 11.4, 18.7
    """The child can begin an operation, whatever the parent's threads were doing at the fork."""
    here, _ = ends
    stop = threading.Event()

    def looks(s):
        while not stop.is_set():
            th.select(readable(s), th.after(0))
            writable(s).wait()

    def refused():
        with pytest.raises(BadUse, match="child of a fork"):
            readable(here).wait()

    assert writable(here).wait() is None
    threads = [threading.Thread(target=looks, args=(s,)) for s in ends * 2]
    for t in threads:
        t.start()
    try:
        assert [in_child(refused) for _ in range(50)] == [0] * 50
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_a_child_of_a_fork_whose_parent_was_refused(tmp_path):  # rule 18.7
    """A child may wait for a descriptor if its parent has not waited for one, even if the parent
    was refused."""
    code = """
        import os, socket
        from weft.coroutines import process, run, writable
        from weft.errors import BadUse

        a, b = socket.socketpair()

        @process
        async def waits():
            await writable(a)

        try:
            run(waits(), clock="virtual")
        except BadUse:
            child = os.fork()
            if child == 0:
                run(waits())
                os._exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    file = tmp_path / "forks.py"
    file.write_text(textwrap.dedent(code))
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


def test_awaited_outside_a_process(ends):  # rules 11.1, 18.3
    async def waits():
        await readable(ends[0])

    with pytest.raises(BadUse, match=r"await readable\(\) outside a process.*call wait\(\)"):
        waits().send(None)


def test_a_socket_in_the_place_of_its_guard(ends):  # rules 5.2, 18.3
    with pytest.raises(BadUse, match=r"readable\(file\)"):
        th.select(ends[0])


def test_one_guard_twice_and_by_many(b, ends):  # rules 18.3, 18.4
    here, there = ends
    guard = readable(here)

    async def waits(b):
        return await b.op(b.weft.select(guard, guard))

    async def gives(b):
        await b.op(b.weft.yield_())
        there.send(b"x")

    assert b.run(b.process(waits)(), b.process(waits)(), b.process(gives)())[:2] == [(0, None)] * 2


def test_what_is_no_descriptor():  # rule 18.5
    with pytest.raises(TypeError):
        readable("socket")
    with pytest.raises(ValueError, match="negative"):
        readable(-1)
    with pytest.raises(OverflowError):
        readable(2**31)
    s = socket.socket()
    s.close()
    with pytest.raises(ValueError, match="-1"):
        readable(s)
    reads, writes = os.pipe()
    os.close(reads)
    os.close(writes)
    assert th.select(readable(reads)) == (0, None)  # as with poll()


def test_a_guard_keeps_its_file(ends):  # rule 18.5
    class File:
        def fileno(self):
            return ends[1].fileno()

    file = File()
    alive = weakref.ref(file)
    guard = writable(file)
    del file
    assert guard.wait() is None
    assert alive() is not None
    del guard
    gc.collect()
    assert alive() is None

"""Rule 7.5: the block of a group is one of the group's processes: a failure cancels it, and
deadlock detection counts it like a process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from weft.errors import BadUse, Cancelled, Deadlock

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

LIMIT = 280  # seconds after which a program that hangs fails, without stopping the whole room


# --- in ordinary code: each in a program of its own, since a fault would make the program hang ----


def program(text, **how):
    """Runs a program; returns (exit status, output). A program that hangs reports the place."""
    head = (
        "import faulthandler; faulthandler.dump_traceback_later(270, exit=True)\n"
        "from weft.threads import *\nfrom weft.errors import *\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        **how,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_block_that_waits_for_nobody_is_a_deadlock():  # rules 10.1, 10.2
    status, output = program("""
        c = Channel("c"); r, w = c.reader(), c.writer()
        try:
            with Group():
                r.read()
        except Deadlock as e:
            assert [(p.path, p.operation, p.places) for p in e.processes] == [("main", "read", ("'c'",))], e
            assert e.processes[0].at == "<string>:8", e
            assert e.knot == ["main"], e
            print("deadlock")
    """)
    assert (status, output) == (0, "deadlock\n")


def test_a_block_and_a_process_wait_for_each_other():  # rules 10.1, 10.2
    status, output = program("""
        @process
        def turns(r, w):
            r.read(); w.write(1)
        a, b = Channel("a"), Channel("b")
        w, r = a.writer(), b.reader()
        try:
            with Group() as g:
                p = g.start(turns(a.reader(), b.writer()))
                try:
                    r.read()
                finally:  # Cancelled, or Retired if the process let go of its end before
                    print("cleans up")
        except Deadlock as e:
            assert [x.path for x in e.processes] == ["main", "main/turns"], e
            assert p.done
            print("deadlock")
    """)
    assert (status, output) == (0, "cleans up\ndeadlock\n")


def test_a_deadlock_is_raised_though_the_block_goes_on():  # rule 10.1
    status, output = program("""
        c = Channel("c"); r, w = c.reader(), c.writer()
        try:
            with Group():
                try:
                    r.read()
                except Cancelled:
                    pass
        except Deadlock:
            print("deadlock")
    """)
    assert (status, output) == (0, "deadlock\n")


@pytest.mark.parametrize(
    "waits",
    [
        "r.read()",
        "w2.write(1)",
        "sleep(1000)",
        "select(Input(r), Output(w2, 1))",
        "Barrier(2).sync()",
        "Parallel(reads(c.reader()))",
        "list(r)",
        "r.extended().__enter__()",
        "[yield_() for _ in iter(int, 1)]",
    ],
)
def test_a_failure_cancels_a_block_of_ordinary_code(waits):  # rules 7.2, 7.5
    status, output = program(f"""
        @process
        def fails(go):
            go.read()
            raise ValueError("of a member")
        @process
        def reads(r):
            r.read()
        c, d, start = Channel(), Channel(), Channel()
        r, w, w2, r2 = c.reader(), c.writer(), d.writer(), d.reader()
        try:
            with Group() as g:
                g.start(fails(start.reader()))
                start.writer().write(None)
                try:
                    {waits}
                except Cancelled:
                    print("block cancelled")
                    raise
        except ValueError as e:
            print(e)
        with Group() as g:
            g.start(reads(c.reader()))
            w.write(1)
            print("and no more")
    """)
    assert (status, output) == (0, "block cancelled\nof a member\nand no more\n")


def test_a_spawned_failure_cancels_the_block():  # rules 7.4, 7.5
    status, output = program("""
        @process
        def fails():
            raise ValueError("spawned")
        c = Channel(); r, w = c.reader(), c.writer()
        try:
            with Group():
                Spawn(fails())
                r.read()
        except ValueError as e:
            print(e)
    """)
    assert (status, output) == (0, "spawned\n")


def test_an_exception_cancels_what_was_spawned():  # rule 7.4
    status, output = program("""
        @process
        def reads(r):
            r.read()
        c = Channel(); w = c.writer()
        try:
            with Group():
                Spawn(reads(c.reader()))
                raise ValueError("of the block")
        except ValueError as e:
            print(e)
    """)
    assert (status, output) == (0, "of the block\n")


def test_ctrl_c_reaches_a_block_that_waits():
    status, output = program("""
        import os, signal
        @process
        def interrupts(w):
            sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            w.write(1)
            sleep(1000)
        c = Channel()
        try:
            with Group() as g:
                g.start(interrupts(c.writer()))
                for _ in c.reader(): pass
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert status == 0, output
    assert output.startswith("interrupted\n") and "weft: interrupted" in output


def test_leaving_by_an_exception_is_no_deadlock():  # rule 7.5
    """The exception of the block is raised, whatever the processes of the group are doing at that
    moment."""
    status, output = program("""
        import sys
        @process
        def forwards(r, w):
            for v in r:
                w.write(v)
        @process
        def waits(r):
            try:
                r.read()
            finally:
                yield_()
        sys.setswitchinterval(1e-6)
        for turn in range(400):
            cs = [Channel() for _ in range(4)]
            b = Barrier(2)
            kept = cs[0].writer()
            try:
                with Group() as g:
                    for k in range(3):
                        g.start(forwards(cs[k].reader(), cs[k + 1].writer()))
                    g.start(waits(cs[3].reader()))
                    Spawn(waits(cs[0].reader()))
                    if turn % 3 == 1: kept.write(1)
                    if turn % 3 == 2: yield_()
                    raise LookupError(turn)
            except LookupError:
                pass
        print("done")
    """)
    assert (status, output) == (0, "done\n")


# --- in any process -------------------------------------------------------------------------------


async def _fails(b, error):
    raise error


async def _patient(b, r):
    await b.op(r.read())


def in_a_block(b, block):
    """Runs a process in which `block(b, group)` is the body of a group. Returns the result of the
    process."""

    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        try:
            await block(b, g)
        except BaseException as error:
            if not await b.leave(g, error):
                raise
        else:
            await b.leave(g)

    return b.run(b.process(main)(), clock="virtual")


def test_a_failure_cancels_the_block_of_a_process(b):  # rules 7.2, 7.5
    c, log = b.weft.Channel(), []
    kept = c.writer()

    async def block(b, g):
        r = c.reader()
        g.start(b.process(_fails)(ValueError("of a member")))
        try:
            await b.op(r.read())
        except Cancelled:
            log.append("cancelled")
            raise

    with pytest.raises(ValueError, match="of a member") as caught:
        in_a_block(b, block)
    assert log == ["cancelled"] and not kept.closed
    assert not hasattr(caught.value, "exceptions")


def test_what_the_block_raises_when_it_is_cancelled_is_raised_too(b):  # rule 7.2
    c = b.weft.Channel()
    kept = c.writer()

    async def block(b, g):
        g.start(b.process(_fails)(ValueError("of a member")))
        try:
            await b.op(c.reader().read())
        except Cancelled:
            raise LookupError("of the block") from None

    with pytest.raises(BaseExceptionGroup) as caught:
        in_a_block(b, block)
    assert sorted(type(e).__name__ for e in caught.value.exceptions) == [
        "LookupError",
        "ValueError",
    ]
    assert not kept.closed


def test_a_block_that_never_met_the_request_leaves_none(b):  # rule 6.1
    """Both the failure and the request belong to the group, so operations after the block are not
    cancelled."""

    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        p = g.start(b.process(_fails)(ValueError("of a member")))
        while not p.done:
            try:
                await b.op(b.weft.yield_())
            except Cancelled:
                break  # the cancellation was met here
        with pytest.raises(ValueError, match="of a member"):
            await b.leave(g)
        await b.op(b.weft.sleep(1))
        return "went on"

    assert b.run(b.process(main)(), clock="virtual") == "went on"


def test_an_inner_block_leaves_the_request_of_the_outer(b):  # rule 7.5
    log = []

    async def waits_then_fails(b, r, error):
        await b.op(r.read())
        raise error

    async def main(b):
        go, c = b.weft.Channel(), b.weft.Channel()
        kept = c.writer()
        outer, inner = b.weft.Group(), b.weft.Group()
        await b.enter(outer)
        try:
            outer.start(b.process(waits_then_fails)(go.reader(), ValueError("outer")))
            await b.enter(inner)
            try:
                inner.start(b.process(_patient)(c.reader()))
                await b.op(go.writer().write(None))
                await b.op(c.reader().read())
            except Cancelled as error:
                log.append("inner block")
                await b.leave(inner, error)
                raise
        except Cancelled as error:
            log.append("outer block")
            await b.leave(outer, error)
        kept.retire()

    with pytest.raises(ValueError, match="outer"):
        b.run(b.process(main)(), clock="virtual")
    assert log == ["inner block", "outer block"]


def test_a_cancelled_owner_ends_quietly(b):  # rule 6.5
    """The owner is cancelled from outside and not by its group. No process has failed, so nothing
    is raised.
    """
    c = b.weft.Channel()
    kept = c.writer()

    async def owner(b, r):
        g = b.weft.Group()
        await b.enter(g)
        try:
            g.start(b.process(_patient)(c.reader()))
            await b.op(r.read())
        except BaseException as error:
            await b.leave(g, error)
            raise

    async def main(b):
        g = b.weft.Group()
        await b.enter(g)
        p = g.start(b.process(owner)(c.reader()))
        await b.op(b.weft.yield_())
        p.cancel()
        await b.leave(g)
        return p.done and not p.failed if hasattr(p, "failed") else p.done

    assert b.run(b.process(main)())
    assert not kept.closed


def test_a_block_in_a_process_deadlocks(b):  # rule 10.1
    c = b.weft.Channel("c")
    kept = c.writer()

    async def block(b, g):
        await b.op(c.reader().read())

    with pytest.raises(Deadlock) as caught:
        in_a_block(b, block)
    assert [x.operation for x in caught.value.processes] == ["read"]
    assert not kept.closed


def test_leaving_what_was_not_entered(b):  # rule 11.1
    async def main(b):
        with pytest.raises(BadUse, match="not open"):
            await b.leave(b.weft.Group())

    b.run(b.process(main)())

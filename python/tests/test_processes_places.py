"""A reader that waits in this program lends its place to the writer in another OS process (WIRE.md
6.6). Apart from the speed, the program of the reader notices no difference.

Each test starts interpreters.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

import os_process_targets_places as targets
import pytest

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import Cancelled, Channel, Parallel, PeerDied, ProcessDied, Retired


async def _asks(out: Any, inp: Any, n: int) -> list[int]:
    got = []
    for value in range(n):
        await out.write(value)
        got.append(await inp.read())
    return got


def _blocks(out: Any, inp: Any, n: int) -> list[int]:
    got = []
    for value in range(n):
        out.write(value)
        got.append(inp.read())
    return got


ASKS = {
    "coroutines": co.process(_asks),
    "greenlets": gr.process(_blocks),
    "threads": th.process(_blocks),
}


@pytest.mark.parametrize("kind", list(ASKS))
def test_there_and_back(kind: str) -> None:
    c, d = Channel("c"), Channel("d")
    asked = ASKS[kind](c.writer(), d.reader(), 500)
    assert Parallel(asked, targets.answers(c.reader(), d.writer()))[0] == list(range(1, 501))
    assert d.stats().transfers == 500


def test_a_lender_is_not_counted_as_one_that_waits() -> None:  # rule 14.8
    c, d = Channel("c"), Channel("d")
    seen = []

    @co.process
    async def asks(out: Any, inp: Any) -> None:
        for value in range(20):
            await out.write(value)
            await inp.read()
        seen.append(d.stats())

    Parallel(asks(c.writer(), d.reader()), targets.answers(c.reader(), d.writer()))
    assert (seen[0].waiting_readers, seen[0].waiting_writers) == (0, 0)


@co.process
async def paces(c: Any, go: Any) -> None:
    """Lets the writer write while the reader waits: the message which reports that the reader waits
    is sent after the place has been lent.
    """
    for value in range(3):
        while c.stats().waiting_readers == 0:
            await co.yield_()
        await go.write(value)


def _pids(inp: Any) -> int:
    pid, *others = [inp.read() for _ in range(3)]
    assert others == [pid, pid]
    return pid


def _continue_once_stopped(pid: int) -> None:
    """Continues the process once it has stopped. An earlier signal would be lost, and the process
    would remain stopped forever."""
    # The OS process was cancelled first, and has ended.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        os.kill(pid, signal.SIGCONT)


def test_a_limit_of_time_does_not_wait_for_a_writer_that_is_stopped() -> None:  # rule 7.12
    c, go = Channel("c"), Channel("go")

    @th.process
    def reads(inp: Any) -> Any:
        pid = _pids(inp)
        try:
            with pytest.raises(TimeoutError), th.timeout(0.05):
                inp.read()
        finally:
            _continue_once_stopped(pid)
        return inp.read()

    stops = targets.stops_itself(go.reader(), c.writer())
    assert Parallel(reads(c.reader()), paces(c, go.writer()), stops)[0] == "goes on"


def test_a_choice_does_not_wait_for_it_either() -> None:  # rule 5.7
    c, go = Channel("c"), Channel("go")

    @co.process
    async def reads(inp: Any) -> Any:
        pid, *_ = [await inp.read() for _ in range(3)]
        which, _ = await co.select(inp, co.after(0.05))
        _continue_once_stopped(pid)
        return which, await inp.read()

    stops = targets.stops_itself(go.reader(), c.writer())
    assert Parallel(reads(c.reader()), paces(c, go.writer()), stops)[0] == (1, "goes on")


def test_a_reader_that_is_cancelled_waits_for_the_writers_program_alone() -> None:  # wire 6.6
    """The writer's program is stopped. Once that program continues, the reader leaves, and the
    writer learns that there is no reader.
    """
    c, cancels, go = Channel("c"), Channel("cancels"), Channel("go")
    pids, left = [], threading.Event()

    @th.process
    def reads(inp: Any, ready: Any) -> None:
        pids.append(_pids(inp))
        ready.write(None)
        try:
            inp.read()
        except Cancelled:
            left.set()
            raise

    @th.process
    def fails(ready: Any) -> None:
        ready.read()
        raise LookupError("so all others are cancelled")

    def goes_on() -> None:
        while not pids:
            pass
        left.wait(0.2)  # a reader that is cancelled before it waits leaves immediately
        _continue_once_stopped(pids[0])

    thread = threading.Thread(target=goes_on)
    thread.start()
    with pytest.raises(LookupError):
        Parallel(
            reads(c.reader(), cancels.writer()),
            fails(cancels.reader()),
            paces(c, go.writer()),
            targets.stops_itself(go.reader(), c.writer(), last=False),
        )
    thread.join()
    assert left.is_set()


def test_what_was_written_before_the_writer_was_killed_is_read() -> None:  # rules 4.5, 6.4
    for n in (0, 1, 2, 3, 10):
        c = Channel("c")
        got: list[int] = []

        @th.process
        def reads(inp: Any, got: list[int] = got) -> None:
            with pytest.raises(PeerDied):
                while True:
                    got.append(inp.read())

        with pytest.raises(ProcessDied):
            Parallel(reads(c.reader()), targets.dies(c.writer(), n))
        assert got == list(range(n))


def test_poison_from_here_ends_the_read_and_the_writes() -> None:  # rule 3.1
    c, d = Channel("c"), Channel("d")

    @th.process
    def asks(out: Any, inp: Any) -> None:
        for value in range(50):
            out.write(value)
            assert inp.read() == value + 1
        out.retire()
        with pytest.raises(Retired):
            inp.read()

    Parallel(asks(c.writer(), d.reader()), targets.answers(c.reader(), d.writer()))


def test_a_limit_of_time_does_not_wait_for_an_interpreter_that_is_busy() -> None:  # rule 7.12
    c, go = Channel("c"), Channel("go")

    @th.process
    def reads(inp: Any) -> tuple[int, Any]:
        timeouts = 0
        assert [inp.read() for _ in range(3)] == [0, 1, 2]
        while True:
            try:
                with th.timeout(0.001):
                    return timeouts, inp.read()
            except TimeoutError:
                timeouts += 1

    busy = targets.keeps_the_lock(go.reader(), c.writer(), 1.0)
    timeouts, last = Parallel(reads(c.reader()), paces(c, go.writer()), busy)[0]
    assert last == "late" and timeouts > 1

"""A signal's handler that uses Weft while the main thread is in an operation (rules 11.2, 12.1)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import os_process_targets as targets
import pytest

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import BadUse, Channel, Executor, statistics


@th.process
def returns() -> int:
    return 1


def reads(inp: Any) -> Any:
    return inp.read()


@co.process
async def awaits(inp: Any) -> Any:
    return await inp.read()


def in_a_block(inp: Any) -> Any:
    with th.Group():
        return inp.read()


WHO: dict[str, Callable[[Any], Any]] = {
    "ordinary code": reads,
    "a block": in_a_block,
    "a run of coroutines": lambda inp: co.run(awaits(inp)),
    "a run of greenlets": lambda inp: th.run(gr.process(reads)(inp)),
    "a run of threads": lambda inp: th.run(th.process(reads)(inp)),
}


def handled(who: Callable[[Any], Any], does: Callable[[], Any]) -> Any:
    """Calls `does` in a handler that interrupts a read on the main thread, and returns its outcome.
    The read continues."""
    c = Channel("c")
    out, inp = c.writer(), c.reader()
    received: list[Any] = []
    done = threading.Event()

    def handler(*_: Any) -> None:
        try:
            received.append(does())
        except BaseException as error:
            received.append(error)
        done.set()

    def sends() -> None:
        while not statistics(c).waiting_readers:
            os.sched_yield()
        os.kill(os.getpid(), signal.SIGUSR1)
        done.wait()
        out.write("gone on")

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=sends)
    sender.start()
    try:
        assert who(inp) == "gone on"
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    return received[0]


def enters() -> None:
    with th.Group():
        pass


OPERATIONS: dict[str, Callable[[], Any]] = {
    "write": lambda: Channel("d", capacity=1).writer().write(1),
    "read_many": lambda: Channel("d", capacity=1).reader().read_many(1),
    "select": lambda: th.select(th.skip()),
    "sync": lambda: th.Barrier(1).sync(),
    "sleep": lambda: th.sleep(0),
}
RUNS: dict[str, Callable[[], Any]] = {
    "run": lambda: th.run(returns()),
    "Parallel": lambda: th.Parallel(returns(), returns()),
    "Group": enters,
}


@pytest.mark.parametrize("what", OPERATIONS)
@pytest.mark.parametrize("who", WHO)
def test_an_operation_there_is_bad_use_that_names_the_handler(who: str, what: str) -> None:
    """The message must name the handler. In an earlier version the message blamed a finaliser."""
    wrong = handled(WHO[who], OPERATIONS[what])
    assert type(wrong) is BadUse
    assert "(a signal's handler ran there): do it in another thread, or once" in str(wrong)


@pytest.mark.filterwarnings("ignore:process returns was made and never started")
@pytest.mark.parametrize("what", RUNS)
@pytest.mark.parametrize("who", WHO)
def test_a_run_there(who: str, what: str) -> None:  # rule 11.2
    """In a handler that interrupts a process, a run is bad use; a handler that interrupts ordinary
    code may run a network."""
    received = handled(WHO[who], RUNS[what])
    if who == "ordinary code":
        assert received == {"run": 1, "Parallel": [1, 1], "Group": None}[what]
    else:
        assert type(received) is BadUse
        assert "(a signal's handler ran there): " in str(received)


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(1) as one:
        yield one


@pytest.mark.parametrize("who", WHO)
def test_an_executor_may_be_used_there(pool: Executor, who: str) -> None:  # rule 12.1
    def uses() -> Any:
        return [pool.submit(targets.power, 3).result(), *pool.map(targets.power, [1, 2])]

    assert handled(WHO[who], uses) == [9, 1, 4]

"""Signals whose handlers raise while tasks of asyncio wait, and loops that are closed too early
(SEMANTICS.md, rules 6.7 and 13.4)."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from children import child, until_asleep

import weft._backends.asyncio
from weft.coroutines import Channel, Group, Parallel, after, process, run, run_async, select


class Ended(SystemExit):  # sys.exit() raises a SystemExit too; asyncio swallows other exceptions
    pass


@pytest.fixture
def raising() -> Iterator[None]:
    """Makes SIGUSR2 raise Ended where Python handles it."""

    def handler(*_: object) -> None:
        raise Ended

    before = signal.signal(signal.SIGUSR2, handler)
    yield
    signal.signal(signal.SIGUSR2, before)


async def turns(n: int) -> None:
    for _ in range(n):
        await asyncio.sleep(0)


@process
async def reads(r: Any) -> None:
    await r.read()


def left(*channels: Channel[Any]) -> list[tuple[int, ...]]:
    gc.collect()
    gc.collect()  # frees the objects that the task's finaliser has dropped
    run(nothing())  # a finaliser's retirement waits for the next operation (12.2)
    found = [c.stats() for c in channels]
    return [(s.readers, s.writers, s.waiting_readers, s.waiting_writers) for s in found]


@process
async def nothing() -> None:
    pass


# -------------------------------------------------------------------------- in methods of the loop


class Loop(asyncio.SelectorEventLoop):
    """A loop in which a signal arrives when the first callback that `at` accepts is scheduled: at
    such a moment asyncio's loop runs Python code.
    """

    at: Callable[[Any], bool] | None = None

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        if self.at is not None and self.at(callback):
            self.at = None
            signal.raise_signal(signal.SIGUSR2)
        return super().call_soon(callback, *args, context=context)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.run_until_complete(made.shutdown_asyncgens())
    made.close()


@pytest.mark.usefixtures("raising")
def test_a_handler_that_raises_as_a_task_is_told_loses_no_wake_up(loop: Loop) -> None:
    """A future that a task awaits becomes done before its callback is scheduled. An exception
    between these two steps would make the task wait forever.
    """
    c = Channel[int]()
    r, w = c.reader(), c.writer()

    async def read() -> int:
        return await r.read()

    async def write() -> None:
        await w.write(5)

    reader = loop.create_task(read())
    loop.run_until_complete(turns(2))
    loop.at = lambda callback: getattr(callback, "__self__", None) is reader
    writer = loop.create_task(write())
    with pytest.raises(Ended):
        loop.run_until_complete(turns(3))
    assert loop.at is None  # the signal has arrived
    loop.run_until_complete(turns(3))
    assert reader.done() and reader.result() == 5
    assert writer.done()


@pytest.mark.usefixtures("raising")
def test_a_handler_that_raises_as_a_guest_is_scheduled_loses_no_turn(loop: Loop) -> None:
    c = Channel[int]()
    w = c.writer()

    @process
    async def takes(r: Any) -> int:
        return int(await r.read())

    network = loop.create_task(run_async(takes(c.reader())))
    loop.run_until_complete(turns(5))

    async def write() -> None:
        await w.write(6)

    loop.at = lambda callback: "weft_turn" in repr(callback)
    loop.create_task(write())
    with pytest.raises(Ended):
        loop.run_until_complete(turns(5))
    assert loop.at is None
    assert loop.run_until_complete(network) == 6


@pytest.mark.usefixtures("raising")
def test_a_handler_that_raises_as_a_future_is_cancelled_loses_no_cancellation(loop: Loop) -> None:
    """`task.cancel()` of a process that awaits a future: the future is cancelled, and its callback
    must still be called."""
    future = loop.create_future()
    tasks = []

    @process
    async def awaits() -> None:
        tasks.append(asyncio.current_task())
        await future

    network = loop.create_task(run_async(awaits()))
    loop.run_until_complete(turns(5))
    loop.at = lambda callback: "weft_wakeup" in repr(callback)
    loop.call_soon(tasks.pop().cancel)  # type: ignore[union-attr]
    with pytest.raises(Ended):
        loop.run_until_complete(turns(3))
    assert loop.at is None
    # The only process of the run has ended quietly, and the run raises that end (rule 7.1).
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(network)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Restores the handler of Ctrl-C: asyncio's handler stays if its runner's main task is left
    unfinished (python/docs/asyncio.md, Limits)."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("raising", "ctrl_c")
@pytest.mark.parametrize("method", ["__init__", "_end"])
def test_a_handler_that_raises_in_the_task_of_a_process_is_heard(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    before = getattr(weft._backends.asyncio.ProcessTask, method)
    numbers: list[int] = []

    def disturbed(self: Any, *args: Any) -> None:
        if not numbers:
            numbers.append(1)
            signal.raise_signal(signal.SIGUSR2)
        before(self, *args)

    monkeypatch.setattr(weft._backends.asyncio.ProcessTask, method, disturbed)
    c = Channel[int]()
    with pytest.raises(Ended):
        run(reads(c.reader()), writes(c.writer()), host="asyncio")
    assert numbers
    assert left(c) == [(0, 0, 0, 0)]


@process
async def writes(w: Any) -> None:
    await w.write(1)
    for _ in range(100):  # the loop runs Python code, in which signals are handled
        await asyncio.sleep(0)


# ---------------------------------------------------------------- where a task waits for a network


class Interrupted:
    """Awaits a coroutine. Once the coroutine waits, throws `errors` into it, one after the
    other."""

    def __init__(self, coroutine: Any, *errors: BaseException) -> None:
        self.coroutine, self.errors = coroutine, errors

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            waits = self.coroutine.send(None)
            for error in self.errors:
                waits._asyncio_future_blocking = False
                for _ in range(3):
                    yield
                waits = self.coroutine.throw(error)
            while True:
                yield waits
                waits = self.coroutine.send(None)
        except StopIteration as stop:
            return stop.value


def test_an_exception_in_whoever_waits_for_a_network_comes_out_once_it_has_ended() -> None:
    c = Channel[int]()
    events = []

    @process
    async def slow(r: Any) -> None:
        try:
            await r.read()
        finally:
            await asyncio.sleep(0)  # the loop still serves the task
            events.append("cleaned up")

    async def main() -> None:
        try:
            await Interrupted(run_async(slow(c.reader())), KeyboardInterrupt())
        except KeyboardInterrupt:
            events.append("came out")

    w = c.writer()
    asyncio.run(main())
    assert events == ["cleaned up", "came out"]
    w.retire()
    assert left(c) == [(0, 0, 0, 0)]


def test_at_the_second_exception_there_is_no_waiting() -> None:
    c = Channel[int]()

    @process
    async def stays(r: Any) -> None:
        try:
            await r.read()
        finally:
            await asyncio.sleep(1000)

    async def main() -> None:
        with pytest.raises(Ended):
            await Interrupted(run_async(stays(c.reader())), KeyboardInterrupt(), Ended())

    w = c.writer()
    asyncio.run(main())
    w.retire()
    assert left(c) == [(0, 0, 0, 0)]


def test_a_failure_while_it_ends_does_not_hide_the_exception() -> None:
    @process
    async def fails(r: Any) -> None:
        try:
            await r.read()
        finally:
            raise ValueError("in the clean-up")

    async def main() -> None:
        c = Channel[int]()
        w = c.writer()
        with pytest.raises(KeyboardInterrupt) as caught:
            await Interrupted(run_async(fails(c.reader())), KeyboardInterrupt())
        assert isinstance(caught.value.__context__, ValueError)
        w.retire()

    asyncio.run(main())


# ----------------------------------------------------------------- loops that are closed too early


@pytest.mark.usefixtures("raising")
def test_what_is_raised_as_a_network_is_made_gives_it_up(loop: Loop) -> None:
    """The guest's first turn is scheduled, but the task that should wait for the guest never
    waits."""
    c = Channel[int]()
    w = c.writer()
    loop.at = lambda callback: "weft_turn" in repr(callback)
    with pytest.raises(Ended):
        loop.run_until_complete(run_async(reads(c.reader())))
    assert loop.at is None
    assert c.stats().readers == 0
    loop.run_until_complete(turns(3))
    w.retire()
    assert left(c) == [(0, 0, 0, 0)]


def test_a_network_that_nobody_waits_for_is_given_up_as_its_loop_is_closed() -> None:
    c = Channel[int]()
    w = c.writer()

    async def leaves() -> None:
        weft._backends.asyncio._native.Guest((reads(c.reader()),), False)
        await turns(3)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leaves())
    assert c.stats().waiting_readers == 1
    loop.close()
    assert c.stats().waiting_readers == 0
    w.retire()
    assert left(c) == [(0, 0, 0, 0)]


def test_a_network_whose_loop_was_closed_is_given_up_with_its_task() -> None:
    """The guest refers to the task that waits for it only as long as the loop can run that task."""
    c = Channel[int]()
    w = c.writer()
    loop = asyncio.new_event_loop()
    task = loop.create_task(run_async(reads(c.reader())))
    loop.run_until_complete(turns(3))
    gc.collect()
    assert c.stats().waiting_readers == 1  # an idle reader stays
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task, loop
    w.retire()
    assert left(c) == [(0, 0, 0, 0)]


def test_so_is_the_block_of_a_group() -> None:
    c, d = Channel[int](), Channel[int]()
    w, v = c.writer(), d.writer()

    async def block() -> None:
        async with Group() as g:
            g.start(reads(c.reader()))
            await select(d.reader(), after(1000))

    loop = asyncio.new_event_loop()
    task = loop.create_task(block())
    loop.run_until_complete(turns(3))
    assert c.stats().waiting_readers == d.stats().waiting_readers == 1
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task, loop
    w.retire()
    v.retire()
    assert left(c, d) == [(0, 0, 0, 0)] * 2


def test_a_task_that_is_owed_a_cancellation_keeps_no_closed_loop() -> None:
    import weakref

    class Own(asyncio.SelectorEventLoop):
        pass

    loop = Own()

    async def owed() -> None:
        weft._backends.asyncio._owe()

    loop.run_until_complete(owed())
    seen = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert seen() is None


INTERRUPTED = """
import asyncio, sys
from weft.coroutines import Channel, Parallel, process, sleep

@process
async def idles():  # else it is a deadlock (rule 13.6)
    await sleep(600)

@process
async def reader(r):
    try:
        await r.read()
    finally:
        print("cleaned up", flush=True)

async def main():
    c = Channel("orders")
    keep = c.writer()
    print("ready", flush=True)
    await Parallel(reader(c.reader()), reader(c.reader()), idles())

{start}
"""


@pytest.mark.parametrize(
    "start",
    ["asyncio.run(main())", "asyncio.new_event_loop().run_until_complete(main())"],
)
def test_ctrl_c_says_where_each_process_of_a_guest_was(start: str) -> None:  # rule 6.7
    with child("-c", INTERRUPTED.format(start=start)) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == "ready\n"
        until_asleep(p.pid)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate()
    # otherwise asyncio leaves its loop immediately, with the task unfinished
    if "asyncio.run" in start:
        assert out == "cleaned up\n" * 2
    assert err.count("weft: interrupted; the processes were:") == 1
    for n in (0, 1):
        assert f"main/reader[{n}]: read 'orders' at <string>:12" in err
    assert "KeyboardInterrupt" in err
    assert p.returncode != 0


OWN = """
import signal
def own(*_):
    print("own", flush=True)
    ends()
signal.signal(signal.SIGINT, own)
"""
THAT_ENDS_IT = """
    global ends
    idle, loop = idles(), asyncio.get_running_loop()
    ends = lambda: loop.call_soon_threadsafe(lambda: (keep.retire(), idle.cancel()))
"""


def test_a_program_s_own_handler_of_ctrl_c_is_its_own_under_asyncio() -> None:  # rule 6.7
    text = (
        INTERRUPTED.replace('    print("ready"', f'{THAT_ENDS_IT}    print("ready"')
        .replace("idles())", "idle)")
        .format(start="asyncio.run(main())")
    )
    with child("-c", OWN + text) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == "ready\n"
        until_asleep(p.pid)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate()
    assert out.splitlines() == ["own", "cleaned up", "cleaned up"]
    assert err == ""
    assert p.returncode == 0


def test_the_handler_of_ctrl_c_is_given_back() -> None:  # rule 6.7
    before = signal.getsignal(signal.SIGINT)
    seen = []

    async def main() -> None:
        during = signal.getsignal(signal.SIGINT)
        await Parallel(nothing())
        seen.append(signal.getsignal(signal.SIGINT) == during)

    asyncio.run(main())
    assert seen == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_task_that_its_loop_drops_leaves_no_handler_of_a_runner_that_has_gone():  # rules 6.7, 13.5
    async def waits() -> None:
        c = Channel()
        keep = c.writer()

        @process
        async def reads(r: Any) -> None:
            await r.read()

        await run_async(reads(c.reader()))
        keep.retire()

    runner = asyncio.Runner() if hasattr(asyncio, "Runner") else None
    if runner is None:
        return  # in 3.10, asyncio sets no handler
    tasks: list[Any] = []

    async def starts() -> None:
        tasks.append(waits())
        tasks[0].send(None)  # the task waits for its network, and no loop drives the task further

    try:
        runner.run(starts())
    finally:
        runner.close()
    tasks.pop().close()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


DROPPED = """
import asyncio, gc, signal, threading
import weft._backends.asyncio
from weft.coroutines import Channel, process, run_async

signal.signal(signal.SIGINT, signal.default_int_handler)
saying = weft._backends.asyncio._saying
kept = []

@process
async def reads(r):
    await r.read()

async def waits():
    c = Channel("c")
    kept.append(c.writer())
    await run_async(reads(c.reader()))

async def turns():
    for _ in range(20):
        await asyncio.sleep(0)

def a_task_that_ends_on_another_thread(close):
    loop = asyncio.new_event_loop()
    box = [loop.create_task(waits())]
    loop.run_until_complete(turns())
    assert signal.getsignal(signal.SIGINT) == saying._say
    if close:
        loop.close()
    gc.collect()
    def drops():
        coroutine = box.pop().get_coro()
        try:
            coroutine.close()
        except RuntimeError:
            pass
    t = threading.Thread(target=drops)
    t.start()
    t.join()
    assert not saying._waiting, saying._waiting
    return loop

def interrupted_network():
    async def main():
        task = asyncio.ensure_future(waits())
        await turns()
        signal.raise_signal(signal.SIGINT)
        await task
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        return
    raise AssertionError("it went on")
"""


@pytest.mark.parametrize("close", [True, False])
def test_a_network_whose_waiting_ends_on_another_thread(close: bool) -> None:  # rule 6.7
    """No handler can be set on that thread, so the next Ctrl-C, or the next network on the main
    thread, removes the remaining handler.
    """
    with child(
        "-W",
        "ignore",
        "-c",
        DROPPED
        + f"""
loop = a_task_that_ends_on_another_thread({close})
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("nothing was raised")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
interrupted_network()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
loop = a_task_that_ends_on_another_thread({close})
interrupted_network()
assert not saying._waiting
print("as before")
""",
    ) as running:
        out, err = running.communicate()
    assert (running.returncode, out) == (0, "as before\n"), err
    assert err.count("weft: interrupted; the processes were:") >= 2, err


def test_a_network_that_is_waited_for_on_another_thread_counts_for_nothing() -> None:  # rule 6.7
    """A wait that began on another thread can end on the main thread. The end of that wait must
    not remove the handler of a network that is still running on the main thread.
    """
    saying = weft._backends.asyncio._Saying()
    there, mine = object(), object()
    other = asyncio.new_event_loop()
    t = threading.Thread(target=lambda: saying.begin(other, there))
    t.start()
    t.join()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        saying.begin(other, mine)
        assert signal.getsignal(signal.SIGINT) == saying._say
        saying.end(other, there)
        assert signal.getsignal(signal.SIGINT) == saying._say
        saying.end(other, mine)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
        other.close()

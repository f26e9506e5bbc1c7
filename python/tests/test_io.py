"""`@io` runs a function that blocks on a thread of the pool, while only its caller waits (rule
7.9)."""

from __future__ import annotations

import contextvars
import gc
import os
import threading
import traceback
import weakref
from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from weft import coroutines as co
from weft import greenlets as gr
from weft import threads as th
from weft._backends import io as _io
from weft.errors import BadUse, Cancelled, Deadlock

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")


def empty_pool():
    """Waits until the threads of the pool, all of which are idle, have ended. A thread that ends
    may take two of the messages that end threads, and then starts another thread to take the
    remaining ones."""
    while any(t.name == "weft io" for t in threading.enumerate()):
        if _io._waiting.empty():
            _io._waiting.put(None)
        os.sched_yield()
    while not _io._waiting.empty():
        _io._waiting.get_nowait()


@pytest.fixture(params=["coroutines", "greenlets"])
def waits(request):
    """Returns, for each backend that uses the pool, how a process calls an io function and how that
    process is run.
    """

    def run(function, *args, **how):
        if request.param == "coroutines":

            @co.process
            async def calls():
                return await function(*args)
        else:

            @gr.process
            def calls():
                return function(*args)

        return co.run(calls(), **how)

    return run


def test_the_result_comes_from_another_thread(waits):
    @gr.io
    def works(x, y):
        return x + y, threading.current_thread().name

    assert waits(works, 2, 3) == (5, "weft io")


def test_an_exception_comes_with_its_traceback(waits):
    def inner():
        raise LookupError("not there")

    @gr.io
    def fails():
        inner()

    with pytest.raises(LookupError, match="not there") as caught:
        waits(fails)
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert "calls" in names
    assert names[-2:] == ["fails", "inner"]


def test_stop_iteration_is_no_result():
    @co.io
    def stops():
        return next(iter(()))

    @co.process
    async def awaits():
        with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
            await stops()
        assert isinstance(caught.value.__cause__, StopIteration)

    @gr.process
    def calls():
        with pytest.raises(StopIteration):
            stops()

    co.run(awaits(), calls())


def test_it_sees_the_variables_of_the_caller(waits):
    @gr.io
    def looks():
        before = variable.get()
        variable.set("the function's own")
        return before

    token = variable.set("the caller's")
    try:
        assert waits(looks) == "the caller's"
    finally:
        variable.reset(token)
    assert variable.get() == "outside"


def test_others_run_meanwhile():
    gate = threading.Event()

    @gr.io
    def waits():
        return gate.wait(280)

    @gr.process
    def calls():
        return waits()

    @co.process
    async def co_calls():
        return await waits()

    @gr.process
    def opens():
        gr.yield_()
        gate.set()

    assert gr.run(calls(), co_calls(), calls(), opens()) == [True, True, True, None]


def test_threads_and_ordinary_code_simply_call():
    @th.io
    def where():
        return threading.get_ident()

    @th.process
    def calls():
        return where() == threading.get_ident()

    assert where() == threading.get_ident()
    assert th.run(calls()) is True


def test_it_counts_as_outside():  # rule 10.3
    gate, c = threading.Event(), gr.Channel("c")

    @gr.io
    def waits():
        gate.wait(280)

    @gr.process
    def calls(w):
        waits()
        w.write("came")

    @gr.process
    def reads(r):
        threading.Timer(0.01, gate.set).start()
        return r.read()

    assert gr.run(calls(c.writer()), reads(c.reader()))[1] == "came"


def test_a_deadlock_is_seen_once_it_is_over():  # rule 10.1
    c = gr.Channel("c")
    kept = c.writer()

    @gr.io
    def works():
        return 1

    @gr.process
    def calls(r):
        works()
        r.read()

    with pytest.raises(Deadlock, match="read 'c'"):
        gr.run(calls(c.reader()))
    assert not kept.closed


def test_a_cancelled_call_goes_on_and_holds_a_deadlock_back():  # rules 6.2, 10.3
    gate, begun, done = threading.Event(), threading.Event(), threading.Event()
    c = gr.Channel("c")
    log = []

    @gr.io
    def waits():
        begun.set()
        gate.wait(280)
        done.set()

    @gr.process
    def calls():
        try:
            waits()
        except Cancelled:
            log.append(done.is_set())
            raise

    @gr.process
    def cancels(r):
        with gr.Group() as group:
            p = group.start(calls())
            while not begun.is_set():
                gr.yield_()
            p.cancel()
        threading.Timer(0.01, gate.set).start()  # while the call runs, it might hold the other end
        r.read()

    kept = c.writer()
    with pytest.raises(Deadlock):
        gr.run(cancels(c.reader()))
    assert log == [False]
    assert done.is_set()
    assert not kept.closed


def test_a_coroutine_that_is_closed_waits_no_longer():
    gate = threading.Event()

    @co.io
    def waits():
        gate.wait(280)
        return Thing()

    class Thing:
        pass

    @co.process
    async def gives_up():
        call = waits()
        steps = call.__await__()
        next(steps)
        steps.close()
        gate.set()
        await co.sleep(0)
        return "went on"

    assert co.run(gives_up()) == "went on"


@pytest.fixture
def small_pool(monkeypatch):
    """Limits the pool to three threads."""
    empty_pool()
    permits = SimpleQueue()
    for _ in range(3):
        permits.put(None)
    monkeypatch.setattr(_io, "LIMIT", 3)
    monkeypatch.setattr(_io, "_permits", permits)
    monkeypatch.setattr(_io, "IDLE", 0.001)
    yield
    empty_pool()  # must run before monkeypatch restores the old permits


def test_the_pool_grows_to_its_bound_and_calls_wait_their_turn(small_pool, monkeypatch):
    watched = threading.Event()
    monkeypatch.setattr(
        _io, "_help_waiting_calls", lambda watch: watched.wait(280) and watch.put(None)
    )
    running, most = [], []
    lock = threading.Lock()
    full = threading.Event()

    @gr.io
    def works(n):
        with lock:
            running.append(n)
            most.append(len(running))
            if len(running) == 3:
                full.set()
        full.wait(280)
        with lock:
            running.remove(n)
        return n

    @gr.process
    def calls(n):
        return works(n)

    assert gr.run([calls(n) for n in range(20)]) == list(range(20))
    assert max(most) == 3
    watched.set()


def test_slow_calls_get_one_thread_more_at_a_time(small_pool, monkeypatch):
    """Rule 7.9: for the pool slow calls do not differ from calls that wait for each other.
    Nevertheless a thousand slow calls do not start a thousand threads."""
    passes, asks = threading.Semaphore(0), threading.Semaphore(0)

    def sleep(seconds):
        asks.release()
        passes.acquire(timeout=280)

    monkeypatch.setattr(_io, "time", SimpleNamespace(sleep=sleep))
    begun, ended = threading.Semaphore(0), threading.Event()

    @gr.io
    def works():
        begun.release()
        ended.wait(280)

    @gr.process
    def calls():
        works()

    def looks():
        try:
            for _ in range(3):
                assert begun.acquire(timeout=280)
            for _ in range(5):
                assert asks.acquire(timeout=280)
                assert not begun.acquire(blocking=False)  # every running call is counted here
                passes.release()
                assert begun.acquire(timeout=280)
        finally:
            ended.set()
            passes.release(1000)
        return "one at a time"

    assert gr.run([th.process(looks)(), *(calls() for _ in range(1000))])[0] == "one at a time"


@pytest.mark.parametrize("backend", ["coroutines", "greenlets"])
@pytest.mark.parametrize("bound", ["small", "usual"])
def test_calls_that_wait_for_each_other_all_run(request, backend, bound):
    """Rule 7.9: all calls run, even if the calls outnumber the threads of the pool."""
    if bound == "small":
        request.getfixturevalue("small_pool")
    many = _io.LIMIT + 7
    together = threading.Barrier(many)

    @co.io
    def meets():
        return together.wait(280)

    if backend == "coroutines":

        @co.process
        async def calls():
            return await meets()

        places = co.run([calls() for _ in range(many)])
    else:

        @gr.process
        def calls():
            return meets()

        places = gr.run([calls() for _ in range(many)])
    assert sorted(places) == list(range(many))


def test_a_message_that_ends_a_thread_ends_an_additional_one_too(small_pool):
    _io._waiting.put(None)
    _io._work_once(SimpleQueue())
    assert _io._waiting.empty()


def test_calls_that_wait_for_later_ones_all_run(small_pool):
    """Rule 7.9: each call waits for the next, so they end in reverse order."""
    gates = [threading.Event() for _ in range(12)]
    gates[-1].set()

    @co.io
    def waits_for_next(n):
        gates[n + 1].wait(280)
        gates[n].set()

    @co.process
    async def calls(n):
        await waits_for_next(n)

    co.run([calls(n) for n in range(11)])
    assert all(gate.is_set() for gate in gates)


@pytest.mark.parametrize("where", ["start", "run", "_waiting"])
def test_an_interrupt_while_a_call_is_submitted(monkeypatch, where):
    """Rules 7.6, 7.9: an exception that a signal's handler raises while a call is submitted ends
    the run, and the pool works as before, with all its threads."""

    class Stop(BaseException):
        pass

    def raises(*_):
        raise Stop

    class Queue:
        put = staticmethod(raises)
        real = _io._waiting

        def __getattr__(self, name):
            return getattr(self.real, name)

    empty_pool()
    before = _io._permits.qsize()
    with monkeypatch.context() as patch:
        if where == "start":
            patch.setattr(threading.Thread, "start", raises)
        elif (
            where == "run"
        ):  # in CPython's start(), too, the thread may already be at work by that time
            real = threading.Thread.start

            def start(self):
                real(self)
                try:
                    raise Stop
                except Stop:
                    raise KeyError(self)  # noqa: B904

            patch.setattr(threading.Thread, "start", start)
        else:
            patch.setattr(_io, "_waiting", Queue())

        @gr.process
        def calls():
            return gr.io(lambda: 1)()

        with pytest.raises(Stop):
            gr.run(calls())
    if where == "run":
        # an interrupted start returns its permit, and so does its thread later
        _io._permits.get_nowait()

    for _ in range(3):
        assert gr.run([calls() for _ in range(5)]) == [1] * 5
    empty_pool()
    assert _io._permits.qsize() == before


@pytest.mark.parametrize("host", ["weft", "asyncio"])
def test_an_interrupt_once_the_call_is_done_is_raised_in_place_of_its_result(monkeypatch, host):
    """Rule 7.9: CPython's start() waits for the thread, which may have run the call before start()
    returns."""

    class Stop(BaseException):
        pass

    empty_pool()
    real = threading.Thread.start

    def start(self):
        real(self)
        if self.name == "weft io":
            while not _io._idle.qsize():  # this waits until the thread has returned from the call
                os.sched_yield()
            raise Stop

    @co.process
    async def calls():
        return await co.io(lambda: 1)()

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(Stop):
            co.run(calls(), host=host)
    # the interrupted start has returned its permit, and its thread returns another later
    _io._permits.get_nowait()
    assert co.run(calls(), host=host) == 1
    empty_pool()


def test_idle_threads_end(monkeypatch):
    monkeypatch.setattr(_io, "IDLE", 0.001)

    @gr.io
    def works():
        return threading.current_thread()

    @gr.process
    def calls():
        return works()

    worker = gr.run(calls())
    worker.join(280)
    assert not worker.is_alive()


def test_nothing_is_kept(waits):
    class Thing:
        pass

    @gr.io
    def makes(given):
        return Thing()

    given = Thing()
    seen = weakref.ref(given)
    made = weakref.ref(waits(makes, given))
    del given
    gc.collect()
    assert (seen(), made()) == (None, None)


def test_never_awaited():
    @co.io
    def works():
        return 1

    @co.process
    async def forgets():
        works()

    with pytest.warns(RuntimeWarning, match=r"io call of .*works.* was never awaited"):
        co.run(forgets())


async def a_coroutine():
    pass


def a_generator():
    yield


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (3, "decorate a function"),
        (dict, "decorate a function"),
        (a_coroutine, "an `async def` does not block"),
        (a_generator, "return a list"),
        (gr.process(print), "it is a process function"),
    ],
)
def test_what_it_is_not_for(function, message):  # rule 11.1
    with pytest.raises(BadUse, match=message):
        gr.io(function)


def test_awaited_twice_and_outside():
    @co.io
    def works():
        return 1

    @co.process
    async def twice():
        call = works()
        assert await call == 1
        with pytest.raises(BadUse, match="awaited already"):
            await call
        return works()

    call = co.run(twice())
    with pytest.raises(BadUse, match="outside any coroutine process"):
        call.send(None)
    with pytest.warns(RuntimeWarning, match="never awaited"):
        del call

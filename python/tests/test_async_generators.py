"""Rule 7.15: a run closes the async generators that no code iterates to their end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from weft import threads
from weft.coroutines import (
    BadUse,
    Cancelled,
    Channel,
    Deadlock,
    Group,
    Parallel,
    current_process,
    move_on_after,
    process,
    run,
    select,
    sleep,
    timeout,
    yield_,
)

Generator = AsyncIterator[int]
HOSTS: dict[str, dict[str, Any]] = {
    "weft": {},
    "virtual": {"clock": "virtual"},
    "asyncio": {"host": "asyncio"},
}
ours = pytest.mark.parametrize("how", [HOSTS["weft"], HOSTS["virtual"]], ids=["weft", "virtual"])
everywhere = pytest.mark.parametrize("how", HOSTS.values(), ids=HOSTS)


async def ticks(log: list[Any], name: str = "cleaned") -> Generator:
    n = 0
    try:
        while True:
            yield n
            n += 1
            await sleep(0.0001)
    finally:
        await sleep(0.0001)
        await yield_()
        log.append(name)


# --- ways to leave a loop -------------------------------------------------------------------------


async def breaks(log: list[Any]) -> None:
    async for n in ticks(log):
        if n == 2:
            break


async def returns(log: list[Any]) -> int:
    async for _ in ticks(log):
        return 1
    return 0


async def raises(log: list[Any]) -> None:
    with contextlib.suppress(KeyError):
        async for _ in ticks(log):
            raise KeyError


async def continues_another(log: list[Any]) -> None:
    async for _ in ticks(log, "outer"):
        async for _ in ticks(log):
            break
        await sleep(0)
        break


async def through(log: list[Any]) -> Generator:
    try:
        async for n in ticks(log, "inner"):
            yield n
    finally:
        await sleep(0.0001)
        log.append("cleaned")


async def nested(log: list[Any]) -> None:
    async for _ in through(log):
        break
    gc.collect()


async def within_a_limit(log: list[Any]) -> None:
    async with move_on_after(0.001):
        async for _ in ticks(log):
            await sleep(3600)


async def within_a_group(log: list[Any]) -> None:
    @process
    async def other() -> None:
        await sleep(0.001)

    async with Group() as g:
        g.start(other())
        async for _ in ticks(log):
            break
        g.start(other())


async def asked_by_hand(log: list[Any]) -> None:
    generator: Any = ticks(log)
    assert await generator.__anext__() == 0
    assert await generator.asend(None) == 1
    del generator
    await sleep(0)


WAYS: list[Callable[[list[Any]], Any]] = [
    breaks,
    returns,
    raises,
    continues_another,
    nested,
    within_a_limit,
    within_a_group,
    asked_by_hand,
]


@everywhere
@pytest.mark.parametrize("leave", WAYS, ids=lambda f: f.__name__)
def test_the_clean_up_runs_and_the_process_goes_on(how: dict[str, Any], leave: Any) -> None:
    log: list[Any] = []

    @process
    async def main() -> str:
        await leave(log)
        for _ in range(3):
            await sleep(0.0001)
        return "went on"

    assert run(main(), **how) == "went on"
    assert log.count("cleaned") == 1
    if leave is nested:
        assert "inner" in log


@everywhere
def test_it_is_closed_while_its_process_goes_on(how: dict[str, Any]) -> None:
    c = Channel()

    async def closes(w: Any) -> Generator:
        try:
            yield 1
        finally:
            await w.write("closed")

    @process
    async def main(r: Any) -> Any:
        async for _ in closes(c.writer()):
            break
        return await r.read()

    assert run(main(c.reader()), **how) == "closed"


def test_without_a_process_of_its_own_if_it_is_exhausted_or_closed() -> None:
    async def numbers() -> Generator:
        yield current_process().id

    @process
    async def main() -> list[Any]:
        all_of_it = [n async for n in numbers()]
        async with contextlib.aclosing(numbers()) as generator:
            async for n in generator:
                all_of_it.append(n)
                break
        return all_of_it

    mine = run(main())
    assert mine[0] == mine[1]


# --- the process of the clean-up ------------------------------------------------------------------


@ours
def test_it_has_a_path(how: dict[str, Any]) -> None:
    paths: list[str] = []

    async def ticks() -> Generator:
        try:
            yield 1
        finally:
            paths.append(current_process().path)
            await sleep(0)

    @process
    async def main() -> None:
        for _ in range(2):
            async for _ in ticks():
                break
            await yield_()

    run(main(), **how)
    assert paths[0] == "main/asyncgen ticks" or paths == [
        "main/asyncgen ticks[0]",
        "main/asyncgen ticks[1]",
    ], paths


def test_what_its_clean_up_may_do() -> None:
    """The clean-up may perform each type of operation, open a group, and use a limit."""
    c, d = Channel(), Channel(capacity=2)
    w, r, dw, dr = c.writer(), c.reader(), d.writer(), d.reader()
    done: list[Any] = []

    @process
    async def send() -> None:
        await w.write(1)
        await w.write(2)

    async def busy() -> Generator:
        try:
            yield 0
        finally:
            async with Group() as g:
                g.start(send())
                done.append(await r.read())
                done.append((await select(r))[1])
            await dw.write(3)
            done.append(await dr.read())
            done.append(await Parallel())
            async with move_on_after(0):
                await dr.read()
            done.append("end")

    @process
    async def main() -> None:
        async for _ in busy():
            break

    run(main())
    assert done == [1, 2, 3, [], "end"]


@ours
def test_it_holds_the_ends_of_the_process_that_dropped_it(how: dict[str, Any]) -> None:
    """Rules 2.3, 7.15: the process ends, and the channel remains open until the clean-up is
    done."""
    c = Channel()

    async def writes(w: Any) -> Generator:
        try:
            yield 1
        finally:
            await yield_()
            await w.write(1)
            await w.write(2)

    @process
    async def begins(w: Any) -> None:
        async for _ in writes(w):
            break

    @process
    async def reads(r: Any) -> list[Any]:
        return [v async for v in r]

    assert run(begins(c.writer()), reads(c.reader()), **how)[1] == [1, 2]


@ours
def test_a_failure_in_it_is_the_runs(how: dict[str, Any]) -> None:
    log: list[str] = []

    async def fails() -> Generator:
        try:
            yield 1
        finally:
            await sleep(0)
            raise KeyError("in the clean-up")

    @process
    async def main() -> None:
        async for _ in fails():
            break
        try:
            await sleep(3600)
        except Cancelled:
            log.append("cancelled")
            raise

    with pytest.raises(KeyError, match="in the clean-up"):
        run(main(), **how)
    assert log == ["cancelled"]


def test_a_run_that_is_cancelled_cancels_it() -> None:
    log: list[str] = []

    async def waits() -> Generator:
        try:
            yield 1
        finally:
            try:
                await sleep(3600)
            except Cancelled:
                log.append("cancelled")
                raise

    @process
    async def main() -> None:
        async for _ in waits():
            break
        await sleep(0)
        raise KeyError

    with pytest.raises(KeyError):
        run(main())
    assert log == ["cancelled"]


@pytest.mark.filterwarnings("ignore:a Group, entered")
def test_a_group_or_a_limit_that_it_has_open_is_its_first_process() -> None:
    """Rules 7.5, 7.12, 7.15: in the clean-up, leaving a group or limit is bad use if the
    generator's first process has opened it; the error names this reason."""

    async def limited() -> Generator:
        async with timeout(3600):
            yield 1

    async def grouped() -> Generator:
        async with Group():
            yield 1

    @process
    async def main(function: Any) -> None:
        async for _ in function():
            break
        await sleep(3600)

    for function in limited, grouped:
        with pytest.raises(
            BadUse, match=r"asyncgen .*(another process has entered|that entered it)"
        ):
            run(main(function))


# --- the end of the run ---------------------------------------------------------------------------


@everywhere
def test_a_generator_that_is_kept_is_closed_at_the_end_of_the_run(how: dict[str, Any]) -> None:
    log: list[str] = []
    kept: list[Any] = []

    @process
    async def main() -> None:
        kept.append(ticks(log))
        async for _ in kept[0]:
            break

    run(main(), **how)
    assert log == ["cleaned"]


@ours
def test_one_that_is_begun_by_such_a_clean_up_is_closed_too(how: dict[str, Any]) -> None:
    log: list[str] = []
    kept: list[Any] = []

    async def begins_another() -> Generator:
        try:
            yield 1
        finally:
            second = ticks(log, "second")
            kept.append(second)
            await second.__anext__()  # type: ignore[attr-defined]
            log.append("first")

    @process
    async def main() -> None:
        kept.append(begins_another())
        async for _ in kept[0]:
            break

    run(main(), **how)
    assert log == ["first", "second"]
    assert kept[0].ag_frame is None


def test_after_a_failure_and_a_deadlock() -> None:
    kept: list[Any] = []
    log: list[str] = []

    async def tells() -> Generator:
        try:
            yield 1
        finally:
            log.append("begun")
            await sleep(0)
            log.append("not reached")

    @process
    async def fails() -> None:
        kept.append(tells())
        await kept[-1].__anext__()
        raise KeyError

    @process
    async def stuck(r: Any) -> None:
        kept.append(tells())
        await kept[-1].__anext__()
        await r.read()

    with pytest.raises(KeyError):
        run(fails())
    c = Channel()
    w = c.writer()
    with pytest.raises(Deadlock):
        run(stuck(c.reader()))
    w.retire()
    assert log == ["begun", "begun"]


def test_a_clean_up_that_waits_for_ever_is_a_deadlock() -> None:
    c = Channel()
    w = c.writer()
    kept: list[Any] = []

    async def waits(r: Any) -> Generator:
        try:
            yield 1
        finally:
            await r.read()

    @process
    async def main() -> None:
        kept.append(waits(c.reader()))
        await kept[0].__anext__()

    with pytest.raises(Deadlock, match="asyncgen waits"):
        run(main())
    w.retire()


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    all_of_it: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: all_of_it.append(u.exc_value))
    return all_of_it


def test_one_whose_next_value_was_being_asked_for(reported: list[Any]) -> None:
    """A generator that has been asked for its next value cannot be closed. The failure is reported,
    within the run and after it.
    """

    class Waits:
        def __await__(self) -> Any:
            yield None

    async def plain() -> Generator:
        await Waits()
        yield 1

    def begin() -> list[Any]:
        generator: Any = plain()
        step = generator.__anext__()
        step.send(None)
        return [step, generator]

    kept: list[Any] = []

    @process
    async def main() -> str:
        begin()
        kept.extend(begin())
        await sleep(0)
        return "went on"

    assert run(main()) == "went on"
    assert len(reported) == 1
    kept.clear()
    gc.collect()
    assert len(reported) == 2
    assert all("cannot be closed" in str(e) or "running" in str(e) for e in reported), reported


# --- threads --------------------------------------------------------------------------------------


def test_collected_in_another_thread() -> None:
    log: list[str] = []
    c = threads.Channel()
    w, r = c.writer(), c.reader()
    kept: list[Any] = []

    async def closes() -> Generator:
        try:
            yield 1
        finally:
            log.append(threading.current_thread().name)
            await w.write(1)

    @process
    async def main() -> Any:
        kept.append(closes())
        await kept[0].__anext__()
        other = threading.Thread(target=kept.clear)
        other.start()
        try:
            return await r.read()
        finally:
            other.join()

    assert run(main()) == 1
    assert log == [threading.current_thread().name]


def test_of_a_process_on_a_thread_of_its_own() -> None:
    log: list[str] = []

    @process
    async def apart() -> str:
        await breaks(log)
        await sleep(0.001)
        return "went on"

    assert run(apart.on(threads)()) == "went on"
    assert log == ["cleaned"]


def test_a_run_within_a_thread_process() -> None:
    log: list[str] = []

    @process
    async def inner() -> None:
        await breaks(log)

    @threads.process
    def outer() -> str:
        run(inner())
        return "went on"

    assert run(outer()) == "went on"
    assert log == ["cleaned"]


def test_in_a_block_of_ordinary_code() -> None:
    log: list[str] = []

    @process
    async def main() -> None:
        await breaks(log)

    with threads.Group() as g:
        g.start(main())
        threads.sleep(0.001)
    assert log == ["cleaned"]


# --- the hooks of other code ----------------------------------------------------------------------


def test_the_threads_own_hooks_come_back() -> None:
    begun: list[Any] = []
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=begun.append, finalizer=begun.append)
    mine = sys.get_asyncgen_hooks()
    log: list[str] = []
    try:

        @process
        async def main() -> None:
            assert sys.get_asyncgen_hooks() != mine
            await breaks(log)

        run(main())
        assert sys.get_asyncgen_hooks() == mine
        with threads.Group() as g:
            g.start(main())
            threads.sleep(0.0001)
            assert sys.get_asyncgen_hooks() == mine
        assert sys.get_asyncgen_hooks() == mine
    finally:
        sys.set_asyncgen_hooks(*before)
    assert not begun
    assert log == ["cleaned"] * 2


def test_a_loop_within_a_process_keeps_its_own() -> None:
    log: list[str] = []

    async def of_asyncio() -> None:
        async def there() -> Generator:
            try:
                yield 1
            finally:
                await asyncio.sleep(0)
                log.append("of asyncio")

        async for _ in there():
            break
        for _ in range(5):
            await asyncio.sleep(0)

    @process
    async def main() -> None:
        ours = sys.get_asyncgen_hooks()
        asyncio.run(of_asyncio())
        assert sys.get_asyncgen_hooks() == ours
        await breaks(log)

    run(main())
    assert log == ["of asyncio", "cleaned"]


PROGRAM = """
from weft.coroutines import process, run, sleep

async def ticks():
    try:
        yield 1
    finally:
        print("closed")

@process
async def main():
    global kept
    kept = ticks()
    await kept.__anext__()
    os = __import__("os")
    if os.fork() == 0:
        kept = None  # no run is here
        os._exit(0)
    os.wait()
    await sleep(0)

run(main())
again = ticks()
try:
    again.__anext__().send(None)
except StopIteration:
    pass
"""


@pytest.mark.skipif(
    not hasattr(sys, "getwindowsversion") and sys.platform == "win32", reason="fork"
)
def test_in_a_child_and_when_the_interpreter_ends() -> None:
    out = subprocess.run(
        [sys.executable, "-u", "-c", PROGRAM], capture_output=True, text=True, timeout=280
    )
    assert out.returncode == 0, out.stderr
    assert not out.stderr
    assert out.stdout.split() == ["closed"] * 3

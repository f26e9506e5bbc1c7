"""Readers that stopped early are reported, once for each line of code (rule 3.6), on every
backend."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest
from loops import Runner
from parts import hows, receive, take

from weft import coroutines as co
from weft import threads as th
from weft._watching import stopped_early
from weft.errors import Retired

HERE = "test_stopped_early.py"


class Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert (record.name, record.levelname) == ("weft", "WARNING")
        self.texts.append(record.getMessage())


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the records of the logger `weft`. No line has been reported before."""
    monkeypatch.setattr(stopped_early, "_reported", set())
    handler = Told()
    logger = logging.getLogger("weft")
    logger.addHandler(handler)
    yield handler.texts
    logger.removeHandler(handler)


async def six(b, w):
    for i in range(6):
        await b.op(w.write(i))
    return "wrote all"


async def once(b, r, *ends):
    return await b.op(r.read())


def test_it_is_told(b, messages):  # rule 3.6
    """The report contains the process, the line of the write, the channel, and advice."""

    async def passes_on(b, r, w):
        await b.op(w.write(await b.op(r.read())))

    x, y = b.weft.Channel("x"), b.weft.Channel("y")
    results = b.run(
        b.process(six)(x.writer()),
        b.process(passes_on)(x.reader(), y.writer()),
        b.process(receive)(y.reader()),
    )
    assert hows(results) == ["<retired>", None, [0]]
    assert len(messages) == 1
    start = f"process main/six ended at {HERE}:{six.__code__.co_firstlineno + 2} (write on channel"
    assert messages[0].startswith(start)
    assert "channel 'x': the other side has retired)" in messages[0]
    assert "`for value in reader`" in messages[0]


def test_once_for_each_line(b, messages):  # rule 3.6
    async def another_line(b, w):
        for i in range(6):
            await b.op(w.write(i))

    for body in (six, six, another_line):
        for _ in range(2):
            c = b.weft.Channel("c")
            b.run(b.process(body)(c.writer()), b.process(once)(c.reader()))
    assert [text.split()[1] for text in messages] == ["main/six", "main/another_line"]


def test_several_readers_and_several_writers(b, messages):  # rule 3.6
    c = b.weft.Channel("c")
    b.run(
        [b.process(six)(c.writer()) for _ in range(2)],
        [b.process(once)(c.reader()) for _ in range(3)],
    )
    assert len(messages) == 1


def test_through_a_buffer(b, messages):  # rules 1.5, 3.6
    """The report contains the number of values that were read."""
    c = b.weft.Channel("c", capacity=2)
    b.run(b.process(six)(c.writer()), b.process(once)(c.reader()))
    assert len(messages) == 1


def test_in_a_network_within(b, messages):  # rule 3.6
    async def outer(b):
        c = b.weft.Channel("c")
        ps = b.process(six)(c.writer()), b.process(once)(c.reader())
        await b.op(b.weft.Parallel(*ps))

    b.run(b.process(outer)())
    assert [text.split()[1] for text in messages] == ["main/outer/six"]


async def twice(b, r):
    await take(b, r, 2)


async def never(b, r):
    pass


async def until_the_third(b, r):
    async for value in b.each(r):
        if value == 2:
            return


async def retires(b, r):
    await b.op(r.read())
    r.retire()


async def fails(b, r):
    await b.op(r.read())
    raise ValueError("mine")


async def is_left(b, r):
    await b.op(r.read())
    c = b.weft.Channel("ended")
    again = c.reader()
    c.writer().retire()
    await b.op(again.read())


async def is_cancelled(b, r):
    await b.op(r.read())
    b.weft.current_process().cancel()
    await b.op(b.weft.sleep(3600))


async def poisons(b, r):
    await b.op(r.read())
    r.poison()


@pytest.mark.parametrize(
    "readers",
    [
        [twice],
        [never],
        [until_the_third],
        [retires],
        [fails],
        [is_left],
        [is_cancelled],
        [poisons],
        [once, twice],
        [once, retires],
        [once, is_left],
    ],
    ids=lambda readers: " ".join(f.__name__ for f in readers),
)
def test_what_is_not_told(b, messages, readers):  # rule 3.6
    c = b.weft.Channel("c")
    ps = [b.process(six)(c.writer()), *(b.process(f)(c.reader()) for f in readers)]
    try:
        assert hows(b.run(ps))[0] in ("<retired>", "<poisoned>")
    except ValueError:
        assert readers == [fails]
    assert messages == []


@pytest.mark.parametrize("how", ["dropped", "retired"])
def test_an_end_that_the_program_itself_let_go_of(b, messages, how):  # rules 3.3, 3.6
    c = b.weft.Channel("c")
    ends = [c.reader()]

    async def lets_go(b, r):
        await b.op(r.read())
        if how == "retired":
            ends[0].retire()
        ends.clear()

    results = b.run(b.process(six)(c.writer()), b.process(lets_go)(c.reader()))
    assert hows(results) == ["<retired>", None]
    assert messages == []


def test_a_process_that_catches_it_is_not_told_of(b, messages):  # rules 3.5, 3.6
    """A process that wrote in a select, which examines several channels, is also not reported."""

    async def catches(b, w):
        try:
            await six(b, w)
        except Retired:
            return "caught"

    async def selects(b, w):
        while True:
            await b.op(b.weft.select(b.weft.Output(w, 1)))

    for body, how in ((catches, "caught"), (selects, "<retired>")):
        c = b.weft.Channel("c")
        results = b.run(b.process(body)(c.writer()), b.process(once)(c.reader()))
        assert hows(results)[0] == how
    assert messages == []


class Raises(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise ZeroDivisionError(record.name)


def test_a_handler_that_raises_changes_nothing(b, messages, monkeypatch):  # rules 3.6, 11.1
    """The handler's exception is reported like that of a finaliser."""
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: raised.append((u.exc_type, u.object)))
    logger, handler = logging.getLogger("weft"), Raises()
    logger.addHandler(handler)
    try:
        c = b.weft.Channel("c")
        ends = c.writer(), c.reader()
        with pytest.raises(ZeroDivisionError, match="weft"):
            logger.warning("so it is raised to who logs")
        results = b.run(b.process(six)(ends[0]), b.process(once)(ends[1]))
    finally:
        logger.removeHandler(handler)
    assert hows(results) == ["<retired>", 0]
    (kind, whose) = raised[0]
    assert len(raised) == 1 and kind is ZeroDivisionError and "rule 3.6" in whose


@co.process
async def co_six(w: Any) -> None:
    await six(_Plain, w)


@co.process
async def co_once(r: Any) -> Any:
    return await r.read()


class _Plain:
    """A backend whose operations are awaited."""

    @staticmethod
    def op(operation: Any) -> Any:
        return operation


def test_guests_of_asyncio_and_threads_of_their_own(play: Runner, messages: list[str]) -> None:
    """Rules 3.6, 13.1, 15.3: a reader is also reported if it is a guest, or a coroutine on a
    thread."""

    async def main() -> None:
        c = co.Channel("c")
        await co.Parallel(co_six(c.writer()), co_once(c.reader()))

    play(main())
    assert len(messages) == 1
    stopped_early._reported.clear()
    c = th.Channel("c")
    th.run(co_six.on(th)(c.writer()), co_once.on(th)(c.reader()))
    assert len(messages) == 2

"""Rules 3.5, 4.3, 6.5, 7.1: which ends are quiet, and what a run of exactly one process raises. The
tests run on every backend, and as a guest.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from parts import hows, receive, send

from weft import coroutines as co
from weft.errors import Cancelled, ChannelEnd, Deadlock, PeerDied, Poisoned, Retired

CLOCKS = pytest.mark.parametrize("clock", ["steady", "virtual"])


def ended(b: Any, how: str) -> tuple[Any, Any]:
    """Returns a channel that has ended for its readers, and a reader of it."""
    c = b.weft.Channel("c")
    r, w = c.reader(), c.writer()
    {"Retired": w.retire, "Poisoned": lambda: w.poison(3), "PeerDied": w.die}[how]()
    return c, r


async def reads(b, r):
    return await b.op(r.read())


async def asks(b, c):
    c.writer()


async def own(b, error):
    raise error


KINDS = {"Retired": Retired, "Poisoned": Poisoned, "PeerDied": PeerDied}


@pytest.mark.parametrize("how", KINDS)
def test_an_operation_meets_an_end(b, how):  # rule 3.5
    operations = {
        "read": lambda b, r: b.op(r.read()),
        "select": lambda b, r: b.op(b.weft.select(r, ended="raise")),
        "extended": lambda b, r: b.enter(r.extended()),
    }

    async def look(b, r):
        found = []
        for operation in operations.values():
            try:
                await operation(b, r)
            except ChannelEnd as end:
                found.append((type(end), end.met))
        return found

    _, r = ended(b, how)
    assert b.run(b.process(look)(r)) == [(KINDS[how], True)] * 3


@pytest.mark.parametrize("how", KINDS)
def test_a_process_that_asks_for_a_new_end_meets_none(b, how):  # rules 2.5, 3.5
    c, _ = ended(b, how)
    with pytest.raises(KINDS[how]) as caught:
        c.reader()
    assert caught.value.met is False
    # In a process, the end of a channel is a failure (rule 7.2).
    with pytest.raises(KINDS[how]) as caught:
        b.run(b.process(asks)(c), b.process(asks)(b.weft.Channel()))
    assert caught.value.met is False


@pytest.mark.parametrize("kind", [Retired, Poisoned])
def test_one_that_the_program_makes_is_a_failure(b, kind):  # rule 3.5
    mine = kind("mine")
    assert mine.met is False
    p = b.process(own)(mine)
    with pytest.raises(kind, match="mine"):
        b.run(b.process(receive)(b.weft.Channel().reader()), p)
    assert p.done
    with pytest.raises(kind, match="mine"):
        _ = p.result


def test_raised_as_a_class_too(b):  # rule 3.5
    with pytest.raises(Retired):
        b.run(b.process(own)(Retired), b.process(own)(b.weft.Cancelled()))


def test_what_is_unmet_poisons_all_the_same(b):  # rules 3.5, 4.3
    """Poison spreads if the program makes the exception, or meets the exception when it asks for an
    end. The exception may also be of a class of the program.
    """

    class Mine(Poisoned):
        pass

    async def poisons(b, w, kind):
        if kind is None:
            ended(b, "Poisoned")[0].writer()
        else:
            raise kind("mine", None, None, None, 7)

    async def sees(b, r):
        try:
            await b.op(r.read())
        except ChannelEnd as end:
            seen.append((type(end), end.strength, end.met))
            raise

    for kind, strength in ((Poisoned, 7), (Mine, 7), (None, 3)):
        c, seen = b.weft.Channel("c"), []
        r, w = c.reader(), c.writer()
        with pytest.raises(kind or Poisoned) as caught:
            b.run(b.process(poisons)(w, kind), b.process(returns)())
        assert caught.value.met is False
        b.run(b.process(sees)(r), b.process(returns)())
        assert seen == [(Poisoned, strength, True)]


async def returns(b):
    pass


@pytest.mark.parametrize("how", ["Retired", "Poisoned"])
def test_raised_again_in_another_process_it_is_met(b, how):  # rule 3.5
    """An exception that is passed through a channel as a value, and raised again, is an end that
    was met."""
    _, r = ended(b, how)
    hand_over = b.weft.Channel("hand over")

    async def meets(b, r, out):
        try:
            await b.op(r.read())
        except ChannelEnd as end:
            met.append(end)
        await b.op(out.write(met[0]))

    async def raises(b, source):
        raise await b.op(source.read())

    met: list[Any] = []
    again = b.process(raises)(hand_over.reader())
    results = b.run(b.process(meets)(r, hand_over.writer()), again)
    assert hows(results) == [None, f"<{how.lower()}>"]
    assert met[0].met is True


def test_copies_keep_it(b):  # rule 3.5
    _, r = ended(b, "Retired")
    with pytest.raises(Retired) as caught:
        b.run(b.process(reads)(r))
    assert copy.copy(caught.value).met is True
    caught.value.channel = None  # a channel cannot be pickled
    assert pickle.loads(pickle.dumps(caught.value)).met is True


def test_copies_keep_guard_and_value():  # rules 3.3, 5.6
    plain = Retired("over")
    assert (plain.guard, plain.value) == (None, None)
    message = Retired("over", None, 0, "unsent")
    for again in (message, copy.copy(message), pickle.loads(pickle.dumps(message))):
        assert (again.guard, again.value) == (0, "unsent")
    assert (copy.copy(plain).guard, Retired.guard, Retired.value) == (None, None, None)


# --- a run of exactly one process -----------------------------------------------------------------


@CLOCKS
@pytest.mark.parametrize("how", KINDS)
def test_run_of_one_raises_what_left_it(b, how, clock):  # rule 7.1
    _, r = ended(b, how)
    p = b.process(reads)(r)
    with pytest.raises(KINDS[how]) as caught:
        b.run(p, clock=clock)
    assert caught.value.met is True
    if how != "PeerDied":
        assert p.done and hows([p.result]) == [f"<{how.lower()}>"]  # this is a quiet end, too


def test_its_ends_are_let_go_first(b):  # rules 2.3, 7.1
    _, r = ended(b, "Retired")
    d = b.weft.Channel("d")
    out = d.reader()

    async def relay(b, r, w):
        await b.op(w.write(await b.op(r.read())))

    with pytest.raises(Retired) as caught:
        b.run(b.process(relay)(r, d.writer()))
    assert caught.value.__traceback__ is not None  # the traceback keeps the frame of the process
    assert d.stats().writers == 0
    with pytest.raises(Retired):
        b.run(b.process(reads)(out))


def test_poison_is_spread_first(b):  # rules 4.3, 7.1
    _, r = ended(b, "Poisoned")
    d = b.weft.Channel("d")
    out = d.reader()

    async def relay(b, r, w):
        await b.op(w.write(await b.op(r.read())))

    with pytest.raises(Poisoned):
        b.run(b.process(relay)(r, d.writer()))
    with pytest.raises(Poisoned) as caught:
        b.run(b.process(reads)(out))
    assert caught.value.strength == 3


@CLOCKS
def test_run_of_one_that_was_cancelled_raises_that(b, clock):  # rules 6.5, 7.1
    async def cancels_itself(b):
        b.weft.current_process().cancel()
        await b.op(b.weft.sleep(1))

    with pytest.raises(Cancelled):
        b.run(b.process(cancels_itself)(), clock=clock)


def test_several_stay_quiet(b):  # rule 7.1
    _, r = ended(b, "Retired")
    one, other = b.process(reads)(r), b.process(send)(b.weft.Channel().writer())
    assert hows(b.run(one, other)) == ["<retired>", None]
    _, r = ended(b, "Poisoned")
    # a list of one process counts as several processes
    assert hows(b.run([b.process(reads)(r)])) == ["<poisoned>"]


def test_parallel_sequence_group_and_spawn_stay_quiet(b):  # rule 7.1
    def quiet():
        return b.process(reads)(ended(b, "Retired")[1])

    def poisoned():
        return b.process(reads)(ended(b, "Poisoned")[1])

    async def cancelled(b):
        b.weft.current_process().cancel()
        await b.op(b.weft.sleep(1))

    async def whole(b):
        results = [
            await b.op(b.weft.Parallel(quiet())),
            await b.op(b.weft.Parallel(poisoned())),
            await b.op(b.weft.Parallel(b.process(cancelled)())),
            await b.op(b.weft.Sequence(quiet(), poisoned())),
        ]
        group = b.weft.Group()
        await b.enter(group)
        group.start(quiet())
        group.start(poisoned())
        await b.leave(group)
        b.weft.Spawn(quiet(), poisoned())
        return results

    assert hows(b.run(b.process(whole)())) == [
        ["<retired>"],
        ["<poisoned>"],
        ["<cancelled>"],
        ["<retired>", "<poisoned>"],
    ]


def test_a_run_within_a_process_raises_too(b):  # rule 7.1
    """A run within a process raises what left its only process. Threads and greenlets may call run;
    a coroutine process may not."""
    if not b.blocking:
        pytest.skip("run in a coroutine process is bad use")

    async def outer(b):
        with pytest.raises(Retired):
            b.run(b.process(reads)(ended(b, "Retired")[1]))
        with pytest.raises(Poisoned):
            b.run(b.process(reads)(ended(b, "Poisoned")[1]))
        return b.weft.Parallel(b.process(reads)(ended(b, "Retired")[1]))

    assert hows(b.run(b.process(outer)())) == ["<retired>"]


def test_a_failure_and_a_deadlock_come_first(b):  # rules 7.1, 7.2, 10.1
    async def spawns(b, r):
        b.weft.Spawn(b.process(own)(ValueError("mine")))
        await b.op(r.read())

    with pytest.raises(ValueError, match="mine"):
        b.run(b.process(spawns)(ended(b, "Retired")[1]))
    c = b.weft.Channel()
    with pytest.raises(Deadlock):
        b.run(b.process(reads)(c.reader()))  # the process is cancelled, but the run has deadlocked


def test_a_timeout_around_the_run_is_the_timeouts(b):  # rules 7.1, 7.12
    async def sleeps(b):
        await b.op(b.weft.sleep(3600))

    with pytest.raises(TimeoutError), b.weft.timeout(0.01):
        b.run(b.process(sleeps)())
    with b.weft.move_on_after(0.01) as limit:
        b.run(b.process(sleeps)())
    assert limit.expired


# --- the same as a guest --------------------------------------------------------------------------


@co.process
async def read(r: Any) -> Any:
    return await r.read()


class _Co:
    """The attributes of a backend that `ended` needs."""

    weft: Any = co


@CLOCKS
@pytest.mark.parametrize("how", KINDS)
def test_run_async_of_one_raises_what_left_it(play: Callable[..., Any], how: str, clock: str):
    """Rule 7.1: run_async() of one process raises the exception that left the process."""

    async def main() -> Any:
        with pytest.raises(KINDS[how]) as caught:
            await co.run_async(read(ended(_Co, how)[1]), clock=clock)
        return caught.value.met

    assert play(main()) is True


def test_several_guests_stay_quiet(play: Callable[..., Any]) -> None:
    """Rule 7.1: if several processes end by a channel, run_async() raises nothing."""

    async def main() -> Any:
        def quiet() -> Any:
            return read(ended(_Co, "Retired")[1])

        return [
            await co.run_async(quiet(), quiet()),
            await co.run_async([quiet()]),
            await co.Parallel(quiet()),
            await co.Sequence(quiet(), quiet()),
        ]

    assert hows(play(main())) == [["<retired>"] * n for n in (2, 1, 1, 2)]


def test_a_guest_that_was_cancelled(play: Callable[..., Any]) -> None:
    """Rules 6.5, 7.1, 13.4: Weft, asyncio, or the task that awaits the guest cancels the guest."""

    @co.process
    async def asked(by: str) -> None:
        if by == "weft":
            co.current_process().cancel()  # type: ignore[union-attr]
        else:
            asyncio.current_task().cancel()  # type: ignore[union-attr]
        await co.sleep(3600)

    async def main() -> None:
        with pytest.raises(Cancelled):
            await co.run_async(asked("weft"))
        with pytest.raises(asyncio.CancelledError):
            await co.run_async(asked("asyncio"))
        c = co.Channel()
        keep = c.writer()
        task = asyncio.ensure_future(co.run_async(read(c.reader())))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        keep.retire()

    play(main())


def test_run_hosted_by_asyncio_raises_too() -> None:
    """Rules 7.1, 13.1: with host="asyncio" a run raises the exception that left its only
    process."""
    with pytest.raises(Retired):
        co.run(read(ended(_Co, "Retired")[1]), host="asyncio")
    p = co.process(_cancelled)()
    with pytest.raises(Cancelled):
        co.run(p, host="asyncio")


async def _cancelled() -> None:
    co.current_process().cancel()  # type: ignore[union-attr]
    await co.sleep(3600)


# --- asyncio where no loop runs -------------------------------------------------------------------


def test_asyncio_without_a_loop_says_what_to_do(b):  # rule 13.1
    async def calls(b):
        asyncio.get_running_loop()

    for processes in (
        [b.process(calls)()],
        [b.process(calls)(), b.process(send)(+b.weft.Channel())],
    ):
        with pytest.raises(RuntimeError, match=r'no running event loop: .*host="asyncio"'):
            b.run(*processes)


def test_other_runtime_errors_are_left_alone(b):  # rule 7.2
    mine = RuntimeError("mine", 2)
    with pytest.raises(RuntimeError) as caught:
        b.run(b.process(own)(mine))
    assert caught.value.args == ("mine", 2)


def test_within_a_loop_it_works() -> None:
    """Rule 13.1: with host="asyncio" a process finds a running loop."""

    @co.process
    async def calls() -> bool:
        return asyncio.get_running_loop() is not None

    assert co.run(calls(), host="asyncio") is True

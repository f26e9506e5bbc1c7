"""weft.compat.apycsp: aPyCSP's names, inside asyncio and on Weft's own scheduler. The networks were
written for Weft."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from weft import coroutines
from weft.compat.apycsp import (
    Alternative,
    BufferedChannel,
    Channel,
    Guard,
    Parallel,
    PoisonException,
    Sequence,
    Skip,
    Spawn,
    Timer,
    poison_channel,
    process,
)
from weft.compat.apycsp.plugNplay import (
    Delta2,
    Identity,
    Mux2,
    Prefix,
    SeqDelta2,
    SkipProcess,
    Successor,
    poison_chans,
)
from weft.compat.apycsp.utils import CSPTaskGroup, aenumerate, avg
from weft.errors import BadUse, Deadlock


def on_weft(main: Any) -> Any:
    return coroutines.run(coroutines.process(main)())


@pytest.fixture(params=["weft", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Returns a function that runs an `async def` without arguments."""
    return on_weft if request.param == "weft" else lambda main: asyncio.run(main())


@process
async def send(values: Any, cout: Any) -> Any:
    """Writes the values."""
    return [await cout(v) for v in values]


@process
async def receive(count: int, cin: Any) -> Any:
    return [await cin() for _ in range(count)]


@process
async def drain(cin: Any) -> Any:
    return [v async for v in cin]


def test_channels_carry_and_writes_give_0(run: Any) -> None:
    async def main() -> Any:
        ch = Channel("one")
        return await Parallel(send(range(3), ch.write), receive(3, ch.read))

    assert run(main) == [[0, 0, 0], [0, 1, 2]]


def test_names_of_processes_and_channels() -> None:
    assert (send.__name__, send.__doc__) == ("send", "Writes the values.")
    ch = Channel()
    assert ch.read.channel() is ch
    assert "read" not in repr(Channel("named")) and "named" in repr(Channel("named"))
    assert ch._native.name.startswith("test_apycsp.py:")
    with pytest.raises(BadUse, match="async def"):
        process(lambda: None)


def test_sequence_and_nested_parallel(run: Any) -> None:
    @process
    async def number(n: int) -> int:
        return n

    async def main() -> Any:
        return await Sequence(
            number(1), Parallel(number(2), Sequence(number(3), number(4))), number(5)
        )

    assert run(main) == [1, [2, [3, 4]], 5]


def test_poison_that_the_program_raises_is_quiet_too(run: Any) -> None:
    """Rule 7.1: processes of the layers end as quietly as the originals do; Weft's own processes
    fail if the program raises poison itself (rule 3.5)."""

    @process
    async def raises() -> None:
        raise PoisonException("mine")

    async def main() -> Any:
        return await Parallel(raises(), send([], Channel().write))

    assert run(main) == [None, []]


def test_poison_ends_processes_quietly_and_loops_at_their_end(run: Any) -> None:
    async def main() -> Any:
        a, b, c = Channel("a"), Channel("b"), Channel("c")
        result = await Parallel(
            Sequence(send(range(4), a.write), a.poison()),
            Sequence(Identity(a.read, b.write), b.close()),
            Sequence(Successor(b, c.write), poison_channel(c.write)),
            drain(c.read),
            Sequence(receive(100, c.read)),
        )
        return [result[0][0], result[3], result[4], a.poisoned, a.verify(), c.verify()]

    first, drained, received, *state = run(main)
    assert first == [0, 0, 0, 0]
    assert received == [None]  # the channel was poisoned before its hundred values arrived
    assert set(drained) <= {1, 2, 3, 4}
    assert state == [True, True, True]


def test_a_poisoned_operation_without_process_leaves_parallel(run: Any) -> None:
    async def main() -> Any:
        good, bad, never = Channel(), Channel(), Channel()
        await bad.poison()
        with pytest.raises(PoisonException):
            await Parallel(bad.write(1), never.read())  # the other process is cancelled
        with pytest.raises(PoisonException):
            await Parallel(bad.write(1), bad.read())
        return await Parallel(good.write(1), good.read())

    assert run(main) == [0, 1]


def test_poison_does_not_spread_through_arguments(run: Any) -> None:
    """aPyCSP's processes do not spread poison: the channels whose ends they hold are not
    poisoned."""

    @process(verbose_poison=False)
    async def pass_on(cin: Any, cout: Any) -> None:
        while True:
            await cout(await cin())

    async def main() -> Any:
        a, b = Channel(), Channel()
        await a.poison()
        await Parallel(pass_on(a.read, b.write))
        return b.poisoned, await Parallel(b.write(1), b.read())

    assert run(main) == (False, [0, 1])


def test_verbose_poison_says_so(run: Any, capsys: Any) -> None:
    @process(verbose_poison=True)
    async def told(cin: Any) -> None:
        await cin()

    async def main() -> None:
        ch = Channel()
        await ch.poison()
        await told(ch.read)

    run(main)
    assert "Process poisoned" in capsys.readouterr().out


def test_alternatives(run: Any) -> None:
    async def main() -> Any:
        a, b, out = Channel("a"), BufferedChannel("b"), BufferedChannel("out")
        await b.write(1)
        await b.write(2)
        skip, late, write = Skip(), Timer(0.001), out.write.alt_pending_write(7)
        got = [await Alternative(a.read, b.read, skip).select() == (b.read, 1)]
        async with Alternative(b.read) as (g, value):
            got.append((g, value) == (b.read, 2))
        got.append(await Alternative(a.read, skip).pri_select() == (skip, None))
        alt = Alternative(a.read, late)
        # The guard `late` is chosen at each of several selects.
        got += [await alt.select() == (late, None) for _ in range(3)]
        got.append(await Alternative(write).select() == (write, 0))
        got.append(await out.read() == 7)
        return got

    assert run(main) == [True] * 8


def test_the_first_ready_guard_is_taken(run: Any) -> None:
    async def main() -> Any:
        a, b = BufferedChannel(), BufferedChannel()
        for i in range(3):
            await a.write(i)
            await b.write(i)
        alt = Alternative(b.read, a.read)
        return [(await alt.select())[0] is b.read for _ in range(4)]

    assert run(main) == [True, True, True, False]


def test_alternatives_meet(run: Any) -> None:
    @process
    async def side(cin: Any, cout: Any) -> Any:
        got = []
        for i in range(20):
            _, value = await Alternative(cout.alt_pending_write(f"v{i}"), cin).select()
            if value != 0:
                got.append(value)
        return len(got)

    async def main() -> Any:
        a, b = Channel(), Channel()
        return await Parallel(side(a.read, b.write), side(b.read, a.write))

    assert sum(run(main)) == 20


def test_a_poisoned_guard_raises(run: Any) -> None:
    async def main() -> Any:
        ch = Channel()

        async def selects() -> Any:
            with pytest.raises(PoisonException):
                await Alternative(ch.read).select()
            with pytest.raises(PoisonException):
                await Alternative(ch.write.alt_pending_write(1)).select()
            return "told"

        return await Parallel(selects(), ch.poison())

    assert run(main) == ["told", None]


def test_bad_guards_and_both_ends_are_refused(run: Any) -> None:
    class CustomGuard(Guard):
        def enable(self, alt: Any) -> Any: ...

    async def main() -> None:
        ch = Channel()
        for bad in (ch, ch.write, 3, CustomGuard()):
            with pytest.raises(BadUse, match="alt_pending_write"):
                Alternative(bad)
        with pytest.raises(BadUse, match="itself"):
            await Alternative(ch.read, ch.write.alt_pending_write(1)).select()
        with pytest.raises(BadUse, match="coroutines"):
            await Parallel(3)

    run(main)


def test_buffered_channels_and_what_waits() -> None:
    async def main() -> Any:
        ch, seen = Channel(), []

        @process
        async def watch() -> None:
            while ch.queue_len() < 2:
                await coroutines.yield_()
            seen.append((ch.queue_len(), "".join(ch.queue), ch.verify()))
            await Parallel(ch.read(), ch.read())

        await Parallel(ch.write(1), ch.write(2), watch())
        buffered = BufferedChannel()
        for i in range(40):
            await buffered.write(i)
        return seen, buffered.queue_len(), await receive(40, buffered.read), buffered.queue_len()

    assert on_weft(main) == ([(2, "ww", True)], 40, list(range(40)), 0)


@pytest.mark.parametrize("delta", [SeqDelta2, Delta2])
def test_a_consumer_that_poisons_its_own_end_alone(run: Any, delta: Any) -> None:  # rule 10.1
    """The delta ends by the poison, and the other processes would wait forever: in aPyCSP the
    network hangs in this case.
    """

    async def network(all_of_them: bool) -> Any:
        a, b, c, d = (Channel(name) for name in "abcd")

        @process
        async def consumer(cin: Any) -> Any:
            got = [await cin() for _ in range(3)]
            await poison_chans(*((a, b, c, d) if all_of_them else (cin,)))
            return got

        return await Parallel(
            Prefix(c.read, a.write, prefixItem=0),
            delta(a.read, b.write, d.write),
            Successor(b.read, c.write),
            consumer(d.read),
        )

    async def all_end() -> Any:
        return await network(True)

    async def some_wait() -> Any:
        return await network(False)

    assert run(all_end)[3] == [0, 1, 2]
    with pytest.raises(Deadlock):
        run(some_wait)


def test_plug_and_play(run: Any) -> None:
    async def main() -> Any:
        a, b, c, d, e = (Channel(name) for name in "abcde")

        @process
        async def first_five(cin: Any) -> Any:
            got = [await cin() for _ in range(5)]
            await poison_chans(a, b, c, d, e)
            return got

        result = await Parallel(
            Prefix(c.read, a.write, prefixItem=0),
            Delta2(a.read, b.write, d.write),
            Successor(b.read, c.write),
            SeqDelta2(d.read, e.write, e.write),
            first_five(e.read),
            SkipProcess(),
        )
        one, two, out = Channel(), Channel(), Channel()
        merged = await Parallel(
            send([1], one.write),
            send([2], two.write),
            Mux2(one.read, two.read, out.write),
            both(out, one),
        )
        return result[4], merged[3]

    @process
    async def both(out: Any, one: Any) -> Any:
        got = sorted(await receive(2, out.read))
        await one.poison()
        return got

    assert run(main) == ([0, 0, 1, 1, 2], [1, 2])


def test_helpers(run: Any) -> None:
    async def main() -> Any:
        ch = BufferedChannel()
        for v in "ab":
            await ch.write(v)
        got = []
        async for i, v in aenumerate(ch.read, 1):
            got.append((i, v))
            if i == 2:
                await ch.poison()
        return got

    assert run(main) == [(1, "a"), (2, "b")]
    assert avg([1, 2, 3]) == 2


def test_a_deadlock_is_reported() -> None:
    async def main() -> None:
        await Parallel(receive(1, Channel("lonely").read))

    with pytest.raises(Deadlock, match="lonely"):
        on_weft(main)


def test_a_deadlock_names_the_line_of_the_program_that_writes() -> None:  # rule 10.2
    async def main() -> None:
        await Parallel(send([1], Channel("lonely").write))

    with pytest.raises(Deadlock) as raised:
        on_weft(main)
    line = send.__wrapped__.__code__.co_firstlineno + 3  # type: ignore[attr-defined]
    assert f"send: write 'lonely' at test_apycsp.py:{line}" in str(raised.value)


def test_a_write_that_nobody_awaits_is_warned_of() -> None:
    ch = Channel()
    with pytest.warns(RuntimeWarning, match="'write' was never awaited"):
        ch.write(1)
    assert ch.queue_len() == 0


# ----------------------------------------------------------------------------------- asyncio alone


def test_spawned_tasks_use_channels() -> None:
    async def main() -> Any:
        ch = Channel()
        writers = [Spawn(ch.write(i)) for i in range(3)]
        got = sorted([await ch.read() for _ in range(3)])
        assert all(isinstance(w, asyncio.Task) for w in writers)
        return got, [await w for w in writers]

    assert asyncio.run(main()) == ([0, 1, 2], [0, 0, 0])


def test_a_write_may_be_made_before_there_is_a_loop() -> None:
    ch = Channel()
    made = ch.write(1), ch.write(2)
    assert made[0].__name__ == "write"

    async def main() -> Any:
        writers = [asyncio.create_task(w) for w in made]
        return [await ch.read(), await ch.read()], [await w for w in writers]

    assert asyncio.run(main()) == ([1, 2], [0, 0])


def test_processes_await_what_asyncio_has() -> None:
    @process
    async def sleeper(cout: Any) -> None:
        await asyncio.sleep(0)
        await cout("slept")

    async def main() -> Any:
        ch = Channel()
        return await Parallel(sleeper(ch.write), receive(1, ch.read))

    assert asyncio.run(main()) == [None, ["slept"]]


def test_a_read_that_times_out_loses_nothing() -> None:
    async def main() -> Any:
        ch = Channel()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ch.read(), 0.001)
        return await Parallel(ch.write("kept"), ch.read())

    assert asyncio.run(main()) == [0, "kept"]


def test_task_groups_wait_and_shield() -> None:
    async def raw(cin: Any) -> Any:
        return await cin()

    async def main() -> Any:
        ch = Channel()
        async with CSPTaskGroup() as group:
            reader = group.spawn(raw(ch.read))
            await ch.write(1)
        async with CSPTaskGroup(poison_shield=True) as shielded:
            shielded.spawn(raw(ch.read))
            await ch.poison()
        with pytest.raises(PoisonException):
            async with CSPTaskGroup() as group:
                group.spawn(raw(ch.read))
        async with CSPTaskGroup(poison_shield=True) as inside:
            await ch.read()
        with pytest.raises(ValueError, match="mine"):
            async with CSPTaskGroup():
                raise ValueError("mine")
        return reader.result(), shielded.poisoned, inside.poisoned

    assert asyncio.run(main()) == (1, True, True)

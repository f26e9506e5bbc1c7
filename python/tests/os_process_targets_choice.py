"""Processes of the operating system that test_far_choice.py starts: each chooses over ends whose
home is another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Any

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import (
    Alternative,
    Cancelled,
    Channel,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    move_on_after,
    process,
    select,
    skip,
    timeout,
    watched,
)

Got = list[tuple[int, Any]]


# --- in every kind of process ---------------------------------------------------------------------


def _in_blocks(a: Any, b: Any, mine: Any, out: Any) -> Got:
    """Reads everything from two far channels and a local channel, and writes one value to a far
    channel, until all have retired.
    """
    got: Got = []
    i, _ = select(Output(out, "out"), after(280))
    assert i == 0
    try:
        while True:
            got.append(select(a, mine, b, after(280)))
    except Retired as error:
        assert error.guard is not None
    return got


async def _in_coroutines(a: Any, b: Any, mine: Any, out: Any) -> Got:
    got: Got = []
    i, _ = await co.select(Output(out, "out"), after(280))
    assert i == 0
    try:
        while True:
            got.append(await co.select(a, mine, b, after(280)))
    except Retired as error:
        assert error.guard is not None
    return got


def _here(out: Any, n: int) -> None:
    for i in range(n):
        out.write(i)


async def _here_async(out: Any, n: int) -> None:
    for i in range(n):
        await out.write(i)


async def _in_tasks(a: Any, b: Any, mine: Any, w: Any, out: Any, n: int) -> Got:
    return (await asyncio.gather(_in_coroutines(a, b, mine, out), _closing(w, n)))[0]


async def _closing(w: Any, n: int) -> None:
    await _here_async(w, n)
    w.retire()


@process
def merge(kind: str, a: Any, b: Any, out: Any, n: int) -> Got:
    c = Channel("local")
    mine, w = c.reader(), c.writer()
    if kind == "tasks":
        return asyncio.run(_in_tasks(a, b, mine, w, out, n))
    if kind == "coroutines":
        chooser, writer = co.process(_in_coroutines), co.process(_here_async)
    elif kind == "greenlets":
        chooser, writer = gr.process(_in_blocks), gr.process(_here)
    else:
        chooser, writer = th.process(_in_blocks), th.process(_here)
    return Parallel(chooser(a, b, mine, out), writer(w, n))[0]


# --- guards beside them ---------------------------------------------------------------------------


@process
def times_out(inp: Any, out: Any, ready: Any) -> list[Any]:
    """Chooses with timers: first without partners at the other sides of the channels, then with
    partners."""
    results: list[Any] = [
        select(inp, after(0.02)),
        select(inp, Output(out, "never"), after(0.02)),
        select(inp, skip()),
        select(Output(out, "never"), after(0)),
        select(inp, skip(), mode="priority"),
        select(skip(), inp, mode="priority"),
    ]
    with move_on_after(0.02) as limit:
        inp.read()
    results.append(limit.expired)
    with move_on_after(0.02) as limit:
        select(inp, Output(out, "never"))
    results.append(limit.expired)
    try:
        with timeout(0.02):
            out.write("never")
    except TimeoutError:
        results.append("timeout")
    ready.write(None)
    results.append(select(inp, after(280)))
    return results


@process
def waits_for_an_end(inp: Any, ready: Any) -> list[Any]:
    """Uses the end of a process in this OS process as a guard: while that process runs, when it
    ends, and after it has ended.
    """
    go = Channel("go")

    @th.process
    def until(r: Any) -> str:
        r.read()
        return "ended"

    @th.process
    def chooses(p: Any, w: Any) -> list[Any]:
        results: list[Any] = [select(inp, p.ended(), after(0.02))]
        w.write(None)
        results.append(select(inp, p.ended(), after(280)))
        results.append(select(p.ended(), inp, mode="priority"))
        results.append(select(inp, p.ended(), mode="priority"))
        return results

    p = until(go.reader())
    results = Parallel(p, chooses(p, go.writer()))
    ready.write(None)
    return [*results[1], inp.read()]


@process
def ends_elsewhere(inp: Any) -> list[Any]:
    """Starts an OS process that is killed. The end of that OS process is a guard beside a far
    end."""

    @th.process
    def chooses(p: Any) -> Any:
        return select(inp, p.ended(), after(280))

    p = dies()
    i, ended = Parallel(chooses(p), watched(p))[0]
    return [i, ended.how, ended.error.signal]


@process
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# --- how it ends ----------------------------------------------------------------------------------


@process
def how_it_ends(a: Any, b: Any) -> list[str]:
    """Chooses until both channels have ended; returns the values that it has read, and how the
    channels ended."""
    messages = []
    for _ in range(10):
        try:
            i, v = select(a, b, after(280))
            messages.append(f"{i} {v}")
        except (Retired, Poisoned, PeerDied) as error:
            messages.append(f"{type(error).__name__} {error.guard} {getattr(error, 'strength', 0)}")
            break
    return messages


@process
def raises_at_the_first(a: Any, b: Any) -> list[str]:
    messages = []
    for _ in range(10):
        try:
            i, v = select(a, b, after(280), ended="raise")
            messages.append(f"{i} {v}")
        except Retired as error:
            messages.append(f"Retired {error.guard}")
            break
    return messages


# --- alternatives, and many -----------------------------------------------------------------------


@process
def alternative(a: Any, b: Any, mode: str, n: int) -> list[int]:
    """Returns which guards a standing alternative has chosen, over two far readers that are always
    ready: `n` times, and once more while the first guard is disabled.
    """
    chosen = []
    with Alternative(a, b, after(280), mode=mode) as alt:
        for _ in range(n):
            chosen.append(alt.select()[0])
        alt.enable(0, False)
        chosen.append(alt.select()[0])
        alt.enable(0, True)
        chosen.append(alt.select()[0])
    return chosen


@process
def meets_another(inp: Any, out: Any, n: int, first: bool) -> list[Any]:
    """Runs one of two processes, each with a local channel beside the far ones, so that the two
    processes' choices over several homes meet each other (WIRE.md 5.4).
    """
    c = Channel("idle")
    mine, keep = c.reader(), c.writer()
    got = []
    for i in range(n):
        if first:
            got.append(select(mine, Output(out, i), after(280))[0])
            got.append(select(inp, mine, after(280))[1])
        else:
            got.append(select(inp, mine, after(280))[1])
            got.append(select(mine, Output(out, i), after(280))[0])
    keep.retire()
    return got


@process
def killed_when_told(a: Any, b: Any, out: Any, kill: Any) -> None:
    """Passes on the values that it reads, by choices over several homes, until a test kills this
    process.
    """

    @th.process
    def chooses() -> None:
        c = Channel("idle")
        mine, kept = c.reader(), c.writer()
        while True:
            _, v = select(a, mine, b)
            select(Output(out, v), mine)
        kept.retire()

    @th.process
    def kills(signals: Any) -> None:
        signals.read()
        os.kill(os.getpid(), signal.SIGKILL)

    Parallel(chooses(), kills(kill))


@process
def keeps_a_channel(here: Any, over: Any) -> None:
    """Writes its process id, and then a reader of a channel without a writer."""
    c = Channel("nothing")
    kept = c.writer()
    here.write((os.getpid(), c.reader()))
    over.read()
    kept.retire()


@process
def is_cancelled(ready: Any, inp: Any, out: Any, path: str) -> None:
    from pathlib import Path

    c = Channel("idle")
    mine, keep = c.reader(), c.writer()
    ready.write(None)
    try:
        select(inp, mine, Output(out, "never"))
    except Cancelled:
        Path(path).write_text("cancelled", encoding="utf-8")
        raise
    keep.retire()


@process
def task_is_cancelled(inp: Any) -> list[str]:
    c = Channel("idle")
    mine, keep = c.reader(), c.writer()

    async def one(what: Any) -> str:
        task = asyncio.ensure_future(what())
        await asyncio.sleep(0.02)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "CancelledError"
        except BaseException as error:
            return repr(error)
        return "went on"

    async def delegated() -> None:
        await co.select(inp)

    async def spanning() -> None:
        await co.select(inp, mine)

    async def timed() -> None:
        assert (await co.select(inp, mine, after(0.001)))[0] == 2
        await asyncio.sleep(60)

    async def all_of_them() -> list[str]:
        return [await one(w) for w in (delegated, spanning, timed)]

    results = asyncio.run(all_of_them())
    keep.retire()
    return results


@process
def misuses(inp: Any, both_r: Any, both_w: Any) -> list[str]:
    from weft.processes import Barrier

    messages = []
    for use in (
        lambda: select(inp, Barrier(2)),
        lambda: select(both_r, Output(both_w, 1)),
    ):
        try:
            use()
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    messages.append(str(inp.read()))
    return messages


@process
async def leaves_choices(inp: Any, ready: Any) -> list[Any]:
    """Leaves waiting choices by closing them, dropping them and throwing into them; then another
    choice reads the value.
    """
    c = Channel("idle")
    mine, kept = c.reader(), c.writer()
    results: list[Any] = []
    for how in ("close", "drop", "throw"):
        for guards in ((inp, after(280)), (inp, mine, after(280))):
            choice: Any = co.select(*guards)
            choice.send(None)
            if how == "close":
                choice.close()
            elif how == "throw":
                with contextlib.suppress(KeyError):
                    choice.throw(KeyError(how))
            del choice
            results.append((await co.select(inp, mine, after(0.01)))[0])
    async with co.move_on_after(0.01) as limit:
        await co.select(inp, mine)
    results.append(limit.expired)
    await ready.write(None)
    results.append(await co.select(inp, mine, after(280)))
    kept.retire()
    return results


@process
def first_of(inp: Any) -> Any:
    return inp.read()


@process
def hands_out_meanwhile(inp: Any) -> list[Any]:
    """Offers a value in a choice over several homes, at a local channel whose reader is then sent
    to another OS process.
    """
    c, go = Channel("c"), Channel("go")

    @th.process
    def chooses(w: Any, began: Any) -> int:
        began.write(None)
        return int(select(inp, Output(w, {"k": [1]}))[0])

    @th.process
    def hands_out(r: Any, began: Any) -> Any:
        began.read()
        return Parallel(first_of(r))[0]

    return Parallel(chooses(c.writer(), go.writer()), hands_out(c.reader(), go.reader()))


@process
def waits_beside_a_descriptor(r: Any) -> None:
    reads, writes = os.pipe()
    try:
        th.select(r, th.readable(reads))
    finally:
        os.close(reads)
        os.close(writes)

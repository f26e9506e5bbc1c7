"""Fourteen bugs of Go programs from GoBench's GoKer, written in Weft, each with its repair.

A goroutine is a process, a mutex is a buffer of one place, and `close(c)` is the retirement of the
writer's end. The function of a kernel has an argument `mended`: False makes the bug. A process that
a bug leaves behind ends quietly in Weft once its partner has released its ends; complete() finds
such a process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from weft.coroutines import (
    Channel,
    Group,
    Input,
    Output,
    Parallel,
    Retired,
    Timer,
    after,
    process,
    run,
    select,
    skip,
    sleep,
    yield_,
)

Kernel = Callable[[bool], Any]
KERNELS: dict[str, tuple[Kernel, str]] = {}  # name → the function, and when its times pass


def kernel(name: str, time: str = "quiet") -> Callable[[Kernel], Kernel]:
    def add(function: Kernel) -> Kernel:
        KERNELS[name] = (function, time)
        return function

    return add


class LeftBehind(Exception):
    """A process ended in the middle of its work."""


def complete(*processes: Any) -> None:
    """Runs the processes. Raises LeftBehind unless each of them reaches its end."""
    results = run(*processes)
    results = results if isinstance(results, list) else [results]
    if missing := [i for i, result in enumerate(results) if result != "end"]:
        raise LeftBehind(f"processes {missing} were left behind")


Mutex = tuple[Any, Any]


def mutex(name: str) -> Callable[[], Mutex]:
    """Makes a mutex. Calling the mutex returns the ends that one of its users needs."""
    place = Channel(name, capacity=1)
    return lambda: (place.writer(), place.reader())


@asynccontextmanager
async def locked(m: Mutex) -> AsyncIterator[None]:
    await m[0].write(None)
    yield
    await m[1].read()


async def until_closed(end: Any) -> None:
    async for _ in end:
        pass


# --- etcd/6857: a client asks a node for its status while it is being stopped ---------------------


@process
async def node(requests: Any, stops: Any, stopped: Any) -> str:
    while True:
        which, answer = await select(requests, stops)
        if which == 1:
            stopped.retire()
            return "end"
        await answer.write("status")


@process
async def client(requests: Any, stopped: Any, mended: bool) -> str:
    answers = Channel("answers")
    if not mended:
        await requests.write(answers.writer())
    else:
        try:
            await select(Output(requests, answers.writer()), Input(stopped, ended="raise"))
        except Retired:
            return "end"
    await answers.reader().read()
    return "end"


@process
async def stopper(stops: Any, stopped: Any) -> str:
    try:
        await select(Output(stops, None), Input(stopped, ended="raise"))
    except Retired:
        return "end"
    await until_closed(stopped)
    return "end"


@kernel("etcd/6857")
def etcd_6857(mended: bool) -> None:
    requests, stops, stopped = Channel("requests"), Channel("stops"), Channel("stopped")
    complete(
        node(requests.reader(), stops.reader(), stopped.writer()),
        client(requests.writer(), stopped.reader(), mended),
        stopper(stops.writer(), stopped.reader()),
    )


# --- grpc/660: a benchmark that stops leaves the call under way without a receiver ----------------


@process
async def call(done: Any) -> str:
    await done.write(None)
    return "end"


@process
async def caller(stop: Any, mended: bool) -> str:
    async with Group() as calls:
        for _ in range(3):
            done = Channel("done", capacity=int(mended))
            answer = done.reader()
            calls.start(call(done.writer()))
            which, _ = await select(stop, answer)
            if which == 0:
                break
    return "end"


@process
async def says_stop(stop: Any) -> str:
    with suppress(Retired):
        await stop.write(None)
    return "end"


@kernel("grpc/660")
def grpc_660(mended: bool) -> None:
    stop = Channel("stop")
    complete(caller(stop.reader(), mended), says_stop(stop.writer()))


# --- kubernetes/5316: a request takes longer than its limit, and nobody takes its result ---------


@process
async def handles(result: Any, error: Any) -> str:
    await sleep(2)
    await error.write("failed")
    return "end"


@process
async def request(mended: bool) -> str:
    result, error = Channel("result", capacity=int(mended)), Channel("error", capacity=int(mended))
    results, errors = result.reader(), error.reader()
    async with Group() as g:
        g.start(handles(result.writer(), error.writer()))
        await select(results, errors, after(1))
    return "end"


@kernel("kubernetes/5316", "any")
def kubernetes_5316(mended: bool) -> None:
    complete(request(mended))


# --- kubernetes/25331: a watch sends its error to a process that has stopped listening ------------


@process
async def watch(errors: Any, context: Any, cancel: Any, results: Any, mended: bool) -> str:
    try:
        _, error = await select(errors, Input(context, ended="raise"))
        if not mended:
            cancel.retire()
            await results.write(error)
        else:
            await select(Output(results, error), Input(context, ended="raise"))
    except Retired:
        pass
    return "end"


@process
async def ends_watch(errors: Any, cancel: Any) -> str:
    with suppress(Retired):
        await errors.write("error")
    cancel.retire()
    return "end"


@kernel("kubernetes/25331")
def kubernetes_25331(mended: bool) -> None:
    errors, context, results = Channel("errors"), Channel("context"), Channel("results")
    listener = results.reader()  # this end reads no more values
    its_own, other = context.writer(), context.writer()
    if mended:
        its_own.retire()
    complete(
        watch(errors.reader(), context.reader(), its_own, results.writer(), mended),
        ends_watch(errors.writer(), other),
    )
    del listener


# --- moby/33781: a health check is stopped while its probe runs, and nobody takes the result ------


@process
async def probe(results: Any) -> str:
    await results.write("healthy")
    return "end"


@process
async def health(stop: Any, mended: bool) -> str:
    async with Group() as probes:
        for _ in range(2):
            which, _ = await select(stop, after(1))
            if which == 0:
                break
            channel = Channel("results")
            results = channel.reader()
            probes.start(probe(channel.writer()))
            which, _ = await select(stop, results, after(1))
            if which == 2 or (which == 0 and mended):
                await results.read()
            if which == 0:
                break
    return "end"


@process
async def stops_health(stop: Any) -> str:
    await sleep(1)
    with suppress(Retired):
        await stop.write(None)
    return "end"


@kernel("moby/33781", "any")
def moby_33781(mended: bool) -> None:
    stop = Channel("stop")
    complete(health(stop.reader(), mended), stops_health(stop.writer()))


# --- cockroach/2448: two loops, each of which waits until the other takes its value ---------------


@process
async def store(events: Any, callbacks: Any) -> str:
    try:
        while True:
            await events.read()
            await callbacks.write(None)
    except Retired:
        return "end"


@process
async def raft(events: Any, callbacks: Any, mended: bool) -> str:
    sent = taken = 0
    while taken < 2:
        if mended:
            guards = [callbacks, Output(events, None)] if sent < 2 else [callbacks]
            which, _ = await select(*guards)
            sent, taken = sent + (which == 1), taken + (which == 0)
            continue
        which, _ = await select(callbacks, skip()) if sent < 2 else (0, await callbacks.read())
        taken += which == 0
        if which == 1:
            await yield_()
            await events.write(None)
            sent += 1
    return "end"


@kernel("cockroach/2448")
def cockroach_2448(mended: bool) -> None:
    events, callbacks = Channel("events"), Channel("callbacks")
    complete(
        store(events.reader(), callbacks.writer()),
        raft(events.writer(), callbacks.reader(), mended),
    )


# --- cockroach/35073: a consumer leaves, and its buffer is full -----------------------------------


@process
async def pushes(rows: Any, gone: Any, n: int) -> str:
    for _ in range(n):
        if gone is None:
            await rows.write(0)
            continue
        try:
            await select(Output(rows, 0), Input(gone, ended="raise"))
        except Retired:
            break
    return "end"


@process
async def consumes(rows: Any, gone: Any) -> str:
    if gone is not None:
        gone.retire()
    return "end"


@kernel("cockroach/35073")
def cockroach_35073(mended: bool) -> None:
    rows, gone = Channel("rows", capacity=2), Channel("gone")
    kept = rows.reader()  # the channel outlives its consumer

    def end() -> Any:
        return gone.reader() if mended else None

    complete(
        pushes(rows.writer(), end(), 3),
        pushes(rows.writer(), end(), 1),
        consumes(rows.reader(), gone.writer() if mended else None),
    )
    del kept


# --- etcd/6873: stop() waits, under a lock, for a process that needs the lock ---------------------


@process
async def broadcasts(updates: Any, done: Any, m: Mutex) -> str:
    async for _ in updates:
        async with locked(m):
            pass
    done.retire()
    return "end"


@process
async def updates_once(updates: Any) -> str:
    await select(Output(updates, None), skip())
    return "end"


@process
async def stops_broadcasts(updates: Any, done: Any, m: Mutex, mended: bool) -> str:
    if mended:
        updates.retire()
        await until_closed(done)
        return "end"
    async with locked(m):
        updates.retire()
        await until_closed(done)
    return "end"


@kernel("etcd/6873")
def etcd_6873(mended: bool) -> None:
    updates, done, m = Channel("updates", capacity=1), Channel("done"), mutex("mutex")
    complete(
        broadcasts(updates.reader(), done.writer(), m()),
        updates_once(updates.writer()),
        stops_broadcasts(updates.writer(), done.reader(), m(), mended),
    )


# --- etcd/7492: tokens are added under the lock that their expiry takes ---------------------------


@process
async def expires(tokens: Any, stop: Any, m: Mutex) -> str:
    tick, any_token = Timer(1), False
    while True:
        which, _ = await select(tokens, stop, tick)
        if which == 1:
            return "end"
        if which == 2 and any_token:
            async with locked(m):
                any_token = False
        any_token = any_token or which == 0


@process
async def adds(tokens: Any, m: Mutex, mended: bool) -> str:
    async with locked(m):
        if not mended:
            await tokens.write(None)
    if mended:
        await tokens.write(None)
    return "end"


@process
async def adds_three(tokens: Any, stop: Any, mutexes: list[Mutex], mended: bool) -> str:
    await Parallel([adds(tokens.channel.writer(), m, mended) for m in mutexes])
    await stop.write(None)
    return "end"


@kernel("etcd/7492", "any")
def etcd_7492(mended: bool) -> None:
    tokens, stop, m = Channel("tokens", capacity=1), Channel("stop"), mutex("mutex")
    complete(
        expires(tokens.reader(), stop.reader(), m()),
        adds_three(tokens.writer(), stop.writer(), [m(), m(), m()], mended),
    )


# --- kubernetes/1321: a watcher leaves while an event is sent to it, under two locks --------------


@process
async def sends_events(watchers: dict[str, Any], outer: Mutex, inner: Mutex, mended: bool) -> str:
    for _ in range(2):
        async with locked(outer), locked(inner):
            for events, gone in list(watchers.values()):
                if not mended:
                    await events.write(None)
                    continue
                with suppress(Retired):
                    await select(Output(events, None), Input(gone, ended="raise"))
    return "end"


@process
async def watcher(watchers: dict[str, Any], outer: Mutex, inner: Mutex, mended: bool) -> str:
    events, gone = Channel("events"), Channel("gone")
    unread, leaves = events.reader(), gone.writer()
    async with locked(inner):
        watchers["w"] = (events.writer(), gone.reader())
    if mended:
        leaves.retire()
    async with locked(outer):
        watchers.pop("w")[0].retire()
    del unread
    return "end"


@kernel("kubernetes/1321")
def kubernetes_1321(mended: bool) -> None:
    watchers: dict[str, Any] = {}
    outer, inner = mutex("outer"), mutex("inner")
    complete(
        sends_events(watchers, outer(), inner(), mended),
        watcher(watchers, outer(), inner(), mended),
    )


# --- kubernetes/6632: a frame is written while the connection that would read it closes -----------


@process
async def drains(resets: Any) -> str:
    await until_closed(resets)
    return "end"


@process
async def closes(closing: Any, resets: Any, m: Mutex, shared: dict[str, Any], mended: bool) -> str:
    await closing.read()
    async with Group() as g:
        if mended:
            g.start(drains(resets.channel.reader()))
        async with locked(m):
            resets.retire()
            shared["open"] = False
        if mended:
            shared["writer"].retire()
    return "end"


@process
async def writes_frame(resets: Any, m: Mutex, shared: dict[str, Any]) -> str:
    async with locked(m):
        if shared["open"]:
            await resets.write(None)
    return "end"


@process
async def says_close(closing: Any) -> str:
    await closing.write(None)
    return "end"


@kernel("kubernetes/6632")
def kubernetes_6632(mended: bool) -> None:
    closing, resets, m = Channel("closing"), Channel("resets"), mutex("mutex")
    shared: dict[str, Any] = {"open": True, "writer": resets.writer()}
    complete(
        says_close(closing.writer()),
        closes(closing.reader(), resets.reader(), m(), shared, mended),
        writes_frame(resets.writer(), m(), shared),
    )


# --- kubernetes/10182: a status is sent under the lock that its receiver takes --------------------


@process
async def takes_statuses(statuses: Any, m: Mutex) -> str:
    for _ in range(2):
        await statuses.read()
        async with locked(m):
            pass
    return "end"


@process
async def sends_status(statuses: Any, m: Mutex, mended: bool) -> str:
    async with locked(m):
        if not mended:
            await statuses.write(None)
    if mended:
        await statuses.write(None)
    return "end"


@kernel("kubernetes/10182")
def kubernetes_10182(mended: bool) -> None:
    statuses, m = Channel("statuses"), mutex("mutex")
    complete(
        takes_statuses(statuses.reader(), m()),
        sends_status(statuses.writer(), m(), mended),
        sends_status(statuses.writer(), m(), mended),
    )


# --- serving/2137: a breaker's requests are released in another order than they got in ------------


@process
async def passes_breaker(
    begun: Any, pending: Mutex, active: Mutex, gate: Mutex, answer: Any
) -> str:
    await begun.write(None)
    accepted, _ = await select(Output(pending[0], None), skip())
    if accepted == 0:
        await active[0].write(None)
        async with locked(gate):
            pass
        await active[1].read()
        await pending[1].read()
    await answer.write(accepted == 0)
    return "end"


@process
async def tests_breaker(mended: bool) -> str:
    pending, active = Channel("pending", capacity=2), Channel("active", capacity=1)

    def both(c: Any) -> Mutex:
        return (c.writer(), c.reader())

    kept = both(pending), both(active)
    async with Group() as g:
        requests = []
        for i in range(2):
            gate, begin, answer = mutex(f"gate{i}"), Channel("begun"), Channel("answer", capacity=1)
            mine, begun, answers = gate(), begin.reader(), answer.reader()
            await mine[0].write(None)
            g.start(
                passes_breaker(begin.writer(), both(pending), both(active), gate(), answer.writer())
            )
            await begun.read()
            requests.append((mine, answers))
        if mended:
            for mine, _ in requests:
                await mine[1].read()
        for mine, answers in requests:
            if not mended:
                await mine[1].read()
            await answers.read()
    del kept
    return "end"


@kernel("serving/2137")
def serving_2137(mended: bool) -> None:
    complete(tests_breaker(mended))


# --- moby/28462: a monitor is told to stop under the lock that its probe takes --------------------


@process
async def monitors(stop: Any, m: Mutex) -> str:
    while True:
        try:
            which, _ = await select(Input(stop, ended="raise"), skip())
        except Retired:
            return "end"
        if which == 0:
            return "end"
        await yield_()
        async with locked(m):
            pass


@process
async def changes_state(stop: Any, m: Mutex, mended: bool) -> str:
    async with locked(m):
        if mended:
            stop.retire()
        else:
            await stop.write(None)
    return "end"


@kernel("moby/28462")
def moby_28462(mended: bool) -> None:
    stop, m = Channel("stop"), mutex("mutex")
    complete(monitors(stop.reader(), m()), changes_state(stop.writer(), m(), mended))

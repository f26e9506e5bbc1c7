"""The programs of test_deep_and_many.py. Usage: deep_objects.py deep DEPTH | many"""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable
from typing import Any

if sys.version_info < (3, 11):
    from exceptiongroup import ExceptionGroup

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft import observe
from weft.processes import Barrier, Channel, Executor, Hosts, process


def deep(n: int, of: str) -> Any:
    x: Any = ()
    for _ in range(n):
        x = [x] if of == "list" else (x,) if of == "tuple" else {1: x}
    return x


@co.process
async def a_coroutine(*args: Any, **keywords: Any) -> Any:
    return args


@th.process
def a_thread(*args: Any, **keywords: Any) -> Any:
    return args


@gr.process
def a_greenlet(*args: Any, **keywords: Any) -> Any:
    return args


@th.process
def writes(out: Any, value: Any) -> None:
    out.write(value)


@th.process
def reads(inp: Any) -> Any:
    return inp.read()


@th.process
def receives_and_returns(inp: Any, value: Any) -> Any:
    """Holds an end that it has received, so its result is searched for that end."""
    inp.read()
    return value


@process
def away(value: Any) -> Any:
    return value


@process
def away_returns(n: int) -> Any:
    return deep(n, "list")


@process
def away_reads(inp: Any) -> None:
    inp.read()


def made(n: int) -> Any:
    return deep(n, "list")


def given(value: Any) -> Any:
    return value


def by_a_channel(value: Any, capacity: int = 0) -> Any:
    c = th.Channel(capacity=capacity)
    return th.Parallel(writes(c.writer(), value), reads(c.reader()))


def in_the_debug_mode(value: Any) -> Any:
    observe.debug(True, report=lambda _: None)
    try:
        return by_a_channel(value)
    finally:
        observe.debug(False)


def beside_an_end(value: Any) -> Any:
    c = th.Channel()
    return th.Parallel(
        receives_and_returns(c.reader(), value), writes(c.writer(), th.Channel().reader())
    )


def typed(value: Any) -> Any:
    c = th.Channel(type=list[int], capacity=1)
    c.writer().write(value)


def to_another(hosts: Hosts, value: Any) -> Any:
    c = th.Channel()
    far_process = away_reads.on(hosts)(c.reader())
    return th.Parallel(far_process, writes(c.writer(), value))


def failure(how: str, n: int) -> BaseException:
    """Returns an exception with n causes, groups or lists, one within the other."""
    error = ValueError(deep(n, "list") if how == "arguments" else "the first")
    for _ in range(n if how != "arguments" else 0):
        outer: Any = ValueError("later") if how == "causes" else ExceptionGroup("of", [error])
        outer.__cause__ = error if how == "causes" else None
        error = outer
    return error


@th.process
def fails(how: str, n: int) -> None:
    raise failure(how, n)


@process
def fails_away(how: str, n: int) -> None:
    raise failure(how, n)


def raised(how: str, n: int) -> None:
    raise failure(how, n)


def comes(failing: Callable[[], Any]) -> None:
    """Checks that the exception that `failing` raises arrives unchanged. If the exception was
    raised in another OS process and cannot be pickled, its text must arrive.
    """
    try:
        failing()
    except (ValueError, RuntimeError, ExceptionGroup):
        return
    raise AssertionError("no failure")


def say(what: str, does: Callable[[], Any]) -> None:
    try:
        does()
    except (th.BadUse, MemoryError, OSError) as error:
        print(f"{what}: {type(error).__name__}", flush=True)
    else:
        print(f"{what}: done", flush=True)


def all_that_is_deep(n: int) -> None:
    for of in ("list", "tuple", "dict"):
        value = deep(n, of)
        say(f"{of}, arguments", lambda: co.run(a_coroutine(value, x=value)))  # noqa: B023
        say(f"{of}, of a thread", lambda: co.run(a_thread(value)))  # noqa: B023
        say(f"{of}, of a greenlet", lambda: co.run(a_greenlet(value)))  # noqa: B023
        say(f"{of}, a value", lambda: by_a_channel(value))  # noqa: B023
        say(f"{of}, in the debug mode", lambda: in_the_debug_mode(value))  # noqa: B023
    say("a result", lambda: beside_an_end(value))
    say("twice", lambda: th.Parallel(a_thread(value) * 2))
    say("a typed value", lambda: typed(value))
    with Hosts(1) as hosts, Executor(1) as pool:
        say("an argument there", lambda: th.run(away.on(hosts)(value)))
        say("a result there", lambda: th.run(away_returns.on(hosts)(n)))
        say("a value there", lambda: to_another(hosts, value))
        say("a call's argument", lambda: pool.submit(given, value).result())
        say("a call's result", lambda: pool.submit(made, n).result())
        say("many calls", lambda: list(pool.map(given, [1, value, 2])))
        for how in ("causes", "groups", "arguments"):
            say(f"{how}, a failure", lambda: comes(lambda: th.run(fails(how, n))))  # noqa: B023
            say(f"{how}, there", lambda: comes(lambda: th.run(fails_away.on(hosts)(how, n))))  # noqa: B023
            say(f"{how}, of a call", lambda: comes(pool.submit(raised, how, n).result))  # noqa: B023
        assert pool.submit(given, 3).result() == 3
    print("over")


def all_that_is_many() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    n = 1 << 40
    say("Channel() * n", lambda: Channel() * n)
    say("n * Channel()", lambda: n * Channel())
    say("coroutine * n", lambda: a_coroutine() * n)
    say("thread * n", lambda: a_thread() * n)
    say("Barrier(n)", lambda: Barrier(n))
    say("Channel(capacity=n)", lambda: Channel(capacity=n))
    say("Hosts(n)", lambda: Hosts(n))
    say("Executor(n)", lambda: Executor(n).shutdown())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "deep":
        all_that_is_deep(int(sys.argv[2]))
    else:
        all_that_is_many()

"""pycsp processes that run in OS processes of their own, for test_apart.py; they are in a module of
their own, which these OS processes can import."""

from __future__ import annotations

import os
from typing import Any

from weft.compat.pycsp.parallel import *  # noqa: F403
from weft.compat.pycsp.parallel import (
    AltSelect,
    ChannelPoisonException,
    InputGuard,
    OutputGuard,
    Parallel,
    choice,
    current_process_id,
    multiprocess,
    poison,
    retire,
)


@multiprocess
def who() -> tuple[int, str]:
    return os.getpid(), current_process_id()


@multiprocess
def prefix(inp: Any, out: Any, first: int) -> None:
    out(first)
    while True:
        out(inp())


@multiprocess
def delta(inp: Any, one: Any, two: Any) -> None:
    while True:
        value = inp()
        one(value)
        two(value)


@multiprocess(pycsp_host="localhost", pycsp_port=0)
def successor(inp: Any, out: Any) -> None:
    while True:
        out(inp() + 1)


@multiprocess
def consumer(inp: Any, n: int) -> list[int]:
    got = [inp() for _ in range(n)]
    poison(inp)
    return got


@multiprocess
def writes(out: Any, values: list[int], how: str) -> None:
    for value in values:
        out(value)
    if how == "poison":
        poison(out)
    elif how == "retire":
        retire(out)


@multiprocess
def reads_all(ends: dict[str, list[Any]]) -> tuple[list[int], str]:
    """Reads from ends in lists within dictionaries."""
    got = []
    try:
        while True:
            got.append(ends["in"][0]())
    except ChannelPoisonException:
        return got, "poison"


@multiprocess
def nests() -> list[int]:
    return [os.getpid(), *(pid for pid, _ in Parallel(who(), who()))]


@multiprocess
def chooses(one: Any, two: Any, out: Any, n: int) -> list[int]:
    got: list[int] = []

    @choice
    def take(channel_input: Any = None) -> None:
        got.append(channel_input)

    for _ in range(n):
        AltSelect(InputGuard(one, take()), InputGuard(two, take()))
    AltSelect(OutputGuard(out, msg=sum(got)))
    return sorted(got)


@multiprocess
def fails() -> None:
    raise LookupError("there")


@multiprocess
def dies() -> None:
    os._exit(3)

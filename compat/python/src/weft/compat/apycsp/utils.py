"""aPyCSP's helpers: a task group, aenumerate, and the functions that its benchmark programs use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from weft.compat._arguments import argparser, avg, handle_common_args
from weft.compat.apycsp import PoisonException, Spawn

__all__ = ["CSPTaskGroup", "aenumerate", "argparser", "avg", "handle_common_args"]


class CSPTaskGroup:
    """`async with CSPTaskGroup() as g:` with `g.spawn(coroutine)`: leaving the block waits for all
    tasks that it spawned.

    Args:
        name: the group's name in the texts of `verbose`. verbose: whether to print when the group
        waits and when it is done. poison_shield: whether the block suppresses a poison that leaves
        it or a spawned task;
            `poisoned` records it.
    """

    def __init__(
        self, name: Any = None, verbose: bool = False, poison_shield: bool = False
    ) -> None:
        self.group: list[Any] = []
        self.name = id(self) if name is None else name
        self.verbose = verbose
        self.poison_shield = poison_shield
        self.poisoned = False

    def spawn(self, proc: Any) -> Any:
        """Starts a coroutine and returns its task."""
        handle = Spawn(proc)
        self.group.append(handle)
        return handle

    def _say(self, what: str) -> None:
        if self.verbose:
            print(f"TaskGroup {self.name} {what}")

    async def __aenter__(self) -> CSPTaskGroup:
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is None:
            self._say("waiting for procs to finish")
            try:
                await asyncio.gather(*self.group)
            except PoisonException as poison:
                error = poison
            else:
                self._say("done")
                return False
        if not isinstance(error, PoisonException):
            return False
        self.poisoned = True
        if not self.poison_shield:
            raise error
        return True

    def __repr__(self) -> str:
        return f"<CSPTaskGroup, gsize={len(self.group)}>"


async def aenumerate(
    coroutine: AsyncIterable[Any], start: int = 0
) -> AsyncIterator[tuple[int, Any]]:
    """`enumerate` for `async for`."""
    async for value in coroutine:
        yield start, value
        start += 1

"""aPyCSP's helpers: a task group, aenumerate, and those of its benchmark programs."""

from .._arguments import avg, handle_common_args  # noqa: F401
from . import PoisonException, Spawn


class CSPTaskGroup:
    """`async with CSPTaskGroup() as g:` with `g.spawn(coroutine)`: leaving the block waits for all
    tasks that it spawned. With `poison_shield` the block suppresses a poison that leaves it or a
    spawned task; `poisoned` records it.
    """

    def __init__(self, name=None, verbose=False, poison_shield=False):
        self.group = []
        self.name = id(self) if name is None else name
        self.verbose = verbose
        self.poison_shield = poison_shield
        self.poisoned = False

    def spawn(self, proc):
        """Starts a coroutine and returns its task."""
        handle = Spawn(proc)
        self.group.append(handle)
        return handle

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, trace):
        if error is None:
            try:
                for task in self.group:
                    await task
                return False
            except PoisonException as poison:
                error = poison
        if not isinstance(error, PoisonException):
            return False
        self.poisoned = True
        if not self.poison_shield:
            raise error
        return True

    def __repr__(self):
        return "<CSPTaskGroup, gsize=%d>" % len(self.group)


class aenumerate:
    """`enumerate` for `async for`. (A class, since MicroPython has no async generators.)"""

    def __init__(self, coroutine, start=0):
        self.values, self.n = coroutine.__aiter__(), start - 1

    def __aiter__(self):
        return self

    async def __anext__(self):
        value = await self.values.__anext__()
        self.n += 1
        return self.n, value

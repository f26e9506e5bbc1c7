"""The end of a process: a guard, and awaited (rule 7.11). Loaded with the first that is asked for."""

from collections import namedtuple

from . import _alt
from ._proc import Process, quiet
from .errors import BadUse, Cancelled, Poisoned

Ended = namedtuple("Ended", ("how", "result", "error"))


def ended(proc):
    """How a process that has ended did."""
    error = proc.error
    if error is None:
        return Ended("returned", proc.result, None)
    if not quiet(error):
        return Ended("failed", None, error)
    if isinstance(error, Cancelled):
        return Ended("cancelled", None, None)
    return Ended("poisoned" if isinstance(error, Poisoned) else "retired", None, None)


class End(_alt.Guard):
    """The end of a process, asked for by process `by` (None: by ordinary code, which always lives)."""

    def __init__(self, proc, by):
        super().__init__(_alt.END, proc)
        if not proc.done and by not in proc.watching:
            proc.watching = proc.watching + (by,)

    async def wait(self):
        """Waits for it; gives `Ended(how, result, error)`, and raises nothing of what the process did."""
        return (await _alt.select(self))[1]

    def __await__(self):
        it = self.wait()
        return it.__await__() if hasattr(it, "__await__") else it

    __iter__ = __await__


def over(proc):
    """How it ended; None: it has not, or it was never started."""
    return ended(proc) if proc.done and proc.k is not None else None


def enter(proc, n):
    proc.watchers = proc.watchers + (n,)
    proc.watch = proc.watch or 1


def leave(proc, n):
    proc.watchers = tuple([m for m in proc.watchers if m is not n])


Process.over, Process.enter, Process.leave = (
    over,
    enter,
    leave,
)  # what _alt asks of an End's process


def tell(proc):
    """The process has ended: those who wait for that go on. Is its failure theirs?"""
    proc.watchers, nodes = (), proc.watchers
    for n in nodes:
        if n.alt.live:
            n.alt.v = ended(proc)
            n.alt.commit(n)
    return proc.watch == 2 and any([by is None or not by.done for by in proc.watching])


def watched(process):
    """The same process: if it fails while one who asked for its end lives, that is theirs and not its group's (7.11)."""
    if process.done or process.k:
        raise BadUse("watched: process %s was started before" % process.path)
    process.watch = 2
    return process

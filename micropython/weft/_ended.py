"""The end of a process as a guard or an awaitable (rule 7.11). This module is loaded when a program
first asks for the end of a process."""

from collections import namedtuple

from . import _alt
from ._none import how_of
from ._proc import Process
from .errors import BadUse

Ended = namedtuple("Ended", ("how", "result", "error"))


def ended(proc):
    """Returns an Ended, which says how the process `proc` has ended."""
    error = proc.error
    how = how_of(error)
    return Ended(how, proc.value, error if how == "failed" else None)


class End(_alt.Guard):
    """The end of the process `proc` as a guard, for the process `by`. None stands for ordinary
    code, which always lives."""

    def __init__(self, proc, by):
        super().__init__(_alt.END, proc)
        if not proc.done and by not in proc.watching:
            proc.watching = proc.watching + (by,)

    async def wait(self):
        """Waits for the end; returns `Ended(how, result, error)`, and does not raise the process's
        error."""
        return (await _alt.select(self))[1]

    def __await__(self):
        it = self.wait()
        return it.__await__() if hasattr(it, "__await__") else it

    __iter__ = __await__


def over(proc):
    """Returns how the process ended, or None if it has not ended or was never started."""
    return ended(proc) if proc.done and proc.k is not None else None


def enter(proc, n):
    proc.watchers = proc.watchers + (n,)
    proc.watch = proc.watch or 1


def leave(proc, n):
    proc.watchers = tuple([m for m in proc.watchers if m is not n])


# _alt calls these methods of an End's process.
Process.over, Process.enter, Process.leave = over, enter, leave


def tell(proc):
    """Wakes the processes that wait for the end of this process. Returns whether a failure is left
    to its watchers, and not to its group: watched() was called, and a watcher still lives.
    """
    proc.watchers, nodes = (), proc.watchers
    for n in nodes:
        if n.alt.live:
            n.alt.v = ended(proc)
            n.alt.commit(n)
    return proc.watch == 2 and any([by is None or not by.done for by in proc.watching])


def watched(process):
    """Marks a process so that its failure does not fail its group, as long as a process that
    watches it lives (7.11). Returns the same process. Raises BadUse if the process has been
    started."""
    if process.done or process.k:
        raise BadUse("watched: process %s was started before" % process.path)
    process.watch = 2
    return process

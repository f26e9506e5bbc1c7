"""The end of a process, as a guard or awaited (rule 7.11). Loaded when a program first asks for
one."""

from collections import namedtuple

from . import _alt
from ._none import how_of
from ._proc import Process
from .errors import BadUse

Ended = namedtuple("Ended", ("how", "result", "error"))


def ended(proc):
    """How the process ended; it has."""
    error = proc.error
    how = how_of(error)
    return Ended(how, proc.value, error if how == "failed" else None)


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


# what _alt asks of an End's process
Process.over, Process.enter, Process.leave = over, enter, leave


def tell(proc):
    """The process has ended: those that wait for it go on. Returns whether its failure is
    theirs."""
    proc.watchers, nodes = (), proc.watchers
    for n in nodes:
        if n.alt.live:
            n.alt.v = ended(proc)
            n.alt.commit(n)
    return proc.watch == 2 and any([by is None or not by.done for by in proc.watching])


def watched(process):
    """Gives the same process. If it fails while one that asked for its end lives, the failure is
    told there and does not fail its group (7.11)."""
    if process.done or process.k:
        raise BadUse("watched: process %s was started before" % process.path)
    process.watch = 2
    return process

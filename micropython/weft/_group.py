"""Sequence, Spawn and Group (rules 7.3 to 7.5). This module is loaded when one of these names is
first used."""

from . import _core as core
from . import _proc
from ._chan import REQ, bad, begin
from ._proc import Parallel, Party, flatten, never, quiet
from .errors import Cancelled


async def Sequence(*processes):
    """Runs the processes one after another; returns their results in order (7.3)."""
    waiting = flatten(processes, [])
    results = []
    try:
        while waiting:
            results.append((await Parallel(waiting.pop(0)))[0])
    finally:
        never(waiting)
    return results


def Spawn(*processes):
    """Starts processes that may outlive their caller: they belong to the group of the outermost run
    (7.4). Raises BadUse outside a run."""
    if _proc._run is None:
        raise bad("OUTSIDE", "Spawn")
    for x in flatten(processes, []):
        x.start(_proc._run)


class Group:
    """A block that may start processes at any time: `async with Group() as g: g.start(p)`. Leaving
    the block waits for all processes of the group (7.5)."""

    party = Party  # the class has no block, so that start() outside a block is bad use

    async def __aenter__(self):
        p = core.cur()
        begin(p, "Group")
        self.party = Party(p.x)
        self.party.block = True
        p.x.groups += 1
        return self

    def start(self, *processes):
        if not self.party.block:
            raise bad("OUTSIDE", "start")
        ps = flatten(processes, [])
        for x in ps:
            x.start(self.party)
            if self.party.failed:
                x.cancel()
        return ps[0] if len(ps) == 1 else ps

    def cancel(self):
        self.party.stop()

    async def __aexit__(self, kind, error, tb):
        party = self.party
        p = party.owner.k
        party.owner.groups -= 1
        if party.mine and p.at is REQ:  # the group's request to end its block is still pending
            p.at = None
            party.owner.asked = False
        if error is not None:
            party.stop()
        own = None
        if error is not None and not quiet(error):
            own = error
        try:
            if p.at is REQ and party.live:
                party.stop()
                party.owner.asked = False
                p.at = None
                party.stopped = True
            await party.join()
        except Cancelled as e:
            if error is None:
                error = e
        party.block = False
        if own is not None and not party.failed:
            return False
        if party.failed:
            party.verdict(own)
        if isinstance(error, Cancelled) and kind is None:
            raise error
        return False

"""The report of a deadlock (rule 10), with the operation of each blocked process and the knot. Also
drops processes that are left over after a run. This module is loaded when it is first needed."""

from . import _alt
from . import _core as core
from ._proc import Party, Process, _all, let_go
from ._wait import Barrier
from .errors import Deadlock


def place(p):
    """Describes where process p waits. Returns the words and a list of what could wake the process,
    such as (channel, whether a writer could)."""
    at = p.k.at
    if isinstance(at, core.Rd):
        c = at.channel
        return "read of %r" % c.name, [(c, True)]
    if isinstance(at, core.Wr):
        c = at.channel
        return "write to %r" % c.name, [(c, False)]
    if isinstance(at, _alt.Alt):
        words, sides = [], []
        for n in at.nodes:
            if n.kind < 2:
                words.append("%r%s" % (n.c.name, " (ended)" if n.gone else ""))
                if n.on and not n.gone:
                    sides.append((n.c, not n.out))
            else:
                words.append(_alt.KINDS[n.kind])
                if n.kind == _alt.END:
                    words[-1] += " " + n.end.where
                    if n.on:
                        sides.append((n.end, None))
                if n.kind == _alt.SYNC and n.on:
                    sides.append((None, n.end))
        return "select of " + ", ".join(words), sides
    if hasattr(at, "rd"):
        return "extended read of %r" % at.c.name, [(at.c, True)]
    if isinstance(at, Party):
        return "waiting for its processes", [(at, None)]
    if isinstance(at, Barrier):
        return "sync", [(None, at)]
    if hasattr(at, "sides"):  # at is a network on core 1
        return "waiting for core 1", at.sides()
    return str(at), []


def ends(x):
    return x.k.at.ends() if hasattr(x.k.at, "ends") else x.ends


def others(p):
    """Returns the processes that could wake process p, by the ends that they hold (10.2)."""
    found = []
    for c, out in place(p)[1]:
        if isinstance(c, Party):
            found.extend(k for k in c.kids if not k.done)
        elif isinstance(c, Process):
            if c in _all:
                found.append(c)
        elif c is None:
            found.extend(x for x in _all if x is not p and x in out.users)
        else:
            kind = core.Wr if out else core.Rd
            for x in _all:
                for end in ends(x):
                    if isinstance(end, kind) and not end.x and end.c.x is c and x not in found:
                        found.append(x)
    return found


def deadlock():
    """Returns a Deadlock with the report and the knot: the smallest set of processes that wait only
    for each other."""
    best = None
    for p in _all:
        closure = [p]
        for x in closure:
            for y in others(x):
                if y not in closure:
                    closure.append(y)
        if best is None or len(closure) < len(best):
            best = closure
    lines, hint = [], ""
    for p in _all:
        at = p.k.at
        lines.append("  %s: %s" % (p.where, place(p)[0]))
        if hasattr(at, "places"):
            lines.extend("  %s: %s" % x for x in at.places())
        if isinstance(at, _alt.Alt):
            for n in at.nodes:
                if n.gone:
                    hint = (
                        '\nguard %d %r has ended; if that should end the process: ended="raise"'
                        % (
                            n.i,
                            n.c.name,
                        )
                    )
    paths = [p.where for p in _all]
    knot = [p.where for p in best or ()]
    text = "nothing can go on\n%s\nthe knot: %s%s" % ("\n".join(lines), ", ".join(knot), hint)
    return Deadlock(text, knot, paths)


def gone(_):
    raise StopIteration


def drop():
    """Drops the processes that are left over: removes them from their queues, and releases their
    ends."""
    for x in _all:
        x.ask()
        x.k.go = gone
    for x in _all:
        let_go(x, None)

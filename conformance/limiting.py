"""Requests that a process end its operation or block (rules 6.1, 7.12): cancellations from outside,
and limits on the process's own blocks.

  limit:   _open ─▶ open ──its time: fire──▶ asked ──_meet, and it is the one──▶ met
                     ▲  └──_move──┘  ▲          └──_meet another's, _move, _close: taken back
                     └───────────────┴── open again, without a timer
  request: _request_cancel, fire ─▶ _pursue: the operation is withdrawn, children are told; the
                                    process has not met the request yet
           _request_from_elsewhere ─▶ unheard ─(a step)▶ _hear ─▶ _pursue
           _meet: the process goes on with one Cancelled, for all requests made until then

Invariants
  * A process is asked (`_asked`) from a request until it meets the request, or until all requests
    have been taken back.
  * A limit's timer is among the timers of the world, with `~place` instead of a guard; `place`
    counts the limits of the process, beginning with the outermost.
  * While a Cancelled unwinds a process, `Proc.by` is the place of the limit that asked for it; -1
    if the request came from outside.
"""

from __future__ import annotations

from .judge import Judge
from .objects import BadUse, Outcome
from .program import Proc


class Limiting(Judge):
    """The part of `interp.Sim` that keeps track of the requests to each process."""

    @staticmethod
    def _asked(p: Proc) -> bool:
        return p.cancel or "asked" in p.limits

    def _meet(self, p: Proc) -> None:
        """Makes the process meet all requests with one Cancelled, whose cause is the outermost
        request (6.1, 7.12).
        """
        p.by = -1 if p.cancel else p.limits.index("asked")
        p.cancel = p.unheard = False
        p.limits = tuple(
            "met" if k == p.by else "open" if x == "asked" else x for k, x in enumerate(p.limits)
        )

    def _request_cancel(self, p: Proc) -> None:
        """Delivers a request to end (6): the process meets it at its operation, or once it is
        started."""
        if p.st in ("finishing", "ended"):
            return
        p.cancel = True
        if p.st != "new":  # a process that is new meets the request once it is started (6.5)
            self._pursue(p)

    def _request_from_elsewhere(self, p: Proc) -> None:
        """Records a request by a process on another thread (6.1). The operation of the asked
        process can commit before its scheduler learns of the request. An operation that begins
        afterwards meets the request.
        """
        if p.st in ("new", "finishing", "ended"):
            self._request_cancel(p)
        else:
            p.cancel = p.unheard = True

    def _hear(self, p: Proc) -> None:
        p.unheard = False
        self._pursue(p)

    def _pursue(self, p: Proc) -> None:
        if p.st != "join":
            self.cancel(p.pid)
        elif not p.passed:  # the children are asked only once
            p.passed = True
            # children that are never started hold their ends until the running child has ended
            # (7.3)
            self._doom(tuple(k for k in p.kids if self.procs[k].st != "new"))

    def _doom(self, pids: tuple[int, ...]) -> None:
        raise NotImplementedError

    def fire(self, which: int = 0) -> None:
        """Lets a timer go off: the timer of a guard, or of a limit, which then asks its process to
        end (7.12).
        """
        _, pid, i = self.timers[which]
        if i >= 0:
            super().fire(which)
            return
        del self.timers[which]
        p = self.procs[pid]
        self._set_state(p, ~i, "asked")
        self._pursue(p)

    # --------------------------------------------------------------------- the limits of a process

    def _open(self, p: Proc, how: str, t: int) -> None:
        p.limits += ("open",)
        self._set(p, t if how == "deadline" else self.now + t)

    def _move(self, p: Proc, t: int) -> None:
        """Moves the innermost limit to the time `t`."""
        if p.limits[-1:] in ((), ("met",)):
            raise BadUse("reschedule of a limit that does not exist, or whose request was met")
        self._disarm(p)
        self._set_state(p, len(p.limits) - 1, "open")
        self._set(p, self.now + t)

    def _close(self, p: Proc, how: str) -> Outcome:
        """Leaves the innermost block that has a limit. Returns the exception that leaving the block
        raises, or ("ok", whether the limit has ended the block).
        """
        own = p.exc is not None and p.exc[0] == "Cancelled" and p.by == len(p.limits) - 1
        self._disarm(p)
        p.limits = p.limits[:-1]
        if own:
            p.exc = None
        return ("Timeout",) if own and how != "move_on" else ("ok", own)

    def _set(self, p: Proc, at: int) -> None:
        place = len(p.limits) - 1
        if at <= self.now:
            self._set_state(p, place, "asked")
        else:
            self.arm(at, p.pid, ~place)

    def _disarm(self, p: Proc) -> None:
        mine = (p.pid, ~(len(p.limits) - 1))
        self.timers = [t for t in self.timers if t[1:] != mine]

    @staticmethod
    def _set_state(p: Proc, place: int, state: str) -> None:
        p.limits = (*p.limits[:place], state, *p.limits[place + 1 :])

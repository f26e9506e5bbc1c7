"""Errors that few programs meet: weft.errors imports this module when one of them is first used. And
how a process ended (rules 7.1, 7.11), for who asks."""

from .errors import Cancelled, Poisoned, WeftError

try:
    TimeoutError = TimeoutError
except NameError:  # MicroPython's builtins have none

    class TimeoutError(OSError):
        """A limit's own cancellation left its block (rule 7.12)."""


class Deadlock(WeftError):
    """Nothing can go on (rule 10): `report`, `knot` and `blocked` (paths)."""

    def __init__(self, report, knot, blocked):
        super().__init__(report)
        self.report, self.knot, self.blocked = report, knot, blocked


class Failures(Exception):
    """Several failures of one group, in the order of its processes (rule 7.2): `exceptions`."""

    def __init__(self, exceptions):
        super().__init__("%d processes failed: %s" % (len(exceptions), exceptions))
        self.exceptions = exceptions


def how_of(error):
    """How a process ended that `error` has left; None: nothing has."""
    from ._proc import quiet

    if error is None:
        return "returned"
    if not quiet(error):
        return "failed"
    if isinstance(error, Cancelled):
        return "cancelled"
    return "poisoned" if isinstance(error, Poisoned) else "retired"


class NoResult(WeftError):
    """Stands in the place of the result of a process that ended without one (rule 7.1). It is
    false; its text is the sentence."""

    where = "?"  # no lines are kept

    def __init__(self, process, error):
        super().__init__()
        self.process = process
        self.how = "cancelled" if error is None else how_of(error)
        self.reason = "it was never run" if error is None else str(error) or self.how
        if self.how == "failed":
            self.reason = "%s: %s" % (type(error).__name__, error)

    def __repr__(self):
        return "process %s gave no result: it ended (%s)" % (self.process, self.reason)

    __str__ = __repr__

    def __bool__(self):
        return False

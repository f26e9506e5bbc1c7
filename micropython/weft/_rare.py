"""Errors that few programs meet: weft.errors imports this module when one of them is first used."""

from .errors import WeftError

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

"""Rare errors. weft.errors imports this module when such an error is first
used."""

from .errors import WeftError

try:
    TimeoutError = TimeoutError
except NameError:  # MicroPython's builtins have none

    class TimeoutError(OSError):
        """A limit's time has passed, and the limit has ended its block (rule 7.12)."""


class Deadlock(WeftError):
    """No process can go on (rule 10). `report` is the text; `knot` and `blocked` are lists of
    paths."""

    def __init__(self, report, knot, blocked):
        super().__init__(report)
        self.report, self.knot, self.blocked = report, knot, blocked


class Failures(Exception):
    """Several processes of one group have failed (rule 7.2). `exceptions` contains their failures,
    in the order of the processes."""

    def __init__(self, exceptions):
        super().__init__("%d processes failed: %s" % (len(exceptions), exceptions))
        self.exceptions = exceptions

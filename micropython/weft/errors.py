"""The errors of Weft. Ends of channels carry `channel`, `value` (what came back), `guard` and `met` (rule 3.5)."""


class WeftError(Exception):
    pass


class BadUse(WeftError):
    """A mistake in the program; the text says what to do (rule 11)."""


class NoRoom(MemoryError):
    """No memory for one more process. It has not begun, and the others can still be stopped."""


class ChannelEnd(WeftError):
    channel = value = guard = None
    met = False


class Retired(ChannelEnd):
    """The other side is gone (rule 3)."""


class Poisoned(ChannelEnd):
    """The channel was aborted (rule 4)."""

    strength = 1


class PeerDied(ChannelEnd):
    """The other side was killed (rule 4.5)."""


class Cancelled(BaseException):
    """The process is asked to end (rule 6). A withdrawn write has its value in `value`."""

    value = None
    by = None  # the limit that asked (_limits.Limit); None: somebody else


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

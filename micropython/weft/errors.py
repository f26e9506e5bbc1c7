"""The errors of Weft. A ChannelEnd has the `channel`, the `value` of a write that did not commit,
the index of the `guard` of a select, and `met` (rule 3.5)."""


class WeftError(Exception):
    pass


class BadUse(WeftError):
    """A mistake in the program; the text describes the remedy (rule 11)."""


class NoRoom(MemoryError):
    """There is no memory for one more process. The process has not begun, and the other processes
    can still be stopped.
    """


class ChannelEnd(WeftError):
    channel = value = guard = None
    met = False


class Retired(ChannelEnd):
    """The other side has closed all its ends (rule 3)."""


class Poisoned(ChannelEnd):
    """The channel was aborted (rule 4)."""

    strength = 1


class PeerDied(ChannelEnd):
    """The other side was killed (rule 4.5)."""


class Cancelled(BaseException):
    """The process was cancelled (rule 6). `value` is the value of a write that was withdrawn."""

    value = None
    by = None  # the limit that made the request (_limits.Limit); None if it came from elsewhere


def __getattr__(name):
    """Loads a rarely needed error when it is first named."""
    if name == "NoResult":
        from . import _none as m
    elif name in "Deadlock Failures TimeoutError":
        from . import _rare as m
    else:
        raise AttributeError(name)
    return getattr(m, name)

"""NoResult, which stands for the result of a process that has none (rules 7.1, 7.11). This module
is loaded when a process without a result first occurs."""

from .errors import Cancelled, Poisoned, Retired, WeftError


def how_of(error):
    """Returns how a process ended that raised `error`, or None: "returned", "failed", "cancelled",
    "poisoned" or "retired".
    """
    if error is None:
        return "returned"
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, (Poisoned, Retired)) and error.met:  # rule 3.5
        return "poisoned" if isinstance(error, Poisoned) else "retired"
    return "failed"


class NoResult(WeftError):
    """Stands for a missing result. It is false, and its text gives the reason why there is no
    result."""

    process = how = reason = where = "?"  # `where` stays "?": source lines are not recorded

    @staticmethod
    def of(x):
        n, e = NoResult(), x.error
        n.process, n.how = x.path, how_of(e)
        # The text is not made by str(), which can run user code.
        n.reason = e.args[0] if e.args and isinstance(e.args[0], str) else n.how
        if n.how == "failed":
            n.reason = "%s: %s" % (type(e).__name__, n.reason)
        return n

    def __bool__(self):
        return False

    def __repr__(self):
        return "process %s gave no result: it ended (%s)" % (self.process, self.reason)

    __str__ = __repr__

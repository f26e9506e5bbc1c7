"""How processes ended that have no result (rules 7.1, 7.11). Loaded with the first one."""

from .errors import Cancelled, Poisoned, WeftError


def how_of(error):
    from ._proc import quiet

    if error is None:
        return "returned"
    if not quiet(error):
        return "failed"
    if isinstance(error, Cancelled):
        return "cancelled"
    return "poisoned" if isinstance(error, Poisoned) else "retired"


class NoResult(WeftError):
    """Stands in the place of the result. It is false, and its text says why there is none."""

    process = how = reason = where = "?"  # `where` stays: no lines are kept

    @staticmethod
    def of(x):
        n, e = NoResult(), x.error
        n.process, n.how = x.path, how_of(e)
        # not by str(), which may be the user's code
        n.reason = e.args[0] if e.args and isinstance(e.args[0], str) else n.how
        if n.how == "failed":
            n.reason = "%s: %s" % (type(e).__name__, n.reason)
        return n

    def __bool__(self):
        return False

    def __repr__(self):
        return "process %s gave no result: it ended (%s)" % (self.process, self.reason)

    __str__ = __repr__

"""`async for` over a reader. This module is loaded when a program first uses it."""

from .errors import Retired


class Iter:
    """The iterator of a reader. The loop ends on Retired, and on no other error (3.4)."""

    def __init__(self, rd):
        self.rd = rd

    def __anext__(self):
        return self

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        try:
            return next(self.rd)
        except Retired as e:
            self.over(e)

    def throw(self, e, value=None, traceback=None):
        self.over(value or e)

    def over(self, e):
        if isinstance(e, Retired):
            raise StopAsyncIteration
        raise e

"""What the core's writes give, on CPython and PyPy: there an `await` takes no list and no
generator."""


class _Awaitable:
    def __init__(self, steps):
        self._steps = steps

    def __await__(self):
        return iter(self._steps)


DONE = _Awaitable(())
ONCE = _Awaitable((None,))

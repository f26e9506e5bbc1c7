"""The awaitables that the core's writes return on CPython and PyPy. On these, unlike on
MicroPython, `await` accepts neither a list nor a generator."""


class _Awaitable:
    def __init__(self, steps):
        self._steps = steps

    def __await__(self):
        return iter(self._steps)


DONE = _Awaitable(())
ONCE = _Awaitable((None,))

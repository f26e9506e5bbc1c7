"""From an interrupt to a channel: a ring of slots that are allocated in advance.

Invariants
- One producer (`put`) and one consumer (the scheduler). `_in` is written by the producer alone, `_out` by the consumer
  alone; both are small integers, written in one store, after the slot was.
- `put` allocates nothing, takes no lock and calls nothing, so that a hard interrupt may call it.
- The ring is full with all slots but one in use.
"""

from . import _chan, _time

try:
    from io import IOBase
except ImportError:
    IOBase = object


class Ring(IOBase):
    """Room for `slots` values between an interrupt and a reader; `overflows` counts the values lost
    because it was full."""

    def __init__(self, slots=16, name=None):
        if not isinstance(slots, int) or slots < 1:
            raise _chan.BadUse("a ring has 1 slot or more, not %r" % (slots,))
        self._size = slots + 1
        self._slots = [0] * self._size
        self._in = self._out = self.overflows = 0
        self._c = None
        self._name = name or "ring"

    def put(self, v):
        """From the interrupt: True, or False if the ring was full."""
        i = self._in
        n = i + 1
        if n == self._size:
            n = 0
        if n == self._out:
            self.overflows += 1
            return False
        self._slots[i] = v
        self._in = n
        return True

    def any(self):
        return self._in != self._out

    def room(self):
        """Is there room for one more value?"""
        n = self._out - self._in - 1
        return n != 0 and n != -self._size

    def take(self):
        """Takes the oldest value. There must be one; only the consumer may call this."""
        i = self._out
        v = self._slots[i]
        self._out = 0 if i + 1 == self._size else i + 1
        return v

    def reader(self):
        """An ordinary reader end, which reads what was put. Call it within a run."""
        if self._c is None or (not self._w.closed and self not in _time._sources):
            # the first, or the first in this run: the channel of an earlier one is asked no more
            self._c = _chan.Channel(self._name, capacity=self._size, overflow="block")
            self._w = self._c.writer()
            _time.source(self, True)
        return self._c.reader()

    def close(self):
        """No more values: the reader gets what is there, then Retired."""
        if self._c is not None and not self._w.closed:
            self._c.over = 3  # what is in the slots goes on, whether or not there is room
            self.look()
            _time.source(self, False)
            self._w.retire()

    # for the scheduler

    def ioctl(self, request, flags):
        return (flags if self._in != self._out else 0) if request == 3 else -1  # no file descriptor

    def still(self):
        """Nobody waits for it (10.3)."""
        return self._c is None or self._c.k.r is None

    def look(self):
        came = False
        c = self._c
        if c.pz or not c.nr:
            _time.source(self, False)
            self._c = None
            return False
        while self._out != self._in and not c.full():
            c.put(self.take(), None)
            came = True
        return came

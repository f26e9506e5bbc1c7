"""A ring through which an interrupt passes values to a channel. Its slots are allocated in advance.

Invariants
- There is one producer (`put`) and one consumer (the scheduler). Only the producer writes `_in`,
  and only the consumer writes `_out`. Both are small integers, each written by one store, after the
  slot has been used.
- `put` allocates nothing, takes no lock and calls no function, so that a hard interrupt may call
  it.
- The ring is full when all slots but one are in use.
"""

from . import _chan, _time

try:
    from io import IOBase
except ImportError:
    IOBase = object


class Ring(IOBase):
    """Room for `slots` values between an interrupt and a reader. `overflows` counts the values that
    were lost because the ring was full. Raises BadUse for fewer than 1 slot."""

    def __init__(self, slots=16, name=None):
        if not isinstance(slots, int) or slots < 1:
            raise _chan.BadUse("a ring has 1 slot or more, not %r" % (slots,))
        self._size = slots + 1
        self._slots = [0] * self._size
        self._in = self._out = self.overflows = 0
        self._c = None
        self._name = name or "ring"

    def put(self, v):
        """Puts a value into the ring; an interrupt may call this. Returns False if the ring was
        full."""
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
        """Returns whether there is room for one more value."""
        n = self._out - self._in - 1
        return n != 0 and n != -self._size

    def take(self):
        """Takes the oldest value. The ring must not be empty, and only the consumer may call
        this."""
        i = self._out
        v = self._slots[i]
        self._out = 0 if i + 1 == self._size else i + 1
        return v

    def reader(self):
        """Returns a new reader end, which reads the values that were put. Must be called within a
        run."""
        if self._c is None or (not self._w.closed and self not in _time._sources):
            # The first reader of this run has a new channel, because the channel of an earlier run
            # is over.
            self._c = _chan.Channel(self._name, capacity=self._size, overflow="block")
            self._w = self._c.writer()
            _time.source(self, True)
        return self._c.reader()

    def close(self):
        """Ends the ring: the reader reads the values that are in the ring, and then meets
        Retired."""
        if self._c is not None and not self._w.closed:
            self._c.over = 3  # unbounded: the values in the slots need no room in the buffer
            self._c._look()
            self.look()
            _time.source(self, False)
            self._w.retire()

    # The scheduler calls the next methods.

    def ioctl(self, request, flags):
        return (flags if self._in != self._out else 0) if request == 3 else -1

    def still(self):
        """Returns whether no process waits for a value (10.3)."""
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

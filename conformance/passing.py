"""Moves a value from its writer to its reader (rules 1.3 to 1.6, 2.4, 5.1, 5.8): the steps in which
a ready guard commits.

  _take ──▶ from the buffer, else _hand_over from the first writer
  _give ──▶ _hand_over to the first reader, else _buffer
  a value from a function:  _feed, _give ──▶ making, fed ──make──▶ done

Invariant: in one step a value is taken from one place and put into another place, or counted as
dropped.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from .choosing import Choosing
from .objects import READ, WRITE, Chan, End, Op, Outcome


class Passing(Choosing):
    """The part of `model.World` that moves values. This class uses the fields and steps of World
    that it declares.
    """

    ends: list[End]
    holds: dict[int, tuple]
    feeds: dict[int, int]
    _dirty: list[int]

    @abstractmethod
    def hold(self, end: int, pid: int) -> None: ...

    @abstractmethod
    def close(self, end: int, how: str, died: bool = False) -> None: ...

    @abstractmethod
    def _decide(self, op: Op, out: Outcome) -> None: ...

    @abstractmethod
    def _settle(self) -> None: ...

    def _deliver(self, op: Op, i: int, value: Any) -> None:
        """Gives the reader the value. If the value is an end, the reader's process holds it from
        now on (2.4)."""
        if isinstance(value, tuple) and value[0] == "end":
            self.hold(value[1], op.pid)
        self._decide(op, ("ok", i, value))

    def _depart(self, value: Any) -> Any:
        """Takes the value from its writer. If the value is an end, it moves (2.4): the sender's end
        is closed, and a new end, which no process holds yet, is under way.
        """
        if isinstance(value, tuple) and value[0] == "end":
            old = self.ends[value[1]]
            new = End(old.chan, old.side)
            self.ends.append(new)
            self.ends[value[1]] = old._replace(how="sent away", holders=())
            return ("end", len(self.ends) - 1)
        return value

    def _drop(self, c: Chan, value: Any) -> None:
        """Drops a value, and counts it (1.4). If the value is an end, it is retired (2.4)."""
        c.dropped += 1
        if isinstance(value, tuple) and value[0] == "end":
            self.close(value[1], "dropped undelivered")

    def _take(self, op: Op, i: int, c: Chan) -> None:
        """Lets guard i, an input, receive the head of the buffer, or else the value of the first
        waiting writer.
        """
        chan = op.guards[i].on
        if c.buf:
            value = c.buf.pop(0)
            self._hold_slot(op, c, chan)
            self._deliver(op, i, value)
            self._dirty.append(chan)  # a waiting writer's value may now enter the buffer (1.5)
        else:
            wpid, wi = c.lines[WRITE][0]
            self._hand_over(op, i, self.ops[wpid], wi, c)

    def _give(self, op: Op, i: int, c: Chan) -> None:
        """Lets guard i, an output, give its value to the first reader, or else to the buffer,
        according to the channel's overflow (1.3–1.5). A value from a function does not exist yet:
        it occupies a slot now, and its place in the order once it has been made (5.8).
        """
        g = op.guards[i]
        if c.capacity and self._made(g):
            if not c.room() and c.overflow == "drop_oldest" and c.buf:
                self._drop(c, c.buf.pop(0))
            c.reserved += 1
            self._decide(op, ("Fail", i) if g.raises else ("ok", i))
            op.state = "making"
        elif self._wanted(c, g):
            rpid, ri = c.lines[READ][0]
            self._hand_over(self.ops[rpid], ri, op, i, c)
        else:
            self._decide(op, ("ok", i))
            self._buffer(c, self._depart(g.value))

    def _buffer(self, c: Chan, value: Any) -> None:
        """Puts a value into the buffer (1.3, 1.4)."""
        if c.room() or c.overflow == "unbounded":
            c.buf.append(value)
        elif c.overflow == "drop_oldest" and c.buf:
            c.buf.append(value)
            self._drop(c, c.buf.pop(0))
        else:  # drop_newest; or drop_oldest without an older value in the buffer (1.4)
            self._drop(c, value)

    def make(self, pid: int) -> None:
        """Calls the function of the committed guard for its owner, before the reader continues
        (5.8).
        """
        op = self.ops[pid]
        assert op.state == "making" and op.out is not None
        if pid in self.feeds:  # a rendezvous
            rpid = self.feeds.pop(pid)
            self.ops[rpid].state = "done"
            held = ("writer", pid) in self.holds.get(rpid, ())
            op.state = "held" if held else "done"
            return
        g = op.guards[op.out[1]]
        c = self.chans[g.on]
        c.reserved -= 1
        op.state = "done"
        if not g.raises:
            value = self._depart(g.value)
            if c.ended(WRITE):
                self._drop(c, value)
            elif self._wanted(c, g._replace(made=False)):
                rpid, ri = c.lines[READ][0]
                rop = self.ops[rpid]
                self._hold_slot(rop, c, g.on)
                self._deliver(rop, ri, value)
            else:
                self._buffer(c, value)
        self._dirty.append(g.on)
        self._settle()

    def _hold_slot(self, rop: Op, c: Chan, chan: int) -> None:
        """Lets an extended read on a buffered channel occupy a slot (1.6)."""
        if rop.ext:
            c.slots += 1
            self._push_hold(rop.pid, ("slot", chan))

    def _hand_over(self, rop: Op, ri: int, wop: Op, wi: int, c: Chan) -> None:
        """Lets reader and writer meet; both commit in this one step (5.1)."""
        g = wop.guards[wi]
        if g.raises:  # the function raises (5.8)
            self._decide(wop, ("Fail", wi))
            self._decide(rop, ("PeerDied", ri))
            self._feed(wop, rop)
            return
        self._decide(wop, ("ok", wi))
        if rop.ext and c.capacity == 0:
            wop.state = "held"
            self._push_hold(rop.pid, ("writer", wop.pid))
        else:
            self._hold_slot(rop, c, rop.guards[ri].on)
        self._deliver(rop, ri, self._depart(g.value))
        if g.made:
            self._feed(wop, rop)

    def _feed(self, wop: Op, rop: Op) -> None:
        wop.state, rop.state = "making", "fed"
        self.feeds[wop.pid] = rop.pid

    def _push_hold(self, pid: int, hold: tuple) -> None:
        self.holds[pid] = (*self.holds.get(pid, ()), hold)

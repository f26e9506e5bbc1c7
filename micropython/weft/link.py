"""Channels between a board and a Weft program on a PC, over a serial line (LINK.md; WIRE.md 2.6,
12.6).

Invariants
- The home of every channel of a link is the PC. An operation is an OFFER to the PC; it is over when
  one answer has come, or when the session is over (WIRE.md 4.1, 8).
- `_ops` contains the open operations. The process of an open operation is parked. Its `at` is the
  Op for a write or a select, and the end or LATE for a read.
- Frames wait in `_out` to be sent. Bytes of packets wait in `_line_out` while the stream takes no
  more.
- While the session lasts, the Link is a source of _time, so that no deadlock is declared. It is
  also a timer of _time, with `t` and `fire`.
"""

import select as _select

from . import _alt, _cbor, _chan, _time
from . import _core as core
from . import _frames as f
from ._chan import FLIGHT, begin, cancelled, fail, resume
from ._far import Far as _Far
from ._far import Op as _Op
from ._line import Line
from .errors import BadUse, PeerDied, Retired


def _moment():
    """Returns a number that differs between two starts of a board, for boards without random
    numbers: the time.
    """
    try:
        from time import ticks_us

        return ticks_us()
    except ImportError:
        return _time.steady()


def _random(n):
    try:
        from os import urandom

        return int.from_bytes(urandom(n), "little") or 1
    except (ImportError, NotImplementedError):
        from random import getrandbits

        v = _moment()
        for _ in range(n):
            v = (v << 8 ^ getrandbits(8)) & ((1 << 8 * n) - 1)
        return v or 1


class Link:
    """A session with a PC, for `async with Link(uart) as pc:`. Leaving the block retires the ends
    and ends the session. If an error leaves the block, the ends die.

    Args:
        stream: a UART, a socket, or another stream that `select.poll` takes.
        out: the stream to which the link writes, if that is not `stream`. name: the board's name
        for the PC. largest: the largest number of bytes of a frame: a multiple of 8, from 256 to
        65,528. lease: milliseconds without a sign of life after which the PC counts as dead; 0
        means never. again: milliseconds after which an unacknowledged packet is sent again.

    Raises:
        BadUse: `largest` is out of range.
    """

    def __init__(self, stream, out=None, *, name="board", largest=1024, lease=3000, again=200):
        if not 256 <= largest <= 65528 or largest % 8:
            raise BadUse("a link's largest frame has 256 to 65,528 bytes, a multiple of 8")
        self._in, self._to = stream, out or stream
        self.name, self._mine = name, largest
        self.largest = 256  # the smallest limit, until the PC's HELLO has given another
        self._line = Line(_random(4), again=again, lease=lease)
        self._out, self._line_out, self._rest = bytearray(), bytearray(), bytearray()
        self._ops = {}
        self._last = 0
        self._offered, self._waiters, self._channels = {}, [], []
        self._open = self._greeted = False
        self._rot = 0
        self._hears = False
        self._poll = None
        self._left = False  # whether the PC has sent a BYE: it acknowledges nothing more
        self.why = None  # the reason why the session is over
        self.t = 0

    # A program calls the next methods.

    async def __aenter__(self):
        p = core.cur()
        begin(p, "Link")
        if _time.watcher:
            raise BadUse(
                "a Link in a run that is a guest of asyncio is not built: use run(...) of its own"
            )
        if self._open or self.why:
            raise BadUse("a Link is one session: make another for the next")
        self._open = True
        s = self._in
        if not hasattr(s, "any"):
            if hasattr(s, "setblocking"):
                s.setblocking(False)
            else:
                self._poll = _select.poll()
                self._poll.register(s, _select.POLLIN)
        _time.source(self, True)
        if _time._poller is None:
            _time._poller = _select.poll()
        _time._poller.register(s, _select.POLLIN)
        self._hears = True
        body = bytes(8) + self.name.encode()[:100]
        self._send(f.HELLO, 0, 0x54464557, 0x10001, _random(8), self._mine << 32, body)
        self.pump()
        return self

    async def __aexit__(self, kind, error, trace):
        if self.why is None:
            for c in self._channels:
                if c.how is None and (c.nr or c.nw):
                    self._send(f.RETIRE, 0, c.number, val=0 if kind is None else 1)
            self._bye("the board has left the link")
        self.pump()
        end = _time.now_ms() + 3 * self._line.again
        try:
            while (
                self._line.linked
                and not self._left
                and not self._line.lost
                and (self._line.kept or self._out)
                and _time.now_ms() < end
            ):
                from ._wait import sleep_ms

                await sleep_ms(5)
        finally:
            self._open = False
            self._deaf()
            _time.disarm(self)
        return False

    async def reader(self, name):
        """Waits for the reader end that the PC hands over under this name. Raises PeerDied if the
        session ends first, and BadUse if the end was taken before or is a writer."""
        return await self._end(name, False)

    async def writer(self, name):
        """Waits for a writer end, as `reader` does for a reader end."""
        return await self._end(name, True)

    async def _end(self, name, writes):
        p = core.cur()
        while True:
            begin(p, "waiting for %r" % name)
            if name in self._offered:
                c = self._offered[name]
                if c is None:
                    raise BadUse("the end %r was taken before" % name)
                if c.writes != writes:
                    raise BadUse("the end %r is a %s" % (name, "writer" if c.writes else "reader"))
                self._offered[name] = None
                return _chan.keep(p, c._another(writes))
            if self.why is not None:
                e = PeerDied(
                    "the session ended before the PC had handed out %r (%s)" % (name, self.why)
                )
                e.in_doubt = False
                raise e
            await self._news(p)

    def forget(self, name):
        """Forgets the name of an end that was taken, so that it takes no memory any more."""
        if self._offered.get(name, self) is None:
            del self._offered[name]

    async def wait(self):
        """Waits until the session is over; returns the reason."""
        p = core.cur()
        while True:
            begin(p, "wait")
            if self.why is not None:
                return self.why
            await self._news(p)

    async def _news(self, p):
        w = _Waiter(self, p)
        self._waiters.append(w)
        p.at = w
        await core.ONCE
        resume(p)

    async def select(self, *guards):
        """Waits for one of these guards, and returns (index, value). The choice is fair (5.4).

        The guards are readers, Inputs and Outputs with a value, all at ends of this link, and at
        most one timeout. Raises BadUse for any other guard, and Retired once all guards that decide
        have retired (5.6); Poisoned and PeerDied as `select` does.
        """
        p = core.cur()
        begin(p, "select")
        rows, timer = self._rows(guards)
        while True:
            at, values, index = self._open_rows(rows, timer)
            if (
                not at
            ):  # all guards are silent, and one that is off holds the select open until the timeout
                from ._wait import sleep_ms

                await sleep_ms(max(0, timer.t - _time.now_ms()))
                return timer.i, None
            op = _Op(self, p, at, values, False)
            p.at = op
            self._offer(op)
            if timer:
                timer.op = op
                _time.arm(timer)
            await core.ONCE
            if timer:
                _time.disarm(timer)
            resume(p)
            if op.e is None:
                break
            if op.e.guard is None:
                raise op.e
            if not isinstance(op.e, Retired):
                op.e.guard = index[op.e.guard]
                raise op.e
        if op.won < 0:
            if p.x.asked:
                raise cancelled(p)
            return timer.i, None
        self._rot = (index[op.won] + 1) % len(guards)
        return index[op.won], op.v

    def _rows(self, guards):
        """Returns (index, guard, packed value) of each guard at a channel, beginning after the
        guard that was chosen last, and the timeout or None."""
        rows, timer = [], None
        for k in range(len(guards)):
            i = (k + self._rot) % len(guards)
            g = guards[i]
            if isinstance(g, core.Rd):
                g = _alt.Input(g)
            if (
                not isinstance(g, _alt.Guard)
                or g.kind not in (_alt.IN, _alt.OUT, _alt.TIME)
                or g.make
            ):
                raise BadUse("link.select: guard %d is not an input, output or timeout" % i)
            if g.kind == _alt.TIME:
                if g.on:
                    if timer is not None:
                        raise BadUse("link.select: more than one timeout")
                    timer = _Timeout(self, g.v if g.end is not None else _time.later(g.v), i)
                continue
            if g.on and g.end.x:
                raise _chan.closed(g.end, "link.select, guard %d" % i)
            c = g.end.channel
            if g.on and (not isinstance(c, _Far) or c.link_ is not self):
                raise BadUse("link.select: guard %d is at no channel of this link" % i)
            rows.append((i, g, self._pack(g.v) if g.on and c.writes else None))
        return rows, timer

    def _open_rows(self, rows, timer):
        """Returns the guards to offer: those that are on and not silent. Raises Poisoned or
        PeerDied if the channel of a guard has been poisoned or has died, or Retired if all guards
        that decide have retired (5.6).
        """
        at, values, index = [], [], []
        out = False
        for _, g, _v in rows:
            out = out or (g.on and g.kind == _alt.OUT)
        gone = None  # the first guard that decides and has retired
        some = alive = opens = hold_in = hold_out = False
        for i, g, v in rows:
            c = g.end.channel
            if not g.on:
                if not g.end.x and not c.ended(g.kind == _alt.OUT):
                    hold_out = hold_out or g.kind == _alt.OUT
                    hold_in = hold_in or g.kind == _alt.IN
                continue
            decides = (g.kind == _alt.OUT) == out
            some = True
            if c.how == 1:
                if decides and gone is None:
                    gone = (i, g, c)
                continue
            if c.how:
                e = c.error(not c.writes, g.v, i)
                e.met = True
                raise e
            alive = alive or decides
            opens = opens or g.kind == _alt.IN
            at.append((c, c.writes))
            values.append(v)
            index.append(i)
        if not some:
            raise BadUse("link.select: no guard at a channel of the link, or none that is on")
        if not alive and not (hold_in and timer) and not (hold_out and opens):
            i, g, c = gone
            e = c.error(not c.writes, g.v if c.writes else None, i)
            e.met = True
            raise e
        return at, values, index

    # The next methods perform operations.

    def _pack(self, v):
        b = _cbor.dumps(v)
        if f.HEADER + 24 + f.padded(len(b)) > self.largest:
            raise BadUse(
                "a value of %d bytes does not fit into a frame of this link (largest=%d)"
                % (len(b), self.largest)
            )
        return b

    def _offer(self, op):
        self._last += 1
        op.n = self._last
        self._ops[op.n] = op
        flags = val = where = 0
        body = bytearray()
        for i in range(len(op.at)):
            c, writes = op.at[i]
            b = op.values[i]
            bits, n = (f.WRITE | f.BODY, len(b)) if writes else (0, 0)
            if i == 0:
                where, flags, val = c.number, bits, n
            else:
                body.extend(
                    c.number.to_bytes(4, "little")
                    + bytes((bits, 0, 0, 0))
                    + n.to_bytes(8, "little")
                )
            if writes:
                body.extend(b)
                body.extend(bytes(f.padded(n) - n))
        self._send(f.OFFER, flags, where, 0, op.n, val, body)

    def _withdraw(self, op):
        if not op.leaving:
            op.leaving = True
            self._send(f.WITHDRAW, op=op.n)

    def _withdraw_of(self, p):
        for op in self._ops.values():
            if op.p is p:
                self._withdraw(op)

    def _finish(self, op, guard, v=None, e=None):
        """Ends an operation: `guard` (0 or more) was chosen with the value v, or the operation
        failed with e, or it was withdrawn (-1)."""
        del self._ops[op.n]
        p = op.p
        if p.x.done:
            return
        if not op.plain:
            op.won, op.v, op.e = guard, v, e
            if e is not None:
                e.met = True
            core.push(p)
        elif e is not None:
            p.at = None
            fail(p, e)
        elif guard < 0:
            e = cancelled(p)
            if op.at[0][1]:
                e.value = op.v
            if p.x.limits:
                p.at = FLIGHT
                p.x.flight = e
            p.throw(e)
            core.push(p)
        elif op.at[0][1]:
            resume(p)
            core.push(p)
        else:
            p.v = v
            core.push(p)

    # The next methods send and receive frames.

    def _send(self, kind, flags=0, where=0, txn=0, op=0, val=0, body=b""):
        if self.why is None:
            f.put(self._out, kind, flags, where, txn, op, val, body)
            if self._open:
                self.soon()

    def soon(self):
        """Sends the queued frames after all processes that are ready have run, so that several
        frames share a packet."""
        if self.t:
            _time.disarm(self)
            self.t = 0
            _time.arm(self)

    def _bye(self, why):
        b = why.encode()[:200]
        self._send(f.BYE, val=len(b), body=b)
        self._over(why)

    def _over(self, why):
        if self.why is not None:
            return
        self.why = why
        for c in self._channels:
            c.has_ended(3, why=" (%s)" % why)
        for op in list(self._ops.values()):
            c = op.at[0][0]
            e = PeerDied("the PC is gone (%s)" % why)
            e.channel, e.guard = c, None
            e.in_doubt = op.writes()
            e.value = op.v if op.plain else None
            self._finish(op, -1, e=e)
        self._tell()

    def _tell(self):
        waiters, self._waiters = self._waiters, []
        for w in waiters:
            w.told = True
            core.push(w.p)

    def _frames(self, data):
        self._rest.extend(data)
        try:
            while self.why is None:
                got = f.take(self._rest)
                if got is None:
                    return
                self._rest = self._rest[got[1] :]
                self._frame(*got[0])
        except ValueError as e:
            self._bye(str(e))

    def _frame(self, kind, flags, where, txn, n, val, body):
        if not self._greeted:
            return self._hello(kind, where, txn, val)
        if kind in (f.BYE, f.GIVE) and val > len(body):
            raise ValueError("a text is not of the length it says")
        if kind == f.BYE:
            self._left = True
            return self._over("the PC said: %s" % _text(body[:val]))
        if kind == f.GIVE:
            return self._give(flags, where, val, body)
        op = self._ops.get(n)
        if kind not in (f.DONE, f.VALUE, f.WITHDRAWN, f.ENDED):
            raise ValueError("a frame of kind %d has no business on a board" % kind)
        if op is None:
            return
        if kind == f.VALUE:
            if val > len(body):
                raise ValueError("a piece of a value is not of the length it says")
            op.pieces += body[:val]
        elif kind == f.WITHDRAWN:
            self._finish(op, -1)
        elif where >= len(op.at):
            raise ValueError("an answer for a guard that was not offered")
        elif kind == f.DONE:
            c, writes = op.at[where]
            if writes:
                return self._finish(op, where)
            if not flags & f.BODY or val > len(body):
                raise ValueError("a value that is not there")
            self._finish(op, where, _cbor.loads(op.pieces + body[:val]))
        else:
            self._ended(op, where, val)

    def _hello(self, kind, where, txn, val):
        if kind != f.HELLO or where != 0x54464557:
            raise ValueError("the PC does not speak Weft's wire")
        low, high = txn & 0xFFFF, txn >> 16
        if low > 1 or high < 1:
            raise ValueError(
                "no common version: this board speaks 1, the PC %d to %d" % (low, high)
            )
        theirs = val >> 32
        if theirs < 256 or theirs > 65528:
            raise ValueError("the PC's largest frame is not between 256 and 65528")
        self.largest = min(theirs, self._mine)
        self._greeted = True

    def _give(self, flags, number, val, body):
        text = body[8:val]
        zero = text.find(b"\0")
        if zero < 0:
            raise ValueError("a GIVE without its type or name")
        if text[:zero] != b"cbor":
            raise ValueError("an end of type %s, and a board takes cbor" % _text(text[:zero]))
        key = _text(text[zero + 1 :])
        name = key
        if " " in key:
            key, name = key.split(" ", 1)
        if len(self._channels) >= 1000:
            raise ValueError("more ends were handed out than a board takes")
        c = _Far(self, number, bool(flags & f.WRITE), name)
        self._channels.append(c)
        self._offered[key] = c
        self._tell()

    def _ended(self, op, where, val):
        c, writes = op.at[where]
        how = val & 255
        if how in (1, 2, 3):
            c.has_ended(how, val >> 8 & 255)
            e = c.error(not writes, op.v if op.plain else None, None if op.plain else where)
        else:
            e = BadUse(
                "both ends of one channel in one choice"
                if how == 5
                else "the value is too long for a link"
            )
            e.guard = None
        self._finish(op, -1, e=e)

    # The next methods serve the stream.

    def look(self):
        """The scheduler calls this when bytes may have arrived. Returns whether any have."""
        if not self._open:
            return False
        data = self._take()
        if not data:
            return False
        got = self._line.input(data, _time.now_ms())
        if got:
            self._frames(got)
        self.pump()
        return True

    def fire(self):
        self._line.passed(_time.now_ms())
        self.pump()

    def _take(self):
        s = self._in
        try:
            if hasattr(s, "any"):
                n = s.any()
                return s.read(n) if n else None
            if self._poll is None:
                data = s.recv(512)
                if not data:
                    self._cut("its line was closed")
                return data
            out = bytearray()
            while len(out) < 512:
                events = self._poll.poll(0)
                if not events:
                    break
                b = s.read(1) if events[0][1] & _select.POLLIN else b""
                if b is None:
                    break
                if not b:
                    self._cut("its line was closed")
                    break
                out.extend(b)
            return bytes(out)
        except OSError as e:
            if e.args[0] != 11:  # EAGAIN
                self._cut("its line failed: %s" % e)
            return None

    def _cut(self, why):
        self._line.lost = self._line.lost or why
        self._deaf()
        self._over(why)

    def _deaf(self):
        """Stops reading from the stream."""
        if self._hears:
            self._hears = False
            _time.source(self, False)
            _time._poller.unregister(self._in)

    def pump(self):
        """Puts frames into packets and packets onto the stream; then sets the timer."""
        if not self._open:
            return
        line, now = self._line, _time.now_ms()
        if line.lost:
            self._over(line.lost)
        while self._out and line.room():
            n = min(line.most, len(self._out))
            line.give(bytes(self._out[:n]))
            self._out = self._out[n:]
        if not self._line_out:
            line.output(now, self._line_out)
        if self._line_out:
            try:
                n = (
                    self._to.send(self._line_out)
                    if self._poll is None and hasattr(self._to, "send")
                    else self._to.write(self._line_out)
                )
                self._line_out = self._line_out[n or 0 :]
            except OSError as e:
                if e.args[0] != 11:
                    self._cut("its line failed: %s" % e)
                    return
        _time.disarm(self)
        self.t = now + 5 if self._line_out else max(line.due(), now + 1)
        if not line.lost:
            _time.arm(self)


def _text(b):
    try:
        return bytes(b).decode()
    except UnicodeError:
        return repr(bytes(b))


class _Waiter:
    told = False

    def __init__(self, link, p):
        self.link, self.p = link, p

    def __repr__(self):
        return "wait for the PC"

    def give_up(self, p):
        if self.told:
            return False
        self.link._waiters.remove(self)
        return True


class _Timeout:
    def __init__(self, link, t, i):
        self.link, self.t, self.i = link, t, i

    def fire(self):
        if self.op.n in self.link._ops:
            self.link._withdraw(self.op)

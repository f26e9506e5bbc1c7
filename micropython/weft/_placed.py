"""The board's part of weft.boards: runs processes that a program on a PC places here (rule 21;
python/docs/boards.md). The PC starts `main` from the raw prompt. From then on a weft.link uses the
prompt's line, or another line. VERSION is the version of the messages below.

    an order of the PC, or an event here             the messages in the call's channel to the PC
    ["start", n, digest, module, function,           none; or ["lacks"]: the source is missing or
       args, keywords, ends, channels, name]            damaged, and the order has had no effect
    ["put", digest, file, bytes, first]              none
    ["cancel", n]                                    none
    ["drop", ends]                                   none
    a process prints                                 ["print", text]
    a process has ended                              ["ended", result], ["cancelled"],
                                                     ["end", kind, text, strength, met, trace],
                                                     ["failed", kind, text, trace]

Invariants
- A call has the number n, and the channel "e<n>" for its messages to the PC. `_events` has the
  writers of these channels. The messages wait in `_news`, in order, and one process sends them.
- `_own` has ends of channels that stay on this board: by the channel's number, the reader ends and
  the writer ends that no process has received yet. A channel is made when the first process that
  holds an end of it starts. `_early` has the ends that were dropped before their channel was made.
- A source is imported from the folder of its digest, and only if the files there have that digest.
"""

import builtins
import gc
import os
import sys

from . import _chan, _proc, _time
from . import _core as core
from .coroutines import Channel, process, run
from .errors import BadUse, Cancelled, ChannelEnd
from .link import Link

VERSION = 1
LARGEST = 2048  # bytes of a frame
PRINTED = 2048  # bytes of printed text that wait to be sent; more is dropped and reported
KEPT = 4  # how many sources are kept, besides those that this session uses
FOLDER = "weft_kept"


class _Calls(_proc.Party):
    """The group of all processes that the PC has placed here. A process that fails does not end the
    others."""

    def __init__(self, host):
        super().__init__(None)
        self.host = host

    def path(self):
        return self.host.name

    def over(self, proc, error):
        self.live -= 1
        self.kids.remove(proc)
        self.host.tell(proc.call, proc)


class _Waiter:
    """The object at which the reporting process waits while there is no news."""

    def __repr__(self):
        return "wait for news of the processes"

    def give_up(self, p):
        return True


class _Knots:
    """A source for _time. It brings no event from outside. When no process of the board can go on,
    it looks for processes that wait only for each other at channels of the board (rule 21.8).
    """

    def __init__(self, host):
        self.host, self.seen = host, None

    def still(self):
        return True

    def look(self):
        if core.waiting():
            return False
        waits = [x.k.at for x in _proc._all]
        if waits == self.seen:
            return False
        self.seen = waits
        for x in _proc._all:
            if hasattr(x, "call"):
                knot = self.knot(x)
                if knot:
                    self.host.stuck_in(knot)
                    return True
        return False

    def knot(self, p):
        """Returns p, the processes that p waits for, the processes that these wait for, and so on,
        if none of them can ever go on; else None.
        """
        from . import _alt, _report

        found = [p]
        for x in found:
            at = x.k.at
            if x.limits or x.asked or not self.host.of(x):
                return None
            if isinstance(at, _alt.Alt) and any(
                n.kind not in (_alt.IN, _alt.OUT, _alt.SYNC, _alt.END) for n in at.nodes
            ):
                return None
            if not all(_known(c, out) for c, out in _report.place(x)[1]):
                return None
            others = _report.others(x)
            if not others:
                return None
            found.extend(y for y in others if y not in found)
        return found


def _known(c, out):
    """Returns True if c is no channel. If c is a channel, returns whether c is of this board, and
    all open ends at one side of c (the writers if `out`, else the readers) are held by processes
    that have started.
    """
    if not isinstance(c, _chan.Channel):
        return True
    if hasattr(c, "link_"):
        return False
    kind, n = (core.Wr, c.nw) if out else (core.Rd, c.nr)
    held = []
    for x in _proc._all:
        for e in x.ends:
            if isinstance(e, kind) and not e.x and e.c.x is c and e not in held:
                held.append(e)
    return len(held) == n


class Host:
    """Serves a program on a PC. `name` is the board's name, with which paths of processes begin."""

    importing = None  # the number of the call whose source is being imported

    def __init__(self, name):
        self.name = name
        self.calls = _Calls(self)
        self._events, self._own, self._modules = {}, {}, {}
        self._early = []
        self._news, self._printed, self._lost = [], 0, 0
        self._reporter = None
        self._stuck = {}
        self.folder = os.getcwd().rstrip("/") + "/" + FOLDER

    # What the processes send to the PC.

    def of(self, x):
        """Returns the number of the call to which the process x belongs, or None."""
        while x is not None and not hasattr(x, "call"):
            x = x.party.owner if x.party else None
        return x.call if x is not None else None

    def tell(self, n, what):
        self._news.append((n, what))
        if self._reporter is not None:
            p, self._reporter = self._reporter, None
            core.push(p)

    def print(self, *things, sep=" ", end="\n", file=None):
        """Replaces print(): sends the text that a process prints to the PC."""
        p = core.cur()
        n = None
        if file is None and p is not None:
            n = self.importing if self.importing is not None else self.of(p.x)
        if n is None:
            if file is None:
                return _print(*things, sep=sep, end=end)
            return _print(*things, sep=sep, end=end, file=file)
        text = sep.join([str(x) for x in things]) + end
        if self._printed + len(text) > PRINTED:
            self._lost += len(text)
            return None
        self._printed += len(text)
        self.tell(n, text)

    def stuck_in(self, knot):
        from . import _report

        lines = "\n".join("  %s: %s" % (x.where, _report.place(x)[0]) for x in knot)
        names = ", ".join([x.where for x in knot])
        text = "nothing can go on among processes of the board\n%s\nthe knot: %s" % (lines, names)
        for x in knot:
            self._stuck[self.of(x)] = text
        for kid in self.calls.kids[:]:
            if kid.call in self._stuck:
                kid.ask()

    def message(self, proc):
        e = proc.error
        if proc.call in self._stuck:
            return ["failed", "Deadlock", self._stuck.pop(proc.call), ""]
        if e is None:
            return ["ended", proc.value]
        if isinstance(e, Cancelled):
            return ["cancelled"]
        text = str(e)[:600]
        if isinstance(e, ChannelEnd):
            met = getattr(e, "met", False)
            return ["end", type(e).__name__, text, getattr(e, "strength", 1), met, trace(e)]
        return ["failed", type(e).__name__, text, trace(e)]

    async def report(self):
        while True:
            if not self._news:
                p = core.cur()
                _chan.begin(p, "news")
                self._reporter = p
                p.at = _Waiter()
                await core.ONCE
                _chan.resume(p)
                continue
            n, what = self._news.pop(0)
            if isinstance(what, str):
                self._printed -= len(what)
                if self._lost and not self._printed:
                    what += "(%d bytes that were printed too quickly are lost)\n" % self._lost
                    self._lost = 0
                await self.send(n, ["print", what])
            else:
                await self.send(n, self.message(what))
                self._events.pop(n).retire()

    async def send(self, n, message):
        """Sends a message about call n. (If the channel has ended, the call's process on the PC has
        ended.)"""
        try:
            await self._events[n].write(message)
        except ChannelEnd:
            pass
        except BadUse as e:
            why = "its result cannot be sent to the PC: %s" % e
            await self.send(n, ["failed", "BadUse", why, ""])

    # The orders of the PC.

    async def obey(self, pc, order):
        what = order[0]
        if what == "put":
            self.put(*order[1:])
        elif what == "cancel":
            for kid in self.calls.kids:
                if kid.call == order[1]:
                    kid.ask()
                    break
        elif what == "drop":
            for end in await self.ends(pc, order[1], None):
                end.retire()
        else:
            n = order[1]
            if n not in self._events:
                self._events[n] = await taken(pc, "e%d" % n, True)
            if self.has(order[2]):
                await self.start(pc, *order[1:])
            else:
                await self.send(n, ["lacks"])

    async def start(self, pc, n, digest, module, function, args, kw, ends, channels, name):
        for number, its, capacity, overflow, immunity, readers, writers in channels:
            c = Channel(its, capacity=capacity, overflow=overflow, immunity=immunity)
            rs = [c.reader() for _ in range(readers)]
            self._own[number] = (rs, [c.writer() for _ in range(writers)])
            early = [end for end in self._early if end[2] == number]
            self._early = [end for end in self._early if end[2] != number]
            for end in await self.ends(pc, early, None):
                end.retire()
        given = [args, kw]
        await self.ends(pc, ends, given)
        p = _proc.Process(None, given[0], given[1]).named(name)
        p.call = n
        self.importing = n
        try:
            p.fn = self.function(digest, module, function)
            p.start(self.calls)
        except Exception as e:
            _proc.let_go(p, None)
            p.error = e
            self.tell(n, p)
        finally:
            self.importing = None

    async def ends(self, pc, ends, given):
        """Takes the ends that an order names, and returns them. Also puts each end into its places
        in `given`, unless `given` is None.
        """
        out = []
        for paths, own, key, writes in ends:
            if own and key not in self._own:
                self._early.append((paths, own, key, writes))
                continue
            if own:
                readers, writers = self._own[key]
                end = (writers if writes else readers).pop(0)
                if not readers and not writers:
                    del self._own[key]
            else:
                end = await taken(pc, key, writes)
            # The process that will get the end holds it, and not the process that runs now.
            me = core.cur().x
            if end in me.ends:
                me.ends.remove(end)
                end.h -= 1
            out.append(end)
            for path in paths if given else ():
                x = given
                for step in path[:-1]:
                    x = x[step]
                x[path[-1]] = end
        return out

    # Sources.

    def function(self, digest, module, name):
        its = self._modules.get(digest)
        if its is None:
            place = self.folder + "/" + digest
            for file in os.listdir(place):
                sys.modules.pop(file.rsplit(".", 1)[0], None)
            if place in sys.path:
                sys.path.remove(place)
            sys.path.insert(0, place)
            gc.collect()
            self._modules[digest] = its = __import__(module)
        return getattr(its, name)

    def has(self, digest):
        if digest in self._modules:
            return True
        try:
            return sum_of(self.folder + "/" + digest) == digest
        except OSError:
            return False

    def put(self, digest, file, data, first):
        """Writes `data`, a piece of the file `file` of a source. `first` is 2 for the first piece
        of the source, 1 for the first piece of another of its files, and 0 for any other piece.
        """
        place = self.folder + "/" + digest
        if first == 2:
            self.make_room(digest)
            for folder in (self.folder, place):
                try:
                    os.mkdir(folder)
                except OSError:
                    pass  # the folder exists
        with open(place + "/" + file, "wb" if first else "ab") as f:
            f.write(data)

    def make_room(self, digest):
        """Removes the files of this source, and those of other sources, so that KEPT are left
        besides the sources that this session uses.
        """
        old = [d for d in kept() if d != digest and d not in self._modules]
        for d in [digest] + old[KEPT:]:
            place = self.folder + "/" + d
            try:
                for file in os.listdir(place):
                    os.remove(place + "/" + file)
                os.rmdir(place)
            except OSError:
                pass  # the source has no folder


def kept():
    """Returns the digests of the sources that this board keeps."""
    try:
        return os.listdir(FOLDER)
    except OSError:
        return []


async def taken(pc, key, writes):
    end = await (pc.writer(key) if writes else pc.reader(key))
    pc.forget(key)
    return end


def sum_of(place):
    """Returns the digest of the files in a folder."""
    from hashlib import sha256

    sum = sha256()
    for file in sorted(os.listdir(place)):
        sum.update(file.encode() + b"\0")
        with open(place + "/" + file, "rb") as f:
            while True:
                data = f.read(256)
                if not data:
                    break
                sum.update(data)
    return "".join(["%02x" % b for b in sum.digest()[:8]])


def look():
    """Prints the answer to the first question of weft.boards: About of weft/_boards/install.py."""
    from . import __version__

    gc.collect()
    mpy = getattr(sys.implementation, "_mpy", 0)
    print(
        repr(
            (
                sys.implementation[0],
                sys.platform,
                mpy,
                __version__,
                VERSION,
                gc.mem_free(),
                sys.path,
                kept(),
            )
        )
    )


def trace(e):
    from io import StringIO

    s = StringIO()
    try:
        sys.print_exception(e, s)
        return s.getvalue()[-900:]
    except MemoryError:
        return ""


_print = print


def _interrupts(on):
    """Makes byte 3 an interrupt of the program, as at the prompt, or a byte like any other."""
    try:
        from micropython import kbd_intr
    except ImportError:
        return
    kbd_intr(3 if on else -1)


@process
async def _serve(host, stream, out, lease):
    reporter = _proc.Process(host.report, (), {}).named("report")
    async with Link(stream, out, name=host.name, largest=LARGEST, lease=lease) as pc:
        try:
            orders = await pc.reader("do")
            reporter.start(_proc._run)
            _time.source(_Knots(host), True)
            async for order in orders:
                await host.obey(pc, order)
        except ChannelEnd:
            pass  # the PC's program has ended
        host.calls.stop()
    _interrupts(True)  # a process that does not end now can be interrupted from the prompt
    reporter.ask()
    while host.calls.live:
        from ._wait import sleep_ms

        await sleep_ms(5)


def main(stream, out=None, name="board", lease=3000):
    """Serves one program on a PC, until its session ends. `stream` and `out`: as for a Link."""
    host = Host(name)
    _interrupts(False)
    builtins.print = host.print
    try:
        run(_serve(host, stream, out, lease))
    finally:
        builtins.print = _print
        _interrupts(True)

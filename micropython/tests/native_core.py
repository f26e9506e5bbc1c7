"""Checks a core against the specification of weft._core (../README.md, *Inside*). The module `core`
is weft._plain, the user C module or a natmod; test_native.py, which runs this program, provides it.

A collection runs at every hook and after every step, and only the core holds the objects that the
processes need. The last line of output is `N checks`; a check that fails raises.
"""

import gc
import sys

import core

Proc, Chan, Rd, Wr, DONE, ONCE = core.Proc, core.Chan, core.Rd, core.Wr, core.DONE, core.ONCE
checks = 0
log = []
on_read = on_write = None


def same(got, wanted):
    global checks
    checks += 1
    if got != wanted:
        raise AssertionError("got %r, wanted %r" % (got, wanted))


def hook_read(rd, p):
    gc.collect()
    return on_read(rd, p)


def hook_write(wr, v, p):
    gc.collect()
    return on_write(wr, v, p)


def hook_ended(p, v):
    gc.collect()
    log.append((p.x, v))


def hook_failed(p, e):
    gc.collect()
    log.append((p.x, type(e).__name__))


def hook_strange(p, what):
    gc.collect()
    log.append((p.x, "strange", what))
    return ValueError(what)


core.hooks(hook_read, hook_write, hook_ended, hook_failed, hook_strange)


class ReaderMethods:
    def twice(self, n):
        return (self.h, n)


class WriterMethods:
    def mark(self):
        self.h += 1
        return self.h


core.methods(ReaderMethods, WriterMethods)


def start(name, g):
    p = Proc(name)
    p.start(g)
    core.push(p)
    return p


def run():
    """Runs the core until its queue is empty, one step at a time. Returns how each process ended,
    in order."""
    while core.waiting():
        core.loop(1)
        gc.collect()
    done = log[:]
    log.clear()
    return done


async def send(w, *values):
    for v in values:
        await w.write(v)
    return "sent"


async def take(r, n):
    got = []
    for _ in range(n):
        got.append(await r.read())
    return got


def ysend(w, *values):
    for v in values:
        yield w.write(v)
    return "sent"


def ytake(r, n):
    got = []
    for _ in range(n):
        v = yield r
        got.append(v)
    return got


def test_rendezvous():
    for write in (send, ysend):
        for read in (take, ytake):
            for reader_first in (False, True):
                c = Chan(None)
                jobs = [("w", write(Wr(c), 1, None, [3])), ("r", read(Rd(c), 3))]
                for name, g in reversed(jobs) if reader_first else jobs:
                    start(name, g)
                del c, jobs, g
                done = dict(run())
                same(done, {"w": "sent", "r": [1, None, [3]]})


def test_lines_are_first_come_first_served():
    c = Chan(None)
    r, w = Rd(c), Wr(c)
    for i in range(4):
        start(i, take(r, 1))
    core.loop(0)
    same(c.r.x, 0)
    same(c.rt.x, 3)
    same(c.r.nx.x, 1)
    same([p.at is r for p in (c.r, c.r.nx, c.rt)], [True] * 3)
    start("w", send(w, "a", "b", "c", "d"))
    same(run(), [("w", "sent"), (0, ["a"]), (1, ["b"]), (2, ["c"]), (3, ["d"])])
    same((c.r, c.w), (None, None))
    for i in range(3):
        start(i, send(w, i))
    core.loop(0)
    same((c.w.x, c.wt.x, c.w.at is w, c.w.v), (0, 2, True, 0))
    start("r", ytake(r, 3))
    same(run(), [("r", [0, 1, 2]), (0, "sent"), (1, "sent"), (2, "sent")])


def test_a_line_that_shrank_to_one_grows_again_in_order():
    c = Chan(None)
    r, w = Rd(c), Wr(c)
    for first in (take, ytake):
        for i in range(3):
            start(i, first(r, 1))
        core.loop(0)
        start("w", send(w, "a", "b"))
        same(run(), [("w", "sent"), (0, ["a"]), (1, ["b"])])
        same((c.r.x, c.r.nx), (2, None))
        for i in (3, 4):
            start(i, first(r, 1))
        core.loop(0)
        start("w", send(w, "c", "d", "e"))
        same(run(), [("w", "sent"), (2, ["c"]), (3, ["d"]), (4, ["e"])])
    for i in range(3):
        start(i, send(w, i))
    core.loop(0)
    start("r", take(r, 2))
    same(run(), [("r", [0, 1]), (0, "sent"), (1, "sent")])
    for i in (3, 4):
        start(i, send(w, i))
    core.loop(0)
    start("r", ytake(r, 3))
    same(run(), [("r", [2, 3, 4]), (2, "sent"), (3, "sent"), (4, "sent")])


def test_an_index_error_of_a_process_is_its_failure():
    def wrong():
        yield Wr(Chan(None)).write(1)
        [].pop()

    p = start("p", wrong())
    core.loop(0)
    p.at = None
    core.push(p)
    same(run(), [("p", "IndexError")])


def test_an_interrupt_between_two_processes_leaves_the_loop():
    if core.NATIVE:
        return  # the core under test has a run queue of its own
    from weft import _plain

    def interrupted():
        raise KeyboardInterrupt

    kept = _plain._pop
    _plain._pop = interrupted
    try:
        core.loop(0)
        same("went on", "left")
    except KeyboardInterrupt:
        same(core.cur(), None)
    finally:
        _plain._pop = kept


def test_a_write_tells_at_once():
    c = Chan(None)
    w = Wr(c)
    r = Rd(c)
    p = Proc("p")
    core.setcur(p)
    same(core.cur() is p, True)
    same(w.write(5) is ONCE, True)
    same((p.at is w, p.v), (True, 5))
    q = Proc("q")
    core.setcur(q)
    start("r", take(r, 1))
    core.setcur(None)
    woken = []
    p.go = woken.append
    same(run(), [("r", [5])])
    same((p.at, woken), (None, [None]))
    same(core.waiting(), 0)


def test_calls_are_reads_and_writes():
    c = Chan(None)

    async def reader(r):
        one = await r()
        two = await r
        return [one, two, await r.read()]

    async def writer(w):
        await w(1)
        await w(2)
        await w.write(3)

    start("r", reader(Rd(c)))
    start("w", writer(Wr(c)))
    same(dict(run()), {"r": [1, 2, 3], "w": None})


def test_other_cases_go_to_the_hooks():
    global on_read, on_write
    c = Chan(None)
    c.ok = False
    r, w = Rd(c), Wr(c)
    seen = []

    def on_read(rd, p):
        seen.append((rd is r, p.x))
        return ([len(seen)],)

    def on_write(wr, v, p):
        seen.append((wr is w, v, p.x))
        return DONE

    start("r", take(r, 2))
    start("y", ytake(r, 2))
    start("w", send(w, 7))
    start("z", ysend(w, 8))
    same(run(), [("r", [[1], [2]]), ("y", [[3], [4]]), ("w", "sent"), ("z", "sent")])
    same(seen, [(True, "r")] * 2 + [(True, "y")] * 2 + [(True, 7, "w"), (True, 8, "z")])


def test_a_hook_may_park_and_the_step_is_made_again():
    global on_read, on_write
    c = Chan(None)
    c.ok = False
    r, w = Rd(c), Wr(c)
    parked = []

    def on_read(rd, p):
        if p.at is None:
            p.at = "somewhere"
            parked.append(p)
            return None
        p.at = None
        return ("late",)

    def on_write(wr, v, p):
        p.at = wr
        parked.append(p)
        return ONCE

    start("r", take(r, 1))
    start("y", ytake(r, 1))
    start("w", send(w, 1))
    start("z", ysend(w, 1))
    same(run(), [])
    same([p.x for p in parked], ["r", "y", "w", "z"])
    for p in parked[2:]:
        p.at = None
    for p in parked:
        core.push(p)
    parked.clear()
    same(run(), [("r", ["late"]), ("y", ["late"]), ("w", "sent"), ("z", "sent")])


def test_a_hook_may_raise_into_the_process():
    global on_read, on_write
    c = Chan(None)
    c.ok = False

    def on_read(rd, p):
        raise ValueError("ended")

    def on_write(wr, v, p):
        raise ValueError("ended")

    async def patient(r):
        try:
            await r
        except ValueError as e:
            return str(e)

    def ypatient(r):
        try:
            yield r
        except ValueError as e:
            return str(e)

    start(1, patient(Rd(c)))
    start(2, ypatient(Rd(c)))
    start(3, take(Rd(c), 1))
    start(4, ytake(Rd(c), 1))
    start(5, send(Wr(c), 1))
    start(6, ysend(Wr(c), 1))
    failed = [(n, "ValueError") for n in (3, 4, 5, 6)]
    same(run(), [(1, "ended"), (2, "ended")] + failed)


def test_once_suspends_once():
    turns = []

    async def steps(x):
        for _ in range(2):
            core.cur().at = "here"  # `at` may be any object
            await ONCE
            turns.append(x)
            try:
                await ONCE
            except KeyError:
                turns.append("thrown")
            await ONCE
        return x

    a, b = start("a", steps("a")), start("b", steps("b"))
    core.loop(0)
    same(turns, [])
    core.push(b)
    core.push(a)
    core.loop(0)
    same(turns, ["b", "a"])
    turns.clear()
    a.throw(KeyError())
    core.push(a)
    core.push(b)
    core.loop(0)
    same(turns, ["thrown"])
    for _ in range(4):
        core.push(a)
        core.push(b)
        core.loop(0)
    same(turns, ["thrown", "a", "b"])
    same(sorted(log), [("a", "a"), ("b", "b")])
    log.clear()


def test_throw():
    async def waits(r):
        try:
            await r
        except KeyError:
            return "told"

    def ywaits(r):
        try:
            yield r
        except KeyError:
            return "told"

    async def goes_on(r):
        try:
            await r
        except KeyError:
            return await r

    for make, wanted in ((waits, "told"), (ywaits, "told")):
        c = Chan(None)
        p = start("p", make(Rd(c)))
        core.loop(0)
        same(c.r is p, True)
        c.r = None
        p.at = None
        p.throw(KeyError())
        same(core.waiting(), 0)  # the reader is not in the run queue
        core.push(p)
        same(run(), [("p", wanted)])
    c = Chan(None)
    p = start("p", goes_on(Rd(c)))
    core.loop(0)
    c.r = p.at = None
    p.throw(KeyError())
    core.push(p)
    start("w", send(Wr(c), 6))
    same(sorted(run()), [("p", 6), ("w", "sent")])
    p = start("p", take(Rd(c), 1))
    core.loop(0)
    c.r = p.at = None
    p.throw(IndexError())
    core.push(p)
    same(run(), [("p", "IndexError")])


def test_ends_and_failures():
    async def returns():
        return 3

    async def raises():
        raise OSError(5)

    async def stops():
        raise StopIteration(4)

    class Hard(BaseException):
        pass

    async def hard():
        raise Hard

    for x, g in ((1, returns()), (2, raises()), (3, stops()), (4, hard())):
        start(x, g)
    same(run(), [(1, 3), (2, "OSError"), (3, "RuntimeError"), (4, "Hard")])

    def odd():
        yield 12

    start("odd", odd())
    same(run(), [("odd", "strange", 12), ("odd", "ValueError")])

    def told():
        for what in (None, 5):  # None: the process suspends itself without an operation of Weft
            try:
                yield what
            except ValueError:
                pass
        return "went on"

    start("told", told())
    same(run(), [("told", "strange", None), ("told", "strange", 5), ("told", "went on")])


def test_what_a_hook_raises_leaves_the_loop():
    def loud(p, e):
        raise e

    core.hooks(hook_read, hook_write, hook_ended, loud, hook_strange)

    async def raises():
        raise OSError(5)

    async def fine():
        return 1

    start(1, raises())
    start(2, fine())
    try:
        core.loop(0)
        same("it returned", "OSError")
    except OSError:
        pass
    same(core.cur(), None)
    same(core.waiting(), 1)
    same(run(), [(2, 1)])
    core.hooks(hook_read, hook_write, hook_ended, hook_failed, hook_strange)


def test_hooks_are_exchanged_while_processes_wait():
    async def fine():
        return 1

    start(1, fine())
    core.hooks(hook_read, hook_write, hook_ended, hook_failed, hook_strange)
    same(core.waiting(), 1)
    same(run(), [(1, 1)])


def test_the_queue():
    turns = []

    async def steps(x, n):
        for _ in range(n):
            turns.append(x)
            core.push(core.cur())
            await nothing

    class Nothing:
        def __iter__(self):
            yield

        __await__ = __iter__

    nothing = Nothing()
    core.room(20)
    for x in range(3):
        start(x, steps(x, 2))
    same(core.waiting(), 3)
    core.loop(2)
    same((turns, core.waiting()), ([0, 1], 3))
    same(core.cur(), None)
    run()
    same(turns, [0, 1, 2, 0, 1, 2])


def test_a_proc_without_a_generator_is_called():
    woken = []
    p = Proc("task")
    p.go = woken.append
    core.push(p)
    core.loop(0)
    same(woken, [None])


def test_ends_that_are_sent_go_to_the_hook():
    global on_write
    c = Chan(None)
    sent = []

    def on_write(wr, v, p):
        sent.append(v)
        return DONE

    r, w = Rd(c), Wr(c)
    start("w", send(w, r, w, 1))
    same(run(), [])
    same([v is r or v is w for v in sent], [True, True])
    start("r", take(r, 1))
    same(run(), [("r", [1]), ("w", "sent")])


def test_fields_and_methods():
    c = Chan("the channel")
    r, w = Rd(c), Wr(c)
    same((c.x, c.ok, c.r, c.rt, c.w, c.wt), ("the channel", True, None, None, None, None))
    same((r.c is c, r.h, r.x, w.c is c), (True, 0, None, True))
    r.h += 2
    r.x = "why"
    same((r.h, r.x, r.twice(5), w.mark(), w.h), (2, "why", (2, 5), 1, 1))
    same(r.read() is r, True)
    same(len({r: 1, w: 2, c: 3}), 3)
    r.c = core.CLOSED
    same((r.c is core.CLOSED, r.c.ok, isinstance(r, core.ENDS)), (True, False, True))
    for o, name in ((r, "nothing"), (w, "nothing"), (c, "nothing"), (Proc(0), "nothing")):
        try:
            getattr(o, name)
            same(name, "AttributeError")
        except AttributeError:
            pass
    p = Proc(7)
    same((p.x, p.at, p.nx, p.v, p.g), (7, None, None, None, None))


def test_collection_while_everything_waits():
    core.room(40)
    chans = [Chan(i) for i in range(30)]

    async def passes(r, w, junk):
        v = await r
        await w.write([v, junk])

    for i in range(29):
        start(i, passes(Rd(chans[i]), Wr(chans[i + 1]), bytes(i)))
    core.loop(0)
    for _ in range(3):
        gc.collect()
        junk = [bytearray(40) for _ in range(50)]
    del junk
    start("last", take(Rd(chans[29]), 1))
    start("first", send(Wr(chans[0]), "x"))
    del chans
    done = dict(run())
    v = done["last"][0]
    depth = 0
    while v != "x":
        v, junk = v
        depth += 1
        same(len(junk), 29 - depth)
    same(depth, 29)


def test_no_memory():
    if sys.implementation.name != "micropython":
        return
    import micropython

    c = Chan(None)

    async def hungry():
        micropython.heap_lock()
        try:
            return [0] * 100
        finally:
            micropython.heap_unlock()

    start("hungry", hungry())
    start("r", take(Rd(c), 1))
    start("w", send(Wr(c), 1))
    done = dict(run())
    same(done["hungry"], "MemoryError")
    same(done["r"], [1])
    many = []
    try:
        while True:
            many.append(Proc(bytearray(1000)))
            gc.threshold(-1)
            if len(many) > 100000:
                break
    except MemoryError:
        pass
    del many
    gc.collect()
    start("r", take(Rd(c), 1))
    start("w", send(Wr(c), 2))
    same(sorted(run()), [("r", [2]), ("w", "sent")])


for name, f in sorted(globals().copy().items()):
    if name.startswith("test_"):
        f()
        print(name)
print("%d checks" % checks)

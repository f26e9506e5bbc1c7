"""Plays random networks (conformance/README.md, *Networks as data*). Each line of the standard
input is a network, as JSON; each line of the standard output is its history. The player runs on
MicroPython and CPython. A process itself makes a record just before each of its operations starts
and just after the operation returns."""

import json
import sys

from weft.coroutines import (
    BadUse,
    Barrier,
    Cancelled,
    Channel,
    Deadlock,
    Failures,
    Input,
    NoResult,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    Sequence,
    Spawn,
    after,
    at,
    now,
    process,
    run,
    select,
    skip,
    sleep,
    yield_,
)


class Fail(Exception):
    pass


KINDS = (
    (Retired, "Retired"),
    (Poisoned, "Poisoned"),
    (PeerDied, "PeerDied"),
    (Cancelled, "Cancelled"),
    (BadUse, "BadUse"),
    (Deadlock, "Deadlock"),
    (Fail, "Fail"),
    (Failures, "Group"),
)


def name_of(error):
    for kind, name in KINDS:
        if isinstance(error, kind):
            return name
    return "%s: %s" % (type(error).__name__, error)


class Play:
    def __init__(self, net):
        self.records = []
        self.failed = []  # (error, pid)
        self.made = {}
        self.channels = [Channel(**c) for c in net["channels"]]
        self.barriers = [Barrier(n) for n in net.get("barriers", [])]
        out = ["ok"]
        try:
            run(self.make(net["main"], []), clock="virtual")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            name = name_of(error)
            out = [name, {} if name == "Deadlock" else self.pids(error, name)]
        self.records.append({"e": "run", "out": out})
        self.records.append({"e": "stat", "dropped": [c.stats().dropped for c in self.channels]})

    def pid_of(self, error):
        for e, pid in reversed(self.failed):  # the outermost process that the error has left
            if e is error:
                return pid
        return None

    def pids(self, error, name):
        inner = error.exceptions if name == "Group" and self.pid_of(error) is None else [error]
        failed = [self.pid_of(e) for e in inner]
        return {} if None in failed else {"pids": failed}

    def make(self, proc, slots):
        ends = []
        for e in proc["ends"]:
            if isinstance(e, int):
                ends.append(slot(slots, e))
            else:
                c = self.channels[e[0]]
                ends.append(c.reader() if e[1] == "r" else c.writer())
        pid, body = proc["id"], proc["body"]

        async def function(*given):
            player = Player(self, pid, list(given))
            try:
                await player.body(body)
            except BaseException as error:
                name = name_of(error)
                if name not in ("Retired", "Poisoned", "Cancelled"):
                    self.failed.append((error, pid))
                self.records.append({"p": pid, "e": "end", "out": [name]})
                raise
            self.records.append({"p": pid, "e": "end", "out": ["ok"]})
            return pid

        p = self.made[pid] = process(function)(*ends).named("p%d" % pid)
        return p


def slot(slots, k):
    if k >= len(slots):
        raise BadUse("there is no end in slot %d" % k)
    return slots[k]


class Player:
    def __init__(self, play, pid, slots):
        self.play, self.pid, self.slots, self.count = play, pid, slots, 0

    def value(self):
        self.count += 1
        return "%d.%d" % (self.pid, self.count - 1)

    def call(self, kind, made=()):
        self.play.records.append({"p": self.pid, "e": "call", "op": [kind] + list(made)})

    def ret(self, out):
        self.play.records.append({"p": self.pid, "e": "ret", "out": out, "t": round(now())})

    def failure(self, error, kind):
        name, more = name_of(error), {}
        if kind in ("par", "seq"):
            more = self.play.pids(error, name)
        elif name in ("Retired", "Poisoned", "PeerDied"):
            if kind == "select":
                more["guard"] = error.guard
            if kind == "write" and name != "PeerDied":
                more["value"] = error.value
            if name == "Poisoned":
                more["strength"] = error.strength
        return [name, more] if more else [name]

    def received(self, value):
        if isinstance(value, str):
            return [value]
        self.slots.append(value)
        return ["end"]

    async def body(self, body):
        for s in body:
            await self.statement(s)

    async def statement(self, s):
        kind = s[0]
        if kind == "loop":
            for _ in range(s[1]):
                await self.body(s[2])
        elif kind == "try":
            try:
                await self.body(s[1])
                return
            except BaseException as error:
                if name_of(error) not in s[2]:
                    raise
            await self.body(s[3])
        elif kind == "iter":
            await self.iterate(s)
        elif kind == "ext":
            await self.extended(s)
        elif kind == "select":
            await self.select(s)
        else:
            made = (self.value(),) if kind == "write" else ()
            self.call(kind, made)
            try:
                out = await self.operate(kind, s, made)
            except BaseException as error:
                self.ret(self.failure(error, kind))
                raise
            self.ret(["ok"] + out)

    async def operate(self, kind, s, made):
        play = self.play
        if kind == "read":
            return self.received(await slot(self.slots, s[1]).read())
        if kind == "write":
            await slot(self.slots, s[1]).write(made[0])
        elif kind == "send":
            await slot(self.slots, s[1]).write(slot(self.slots, s[2]))
        elif kind == "sync":
            await play.barriers[s[1]].sync()
        elif kind == "enrol":
            play.barriers[s[1]].enrol()
        elif kind == "resign":
            play.barriers[s[1]].resign()
        elif kind == "sleep":
            await sleep(s[1])
        elif kind == "cancel":
            if s[1] in play.made:
                play.made[s[1]].cancel()
        elif kind == "yield":
            await yield_()
        elif kind == "retire":
            slot(self.slots, s[1]).retire()
        elif kind == "poison":
            slot(self.slots, s[1]).poison(s[2])
        elif kind == "die":
            slot(self.slots, s[1]).die()
        elif kind == "fail":
            raise Fail
        elif kind in ("par", "seq"):
            ps = [play.make(p, self.slots) for p in s[1]]
            got = await (Parallel if kind == "par" else Sequence)(*ps)
            return [["<%s>" % r.how if isinstance(r, NoResult) else r for r in got]]  # 7.1
        elif kind == "spawn":
            Spawn(play.make(s[1], self.slots))
        else:
            raise ValueError(kind)
        return []

    async def iterate(self, s):
        turns, it = 0, None
        while len(s) < 4 or turns < s[3]:
            turns += 1
            self.call("read")
            try:
                if it is None:
                    it = slot(self.slots, s[1]).__aiter__()
                value = await it.__anext__()
            except StopAsyncIteration:
                self.ret(["stop"])
                return
            except BaseException as error:
                self.ret(self.failure(error, "read"))
                raise
            self.ret(["ok"] + self.received(value))
            await self.body(s[2])

    async def extended(self, s):
        self.call("ext")
        try:
            block = slot(self.slots, s[1]).extended()
            value = await block.__aenter__()
        except BaseException as error:
            self.ret(self.failure(error, "ext"))
            raise
        self.ret(["ok"] + self.received(value))
        try:
            await self.body(s[2])
        finally:
            self.call("release")
            await block.__aexit__(None, None, None)
            self.ret(["ok"])

    async def select(self, s):
        made, calls, values = [], [0] * len(s[2]), []
        for k, g in enumerate(s[2]):
            values.append(self.output(k, g, made, calls) if g["g"] == "out" else None)
        self.call("select", made)
        try:
            guards = [self.guard(g, values[k]) for k, g in enumerate(s[2])]
            index, value = await select(*guards, mode=s[1])
        except BaseException as error:
            self.ret(self.failure(error, "select"))
            raise
        if s[2][index]["g"] == "in":
            self.ret(["ok", index] + self.received(value))
            return
        wrong = [
            k for k, n in enumerate(calls) if n != (1 if k == index and "fn" in s[2][k] else 0)
        ]
        self.ret(["ok", index] if not wrong else ["ok", index, "wrongly called: %s" % wrong])

    def output(self, k, g, made, calls):
        value = self.value()
        made.append(value)
        if "fn" not in g:
            return value

        def make():
            calls[k] += 1
            if g["fn"] == "raise":
                raise Fail
            return value

        return make

    def guard(self, g, value):
        kind = g["g"]
        how = {"ended": "raise"} if g.get("ends") else {}
        if kind == "in":
            made = Input(slot(self.slots, g["end"]), **how)
        elif kind == "out":
            end = slot(self.slots, g["end"])
            made = Output(end, make=value, **how) if callable(value) else Output(end, value, **how)
        elif kind == "barrier":
            made = self.play.barriers[g["b"]]
        elif kind == "skip":
            made = skip()
        elif kind == "timeout":
            made = after(g["t"])
        else:
            made = at(g["t"])
        return made if g.get("pre", True) else made.when(False)


def main():
    for line in sys.stdin:
        print(json.dumps(Play(json.loads(line)).records))
        if hasattr(sys.stdout, "flush"):
            sys.stdout.flush()


main()

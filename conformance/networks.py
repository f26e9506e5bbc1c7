"""Makes random networks from a seed, as data that any runtime can interpret, and shows them in
readable form.

`generate(seed)` gives the same network for the same seed on every Python, because all its choices
are drawn from `random.Random(seed).random()`. `features` limits what a network may contain; a
driver names the features of its runtime. Every network ends under the model: normally, by a
deadlock that the run reports, or by a failure.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .program import BLOCKS

Net = dict[str, Any]
FEATURES = frozenset(
    {
        "select",
        "output guards",
        "buffer",
        "overflow",
        "poison",
        "retire",
        "barrier",
        "time",
        "nested",
        "fail",
        "extended",
        "spawn",
        "sequence",
        "mobile",
        "yield",
        "try",
        "priority",
        "ends",
        "strength",
        "cancel",
        "ended",
        "watched",
        "limit",
    }
)
# Not every runtime lets a process cancel another one by its number, ask for the end of another
# process (7.11), or use limits (7.12).
DEFAULT = FEATURES - {"cancel", "ended", "watched", "limit"}
LIMITS = ("timeout", "deadline", "move_on")


class Maker:
    def __init__(self, seed: int, size: int, features: frozenset[str]):
        self.rng = random.Random(seed)
        self.size, self.features = size, features
        self.next_id = 1
        self.channels: list[dict[str, Any]] = []
        self.barriers: list[int] = []

    def has(self, feature: str, chance: float) -> bool:
        return self.rng.random() < chance and feature in self.features

    def pick(self, items: list[Any]) -> Any:
        return items[int(self.rng.random() * len(items))]

    def upto(self, n: int) -> int:
        return 1 + int(self.rng.random() * n)

    def channel(self) -> int:
        c: dict[str, Any] = {}
        if self.has("buffer", 0.45):
            c["capacity"] = self.upto(3)
            if self.has("overflow", 0.4):
                c["overflow"] = self.pick(["drop_oldest", "drop_newest", "unbounded"])
        if self.has("strength", 0.1):
            c["immunity"] = 2
        self.channels.append(c)
        return len(self.channels) - 1

    def process(self, ends: list[Any], sides: list[tuple[int, str]], depth: int) -> dict[str, Any]:
        pid, self.next_id = self.next_id, self.next_id + 1
        return {"id": pid, "ends": ends, "body": self.body(pid, sides, depth)}

    def body(self, pid: int, sides: list[tuple[int, str]], depth: int) -> list[Any]:
        inner = [s for _ in range(self.upto(2)) for s in self.statement(pid, sides, depth)]
        readers = [k for k, (_, side) in enumerate(sides) if side == "r"]
        if readers and self.rng.random() < 0.35:
            out: list[Any] = [
                ["iter", self.pick(readers), inner if self.rng.random() < 0.6 else [], 4]
            ]  # at most 4 turns: no network runs forever
        else:
            out = [["loop", self.upto(3), inner]]
        if not self.once(out):
            out = inner
        if self.has("try", 0.2):
            caught = [
                n for n in ("Retired", "Poisoned", "PeerDied", "Fail") if self.rng.random() < 0.5
            ] or ["Retired"]
            out = [["try", out, caught, self.statement(pid, sides, 9)]]
        if self.has("retire", 0.2) and sides:
            out.append(["retire", int(self.rng.random() * len(sides))])
            if self.rng.random() < 0.4:
                out += self.statement(
                    pid, sides, 9
                )  # the process continues, perhaps with the end that it retired
        if self.has("fail", 0.06):
            out.append(["fail"])
        return out

    @staticmethod
    def once(body: list[Any]) -> bool:
        """Returns whether the body makes no processes inside a loop. (Each process of a network
        exists once.)
        """

        def makes(b: list[Any]) -> bool:
            return any(
                s[0] in ("par", "seq", "spawn")
                or (s[0] in BLOCKS and makes(s[2]))
                or (s[0] == "try" and (makes(s[1]) or makes(s[3])))
                for s in b
            )

        return not any(s[0] in ("loop", "iter") and makes(s[2]) for s in body)

    def limit(self, body: list[Any]) -> list[Any]:
        """Makes a block with a limit (7.12). Usually the Timeout of the block is caught. Now and
        then the Cancelled of the limit is caught inside the block, which then continues.
        """
        how = self.pick([*LIMITS])
        if self.rng.random() < 0.25:
            body = [["try", body, ["Cancelled"], [["yield"]] if self.rng.random() < 0.5 else []]]
            body.append(["sleep", self.upto(2)] if self.rng.random() < 0.5 else ["yield"])
        if self.rng.random() < 0.2:
            body.insert(self.upto(len(body) + 1) - 1, ["reschedule", int(self.rng.random() * 3)])
        block = ["limit", how, body, int(self.rng.random() * (6 if how == "deadline" else 4))]
        if how == "move_on" or self.rng.random() < 0.2:
            return block
        return ["try", [block], ["Timeout"], []]

    def statement(self, pid: int, sides: list[tuple[int, str]], depth: int) -> list[Any]:
        """Returns a random statement, in some cases two."""
        readers = [k for k, (_, side) in enumerate(sides) if side == "r"]
        writers = [k for k, (_, side) in enumerate(sides) if side == "w"]
        if "limit" in self.features and self.rng.random() < 0.25:
            inner = [s for _ in range(self.upto(2)) for s in self.statement(pid, sides, depth)]
            return [self.limit(inner)]
        x = self.rng.random()
        if sides and self.has("select", 0.4):
            return [self.select(sides)]
        if self.barriers and self.has("barrier", 0.15):
            b = int(self.rng.random() * len(self.barriers))
            return [["resign", b]] if self.rng.random() < 0.15 else [["sync", b]]
        if self.has("time", 0.12):
            return [["sleep", self.upto(3)]]
        if self.has("yield", 0.08):
            return [["yield"]]
        if sides and self.has("poison", 0.05):
            return [
                [
                    "poison",
                    int(self.rng.random() * len(sides)),
                    self.upto(2) if "strength" in self.features else 1,
                ]
            ]
        if self.has("poison", 0.01) and sides:
            return [["die", int(self.rng.random() * len(sides))]]
        if readers and self.has("extended", 0.08):
            return [
                [
                    "ext",
                    self.pick(readers),
                    self.statement(pid, sides, 9) if self.rng.random() < 0.6 else [],
                ]
            ]
        if depth == 0 and self.has("nested", 0.12):
            return [self.nested(sides)]
        if self.has("cancel", 0.05) and pid > 1:
            return [["cancel", self.upto(pid - 1)]]
        if readers and (x < 0.5 or not writers):
            return [["read", self.pick(readers)]]
        if writers:
            return [["write", self.pick(writers)]]
        return [["yield"]] if "yield" in self.features else []

    def select(self, sides: list[tuple[int, str]]) -> list[Any]:
        guards: list[dict[str, Any]] = []
        used: dict[int, str] = {}
        for k, (chan, side) in enumerate(sides):
            if self.rng.random() < 0.75 and used.setdefault(chan, side) == side:
                if side == "r":
                    guards.append({"g": "in", "end": k})
                elif "output guards" in self.features:
                    guards.append({"g": "out", "end": k})
                    if self.rng.random() < 0.2:
                        guards[-1]["fn"] = "raise" if self.has("fail", 0.3) else "make"
        if self.has("time", 0.2):
            guards.append({"g": "timeout", "t": int(self.rng.random() * 4)})
        if self.rng.random() < 0.1:
            guards.append({"g": "skip"})
        if self.barriers and self.has("barrier", 0.12):
            guards.append({"g": "barrier", "b": 0})
        if not guards:
            guards.append({"g": "in" if sides[0][1] == "r" else "out", "end": 0})
        for g in guards:
            if len(guards) > 1 and self.rng.random() < 0.1:
                g["pre"] = False
            if g["g"] in ("in", "out") and self.has("ends", 0.15):
                g["ends"] = True
        return ["select", "priority" if self.has("priority", 0.3) else "fair", guards]

    def nested(self, sides: list[tuple[int, str]]) -> list[Any]:
        """Makes a group inside a process: its children get a private channel and some ends of the
        parent.
        """
        private = self.channel()
        kids = []
        for side in ("w", "r"):
            ends: list[Any] = [[private, side]]
            kid_sides = [(private, side)]
            if sides and self.rng.random() < 0.4:
                k = int(self.rng.random() * len(sides))
                ends.append(k)
                kid_sides.append(sides[k])
            kids.append(self.process(ends, kid_sides, 1))
        if (
            "spawn" in self.features
            and self.rng.random() < 0.15
            and not any(isinstance(e, int) for e in kids[0]["ends"])
        ):
            return ["spawn", kids[0]]
        if "sequence" in self.features and self.rng.random() < 0.2:
            return ["seq", kids]
        return ["par", kids]


def generate(seed: int, size: int = 4, features: frozenset[str] = DEFAULT) -> Net:
    """Makes a network with at most `size` processes at its top and 1 to 3 channels."""
    m = Maker(seed, size, features)
    chans = [m.channel() for _ in range(m.upto(3))]
    n = 1 + m.upto(size - 1)
    if m.has("barrier", 0.2):
        m.barriers.append(m.upto(n))
    # every channel has a writer and a reader; then some more ends are added at random
    ends: list[list[tuple[int, str]]] = [[] for _ in range(n)]
    for c in chans:
        w = int(m.rng.random() * n)
        ends[w].append((c, "w"))
        ends[(w + 1 + int(m.rng.random() * (n - 1))) % n].append((c, "r"))
    for k in range(n):
        if m.rng.random() < 0.5 or not ends[k]:
            ends[k].append((m.pick(chans), "w" if m.rng.random() < 0.5 else "r"))
    procs = [m.process([[c, s] for c, s in mine], mine, 0) for mine in ends]
    main: list[Any] = [["par", procs]]
    if "mobile" in features and m.rng.random() < 0.08:
        main = [["par", [*procs, *_mobile(m, chans[0])]]]
    return {
        "seed": seed,
        "channels": m.channels,
        "barriers": m.barriers,
        "main": {"id": 0, "ends": [], "body": main},
    }


def _mobile(m: Maker, target: int) -> list[dict[str, Any]]:
    """Makes two processes: one sends its writer end of `target` to the other, which writes to it
    (2.4).
    """
    carrier = m.channel()
    a, b = m.next_id, m.next_id + 1
    m.next_id += 2
    return [
        {"id": a, "ends": [[carrier, "w"], [target, "w"]], "body": [["write", 1], ["send", 0, 1]]},
        {"id": b, "ends": [[carrier, "r"]], "body": [["read", 0], ["write", 1]]},
    ]


# --- readable form


def readable(net: Net) -> str:
    """Returns the network as a program for people to read, with its seed."""
    lines = [f"# network of seed {net.get('seed', '–')}"]
    for k, c in enumerate(net["channels"]):
        args = ", ".join(f"{n}={v!r}" for n, v in c.items())
        lines.append(f"c{k} = Channel({args})")
    for k, n in enumerate(net.get("barriers", [])):
        lines.append(f"b{k} = Barrier({n})")
    _show_process(net["main"], {}, "", lines)
    return "\n".join(lines)


def _show_process(p: dict[str, Any], names: dict[int, str], pad: str, lines: list[str]) -> None:
    mine = {}
    for k, e in enumerate(p["ends"]):
        mine[k] = (
            names.get(e, f"end{e}")
            if isinstance(e, int)
            else f"c{e[0]}.{'reader' if e[1] == 'r' else 'writer'}"
        )
    lines.append(f"{pad}process p{p['id']}({', '.join(mine.values())}):")
    _show_body(p["body"], mine, pad + "    ", lines)


def _show_body(body: list[Any], names: dict[int, str], pad: str, lines: list[str]) -> None:
    def end(k: int) -> str:
        return names.get(k, f"received[{k}]")

    if not body:
        lines.append(pad + "pass")
    for s in body:
        kind = s[0]
        if kind in ("read", "write", "retire", "die"):
            lines.append(f"{pad}{kind} {end(s[1])}")
        elif kind == "send":
            lines.append(f"{pad}send {end(s[2])} over {end(s[1])}")
        elif kind == "poison":
            lines.append(f"{pad}poison {end(s[1])}, strength {s[2]}")
        elif kind == "limit":
            lines.append(f"{pad}within {s[1]} {s[3]}:")
            _show_body(s[2], names, pad + "    ", lines)
        elif kind in ("ext", "iter", "loop"):
            head = {"ext": "extended read of ", "iter": "for each of ", "loop": "repeat "}[kind]
            lines.append(f"{pad}{head}{s[1] if kind == 'loop' else end(s[1])}:")
            _show_body(s[2], names, pad + "    ", lines)
            if kind == "iter" and len(s) > 3:
                lines.append(f"{pad}    (at most {s[3]} turns)")
        elif kind == "select":
            lines.append(f"{pad}select {s[1]}:")
            for k, g in enumerate(s[2]):
                more = " (its retirement raises)" if g.get("ends") else ""
                more += "" if g.get("pre", True) else " (precondition false)"
                lines.append(f"{pad}    {k}: {_show_guard(g, end)}{more}")
        elif kind in ("sync", "enrol", "resign"):
            lines.append(f"{pad}{kind} b{s[1]}")
        elif kind == "try":
            lines.append(pad + "try:")
            _show_body(s[1], names, pad + "    ", lines)
            lines.append(f"{pad}except {', '.join(s[2])}:")
            _show_body(s[3], names, pad + "    ", lines)
        elif kind in ("par", "seq", "spawn"):
            lines.append(pad + {"par": "Parallel:", "seq": "Sequence:", "spawn": "Spawn:"}[kind])
            for q in s[1] if kind != "spawn" else [s[1]]:
                _show_process(q, names, pad + "    ", lines)
        else:
            lines.append(pad + " ".join(map(str, s)))


def _show_guard(g: dict[str, Any], end: Callable[[int], str]) -> str:
    if g["g"] in ("in", "out"):
        word = "input" if g["g"] == "in" else "output"
        return f"{word} {end(g['end'])} {g.get('fn', '')}".rstrip()
    if g["g"] in ("timeout", "deadline"):
        return f"{g['g']} {g['t']}"
    if g["g"] == "ended":
        return f"the end of p{g['p']}"
    return f"barrier b{g['b']}" if g["g"] == "barrier" else "skip"

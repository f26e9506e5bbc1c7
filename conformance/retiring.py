"""Random networks in which guards retire while their select continues (rule 5.6), as data for any
runtime.

    sources ──▶ a few channels ──▶ selectors ──▶ a few channels ──▶ sinks
       └───────────────▶ stop channels ───▶┘

Sources write a few values and end, each at its own time. Sinks read a few values and end, or read
all. Between them selectors select over their ends, turn after turn, until the select has ended:
merges (only inputs), dispatchers (only outputs), buffers (both), joins, and processes with a stop
channel (`ended="raise"`). Now and then a guard is off, so that silent guards, guards that hold the
select open and guards that end it occur in all combinations. When a selector meets an end, it goes
on with the remaining ends, or selects once more.

Only the network is random; the model decides what a run of it may do (`checker.py`): each value
that was taken is delivered once, each end is reported with the guards that decided it, a silent
guard is never chosen, and an output that was not taken stays with its writer.

Invariants: the same seed gives the same network on every Python. Every network ends, because each
loop has a fixed number of turns. No process is made inside a loop.
"""

from __future__ import annotations

from typing import Any

from .networks import DEFAULT, Maker, Net

# The number of turns of a selector. It is larger than the number of its sources' values, so that
# the end of the channels ends the selector.
TURNS = 9
Side = tuple[int, str]


class _Retiring(Maker):
    """Makes the pieces of a network of this shape. `Maker` provides the random choices, the
    channels and the process numbers.
    """

    def some(self, chans: list[int], side: str, most: int) -> list[Side]:
        """Returns between one and `most` ends, each at a different channel."""
        left = list(chans)
        mine: list[Side] = []
        for _ in range(min(self.upto(most), len(left))):
            c = self.pick(left)
            left.remove(c)
            mine.append((c, side))
        return mine

    def numbered(self, sides: list[Side], body: list[Any]) -> dict[str, Any]:
        pid, self.next_id = self.next_id, self.next_id + 1
        return {"id": pid, "ends": [list(s) for s in sides], "body": body}

    def pause(self) -> list[Any]:
        """Makes a pause, now and then, so that this process ends before or after another one."""
        if self.has("time", 0.25):
            return [["sleep", self.upto(3)]]
        return [["yield"]] if self.has("yield", 0.2) else []

    def leaving(self, sides: list[Side]) -> list[Any]:
        """Returns the statements by which a process ends: usually none; sometimes it first retires
        or poisons an end and continues for a while.
        """
        slot = int(self.rng.random() * len(sides))
        if self.has("retire", 0.2):
            return [["retire", slot], *self.pause()]
        if self.has("poison", 0.06):
            return [["poison", slot, 1]]
        return [["fail"]] if self.has("fail", 0.03) else []

    def source(self, sides: list[Side]) -> dict[str, Any]:
        if len(sides) > 1 and self.has("output guards", 0.4):
            each = [self.guards(sides, list(range(len(sides))))]
        else:
            each = [["write", int(self.rng.random() * len(sides))]]
        values = int(self.rng.random() * 4)
        body = [["loop", values, [*self.pause(), *each]]] if values else self.pause()
        return self.watched(self.numbered(sides, [*body, *self.leaving(sides)]))

    def watched(self, process: dict[str, Any]) -> dict[str, Any]:
        if "ended" in self.features:
            watched = self.rng.random() < 0.5
            process["watched"] = watched and "watched" in self.features
            if self.rng.random() < 0.2:
                process["body"].append(["fail"])
        return process

    def sink(self, sides: list[Side]) -> dict[str, Any]:
        slots = list(range(len(sides)))
        if len(sides) > 1 or self.rng.random() < 0.3:
            body = [["loop", self.upto(TURNS), [self.guards(sides, slots)]]]
        elif self.rng.random() < 0.5:
            # This process leaves before its channel ends.
            body = [["loop", self.upto(3), [["read", 0]]]]
        else:
            body = [["iter", 0, self.pause(), TURNS]]
        return self.numbered(sides, [*self.pause(), *body, *self.leaving(sides)])

    def selector(self, sides: list[Side]) -> dict[str, Any]:
        slots = list(range(len(sides)))
        outputs = [k for k in slots if sides[k][1] == "w"]
        x = self.rng.random()
        if outputs and x < 0.35:  # a merge that passes the values on
            turn: list[Any] = [self.guards(sides, [k for k in slots if k not in outputs])]
            turn.append(["write", self.pick(outputs)])
        elif outputs and x < 0.5:  # a dispatcher
            inputs = [k for k in slots if k not in outputs]
            turn = [["read", self.pick(inputs)], self.guards(sides, outputs)]
        else:  # a buffer, or a merge that keeps the values
            turn = [self.guards(sides, slots)]
            # A second turn selects over the same ends, but other guards are on.
            if self.rng.random() < 0.35:
                turn.append(self.guards(sides, slots))
        if "limit" in self.features and self.rng.random() < 0.4:
            turn = [self.limit(turn)]
        body: list[Any] = [["loop", TURNS, [*self.pause(), *turn]]]
        if self.has("try", 0.4):
            after = self.guards(sides, slots) if self.rng.random() < 0.7 else ["yield"]
            body = [["try", body, ["Retired"], [after, after][: self.upto(2)]]]
        return self.numbered(sides, [*body, *self.leaving(sides)])

    def guards(self, sides: list[Side], slots: list[int]) -> list[Any]:
        """Returns the guards of a select over the slots, in any order. Some guards are off, and for
        some a retirement raises.
        """
        order = sorted(slots, key=lambda _: self.rng.random())
        out: list[dict[str, Any]] = []
        for k in order:
            g: dict[str, Any] = {"g": "in" if sides[k][1] == "r" else "out", "end": k}
            if g["g"] == "out" and self.rng.random() < 0.15:
                g["fn"] = "make"
            if self.rng.random() < 0.13:
                g["pre"] = False
            if self.has("ends", 0.15):
                g["ends"] = True
            out.append(g)
        if self.has("time", 0.12):
            out.append({"g": "timeout", "t": int(self.rng.random() * 3)})
        elif self.rng.random() < 0.06:
            out.append({"g": "skip"})
        if "ended" in self.features and self.next_id > 1 and self.rng.random() < 0.3:
            # the end of a process with a smaller number
            out.append({"g": "ended", "p": self.upto(self.next_id - 1)})
        gives = [g for g in out if g["g"] == "out"]
        if (
            len(gives) > 1
            and any(g["g"] == "in" and g.get("pre", True) for g in out)
            and self.rng.random() < 0.5
        ):
            # This output holds the select open as long as a value can be read.
            gives[0]["pre"] = False
            gives[1].pop("pre", None)
        if all(g.get("pre") is False for g in out):
            del out[0]["pre"]
        return ["select", "priority" if self.has("priority", 0.3) else "fair", out]

    def network(self, size: int) -> list[dict[str, Any]]:
        first = [self.channel() for _ in range(self.upto(3))]
        second = [self.channel() for _ in range(self.pick([0, 1, 2, 2]))]
        stops = [self.channel()] if self.rng.random() < 0.25 else []
        sources = [self.some(first, "w", 2) for _ in range(self.upto(max(1, size - 1)))]
        selectors = [
            self.some(first, "r", 3) + (self.some(second, "w", 2) if second else [])
            for _ in range(1 if self.rng.random() < 0.75 else 2)
        ]
        sinks = [self.some(second, "r", 2) for _ in range(self.upto(2) if second else 0)]
        # Every channel has both sides; a channel that never had one side would stay open forever
        # (2.5).
        for chans, writers, readers in ((first, sources, selectors), (second, selectors, sinks)):
            for c in chans:
                for side, group in (("w", writers), ("r", readers)):
                    if not any((c, side) in mine for mine in group):
                        self.pick(group).append((c, side))
        for c in stops:
            self.pick(sources).append((c, "w"))
            self.pick(selectors).append((c, "r"))
        return [
            *map(self.source, sources),
            *map(self.selector, selectors),
            *map(self.sink, sinks),
        ]


def retiring(seed: int, size: int = 4, features: frozenset[str] = DEFAULT) -> Net:
    """Makes a network of the shape at the head of this file: at most `size` - 1 sources, two
    selectors and two sinks.
    """
    m = _Retiring(seed, size, features)
    procs = m.network(size)
    return {
        "seed": seed,
        "channels": m.channels,
        "barriers": [],
        "main": {"id": 0, "ends": [], "body": [["par", procs]]},
    }

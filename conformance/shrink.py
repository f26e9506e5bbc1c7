"""Shrinks a failing network to a minimal failing network, and a failing history to its shortest
failing prefix.

The method is delta debugging over the data: each candidate removes or simplifies one thing (a
process, a statement, a guard, a channel's buffer, a body's repetitions). A candidate that still
fails becomes the network. Shrinking ends when no candidate fails, so the result is minimal: no
single removal keeps the failure. `fails(net)` decides; if the scheduling of a runtime varies, let
`fails` try a few times (`repeated`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from .networks import Net, readable
from .program import BLOCKS

Path = tuple


def candidates(net: Net) -> Iterator[Net]:
    """Yields smaller networks, beginning with the largest cuts."""
    spots = list(_lists(net["main"]["body"], ("main", "body")))
    for path, items, what in sorted(spots, key=lambda s: len(s[0])):
        least = 1 if what in ("guards", "procs") else 0
        half = len(items) // 2
        if half > 1:
            for lo in (0, half):
                yield _cut(net, path, lo, lo + half)
        if len(items) > least:
            for k in range(len(items)):
                yield _cut(net, path, k, k + 1)
    for path, items, what in spots:
        if what != "body":
            continue
        for k, s in enumerate(items):
            for new in _simpler(s):
                yield _put(net, path, k, new)
    for path, items, what in spots:
        if what == "guards":
            for k, g in enumerate(items):
                for extra in ("pre", "fn", "ends"):
                    if extra in g:
                        yield _put(net, path, k, [{a: b for a, b in g.items() if a != extra}])
    for k, c in enumerate(net["channels"]):
        for field in c:
            less = {f: v for f, v in c.items() if f != field}
            if less.get("capacity", 0) or "overflow" not in less:
                yield {**net, "channels": [*net["channels"][:k], less, *net["channels"][k + 1 :]]}
        if c.get("capacity", 0) > 1:
            yield {
                **net,
                "channels": [*net["channels"][:k], {**c, "capacity": 1}, *net["channels"][k + 1 :]],
            }


def shrink(net: Net, fails: Callable[[Net], bool], tries: int = 2000) -> Net:
    """Returns the smallest network found for which `fails` holds.

    Raises:
        ValueError: `fails` does not hold for `net` itself.
    """
    if not fails(net):
        raise ValueError("this network does not fail: nothing to shrink")
    while True:
        for smaller in candidates(net):
            tries -= 1
            if tries < 0:
                return net
            if valid(smaller) and fails(smaller):
                net = smaller
                break
        else:
            return tidy(net)


def repeated(fails: Callable[[Net], bool], times: int = 20) -> Callable[[Net], bool]:
    """Returns a predicate for failures that do not occur every time: it calls `fails` up to `times`
    times.
    """
    return lambda net: any(fails(net) for _ in range(times))


def shortest_prefix(history: list[Any], bad: Callable[[list[Any]], bool]) -> list[Any]:
    """Returns the shortest bad prefix. The search assumes that a bad prefix stays bad when it
    grows."""
    lo, hi = 1, len(history)
    while lo < hi:
        mid = (lo + hi) // 2
        if bad(history[:mid]):
            hi = mid
        else:
            lo = mid + 1
    return history[:lo]


def report(net: Net, history: list[Any], why: str) -> str:
    """Returns a report for people: the program with its seed, the history, and the mistake."""
    lines = [readable(net), "", "history:"]
    for k, r in enumerate(history):
        who = f"p{r['p']}" if "p" in r else ""
        what = r.get("op", r.get("out", r.get("dropped")))
        lines.append(f"  {k:3} {who:4} {r['e']:5} {what}" + (f"  t={r['t']}" if r.get("t") else ""))
    return "\n".join([*lines, "", why])


def valid(net: Net) -> bool:
    """Returns whether every slot that the network uses exists. (A cut might have removed a slot
    that another part needs.)
    """

    def body_ok(body: list[Any], slots: int) -> bool:
        return all(stmt_ok(s, slots) for s in body)

    def stmt_ok(s: list[Any], slots: int) -> bool:
        if s[0] in ("par", "seq", "spawn"):
            return all(proc_ok(p, slots) for p in (s[1] if s[0] != "spawn" else [s[1]]))
        if s[0] == "try":
            return body_ok(s[1], slots) and body_ok(s[3], slots)
        if s[0] in BLOCKS:
            return body_ok(s[2], slots)
        return True

    def proc_ok(p: dict[str, Any], slots: int) -> bool:
        received = "'send'" in repr(net)  # ends that arrive over channels are slots too
        if any(isinstance(e, int) and e >= slots for e in p["ends"]):
            return False
        if not received and _most_slot(p["body"]) >= len(p["ends"]):
            return False
        return body_ok(p["body"], len(p["ends"]))

    return proc_ok(net["main"], 0)


def tidy(net: Net) -> Net:
    """Removes the channels and barriers that are not used; numbers keep their order."""
    text = copy.deepcopy(net)
    used: set[int] = set()

    def walk(p: dict[str, Any], rename: dict[int, int] | None) -> None:
        for k, e in enumerate(p["ends"]):
            if not isinstance(e, int):
                used.add(e[0])
                if rename is not None:
                    p["ends"][k] = [rename[e[0]], e[1]]
        for q in _children(p["body"]):
            walk(q, rename)

    walk(text["main"], None)
    walk(text["main"], {c: k for k, c in enumerate(sorted(used))})
    text["channels"] = [c for k, c in enumerate(text["channels"]) if k in used]
    if not any(word in repr(text) for word in ("'sync'", "'enrol'", "'resign'", "'barrier'")):
        text["barriers"] = []
    return text


def _children(body: list[Any]) -> Iterator[dict[str, Any]]:
    for s in body:
        if s[0] in ("par", "seq"):
            yield from s[1]
        elif s[0] == "spawn":
            yield s[1]
        elif s[0] == "try":
            yield from _children(s[1])
            yield from _children(s[3])
        elif s[0] in BLOCKS:
            yield from _children(s[2])


def _most_slot(body: list[Any]) -> int:
    most = -1
    for s in body:
        if s[0] in ("read", "write", "retire", "poison", "die", "ext", "iter"):
            most = max(most, s[1])
        elif s[0] == "select":
            most = max([most, *(g["end"] for g in s[2] if "end" in g)])
        if s[0] == "try":
            most = max(most, _most_slot(s[1]), _most_slot(s[3]))
        elif s[0] in BLOCKS:
            most = max(most, _most_slot(s[2]))
    return most


def _lists(body: list[Any], path: Path) -> Iterator[tuple[Path, list[Any], str]]:
    yield path, body, "body"
    for k, s in enumerate(body):
        if s[0] in ("par", "seq"):
            yield (*path, k, 1), s[1], "procs"
            for j, p in enumerate(s[1]):
                yield from _lists(p["body"], (*path, k, 1, j, "body"))
        elif s[0] == "spawn":
            yield from _lists(s[1]["body"], (*path, k, 1, "body"))
        elif s[0] == "select":
            yield (*path, k, 2), s[2], "guards"
        elif s[0] == "try":
            yield from _lists(s[1], (*path, k, 1))
            yield from _lists(s[3], (*path, k, 3))
        elif s[0] in BLOCKS:
            yield from _lists(s[2], (*path, k, 2))


def _simpler(s: list[Any]) -> Iterator[list[Any]]:
    """Yields statements that can replace `s`."""
    if s[0] == "loop":
        yield s[2]
        if s[1] > 1:
            yield [["loop", s[1] - 1, s[2]]]
    elif s[0] == "try":
        yield s[1]
    elif s[0] == "ext" or s[0] == "iter":
        yield [["read", s[1]], *s[2]]
    elif s[0] == "limit":
        yield s[2]
        if s[3] > 1:
            yield [[*s[:3], 1]]
    elif s[0] == "select" and len(s[2]) == 1 and "end" in s[2][0]:
        yield [["read" if s[2][0]["g"] == "in" else "write", s[2][0]["end"]]]
    elif s[0] == "sleep" and s[1] > 1:
        yield [["sleep", 1]]


def _at(net: Any, path: Path) -> Any:
    for step in path:
        net = net[step]
    return net


def _cut(net: Net, path: Path, lo: int, hi: int) -> Net:
    new = copy.deepcopy(net)
    del _at(new, path)[lo:hi]
    return new


def _put(net: Net, path: Path, k: int, items: list[Any]) -> Net:
    new = copy.deepcopy(net)
    _at(new, path)[k : k + 1] = items
    return new

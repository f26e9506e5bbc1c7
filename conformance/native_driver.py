"""Networks with some processes in a native component (rule 16.1): "native", or
"native+threads+coroutines" and so on. With "pool" these processes are coroutines of the component,
on its pool or in a check (rules 16.10, 17.2).

    Play.make ──► suits(proc)? ──► native_player.cpp ──► step(): the same Player names the next
                                                          operation; C++ does it

Invariants
- python_player.Player plays the statements and makes the records, in calls from the component's
  thread. So a record is made just before and just after each operation, in the list of all other
  records. The operations themselves are done in C++.
- There is no channel between the player and the component: the runtime sees only a process that
  computes between its operations.
- A process is native only if nothing in it needs anything in STAYS.
"""

from __future__ import annotations

import ctypes
import functools
import os
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .python_names import ComponentError, Names
from .python_player import Network, Player, _Stop

HERE = Path(__file__).resolve().parent
MAX_ENDS, BARRIERS = 4, 2
# The operations that a process of a component cannot perform, and why. A process that needs one of
# these is played in Python. (Such a process has no mobile ends either, because a native channel
# carries none.)
STAYS: dict[str, str] = {
    "a thread": "a coroutine of a component has no extended reads and no outputs whose value a function makes",
    "another process": "a component makes no processes of the host's, cancels none and awaits no end",
    "a limit": "a component has timers, and no blocks with a limit",
    "death": "an end of a component is retired or poisoned; it dies with an OS process only",
    "an end of its maker": "the player knows its own ends",
    "too much": f"it is compiled for {MAX_ENDS} ends and {BARRIERS} barriers",
}
_ASKS = {
    **dict.fromkeys(("par", "seq", "spawn", "cancel", "ended"), "another process"),
    **dict.fromkeys(("limit", "reschedule"), "a limit"),
    "die": "death",
    "send": "too much",
}


def asks_for(proc: dict[str, Any], pool: bool = False) -> set[str]:
    """Returns the operations in STAYS that a process needs. `pool`: it is to be a coroutine."""
    found = {"an end of its maker"} if any(isinstance(e, int) for e in proc["ends"]) else set()
    if len(proc["ends"]) > MAX_ENDS:
        found.add("too much")
    return (found | _needs_of(proc["body"])) - (set() if pool else {"a thread"})


def _needs_of(body: list[Any]) -> set[str]:
    found: set[str] = set()
    for s in body:
        kind = s[0]
        if kind in _ASKS:
            found.add(_ASKS[kind])
        elif kind in ("loop", "iter", "ext"):
            found |= _needs_of(s[2]) | ({"a thread"} if kind == "ext" else set())
        elif kind == "try":
            found |= _needs_of(s[1]) | _needs_of(s[3])
        elif kind == "select":
            found |= {"another process" for g in s[2] if g["g"] == "ended"}
            found |= {"a thread" for g in s[2] if "fn" in g}
            found |= {"too much" for g in s[2] if g.get("b", 0) >= BARRIERS}
        elif kind in ("sync", "enrol", "resign") and s[1] >= BARRIERS:
            found.add("too much")
    return found


Op = tuple[Any, ...]


class _End:
    """An end as the player uses it. Its operations return only words; C++ does the work."""

    def __init__(self, k: int) -> None:
        self.k = k

    def read(self) -> Op:
        return "read", self.k

    def write(self, value: str) -> Op:
        return "write", self.k, value

    def retire(self) -> Op:
        return "retire", self.k

    def __iter__(self) -> _End:
        return self

    def __next__(self) -> Op:
        return "next", self.k

    def extended(self) -> _Block:
        return _Block(self.k)


class _Block:
    def __init__(self, k: int) -> None:
        self.k = k

    def __enter__(self) -> Op:
        return "ext", self.k

    def __exit__(self, *_: object) -> Any:
        return ("release",)


class _Barrier:
    def __init__(self, k: int) -> None:
        self.sync, self.enrol, self.resign = (
            functools.partial(tuple, (word, k)) for word in ("sync", "enrol", "resign")
        )


class _Names:
    """The part of python_names.Names that the player of a native process needs."""

    tasks = awaits = False

    def __init__(self, names: Names) -> None:
        self._names, self.unit = names, names.unit
        self.name_of = names.name_of
        self.m = SimpleNamespace(BadUse=names.m.BadUse, yield_=lambda: ("yield",))
        self.at = 0  # the component's time, in ns

    def now(self) -> int | None:
        return None if self._names.real else round(self.at / 1e9)

    def sleep(self, t: float) -> Op:
        return "sleep", self._ns(t)

    def poison(self, end: _End, strength: int) -> Op:
        return "poison", end.k, strength

    def guard(self, g: dict[str, Any], end: _End | None, value: Any, there: Any) -> list[Any]:
        """Returns the guard in words, and the function that makes its value."""
        kind = g["g"]
        words: list[Any] = [g.get("fn", kind), int(g.get("pre", True)), int(g.get("ends", False))]
        if end is not None:
            words.append(end.k)
        if kind == "out":
            words.append(value)
        elif kind == "barrier":
            words.append(g["b"])
        elif kind in ("timeout", "deadline"):
            words.append(self._ns(g.get("t", 0)))
        return words

    def select(self, guards: list[list[Any]], mode: str) -> Op:
        return "select", int(mode != "priority"), len(guards), guards

    def _ns(self, t: float) -> int:
        return round(t * self.unit * 1e9)


class _Played:
    """One process that is being played."""

    def __init__(self, play: Network, proc: dict[str, Any]) -> None:
        pid = proc["id"]
        self.names = _Names(play.names_of(pid))
        here = SimpleNamespace(
            names=self.names,
            names_of=lambda _: self.names,
            records=play.records,
            barriers=[_Barrier(k) for k in range(BARRIERS)],
            written=lambda done, _: done,
            has_arrived=lambda done, _: done,
            pids=play.pids,
        )
        player = Player(here, pid, [_End(k) for k in range(len(proc["ends"]))])  # type: ignore[arg-type]
        self.steps = play.process(player, proc["body"])
        self.op: Op = ()
        self.pid, self.returned = pid, play.returned

    def step(self, now: int, went: str) -> str:
        """Continues to the next operation and returns that operation in words; `went` is the
        outcome of the previous one.
        """
        self.names.at = now
        result, failure = None, None
        if went != "begin":
            result, failure = self.result(went)
        while True:
            try:
                start = self.steps.throw(failure) if failure else self.steps.send(result)
            except StopIteration:
                self.returned.add(self.pid)
                return "return"
            except ComponentError as outcome:
                if outcome.name in ("BadUse", "Fail"):
                    return f"throw {outcome.name}"
                return f"rethrow {outcome.kept}"
            except Exception as error:
                return f"throw {self.names.name_of(error).split(':')[0]}"
            result, failure = None, None
            try:
                self.op = start()
                return _words(self.op)
            except Exception as error:  # bad use of a slot, or an error raised by `fail`
                failure = error

    def result(self, went: str) -> tuple[Any, Exception | None]:
        how, *words = went.split()
        kind = self.op[0]
        if how != "ok":
            if kind == "next" and how == "Retired":
                return None, _Stop()
            value = self.op[2] if kind == "write" else None
            return None, ComponentError(how, int(words[0]), int(words[1]), value)
        if kind == "select":
            index = int(words[0])
            made = self.op[3][index][-1]
            if callable(made):
                # C++ called its own function; this call only counts in the player
                made()
            return (index, words[1] if len(words) > 1 else None), None
        return (words[0] if words else None), None


def _words(op: Op) -> str:
    if op[0] == "next":
        op = ("read", *op[1:])
    if op[0] == "select":
        op = (*op[:3], *(_value(word) for guard in op[3] for word in guard))
    return " ".join(map(str, op))


def _value(word: Any) -> Any:
    """Returns the value of a word. For a function this is the value that the function would make,
    because C++ calls a function of its own.
    """
    return word.value if callable(word) else word


_playing: dict[int, _Played] = {}


@ctypes.CFUNCTYPE(
    None, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
)
def _step(pid: int, now: int, went: bytes, into: int, room: int) -> None:
    try:
        text = _playing[pid].step(now, went.decode()).encode()
        if len(text) >= room:
            raise ValueError(f"an operation of {len(text)} bytes, and {room} are there")
    except BaseException:
        traceback.print_exc()
        text = b"throw Broken"
    ctypes.memmove(into, text + b"\0", len(text) + 1)


@functools.cache
def component() -> Any:
    import weft.native

    os.environ.setdefault("WEFT_CACHE", str(HERE.parent / ".build/components"))
    made = weft.native.load(HERE / "native_player.cpp")
    ctypes.CDLL(made.path).set_step(_step)
    return made


def process(play: Network, proc: dict[str, Any], ends: list[Any]) -> Any:
    """Makes the process object with its ends."""
    _playing[proc["id"]] = _Played(play, proc)
    shape = "".join(side for _, side in proc["ends"])
    spare = [play.names.m.Barrier(1) for _ in range(BARRIERS)]
    barriers = [*play.barriers[:BARRIERS], *spare][:BARRIERS]
    kind = "c" if play.names_of(proc["id"]).pool else "p"
    made = getattr(component(), f"{kind}{shape}")(*ends, *barriers, proc["id"])
    return made.named(f"p{proc['id']}")


def results(returned: set[int], processes: list[dict[str, Any]], got: Any) -> list[Any]:
    """Returns the results as the model does. A process of a component returns nothing, but in the
    model a process that ended normally returns its number.
    """
    return [
        p["id"] if value is None and p["id"] in returned else value
        for p, value in zip(processes, got, strict=True)
    ]


def forget() -> None:
    """Drops the references to the processes of a network that has ended."""
    _playing.clear()

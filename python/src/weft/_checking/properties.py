"""Observes facts about a run that the engine does not see: how each process ended, and which
objects were given to two processes (rule 17.6).

Invariants
- The observer changes nothing, and once the run has ended it keeps only texts.
- An object counts as shared if two processes can reach it from their arguments or closures, neither
  has started the other, and the object has changed during the run. An object that both only read
  does no harm.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import gc
import pickle
import types
from collections.abc import Iterator
from typing import Any

from weft._watching import debug as _debug
from weft._watching import observers as _observers
from weft._watching import quiet_ends as _quiet_ends

_MAX_OBJECTS = 5_000  # how many objects are inspected for one process
_PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type,
    types.ModuleType,
    types.CodeType,
    enum.Enum,
)
_LEAVES = (
    *_PLAIN,
    types.BuiltinFunctionType,
    types.FrameType,
    types.GetSetDescriptorType,
    contextvars.Context,
    contextvars.ContextVar,
    range,
    slice,
)


class Watch:
    """Observes one run.

    Attributes:
        endings: by path, how a process ended: "returned", "Retired", "Poisoned", "PeerDied",
            "Cancelled", or the type of the exception that it raised.
        left: by path, the sentence about a process that the end of a channel has ended.
        shared: a sentence for each object that two processes share, or that changed after it was
            sent.
        processes: how many processes were started.
    """

    def __init__(self, objects: bool = True) -> None:
        self.endings: dict[str, str] = {}
        self.left: dict[str, str] = {}
        self.shared: list[str] = []
        self.processes = 0
        self._objects = objects
        self._paths: dict[int, str] = {}  # process → its path
        self._ended: list[tuple[int, str, str]] = []
        # id() of an object → the object, the process that first had it, and its state at that time,
        # as bytes.
        self._owner: dict[int, tuple[Any, int, bytes | None]] = {}
        self._found: dict[int, tuple[Any, int, int, bytes | None]] = {}

    @contextlib.contextmanager
    def observing(self) -> Iterator[None]:
        changes = _debug.Debug(self._changed) if self._objects else None
        also = [] if changes is None else [changes._event]
        try:
            with _observers.observing_this_thread(self.event, *also):
                yield
        finally:
            self._finish()

    def _changed(self, change: _debug.Changed) -> None:
        """Records an object that was changed after it was sent, although it belongs to the receiver
        (rule 9.2).
        """
        self.shared.append(
            f"{change.sender} changes a {change.kind} after it has sent it on {change.channel}: the check does "
            "not try these changes in every order, so nothing is proven; send a copy, or make another"
        )

    def event(
        self, what: str, process: Any, operation: str | None, target: Any, detail: Any
    ) -> None:
        """The observer function that is registered with weft._watching.observers."""
        if process is None:
            return
        key = _observers.key_of(process)
        if what == "start":
            self._paths[key] = process.path
            self.processes += 1
            if self._objects:
                self._look_at(process, key)
        elif what in ("end", "left"):
            self._paths[key] = process.path
            left = _quiet_ends.left_by(process, detail) if what == "left" else None
            how = "returned" if what == "end" else type(detail).__name__
            self._ended.append((key, how, "" if left is None else left.without_path()))

    def _look_at(self, process: Any, key: int) -> None:
        for it in reachable(process):
            known = self._owner.get(id(it))
            if known is None:
                self._owner[id(it)] = (it, key, state_of(it))
            elif known[1] != key and not _related(self._paths[known[1]], self._paths[key]):
                self._found.setdefault(id(it), (it, known[1], key, known[2]))

    def _finish(self) -> None:
        paths = self._paths
        for key, how, reason in self._ended:
            self.endings[paths[key]] = how
            if reason:
                self.left[paths[key]] = reason
        for it, one, other, before in self._found.values():
            if before is None or state_of(it) != before:
                self.shared.append(
                    f"{paths[one]} and {paths[other]} share a {type(it).__name__} that changes: the check "
                    "does not try these changes in every order, so nothing is proven; send it through a channel, or give each its own"
                )
        self._ended.clear()
        self._owner.clear()
        self._found.clear()


def _related(one: str, other: str) -> bool:
    return one.startswith(f"{other}/") or other.startswith(f"{one}/")


def state_of(it: object) -> bytes | None:
    """Returns the state of the object, as bytes; None if the object cannot be pickled."""
    try:
        return pickle.dumps(it)
    except Exception:
        return None


def reachable(process: Any) -> Iterator[Any]:
    """Yields the mutable objects that a process can reach from its arguments and closures."""
    seen: set[int] = {id(process)}
    left: list[Any] = list(gc.get_referents(process))
    while left and len(seen) < _MAX_OBJECTS:
        it = left.pop()
        if (
            id(it) in seen
            or isinstance(it, _LEAVES)
            or type(it).__module__.partition(".")[0] == "weft"
        ):
            continue
        seen.add(id(it))
        if isinstance(it, (types.FunctionType, types.MethodType)):
            left.extend(_held_by(it))
            continue
        if isinstance(it, types.CoroutineType):
            left.extend(v for v in gc.get_referents(it) if not isinstance(v, dict))
            continue
        if _mutable(it):
            yield it
        left.extend(gc.get_referents(it))


def _held_by(function: Any) -> Iterator[Any]:
    if isinstance(function, types.MethodType):
        yield function.__self__
        function = function.__func__
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            yield cell.cell_contents
    yield from getattr(function, "__defaults__", None) or ()


def _mutable(it: object) -> bool:
    if isinstance(it, (tuple, frozenset, types.CellType, types.MappingProxyType)):
        return False
    if isinstance(it, (list, dict, set, bytearray)):
        return True
    kind = type(it)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        return False
    return kind.__module__ not in ("builtins", "_thread", "functools", "operator", "logging")

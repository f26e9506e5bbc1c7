"""Runs processes of placeable sources in C++ on a board without an operating system (rule 21.10).
The board's part is mcu/csp/board/host.cpp, which has the messages.

    component.process.on(board) ──► its source is compiled for the board
        ──the first process begins──► the firmware of all sources so far is linked, and started
        ──"start"──► the process runs there; one message comes when it has ended

Invariants
- `_starting` is held while the firmware is started. The firmware changes only while no process runs
  on the board.
- A slot names an end that this program gives to the board. The slot is used again once the board
  has reported that it has released the end. The slots of message ends are used in turn, so that a
  slot is used again as late as possible.
"""

from __future__ import annotations

import collections
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft import serial
from weft._backends import arrays as _arrays
from weft._boards import firmware as _firmware
from weft._boards import placing as _placing
from weft._extension import native as _native
from weft.errors import BadUse, PeerDied

__all__ = ["FRAMES", "Placing"]

CALLS, ENDS = 16, 32  # kCalls and kFarEnds of csp_board.hpp
FRAMES = 98304  # bytes for the frames of processes: kFrameBytes of host.cpp
_OVERFLOW = ("block", "drop_oldest", "drop_newest", "unbounded", "drop_last")


class Placing(_placing.Placing):
    """A place for processes: a board without an operating system.

    Args:
        where: the board's name for messages.
        started: starts the board with the firmware at a path. Returns its session, with a function
            that ends it; and a function that returns what is known about a broken session.
        flash: whether the firmware is for the board's flash.
    """

    def __init__(
        self,
        where: str,
        started: Callable[
            [Path], tuple[tuple[serial.Board, Callable[[], None]], Callable[[], str]]
        ],
        flash: bool,
    ) -> None:
        super().__init__(None, where, FRAMES, [])
        self._started, self._flash = started, flash
        self._starting = threading.Lock()
        self._sources: dict[Path, _firmware.Compiled] = {}
        self._there: list[_firmware.Compiled] = []  # the sources in the firmware that runs
        self._names: list[str] = []  # the processes in the firmware, in the order of its table
        self._stop: Callable[[], None] | None = None
        self._printed: Callable[[], str] = str
        self._shut = False
        self._broken = False  # whether the session has broken
        # the paths of calls and the names of the board's channels, by number, for reports
        self.paths: dict[int, str] = {}
        self.channel_names: dict[int, str] = {}
        self.slots: dict[str, collections.deque[int]] = {}

    def placed(self, function: Any) -> Any:
        name = getattr(function, "__qualname__", repr(function))
        raise BadUse(
            f"{name}: the board at {self._where} has no MicroPython, and runs processes in C++ alone: "
            "load its source by weft.native.load, or use a board with MicroPython (boards.connect, "
            "boards.emulated)"
        )

    def placed_component(
        self,
        component: Any,
        name: str,
        signature: inspect.Signature,
        parameters: list[Any],
    ) -> Any:
        """Returns the process function for this board of a component's process. Its source is
        compiled for the board.

        Raises:
            BadUse: the component was not loaded from a source, the source cannot be built for the
                board, or the process has a barrier.
        """
        barrier = next((p[0] for p in parameters if p[1] == 3), None)
        if barrier is not None:
            raise BadUse(
                f"{name}.on(board): the parameter {barrier!r} is a barrier, which stays in its program: "
                "meet by a channel"
            )
        if component._source is None:
            raise BadUse(
                f"{name}.on(board): a board needs the source, and component {component.__name__} was "
                "loaded from a library: give weft.native.load the .cpp file"
            )
        path, flags = component._source
        source = _firmware.compiled(path, flags, component.processes)
        self._sources[source.path] = source

        def placeable() -> None:
            """Stands for the process, whose name and signature it has."""

        placeable.__name__ = placeable.__qualname__ = name
        its = Source(source, name)
        return _placing.Placed(self, placeable, its, signature)

    def given(self, bound: inspect.BoundArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound.apply_defaults()
        values = {k: v for k, v in bound.arguments.items() if k not in ("on", "cpu")}
        for name, value in values.items():
            if not isinstance(value, (bool, int, float, _native.Reader, _native.Writer)):
                raise BadUse(
                    f"{self._where}: the argument {name!r} is {type(value).__name__}: a process in C++ on "
                    "a board takes ends, numbers and bool"
                )
        return tuple(values.values()), {}

    # The firmware.

    def run(self, call: _placing.Call, args: Any, keywords: Any) -> Any:
        self._ready(call)
        return super().run(call, args, keywords)

    def _ready(self, call: _placing.Call) -> None:
        """Starts the board, if it does not run, or lacks the source of the call."""
        with self._starting:
            if self._shut:
                raise BadUse(f"{call.name}: {self!r} is closed")
            if call.source.source in self._there and not self._broken:
                return
            if self._running and not self._broken:
                raise BadUse(
                    f"{call.name}: the board at {self._where} runs a firmware without it: name each "
                    "process by .on(board) before the first of them begins"
                )
            self._end()
            # A source that was loaded again in another version has the same path.
            sources = list(self._sources.values())
            if call.source.source not in sources:
                sources = [s for s in sources if s.path != call.source.source.path]
                sources.append(call.source.source)
            image, names = _firmware.linked(sources, self._flash)
            (session, self._stop), self._printed = self._started(image)
            self._there, self._names, self._broken = sources, names, False
            self.slots = {
                "news": collections.deque(range(CALLS)),
                "r": collections.deque(range(ENDS)),
                "w": collections.deque(range(ENDS)),
            }
            self._open(session)

    def _end(self) -> None:
        """Ends the session and the firmware, if there are any."""
        self._there = []
        if self._stop is not None:
            stop, self._stop = self._stop, None
            stop()

    def _dead(self, name: str) -> PeerDied:
        died = super()._dead(name)
        with self._starting:
            printed = self._printed()
            if self._stop is not None:
                self._broken = True
        return PeerDied(f"{died}; the emulator said: {printed}") if printed else died

    def close(self) -> None:
        """Ends the session, and stops the board. A second call does nothing."""
        with self._starting:
            self._shut = True
            self._end()

    def _of_board(self, end: Any) -> _placing.Own | None:
        """Does what the base class does; but a channel without a limit stays here, because the board
        has no heap."""
        if _arrays.shape_of(end.channel)[1] == "unbounded":
            return None
        return super()._of_board(end)

    def entry(self, name: str) -> int:
        return self._names.index(name)

    def _run_of(self, call: _placing.Call, number: int, events: Any) -> Running:
        running = Running(self, call, number, events)
        self.paths[number] = running.path
        return running

    def over(self, number: int) -> None:
        with self._lock:
            if self._running.keys() <= {number}:  # no report will name these calls
                self.channel_names.clear()
                self.paths.clear()

    def slot(self, kind: str) -> int:
        with self._lock:
            if not self.slots[kind]:
                most = CALLS if kind == "news" else ENDS
                what = "processes" if kind == "news" else "ends of one side"
                raise BadUse(
                    f"the board at {self._where} has no room for more: it has at most {most} {what} "
                    "at a time"
                )
            return self.slots[kind].popleft()

    def free_slots(self, slots: list[tuple[str, int]]) -> None:
        with self._lock:
            for kind, slot in slots:
                self.slots[kind].append(slot)


class Source:
    """The source of a call: a compiled source, and the name of one of its processes."""

    module = ""

    def __init__(self, source: _firmware.Compiled, function: str) -> None:
        self.source, self.function = source, function
        self.places = source.files
        self.digest = source.object.stem

    @property
    def size(self) -> int:
        return self.source.size


class Running(_placing._Running):
    """One call that runs, as seen by the thread process that stands for it in this program."""

    _placing: Placing

    def __init__(self, placing: Placing, call: Any, number: int, events: Any) -> None:
        super().__init__(placing, call, number, events)
        self._slots: list[tuple[str, int]] = []

    def result(self, args: Any, keywords: Any, known: Any) -> Any:
        try:
            return super().result(args, keywords, known)
        finally:
            if self.told:
                self._placing.free_slots(self._slots)
            self._placing.over(self._number)

    def _give_writer(self, events: Any) -> None:
        slot = self._placing.slot("news")
        self._slots.append(("news", slot))
        self._placing._session.give(f"news{slot}", events)

    def _give(self, end: Any, i: int) -> int:
        kind = "w" if isinstance(end, _native.Writer) else "r"
        slot = self._placing.slot(kind)
        self._slots.append((kind, slot))
        self._give_as(f"{kind}{slot}", end)
        return slot

    def _send_source(self, source: Any) -> None:
        """Does nothing: the firmware has the source."""

    def _order(self, *what: Any) -> None:
        if what[0] == "start":
            what = self._start_order(*what)
        elif what[0] == "drop":
            ends = [
                [-1 if own else key, key if own else 0, writes] for _, own, key, writes in what[1]
            ]
            what = ("drop", ends)
        super()._order(*what)

    def _start_order(
        self, _: str, n: int, digest: str, module: str, name: str, args: Any, keywords: Any,
        ends: Any, own: Any, path: str,
    ) -> tuple[Any, ...]:  # fmt: skip
        channels = []
        for number, its, capacity, overflow, immunity, readers, writers in own:
            self._placing.channel_names[number] = its
            kind = _OVERFLOW.index(overflow)
            channels.append([number, capacity, kind, immunity, readers, writers])
        values = list(args)
        for paths, its_own, key, _ in ends:
            for path_to in paths:
                values[path_to[1]] = [-1, key] if its_own else [key, 0]
        news = self._slots[0][1]
        return ("start", n, self._placing.entry(name), news, channels, values)

    # The board's messages.

    def _next(self) -> Any:
        what, *rest = super()._next()
        if what == "ended":
            return what, None
        if what == "stuck":
            return "failed", "Deadlock", self._knot(rest), ""
        if what == "end":
            kind, strength, file, line = rest
            place = self._call.source.places.get(file, file)
            text = (
                f"{self._call.name} on the board at {self._placing._where} met the end of a channel"
            )
            trace = f'File "{place}", line {line}, in {self._call.name}'
            return what, kind, text, strength, True, trace
        if what == "failed":
            kind, why, needs, has = rest
            return what, kind, self._lack(why, needs, has) if kind == "MemoryError" else why, ""
        return what, *rest

    def _knot(self, waits: list[Any]) -> str:
        lines, paths = [], []
        for number, channel, writes, file, line in waits:
            path = self._placing.paths[number]
            name = self._placing.channel_names.get(channel, "a channel")
            place = self._call.source.places.get(file, file)
            lines.append(f"  {path}: {'write' if writes else 'read'} {name!r} at {place}:{line}")
            paths.append(path)
        return (
            "nothing can go on among processes of the board\n"
            + "\n".join(lines)
            + f"\nthe knot: {', '.join(paths)}"
        )

    def _lack(self, why: str, needs: int, has: int) -> str:
        if not needs:
            return f"{why}: try again when other processes there have ended"
        what = why or "its frame"
        return f"{what} needs {needs} bytes, and the board has {has} for all of that kind"

    def _failure(self, kind: str, text: str, at: Any) -> BaseException:
        if kind == "MemoryError":
            name, where = self._call.name, self._placing._where
            return MemoryError(f"{name}: the board at {where} has no room for it: {text}")
        return super()._failure(kind, text, at)

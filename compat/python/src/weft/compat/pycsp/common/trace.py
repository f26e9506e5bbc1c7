"""`pycsp.common.trace`: the names of the current module of pycsp, whose use is recorded as lines in
a file.

    from weft.compat.pycsp.common.trace import *      after the import of .parallel or .greenlets
    TraceInit("trace.log")  …  TraceQuit()

A line is a dictionary with "type" and its details. Lines are in the order in which they were
written; as in pycsp, they have no times. Before TraceInit and after TraceQuit nothing is written.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weft.compat.pycsp import _channels, _choice
from weft.compat.pycsp import current as _pycsp
from weft.compat.pycsp._processes import BaseProcess
from weft.compat.pycsp.current import *  # noqa: F403

_pycsp.trace = True

_names = {name: value for name, value in vars(_pycsp).items() if not name.startswith("_")}
_writing = threading.Lock()
_file: Any = None
_stdout: Any = None


def sendTrace(msg: dict[str, Any]) -> None:
    """Writes one line to the trace, if there is one."""
    line = f"{msg}\n"
    with _writing:
        if _file is not None:
            _file.write(line)


class _Echo:
    """Standard output that also writes each piece of text to the trace."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def write(self, text: str) -> Any:
        sendTrace({"type": "Output", "msg": text})
        return self._wrapped.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


def TraceInit(file: Any = None, stdout: bool = False) -> None:
    """Starts tracing.

    Args:
        file: a name, or an open file; by default "pycsp_trace.log".
        stdout: whether the trace contains printed text too.
    Raises:
        OSError: the file cannot be opened.
    """
    global _file, _stdout
    file = "pycsp_trace.log" if file is None else file
    opened = Path(file).open("w") if isinstance(file, str) else file  # noqa: SIM115 - until TraceQuit
    with _writing:
        _file = opened
    if stdout:
        _stdout, sys.stdout = sys.stdout, _Echo(sys.stdout)


def TraceQuit() -> None:
    """Ends the trace and closes its file."""
    global _file, _stdout
    sendTrace({"type": "TraceQuit"})
    with _writing:
        done, _file = _file, None
    if done is not None:
        done.close()
    if _stdout is not None:
        sys.stdout, _stdout = _stdout, None


def TraceMsg(s: Any) -> None:
    """Writes a message to the trace."""
    sendTrace({"type": "Msg", "process_id": _pycsp.current_process_id(), "msg": str(s)})


def process(func: Callable[..., Any]) -> Callable[..., Any]:  # type: ignore[no-redef]
    """Makes a process as the current module's @process does; the start and end of the processes are
    traced.
    """

    @functools.wraps(func)
    def traced(*args: Any, **kwargs: Any) -> Any:
        here = {"func_name": func.__name__, "process_id": _pycsp.current_process_id()}
        sendTrace({"type": "StartProcess", **here})
        try:
            return func(*args, **kwargs)
        finally:
            sendTrace({"type": "QuitProcess", **here})

    made: Callable[..., Any] = _names["process"](traced)
    return made


def _described(plist: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for p in plist:
        if isinstance(p, list | tuple):
            found.extend(_described(p))
        elif isinstance(p, BaseProcess):
            found.append({"func_name": p.name, "process_id": p.id})
    return found


def _run_traced(name: str, plist: Any) -> Any:
    about = {"processes": _described(plist), "process_id": _pycsp.current_process_id()}
    sendTrace({**about, "type": f"BlockOn{name}"})
    result = _names[name](*plist)
    sendTrace({**about, "type": f"Done{name}"})
    return result


def Parallel(*plist: Any) -> Any:
    """Runs processes by the current module's Parallel, and traces its beginning and end."""
    return _run_traced("Parallel", plist)


def Sequence(*plist: Any) -> Any:
    """Runs processes by the current module's Sequence, and traces its beginning and end."""
    return _run_traced("Sequence", plist)


def Spawn(*plist: Any) -> None:
    """Starts processes by the current module's Spawn, and traces the start."""
    sendTrace(
        {"type": "Spawn", "processes": _described(plist), "process_id": _pycsp.current_process_id()}
    )
    _names["Spawn"](*plist)


class _TracedEnd:
    """A mixin for an end: it traces the end's operations, poison and retire."""

    __slots__ = ()
    _word: str

    def _trace(self: Any, kind: str) -> None:
        sendTrace(
            {
                "type": kind,
                "id": self.count,
                "chan_name": self.channel.name,
                "process_id": _pycsp.current_process_id(),
            }
        )

    def poison(self: Any) -> None:
        self._trace("Poison")
        super().poison()  # type: ignore[misc]

    def retire(self: Any) -> None:
        self._trace("Retire")
        super().retire()  # type: ignore[misc]

    def _native(self: Any) -> Any:
        operation = super()._native()  # type: ignore[misc]

        def traced(*msg: Any) -> Any:
            self._trace(f"BlockOn{self._word}")
            result = operation(*msg)
            self._trace(f"Done{self._word}")
            self.count += 1
            return result

        return traced


class ChannelEndReadTrace(_TracedEnd, _channels.ChannelEndRead):
    __slots__ = ("count",)
    _word = "Read"

    def __init__(self, channel: Any) -> None:
        self.count = 0
        super().__init__(channel)


class ChannelEndWriteTrace(_TracedEnd, _channels.ChannelEndWrite):
    __slots__ = ("count",)
    _word = "Write"

    def __init__(self, channel: Any) -> None:
        self.count = 0
        super().__init__(channel)


class Channel(_channels.Channel):
    """The current module's Channel. The channel, its ends and their operations are traced."""

    __slots__ = ()

    def __init__(self, *_: Any, **__: Any) -> None:
        sendTrace({"type": "Channel", "chan_name": self.name})

    def reader(self) -> Any:
        sendTrace({"type": "ChannelEndRead", "chan_name": self.name})
        return ChannelEndReadTrace(self)

    def writer(self) -> Any:
        sendTrace({"type": "ChannelEndWrite", "chan_name": self.name})
        return ChannelEndWriteTrace(self)

    __pos__ = reader
    __neg__ = writer


def _guard(at: Any) -> dict[str, str]:
    if isinstance(at, _channels.ChannelEnd):
        kind = "ReadGuard" if at.isReader() else "WriteGuard"
        return {"type": kind, "chan_name": at.channel.name}
    return {"type": type(at).__name__}


class Alternation(_choice.Alternation):
    """The current module's Alternation. The alternation and its selects are traced."""

    def __init__(self, guards: Any, ensurePriority: bool = False) -> None:
        super().__init__(guards, ensurePriority)
        self._trace("Alternation", guards=[_guard(g[0]) for g in self.guards])

    @staticmethod
    def _trace(kind: str, **more: Any) -> None:
        sendTrace({"type": kind, **more, "process_id": _pycsp.current_process_id()})

    def select(self) -> tuple[Any, Any]:
        self._trace("BlockOnAlternation.select")
        result = super().select()
        self._trace("DoneAlternation.select", guard=_guard(result[0]))
        return result

    def execute(self) -> tuple[Any, Any]:
        self._trace("BlockOnAlternation.execute")
        result = super().execute()
        self._trace("DoneAlternation.execute", guard=_guard(result[0]))
        return result


def _traced_select(priority: bool) -> Callable[..., tuple[Any, Any]]:
    def select(*guards: Any) -> tuple[Any, Any]:
        flat = [g for item in guards for g in (item if isinstance(item, list) else [item])]
        return Alternation(flat, ensurePriority=priority).execute()

    return select


PriSelect = _traced_select(True)
AltSelect = _traced_select(False)
FairSelect = _traced_select(False)

__all__ = [
    *_names,
    "TraceInit",
    "TraceMsg",
    "TraceQuit",
    "sendTrace",
]

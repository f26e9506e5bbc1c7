"""The functions of weft.processes that weft.threads does not have: processes in OS processes of
their own.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import types
from typing import Any

from weft._backends.functions import is_coroutine
from weft._backends.shared import process_of
from weft._components import host_runner as _native_hosts
from weft._extension import native as _native
from weft._hosts import host as _host
from weft._hosts import hosts as _hosts
from weft._hosts import pickling as _pickling
from weft._hosts import supervisor as _supervisor
from weft.errors import BadUse

__all__ = ["away_to", "moved", "process"]

_ELSEWHERE = ("coroutines", "greenlets", "threads")


def process(function: Any) -> Any:
    """Makes a process function of a function: a call of it returns a Process, not started, that
    holds the ends in its arguments.

    The process runs in an interpreter of its own, in an OS process; an `async def` runs as a
    coroutine process there. The ends among its arguments go with the process; the other arguments,
    its result and its exception are pickled.

    Raises:
        BadUse: `function` is not a function, or is a generator function, or is a process function
            already.
    """
    process_of(function, "threads")  # this raises BadUse if `function` cannot be a process function
    return process_of(_away(function, _host.run_away), "threads")


def _away(function: Any, call: Any, far: bool = False) -> Any:
    """Returns a function that calls `function` through `call`. `far` means that `function` runs on
    another machine.
    """

    @functools.wraps(function)
    def away(*args: Any, **keywords: Any) -> Any:
        return call(function, args, keywords)

    away._weft_body = function  # type: ignore[attr-defined]  # other OS processes find it by name
    if not far:
        # From the creation of such a process on, its channels carry copies.
        away._weft_away = True  # type: ignore[attr-defined]
    return away


def away_to(function: Any, where: Any) -> Any:
    """Returns a function that calls this one in another OS process: in an OS process of its own
    (`where` is "processes", or weft.processes), or in one of the hosts `where`, which may be on
    another machine.

    Raises:
        BadUse: there are no such hosts.
    """
    call: Any = None
    far = False
    if isinstance(where, _supervisor.Supervisor):
        call, far = where.placed(), where._way == "network"
    elif isinstance(where, _hosts.Elsewhere) and where._way == "board":
        raise BadUse(
            "on: a board is given before the call, function.on(board)(...), since it is the source "
            "of the function that goes there"
        )
    elif isinstance(where, _hosts.Elsewhere):
        call, far = where.call, where._way == "network"
    elif _name_of(where) == "processes":
        call = _host.run_away
    elif isinstance(where, str) and (host := _hosts.named(where)) is not None:
        call, far = host.call, True
    if call is None:
        raise BadUse(
            f"on({where!r}): no such backend; give weft.processes, its Hosts, one of them, a Supervisor, or the name of a host of a "
            "network that was joined (weft.net.join); another backend before the call, function.on(...)(...)"
        )
    native = getattr(function, "_weft_call", function)
    if isinstance(native, _native_hosts.Call):
        return native.away(call)
    return _away(getattr(function, "_weft_body", function), call, far)


def moved(function: Any, where: Any, name: str) -> Any:
    """Returns the function of a process, changed so that it runs on `where`: in another OS process,
    or back in this one (rule 15.3).
    """
    backend = _name_of(where)
    if isinstance(where, _hosts.Elsewhere) and where._way == "board":
        return where.placed(getattr(function, "_weft_body", function))
    if backend not in _ELSEWHERE:
        return process_of(away_to(function, where), "threads")
    body = function._weft_body
    here = process_of(body, "greenlets" if backend == "greenlets" else "threads")
    return here if backend == "greenlets" and not is_coroutine(body) else here.on(where)


def _name_of(where: Any) -> str:
    name = where.__name__ if isinstance(where, types.ModuleType) else where
    return name.removeprefix("weft.") if isinstance(name, str) else ""


# A process function is pickled if it is an argument, or a global of a function that is sent by
# value.


def _reduced(function: Any) -> Any:
    """Pickles a process function by its name, if it can be imported under that name; otherwise by
    the function that it wraps.
    """
    name = _pickling.name_of(function)
    if name is not None:
        return _named, name
    body = getattr(function.__wrapped__, "_weft_body", None)
    if body is not None:
        return process, (body,)
    return process_of, (function.__wrapped__, function._weft_plain)


def _named(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


copyreg.pickle(_native.ProcessFunction, _reduced)

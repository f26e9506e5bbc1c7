"""Tests that keywords agree with the stubs: each parameter can be passed by its name, and other
names are refused with a TypeError. No call raises a SystemError.

The stubs (`*.pyi`) determine the calls, so that a new parameter is tested too. A new parameter
needs a value in makers().
"""

from __future__ import annotations

import ast
import gc
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from weft import _native as native
from weft import coroutines, observe, threads
from weft.errors import WeftError

HERE = Path(native.__file__).parent
STUBS = {"coroutines": coroutines, "threads": threads}


class Call(NamedTuple):
    """A callable with one of its signatures."""

    owner: str  # the class of a method; "": a function
    name: str
    positional: list[str]  # can only be given by position
    keywords: list[str]

    def __str__(self) -> str:
        return f"{self.owner}{'.' if self.owner else ''}{self.name}({', '.join(self.keywords)})"


def call_of(owner: str, f: ast.FunctionDef | ast.AsyncFunctionDef) -> Call:
    given = f.args.posonlyargs + f.args.args
    own = 1 if owner else 0  # self
    place = [a.arg for a in f.args.posonlyargs[own:]]
    named = [a.arg for a in given[max(own, len(f.args.posonlyargs)) :] + f.args.kwonlyargs]
    if f.args.vararg is not None:
        place.append(f.args.vararg.arg)
    return Call(owner, f.name, place, named)


def calls_of(stub: str, names: list[str] | None = None) -> Iterator[Call]:
    """Returns the callables of a stub, and of another stub from which it imports, only `names`."""
    tree = ast.parse((HERE / f"{stub}.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and (names is None or node.name in names):
            yield call_of("", node)
        elif isinstance(node, ast.ClassDef) and (names is None or node.name in names):
            for f in node.body:
                if not isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                if not any(getattr(d, "id", "") == "property" for d in f.decorator_list):
                    yield call_of(node.name, f)
        elif isinstance(node, ast.ImportFrom) and node.module == "weft._native" and names is None:
            yield from calls_of("_native", [a.name for a in node.names])
        elif isinstance(node, ast.ImportFrom) and node.module == "weft.observe":
            for a in node.names:
                yield call_by_signature(a.name)


def call_by_signature(name: str) -> Call:
    """Returns the call of a function whose source contains its types."""
    kinds = inspect.Parameter
    given = inspect.signature(getattr(observe, name)).parameters.values()
    return Call(
        "",
        name,
        [p.name for p in given if p.kind in (kinds.POSITIONAL_ONLY, kinds.VAR_POSITIONAL)],
        [p.name for p in given if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)],
    )


async def nothing() -> None:
    pass


def makers(api: Any) -> dict[str, Callable[[], Any]]:
    """Returns a function for each name: for a class, it makes an object; for a parameter (small
    letter), it makes a value."""
    some = api.process(nothing if api is coroutines else lambda: None)
    return {
        "Reader": lambda: api.Channel("c", capacity=1).reader(),
        "Writer": lambda: api.Channel("c", capacity=1).writer(),
        "Channel": lambda: api.Channel("c", capacity=1),
        "ChannelArray": lambda: api.Channel("c") * 2,
        "Barrier": lambda: api.Barrier(1),
        "Timer": lambda: api.Timer(0.001),
        "Alternative": lambda: api.Alternative(api.skip()),
        "Outside": lambda: api.Outside(),
        "Group": lambda: api.Group(),
        "Timeout": lambda: api.timeout(1.0),
        "Guard": lambda: api.after(1.0),
        "Listener": lambda: api.listen("127.0.0.1:0"),
        "Stream": lambda: connected(api),
        "Ready": lambda: api.writable(1),
        "Process": some,
        "ProcessEnd": lambda: some().ended(),
        "ProcessFunction": lambda: some,
        "action": lambda: "warn",
        "address": lambda: "127.0.0.1:0",
        "backend": lambda: "threads",
        "bytes_per_value": lambda: None,
        "capacity": lambda: 1,
        "channel": lambda: api.Channel(),
        "clock": lambda: "steady",
        "condition": lambda: True,
        "data": lambda: b"x",
        "descriptor": lambda: os.dup(0),
        "due": lambda: True,
        "ended": lambda: "raise",
        "ends": lambda: api.Channel(),
        "error": lambda: None,
        "file": lambda: 1,
        "first": some,
        "function": lambda: nothing,
        "guards": lambda: api.skip(),
        "host": lambda: "weft",
        "immunity": lambda: 1,
        "index": lambda: 0,
        "kind": lambda: 0,
        "limit": lambda: 1.0,
        "make": lambda: lambda: 1,
        "mode": lambda: "priority",
        "most": lambda: 2,
        "move": lambda: False,
        "n": lambda: 2,
        "name": lambda: "named",
        "object": lambda: None,
        "on": lambda: True,
        "others": some,
        "overflow": lambda: "block",
        "owner": lambda: object,
        "partial": lambda: None,
        "path": lambda: os.devnull,
        "again": lambda: False,
        "parties": lambda: 1,
        "period": lambda: 1.0,
        "process": some,
        "processes": some,
        "reader": lambda: api.Channel().reader(),
        "redeliver": lambda: True,
        "report": lambda: None,
        "second": some,
        "seconds": lambda: 0.0,
        "strength": lambda: 1,
        "time": lambda: 0.0,
        "trace": lambda: None,
        "type": lambda: int,
        "value": lambda: 1,
        "values": lambda: [1],
        "watchdog": lambda: None,
        "writer": lambda: api.Channel().writer(),
    }


PEERS: list[Any] = []  # the other ends of streams, which would end these if they were closed


def connected(api: Any) -> Any:
    """Returns a stream that has something to read and room for a write."""
    stream, peer = api.Stream.pair()
    os.write(peer.fileno(), b"x")
    PEERS.append(peer)
    return stream


def bound(api: Any, call: Call) -> Any:
    """Returns the function or method of a call."""
    if not call.owner:
        return getattr(api, call.name)
    if call.name in ("__init__", "__new__"):
        return getattr(api, call.owner, None) or getattr(native, call.owner)
    return getattr(makers(api)[call.owner](), call.name)


def inside(api: Any, act: Callable[[], Any]) -> Any:
    """Returns the result of `act` or the exception that it raises, when a process calls it:
    operations belong in processes."""

    def done() -> Any:
        try:
            result = act()
        except Exception as error:
            return error.with_traceback(None)
        # The object will be neither awaited nor started.
        for name in ("close", "_give_up"):
            if hasattr(result, name):
                getattr(result, name)()
                break
        return result

    async def body() -> Any:
        return [done()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # objects that are made and not used
        try:
            [result] = api.run(api.process(body if api is coroutines else lambda: [done()])())
        except api.Deadlock as error:
            # The operation has begun, and waits for an event that never occurs.
            result = error.with_traceback(None)
        gc.collect()
    observe.debug(False)
    observe.measure(False)
    return result


CALLS = [
    (stub, call)
    for stub in STUBS
    for call in calls_of(stub)
    # The parameters of ProcessFunction.__call__ are those of its function.
    if (call.owner, call.name) != ("ProcessFunction", "__call__")
]


@pytest.mark.parametrize(
    ("stub", "call"), [c for c in CALLS if c[1].keywords], ids=lambda c: str(c)
)
def test_every_keyword_is_taken(stub: str, call: Call) -> None:
    api = STUBS[stub]
    made = makers(api)

    def act() -> Any:
        keywords = {k: made[k]() for k in call.keywords}
        return bound(api, call)(*(made[k]() for k in call.positional), **keywords)

    result = inside(api, act)
    fine = (WeftError, ConnectionRefusedError)  # of connect()
    assert not isinstance(result, Exception) or isinstance(result, fine), repr(result)


@pytest.mark.parametrize(("stub", "call"), CALLS, ids=lambda c: str(c))
def test_others_are_refused(stub: str, call: Call) -> None:
    api = STUBS[stub]
    made = makers(api)

    def act() -> Any:
        keywords = {k: made[k]() for k in call.keywords}
        return bound(api, call)(
            *(made[k]() for k in call.positional), **keywords, no_such_keyword=1
        )

    assert type(inside(api, act)) is TypeError


@pytest.mark.parametrize(
    "name", sorted(n for n in dir(native) if callable(getattr(native, n)) and n != "__loader__")
)
def test_the_extension_module_refuses_them_too(name: str) -> None:
    with pytest.raises(TypeError):
        getattr(native, name)(no_such_keyword=1)

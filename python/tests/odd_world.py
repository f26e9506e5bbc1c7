"""The parts that the places of odd objects (odd_places.py, odd_away.py, odd_components.py) share.

    @place("__eq__ …")       adds a function of an odd object (odd_objects.py), with the methods
                             that are likely to be called there
    world.hosts, world.pool exist as long as the places of one seed run

The places are sorted by their cost: those in PLACES run by the thousand, those in AWAY use existing
OS processes, and those in DEAR start new ones. The hosts and the pool are used by many places, and
must stay usable: see World.check().
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from odd_objects import Odd

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import Executor, Hosts, process

FOLDER = os.environ.get("ODD_FOLDER", "/nonexistent")

Place = Callable[["World", Odd], Any]
PLACES: dict[str, Place] = {}
AWAY: dict[str, Place] = {}
DEAR: dict[str, Place] = {}
CALLED: dict[str, list[str]] = {}  # the methods that are likely to be called in a place


def _added(to: dict[str, Place], *methods: str) -> Callable[[Place], Place]:
    def add(function: Place) -> Place:
        to[function.__name__] = function
        CALLED[function.__name__] = " ".join(methods).split()
        return function

    return add


VALUE = "__eq__ __hash__ __bool__ __del__ __reduce__ __reduce_ex__ __getstate__ __getattribute__ @__class__"
FAILURE = "__str__ __repr__ __format__ __reduce__ __reduce_ex__ __getattribute__ __del__ add_note"
FAILURE += (
    " @__class__ @__cause__ @__context__ @__traceback__ @__notes__ @args @met @strength @exceptions"
)
FUNCTION = (
    "__call__ __getattr__ __getattribute__ __hash__ __eq__ @__name__ @__qualname__ @__module__"
)
FUNCTION += (
    " @__wrapped__ @__code__ @__self__ @__dict__ @_weft_body @_weft_name @call meta.__call__"
)
NUMBER = (
    "__index__ __float__ __int__ __bool__ __eq__ __lt__ __hash__ __repr__ __str__ __mul__ __rmul__"
)
WORD = "__str__ __eq__ __hash__ __fspath__ __repr__ __format__ __len__ __getitem__ __iter__ __contains__"
ITEMS = "__iter__ __next__ __len__ __length_hint__ __getitem__ __contains__ keys items __buffer__"
ITEMS += " __array__ __array_interface__ @_fields"


def place(*methods: str) -> Callable[[Place], Place]:
    return _added(PLACES, *methods)


def away(*methods: str) -> Callable[[Place], Place]:
    return _added(AWAY, *methods)


def dear(*methods: str) -> Callable[[Place], Place]:
    return _added(DEAR, *methods)


class World:
    """The objects that the places share. Each is made when it is first needed."""

    _hosts: Hosts | None = None
    _pool: Executor | None = None

    @property
    def hosts(self) -> Hosts:
        if self._hosts is None:
            self._hosts = Hosts(1, start="forkserver")
        return self._hosts

    @property
    def pool(self) -> Executor:
        if self._pool is None:
            import multiprocessing

            self._pool = Executor(2, multiprocessing.get_context("forkserver"))
        return self._pool

    def check(self) -> None:
        """Checks that the actions of an odd object have harmed no other object."""
        if self._hosts is not None:
            assert th.run(gives.on(self._hosts)(7)) == 7
        if self._pool is not None:
            assert list(self._pool.map(abs, range(-5, 0))) == [5, 4, 3, 2, 1]
        assert co.run(hears_nothing()) is None

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
        if self._pool is not None:
            self._pool.shutdown()


# --- processes of the places ----------------------------------------------------------------------


@th.process
def writes(out: Any, value: Any) -> None:
    out.write(value)


@co.process
async def awrites(out: Any, value: Any) -> None:
    await out.write(value)


@gr.process
def gwrites(out: Any, value: Any) -> None:
    out.write(value)


@th.process
def reads(inp: Any) -> Any:
    return [value for value in inp]  # noqa: C416


@co.process
async def areads(inp: Any) -> Any:
    return [value async for value in inp]


@gr.process
def greads(inp: Any) -> Any:
    return [value for value in inp]  # noqa: C416


@th.process
def takes(*args: Any, **keywords: Any) -> Any:
    return args


@co.process
async def atakes(*args: Any, **keywords: Any) -> Any:
    return args


@gr.process
def gtakes(*args: Any, **keywords: Any) -> Any:
    return args


@th.process
def fails(error: Any) -> None:
    raise error


@co.process
async def afails(error: Any) -> None:
    raise error


@gr.process
def gfails(error: Any) -> None:
    raise error


@co.process
async def fails_from(error: Any) -> None:
    raise RuntimeError("of the test") from error


@process
def gives(value: Any) -> Any:
    return value


@co.process
async def hears_nothing() -> None:
    await co.yield_()


@th.process
def waits(inp: Any) -> Any:
    return inp.read()


def ended(p: Any) -> Any:
    return p.ended().wait()

"""Rule 10.3: a handler of a signal counts as something outside if it can reach an end, a channel, a
barrier, a process or a group; then there is no deadlock but a standstill (10.6)."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import gc
import signal
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weft._extension import native
from weft.coroutines import Barrier, Channel, Deadlock, Group, Outside, process, run

SIGNAL = signal.SIGUSR2

# The objects to which the handlers below refer by name.
stop = Channel[int]("stop")
end_of_stop = stop.writer()
barrier = Barrier(2)
group = Group()
in_a_list = [{"deep": (1, [stop])}]
nothing = [1, {"deep": ("x", None)}]
other = types.ModuleType("other")
other.stop, other.flag = stop, False  # type: ignore[attr-defined]


@process
async def waits(r: Any) -> None:
    await r.read()


crowd = waits(stop.reader())
crowd * 0  # this process is never started


@contextlib.contextmanager
def handled_by(handler: Any) -> Iterator[None]:
    before = signal.signal(SIGNAL, handler)
    try:
        yield
    finally:
        signal.signal(SIGNAL, before)


def acts(handler: Any) -> bool:
    with handled_by(handler):
        found: list[int] = native._handlers_that_act({})
    assert found in ([], [SIGNAL])
    return bool(found)


# --- handlers that may act ------------------------------------------------------------------------


def names_a_channel(*_: Any) -> None:
    stop.poison()


def names_an_end(*_: Any) -> None:
    end_of_stop.retire()


def names_a_process(*_: Any) -> None:
    crowd.cancel()


def names_a_barrier(*_: Any) -> None:
    barrier.resign()


def names_a_group(*_: Any) -> None:
    group.cancel()


def names_a_container(*_: Any) -> None:
    in_a_list.pop()


def names_a_module(*_: Any) -> None:
    other.stop.poison()


def has_a_default(_: Any, __: Any, w: Any = end_of_stop) -> None:
    w.retire()


def has_a_keyword(*_: Any, w: Any = end_of_stop) -> None:
    w.retire()


def calls_one(*_: Any) -> None:
    helps()


def helps() -> None:
    helps_too(other)


def helps_too(where: Any) -> None:
    where.stop.poison()


def hands_on(*_: Any) -> None:
    helps_too(other)


def has_one_within(*_: Any) -> None:
    def inner() -> None:
        stop.poison()

    inner()


def in_a_closure() -> Any:
    w = stop.writer()
    return lambda *_: w.retire()


def in_a_decorator() -> Any:
    def wraps(f: Any) -> Any:
        @functools.wraps(f)
        def wrapper(*args: Any) -> Any:
            return f(*args)

        return wrapper

    return wraps(names_a_channel)


class Server:
    kept: Any = None

    def __init__(self, control: Any) -> None:
        self.control = control

    def terminate(self, *_: Any) -> None:
        self.shutdown()

    def shutdown(self) -> None:
        self.control.poison()

    @property
    def both(self) -> Any:
        return self.control

    def by_property(self, *_: Any) -> None:
        self.both.poison()

    @classmethod
    def of_class(cls, *_: Any) -> None:
        cls.kept.poison()

    def __call__(self, *_: Any) -> None:
        self.control.poison()


class Inherits(Server):
    pass


class Slots:
    __slots__ = ("control", "unset")

    def __init__(self) -> None:
        self.control = stop

    def terminate(self, *_: Any) -> None:
        self.control.poison()


@dataclasses.dataclass
class Data:
    control: Any

    def terminate(self, *_: Any) -> None:
        self.control.poison()


class Listed(list[Any]):
    def terminate(self, *_: Any) -> None:
        for one in self:
            one.poison()


class Entered:
    def __enter__(self) -> None:
        stop.poison()

    def __exit__(self, *_: Any) -> None:
        pass


entered = Entered()


def enters(*_: Any) -> None:
    with entered:
        pass


def makes_one(*_: Any) -> None:
    Made()


class Made:
    def __init__(self) -> None:
        stop.poison()


class OfClass(Server):
    kept = stop


def by_weak_references() -> Any:
    kept = Server(stop)
    weak = weakref.WeakMethod(kept.terminate)
    handler = lambda *_: weak()()  # type: ignore[misc]  # noqa: E731
    handler.kept = kept  # type: ignore[attr-defined]
    return handler


REACH: dict[str, Callable[[], Any]] = {
    "a channel": lambda: names_a_channel,
    "an end": lambda: names_an_end,
    "a process": lambda: names_a_process,
    "a barrier": lambda: names_a_barrier,
    "a group": lambda: names_a_group,
    "in a container": lambda: names_a_container,
    "of a module": lambda: names_a_module,
    "a default": lambda: has_a_default,
    "a keyword's default": lambda: has_a_keyword,
    "a function that a function calls": lambda: calls_one,
    "what it hands on": lambda: hands_on,
    "a function within": lambda: has_one_within,
    "a closure": in_a_closure,
    "a decorator": in_a_decorator,
    "a bound method": lambda: Server(stop).terminate,
    "a property": lambda: Server(stop).by_property,
    "a method that is inherited": lambda: Inherits(stop).terminate,
    "a method of a class": lambda: OfClass.of_class,
    "an object that is called": lambda: Server(stop),
    "a slot": lambda: Slots().terminate,
    "a data class": lambda: Data(stop).terminate,
    "a list of a class of its own": lambda: Listed([stop]).terminate,
    "a block": lambda: enters,
    "an object that is made": lambda: makes_one,
    "a weak reference": by_weak_references,
    "partial": lambda: functools.partial(lambda w, *_: w.retire(), end_of_stop),
    "a method of an end": lambda: functools.partial(end_of_stop.retire),
    "a deque": lambda: functools.partial(print, collections.deque([stop])),
    "a thread of control": lambda: functools.partial(print, types.SimpleNamespace(control=stop)),
}


@pytest.mark.parametrize("form", REACH)
def test_a_handler_that_may_act(form: str) -> None:  # rule 10.3
    assert acts(REACH[form]())


# --- handlers that may not act --------------------------------------------------------------------


def sets_a_flag(*_: Any) -> None:
    global flag
    flag = True


def raises(*_: Any) -> None:
    raise SystemExit(1)


def names_another_attribute(*_: Any) -> None:
    other.flag = True  # type: ignore[attr-defined]


def names_what_has_none(*_: Any) -> None:
    nothing.append(event)


flag = False
event = threading.Event()


class Worker:
    """A web server refers to the whole program, but its handlers use none of the program's
    names."""

    def __init__(self, app: Any) -> None:
        self.app, self.alive, self.cfg = app, True, types.SimpleNamespace(hook=lambda worker: None)

    def handle_exit(self, *_: Any) -> None:
        self.alive = False
        self.cfg.hook(self)


class Item:
    """Stands in for a pytest item, with its function and its arguments. The handler of the test's
    time limit holds a reference to it.
    """

    def __init__(self) -> None:
        self.obj, self.funcargs, self.name = names_a_channel, {"c": stop}, "a test"


def with_a_limit() -> Any:
    item = Item()

    def handler(*_: Any) -> None:
        says(item)

    return handler


def says(item: Any) -> None:
    raise RuntimeError(f"{item.name} takes too long")


NONE: dict[str, Callable[[], Any]] = {
    "a flag": lambda: sets_a_flag,
    "an exception": lambda: raises,
    "an event": lambda: event.set,
    "nothing": lambda: lambda *_: None,
    "another attribute of a module": lambda: names_another_attribute,
    "containers without any": lambda: names_what_has_none,
    "a server": lambda: Worker([stop]).handle_exit,
    "a limit of time": with_a_limit,
    "an end in an attribute that nobody names": lambda: functools.partial(sets_a_flag, Item()),
    "Python's own": lambda: signal.default_int_handler,
    "an Outside": lambda: functools.partial(print, Outside.__new__),
}


@pytest.mark.parametrize("form", NONE)
def test_a_handler_that_reaches_none(form: str) -> None:  # rule 10.3
    handler = NONE[form]()
    assert not acts(handler)
    c = Channel[int]("c")
    kept = c.writer()
    with handled_by(handler), pytest.raises(Deadlock):
        run(waits(c.reader()))
    kept.retire()


def test_a_search_without_end_counts() -> None:  # rule 10.3: nothing is proven
    many = [[] for _ in range(600_001)]  # type: ignore[var-annotated]
    gc.freeze()
    try:
        assert acts(functools.partial(print, many))
        assert not acts(functools.partial(print, many[:1000]))
    finally:
        gc.unfreeze()


def test_what_a_handler_refers_to_runs_nothing() -> None:  # rules 10.3, 12.1
    """The search for what a handler refers to may run under locks. So it runs no method of any
    object, and no exception leaves it."""
    ran: list[str] = []

    class Key(str):
        def __hash__(self) -> int:
            return hash("control")

        def __eq__(self, other: object) -> bool:
            ran.append("__eq__")
            raise ValueError

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name != "__class__":
                ran.append(f"Meta {name}")
            return super().__getattribute__(name)

    class Odd(metaclass=Meta):
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            raise RecursionError

        def __getattr__(self, name: str) -> Any:
            ran.append(name)
            raise SystemExit

        @property
        def control(self) -> Any:
            ran.append("control")
            raise KeyboardInterrupt

        def __iter__(self) -> Any:
            ran.append("__iter__")
            raise ValueError

        def __del__(self) -> None:
            ran.append("__del__")

        def __hash__(self) -> int:
            ran.append("__hash__")
            raise ValueError

    odd: Any = Odd()
    kept = object.__getattribute__(odd, "__dict__")
    kept[Key("x")] = stop  # a key that is no plain text
    namespace = {Key("y"): 2}
    ran.clear()

    def handler(*_: Any) -> None:
        odd.control(namespace)

    assert not acts(handler)
    assert not acts(functools.partial(handler, odd, [odd]))
    assert ran == []
    kept.clear()
    del handler
    odd = None
    assert "__del__" in ran  # the object was not kept alive


# --- the handlers of others ----------------------------------------------------------------------


def test_ctrl_c_of_asyncio_is_not_the_programs() -> None:
    """Rule 10.3: asyncio.run()'s handler of SIGINT refers to its task, and so to the whole
    program."""
    import asyncio

    found: list[Any] = []

    async def main(kept: Any) -> None:
        found.append(signal.getsignal(signal.SIGINT))
        found.append(native._handlers_that_act({}))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        asyncio.run(main(end_of_stop))
    finally:
        signal.signal(signal.SIGINT, before)
    assert found[1] == []

"""Objects that behave oddly: the kind of object × the odd method × the action of that method.

    make(Odd("list", "__len__", "raises", "SystemExit")) ──► a list whose length raises SystemExit

An object can be pickled, unless its odd method belongs to pickling: another OS process makes it
again from the same words. Its method is odd as soon as the object is made.
"""

from __future__ import annotations

import functools
import gc
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th


class Odd(NamedTuple):
    """An odd object, in words. `meta.…` is a method of the metaclass, `@…` a property."""

    base: str
    method: str
    act: str
    more: str = ""  #: the exception, or the value, in words

    def __str__(self) -> str:
        return f"{self.base} {self.method} {self.act} {self.more}".strip()


BASES: dict[str, type] = {
    "object": object,
    "exception": Exception,
    "base exception": BaseException,
    "retired": th.Retired,
    "cancelled": th.Cancelled,
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "str": str,
    "bytes": bytes,
    "int": int,
    "float": float,
    "class": type,
}

ERRORS: dict[str, Callable[[], BaseException]] = {
    "Exception": Exception,
    "BaseException": BaseException,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "GeneratorExit": GeneratorExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": lambda: SystemExit(3),
    "RecursionError": RecursionError,
    "MemoryError": MemoryError,
    "AttributeError": AttributeError,
    "OSError": lambda: OSError(24, "no descriptor"),
    "Retired": th.Retired,
    "Poisoned": th.Poisoned,
    "PeerDied": th.PeerDied,
    "Cancelled": th.Cancelled,
    "BadUse": th.BadUse,
    "itself": RuntimeError,  # raises the object itself, if it is an exception, in its own method
}

VALUES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a negative": lambda: -1,
    "a huge number": lambda: 1 << 62,
    "beyond": lambda: 10**30,
    "no number": lambda: float("nan"),
    "a long text": lambda: "x" * 1_000_000,
    "no text": lambda: "\udcff\0",
    "bytes": lambda: b"\xff",
    "true": lambda: True,
    "an object": object,
    "another": lambda: make(Odd("exception", "@__cause__", "returns", "another")),
    "NotImplemented": lambda: NotImplemented,
    "many": lambda: iter(range(3000)),
    "deep": lambda: functools.reduce(lambda x, _: [x], range(20_000), []),
    "a channel": th.Channel,
    "an end": lambda: _an_end(),
}


def _an_end() -> Any:
    """Makes the exception by which a reader's channel ends, for places where no channel ends."""
    c = th.Channel(capacity=1)
    w = c.writer()
    w.write(1)
    w.retire()
    return c.reader()


WORDS = """
    __eq__ __hash__ __bool__ __len__ __length_hint__ __iter__ __next__ __getitem__ __contains__ __reversed__
    __getattr__ __getattribute__ __setattr__ __dir__ __repr__ __str__ __format__ __del__ __sizeof__
    __reduce__ __reduce_ex__ __getstate__ __setstate__ __getnewargs_ex__ __copy__ __deepcopy__
    __index__ __float__ __int__ __lt__ __add__ __mul__ __rmul__ __call__ __await__ __aiter__ __anext__
    __enter__ __exit__ __aenter__ __aexit__ __fspath__ __buffer__ __array__ __array_interface__ __set_name__ __get__
    keys items add_note with_traceback
    @__class__ @__dict__ @__doc__ @__name__ @__qualname__ @__module__ @__wrapped__ @__code__ @__self__ @__weakref__
    @__cause__ @__context__ @__traceback__ @__notes__ @__suppress_context__ @args @value @met @strength @exceptions
    @_weft_body @_weft_name @_fields @call @channel
    meta.__call__ meta.__instancecheck__ meta.__subclasscheck__ meta.__getattribute__ meta.@__name__
    meta.@__module__ meta.@__qualname__ meta.@__mro__ meta.__hash__ meta.__eq__ meta.__repr__ meta.__del__
"""
METHODS = WORDS.split()
PICKLING = {"__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs_ex__", "__getattribute__"}

# Holders of objects in this OS process. The odd methods that delete objects empty these holders.
holders: list[Any] = []


@th.process
def _writes_one(out: Any) -> None:
    out.write(1)


@co.process
async def _reads_one(inp: Any) -> int:
    return int(await inp.read())


def _by_threads() -> Any:
    c = th.Channel()
    return th.Parallel(_writes_one(c.writer()), _reads_one(c.reader()))


def _by_a_buffer() -> Any:
    c = th.Channel(capacity=1)
    w, r = c.writer(), c.reader()
    w.write(1)
    return r.read()


def _by_greenlets() -> Any:
    c = th.Channel()
    hears = gr.process(lambda inp: inp.read())
    return th.run(hears(c.reader()), _writes_one(c.writer()))


def _by_a_block() -> Any:
    with th.Group() as group, th.move_on_after(0):
        group.cancel()
        th.yield_()


RE_ENTERS: dict[str, Callable[[], Any]] = {
    "runs threads": _by_threads,
    "runs greenlets": _by_greenlets,
    "uses a buffer": _by_a_buffer,
    "opens a block": _by_a_block,
    "selects": lambda: th.select(th.skip()),
    "collects": gc.collect,
}


def _delete() -> None:
    """Makes every holder in this OS process drop its objects."""
    for one in holders:
        clear = getattr(one, "clear", None) or getattr(one, "retire", None)
        if clear is not None:
            clear()
    gc.collect()


# How often each method was called that would otherwise be called endlessly.
_calls: dict[int, int] = {}


def _end_of(method: str, me: Any) -> BaseException | None:
    """Returns the exception that ends a sequence which would otherwise be endless; None if the
    method returns no sequence, or the sequence continues.
    """
    ends = {"__getitem__": IndexError, "__next__": StopIteration, "__anext__": StopAsyncIteration}
    if method not in ends:
        return None
    _calls[id(me)] = _calls.get(id(me), 0) + 1
    return ends[method]() if _calls[id(me)] % 1000 == 0 else None


def _act(odd: Odd, me: Any, args: tuple[Any, ...]) -> Any:
    end = _end_of(odd.method, me)
    if end is not None:
        raise end
    if odd.act == "raises":
        if odd.more == "itself" and isinstance_of_exception(me):
            raise me
        raise ERRORS[odd.more]()
    if odd.act == "returns":
        return VALUES[odd.more]()
    if odd.act == "recurses":
        if odd.more == "by a pickle":
            return pickle.dumps(me)
        return getattr(me, odd.method.lstrip("@").removeprefix("meta."))(*args)
    if odd.act == "re-enters":
        return RE_ENTERS[odd.more]()
    _delete()
    return VALUES[odd.more]()


def isinstance_of_exception(me: Any) -> bool:
    return issubclass(type(me), BaseException)


ACTS: dict[str, list[str]] = {
    "raises": list(ERRORS),
    "returns": list(VALUES),
    "recurses": ["by a call", "by a pickle"],
    "re-enters": list(RE_ENTERS),
    "deletes": ["nothing", "true"],
}


@functools.cache
def _class_of(odd: Odd) -> type:
    base = BASES[odd.base]
    name = odd.method.removeprefix("meta.")

    def act(me: Any, *args: Any, **_: Any) -> Any:
        return _act(odd, me, args)

    its: Any = property(act) if name.startswith("@") else act
    members: dict[str, Any] = {name.lstrip("@"): its}
    if odd.method.startswith("meta."):
        meta: Any = type("OddClass", (type,), members)
        members = {}
    else:
        meta = type
    if name not in PICKLING and odd.base != "class":
        members["__reduce__"] = lambda me: (make, (odd,))
    return meta("OddThing", (base,), members)  # type: ignore[no-any-return]


def make(odd: Odd) -> Any:
    """Makes the object.

    Raises:
        the exception of the method, if Python calls the method to make the object.
    """
    kind = _class_of(Odd(*odd))
    if odd.base == "class":
        return kind("Made", (), {})
    if odd.base in ("list", "tuple", "set"):
        return kind([1, 2])
    if odd.base == "dict":
        return kind({1: 2})
    if odd.base in ("int", "float"):
        return kind(1)
    if odd.base == "str":
        return kind("odd")
    if odd.base == "bytes":
        return kind(b"odd")
    return kind()


class Loads:
    """An object that acts like an odd object when it is unpickled."""

    def __init__(self, odd: Odd) -> None:
        self._odd = odd

    def __reduce__(self) -> Any:
        return done, (self._odd,)


def done(odd: Odd) -> Any:
    return _act(Odd(*odd), None, ())

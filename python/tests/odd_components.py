"""The places where native components take a user's object (odd_world.py): as a value, an
argument, an array."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from pathlib import Path
from typing import Any

from odd_objects import Odd, make
from odd_world import ITEMS, NUMBER, VALUE, WORD, World, away, awrites, greads, place, reads, writes

import weft.coroutines as co
import weft.threads as th

HERE = Path(__file__).parent
os.environ.setdefault("WEFT_CACHE", str(HERE.parents[1] / ".build/components"))
VALUES = "ints floats bools texts blobs nothings lists nested tuples dicts maybes negate negate16"


@functools.cache
def basics() -> Any:
    import weft.native

    return weft.native.load(HERE / "component_basics.cpp")


@th.process
def reads_one(inp: Any) -> Any:
    return inp.read()


def _has_compiler() -> bool:
    return any(shutil.which(name) for name in ("c++", "g++", "clang++"))


def _pass_through(odd: Odd, **where: Any) -> None:
    """Checks that a value that its channel accepts is written by the component again."""
    for name in VALUES.split():
        if not _has_compiler():
            return
        a, b = th.Channel("a"), th.Channel("b")
        with contextlib.suppress(Exception):
            th.Parallel(
                writes(a.writer(), make(odd)),
                getattr(basics(), name)(a.reader(), b.writer(), **where),
                reads(b.reader()),
            )


@place(NUMBER, ITEMS, WORD)
def component_value(_: World, odd: Odd) -> Any:
    _pass_through(odd)


@place(NUMBER, ITEMS)
def component_values_of_other_backends(_: World, odd: Odd) -> Any:
    if not _has_compiler():
        return None
    a, b = th.Channel("a", capacity=1), th.Channel("b", capacity=1)
    component = basics().lists(a.reader(), b.writer())
    return co.run(awrites(a.writer(), [make(odd)]), component, greads(b.reader()))


@place(NUMBER, ITEMS, WORD)
def component_argument(_: World, odd: Odd) -> Any:
    if not _has_compiler():
        return
    for given in (
        lambda out: basics().count_to(out, make(odd)),
        lambda out: basics().tells(out, "x", make(odd), True, None),
        lambda out: basics().tells(out, make(odd), [1.0], make(odd), make(odd)),
        lambda out: basics().adds(make(odd), out),
        lambda out: basics().ints(make(odd), out),
        lambda out: basics().count_to(out, 3).on(make(odd)),
    ):
        c = th.Channel("c")
        with contextlib.suppress(Exception):
            th.Parallel(given(c.writer()), reads_one(c.reader()))


@place(WORD)
def component_that_is_loaded(_: World, odd: Odd) -> Any:
    import weft.native

    # load() would treat a str or bytes as a path, and make a file there
    if odd.base not in ("str", "bytes"):
        return weft.native.load(make(odd))
    return None


@away(VALUE, NUMBER, ITEMS)
def component_there(world: World, odd: Odd) -> Any:
    if not _has_compiler():
        return None
    a, b = th.Channel("a"), th.Channel("b")
    component = basics().lists(a.reader(), b.writer(), on=world.hosts)
    return th.Parallel(writes(a.writer(), [make(odd)]), component, reads(b.reader()))

"""A weft.NoResult takes the place of a missing result (rule 7.1), on every backend, and in an
asyncio task."""

from __future__ import annotations

import asyncio
import copy
import gc
import math
import operator
import pickle
import pprint
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from loops import Runner

import weft
from weft import coroutines as co
from weft import threads as th
from weft.errors import BadUse, Cancelled, NoResult, Poisoned, Retired

HERE = "test_no_result.py"


def line_of(function: Callable[..., Any], after: int) -> str:
    return f"{HERE}:{function.__code__.co_firstlineno + after}"


def retired(b: Any, n: int = 1) -> list[Any]:
    """Returns processes that read from channels whose writers are closed."""
    c = b.weft.Channel("retired")
    rs = [c.reader() for _ in range(n)]
    c.writer().retire()
    return rs


def poisoned(b: Any) -> Any:
    c = b.weft.Channel("poisoned")
    r = c.reader()
    c.writer().poison(3)
    return r


async def reads(b, r):
    return await b.op(r.read())


async def writes(b, w):
    await b.op(w.write("a value"))


async def selects(b, r):
    await b.op(b.weft.select(r, b.weft.Input(r)))


async def holds(b, r):
    manager = r.extended()
    await b.enter(manager)
    await b.leave(manager)


async def sleeps(b):
    await b.op(b.weft.sleep(3600))


async def cancels(b, *ps):
    for p in ps:
        p.cancel()


async def fails(b, error=None):
    raise ValueError("mine") if error is None else error


async def ends_at(b, p):
    return await b.op(p.ended().wait())


async def returns(b, value=None):
    return value


def of_a_read(b: Any) -> NoResult:
    """Returns the NoResult of a process `reads` whose channel has retired."""
    results = b.run(b.process(reads)(*retired(b)), b.process(returns)("beside"))
    assert results[1] == "beside"
    assert isinstance(results[0], NoResult)
    return results[0]


@pytest.fixture
def none(b: Any) -> NoResult:
    return of_a_read(b)


# --- the text -------------------------------------------------------------------------------------


def test_how_each_kind_of_end_is_said(b):  # rules 3.5, 4.3, 6.5, 7.1, 7.11
    rs = retired(b, 3)
    full = b.weft.Channel("full")
    w = full.writer()
    full.reader().retire()
    waits = b.process(sleeps)()
    failing = b.weft.watched(b.process(fails)())
    ps = [
        b.process(reads)(rs[0]),
        b.process(writes)(w),
        b.process(selects)(rs[1]),
        b.process(holds)(rs[2]),
        b.process(reads)(poisoned(b)),
        waits,
        failing,
    ]
    # watched from the start, because it may fail before any process asks about its end
    failing.ended()
    results = b.run(*ps, b.process(cancels)(waits), b.process(ends_at)(failing))
    ends_seen = [(n.process, n.how, n.reason) for n in results[: len(ps)]]
    assert ends_seen == [
        ("main/reads[0]", "retired", "read on channel 'retired': the other side has retired"),
        ("main/writes", "retired", "write on channel 'full': the other side has retired"),
        ("main/selects", "retired", "select on channel 'retired': the other side has retired"),
        ("main/holds", "retired", "extended read on channel 'retired': the other side has retired"),
        ("main/reads[1]", "poisoned", "read on channel 'poisoned': it was poisoned"),
        ("main/sleeps", "cancelled", "cancelled"),
        ("main/fails", "failed", "ValueError: mine"),
    ]
    assert results[len(ps)] is None  # the last process has returned None
    how, result, error = results[len(ps) + 1]
    # Ended already contains the failure
    assert (how, result, str(error)) == ("failed", None, "mine")
    assert [bool(n) for n in results[: len(ps)]] == [False] * len(ps)


def test_where(b):
    """The reported place is a line of the program, and not of a function that passes the operation
    on, nor of Weft.
    """

    async def own_line(b, r):
        await b.op(b.weft.sleep(0))
        return await b.op(r.read())

    async def deeper(b, r):
        async def within():
            return await b.op(r.read())

        return await within()

    async def within_a_parallel(b, r):
        return await b.op(b.weft.Parallel(b.process(own_line)(r)))

    def without_the_shim(r):
        return r.read()

    rs = retired(b, 4)
    plain = th.process(without_the_shim)(rs[3])
    results = b.run(
        b.process(own_line)(rs[0]), b.process(deeper)(rs[1]), b.process(within_a_parallel)(rs[2])
    )
    shim = {"coroutines": None}.get(b.name, "")
    for n, function, after in ((results[0], own_line, 2), (results[1], deeper, 2)):
        assert n.where == line_of(function, after) or (
            shim is not None and n.where.startswith(HERE)
        )
    assert results[2][0].process == "main/within_a_parallel/own_line"
    assert th.Parallel(plain)[0].where == line_of(without_the_shim, 1)


def test_the_sentence(none):  # rule 7.1
    sentence = f"({none.reason})"
    assert repr(none) == f"process main/reads gave no result: it ended at {none.where} {sentence}"
    assert str(none).startswith(repr(none) + "; ")
    assert "isinstance(" in str(none)  # the text gives advice
    assert f"{none}" == str(none)
    assert repr([none]) == f"[{none!r}]"
    assert pprint.pformat({"a": none}, width=10_000) == f"{{'a': {none!r}}}"


def test_of_what_was_never_run(b):  # rules 6.5, 7.1, 7.3
    late = b.process(returns)("late")

    async def outer(b):
        with pytest.raises(ValueError, match="mine"):
            await b.op(b.weft.Sequence(b.process(fails)(), late))

    b.run(b.process(outer)())
    n = late.result
    assert (n.process, n.how, n.where) == ("returns", "cancelled", "?")
    assert repr(n) == "process returns gave no result: it ended (it was never run)"


def test_a_name_and_an_index_of_its_own(b):  # rules 7.1, 7.8
    rs = retired(b, 4)
    ps = [b.process(reads)(r) for r in rs]
    for p, name in zip(ps[2:], ("my own: a name", "x[y]"), strict=True):
        p.named(name)
    ns = b.run(*ps)
    assert [n.process for n in ns] == [
        "main/reads[0]",
        "main/reads[1]",
        "main/my own: a name",
        "main/x[y]",
    ]
    assert {n.reason for n in ns[:2]} == {"read on channel 'retired': the other side has retired"}


def test_in_a_group_and_spawned(b):  # rules 7.1, 7.4, 7.5
    async def outer(b, rs):
        group = b.weft.Group()
        await b.enter(group)
        p = group.start(b.process(reads)(rs[0]))
        await b.op(p.ended().wait())
        early = p.result  # read while the block is open
        await b.leave(group)
        b.weft.Spawn(spawned)
        return early, p.result

    rs = retired(b, 2)
    spawned = b.process(reads)(rs[1])
    early, late = b.run(b.process(outer)(rs))
    assert early is late
    assert early.process == "main/outer/reads"
    assert (spawned.result.process, spawned.result.how) == ("main/reads", "retired")


def test_the_same_in_the_list_and_as_result(b):  # rule 7.1
    p, q = b.process(reads)(*retired(b)), b.process(returns)()
    first = b.run(p, q)
    assert p.result is first[0]
    assert q.result is None


def test_a_sequence_and_a_parallel_within(b):  # rule 7.1, 7.3
    async def outer(b, rs):
        one = await b.op(b.weft.Sequence(b.process(reads)(rs[0]), b.process(returns)(1)))
        two = await b.op(b.weft.Parallel(b.process(reads)(rs[1]), b.process(returns)(2)))
        return one, two

    one, two = b.run(b.process(outer)(retired(b, 2)))
    assert (one[0].process, one[1]) == ("main/outer/reads", 1)
    assert (two[0].process, two[1]) == ("main/outer/reads", 2)


def test_one_alone_raises_what_left_it(b):  # rule 7.1
    p = b.process(reads)(*retired(b))
    with pytest.raises(Retired):
        b.run(p)
    assert p.result.how == "retired"


def test_a_million_would_not_know_each_other(b):  # rule 7.1
    """Many NoResults share parts of their texts (the path above them, a reason), but each NoResult
    has its own text where they differ.
    """
    a, c = b.weft.Channel("a"), b.weft.Channel("c")
    ends = [ch.reader() for ch in (a, c, a, c)]
    for ch in (a, c):
        ch.writer().retire()

    async def inner(b, rs):
        return await b.op(b.weft.Parallel(b.process(reads)(r) for r in rs))

    x, y = b.run(b.process(inner)(ends[:2]), b.process(inner)(ends[2:]))
    assert [n.process for n in x + y] == [
        f"main/inner[{i}]/reads[{k}]" for i in range(2) for k in range(2)
    ]
    assert [n.reason[16:19] for n in x + y] == ["'a'", "'c'"] * 2


# --- its behaviour --------------------------------------------------------------------------------

USES: dict[str, Callable[[Any], Any]] = {
    "+": lambda n: n + 1,
    "reflected +": lambda n: 1 + n,
    "+=": lambda n: operator.iadd(n, 1),
    "-": lambda n: n - 1,
    "*": lambda n: 2 * n,
    "@": lambda n: n @ n,
    "/": lambda n: 1 / n,
    "//": lambda n: n // 2,
    "%": lambda n: 5 % n,
    "divmod": lambda n: divmod(n, 2),
    "**": lambda n: n**2,
    "<<": lambda n: n << 1,
    "|": lambda n: n | 1,
    "&": lambda n: 1 & n,
    "^": lambda n: n ^ 1,
    "<": lambda n: n < 1,
    "reflected <": lambda n: operator.lt(1, n),
    ">=": lambda n: n >= 1,
    "minus": lambda n: -n,
    "plus": lambda n: +n,
    "invert": lambda n: ~n,
    "abs": abs,
    "int": int,
    "float": float,
    "complex": complex,
    "round": round,
    "floor": math.floor,
    "index": lambda n: [1][n],
    "sum": lambda n: sum([1, n]),
    "max": lambda n: max(1, n),
    "sorted": lambda n: sorted([1, n]),
    "len": len,
    "iter": list,
    "unpacked": lambda n: [*n],
    "next": next,
    "reversed": reversed,
    "in": lambda n: 1 in n,
    "item": lambda n: n[0],
    "item set": lambda n: operator.setitem(n, 0, 1),
    "item deleted": lambda n: operator.delitem(n, 0),
    "called": lambda n: n(),
    "with": lambda n: n.__enter__(),
    "bytes": bytes,
    ".attribute": lambda n: n.mean,
    ".method": lambda n: n.append(1),
    ".private": lambda n: n._mean,
    ".attribute set": lambda n: setattr(n, "mean", 1),
}


def test_whatever_else_is_done_with_it_raises_a_copy():  # rule 7.1
    none = of_a_read_on_threads()
    for use, does in USES.items():
        with pytest.raises(NoResult) as caught:
            pytest.fail(f"{use}: {does(none)!r}")
        assert caught.value is not none, use
        assert repr(caught.value) == repr(none), use
        assert isinstance(caught.value, AttributeError) == use.startswith("."), use
        lines = traceback.format_exception_only(type(caught.value), caught.value)
        assert lines == [f"weft.NoResult: {none}\n"], use
    assert none.__traceback__ is None


def of_a_read_on_threads() -> NoResult:
    c = th.Channel("c")
    r = c.reader()
    c.writer().retire()
    results = th.run(th.process(lambda r: r.read())(r), [])
    assert isinstance(results[0], NoResult)
    return results[0]


def test_awaited(none):  # rule 7.1
    async def main() -> None:
        with pytest.raises(NoResult, match="gave no result"):
            await none
        with pytest.raises(NoResult, match="gave no result"):
            async for _ in none:
                pass
        with pytest.raises(NoResult, match="gave no result"):
            async with none:
                pass

    asyncio.run(main())


def test_what_asks_for_attributes_finds_none(none):  # rule 7.1
    assert not hasattr(none, "mean")
    assert getattr(none, "mean", "none") == "none"
    assert not hasattr(none, "__array__")
    with pytest.raises(AttributeError, match="__array__") as caught:
        none.__array__  # noqa: B018
    assert not isinstance(caught.value, NoResult)


def test_asking_for_an_attribute_leaves_nothing_behind(none):  # rule 7.1
    with pytest.raises(NoResult) as caught:
        none.mean  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("mean", none)
    with pytest.raises(NoResult):
        caught.value.mean = 1
    gone = weakref.ref(caught.value)
    del caught
    gc.collect()
    assert gone() is None


def test_it_is_false_and_equal_to_itself_alone(b, none):  # rule 7.1
    assert not none
    assert none == none
    assert none != of_a_read(b)
    assert none != None and none != 0  # noqa: E711
    assert none is not None
    assert none in [0, none] and {none: 1}[none] == 1
    assert (none or "another") == "another"


def test_it_is_an_exception(none):  # rule 7.1
    assert isinstance(none, weft.NoResult) and issubclass(NoResult, weft.WeftError)
    with pytest.raises(NoResult) as caught:
        raise none
    assert caught.value is none


def test_one_that_leaves_a_process_is_a_failure(b, none):  # rules 4.6, 7.2
    async def adds(b, n):
        return n + 1

    with pytest.raises(NoResult, match="process main/reads gave no result"):
        b.run(b.process(adds)(none), b.process(returns)())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, "pickle", "of a copy"])
def test_copies_say_the_same(b, none, copied):  # rule 7.1
    if copied == "of a copy":
        with pytest.raises(NoResult) as caught:
            none.mean  # noqa: B018
        again = pickle.loads(pickle.dumps(caught.value))
    else:
        made = copied if callable(copied) else lambda n: pickle.loads(pickle.dumps(n))
        again = made(none)
        assert pickle.loads(pickle.dumps(made(again))).where == none.where
    assert type(again) is NoResult and again is not none and not again
    assert repr(again) == repr(none)
    assert [getattr(again, a) for a in ("process", "how", "where", "reason")] == [
        getattr(none, a) for a in ("process", "how", "where", "reason")
    ]


def test_it_goes_over_a_channel(b, none):  # rules 7.1, 9.1
    c = b.weft.Channel("c")

    async def sends(b, w, n):
        await b.op(w.write(n))

    results = b.run(b.process(sends)(c.writer(), none), b.process(reads)(c.reader()))
    assert results == [None, none]


# --- objects that it keeps alive ------------------------------------------------------------------


class Local:
    pass


def test_no_frame_is_kept(b):  # rule 7.1
    """The local objects of the process are freed when the process is freed, without the garbage
    collector."""
    there: list[Any] = []

    async def has_a_local(b, r):
        local = Local()
        there.append(weakref.ref(local))
        return await b.op(r.read())

    async def fails_with_one(b):
        local = Local()
        there.append(weakref.ref(local))
        raise ValueError(local)

    async def watches(b, p):
        return (await b.op(p.ended().wait())).how

    gc.disable()
    try:
        failing = b.weft.watched(b.process(fails_with_one)())
        failing.ended()
        watch = b.process(watches)(failing)
        results = b.run(
            b.process(has_a_local)(*retired(b)),
            b.process(has_a_local)(poisoned(b)),
            failing,
            watch,
        )
        del failing, watch
        assert [r if isinstance(r, str) else r.how for r in results] == [
            "retired",
            "poisoned",
            "failed",
            "failed",
        ]
        assert [ref() for ref in there] == [None] * 3
    finally:
        gc.enable()
    assert "Local" in results[2].reason


class Odd(Retired):
    def __str__(self) -> str:
        raise RuntimeError("not me")


class Odder(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


def test_odd_exceptions(b):  # rules 7.1, 11.1
    """A text that cannot be made is left out, and no process waits forever."""
    odd = Odd("met")
    odd.met = True
    odder = b.weft.watched(b.process(fails)(Odder()))
    odder.ended()
    several = Retired("one")
    several.args = ("one", 2)
    several.met = True
    results = b.run(
        b.process(fails)(odd), odder, b.process(fails)(several), b.process(ends_at)(odder)
    )
    assert [(n.how, n.reason) for n in results[:3]] == [
        ("retired", "met"),
        ("failed", "Odder"),
        ("retired", "retired"),
    ]
    assert [n.process for n in results[:3]] == [f"main/fails[{i}]" for i in range(3)]


# --- beside coroutines, threads and greenlets -----------------------------------------------------


@co.process
async def read(r: Any) -> Any:
    return await r.read()


def test_as_a_guest_of_asyncio(play: Runner) -> None:  # rules 7.1, 13.1
    class Co:
        weft: Any = co

    @co.process
    async def cancelled_by_asyncio() -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(3600)

    async def main() -> Any:
        rs = retired(Co, 3)
        return [
            *(await co.run_async(read(rs[0]), cancelled_by_asyncio())),
            *(await co.Parallel(read(rs[1]))),
            *(await co.Sequence(read(rs[2]), [])),
        ]

    results = play(main())
    assert [n.how for n in results] == ["retired", "cancelled", "retired", "retired"]
    assert [n.process for n in results] == [
        "main/read",
        "main/cancelled_by_asyncio",
        "main/read",
        "main/read",
    ]
    assert {n.where.partition(":")[0] for n in results if n.how == "retired"} == {HERE}


def test_of_a_coroutine_on_a_thread_of_its_own() -> None:  # rules 7.1, 15.3
    class Th:
        weft: Any = th

    rs = retired(Th, 2)
    results = th.run(read.on(th)(rs[0]), read(rs[1]))
    assert [n.where for n in results] == [line_of(read.__wrapped__, 2)] * 2  # type: ignore[attr-defined]
    assert [n.process for n in results] == ["main/read[0]", "main/read[1]"]


def test_a_poison_of_the_programs_own_is_a_failure_and_no_result(b):  # rules 3.5, 4.3
    p = b.process(fails)(Poisoned("mine"))
    with pytest.raises(Poisoned, match="mine"):
        b.run(p, b.process(returns)())
    with pytest.raises(Poisoned, match="mine"):
        _ = p.result


def test_cancelled_before_it_ran(b):  # rules 6.5, 7.1
    p = b.process(sleeps)()
    p.cancel()
    results = b.run(p, b.process(returns)())
    assert (results[0].how, results[0].process) == ("cancelled", "main/sleeps")


def test_bad_use_of_the_result_is_as_ever(b):  # rule 11.1
    p = b.process(returns)()
    with pytest.raises(BadUse, match="has not ended"):
        _ = p.result
    b.run(p)
    with pytest.raises(Cancelled):
        b.run(b.process(fails)(Cancelled()))

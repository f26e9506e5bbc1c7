"""A signal's handler uses an Executor while ordinary code uses the same Executor. This is tried at
every place of Weft's Python code where Python runs handlers (rule 12.1).

    .venv/bin/python python/tests/handled.py [EVERY [PROGRAM…]]   last line: N passed, N failed

EVERY: only every EVERY-th of these places is used (interrupted.py defines the places). The result
that a handler waits for must arrive, although the interrupted code may be working on the handler's
call. A program that hangs has failed: it is killed from outside, and the last line that it prints
names the place.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from typing import Any

from interrupted import Tracer, traced

from weft.processes import Executor

SERVER = multiprocessing.get_context("forkserver")


def square(n: int) -> int:
    return n * n


def fresh() -> Executor:
    return Executor(1, SERVER)


def warm() -> Executor:
    pool = fresh()
    assert pool.submit(square, 1).result() == 1
    return pool


# --- the code that is interrupted -----------------------------------------------------------------


def submits(pool: Executor) -> Any:
    return pool.submit(square, 2).result()


def maps(pool: Executor) -> Any:
    return list(pool.map(square, range(7)))


def shuts_down(pool: Executor) -> Any:
    pool.shutdown()


# --- the actions of the handler -------------------------------------------------------------------


def asks(pool: Executor) -> None:
    assert pool.submit(square, 3).result() == 9
    assert list(pool.map(square, range(5))) == [0, 1, 4, 9, 16]


def ends(pool: Executor) -> None:
    pool.shutdown()


def ends_at_once(pool: Executor) -> None:
    pool.shutdown(cancel_futures=True)


def makes_another(_: Executor) -> None:
    with fresh() as other:
        assert other.submit(square, 4).result() == 16


# A program: the object that is made, the code that is interrupted, the handler's action, and the
# results that are allowed.
Program = tuple[Callable[[], Executor], Callable[[Executor], Any], Callable[[Executor], None], str]
OVER = "RuntimeError: cannot schedule new futures after shutdown"
PROGRAMS: dict[str, Program] = {
    "submits, asks": (warm, submits, asks, "4"),
    "submits first, asks": (fresh, submits, asks, "4"),
    "maps, asks": (warm, maps, asks, "[0, 1, 4, 9, 16, 25, 36]"),
    "submits, ends": (warm, submits, ends, f"4 or {OVER}"),
    "submits first, ends": (fresh, submits, ends, f"4 or {OVER}"),
    "submits first, ends at once": (
        fresh,
        submits,
        ends_at_once,
        f"4 or {OVER} or CancelledError: ",
    ),
    "shuts down, asks": (warm, shuts_down, asks, f"None or {OVER}"),
    "shuts down, ends": (warm, shuts_down, ends, "None"),
    "submits first, makes another": (fresh, submits, makes_another, "4"),
}


def outcome(of: Callable[[], Any]) -> str:
    try:
        return repr(of())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def main(every: int, names: list[str]) -> int:
    wrong = tried = 0
    for name in names:
        makes, does, handles, may_be = PROGRAMS[name]
        handled: list[str] = []
        pool = makes()

        def handler(*_: Any) -> None:
            handled.append(outcome(lambda: handles(pool)))  # noqa: B023

        signal.signal(signal.SIGUSR1, handler)
        all_places = Tracer()
        traced(lambda: does(pool), all_places)  # noqa: B023
        pool.shutdown()
        places = {place: n for n, place in reversed(list(enumerate(all_places.passed)))}
        kept = warm() if handles is asks and does is not shuts_down and makes is warm else None
        for n in sorted(places.values())[::every]:
            handled.clear()
            pool = kept or makes()
            tracer = Tracer(n, signal.SIGUSR1)
            print(f"{name} {n}", end=" ", flush=True)
            got = outcome(lambda: traced(lambda: does(pool), tracer))  # noqa: B023
            if kept is None:
                pool.shutdown()
            good = got in may_be.split(" or ") and handled in ([], ["None"], [OVER])
            if tracer.where and not handled:
                good = False
            print("" if good else f"{got}, handled: {handled}", flush=True)
            tried += 1
            wrong += not good
        if kept is not None:
            kept.shutdown()
    print(f"{tried - wrong} passed, {wrong} failed")
    return wrong


if __name__ == "__main__":
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    sys.exit(main(step, sys.argv[2:] or list(PROGRAMS)) != 0)

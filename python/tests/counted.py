"""Counts references and makes allocations fail, in every public call of the package
(counted_calls.py, counted_far.py): no reference is left, and nothing crashes, hangs or loses a
value when memory runs out.

    counted.py refs [NAME…]      makes each call many times: the number of references stays the same
    counted.py memory [NAME…]    makes each call for k = 1, 2, …: its k-th allocation fails
        --times N                refs: calls between two counts (20)
        --most N                 memory: at most N values of k for each call, evenly spread (all)
        --leaks                  memory: also check that no references are left (see below)
        --burst N                memory: N allocations in a row fail (1)

NAME is a part of a call's name. A debug build of CPython (python/tests/debugged) counts references
and checks the interpreter's assertions; on another build, blocks of memory are counted. The calls
are made in a child process. If the child crashes or hangs, that is reported, and another child
continues after that place. The last line says how many calls passed and failed.

--leaks also reports references that CPython itself leaves, so inspect each report; soak runs
without --leaks.

When an allocation fails, a call may raise MemoryError, also as the cause or context of another
exception or in a group; or an error that says that there is no thread or no lock; or nothing, if it
does not need the memory.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import faulthandler
import gc
import os
import re
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CRASHES = 20  # the number of crashes of one call after which the rest of its sweep is skipped
OTHERS_OWN = (  # crashes that are not Weft's fault
    "greenlet: Failed low-level slp_switch()",  # ended by greenlet, which cannot save a stack
    # CPython 3.11 loses the exception if it has no memory for a cell of a function that it enters,
    # or for the frame object that a traceback needs. Plain functions that call each other show
    # this.
    "Assertion `STACK_LEVEL() == 0' failed",
    "Assertion `_PyErr_Occurred(tstate)' failed",
    "SystemError: <function ",  # fatal in a debug build; C functions are <built-in function
    # If CPython cannot make the tuple of an iterator over dict.items(), it untracks an object that
    # is not tracked.
    "object type name: dict_itemiterator",
)
# The messages of a lost exception where assertions are off.
LOST = re.compile("error return without exception set|<function .*> returned NULL without setting")
# The calls that are left out, and why. greenlet is compiled for a release build, so its references
# are not counted; and greenlet ends the program if it cannot save a stack. CPython ends the program
# if it has no memory for the state of a thread that was started by C code, as Weft's threads are.
LEFT_OUT = {
    "refs": re.compile("greenlets"),
    "memory": re.compile(r"threads|greenlets|^far_|^links$|component"),
}
NO_THREAD = ("can't start new thread", "can't allocate lock", "can't allocate read lock")


def calls() -> dict[str, Callable[[Any], None]]:
    import counted_far  # noqa: F401 – adds its calls
    from counted_calls import CALLS

    return CALLS


def total() -> int:
    """Returns the interpreter's references, or blocks of memory if it does not count references."""
    count = getattr(sys, "gettotalrefcount", sys.getallocatedblocks)
    gc.collect()
    return count()


# --- the references -----------------------------------------------------------------------------


def grows(function: Callable[[], Any], times: int) -> tuple[int, int]:
    """Returns by how much the count grows (0: not at all), and in how many calls. A leak is a count
    that grows in each of three rounds and in two long ones. A count that grows only once belongs to
    a cache; and some 250 references are made and dropped with the hosts' last answers, which a
    thread keeps.
    """
    for _ in range(3):
        function()
    for n in (times, times, times, 20 * times, 20 * times):
        before = total()
        for _ in range(n):
            function()
        grown = total() - before
        if grown < n * 3 // 4:
            return 0, n
    return grown, n


def refs(name: str, times: int) -> list[str]:
    function = calls()[name]
    grown, n = grows(lambda: function(contextlib.nullcontext()), times)
    return [f"{name}: {grown} more after {n} calls"] if grown else []


# --- the allocations ----------------------------------------------------------------------------


class Count:
    """Counts the allocations in the block."""

    def __init__(self) -> None:
        from weft._extension import native

        self.counting, self.number = native._allocations, 0

    def __enter__(self) -> None:
        self.counting(True)

    def __exit__(self, *_: object) -> None:
        self.number = self.counting(False)


class Fail:
    """Makes the k-th allocation in the block fail, and the `burst` - 1 allocations after it."""

    def __init__(self, k: int, burst: int) -> None:
        import _testcapi

        self.begin, self.end, self.span = _testcapi.set_nomemory, _testcapi.remove_mem_hooks, burst
        self.k = k

    def __enter__(self) -> None:
        self.begin(self.k - 1, self.k - 1 + self.span)  # this number of allocations succeeds first

    def __exit__(self, *_: object) -> None:
        self.end()


def allowed(error: BaseException | None, seen: set[int] | None = None) -> bool:
    seen = set() if seen is None else seen
    if error is None or id(error) in seen:
        return False
    seen.add(id(error))
    if isinstance(error, MemoryError) or str(error) in NO_THREAD:
        return True
    if isinstance(error, SystemError) and LOST.search(str(error)):
        return True
    inner = [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]
    return any(allowed(e, seen) for e in inner)


def outcome(function: Callable[[Any], None], fail: Fail) -> str:
    """Returns what is wrong with the end of the call; an empty text if nothing is wrong."""
    beside: list[str] = []

    def told(what: Any) -> None:
        if not allowed(what.exc_value):
            beside.append("".join(traceback.format_exception(what.exc_value)))

    sys.unraisablehook = threading.excepthook = told
    try:
        function(fail)
    except BaseException as error:
        fail.end()
        if not allowed(error):
            beside.append("".join(traceback.format_exception(error)))
    finally:
        fail.end()
    return "\n".join(beside)


def memory(name: str, most: int, burst: int, first: int, leaks: bool) -> list[str]:
    function = calls()[name]
    count = Count()
    for _ in range(3):
        function(count)
    gc.collect()
    gc.freeze()
    step = max(1, count.number // most) if most else 1
    wrong = []
    for k in range(first, count.number + 1, step):
        print(f"at {k} of {count.number}", flush=True)
        for _ in range(4):
            before = total()
            fault = outcome(function, Fail(k, burst))
            if fault:
                wrong.append(f"{name}: allocation {k} of {count.number} fails:\n{fault}")
                break
            if not leaks or total() <= before:
                break
        else:  # the count has grown in each of four calls
            wrong.append(f"{name}: allocation {k} of {count.number} fails: references are left")
    return wrong


# --- children -----------------------------------------------------------------------------------


def child(given: Any, name: str, first: int) -> None:
    """Makes one call, or the rest of its sweep. Prints the allocation that fails next (at), what is
    wrong, and that the child is done."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    try:
        wrong = (
            refs(name, given.times)
            if given.what == "refs"
            else memory(name, given.most, given.burst, first, given.leaks)
        )
    except BaseException:
        wrong = [f"{name}: {traceback.format_exc()}"]
    for text in wrong:
        print(f"wrong {text}", flush=True)
    print("done", flush=True)


def forked(given: Any, name: str, first: int) -> tuple[str, str]:
    """Returns what a new child prints, and how the child ended if it did not finish. This process
    has imported all modules that are needed, and runs no network, so it has no threads at the fork.
    """
    import progress

    there, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(ours, 1)
        os.dup2(ours, 2)
        try:
            child(given, name, first)
        finally:
            sys.stdout.flush()
            atexit._run_exitfuncs()
            os._exit(0)
    os.close(ours)
    received, how = b"", ""
    while True:
        if not select.select([there], [], [], progress.STILL)[0]:
            os.kill(pid, signal.SIGABRT)  # faulthandler prints where the child is
            how = "hang"
        some = os.read(there, 1 << 16)
        received += some
        if not some or (how and not select.select([there], [], [], 5)[0]):
            break
        progress.begin(f"{given.what} of {name}")
    if how:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(there)
    output = received.decode(errors="replace")
    if not how and not re.search("^done$", output, re.MULTILINE):
        how = f"crash: {os.waitstatus_to_exitcode(status)}"
    return output, how


def sweep(given: Any, name: str) -> list[str]:
    """Returns what is wrong with a call. Each child continues where the previous one crashed."""
    wrong: list[str] = []
    first, crashes = 1, 0
    while True:
        output, how = forked(given, name, first)
        wrong += re.split("^wrong ", output.partition("\ndone\n")[0], flags=re.MULTILINE)[1:]
        if not how:
            return wrong
        at = re.findall("^at ([0-9]+) of", output, re.MULTILINE)
        if not at or not any(own in output for own in OTHERS_OWN):
            crashes += 1
            wrong.append(f"{name}: {how} at {at[-1] if at else 'the start'}\n{output[-6000:]}")
        if not at or crashes == CRASHES:
            return wrong
        first = int(at[-1]) + 1


def main() -> int:
    say = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say.add_argument("what", choices=("refs", "memory"))
    say.add_argument("names", nargs="*", metavar="NAME")
    say.add_argument("--times", type=int, default=20)
    say.add_argument("--most", type=int, default=0)
    say.add_argument("--burst", type=int, default=1)
    say.add_argument("--leaks", action="store_true")
    given = say.parse_args()
    sys.path.insert(0, str(HERE.parent.parent / "tools"))
    names = [n for n in calls() if not given.names or any(part in n for part in given.names)]
    names = [n for n in names if not LEFT_OUT[given.what].search(n)]
    failed = 0
    for name in names:
        wrong = sweep(given, name)
        print(f"{'FAIL' if wrong else 'ok':5} {name}", *wrong, sep="\n", flush=True)
        failed += bool(wrong)
    print(f"{len(names) - failed} passed, {failed} failed")
    return int(failed > 0 or not names)


if __name__ == "__main__":
    sys.exit(main())

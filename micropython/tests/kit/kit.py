"""The module that converted scenarios import in place of pytest and conformance.scenarios. It runs
on MicroPython and CPython."""

import itertools
import re

if not hasattr(itertools, "pairwise"):  # Debian's PyPy implements Python 3.9
    itertools.pairwise = lambda things: zip(things, things[1:])

REGISTRY = []  # [name, function, rules, needs, outermost]


def _mark(rules, needs, outermost):
    def mark(fn):
        REGISTRY.append((fn.__name__, fn, rules, needs, outermost))
        return fn

    return mark


def scenario(*rules, needs=()):
    return _mark(rules, needs, False)


def outermost(*rules, needs=()):
    return _mark(rules, needs, True)


class raises:
    """Checks that the block raises E, with a text that contains a match of `match`."""

    def __init__(self, kinds, match=None):
        self.kinds, self.match = kinds, match
        self.value = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is None:
            raise AssertionError("did not raise %s" % (self.kinds,))
        if not isinstance(error, self.kinds):
            return False
        self.value = error
        if self.match is not None and not re.search(self.match, str(error)):
            raise AssertionError("%r is not in %r" % (self.match, str(error)))
        return True


class approx:
    def __init__(self, value, abs=1e-6):
        self.value, self.within = value, abs

    def __eq__(self, other):
        return -self.within <= other - self.value <= self.within


try:
    from _thread import allocate_lock

    _lock = allocate_lock()
except ImportError:  # a port without threads
    _lock = None


def append(log, x):
    """Performs `log.append(x)` of a scenario on threads, under a lock: without a GIL a list has no
    lock of its own.
    """
    with _lock:
        log.append(x)


WHOLE = "to its end"
threads_run = False


def awaited(fn):
    async def whole():
        await fn()
        return WHOLE

    return whole


def called(fn):
    def whole():
        fn()
        return WHOLE

    return whole


def run_all(module, left_out, run, process, threads=False):
    """Runs the scenarios of a module. Prints `ok NAME`, or `FAIL NAME` with the reason, for
    each."""
    import sys

    global threads_run
    threads_run = threads
    del REGISTRY[:]
    __import__(module)
    for name, fn, _, _, outer in REGISTRY:
        full = module + "." + name
        if full in left_out:
            continue
        print("begin", full)
        try:
            if outer:
                fn()
            else:
                p = process(called(fn) if threads else awaited(fn))().named(name)
                assert run(p, clock="virtual") == WHOLE, "an end of a channel left it"
        except BaseException as e:
            print("FAIL", full)
            if hasattr(sys, "print_exception"):
                sys.print_exception(e)
            else:
                import traceback

                traceback.print_exception(type(e), e, e.__traceback__)
            continue
        print("ok", full)

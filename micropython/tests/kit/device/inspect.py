"""The one function of inspect that scenarios use. It tells them whether they run on coroutines or
on threads, for any function."""

import kit


def iscoroutinefunction(function):
    return not kit.threads_run

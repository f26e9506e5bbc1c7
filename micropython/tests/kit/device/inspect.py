"""The one function of inspect that scenarios use. Whatever its argument, it tells the scenarios
whether they run on coroutines or on threads."""

import kit


def iscoroutinefunction(function):
    return not kit.threads_run

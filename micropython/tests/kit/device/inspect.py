"""The one function of inspect that scenarios use. Whatever its argument, its result shows whether
the scenarios run on coroutines or on threads."""

import kit


def iscoroutinefunction(function):
    return not kit.threads_run

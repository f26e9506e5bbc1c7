"""The one function of inspect that scenarios use: does what it is given run on one scheduler?"""

import kit


def iscoroutinefunction(function):
    return not kit.threads_run

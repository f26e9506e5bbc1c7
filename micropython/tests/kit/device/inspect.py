"""The one function of inspect that scenarios use: does what it is given run on one scheduler?"""


def iscoroutinefunction(function):
    return True
